"""The paper's experiments and beyond, run on sketchshift: every figure, claim by claim.

Figures are TOML files in ``figures/sketch_and_shift``, open problems in ``figures/beyond``; every
single run is kept in Parquet. This project stands beside ``sketchshift`` and is run from a clone:
``python -m sketchshift_papers fig1``. It has what only figures and benchmarks need: public datasets
(``data``), other decoders (``decoders``), rules for a bandwidth (``bandwidth_rules``).
"""

from __future__ import annotations

__all__: list[str] = []
