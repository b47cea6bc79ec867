"""How good are centroids from a sketch? The turnkey pipeline against what the same bytes buy.

Run by ``make quality``; ``python -m quality --help`` in this folder lists what can be chosen.
"""
