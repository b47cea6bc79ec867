"""Looks beyond the paper: decoders of other plans, times, and the noise of a small sketch.

Takes data and a sketch; hands numbers to the runner, as the looks of ``contenders`` do. What is
predicted is computed beside what is measured. Derivations are in ``docs/beyond.md``.

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
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from sketchshift import Sketch, SketchAndShift, SketchSpec, decode, plan, sketch
from sketchshift.decoders import (
    DECODERS,
    LOCAL_MAXIMA,
    Box,
    CorrelationFunction,
    estimate_sigma,
    one_blas_thread,
)
from sketchshift.errors import DataError
from sketchshift.features import Landmarks
from sketchshift.metrics import lloyd, mse
from sketchshift_papers.datasets import RECIPES, Data, FloatArray, cube

__all__ = [
    "BEYOND",
    "Hills",
    "chance_of_hiding",
    "density_of_maxima",
    "expected_highest",
    "mean_edge",
]

Measures = dict[str, float]


# Decoders of sketches that the grid does not make: other laws, other plans, samples.


def _is_asked(data: Data, z: Sketch, at: float | None, most_clusters: int | None) -> bool:
    """Whether a look is wanted at this bandwidth, and of so many clusters."""
    is_here = at is None or math.isclose(at, _bandwidth(z))
    return is_here and (most_clusters is None or data.n_clusters <= most_clusters)


def look_at_decoding(
    data: Data,
    z: Sketch,
    seed: int,
    n_initializations: int | None,
    *,
    decoder: str = "turnkey",
    constants: dict[str, Any] | None = None,
    planned: str | None = None,
    own_size: bool = False,
    law: str = "gaussian",
    structured: bool = False,
    spread: float = 1.0,
    landmarks: str | None = None,
    at: float | None = None,
    most_clusters: int | None = None,
    least_features: int = 1,
    most_features: int = 10**6,
) -> Measures:
    """Decode a sketch of the same numbers that another spec makes.

    Parameters
    ----------
    data, z, seed, n_initializations
        As for every look.
    decoder : str
        A registered name, with underscores.
    constants : mapping or None
        Of the decoder.
    planned : {"waves", "cells"} or None
        The library's own plan.
    own_size : bool
        Whether that plan has its own m, 10 k d, instead of the grid's.
    law, structured
        Of the frequencies.
    spread : float
        More than 1: bandwidths from sigma / spread to sigma * spread.
    landmarks : {"integers", "bytes"} or None
        Nyström features instead of waves, whose places are rows of the data: as many as the
        waves have integers, or as fit with their places into the bytes of these.
    at, most_clusters, least_features, most_features : float, int or None
        The only bandwidth of the grid, the largest k, and the least and largest d for which it
        is run.

    Returns
    -------
    measures : dict
        ``mse``; ``numbers`` of the sketch; ``decode_seconds`` and ``plan_seconds``.
    """
    if not _is_asked(data, z, at, most_clusters):
        return {}
    if not least_features <= data.n_features <= most_features:
        return {}
    start = time.perf_counter()
    if planned is None:
        spec = _respecified(data, z.spec, law, structured, spread, landmarks)
    else:
        size = None if own_size else z.spec.sketch_size
        has_cells = planned == "cells"
        spec = plan(data.X, data.n_clusters, sketch_size=size, cells=has_cells, seed=seed)
    other = z if spec == z.spec else sketch(data.X, spec, n_threads=1)
    planning = time.perf_counter() - start
    names = {name.replace("-", "_"): make for name, make in DECODERS.items()}
    options = dict(constants or {})
    if n_initializations is not None:
        options["n_initializations"] = n_initializations
    if decoder in ("sketch_and_shift", "cl_ompr"):
        options["domain"] = data.domain
    start = time.perf_counter()
    found = decode(other, data.n_clusters, seed=seed, decoder=names[decoder](**options))
    seconds = time.perf_counter() - start
    return {
        "mse": data.error(found.centroids),
        "numbers": _n_numbers(spec),
        "decode_seconds": seconds,
        "plan_seconds": planning,
    }


def _respecified(
    data: Data,
    spec: SketchSpec,
    law: str,
    structured: bool,
    spread: float,
    landmarks: str | None,
) -> SketchSpec:
    sigma = _as_number(spec.bandwidth)
    changes: dict[str, Any] = {"law": law, "structured": structured}
    if spread > 1.0:
        changes["bandwidth"] = (sigma / spread, sigma * spread)
    if landmarks is not None:
        n = _n_landmarks(spec, landmarks)
        changes |= {"sketch_size": 0, "landmarks": Landmarks.draw(data.X, n, seed=spec.seed)}
    return replace(spec, **changes)


def _n_landmarks(spec: SketchSpec, equal: str) -> int:
    """Landmarks for a number of waves: of as many integers, or of as many bytes."""
    n = 2 * spec.sketch_size
    if equal == "integers":
        return n
    if equal != "bytes":
        raise DataError(f"landmarks cannot be of equal {equal!r}. Use 'integers' or 'bytes'.")
    return 8 * n // (8 + 4 * spec.n_features)  # an integer has 8 bytes, a coordinate 4


def _n_numbers(spec: SketchSpec) -> float:
    """Integers that a sketch holds of waves, cells and landmarks: what is kept equal."""
    n_cells = 0 if spec.cells is None else spec.cells.n_cells
    n_landmarks = 0 if spec.landmarks is None else spec.landmarks.n_landmarks
    return float(2 * spec.sketch_size + n_cells * (1 + 2 * spec.n_features) + n_landmarks)


@one_blas_thread
def look_at_sample(
    data: Data,
    z: Sketch,
    seed: int,
    n_initializations: int | None,
    *,
    per_cluster: float | None = None,
    at: float | None = None,
    most_clusters: int | None = None,
) -> Measures:
    """K-means of a sample that has as many numbers as the sketch.

    These are 2 m, or ``per_cluster`` times k and d where plans choose their m.
    """
    if not _is_asked(data, z, at, most_clusters):
        return {}
    d, k = data.n_features, data.n_clusters
    numbers = 2 * z.spec.sketch_size if per_cluster is None else per_cluster * k * d
    n = min(len(data.X), max(k, round(numbers / d)))
    rng = np.random.Generator(np.random.PCG64(seed))
    rows = data.X[rng.choice(len(data.X), n, replace=False)]
    start = time.perf_counter()
    centroids = lloyd(rows, k, n_init=5 if k <= 100 else 1, seed=seed)
    seconds = time.perf_counter() - start
    return {"mse": mse(data.X, centroids), "numbers": float(n * d), "decode_seconds": seconds}


# Running times: slopes of logarithms, in one process, one thing changed at a time.

BASE = {"N": 10_000, "d": 8, "k": 4, "m": 640, "L": 400}


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
    size: str = "fixed",
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
    size : {"fixed", "10kd"}
        Whether m stays or follows k and d.

    Returns
    -------
    measures : dict
        ``slope``, by least squares in logarithms; ``first`` and ``last``, in seconds.
    """
    if part not in PARTS:
        raise DataError(f"there is no part {part!r} to time. There are: {', '.join(PARTS)}.")
    seconds = []
    for value in values:
        at = BASE | {along: value}
        if size == "10kd":
            at["m"] = 10 * at["k"] * at["d"]
        X, _ = RECIPES["mixture"](n_samples=at["N"], d=at["d"], k=at["k"], seed=seed)
        call = PARTS[part](X, at, seed)
        seconds.append(min(_timed(call) for _ in range(repeats)))
    slope = np.polyfit(np.log(np.asarray(values, dtype=float)), np.log(seconds), 1)[0]
    return {"slope": float(slope), "first": seconds[0], "last": seconds[-1]}


