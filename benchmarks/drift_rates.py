"""How often does ``compare`` cry wolf, and how often is it right? The tables of ``docs/drift.md``.

Run: ``python benchmarks/drift_rates.py [rates|power|shares] [dataset]``, after ``make
data``; half an hour for all. Both samples are drawn from one table of 20 000 rows, whose features
are computed once, so that a repetition is a product of matrices. A threshold serves 100
repetitions, and 5 of them are computed, each from the sketches of one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from harness import if_here

import sketchshift as ss
from sketchshift.data.datasets import china_pixels
from sketchshift.decoders import Turnkey
from sketchshift.drift.compare import Population
from sketchshift.drift.noise import NullLaw
from sketchshift.kernels import select_kernel
from sketchshift_papers import data as datasets

ROWS, LAWS, EACH = 20_000, 5, 100
LEVELS = (0.1, 0.05, 0.01)
COUNTS = ((20, 20), (100, 1_000), (5_000, 2_000))
CLUSTERS = 10


def mixture(d: int) -> np.ndarray:
    """Six Gaussians of unequal weights."""
    rng = np.random.default_rng(d)
    means = 3.0 * rng.normal(size=(6, d))
    return means[rng.choice(6, ROWS, p=np.arange(1, 7) / 21)] + rng.normal(size=(ROWS, d))


def heavy(freedom: float) -> np.ndarray:
    """Student's t in three columns."""
    return np.random.default_rng(3).standard_t(freedom, size=(ROWS, 3))


def some(name: str) -> np.ndarray:
    """Random rows of a real dataset, or pixels of a photograph that comes with scikit-learn."""
    X = china_pixels() if name == "china" else datasets.load(name)
    return X[np.random.default_rng(0).permutation(len(X))[:ROWS]].astype(float)


DATASETS: dict[str, Callable[[], np.ndarray]] = {
    "6 Gaussians, d = 2": lambda: mixture(2),
    "6 Gaussians, d = 10": lambda: mixture(10),
    "t with 5 degrees, d = 3": lambda: heavy(5.0),
    "t with 2.5 degrees, d = 3": lambda: heavy(2.5),
    "china": lambda: some("china"),
    "skin": lambda: some("skin"),
    "covertype": lambda: some("covertype"),
    "spectral_mnist": lambda: some("spectral_mnist"),
}


