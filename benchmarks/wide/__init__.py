"""Data of hundreds of columns, and how well and fast they are clustered (``python -m wide``)."""