def _timed(call: Callable[[], Any]) -> float:
    """Seconds of the processor, which other work on the machine does not lengthen much."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _sketching(X: FloatArray, at: dict[str, int], seed: int) -> Callable[[], Any]:
    spec = SketchSpec(at["d"], at["m"], 0.3, seed=seed)
    return lambda: sketch(X, spec, n_threads=1)


def _climbing(is_refined: bool) -> Callable[[FloatArray, dict[str, int], int], Callable[[], Any]]:
    def prepare(X: FloatArray, at: dict[str, int], seed: int) -> Callable[[], Any]:
        z = sketch(X, SketchSpec(at["d"], at["m"], 0.3, seed=seed), n_threads=1)
        decoder = SketchAndShift(
            n_initializations=at["L"],
            starts="uniform",
            reuse_starts=False,
            refine=is_refined,
            domain=cube(at["d"]),
        )
        return lambda: decode(z, at["k"], seed=seed, decoder=decoder)

    return prepare


def _turnkey(X: FloatArray, at: dict[str, int], seed: int) -> Callable[[], Any]:
    spec = plan(X, at["k"], sketch_size=at["m"], cells=False, seed=seed)
    z = sketch(X, spec, n_threads=1)
    return lambda: decode(z, at["k"], seed=seed)


def _lloyd(X: FloatArray, at: dict[str, int], seed: int) -> Callable[[], Any]:
    return lambda: lloyd(X, at["k"], n_init=1, seed=seed)


PARTS = {
    "sketch": _sketching,
    "algorithm2": _climbing(is_refined=False),
    "refined": _climbing(is_refined=True),
    "turnkey": _turnkey,
    "lloyd": _lloyd,
}


# What theory says of k equal round clusters, far apart.


@dataclass(frozen=True)
class Hills:
    """Heights and noise of the correlation function of k equal round clusters, far apart.

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

    @property
    def ratio(self) -> float:
        """Of the variances of a cluster and of the kernel: r = s^2 / sigma^2."""
        return (self.std / self.sigma) ** 2

    @property
    def width(self) -> float:
        """Standard deviation of a hill: that of cluster and kernel together."""
        return math.hypot(self.std, self.sigma)

    @property
    def length(self) -> float:
        """On which the noise is correlated."""
        return math.sqrt(self.sigma**2 + 2.0 * self.std**2)

    @property
    def height(self) -> float:
        """Of a hill: u = (1 + r)^(-d/2) / k."""
        return float((1.0 + self.ratio) ** (-self.d / 2)) / self.k

    @property
    def energy(self) -> float:
        """V = (1 + 2r)^(-d/2) / k + 1/n, of pairs of rows and of each row with itself."""
        return float((1.0 + 2.0 * self.ratio) ** (-self.d / 2)) / self.k + 1.0 / self.n

    @property
    def deviation(self) -> float:
        """Of the noise far from the rows."""
        return math.sqrt(self.energy / (2.0 * self.m))

    @property
    def deviation_on_top(self) -> float:
        """Of the value at a center: the own cluster's part, and that of the others."""
        own = self.energy / self.k - self.height**2
        others = (self.k - 1) * self.energy / (2.0 * self.k)
        return math.sqrt(max(0.0, own + others) / self.m)

    @property
    def rise(self) -> float:
        """By which the top beside a center is higher: half the squared slope over the curvature."""
        slope = self.d * (self.k - 1) * self.energy / (2.0 * self.k * self.m * self.length**2)
        return 0.5 * slope * self.width**2 / self.height

    @property
    def inflation(self) -> float:
        """A = (1 + r^2 / (1 + 2r))^(d/2): E phi^2 / (E phi)^2 of the characteristic function."""
        r = self.ratio
        return float((1.0 + r * r / (1.0 + 2.0 * r)) ** (self.d / 2))

    @property
    def shrinkage(self) -> float:
        """(1 + r) / (1 + 2r): from where the variance of a frequency goes when phi is squared."""
        return (1.0 + self.ratio) / (1.0 + 2.0 * self.ratio)

    @property
    def curvature_error(self) -> float:
        """Root mean squared norm of a row of width^2 H - I; see ``docs/beyond.md``."""
        r, q = self.ratio, self.shrinkage
        of_waves = self.inflation * (self.k + 1) / (2.0 * self.m) * self._moment(q, 1.0)
        of_rows = self.inflation * self.k / self.n * self._moment(r * q, r)
        return math.sqrt(of_waves + of_rows + self._of_both * self._moment(1.0 + r, 1.0))

    def _moment(self, variance: float, center: float) -> float:
        """E |w w^T - center I|^2 / d for normal w with this variance on each axis."""
        return (self.d + 2) * variance**2 - 2.0 * center * variance + center**2

    @property
    def _of_both(self) -> float:
        """Relative variance that a frequency has of each row with itself."""
        return 1.0 / (2.0 * self.m * self.n * self.height**2)

    @property
    def covariance_error(self) -> float:
        """The same of the covariance itself, relative to it."""
        return self.curvature_error * (1.0 + self.ratio) / self.ratio

    @property
    def noise_of_curvature(self) -> float:
        """Factor of G in width^2 H - I."""
        of_waves = self.shrinkage**2 * self.inflation * (self.k + 1) / (2.0 * self.m)
        of_rows = (self.ratio * self.shrinkage) ** 2 * self.inflation * self.k / self.n
        return math.sqrt(of_waves + of_rows + (1.0 + self.ratio) ** 2 * self._of_both)

    @property
    def reserve(self) -> float:
        """By what m exceeds that from which on the least eigenvalue of a covariance is positive."""
        return (self.ratio / (self.noise_of_curvature * mean_edge(self.d))) ** 2

    @property
    def sharpest(self) -> float:
        """Least eigenvalue of sigma^2 Hess f / f at the top of a hill."""
        return -(1.0 + self.noise_of_curvature * mean_edge(self.d)) / (1.0 + self.ratio)