def spec_of(X: np.ndarray, kind: str) -> ss.SketchSpec:
    """A planned spec, with its cells; or a plain one, the paper's."""
    if kind == "planned":
        return ss.plan(X, n_clusters=CLUSTERS)
    bandwidth = ss.decoders.bandwidth(X[:5_000], n_clusters=CLUSTERS)
    size = 10 * CLUSTERS * X.shape[1]
    return ss.SketchSpec(X.shape[1], size, bandwidth, center=tuple(X.mean(axis=0)))


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Rows with their features, from which sketches of random rows are made quickly."""

    X: np.ndarray
    spec: ss.SketchSpec
    features: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, spec: ss.SketchSpec) -> FeatureTable:
        """All features at once: 8 bytes for each of them."""
        rows = (X - spec.rows.center_vector) * spec.rows.per_unit
        if spec.axes is not None:
            rows = select_kernel().project(rows, spec.axes.table)
        waves = select_kernel().features(rows, spec.frequencies.turns)
        return cls(X, spec, np.hstack([waves.real, waves.imag]).astype(np.float32))

    def draw(self, n: int, times: int, rng: np.random.Generator, odds=None) -> np.ndarray:
        """How often each row is in each of so many samples: shape (times, rows)."""
        odds = np.full(len(self.X), 1.0 / len(self.X)) if odds is None else odds / odds.sum()
        return rng.multinomial(n, odds, size=times)

    def z(self, drawn: np.ndarray) -> np.ndarray:
        """Sketches of samples, real and imaginary parts side by side."""
        return (drawn.astype(np.float32) @ self.features) / drawn.sum(axis=1, keepdims=True)

    def law(self, *drawn: np.ndarray) -> NullLaw:
        """What ``compare`` knows of the distance from the sketches of two samples."""
        a, b = (ss.sketch(np.repeat(self.X, times, axis=0), self.spec) for times in drawn)
        noise = Population.of(a + b, None, 0, "compare").noise
        return noise.null(a, b, (float(a.count), float(b.count)))


def rejections(
    table: FeatureTable, counts: tuple[int, int], *, laws: int, each: int, odds=None, seed: int = 0
) -> np.ndarray:
    """Shares of samples that are said to have drifted, at each of ``LEVELS``; ``odds`` of b."""
    rng, found = np.random.default_rng([seed, 2026]), []  # not the stream that made the rows
    for _ in range(laws):
        a, b = table.draw(counts[0], each, rng), table.draw(counts[1], each, rng, odds)
        law = table.law(a[0], b[0])
        squared = ((table.z(a) - table.z(b)) ** 2).sum(axis=1)
        limits = [law.quantile(level) for level in LEVELS]
        found.append(squared[:, None] > limits)
    return np.concatenate(found).mean(axis=0)


def print_rates(names: Sequence[str]) -> None:
    """False alarms."""
    print(f"| data | spec | n_a, n_b | {' | '.join(f'at {level}' for level in LEVELS)} |")
    print("|---|---|---|---|---|---|")
    for name in names or DATASETS:
        X = if_here(name, DATASETS[name])
        if X is None:
            continue
        for kind in ("planned", "plain"):
            table = FeatureTable.of(X, spec_of(X, kind))
            for counts in COUNTS:
                rates = rejections(table, counts, laws=LAWS, each=EACH)
                cells = " | ".join(f"{rate:.3f}" for rate in rates)
                print(f"| {name} | {kind} | {counts[0]}, {counts[1]} | {cells} |", flush=True)


def print_power(names: Sequence[str]) -> None:
    """Alarms at 0.01 when the rows on one side of a plane become more frequent in b."""
    print("| data | spec | n_a = n_b | 2 % | 5 % | 10 % |")
    print("|---|---|---|---|---|---|")
    for name in names or ("6 Gaussians, d = 2", "6 Gaussians, d = 10", "skin", "covertype"):
        X = if_here(name, DATASETS[name])
        if X is None:
            continue
        side = X[:, 0] > np.median(X[:, 0])
        for kind in ("planned", "plain"):
            table = FeatureTable.of(X, spec_of(X, kind))
            for n in (1_000, 5_000):
                cells = []
                for moved in (0.02, 0.05, 0.1):
                    odds = np.where(side, 0.5 + moved, 0.5 - moved)
                    found = rejections(table, (n, n), laws=2, each=EACH, odds=odds)
                    cells.append(f"{found[LEVELS.index(0.01)]:.2f}")
                print(f"| {name} | {kind} | {n} | {' | '.join(cells)} |", flush=True)


def slices_of(X: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Odds of the rows in three kinds of slices."""
    sizes = np.bincount(labels, minlength=CLUSTERS)
    side = ((X - X.mean(axis=0)) / X.std(axis=0)) @ rng.normal(size=X.shape[1])
    return {
        "as the whole": np.ones(len(X)),
        "other shares": (rng.dirichlet(np.ones(CLUSTERS)) / sizes)[labels],
        "to one side": 1.0 / (1.0 + np.exp(-side / side.std())),
    }


def print_shares(names: Sequence[str]) -> None:
    """Half the sum of the errors of the shares of ten clusters in slices, means of 6."""
    print("| data | slice | rows | moved | shares | with the reference | decoded anew |")
    print("|---|---|---|---|---|---|---|")
    for name in names or ("skin", "covertype", "spectral_mnist"):
        rng = np.random.default_rng(0)
        X = if_here(name, lambda name=name: datasets.load(name).astype(float))
        if X is None:
            continue
        X = rng.permutation(X)[:100_000]
        whole = ss.sketch(X, n_clusters=CLUSTERS)
        decoding = ss.decode(whole, n_clusters=CLUSTERS)
        labels = ss.metrics.assign(X, decoding.centroids)
        base = np.bincount(labels, minlength=CLUSTERS) / len(X)
        found: dict[tuple[str, int], list[np.ndarray]] = {}
        for _ in range(6):
            for kind, odds in slices_of(X, labels, rng).items():
                for n in (200, 2_000, 20_000):
                    rows = rng.choice(len(X), n, p=odds / odds.sum())
                    true = np.bincount(labels[rows], minlength=CLUSTERS) / n
                    part = ss.sketch(X[rows], whole.spec)
                    points = Turnkey().fit(part, CLUSTERS).points
                    spec = whole.spec
                    places = spec.rows.center_vector + points.places * spec.rows.scale_vector
                    nearest = ss.metrics.assign(places, decoding.centroids)
                    guesses = (
                        base,
                        ss.decoders.shares(decoding, part),
                        ss.decoders.shares(decoding, part, reference=whole),
                        np.bincount(nearest, points.weights, minlength=CLUSTERS),
                    )
                    errors = [0.5 * np.abs(guess - true).sum() for guess in guesses]
                    found.setdefault((kind, n), []).append(np.array(errors))
        for (kind, n), errors in found.items():
            cells = " | ".join(f"{error:.3f}" for error in np.mean(errors, axis=0))
            print(f"| {name} | {kind} | {n} | {cells} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ss.errors.ScaleHint)
    tables = {"rates": print_rates, "power": print_power, "shares": print_shares}
    asked = [word for word in sys.argv[1:] if word in tables] or list(tables)
    for word in asked:
        tables[word]([name for name in sys.argv[1:] if name not in tables])
