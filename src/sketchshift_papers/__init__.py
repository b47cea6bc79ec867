"""The paper's experiments, run again on this library: every figure, claim by claim.

Figures are TOML files in ``papers/sketch_and_shift``, further questions of the same kind in
``papers/beyond``; every single run is kept in Parquet. This
package stands beside ``sketchshift`` and uses its public names alone; ``sketchshift reproduce`` is
its command.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchshift_papers.definition import Figure, figure_names, load_figure, paper_folder
    from sketchshift_papers.reproduction import Files, n_missing, reproduce
    from sketchshift_papers.verdicts import write_summary

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

_MODULES = {"Files": "reproduction", "n_missing": "reproduction", "reproduce": "reproduction"}
_MODULES |= {"write_summary": "verdicts"}


def __getattr__(name: str) -> object:
    """A name, imported on first use: ``sketchshift --help`` imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "definition")
    return getattr(import_module(f"{__name__}.{module}"), name)
