"""Drift of embeddings: false alarms, stale plans, and power beside MMD with permutations.

Run: ``python benchmarks/drift_embeddings.py [rates|stale|power|bandwidth] [columns ...]``. Rows
and products of matrices are CuPy's where that is installed (minutes for all, on one GPU) and
NumPy's otherwise, with fewer repetitions. Plans are those of ``ss.drift.plan_drift``, the law is that of
``ss.compare``. Tables go to standard output, numbers to ``results``.

Samples are drawn with replacement from a population of many rows, whose features are computed once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from harness import report

import sketchshift as ss
from sketchshift.drift.noise import PlannedNoise
from sketchshift.features.plan import measure_spectrum

try:
    import cupy as xp
except ImportError:
    xp = np

HAS_GPU = xp is not np
ROWS, REPETITIONS = (500_000, 20_000) if HAS_GPU else (20_000, 2_000)
FEW = 500 if HAS_GPU else 100  # repetitions of tests with permutations
COLUMNS = (384, 768, 1536)
COUNTS = ((100, 100), (500, 500), (100, 10_000), (100_000, 100_000))
LEVELS = (0.05, 0.01)
OTHERS_AT = 768  # columns at which other laws are tried
PERMUTATIONS = 200
CHUNK = 2**31 // 8 if HAS_GPU else 2**26  # numbers held at a time

Rows = Any  # an array of shape (n, d), of NumPy or CuPy
Generator = Callable[[int, int, Any], Rows]


def stream(*seed: int) -> Any:
    """Random numbers on the machine at hand."""
    return xp.random.RandomState(int(np.random.SeedSequence(seed).generate_state(1)[0]))


def fixed(seed: int, *shape: int) -> Rows:
    """Normal numbers that belong to a population."""
    return xp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def normals(rng: Any, *shape: int) -> Rows:
    return rng.standard_normal(shape).astype(xp.float32)


def labels(n: int, shares: np.ndarray, rng: Any) -> Any:
    """Random clusters."""
    return xp.searchsorted(xp.asarray(np.cumsum(shares / shares.sum())), rng.random_sample(n))


def gaussians(n: int, d: int, rng: Any, *, shares=None, new=0.0, wider=1.0, shift=0.0) -> Rows:
    """Twenty of unequal weights, a third of a standard deviation apart in each column."""
    shares = np.arange(1.0, 21.0) if shares is None else shares
    X = 0.35 * fixed(1, 20, d)[xp.minimum(labels(n, shares, rng), 19)] + normals(rng, n, d)
    is_new = rng.random_sample(n) < new
    X[is_new] = 0.5 * fixed(5, d) + normals(rng, int(is_new.sum()), d)
    X[:, : d // 8] *= wider
    return X + xp.float32(shift)


def student(n: int, d: int, rng: Any, freedom: float, *, shift=0.0, wider=1.0) -> Rows:
    """Independent columns."""
    return (wider * rng.standard_t(freedom, size=(n, d)) + shift).astype(xp.float32)


def elliptical(n: int, d: int, rng: Any, freedom: float, *, shift=0.0) -> Rows:
    """A multivariate t: all columns of a row are far out together."""
    radius = xp.sqrt(freedom / rng.chisquare(freedom, size=(n, 1)))
    return (normals(rng, n, d) * radius + shift).astype(xp.float32)


def lognormal(n: int, d: int, rng: Any) -> Rows:
    return xp.exp(normals(rng, n, d))


def embeddings(
    n: int, d: int, rng: Any, *, shares=None, new=0.0, turn=0.0, shift=0.0, topics=2
) -> Rows:
    """Thirty topics in 40 factors that are not negative, half of them 0; noise; a mean."""
    rank, k = 40, 30
    shares = np.ones(k) if shares is None else shares
    factors = fixed(topics, k, rank)[xp.minimum(labels(n, shares, rng), k - 1)]
    factors = xp.maximum(factors + 0.5 * normals(rng, n, rank), 0.0)
    is_new = rng.random_sample(n) < new
    factors[is_new] = fixed(7, rank) + 0.5 * normals(rng, int(is_new.sum()), rank)
    c, s = np.cos(turn), np.sin(turn)
    factors[:, :2] = factors[:, :2] @ xp.asarray([[c, -s], [s, c]], dtype=xp.float32)
    loadings = fixed(3, rank, d) / xp.sqrt(xp.arange(1, rank + 1, dtype=xp.float32))[:, None]
    direction = fixed(6, d)
    direction *= shift / xp.linalg.norm(direction)
    return factors @ loadings + 0.3 * normals(rng, n, d) + 0.5 * fixed(4, d) + direction


POPULATIONS: dict[str, tuple[Generator, str]] = {
    "20 Gaussians": (gaussians, "euclidean"),
    "t, 3 degrees": (lambda n, d, rng: student(n, d, rng, 3.0), "euclidean"),
    "t, 1.5 degrees": (lambda n, d, rng: student(n, d, rng, 1.5), "euclidean"),
    "t, 1.5 degrees, elliptical": (lambda n, d, rng: elliptical(n, d, rng, 1.5), "euclidean"),
    "lognormal": (lognormal, "euclidean"),
    "low rank, sparse": (embeddings, "euclidean"),
    "low rank, unit length": (embeddings, "cosine"),
}


def on_host(array: Any) -> np.ndarray:
    return xp.asnumpy(array) if HAS_GPU else np.asarray(array)


def plan_for(generate: Generator, d: int, metric: str, n: int = 4096) -> ss.SketchSpec:
    """As a user plans: on rows that are not compared later."""
    return ss.drift.plan_drift(on_host(generate(n, d, stream(d, 99))), metric=metric)


def features(X: Rows, spec: ss.SketchSpec) -> Any:
    """Real and imaginary parts side by side, shape (n, 2 m)."""
    turns, m = xp.asarray(spec.frequencies.turns), spec.sketch_size
    found = xp.empty((len(X), 2 * m), dtype=xp.float32)
    for first in range(0, len(X), CHUNK // 8 // m):
        part = slice(first, first + CHUNK // 8 // m)
        rows = X[part]
        if spec.rows.metric == "cosine":
            rows = rows / xp.linalg.norm(rows, axis=1, keepdims=True)
        rows = (rows - xp.asarray(spec.rows.center_vector)) * xp.asarray(spec.rows.per_unit)
        phases = (2.0 * np.pi * (rows @ turns)).astype(xp.float32)
        found[part, :m], found[part, m:] = xp.cos(phases), xp.sin(phases)
    return found / xp.sqrt(xp.float32(m))


def sample_means(table: Any, n: int, times: int, rng: Any) -> Any:
    """Means of the features of so many samples of n rows each, shape (times, 2 m)."""
    N, means = len(table), []
    step = max(1, CHUNK // (N if n >= 5_000 else n * table.shape[1]))
    for first in range(0, times, step):
        count = min(step, times - first)
        drawn = rng.randint(0, N, size=(count, n))
        if n >= 5_000:
            drawn += xp.arange(count)[:, None] * N
            often = xp.bincount(drawn.ravel(), minlength=count * N).reshape(count, N)
            means.append(often.astype(xp.float32) @ table / xp.float32(n))
        else:
            means.append(table[drawn.ravel()].reshape(count, n, -1).mean(axis=1))
    return xp.concatenate(means)


def p_values(
    z_a: Any, z_b: Any, counts: tuple[int, int], spectrum: ss.features.Spectrum, *, checked: int = 3
) -> np.ndarray:
    """Those of ``compare``: found where the standardised distance lies among quantiles."""
    squared = on_host(((z_a - z_b).astype(xp.float64) ** 2).sum(axis=1))
    norms = [on_host((z.astype(xp.float64) ** 2).sum(axis=1)) for z in (z_a, z_b)]
    (n_a, n_b), n = counts, sum(counts)
    products = on_host((z_a.astype(xp.float64) * z_b).sum(axis=1))
    pooled = (n_a**2 * norms[0] + n_b**2 * norms[1] + 2.0 * n_a * n_b * products) / n**2
    means = sum((1.0 - norm) / (c - 1) for norm, c in zip(norms, counts, strict=True))
    pairs = sum(1.0 / (c * (c - 1)) for c in counts) + 2.0 / (n_a * n_b)
    sizes = np.sqrt(pairs) * (1.0 - pooled) * n / (n - 1)
    noise, grid = PlannedNoise(spectrum), np.geomspace(0.5, 1e-4, 400)
    m = z_a.shape[1] // 2
    laws = [
        noise.null(
            *(SimpleNamespace(z=on_host(z[i, :m] + 1j * z[i, m:])) for z in (z_a, z_b)), counts
        )
        for i in range(checked)
    ]
    one = replace(laws[0], size=1.0 / laws[0].sum.mean, shift=0.0)
    quantiles = np.array([one.quantile(p) for p in grid])
    scores = (squared - means) / sizes + 1.0
    found = np.interp(scores, quantiles, grid, left=1.0, right=1e-5)
    for i, law in enumerate(laws):  # the library says the same
        exact = law.tail(float(squared[i]))
        assert abs(found[i] - exact) < 0.02 * exact + 1e-3 or exact > 0.5, (found[i], exact)
    return found


@dataclass(frozen=True)
class Population:
    """Features of many rows, and the spec of a plan."""

    spec: ss.SketchSpec
    table: Any

    def rates(
        self, counts: tuple[int, int], spectrum: ss.features.Spectrum | None = None
    ) -> list[float]:
        """Shares of samples without drift that are said to have drifted, at each of ``LEVELS``."""
        rng = stream(*counts, 1)
        times = REPETITIONS if max(counts) < 50_000 or HAS_GPU else REPETITIONS // 4
        z_a, z_b = (sample_means(self.table, n, times, rng) for n in counts)
        found = p_values(z_a, z_b, counts, spectrum or self.spec.noise)
        return [float((found <= level).mean()) for level in LEVELS]


def print_rates(columns: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """False alarms; beside the law of the plan two others, at 500 rows."""
    results: dict[str, dict[str, float]] = {}
    print(f"| data | d | {' | '.join(f'{a}, {b}' for a, b in COUNTS)} |")
    print("|---|---|" + "---|" * len(COUNTS))
    for d in columns:
        for name, (generate, metric) in POPULATIONS.items():
            spec = plan_for(generate, d, metric)
            population = Population(spec, features(generate(ROWS, d, stream(d, 7)), spec))
            cells = []
            for counts in COUNTS:
                rates = population.rates(counts)
                cells.append(", ".join(f"{rate:.4f}" for rate in rates))
                key = f"false alarms, {name}, d = {d}, {counts[0]}, {counts[1]}"
                results[key] = dict(zip(map(str, LEVELS), rates, strict=True))
            print(f"| {name} | {d} | {' | '.join(cells)} |", flush=True)
            others = other_laws(population, generate, d) if d == OTHERS_AT else {}
            for other, spectrum in others.items():
                rates = population.rates((500, 500), spectrum)
                results[f"{other}, {name}, d = {d}"] = dict(
                    zip(map(str, LEVELS), rates, strict=True)
                )
                print(f"|  {other} | {d} | | {', '.join(f'{rate:.4f}' for rate in rates)} | | |")
            del population
    return results


def other_laws(
    population: Population, generate: Generator, d: int
) -> dict[str, ss.features.Spectrum]:
    """Ways that were tried: two moments alone, and the eigenvalues of the sample as they are."""
    table = on_host(features(generate(4096, d, stream(d, 98)), population.spec)).astype(np.float64)
    h = table - table.mean(axis=0)
    found = np.linalg.eigvalsh(h.T @ h)[::-1]
    shares = tuple(float(share) for share in found[found > 1e-9 * found[0]] / found.sum())
    spectrum = measure_spectrum(table)
    squares = sum(s**2 for s in spectrum.leading) + spectrum.rest**2 / spectrum.freedom
    few = measure_spectrum(table[:500])
    return {
        "two moments": ss.features.Spectrum((), 1.0 / squares),
        "all eigenvalues of the sample": ss.features.Spectrum(shares, 1.0),
        "a plan of 500 rows": few,
    }


def print_stale(columns: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """False alarms between two samples of a population that the plan has not seen."""
    results: dict[str, dict[str, float]] = {}
    later: dict[str, Generator] = {
        "as planned": embeddings,
        "moved by a fifth of the median distance": lambda n, d, rng: embeddings(
            n, d, rng, shift=0.4 * float(np.sqrt(d))
        ),
        "scaled by 1.3": lambda n, d, rng: 1.3 * embeddings(n, d, rng),
        "10 of 30 topics": lambda n, d, rng: embeddings(n, d, rng, shares=np.arange(30.0) < 10),
        "all other topics": lambda n, d, rng: embeddings(n, d, rng, topics=22),
        "Gaussian noise instead": lambda n, d, rng: 0.8 * normals(rng, n, d) + 0.5 * fixed(4, d),
    }
    print("| the data is now | d | 500, 500 | 100, 10000 |\n|---|---|---|---|")
    for d in columns:
        spec = plan_for(embeddings, d, "euclidean")
        for name, generate in later.items():
            population = Population(spec, features(generate(ROWS, d, stream(d, 8)), spec))
            cells = []
            for counts in ((500, 500), (100, 10_000)):
                rates = population.rates(counts)
                cells.append(", ".join(f"{rate:.4f}" for rate in rates))
                key = f"stale plan, {name}, d = {d}, {counts[0]}, {counts[1]}"
                results[key] = dict(zip(map(str, LEVELS), rates, strict=True))
            print(f"| {name} | {d} | {' | '.join(cells)} |", flush=True)
    return results


# Power, beside the test that has all rows.


def permuted_p_value(X: Rows, Y: Rows, rng: Any) -> float:
    """Unbiased MMD^2, Gaussian kernel of the median heuristic, 200 permutations."""
    n, both = len(X), xp.concatenate([X, Y]).astype(xp.float32)
    both = both - both.mean(axis=0)
    squares = (both**2).sum(axis=1)
    distances = xp.maximum(squares[:, None] + squares - 2.0 * both @ both.T, 0.0)
    kernel = xp.exp(-distances / xp.median(distances[xp.triu_indices(len(both), 1)]))
    xp.fill_diagonal(kernel, 0.0)
    order = xp.argsort(rng.random_sample((PERMUTATIONS, len(both))), axis=1)
    order = xp.concatenate([xp.arange(len(both))[None], order])
    is_first = (order < n).astype(xp.float32)  # which rows are in the first sample
    within = is_first @ kernel
    first = (within * is_first).sum(axis=1) / (n * (n - 1))
    across = (within * (1.0 - is_first)).sum(axis=1) / (n * (len(both) - n))
    second = ((1.0 - is_first) @ kernel * (1.0 - is_first)).sum(axis=1)
    second /= (len(both) - n) * (len(both) - n - 1)
    found = on_host(first + second - 2.0 * across)
    return float((1 + (found[1:] >= found[0]).sum()) / (1 + PERMUTATIONS))


UNEVEN = np.where(np.arange(30) < 15, 1.35, 0.65)
LEANING = np.arange(1.0, 21.0) * np.where(np.arange(20) % 2, 1.3, 0.7)
CHANGES: dict[str, tuple[str, Generator]] = {
    "none": ("low rank, sparse", embeddings),
    "mean, by a tenth of the median distance": (
        "low rank, sparse",
        lambda n, d, rng: embeddings(n, d, rng, shift=0.17 * float(np.sqrt(d))),
    ),
    "a new cluster of 5 %": ("low rank, sparse", lambda n, d, rng: embeddings(n, d, rng, new=0.05)),
    "weights of the topics, by 35 %": (
        "low rank, sparse",
        lambda n, d, rng: embeddings(n, d, rng, shares=UNEVEN),
    ),
    "two factors turned by 0.15": (
        "low rank, sparse",
        lambda n, d, rng: embeddings(n, d, rng, turn=0.15),
    ),
    "weights, unit length": (
        "low rank, unit length",
        lambda n, d, rng: embeddings(n, d, rng, shares=UNEVEN),
    ),
    "a new cluster of 5 %, unit length": (
        "low rank, unit length",
        lambda n, d, rng: embeddings(n, d, rng, new=0.05),
    ),
    "mean, Gaussians": (
        "20 Gaussians",
        lambda n, d, rng: gaussians(n, d, rng, shift=0.5 / float(np.sqrt(d))),
    ),
    "a new cluster of 5 %, Gaussians": (
        "20 Gaussians",
        lambda n, d, rng: gaussians(n, d, rng, new=0.05),
    ),
    "weights, Gaussians": (
        "20 Gaussians",
        lambda n, d, rng: gaussians(n, d, rng, shares=LEANING),
    ),
    "an eighth of the columns wider by 15 %, Gaussians": (
        "20 Gaussians",
        lambda n, d, rng: gaussians(n, d, rng, wider=1.15),
    ),
    "mean, t, 3 degrees": (
        "t, 3 degrees",
        lambda n, d, rng: student(n, d, rng, 3.0, shift=0.6 / float(np.sqrt(d))),
    ),
    "wider by 3 %, t, 3 degrees": (
        "t, 3 degrees",
        lambda n, d, rng: student(n, d, rng, 3.0, wider=1.03),
    ),
    "mean, t, 1.5 degrees": (
        "t, 1.5 degrees",
        lambda n, d, rng: student(n, d, rng, 1.5, shift=3.0 / float(np.sqrt(d))),
    ),
}


def print_power(columns: tuple[int, ...], n: int = 500) -> dict[str, dict[str, float]]:
    """Alarms at 0.05 and 0.01 where there is drift, for both tests on the same rows."""
    results: dict[str, dict[str, float]] = {}
    print("| change | d | sketch, 0.05 | MMD, 0.05 | sketch, 0.01 | MMD, 0.01 |")
    print("|---|---|---|---|---|---|")
    for d in columns:
        for name, (before, generate) in CHANGES.items():
            base, metric = POPULATIONS[before]
            spec = plan_for(base, d, metric)
            rng, z, permuted = stream(d, 5), ([], []), []
            for _ in range(FEW):
                X, Y = base(n, d, rng), generate(n, d, rng)
                if metric == "cosine":
                    X, Y = (rows / xp.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Y))
                for rows, means in zip((X, Y), z, strict=True):
                    means.append(features(rows, spec).mean(axis=0))
                permuted.append(permuted_p_value(X, Y, rng))
            ours = p_values(xp.stack(z[0]), xp.stack(z[1]), (n, n), spec.noise)
            theirs = np.array(permuted)
            facts = {}
            for level in LEVELS:
                facts[f"sketch at {level}"] = float((ours <= level).mean())
                facts[f"MMD with permutations at {level}"] = float((theirs <= level).mean())
            results[f"power, {name}, d = {d}"] = facts
            cells = " | ".join(f"{fact:.2f}" for fact in facts.values())
            print(f"| {name} | {d} | {cells} |", flush=True)
    return results


def print_bandwidths(columns: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """How far the mean squared distance lies beyond that without drift, in standard deviations."""
    results: dict[str, dict[str, float]] = {}
    shares, n = (0.25, 0.4, 0.5, 0.6, 0.7, 1.0, 1.5), 500
    print(f"| change | d | {' | '.join(map(str, shares))} |\n|---|---|" + "---|" * len(shares))
    for d in columns:
        for name, (before, generate) in list(CHANGES.items())[1:]:
            base, metric = POPULATIONS[before]
            planned = plan_for(base, d, metric)
            X, Y = (law(20_000, d, stream(d, 6, i)) for i, law in enumerate((base, generate)))
            facts = {}
            for share in shares:
                spec = planned.replaced(waves=replace(planned.waves, bandwidth=share), noise=None)
                a, b = features(X, spec), features(Y, spec)
                rng = stream(d, 4)
                z = [sample_means(table, n, 400, rng) for table in (a, a, b)]
                null, drift = (
                    on_host(((z[0] - other).astype(xp.float64) ** 2).sum(axis=1)) for other in z[1:]
                )
                facts[str(share)] = float((drift.mean() - null.mean()) / null.std())
            results[f"bandwidth, {name}, d = {d}"] = facts
            cells = " | ".join(f"{fact:.1f}" for fact in facts.values())
            print(f"| {name} | {d} | {cells} |", flush=True)
    return results


if __name__ == "__main__":
    tables = {
        "rates": print_rates,
        "stale": print_stale,
        "power": print_power,
        "bandwidth": print_bandwidths,
    }
    words = [word for word in sys.argv[1:] if word in tables] or list(tables)
    asked = tuple(int(word) for word in sys.argv[1:] if word.isdigit()) or COLUMNS
    for word in words:
        report(f"drift-{word}", tables[word](asked))
