"""The methods, which single runs there are, and how one of them is done."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from typing import Any

from harness import machine

import sketchshift as ss
from quality import baselines, sketched
from quality.conditions import CONDITIONS
from quality.datasets import load
from quality.found import Found, Problem, centroid_index

OURS, REFERENCE = "ours", "lloyd"
SKETCH, BYTES = "a sketch", "as many bytes"


@dataclass(frozen=True, order=True)
class Run:
    """One clustering: what is done on which data."""

    condition: str
    dataset: str
    method: str
    seed: int


@dataclass(frozen=True)
class Method:
    """A way to find centroids.

    One without a plan does not care what a plan would see. What it ``keeps`` of the data is a
    sketch, as many bytes as our sketch has, or as much as it likes.
    """

    label: str
    find: Callable[[Problem], Found]
    has_plan: bool = False
    keeps: str | None = None
    package: str | None = None
    most_clusters: int = 1000
    most_seeds: int = 5
    left_out: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether its package is installed."""
        return self.package is None or find_spec(self.package) is not None


METHODS = {
    OURS: Method("ours: waves and cells", sketched.ours, has_plan=True, keeps=SKETCH),
    "waves": Method(
        "ours: waves alone",
        sketched.waves,
        has_plan=True,
        keeps=SKETCH,
        most_clusters=100,
        left_out=("mnist784",),
    ),
    "pilot": Method("pilot only", baselines.pilot, has_plan=True),
    "pilot-pass": Method("pilot + one exact pass", baselines.pilot_and_pass, has_plan=True),
    "means": Method("cells of means", baselines.cells_of_means, has_plan=True, keeps=BYTES),
    "bico": Method("BICO", baselines.bico, keeps=BYTES, package="bico"),
    "streamkm": Method("StreamKM++", baselines.streamkm, keeps=BYTES),
    "mini-batch": Method("MiniBatchKMeans, one pass", baselines.mini_batch),
    "river": Method(
        "river KMeans, one pass",
        baselines.river_kmeans,
        package="river",
        most_clusters=20,
        most_seeds=2,
        left_out=("mnist784",),
    ),
    "faiss": Method("faiss, many passes", baselines.faiss_kmeans, package="faiss"),
    REFERENCE: Method("k-means, many passes", baselines.lloyd, most_seeds=10),
}


def home(method: str, condition: str) -> str:
    """The condition under which a method's runs are kept: one that is all the same to it."""
    asked, does = CONDITIONS[condition], METHODS[method]
    if asked.like is None:
        return condition
    like = CONDITIONS[asked.like]
    differs = does.has_plan and asked.look is not like.look
    differs |= does.keeps is not None and asked.per_cluster != like.per_cluster
    return condition if differs else asked.like


def planned(
    conditions: Sequence[str], datasets: Sequence[str], methods: Sequence[str], n_seeds: int
) -> list[Run]:
    """All runs, each once, those of one dataset together; the longest first, others fill up."""
    return list(dict.fromkeys(_planned(conditions, datasets, methods, n_seeds)))


def _planned(
    conditions: Sequence[str], datasets: Sequence[str], methods: Sequence[str], n_seeds: int
) -> Iterator[Run]:
    for condition in sorted(conditions, key=list(CONDITIONS).index, reverse=True):
        for dataset, k in CONDITIONS[condition].n_clusters.items():
            if dataset not in datasets:
                continue
            for name in methods:
                method = METHODS[name]
                if k <= method.most_clusters and dataset not in method.left_out:
                    for seed in range(_n_seeds(name, condition, n_seeds)):
                        yield Run(home(name, condition), dataset, name, seed)


def _n_seeds(method: str, condition: str, n_seeds: int) -> int:
    """The references are always complete: errors are relative to the best of them."""
    if method == REFERENCE:
        return CONDITIONS[condition].n_references
    return min(n_seeds, CONDITIONS[condition].n_seeds, METHODS[method].most_seeds)


def do(run: Run, n_bytes: int) -> dict[str, Any]:
    """Do one run; the facts that are kept of it. Where a method fails, that is its message."""
    condition, data = CONDITIONS[run.condition], load(run.dataset)
    n, d = data.X.shape
    size, k = condition.sketch_size(run.dataset, d), condition.n_clusters[run.dataset]
    problem = Problem(data.X, condition.look(data, run.seed), k, size, n_bytes, run.seed)
    facts: dict[str, Any] = {"n": n, "d": d, "k": k, "date": str(date.today())}
    facts["machine"] = machine()
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scales and far rows: nobody reads them here
            found = METHODS[run.method].find(problem)
    except Exception as error:  # one method on one set: the others go on
        return {**facts, "failed": f"{type(error).__name__}: {error}"}
    facts["seconds"] = round(time.perf_counter() - start, 4)
    truth = data.true_centroids
    if truth is not None:
        facts["missed"] = centroid_index(found.centroids, truth)
    mse = float(ss.metrics.mse(data.X, found.centroids))
    return {**facts, "mse": mse, "bytes": found.n_bytes, **found.facts}
