"""How good are centroids from a sketch? Ours against what a user could take instead.

Run by ``make quality``; ``python -m quality --help`` in this folder lists what can be chosen.
"""