@lru_cache(maxsize=64)
def mean_edge(d: int) -> float:
    """Mean of the largest eigenvalue of G, from 2,000 draws: close to 2 sqrt(d) - 1.2 d^(-1/6)."""
    rng = np.random.Generator(np.random.PCG64(d))
    draws = rng.standard_normal((2000, d, d))
    G = (draws + draws.transpose(0, 2, 1)) / math.sqrt(2.0)
    return float(np.linalg.eigvalsh(G)[:, -1].mean())


def _hills(data: Data, z: Sketch) -> Hills:
    assert data.means is not None
    n = min(len(data.X), 5000)
    gaps = ((data.X[:n, None] - data.means) ** 2).sum(axis=2).min(axis=1)
    std = math.sqrt(float(gaps.mean()) / data.n_features)
    m, sigma = z.spec.sketch_size, _bandwidth(z)
    return Hills(data.n_features, data.n_clusters, m, len(data.X), sigma, std)


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
        predicted relative error; ``reserve``, m over the m from which on most are predicted to be
        definite.
    """
    hills, f, d = _hills(data, z), CorrelationFunction.of(z), data.n_features
    assert data.means is not None
    values, gradients = f.value_and_gradient(data.means)
    outer = gradients[:, :, None] * gradients[:, None, :]
    per = values[:, None, None]
    H = outer / per**2 - f.hessian(data.means) / per
    squares = ((hills.width**2 * H - np.eye(d)) ** 2).sum(axis=(1, 2)) / d
    found = [estimate_sigma(f, mean, bandwidth=hills.sigma) for mean in data.means]
    truth = hills.std**2 * np.eye(d)
    errors = [float(((S - truth) ** 2).sum()) / (d * hills.std**4) for S in found if S is not None]
    measures = {
        "curvature_error": math.sqrt(float(squares.mean())),
        "curvature_ratio": float(squares.mean()) / hills.curvature_error**2,
        "definite": len(errors) / len(found),
        "predicted": hills.covariance_error,
        "reserve": hills.reserve,
    }
    if errors:
        mean = float(np.mean(errors))
        of_covariances = {"covariance_error": math.sqrt(mean)}
        measures |= of_covariances | {"covariance_ratio": mean / hills.covariance_error**2}
    return measures


# Does sketched mean shift converge? What sigma^2 Hess f / f says at the end of a climb and on
# its way. On a kernel density its eigenvalues are at least -1; on a sketch, of anything.

BESIDE = 0.01  # of a bandwidth: from where an iteration must find back to its maximum
SETTLED = 1e-3  # of a bandwidth: a shorter step is none
FARTHEST = 1.0  # bandwidth: on longer steps f is not followed
BETWEEN = (0.0, 0.25, 0.5, 0.75, 1.0)  # places of a step where the curvature is taken
ROUNDING = 1e-5  # of values, relative to the norm of the sketch
FELT = 0.02  # of a bandwidth: on shorter steps what f gains is lost in rounding


@one_blas_thread
def look_at_convergence(
    data: Data, z: Sketch, seed: int, n_initializations: int | None, *, steps: int = 60
) -> Measures:
    """Plain sketched mean shift, without backtracking, and the condition on its Hessian.

    Returns
    -------
    measures : dict
        ``agreement``, the share of maxima at which the plain iteration comes back just where all
        eigenvalues are above -2; ``sharp``, the share of climbs that end at a maximum with one
        below; ``settles``, the share of plain climbs that come to rest; ``monotone``, the share
        along which f never fell; ``fell_where_safe`` and ``fell_where_sharp``, of the steps on
        which sigma^2 |Hess f| / f was below 2, or above, the share that went down;
        ``sharpest``, the mean least eigenvalue at the tops of the clusters, and
        ``sharpest_gap``, that minus the predicted one.
    """
    f, hills = CorrelationFunction.of(z), _hills(data, z)
    box = data.domain if data.domain is not None else Box.of(z)
    starts = box.sample(n_initializations or 50, seed)
    make: Any = LOCAL_MAXIMA["sketched_mean_shift"]
    climb = make(max_iterations=500, tolerance=1e-5)
    tops = _proper(f, climb(f, starts, box, hills.sigma)[0], box, hills.sigma)
    below = _eigenvalues(f, tops, hills.sigma)[:, 0]
    measures: Measures = _along_climbs(f, starts, hills.sigma, steps)
    if len(tops):
        back = _comes_back(f, tops, hills.sigma, seed)
        measures |= {
            "agreement": float(np.mean(back == (below > -2.0))),
            "sharp": float(np.mean(below < -2.0)),
        }
    assert data.means is not None
    of_clusters = _proper(f, climb(f, data.means, box, hills.sigma)[0], box, hills.sigma)
    if len(of_clusters):
        sharpest = float(_eigenvalues(f, of_clusters, hills.sigma)[:, 0].mean())
        gap = sharpest - hills.sharpest
        measures |= {"sharpest": sharpest, "sharpest_gap": gap, "predicted": hills.sharpest}
    return measures


def _proper(f: CorrelationFunction, C: FloatArray, box: Box, sigma: float) -> FloatArray:
    """Of places, those that are maxima inside the box, at positive values, to a few digits more."""
    margin = SETTLED * sigma
    inside = box.contains(C + margin) & box.contains(C - margin) & (f(C) > 0.0)
    places = C[inside]
    for _ in range(4):
        places = places[_eigenvalues(f, places, sigma)[:, -1] < 0.0]
        if not len(places):
            break
        newton = np.linalg.solve(f.hessian(places), f.gradient(places)[:, :, None])[:, :, 0]
        is_near = np.linalg.norm(newton, axis=1) < 0.3 * sigma
        places = places[is_near] - newton[is_near]
    return places


def _eigenvalues(f: CorrelationFunction, C: FloatArray, sigma: float) -> FloatArray:
    """Of sigma^2 Hess f / f, rising: shape (L, d)."""
    if not len(C):
        return np.empty((0, C.shape[1]))
    relative = sigma**2 * f.hessian(C) / np.abs(f(C))[:, None, None]
    return np.asarray(np.linalg.eigvalsh(relative), dtype=np.float64)


def _shifted(f: CorrelationFunction, C: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """One plain step of sketched mean shift, and the values before it."""
    values, gradients = f.value_and_gradient(C)
    return C + sigma**2 * gradients / np.maximum(np.abs(values), 1e-12)[:, None], values


def _comes_back(f: CorrelationFunction, tops: FloatArray, sigma: float, seed: int) -> Any:
    """Whether the plain iteration, begun beside a maximum, gets nearer to it."""
    rng = np.random.Generator(np.random.PCG64(seed))
    aside = rng.standard_normal(tops.shape)
    C = tops + BESIDE * sigma * aside / np.linalg.norm(aside, axis=1, keepdims=True)
    for _ in range(300):
        C, _ = _shifted(f, C, sigma)
    return np.linalg.norm(C - tops, axis=1) < BESIDE * sigma


def _along_climbs(f: CorrelationFunction, starts: FloatArray, sigma: float, steps: int) -> Measures:
    """Plain climbs; whether f fell on a step, and how sharp f was at five places of it.

    Only steps from positive values count: elsewhere the iteration divides by |f|. Nor do those
    that are so long that five places would not tell.
    """
    C, slack = starts, ROUNDING * float(np.linalg.norm(f.residual))
    has_fallen = np.zeros(len(C), dtype=bool)
    counts = {True: [0, 0], False: [0, 0]}  # by whether the step was safe: all, and those down
    for _ in range(steps):
        after, values = _shifted(f, C, sigma)
        fell = f(after) < values - slack
        moved = np.linalg.norm(after - C, axis=1)
        counted = (values > 0.0) & (moved > FELT * sigma) & (moved < FARTHEST * sigma)
        if counted.any():
            ways = [C[counted] + t * (after - C)[counted] for t in BETWEEN]
            curvatures = [-np.linalg.eigvalsh(f.hessian(way))[:, 0] for way in ways]
            is_safe = sigma**2 * np.max(curvatures, axis=0) < 2.0 * values[counted]
            for which in (True, False):
                counts[which][0] += int(np.sum(is_safe == which))
                counts[which][1] += int(np.sum(fell[counted] & (is_safe == which)))
        has_fallen |= fell & (values > 0.0)
        C = after
    shares = {w: n_down / n_all for w, (n_all, n_down) in counts.items() if n_all}
    settles = float(np.mean(moved < SETTLED * sigma))
    measures = {"monotone": float(np.mean(~has_fallen)), "settles": settles}
    names = {True: "fell_where_safe", False: "fell_where_sharp"}
    return measures | {names[which]: share for which, share in shares.items()}


# Noise peaks: the correlation function far from the rows is a Gaussian field.

HIGH = 2.5  # noise deviations: what counts as a high peak
SIDES = {1: (200.0, 10), 2: (24.0, 6), 3: (9.0, 5)}  # d: side in lengths, pixels a length
TOP = 12.0  # noise deviations beyond which no peak is expected


def density_of_maxima(u: FloatArray | float, d: int) -> FloatArray:
    r"""Expected local maxima above u in a unit of volume (Kac-Rice).

    Of a stationary Gaussian field of variance 1 and covariance :math:`e^{-|h|^2 / 2}`.

    Parameters
    ----------
    u : float or array
        Levels.
    d : int
        Dimension: exact for 1 (Rice) and 2; beyond, the expected Euler characteristic
        (Adler and Taylor), which is the number of maxima at high levels; at levels under
        its highest turn, its value there.

    Returns
    -------
    density : array
        In the shape of u.
    """
    from scipy.special import eval_hermitenorm, ndtr, roots_hermitenorm

    levels = np.asarray(u, dtype=float)
    if d == 1:
        tail = ndtr(-levels * math.sqrt(1.5))
        rest = np.exp(-(levels**2) / 2) * ndtr(levels / math.sqrt(2.0)) / math.sqrt(3.0)
        return np.asarray(math.sqrt(3.0) / (2.0 * math.pi) * (tail + rest))
    if d == 2:
        return np.asarray(np.interp(levels, *_maxima_in_the_plane(), right=0.0))
    at = np.maximum(levels, roots_hermitenorm(d)[0][-1])
    waves = eval_hermitenorm(d - 1, at) * np.exp(-(at**2) / 2)
    return np.asarray((2.0 * math.pi) ** (-(d + 1) / 2) * waves)


@lru_cache(maxsize=1)
def _maxima_in_the_plane() -> tuple[FloatArray, FloatArray]:
    r"""Levels u, and integrals over x > u of :math:`\varphi(x) E[\det(xI - G); G < xI] / 2\pi`."""
    from scipy.integrate import cumulative_trapezoid
    from scipy.special import ndtr

    x = np.linspace(TOP, -TOP, 24_001)
    bell = np.exp(-(x**2) / 2) / math.sqrt(2.0 * math.pi)
    inside = (x**2 - 1.0) * ndtr(x) + x * bell
    inside += math.sqrt(2.0) * np.exp(-(x**2) / 4) * ndtr(x / math.sqrt(2.0))
    tails = -cumulative_trapezoid(bell * inside, x, initial=0.0) / (2.0 * math.pi)
    return x[::-1], tails[::-1]


def expected_highest(volume: float, d: int) -> float:
    """Mean height of the highest maximum in a volume, the number above u being Poisson."""
    u = np.linspace(0.0, TOP, 1201)
    return float(np.trapezoid(-np.expm1(-volume * density_of_maxima(u, d)), u))


def chance_of_hiding(hills: Hills, volume: float) -> float:
    """Chance that some noise peak in a volume is higher than the lowest of the k hills.

    Hills have the noise of their tops; peaks above a level are Poisson (their clumping is left
    out), of the noise far from the rows.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    noise = hills.deviation_on_top * rng.standard_normal((1000, hills.k))
    lowest = (hills.height + hills.rise + noise).min(axis=1) / hills.deviation
    u = np.linspace(-TOP, TOP, 601)
    n_above = volume / hills.length**hills.d * density_of_maxima(u, hills.d)
    return float(np.mean(-np.expm1(-np.interp(lowest, u, n_above))))


