"""The tables, as Markdown: errors under every condition, where we lose, what is proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from quality.conditions import CONDITIONS
from quality.datasets import RECIPES
from quality.runs import METHODS, OURS, REFERENCE, home

Cell = Callable[[pd.DataFrame], str]

LOSS = 1.01  # times a rival's error: from here on we have lost
GOOD = 1.05  # times the best k-means: what "good" promises
WANTED = 0.97  # of those called good, when a limit is chosen

HEAD = """# Quality of centroids

Written by `make quality` from runs of {dates} on {machine}, one thread a run.

RSE is the mean squared error of the centroids over that of the best k-means: the best of {starts}
single runs of scikit-learn's on all rows. Below 1 even these were worse. Errors are means over
seeds, {seeds} at most.

Conditions. The plan sees all rows, up to 200,000, and a sketch has 20kd numbers, unless said
otherwise.

- Default plan, and three that differ in one thing: a stale plan (20,000 rows of the lower half
  along the first principal axis), a plan on the head (the first 2,000 rows of the file), 8kd
  numbers. All {n_real} real sets, k = 10.
- Later months: the plan sees the flights of January, each later month is clustered by itself.
- Heavy tails: Student t with 1.5 degrees of freedom, lognormal with sigma 2; ten clusters each.
- 50 to 784 columns; known clusters; k = 100; k = 1000, a mixture of 1,000 Gaussians among them.

Methods. BICO, StreamKM++ and cells of means keep as many bytes as our sketch has as a file, four
for each number.

- Ours: `ss.decode(ss.sketch(X, ss.plan(X, k, cells=True)), k)`; waves alone: `cells=False`.
- Pilot only: k-means of the rows that the plan sees, the best of five starts, of one for k = 100
  and more. Pilot + one exact pass: its centroids, moved to the means of all rows nearest to them.
- Cells of means: count and mean of the rows around each of many centers, placed as our cells are;
  k-means of these.
- BICO: package `bico`, the code of its authors; k-means of what it keeps.
- StreamKM++: merge and reduce with D^2 sampling, our own code, and k-means of what is left. Only
  the last block counts as bytes.
- MiniBatchKMeans (1024 rows at a time) and river's `KMeans` (half-life 0.01): one pass in the
  order of the file.
- Many passes, all rows in memory: faiss (25 steps, the best of five starts, of one for k = 1000),
  and the single runs of scikit-learn's k-means.
"""
TRUST = """Every decoding of ours says whether it can be trusted. "Leave one set out" takes for each
set the limit that all other sets suggest: the largest one with 97 of 100 below {good}."""
SECONDS = """From rows in memory to centroids, on one core. Of ours: plan, pass and decoding."""


def compared(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The runs of every condition, with errors relative to the best k-means.

    A method that does not see a difference between two conditions has its runs in both.
    """
    kept = pd.DataFrame(list(rows)).reindex(columns=COLUMNS)
    parts = [
        kept[
            (kept.method == method)
            & (kept.condition == home(method, condition))
            & kept.dataset.isin(list(CONDITIONS[condition].n_clusters))
        ].assign(condition=condition)
        for condition in CONDITIONS
        for method in METHODS
    ]
    runs = pd.concat([part for part in parts if len(part)], ignore_index=True)
    best = runs[runs.method == REFERENCE].groupby(PLACE).mse.min().rename("best")
    runs = runs.join(best, on=PLACE)
    return runs.assign(rse=runs.mse / runs.best).dropna(subset="best")


PLACE = ["condition", "dataset"]
PARTS = ["seconds_plan", "seconds_pass", "seconds_decode"]
COLUMNS = [*PLACE, "method", "seed", "mse", "seconds", *PARTS, "bytes", "n", "d", "k", "date"]
COLUMNS += ["missed", "estimate", "bound", "is_good", "score", "machine"]


