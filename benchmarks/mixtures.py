"""How likely are mixtures from a sketch, beside EM with the rows? The tables of estimators.md.

Run: ``python benchmarks/mixtures.py [--quick] [set ...]``, with ``make data`` for the real sets;
some minutes. Writes ``benchmarks/results/mixtures.md``. Rows are drawn at random, and as
many others are held out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from harness import if_here
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import sketchshift as ss
from sketchshift_papers import data as datasets

ROWS, STARTS = 20_000, 3
RESULTS = Path(__file__).parent / "results" / "mixtures.md"
Density = Callable[[np.ndarray], float]


def gaussians(d: int, k: int, apart: float, seed: int = 0) -> tuple[np.ndarray, Density]:
    """Rows of k Gaussians with axes from 0.58 to 1.7, and the mean log-density of the true law."""
    rng = np.random.default_rng((d, k, int(10 * apart), seed))
    means, weights = apart * rng.normal(size=(k, d)), rng.dirichlet(np.full(k, 5.0))
    covariances = []
    for _ in range(k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        covariances.append((turn * np.exp(rng.uniform(-1.1, 1.1, size=d))) @ turn.T)
    parts = zip(rng.multinomial(2 * ROWS, weights), means, covariances, strict=True)
    rows = [rng.multivariate_normal(mean, S, size=n) for n, mean, S in parts]

    def truth(X: np.ndarray) -> float:
        terms = [
            np.log(w) + multivariate_normal(mean, S).logpdf(X)
            for w, mean, S in zip(weights, means, covariances, strict=True)
        ]
        return float(logsumexp(terms, axis=0).mean())

    return np.concatenate(rows), truth


def standardised(X: np.ndarray) -> np.ndarray:
    """Each column divided by its standard deviation."""
    deviations = X.std(axis=0, dtype=np.float64)
    return X.astype(np.float64) / np.where(deviations > 0.0, deviations, 1.0)


def pathways() -> np.ndarray:
    """A set that ``make data`` does not fetch."""
    with np.load(datasets.data_folder() / "kegg.npz", allow_pickle=False) as arrays:
        return standardised(arrays["X"])


SYNTHETIC = [(2, 4, 1.5), (4, 5, 2.0), (5, 8, 1.0), (10, 10, 2.0), (10, 10, 1.0), (10, 10, 0.7)]
SYNTHETIC += [(20, 5, 1.0), (3, 20, 3.0)]
TUNED: dict[str, Callable[[], np.ndarray]] = {
    "spectral MNIST": lambda: datasets.load("spectral_mnist"),
    "cytometry": lambda: datasets.load("cytof"),
}
HELD_OUT: dict[str, Callable[[], np.ndarray]] = {
    "CIFAR-10 features": lambda: datasets.load("cifar10_features"),
    "skin pixels": lambda: datasets.load("skin"),
    "forest cover": lambda: standardised(datasets.load("covertype")),
    "New York pick-ups": lambda: datasets.load("uber_pickups"),
    "worms": lambda: datasets.load("sipu/worms_2"),
    "s4": lambda: datasets.load("sipu/s4"),
}
if (datasets.data_folder() / "kegg.npz").is_file():
    HELD_OUT["metabolic pathways"] = pathways


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and as many that are held out."""
    order = np.random.default_rng(0).permutation(len(X))
    n = min(ROWS, len(X) // 2)
    return X[order[:n]].astype(np.float64), X[order[n : 2 * n]].astype(np.float64)


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and the seconds of processors that it took."""
    start = time.process_time()
    return fit(), time.process_time() - start


def measure(name: str, X: np.ndarray, k: int, kind: str, truth: Density | None) -> str:
    """A line of the table."""
    seen, unseen = halves(X)
    runs = [
        timed(
            lambda i=i: GaussianMixture(k, covariance_type=kind, max_iter=500, random_state=i).fit(
                seen
            )
        )
        for i in range(STARTS)
    ]
    best = max((model for model, _ in runs), key=lambda model: model.score(seen))
    ours, seconds = timed(
        lambda: ss.CompressiveGaussianMixture(
            k, covariance_type=kind, n_threads=1, random_state=0
        ).fit(seen)
    )
    spec = ours.sketch_.spec
    cells = 0 if spec.cells is None else spec.cells.n_cells
    gap = ours.score(unseen) - best.score(unseen)
    numbers = [f"{len(seen):,}", str(X.shape[1]), str(k), kind, f"{cells:,}"]
    numbers.append(f"{len(ours.sketch_.to_bytes()) / 1000:.0f}")
    numbers.append("" if truth is None else f"{truth(unseen):.2f}")
    for model in (best, ours):
        numbers.append(f"{model.score(seen):.2f}, {model.score(unseen):.2f}")
    numbers += [f"{gap:+.2f}", f"{sum(s for _, s in runs):.1f}", f"{seconds:.1f}"]
    return f"| {name} | {' | '.join(numbers)} |"


COLUMNS = ("data", "N", "d", "k", "type", "cells", "kB", "truth", "EM", "ours", "gain", "EM s", "s")
HEADER = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def main() -> None:
    """Print the lines, and write the page where all were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--quick", action="store_true", help="one set, full covariances")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", ss.errors.PlanWarning)
    lines = [HEADER]
    print(HEADER, flush=True)

    def add(*arguments: Any) -> None:
        lines.append(measure(*arguments))
        print(lines[-1], flush=True)

    for name, load in ({} if options.quick else TUNED | HELD_OUT).items():
        if options.sets and name not in options.sets:
            continue
        X = if_here(name, load)
        kinds = ("full", "diag") if name in TUNED else ("full",)
        for kind in kinds if X is not None else ():
            add(name, X, 10, kind, None)
    for d, k, apart in SYNTHETIC[: 1 if options.quick else None]:
        name = f"Gaussians, {apart:g} apart"
        if not options.sets or name in options.sets:
            X, truth = gaussians(d, k, apart)
            add(name, X, k, "full", truth)
    if not (options.sets or options.quick):
        RESULTS.write_text(PAGE.format(date=date.today(), table="\n".join(lines)))


PAGE = """# Mixtures from a sketch, and EM with the rows

{date}, one thread of a shared AMD EPYC; written by `benchmarks/mixtures.py`. Mean log-likelihood
of the rows that were fitted, and of as many held out. EM is scikit-learn's, the likeliest of three
starts; seconds of processors, its three starts together. Constants were chosen on spectral MNIST,
cytometry and Gaussians in 10 columns.

{table}
"""

if __name__ == "__main__":
    main()