@one_blas_thread
def look_at_noise(data: Data, z: Sketch, seed: int, n_initializations: int | None) -> Measures:
    """Maxima of the correlation function far from all rows, and how often they hide a cluster.

    Returns
    -------
    measures : dict
        Far from the rows: ``energy_ratio``, |z|^2 over V; ``variance_ratio``, of the values over
        |z|^2 / 2m; ``maxima_ratio`` and ``high_ratio``, numbers of maxima, all and those above
        2.5 deviations, over the expected ones; ``highest`` and ``predicted_highest``, in
        deviations. In the domain: ``hidden``, 1 if one of the k highest maxima is at no cluster;
        ``predicted_hidden``, its chance, and ``hidden_gap``, the difference.
    """
    hills, f, d = _hills(data, z), CorrelationFunction.of(z), data.n_features
    deviation = float(np.linalg.norm(z.z)) / math.sqrt(2.0 * hills.m)
    side, pixels = SIDES[d]
    assert data.means is not None
    low = float(np.abs(data.means).max()) + 8.0 * hills.length
    far = cube(d, low, low + side * hills.length)
    values, _ = _pixels(f, far, round(side * pixels))
    heights = values.ravel()[_is_maximum(values).ravel()] / deviation
    volume = (side - 2.0 / pixels) ** d
    expected_high = volume * float(density_of_maxima(HIGH, d))
    expected = volume * float(density_of_maxima(-TOP, d))
    measures = {
        "energy_ratio": float(np.linalg.norm(z.z)) ** 2 / hills.energy,
        "variance_ratio": float(values.var()) / deviation**2,
        "high_ratio": float(np.sum(heights > HIGH)) / expected_high,
        "highest": float(heights.max(initial=0.0)),
        "predicted_highest": expected_highest(volume, d),
    }
    measures["highest_gap"] = measures["highest"] - measures["predicted_highest"]
    if d < 3:
        measures["maxima_ratio"] = len(heights) / expected
    return measures | _hidden(data, f, hills)