def write_tables(runs: pd.DataFrame, path: Path) -> None:
    """All tables into one file."""
    parts = [_head(runs), "## All conditions: mean over the sets / worst set", _summary(runs)]
    parts += ["![Errors under all conditions](quality.png)"]
    parts += [f"## Where we lose: a rival is better by more than {LOSS - 1:.0%}", losses(runs)]
    for condition in _present(CONDITIONS, runs.condition):
        title, mine = CONDITIONS[condition].label.capitalize(), runs[runs.condition == condition]
        parts += [f"## {title}: mean RSE", _by_dataset(mine, _rse)]
    known = runs[runs.missed.notna()]
    parts += ["## Known clusters missed, mean", _by_dataset(known, _missed)]
    certified = runs[runs.bound.notna() & (runs.method == OURS)]
    parts += ["## What is proved and estimated", _certificates(certified)]
    parts += ["## Trust", TRUST.format(good=GOOD), trust(certified)]
    parts += ["## Median seconds", SECONDS, _seconds(runs)]
    parts += ["## Kilobytes of our sketch as a file, and of the rows as float32", _bytes(runs)]
    path.write_text("\n\n".join(part.strip() for part in parts) + "\n")


def _head(runs: pd.DataFrame) -> str:
    dates = sorted(set(runs.date))
    mine = runs[runs.method != REFERENCE]
    starts = {condition.n_references for condition in CONDITIONS.values()}
    return HEAD.format(
        dates=dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        machine=" and ".join(sorted(set(runs.machine))),
        starts=f"{max(starts)} ({min(starts)} for k = 1000)",
        seeds=mine.seed.nunique(),
        n_real=len(CONDITIONS["default"].n_clusters),
    )


def _summary(runs: pd.DataFrame) -> str:
    """Methods down, conditions across; a note where not all sets are there."""
    conditions = _present(CONDITIONS, runs.condition)
    table = []
    for method in _present(METHODS, runs.method):
        mine = runs[runs.method == method]
        cells = [_mean_and_worst(mine[mine.condition == name]) for name in conditions]
        table.append([METHODS[method].label, *cells])
    return _markdown(["", *(CONDITIONS[name].label for name in conditions)], table)


def _mean_and_worst(runs: pd.DataFrame) -> str:
    """Of one method under one condition."""
    means = runs.groupby("dataset").rse.mean().dropna()
    if means.empty:
        return "-"
    n_sets = len(CONDITIONS[runs.condition.iloc[0]].n_clusters)
    note = "" if len(means) == n_sets else f" ({len(means)} of {n_sets})"
    return f"{means.mean():.3f} / {means.max():.3f}{note}"


def losses(runs: pd.DataFrame) -> str:
    """Each set and condition where the mean error of a rival is lower by more than a little."""
    table = []
    for condition in _present(CONDITIONS, runs.condition):
        means = runs[runs.condition == condition].groupby(["dataset", "method"]).rse.mean()
        for dataset, mine in means.groupby("dataset"):
            of_methods = mine.droplevel("dataset")
            ours = of_methods.get(OURS, np.nan)
            better = of_methods[ours > LOSS * of_methods].drop("waves", errors="ignore")
            if len(better):
                names = [f"{METHODS[name].label} {rse:.3f}" for name, rse in better.items()]
                label = CONDITIONS[condition].label
                table.append([label, str(dataset), f"{ours:.3f}", "; ".join(names)])
    places = runs[runs.method == OURS].groupby(PLACE).ngroups
    said = f"{len(table)} of {places} places (a set under a condition)."
    return f"{said}\n\n" + _markdown(["", "set", "ours", "better"], table) if table else said


def _by_dataset(runs: pd.DataFrame, cell: Cell) -> str:
    """Datasets down, methods across."""
    methods = _present(METHODS, runs.method)
    table = []
    for name in dict.fromkeys(runs.dataset):
        mine = runs[runs.dataset == name]
        parts = [mine[mine.method == method] for method in methods]
        table.append([name, *("-" if part.empty else cell(part) for part in parts)])
    return _markdown(["", *(METHODS[method].label for method in methods)], table)


def _rse(runs: pd.DataFrame) -> str:
    return "failed" if runs.rse.isna().all() else f"{runs.rse.mean():.3f}"


