"""Private clustering: sketches against DP-Lloyd and diffprivlib, over epsilon and rows.

``make privacy-bench`` runs it and writes ``benchmarks/results/privacy.md`` and ``.png``.
"""
