"""Which criterion finds the number of clusters? The tables of ``docs/choosing_k.md``.

Run: ``python benchmarks/choose_k.py [dataset ...]``, after ``make data``; ten minutes for all.
Plans are made for 2 and for 1.3 times the true number of clusters, with three seeds each.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
from harness import if_here

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift.decoders.choose_k import TOLERANCE
from sketchshift.decoders.gaussians import GaussianFitter
from sketchshift.decoders.turnkey import TurnkeyFit
from sketchshift.kernels import select_kernel
from sketchshift_papers import data as datasets

SEEDS, MULTIPLES = (0, 1, 2), (2.0, 1.3)
CRITERIA = ("score", "misfit x 1.5", "held-out x 2", "spectral gap", "inertia")
SIPU = {"s1": 15, "s2": 15, "s3": 15, "s4": 15, "a1": 20, "a2": 35, "a3": 50, "unbalance": 8}
SIPU |= {"d31": 31, "birch1": 100}
RANDOM, CONTINUA = 100, 80  # mixtures, and sets without clusters


def blobs(k: int, d: int, apart: float, n: int) -> np.ndarray:
    """Round Gaussians whose means are Gaussian, with the deviation ``apart`` on every axis."""
    rng = np.random.default_rng((k, d))
    return (apart * rng.normal(size=(k, d)))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def pair(d: int, distance: float) -> np.ndarray:
    """Two equal round Gaussians; the distance is in deviations."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(10_000, d))
    X[:, 0] += distance * rng.integers(2, size=len(X))
    return X


def correlated_blob() -> np.ndarray:
    """One Gaussian of correlated columns."""
    return np.random.default_rng(0).normal(size=(10_000, 2)) @ [[1.0, 0.5], [0.0, 0.7]]


DATASETS: dict[str, tuple[int, Callable[[], np.ndarray]]] = {
    name: (k, lambda name=name: datasets.load(f"sipu/{name}")) for name, k in SIPU.items()
}
DATASETS |= {
    "one Gaussian, d = 2": (1, correlated_blob),
    "one Gaussian, d = 10": (1, lambda: blobs(1, 10, 0.0, 10_000)),
    "two, 3 deviations apart, d = 2": (2, lambda: pair(2, 3.0)),
    "two, 3 deviations apart, d = 10": (2, lambda: pair(10, 3.0)),
    "5 far Gaussians, d = 10": (5, lambda: blobs(5, 10, 3.0, 20_000)),
    "12 far Gaussians, d = 10": (12, lambda: blobs(12, 10, 3.0, 20_000)),
    "5 near Gaussians, d = 10": (5, lambda: blobs(5, 10, 1.0, 20_000)),
    "12 near Gaussians, d = 10": (12, lambda: blobs(12, 10, 1.0, 20_000)),
    "spectral MNIST": (10, lambda: datasets.load("spectral_mnist")),
}


def random_mixture(i: int) -> tuple[np.ndarray, int, int]:
    """Clusters of random number, shares, shapes and tails, 4 to 7 deviations apart; k; k_max."""
    rng = np.random.default_rng((1, i))
    d, k = int(rng.choice([1, 2, 3, 5, 10, 20])), int(rng.choice([1, 2, 3, 5, 8, 13]))
    n, apart = int(rng.choice([500, 3_000, 20_000])), float(rng.choice([4.0, 5.0, 7.0]))
    k = min(k, 5) if d == 1 else k
    kind, multiple = rng.choice(["round", "sizes", "ellipses", "tails"]), rng.choice([1.5, 2, 4])
    roots = np.tile(np.eye(d), (k, 1, 1))
    if kind == "sizes":
        roots *= np.exp(0.4 * rng.normal(size=k))[:, None, None]
    if kind == "ellipses":
        bases = np.linalg.qr(rng.normal(size=(k, d, d)))[0]
        roots = bases * np.exp(rng.uniform(-0.7, 0.7, (k, 1, d)))
    means, radius = np.empty((0, d)), 1.0
    while len(means) < k:
        c, radius = radius * rng.normal(size=d), 1.02 * radius
        lengths = np.linalg.norm(means - c, axis=1)
        along = (means - c) / lengths[:, None]
        ours = ((along @ roots[len(means)]) ** 2).sum(axis=1)
        theirs = (np.einsum("ij,ijl->il", along, roots[: len(means)]) ** 2).sum(axis=1)
        if (lengths >= apart * np.sqrt(0.5 * (ours + theirs))).all():
            means = np.vstack([means, c])
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    noise = rng.standard_t(5, (n, d)) if kind == "tails" else rng.normal(size=(n, d))
    X = means[labels] + np.einsum("nij,nj->ni", roots[labels], noise)
    return X, k, max(math.ceil(multiple * k), 5)


