"""The paper's experiments, run again on this library: every figure, claim by claim.

Figures are TOML files in ``papers/sketch_and_shift``; every single run is kept in Parquet.
"""

from __future__ import annotations

from sketchshift.experiments.definition import Figure, figure_names, load_figure, paper_folder
from sketchshift.experiments.reproduction import Files, n_missing, reproduce
from sketchshift.experiments.verdicts import write_summary

__all__ = [
    "Figure",
    "Files",
    "figure_names",
    "load_figure",
    "n_missing",
    "paper_folder",
    "reproduce",
    "write_summary",
]
