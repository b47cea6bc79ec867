"""The tables: means over seeds, worst single runs, seconds and bytes, as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from harness import machine

from quality.datasets import RECIPES
from quality.runs import HINDSIGHT_CLUSTERS, HINDSIGHT_SEEDS, METHODS, MULTIPLES

Cell = Callable[[pd.DataFrame], str]

HEAD = """# Quality of centroids

Written by `make quality` from runs of {dates}.
Machine: {machine}, shared with other work; one process.

- RSE: mean squared error over that of the best of five Lloyd runs on all rows; below 1 where even
  that misses clusters.
- Turnkey: `ss.decode(ss.sketch(X, n_clusters=k, sketch_size=m, seed=s), k, seed=s)`.
- Uniform sample, lightweight coreset (Bachem, Lucic and Krause 2018): as many bytes as that
  sketch's file, side statistics and header included; rows are kept as float32, a weight of the
  coreset as one more. k-means of these rows, the best of five k-means++ starts.
- Mini-batch: `MiniBatchKMeans.partial_fit`, 1024 rows at a time, each row once; in label order
  only where there are labels.
- Algorithm 2 (T = 2k) and CL-OMPR (least residual of 3 runs): sketches of one bandwidth, the best
  in hindsight for each dataset among eight from 0.1 to 1 root of the total variance, for known
  clusters from 0.03 on. For their cost only at m = 10kd, for k up to {clusters}
  and {seeds} seeds, without digits.
- Runs of each other method: {n_seeds} for each dataset and size.
"""


def write_tables(rows: list[dict[str, Any]], path: Path) -> None:
    """All tables into one file."""
    runs = in_hindsight(pd.DataFrame(rows))
    real, sipu = _of_group(runs, "real"), _of_group(runs, "sipu")
    all_real = pd.concat([real, _of_group(runs, "further")])
    parts = [_head(runs), f"## The {_number('real')} real sets: mean RSE / worst single run"]
    parts += [_summary(real), "\n![RSE against bytes](quality.png)\n"]
    for multiple in (10, 4):
        parts += [
            f"## Real sets, m = {multiple}kd: mean RSE",
            _by_dataset(all_real, multiple, _rse),
        ]
    for multiple in (10, 4):
        title = f"## Known clusters, m = {multiple}kd: mean RSE / mean number of clusters missed"
        parts += [title, _by_dataset(sipu, multiple, _rse_and_index)]
    parts += ["## Median seconds of decoding, m = 10kd", SECONDS, _by_dataset(runs, 10, _seconds)]
    parts += ["## Kilobytes of the sketch's file, and of the rows as float32", _bytes(runs)]
    path.write_text("\n\n".join(part.strip() for part in parts if part) + "\n")


SECONDS = """Of k-means alone for sample and coreset, of the whole pass for mini-batch, of the whole
of k-means for Lloyd; sketching and sampling are not counted."""


def in_hindsight(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with a bandwidth only where it is the best one of its dataset; all others."""
    tried = runs[runs.bandwidth.notna()]
    if tried.empty:
        return runs
    means = tried.groupby(["method", "dataset", "bandwidth"]).rse.mean().reset_index()
    best = means.loc[means.groupby(["method", "dataset"]).rse.idxmin()].drop(columns="rse")
    kept = tried.merge(best, on=["method", "dataset", "bandwidth"])
    return pd.concat([runs[runs.bandwidth.isna()], kept], ignore_index=True)


def _head(runs: pd.DataFrame) -> str:
    dates = sorted(set(runs.date))
    n = runs[runs.bandwidth.isna()].groupby(["dataset", "method", "multiple"], dropna=False).size()
    n_seeds = "none" if n.empty else " to ".join(map(str, sorted({n.min(), n.max()})))
    return HEAD.format(
        dates=dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        machine=machine(),
        seeds=HINDSIGHT_SEEDS,
        clusters=HINDSIGHT_CLUSTERS,
        n_seeds=n_seeds,
    )


def _summary(runs: pd.DataFrame) -> str:
    """Methods down, sizes across; a note where not all sets are there."""
    table = []
    for name, method in _present(runs):
        mine = runs[runs.method == name]
        cells = [_mean_and_worst(mine[mine.multiple == multiple]) for multiple in MULTIPLES]
        table.append([method, *cells, _mean_and_worst(mine[mine.multiple.isna()])])
    return _markdown(["", *(f"m = {multiple}kd" for multiple in MULTIPLES), "no sketch"], table)


def _mean_and_worst(runs: pd.DataFrame) -> str:
    if runs.empty:
        return "-"
    n, expected = runs.dataset.nunique(), _number("real")
    note = "" if n == expected else f" (of {n})"
    mean = runs.groupby("dataset").rse.mean().mean()
    return f"{mean:.3f} / {runs.rse.max():.2f}{note}"


def _by_dataset(runs: pd.DataFrame, multiple: int, cell: Cell) -> str:
    """Datasets down, methods across."""
    runs = runs[runs.multiple.isna() | (runs.multiple == multiple)]
    methods = list(_present(runs))
    table = []
    for name in (name for name in RECIPES if name in set(runs.dataset)):
        mine = runs[runs.dataset == name]
        parts = [mine[mine.method == method] for method, _ in methods]
        table.append([name, *("-" if part.empty else cell(part) for part in parts)])
    return _markdown(["", *(label for _, label in methods)], table) if table else "No runs yet."


def _bytes(runs: pd.DataFrame) -> str:
    runs = runs[runs.method == "turnkey"]
    table = []
    for name in (name for name in RECIPES if name in set(runs.dataset)):
        mine = runs[runs.dataset == name]
        n, d, k = (int(mine[column].iloc[0]) for column in "ndk")
        sizes = [mine[mine.multiple == multiple].bytes.mean() / 1e3 for multiple in MULTIPLES]
        shown = ["-" if pd.isna(size) else f"{size:.1f}" for size in sizes]
        table.append([name, str(n), str(d), str(k), *shown, f"{n * d * 4 / 1e3:.0f}"])
    heads = ["", "N", "d", "k", *(f"{multiple}kd" for multiple in MULTIPLES), "rows"]
    return _markdown(heads, table) if table else "No runs yet."


def _rse(runs: pd.DataFrame) -> str:
    return f"{runs.rse.mean():.3f}"


def _rse_and_index(runs: pd.DataFrame) -> str:
    return f"{runs.rse.mean():.3f} / {runs.centroid_index.mean():.1f}"


def _seconds(runs: pd.DataFrame) -> str:
    return f"{runs.seconds.median():.2f}"


def _present(runs: pd.DataFrame) -> list[tuple[str, str]]:
    names = set(runs.method)
    return [(name, method.label) for name, method in METHODS.items() if name in names]


def _of_group(runs: pd.DataFrame, group: str) -> pd.DataFrame:
    names = [name for name, recipe in RECIPES.items() if recipe.group == group]
    return runs[runs.dataset.isin(names)]


def _number(group: str) -> int:
    return sum(recipe.group == group for recipe in RECIPES.values())


def _markdown(heads: list[str], table: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *table]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