def _missed(runs: pd.DataFrame) -> str:
    return f"{runs.missed.mean():.1f}"


def _certificates(runs: pd.DataFrame) -> str:
    """Conditions down: the bound over the best k-means, the estimate over the true cost."""
    table = []
    for condition in _present(CONDITIONS, runs.condition):
        mine = runs[runs.condition == condition]
        bounds, estimates = mine.bound / mine.best, mine.estimate / mine.mse
        sound = int((mine.bound >= mine.mse).sum())
        between = f"{estimates.min():.3f} to {estimates.max():.3f}"
        cells = [f"{bounds.median():.3f}", f"{bounds.max():.3f}", between]
        table.append([CONDITIONS[condition].label, *cells, f"{sound} of {len(mine)}"])
    heads = ["", "bound over best k-means: median", "largest", "estimate over true cost"]
    return _markdown([*heads, "bound not below the true cost"], table)


def trust(runs: pd.DataFrame) -> str:
    """Rates of small errors among decodings called good, and among the others."""
    called = runs.is_good.astype(bool).to_numpy()
    table = []
    for words, is_good in (("as it is", called), ("leave one set out", _left_out(runs))):
        for name, chosen in (("good", is_good), ("not good", ~is_good)):
            mine = runs.rse[chosen]
            shown = ["-", "-"]
            if len(mine):
                shown = [f"{(mine < GOOD).mean():.1%}", f"{mine.max():.3f}"]
            table.append([f"{words}: {name}", str(len(mine)), *shown])
    return _markdown(["", "decodings", f"RSE below {GOOD}", "worst"], table)


def _left_out(runs: pd.DataFrame) -> np.ndarray:
    """Which are good by a limit of the score that was chosen on all other sets."""
    family = runs.dataset.map(lambda name: RECIPES[name].source)  # months are of one set
    is_good = np.zeros(len(runs), dtype=bool)
    for name in family.unique():
        mine = (family == name).to_numpy()
        is_good[mine] = runs.score[mine] >= _limit(runs[~mine])
    return is_good


def _limit(runs: pd.DataFrame) -> float:
    """The least score such that enough of those above it have small errors."""
    ordered = runs.sort_values("score", ascending=False)
    shares = (ordered.rse < GOOD).expanding().mean()
    enough = ordered.score[shares >= WANTED]
    return float(enough.min()) if len(enough) else np.inf


def _seconds(runs: pd.DataFrame) -> str:
    """Conditions down, methods across; of ours the parts, too."""
    methods = _present(METHODS, runs.method)
    table = []
    for condition in _present(CONDITIONS, runs.condition):
        mine = runs[runs.condition == condition]
        medians = mine.groupby("method").seconds.median()
        ours = mine[mine.method == OURS][PARTS].median()
        parts = " + ".join("-" if pd.isna(part) else f"{part:.2f}" for part in ours)
        cells = [f"{medians[name]:.2f}" if name in medians else "-" for name in methods]
        table.append([CONDITIONS[condition].label, parts, *cells])
    return _markdown(["", "ours, parts", *(METHODS[name].label for name in methods)], table)


def _bytes(runs: pd.DataFrame) -> str:
    table = []
    for (condition, dataset), mine in runs[runs.method == OURS].groupby(PLACE, sort=False):
        n, d, k = (int(mine[column].iloc[0]) for column in "ndk")
        size, rows = mine.bytes.mean() / 1e3, n * d * 4 / 1e3
        cells = [str(n), str(d), str(k), f"{size:.1f}", f"{rows:.0f}"]
        table.append([f"{dataset}, {CONDITIONS[str(condition)].label}", *cells])
    return _markdown(["", "N", "d", "k", "sketch", "rows"], table)


def _present(names: Iterable[str], there: pd.Series) -> list[str]:
    known = set(there)
    return [name for name in names if name in known]


def _markdown(heads: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    if not table:
        return "No runs yet."
    lines = [heads, ["---"] * len(heads), *table]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
