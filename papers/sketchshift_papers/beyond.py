"""Looks beyond the paper: samples, times, noise, covariances and convergence.

Takes data and a sketch; hands numbers to the runner, as ``looks`` does. What is predicted is
computed beside what is measured; the formulas are explained in ``docs/beyond.md``.

Symbols
-------
sigma, s  bandwidth; standard deviation of a cluster on one axis
r         s^2 / sigma^2
z, V      the sketch; E |z|^2, so that the noise of f_z has variance V / 2m far from the rows
length    on which that noise is correlated: length^2 = sigma^2 + 2 s^2
G         a symmetric matrix of independent normal numbers, variance 2 on the diagonal, else 1
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift import Sketch, SketchAndShift, SketchSpec, decode, plan, sketch
from sketchshift.decoders import (
    LOCAL_MAXIMA,
    Box,
    CorrelationFunction,
    estimate_sigma,
    one_blas_thread,
)
from sketchshift.metrics import lloyd, mse
from sketchshift_papers.datasets import RECIPES, Data, FloatArray, cube
from sketchshift_papers.looks import Measures, bandwidth_of, grid_values, maxima

__all__ = ["BEYOND", "Hills", "chance_of_hiding", "density_of_maxima", "expected_highest"]

# Samples and times.

BASE = {"N": 10_000, "d": 8, "k": 4, "m": 640, "L": 400}


@one_blas_thread
def look_at_sample(
    data: Data,
    z: Sketch,
    seed: int,
    n_initializations: int | None,
    *,
    per_cluster: float | None = None,
) -> Measures:
    """The ``mse`` of k-means of a sample that has as many numbers as the sketch.

    These are 2 m, or ``per_cluster`` times k and d where plans choose their m.
    """
    d, k = data.n_features, data.n_clusters
    numbers = 2 * z.spec.sketch_size if per_cluster is None else per_cluster * k * d
    rng = np.random.Generator(np.random.PCG64(seed))
    rows = rng.choice(data.X, min(len(data.X), max(k, round(numbers / d))), replace=False)
    return {"mse": mse(data.X, lloyd(rows, k, n_init=5 if k <= 100 else 1, seed=seed))}


@one_blas_thread
def look_at_time(
    data: Data,
    z: Sketch,
    seed: int,
    n_initializations: int | None,
    *,
    part: str,
    along: str,
    values: Sequence[int],
    repeats: int = 1,
    proportional: bool = False,
) -> Measures:
    """How the time of a part grows along one of N, m, L, k and d; the others are those of BASE.

    Parameters
    ----------
    data, z, seed, n_initializations
        As for every look; the rows are drawn anew.
    part : {"sketch", "algorithm2", "refined", "turnkey", "lloyd"}
        What is timed.
    along : {"N", "m", "L", "k", "d"}
        What changes.
    values : sequence of int
        To what.
    repeats : int
        Of which the fastest counts.
    proportional : bool
        Whether m is 10 k d.

    Returns
    -------
    measures : dict
        ``slope`` of the processor's time, by least squares in logarithms.
    """
    seconds = []
    for value in values:
        at = BASE | {along: value}
        if proportional:
            at["m"] = 10 * at["k"] * at["d"]
        call = _part(part, at, seed)
        times = []
        for _ in range(repeats):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        seconds.append(min(times))
    return {"slope": float(np.polyfit(np.log(values), np.log(seconds), 1)[0])}


def _part(part: str, at: dict[str, int], seed: int) -> Callable[[], Any]:
    d, k, m = at["d"], at["k"], at["m"]
    X, _ = RECIPES["mixture"](n_samples=at["N"], d=d, k=k, seed=seed)
    if part == "lloyd":
        return lambda: lloyd(X, k, n_init=1, seed=seed)
    if part == "turnkey":
        planned = sketch(X, plan(X, k, sketch_size=m, cells=False, seed=seed), n_threads=1)
        return lambda: decode(planned, k, seed=seed)
    spec = SketchSpec(d, m, 0.3, seed=seed)
    if part == "sketch":
        return lambda: sketch(X, spec, n_threads=1)
    z = sketch(X, spec, n_threads=1)
    decoder = SketchAndShift(
        n_initializations=at["L"],
        starts="uniform",
        reuse_starts=False,
        refine=part == "refined",
        domain=cube(d),
    )
    return lambda: decode(z, k, seed=seed, decoder=decoder)


# What theory says of k equal round clusters, far apart.


@dataclass(frozen=True)
class Hills:
    """The correlation function of k equal round clusters, far apart.

    Parameters
    ----------
    d, k, m, n : int
        Dimension, clusters, frequencies, rows.
    sigma, std : float
        Bandwidth, and standard deviation of a cluster on one axis.
    """

    d: int
    k: int
    m: int
    n: int
    sigma: float
    std: float

    @classmethod
    def of(cls, data: Data, z: Sketch) -> Hills:
        """Those of a dataset whose means are known."""
        m, sigma = z.spec.sketch_size, bandwidth_of(z)
        std = math.sqrt(data.variance)
        return cls(data.n_features, data.n_clusters, m, len(data.X), sigma, std)

    @property
    def ratio(self) -> float:
        """Of the variances of a cluster and of the kernel: r."""
        return (self.std / self.sigma) ** 2

    @property
    def width(self) -> float:
        """Standard deviation of a hill: that of cluster and kernel together."""
        return math.hypot(self.std, self.sigma)

    @property
    def length(self) -> float:
        """On which the noise is correlated."""
        return math.hypot(self.width, self.std)

    @property
    def height(self) -> float:
        """Of a hill: u = (1 + r)^(-d/2) / k."""
        return float((1.0 + self.ratio) ** (-self.d / 2)) / self.k

    @property
    def energy(self) -> float:
        """V = (1 + 2r)^(-d/2) / k + 1/n, of pairs of rows and of each row with itself."""
        return float((1.0 + 2.0 * self.ratio) ** (-self.d / 2)) / self.k + 1.0 / self.n

    def noise_on_top(self) -> tuple[float, float]:
        """Of the value at a center, its deviation; and by how much the top beside it is higher.

        That is half the mean squared slope over the curvature.
        """
        others = (self.k - 1) * self.energy / (2.0 * self.k)
        own = self.energy / self.k - self.height**2
        slope = self.d * others / (self.m * self.length**2)
        rise = 0.5 * slope * self.width**2 / self.height
        return math.sqrt(max(0.0, own + others) / self.m), rise

    def curvature(self) -> tuple[float, float]:
        """Of width^2 H - I, the mean squared norm of a row, and the factor of G in it.

        Each source of noise, waves, rows and both, is a weight and the two numbers a and c of
        the covariance of w w' - c I for normal w of variance a.
        """
        r, n, m = self.ratio, self.n, self.m
        q = (1.0 + r) / (1.0 + 2.0 * r)
        inflation = float((1.0 + r * r / (1.0 + 2.0 * r)) ** (self.d / 2))
        of_waves = (inflation * (self.k + 1) / (2.0 * m), q, 1.0)
        of_rows = (inflation * self.k / n, r * q, r)
        of_both = (1.0 / (2.0 * m * n * self.height**2), 1.0 + r, 1.0)
        sources = (of_waves, of_rows, of_both)
        squared = sum(w * ((self.d + 2) * a * a - 2.0 * c * a + c * c) for w, a, c in sources)
        return squared, math.sqrt(sum(w * a * a for w, a, _ in sources))


@lru_cache(maxsize=64)
def eigenvalues(d: int) -> FloatArray:
    """Of 10,000 draws of G and as many of -G, not sorted: shape (20,000, d)."""
    rng = np.random.Generator(np.random.PCG64(d))
    draws = rng.standard_normal((10_000, d, d))
    found = np.linalg.eigvalsh((draws + draws.transpose(0, 2, 1)) / math.sqrt(2.0))
    return np.vstack([found, -found])


# Covariances from the curvature of the correlation function.


def look_at_covariances(
    data: Data, z: Sketch, seed: int, n_initializations: int | None
) -> Measures:
    """How far covariances from curvatures are from the truth, and from the predicted distance.

    Returns
    -------
    measures : dict
        ``curvature_error``, the root mean squared norm of a row of (s^2 + sigma^2) H - I at the
        true means, and ``curvature_ratio``, its square over the predicted one;
        ``covariance_error``, of ``estimate_sigma``, relative, where it found one, and
        ``covariance_ratio``; ``definite``, the share of means where it did; ``predicted``, the
        predicted relative error.
    """
    hills, f, d = Hills.of(data, z), CorrelationFunction.of(z), data.n_features
    assert data.means is not None
    values, gradients = f.value_and_gradient(data.means)
    slopes = gradients / values[:, None]
    H = slopes[:, :, None] * slopes[:, None, :] - f.hessian(data.means) / values[:, None, None]
    squared = float(((hills.width**2 * H - np.eye(d)) ** 2).sum()) / (d * len(H))
    expected = hills.curvature()[0]
    of_covariance = expected * (1.0 + 1.0 / hills.ratio) ** 2
    found = [estimate_sigma(f, mean, bandwidth=hills.sigma) for mean in data.means]
    errors = [S / hills.std**2 - np.eye(d) for S in found if S is not None]
    measures = {
        "curvature_error": math.sqrt(squared),
        "curvature_ratio": squared / expected,
        "definite": len(errors) / len(found),
        "predicted": math.sqrt(of_covariance),
    }
    if errors:
        mean = float(np.square(errors).sum()) / (d * len(errors))
        measures["covariance_error"] = math.sqrt(mean)
        measures["covariance_ratio"] = mean / of_covariance
    return measures


# Does sketched mean shift converge? What sigma^2 Hess f / f says at the end of a climb. On a kernel
# density its eigenvalues are at least -1; on a sketch, anything.

BESIDE = 0.01  # of a bandwidth: from where an iteration must find back to its maximum
MARGIN = 1e-3  # of a bandwidth, to the border of the box


@one_blas_thread
def look_at_convergence(
    data: Data, z: Sketch, seed: int, n_initializations: int | None
) -> Measures:
    """Plain sketched mean shift, without backtracking, and the condition on its Hessian.

    Returns
    -------
    measures : dict
        ``agreement``, the share of maxima at which the plain iteration comes back just where all
        eigenvalues are above -2; ``sharp``, the share of climbs that end at a maximum with one
        below; ``sharpest``, the mean least eigenvalue at the tops of the clusters, ``predicted``,
        and ``sharpest_gap``, their difference.
    """
    f, hills = CorrelationFunction.of(z), Hills.of(data, z)
    box, sigma = data.domain or Box.of(z), hills.sigma
    starts = box.sample(n_initializations or 50, seed)
    make: Any = LOCAL_MAXIMA["sketched_mean_shift"]
    climb = make(max_iterations=500, tolerance=1e-5)
    tops = _tops(f, climb(f, starts, box, sigma)[0], box, sigma)
    measures: Measures = {}
    if len(tops):
        below = _curvatures(f, tops, sigma)[:, 0] < -2.0
        rng = np.random.Generator(np.random.PCG64(seed))
        aside = rng.standard_normal(tops.shape)
        C = tops + BESIDE * sigma * aside / np.linalg.norm(aside, axis=1, keepdims=True)
        for _ in range(300):
            C = _shifted(f, C, sigma)
        is_back = np.linalg.norm(C - tops, axis=1) < BESIDE * sigma
        measures |= {"agreement": float((is_back != below).mean()), "sharp": float(below.mean())}
    of_clusters = _tops(f, climb(f, data.means, box, sigma)[0], box, sigma)
    if len(of_clusters):
        edge = float(eigenvalues(hills.d).max(axis=1).mean())
        predicted = -(1.0 + hills.curvature()[1] * edge) / (1.0 + hills.ratio)
        sharpest = float(_curvatures(f, of_clusters, sigma)[:, 0].mean())
        measures |= {"sharpest": sharpest, "predicted": predicted}
        measures["sharpest_gap"] = sharpest - predicted
    return measures


def _tops(f: CorrelationFunction, C: FloatArray, box: Box, sigma: float) -> FloatArray:
    """Of places, those that are maxima inside the box, at positive values, to a few digits more."""
    margin = MARGIN * sigma
    C = C[box.contains(C + margin) & box.contains(C - margin) & (f(C) > 0.0)]
    for _ in range(4):
        C = C[_curvatures(f, C, sigma)[:, -1] < 0.0]
        newton = np.linalg.solve(f.hessian(C), f.gradient(C)[:, :, None])[:, :, 0]
        is_near = np.linalg.norm(newton, axis=1) < 0.3 * sigma
        C = C[is_near] - newton[is_near]
    return C


def _curvatures(f: CorrelationFunction, C: FloatArray, sigma: float) -> FloatArray:
    """Eigenvalues of sigma^2 Hess f / |f|, rising: shape (L, d)."""
    found = np.linalg.eigvalsh(sigma**2 * f.hessian(C) / np.abs(f(C))[:, None, None])
    return np.asarray(found, dtype=np.float64)


def _shifted(f: CorrelationFunction, C: FloatArray, sigma: float) -> FloatArray:
    """One plain step of sketched mean shift."""
    values, gradients = f.value_and_gradient(C)
    return C + sigma**2 * gradients / np.maximum(np.abs(values), 1e-12)[:, None]


# Noise peaks: the correlation function far from the rows is a Gaussian field.

HIGH = 2.5  # noise deviations: what counts as a high peak
SIDES = {1: (200.0, 2000), 2: (24.0, 144), 3: (9.0, 45)}  # d: side of a box in lengths, in pixels
FINEST = {1: 4000, 2: 400, 3: 80}  # d: most pixels on a side of the domain
LEVELS = np.linspace(-12.0, 12.0, 1201)  # noise deviations: of no peak and of all


def density_of_maxima(u: FloatArray | float, d: int) -> NDArray[np.float64]:
    r"""Expected local maxima above u in a unit of volume (Kac-Rice).

    Of a stationary Gaussian field of variance 1 and covariance :math:`e^{-|h|^2 / 2}`.

    Parameters
    ----------
    u : float or array
        Levels.
    d : int
        Dimension: of the field, and of the random matrices that are drawn.

    Returns
    -------
    density : array
        In the shape of u; to about one percent.
    """
    return np.asarray(np.interp(u, LEVELS, _maxima_above(d)))


@lru_cache(maxsize=4)
def _maxima_above(d: int) -> FloatArray:
    r"""Integrals over x > u of :math:`\varphi(x) E[\det(xI - G); G < xI] / (2 \pi)^{d/2}`."""
    of_G = eigenvalues(d)
    inside = np.array([np.maximum(x - of_G, 0.0).prod(axis=1).mean() for x in LEVELS])
    bell = np.exp(-(LEVELS**2) / 2) / (2.0 * math.pi) ** ((d + 1) / 2)
    density = bell * inside * (LEVELS[1] - LEVELS[0])
    return np.asarray(np.cumsum(density[::-1])[::-1] - density / 2.0)


def expected_highest(volume: float, d: int) -> float:
    """Mean height of the highest maximum in a volume, the number above u being Poisson."""
    u = LEVELS[LEVELS >= 0.0]
    return float(np.trapezoid(-np.expm1(-volume * density_of_maxima(u, d)), u))


def chance_of_hiding(hills: Hills, volume: float) -> float:
    """Chance that some noise peak in a volume is higher than the lowest of the k hills.

    Hills have the noise of their tops; peaks above a level are Poisson (their clumping is left
    out), of the noise far from the rows.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    deviation, rise = hills.noise_on_top()
    tops = hills.height + rise + deviation * rng.standard_normal((1000, hills.k))
    lowest = tops.min(axis=1) / math.sqrt(hills.energy / (2.0 * hills.m))
    n_above = volume / hills.length**hills.d * density_of_maxima(lowest, hills.d)
    return float(np.mean(-np.expm1(-n_above)))


