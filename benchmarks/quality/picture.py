"""The picture: mean error of each method under every condition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from quality.conditions import CONDITIONS
from quality.runs import METHODS, OURS

MARKERS = "osD^v<>XP*p"
LEAST = 1e-4  # excess errors at or below it are shown here


def write_picture(runs: pd.DataFrame, path: Path) -> None:
    """Means of RSE - 1 over the sets, on a logarithmic axis; conditions down."""
    conditions = [name for name in CONDITIONS if name in set(runs.condition)]
    means = runs.groupby(["method", "condition", "dataset"]).rse.mean()
    excess = (means.groupby(["method", "condition"]).mean() - 1.0).clip(lower=LEAST)
    figure = Figure(figsize=(8.6, 1.4 + 0.4 * len(conditions)), layout="constrained")
    axes = figure.add_subplot()
    for marker, (name, method) in zip(MARKERS, METHODS.items(), strict=True):
        if name not in excess.index.get_level_values("method"):
            continue
        errors = excess[name].reindex(conditions).to_numpy()
        filled = "0.0" if name == OURS else "white"
        look = {"marker": marker, "linestyle": "", "color": filled, "markeredgecolor": "0.0"}
        look["zorder"] = 3 if name == OURS else 2
        axes.plot(errors, np.arange(len(conditions)), label=method.label, markersize=8, **look)
    axes.set_xscale("log")
    axes.set_xlim(left=LEAST / 1.5)
    axes.set_yticks(np.arange(len(conditions)), [CONDITIONS[name].label for name in conditions])
    axes.invert_yaxis()
    axes.set_xlabel("RSE - 1, mean over the sets (at the left edge: 0.0001 or less)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="0.9")
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, dpi=150)