def _hidden(data: Data, f: CorrelationFunction, hills: Hills) -> Measures:
    """Whether one of the k highest maxima in the domain is no cluster, and how likely that was."""
    assert data.domain is not None
    assert data.means is not None
    d, box = data.n_features, data.domain
    side = float(box.upper[0] - box.lower[0])
    n = min(round(5.0 * side / hills.length), {1: 4000, 2: 400, 3: 80}[d])
    values, places = _pixels(f, box, n)
    is_top = _is_maximum(values).ravel()
    highest = places[is_top][np.argsort(-values.ravel()[is_top])[: hills.k]]
    gaps = np.linalg.norm(data.means[:, None] - highest, axis=2)
    near = 2.0 * hills.width
    hidden = float(len(highest) < hills.k or gaps.min(axis=1).max() > near)
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1) * near**d
    predicted = chance_of_hiding(hills, max(0.0, side**d - hills.k * ball))
    return {"hidden": hidden, "predicted_hidden": predicted, "hidden_gap": hidden - predicted}


def _pixels(f: CorrelationFunction, box: Box, n: int) -> tuple[FloatArray, FloatArray]:
    """Values at the centres of n^d pixels, shape (n,) * d, and these, shape (n^d, d)."""
    steps = (np.arange(n) + 0.5) / n
    axes = [low + (high - low) * steps for low, high in zip(box.lower, box.upper, strict=True)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return f(places).reshape((n,) * len(axes)), places


def _is_maximum(values: FloatArray) -> Any:
    """Pixels higher than all their neighbours; none at the border."""
    from scipy.ndimage import maximum_filter

    is_top = values == maximum_filter(values, 3)
    inner = np.zeros_like(is_top)
    inner[(slice(1, -1),) * values.ndim] = True
    return is_top & inner


def _bandwidth(z: Sketch) -> float:
    return _as_number(z.spec.bandwidth)


def _as_number(bandwidth: float | tuple[float, float]) -> float:
    return math.sqrt(bandwidth[0] * bandwidth[1]) if isinstance(bandwidth, tuple) else bandwidth


BEYOND: dict[str, Callable[..., Measures]] = {
    "decoding": look_at_decoding,
    "sample": look_at_sample,
    "time": look_at_time,
    "covariances": look_at_covariances,
    "convergence": look_at_convergence,
    "noise": look_at_noise,
}