@one_blas_thread
def look_at_noise(data: Data, z: Sketch, seed: int, n_initializations: int | None) -> Measures:
    """Maxima of the correlation function far from all rows, and how often they hide a cluster.

    Returns
    -------
    measures : dict
        Far from the rows: ``energy_ratio``, |z|^2 over V; ``variance_ratio``, of the values over
        |z|^2 / 2m; ``maxima_ratio`` and ``high_ratio``, numbers of maxima, all and those above
        2.5 deviations, over the expected ones; ``highest`` and ``predicted_highest``, in
        deviations, and ``highest_gap``, the difference. In the domain: ``hidden``, 1 if one of
        the k highest maxima is at no cluster; ``predicted_hidden``, its chance, and
        ``hidden_gap``.
    """
    hills, f, d = Hills.of(data, z), CorrelationFunction.of(z), data.n_features
    energy = float(np.linalg.norm(z.z)) ** 2
    deviation = math.sqrt(energy / (2.0 * hills.m))
    side, pixels = SIDES[d]
    assert data.means is not None
    low = float(np.abs(data.means).max()) + 8.0 * hills.length
    far = cube(d, low, low + side * hills.length)
    values = grid_values(f, far, pixels)
    heights = maxima(values, far)[1] / deviation
    volume = (side * (1.0 - 2.0 / pixels)) ** d
    n_all, n_high = volume * density_of_maxima(np.array([LEVELS[0], HIGH]), d)
    measures = {
        "energy_ratio": energy / hills.energy,
        "variance_ratio": float(values.var()) / deviation**2,
        "maxima_ratio": len(heights) / float(n_all),
        "high_ratio": float(np.sum(heights > HIGH)) / float(n_high),
        "highest": float(heights.max(initial=0.0)),
        "predicted_highest": expected_highest(volume, d),
    } | _hidden(data, f, hills)
    measures["highest_gap"] = measures["highest"] - measures["predicted_highest"]
    measures["hidden_gap"] = measures["hidden"] - measures["predicted_hidden"]
    return measures


def _hidden(data: Data, f: CorrelationFunction, hills: Hills) -> Measures:
    """Whether one of the k highest maxima in the domain is no cluster, and how likely that was."""
    assert data.domain is not None
    assert data.means is not None
    d, box = data.n_features, data.domain
    side = float(box.upper[0] - box.lower[0])
    values = grid_values(f, box, min(round(5.0 * side / hills.length), FINEST[d]))
    places, heights = maxima(values, box)
    highest = places[np.argsort(-heights)[: hills.k]]
    gaps = np.linalg.norm(data.means[:, None] - highest, axis=2)
    near = 2.0 * hills.width
    is_hidden = len(highest) < hills.k or gaps.min(axis=1).max() > near
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1) * near**d
    predicted = chance_of_hiding(hills, max(0.0, side**d - hills.k * ball))
    return {"hidden": float(is_hidden), "predicted_hidden": predicted}


BEYOND: dict[str, Callable[..., Measures]] = {
    "sample": look_at_sample,
    "time": look_at_time,
    "covariances": look_at_covariances,
    "convergence": look_at_convergence,
    "noise": look_at_noise,
}
