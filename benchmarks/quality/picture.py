"""The picture: error against bytes, mean over the real sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from quality.datasets import RECIPES
from quality.runs import METHODS
from quality.tables import in_hindsight

LINES = {  # method: shade, marker, style of the line
    "turnkey": ("0.0", "o", "-"),
    "coreset": ("0.35", "s", "--"),
    "uniform": ("0.55", "^", "-."),
}
POINTS = {  # at one size only
    "algorithm2": "D",
    "algorithm2-refined": "v",
    "algorithm2-quick": "d",
    "algorithm2-refined-quick": "<",
    "cl-ompr": "X",
}
LEVELS = ("mini-batch", "mini-batch-sorted", "lloyd")


def write_picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Means of RSE - 1 against geometric means of bytes, both on logarithmic axes."""
    runs = in_hindsight(pd.DataFrame(rows))
    runs = runs[[RECIPES[name].group == "real" for name in runs.dataset]]
    if runs.empty:
        return
    figure = Figure(figsize=(8.6, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for method, (shade, marker, style) in LINES.items():
        look = {"color": shade, "marker": marker, "linestyle": style}
        _plot(axes, runs, method, linewidth=1.8, markersize=7, **look)
    for method, marker in POINTS.items():
        look = {"marker": marker, "linestyle": "", "color": "white", "markeredgecolor": "0.0"}
        _plot(axes, runs, method, words=",\nbest bandwidth", markersize=8, **look)
    _levels(axes, runs)
    _words(axes, runs)
    figure.savefig(path, dpi=150)


def _plot(axes: Axes, runs: pd.DataFrame, method: str, *, words: str = "", **look: Any) -> None:
    """One point for each size; every dataset counts alike."""
    mine = runs[runs.method == method]
    if mine.empty:
        return
    means = mine.groupby(["multiple", "dataset"]).agg(error=("rse", "mean"), size=("bytes", "mean"))
    sizes = np.exp(np.log(means["size"] / 1e3).groupby("multiple").mean())
    excess = means["error"].groupby("multiple").mean() - 1.0
    label = METHODS[method].label + words + _note(mine, runs)
    axes.loglog(sizes.to_numpy(), excess.to_numpy(), label=label, **look)


def _levels(axes: Axes, runs: pd.DataFrame) -> None:
    """Thin lines for what has no size to choose, named on the line."""
    for method in LEVELS:
        mine = runs[runs.method == method]
        level = mine.groupby("dataset").rse.mean().mean() - 1.0
        if level > 0.0:
            axes.axhline(level, color="0.6", linewidth=0.9, zorder=0)
            words = METHODS[method].label + _note(mine, runs)
            place = {"transform": axes.get_yaxis_transform(), "ha": "left", "va": "bottom"}
            axes.text(0.01, level, words, fontsize=8, color="0.25", **place)


def _note(mine: pd.DataFrame, runs: pd.DataFrame) -> str:
    """How many sets a mean is over, where not over all."""
    n = mine.dataset.nunique()
    return "" if n == runs.dataset.nunique() else f" ({n} sets)"


def _words(axes: Axes, runs: pd.DataFrame) -> None:
    n = runs.dataset.nunique()
    axes.set_title(f"Excess error against bytes kept: mean over {n} real sets, k = 10", fontsize=11)
    axes.set_xlabel("kilobytes (geometric mean over the sets)")
    axes.set_ylabel("RSE - 1")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    lower, upper = axes.get_ylim()
    axes.set_ylim(lower, upper * 1.2)  # room for the words on the highest line
    axes.grid(True, which="major", color="0.9")
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
