"""Clusters of machines: Dask, Spark and Ray, each in a page.

Sketches of partitions add up exactly, so an engine has little to do: run
``partitions.sketch_partition`` where the rows lie, add up the results. The bytes are those of
:func:`sketchshift.sketch` on one thread. Each module needs its library, and says how to get it.
"""

from __future__ import annotations

__all__: list[str] = []
