"""The conditions: what the plan may see, how many clusters, how many numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from quality.datasets import FLIGHTS, REAL, SIPU, Dataset, load

FEWEST_FREQUENCIES = 50  # as ``ss.plan`` has it

Look = Callable[[Dataset, int], np.ndarray]


def at_all(data: Dataset, seed: int) -> np.ndarray:
    """Every row: a plan takes up to 200,000 of them."""
    return data.X


def at_one_half(data: Dataset, seed: int) -> np.ndarray:
    """20,000 rows from the lower half along the first principal axis."""
    centered = data.X - data.X.mean(axis=0)
    axis = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    axis *= np.sign(axis[np.abs(axis).argmax()])  # an axis has two directions: take one
    along = centered @ axis
    lower = np.flatnonzero(along <= np.median(along))
    n = min(20_000, len(lower))
    return data.X[np.random.default_rng(seed).choice(lower, n, replace=False)]


def at_the_head(data: Dataset, seed: int) -> np.ndarray:
    """The first 2,000 rows of the file."""
    return data.X[:2000]


def at_january(data: Dataset, seed: int) -> np.ndarray:
    """The flights of the first month."""
    return load("flights-01").X


@dataclass(frozen=True)
class Condition:
    """A row of the tables: datasets with their k, and under what the methods have to work.

    ``like`` names the condition that differs in nothing that a method without a plan can see.
    """

    label: str
    n_clusters: Mapping[str, int]
    look: Look = at_all
    per_cluster: int = 10
    n_seeds: int = 5
    n_references: int = 10
    like: str | None = None

    def sketch_size(self, dataset: str, d: int) -> int:
        """The m of a sketch: 2 m numbers."""
        return max(FEWEST_FREQUENCIES, self.per_cluster * self.n_clusters[dataset] * d)


def _each(names: tuple[str, ...] | Mapping[str, object], k: int = 10) -> dict[str, int]:
    return dict.fromkeys(names, k)


MANY = ("uber", "covertype", "cytof", "mnist")
CONDITIONS = {
    "default": Condition("default plan", _each(REAL)),
    "stale": Condition("stale plan", _each(REAL), at_one_half, like="default"),
    "head": Condition("plan on the head", _each(REAL), at_the_head, like="default"),
    "4kd": Condition("8kd numbers", _each(REAL), per_cluster=4, like="default"),
    "month": Condition("later months", _each(tuple(FLIGHTS)[1:]), at_january, n_seeds=3),
    "tails": Condition("heavy tails", _each(("student_t", "lognormal"))),
    "wide": Condition("50 to 784 columns", _each(("mnist50", "digits", "mnist784")), n_seeds=3),
    "known": Condition(
        "known clusters", {name: k for name, k in SIPU.items() if not name.startswith("birch")}
    ),
    "k100": Condition(
        "k = 100", _each((*MANY, "birch1", "birch2"), 100), n_seeds=3, n_references=5
    ),
    "k1000": Condition("k = 1000", _each((*MANY, "mixture"), 1000), n_seeds=1, n_references=2),
}
