"""The table and the picture of all runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

BASELINE = "DP-Lloyd"
COLORS = {
    "sketch, public plan": "#1f5fa6",
    "sketch, public plan with cells": "#7b3fa0",
    "sketch, private plan": "#2a9d8f",
    "DP-Lloyd": "#c05a1a",
    "diffprivlib": "#8a8a8a",
}
SHOWN = ("sketch, public plan", "sketch, public plan with cells", "sketch, private plan")
HEAD = """# Private clustering

Error of the centroids over that of k-means without privacy (RSE), k = 10, m = 10kd, delta = 1e-8;
mean over {datasets} datasets, and the worst dataset's mean, of {seeds} seeds. `make privacy-bench`.

- *sketch, public plan*: planned on 1000 public rows, without cells or with 50 of them. *Private
  plan*: a tenth of rho goes into the plan, in a ball ten spreads wide and one off the middle.
- *DP-Lloyd*: Gaussian noise, one random start, rows clipped to a ball of some public spreads; the
  best of three settings (5 rounds, 2 and 4 spreads; 10 rounds, 4) at each entry, in hindsight.
- *diffprivlib*: 0.6.6, its pure epsilon, with the true range of every column for free.

![RSE against epsilon]({picture})
"""


def write_report(lines: list[dict[str, Any]], folder: Path) -> None:
    """Write ``privacy.md`` and ``privacy.png`` to a folder."""
    means = summary(pd.DataFrame(lines))
    picture(means, folder / "privacy.png")
    runs = pd.DataFrame(lines)
    head = HEAD.format(
        datasets=runs["dataset"].nunique(), seeds=runs["seed"].nunique(), picture="privacy.png"
    )
    tables = (_table(means, n) for n in sorted(runs["n"].unique()))
    parts = [head, *tables, *(_by_dataset(runs, method) for method in SHOWN)]
    (folder / "privacy.md").write_text("\n".join(parts), encoding="utf-8")


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst over datasets, by rows, method and epsilon; DP-Lloyd at its best setting."""
    by_dataset = runs.groupby(["n", "method", "epsilon", "dataset"])["rse"].mean()
    means = by_dataset.groupby(["n", "method", "epsilon"]).agg(["mean", "max"]).reset_index()
    is_lloyd = means["method"].str.startswith(BASELINE)
    best = means[is_lloyd].sort_values("mean").groupby(["n", "epsilon"]).head(1)
    return pd.concat([means[~is_lloyd], best.assign(method=BASELINE)])


def _table(means: pd.DataFrame, n: int) -> str:
    part = means[means["n"] == n]
    epsilons = sorted(part["epsilon"].unique())
    rows = [
        f"\n| N = {n:,} | " + " | ".join(f"epsilon {e:g}" for e in epsilons) + " |",
        "|" + "---|" * (len(epsilons) + 1),
    ]
    for method in COLORS:
        cells = part[part["method"] == method].set_index("epsilon")
        texts = [
            f"{cells.loc[e, 'mean']:.3f} / {cells.loc[e, 'max']:.2f}" if e in cells.index else "-"
            for e in epsilons
        ]
        rows.append(f"| {method} | " + " | ".join(texts) + " |")
    return "\n".join(rows)


def _by_dataset(runs: pd.DataFrame, method: str) -> str:
    """One method, dataset by dataset."""
    part = runs[runs["method"] == method]
    table = part.pivot_table(index=["n", "epsilon"], columns="dataset", values="rse")
    rows = [
        f"\n*{method[0].upper()}{method[1:]}*, dataset by dataset:\n",
        "| N | epsilon | " + " | ".join(table.columns) + " |",
        "|" + "---|" * (len(table.columns) + 2),
    ]
    for (n, epsilon), line in table.iterrows():
        rows.append(f"| {n:,} | {epsilon:g} | " + " | ".join(f"{v:.3f}" for v in line) + " |")
    return "\n".join(rows) + "\n"


def picture(means: pd.DataFrame, path: Path) -> None:
    """Error against epsilon, a panel for each number of rows."""
    from matplotlib.figure import Figure

    sizes = sorted(means["n"].unique())
    figure = Figure(figsize=(4.2 * len(sizes) + 1.5, 3.9), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axes, n in zip(panels, sizes, strict=True):
        for method, color in COLORS.items():
            part = means[(means["n"] == n) & (means["method"] == method)].sort_values("epsilon")
            excess = part[["mean", "max"]] - 1.0
            axes.plot(part["epsilon"], excess["mean"], "o-", color=color, label=method)
            axes.fill_between(part["epsilon"], *excess.T.to_numpy(), color=color, alpha=0.12)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", title=f"{n:,} rows")
        axes.grid(True, color="0.9")
    panels[0].set_ylabel("RSE - 1: mean of the datasets, shaded to the worst")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=130)