def cell_means(
    X: np.ndarray, shares: np.ndarray, labels: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Means of the columns in every cell, shape (k, d)."""
    sums = [np.bincount(labels, shares * column, minlength=len(alpha)) for column in X.T]
    return np.column_stack(sums) / np.maximum(alpha, 1e-12)[:, None]


def held_out(fit: TurnkeyFit, k_max: int) -> np.ndarray:
    """Misfit at a fifth of the frequencies of k Gaussians fitted to the others."""
    problem, decoder = fit.problem, fit.decoder
    m, weights = len(problem.z), GaussianFitter(problem).weights
    is_held = np.arange(m) % 5 == 0
    train, test = (
        select_kernel().matcher(
            np.ascontiguousarray(problem.turns[:, part]),
            problem.z[part] * math.sqrt(m),
            weights[part] / weights[part].sum(),
        )
        for part in (~is_held, is_held)
    )
    X, shares, losses = fit.points.places, fit.points.weights, []
    mean, covariance = problem.outline
    options = {"mean": mean, "covariance": covariance, "iterations": 60}
    options |= {"strength": decoder.penalty}
    for centers in decoder.choice.nested_centers(fit.points, k_max, 0, decoder.kmeans):
        labels = ss.metrics.assign(X, centers)
        alpha = np.bincount(labels, shares, minlength=len(centers))
        means = cell_means(X, shares, labels, alpha)
        spreads = np.sqrt(cell_means((X - means[labels]) ** 2, shares, labels, alpha)) + 1e-6
        _, alpha, C, S = train.descend(alpha, means, spreads, **options)
        losses.append(test(alpha, C, S**2)[0])
    return np.array(losses[::-1])


def spectral_gap(fit: TurnkeyFit, k_max: int) -> int:
    """Largest gap of eigenvalues of the affinity of 1000 points, scaled by the tenth neighbour."""
    rng = np.random.default_rng(0)
    weights = fit.points.weights
    X = fit.points.places[rng.choice(len(weights), 1000, p=weights)]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    scales = np.sqrt(np.sort(squares, axis=1)[:, 10]) + 1e-12
    affinity = np.exp(-squares / np.outer(scales, scales))
    degrees = np.sqrt(affinity.sum(axis=1))
    values = np.linalg.eigvalsh(affinity / np.outer(degrees, degrees))[::-1]
    return int(np.argmax(values[:k_max] - values[1 : k_max + 1])) + 1


def within(values: np.ndarray, factor: float) -> int:
    """The least k whose value is within a factor of the least."""
    return int(np.argmax(values <= factor * values.min())) + 1


def elbow(values: np.ndarray) -> int:
    """Where the logarithm bends most."""
    return int(np.argmax(np.diff(np.log(values), 2))) + 2


def choices(X: np.ndarray, k_max: int, seed: int) -> list[int]:
    """What each of ``CRITERIA`` chooses."""
    fit = Turnkey().fit(ss.sketch(X, ss.plan(X, k_max, seed=seed)), k_max, seed=seed)
    curve = fit.decode_auto(k_max).curve
    held, gap = held_out(fit, k_max), spectral_gap(fit, k_max)
    score, misfit = within(curve.score, TOLERANCE), within(curve.misfit**2, 1.5)
    return [score, misfit, within(held, 2.0), gap, elbow(curve.inertia)]


def continuum(i: int) -> np.ndarray:
    """Standardised rows without clusters, of one of eight kinds."""
    rng = np.random.default_rng((77, i))
    d, n = int(rng.choice([1, 2, 3, 5, 8, 12])), int(rng.choice([500, 3_000, 20_000]))
    match i % 8:
        case 0:
            X = rng.lognormal(0, rng.uniform(0.5, 1.2), (n, d))
        case 1:
            X = rng.standard_t(rng.choice([2.5, 3, 4]), (n, d))
        case 2:
            X = rng.random((n, d))
        case 3:
            X = rng.gamma(rng.uniform(0.5, 2), size=(n, d))
        case 4:
            X = rng.normal(size=(n, max(d, 2)))  # a sphere of some thickness
            X *= (1 + 0.1 * rng.normal(size=(n, 1))) / np.linalg.norm(X, axis=1)[:, None]
        case 5:
            t, noise = 6 * rng.random(n), rng.normal(size=(2, n))
            X = np.column_stack([t, np.sin(t) + 0.1 * noise[0], 0.3 * t**2 + 0.2 * noise[1]])
        case 6:
            tail, flat = rng.lognormal(0, 1, (n, 1)), rng.random((n, 1))
            X = np.hstack([tail, flat, rng.normal(size=(n, d))])
        case _:
            X = rng.beta(0.7, 2, size=(n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def verdicts(numbers: range) -> str:
    """How many mixtures have a natural number, rightly or not, and how many continua have."""
    right, wrong, one, many = 0, 0, 0, 0
    for i in numbers:
        X, k, most = random_mixture(i)
        curve = ss.decode(ss.sketch(X, n_clusters=most), "auto").curve
        right += curve.is_natural and curve.chosen == k
        wrong += curve.is_natural and curve.chosen != k
    for i in numbers[: CONTINUA * len(numbers) // RANDOM]:
        curve = ss.decode(ss.sketch(continuum(i), n_clusters=20), "auto").curve
        one += curve.chosen == 1
        many += curve.is_natural and curve.chosen > 1
    return f"natural: {right} rightly, {wrong} not; without clusters: {one} one group, {many} more"


def seconds(X: np.ndarray, k_max: int) -> tuple[float, float]:
    """Of processor time, the better of two: to decode k_max clusters, and to choose up to them."""
    s, found = ss.sketch(X, n_clusters=k_max), []
    for n_clusters in (k_max, "auto"):
        times = []
        for _ in range(3):
            start = time.process_time()
            ss.decode(s, n_clusters)
            times.append(time.process_time() - start)
        found.append(min(times[1:]))
    return found[0], found[1]


def main(names: list[str]) -> None:
    print("| data | k | plan for |", " | ".join(CRITERIA), "|")
    for name in names or DATASETS:
        k, load = DATASETS[name]
        X = if_here(name, lambda load=load: load().astype(np.float64))
        if X is None:
            continue
        for multiple in MULTIPLES:
            k_max = max(math.ceil(multiple * k), 10 if multiple == 2.0 else 4)
            found = np.array([choices(X, k_max, seed) for seed in SEEDS]).T.tolist()
            shown = [" ".join(str(n) for n in sorted(row)) for row in found]
            print(f"| {name} | {k} | {k_max} |", " | ".join(shown), "|", flush=True)
    if names:
        return
    hits = [
        [n == k for n in choices(X, most, 0)] for X, k, most in map(random_mixture, range(RANDOM))
    ]
    print(f"| {RANDOM} random mixtures, right |||", " | ".join(map(str, np.sum(hits, axis=0))), "|")
    for numbers in (range(RANDOM), range(RANDOM, 2 * RANDOM)):
        print(f"{numbers}: {verdicts(numbers)}")
    for d, k_max in ((10, 20), (2, 100)):
        plain, auto = seconds(blobs(k_max // 2, d, 3.0, 20_000), k_max)
        print(f"d = {d}: {k_max} clusters {plain:.2f} s, auto up to {k_max} {auto:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
