r"""Where centroids are searched for: a box, and points to start from.

Takes mean and covariance from ``sketch``; hands a :class:`Box` and starts to ``decoders``.
Everything is in the normalised coordinates x' = (x - center) / scale of the spec, in which
the bandwidth is given; starts come from the library's own random stream.

Symbols
-------
d, L      dimension of a point, number of points
C         points, one a row, shape (L, d)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, RealArray
from sketchshift._validation import check_choice, check_integer, check_number, unmasked
from sketchshift.errors import DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.sketch import AnySketch

__all__ = ["Box", "draw_starts"]

_BLOCK = 1 << 16  # random numbers made at a time


@dataclass(frozen=True, eq=False)
class Box:
    r"""The domain :math:`\Theta = \prod_l [\mathrm{lower}_l, \mathrm{upper}_l]`.

    Parameters
    ----------
    lower, upper : array of shape (d,)
        Its corners, finite, lower <= upper. Kept read-only.

    Examples
    --------
    >>> Box([0, 0], [1, 2]).project([[3, 1], [-1, 5]])
    array([[1., 1.],
           [0., 2.]])
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        ends = (unmasked(self.lower), unmasked(self.upper))
        lower, upper = (np.array(end, dtype=np.float64) for end in ends)
        if lower.ndim != 1 or lower.size == 0 or lower.shape != upper.shape:
            msg = f"a Box takes two corners of shape (d,). Got {lower.shape} and {upper.shape}."
            raise SpecError(msg)
        bad = np.flatnonzero(~(np.isfinite(lower) & np.isfinite(upper) & (lower <= upper)))
        if bad.size:
            msg = (
                "a Box needs finite corners with lower <= upper on every axis. Got "
                f"[{lower[bad[0]]:g}, {upper[bad[0]]:g}] on axis {bad[0]}."
            )
            raise SpecError(msg)
        lower.flags.writeable = upper.flags.writeable = False
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @classmethod
    def of(cls, sketch: AnySketch, width: float = 3.0) -> Box:
        """Mean +- ``width`` standard deviations of what was sketched, on each axis.

        Parameters
        ----------
        sketch : Sketch or PrivateSketch
            Its mean and variances, those weighted by the tilt where there is one.
        width : float, default=3
            In standard deviations. The box is at least one bandwidth wide on every axis.

        Returns
        -------
        box : Box
            In the normalised coordinates of the sketch's spec. By Chebyshev's inequality at
            most a share of 1 / width^2 of the weight lies outside on any one axis.
        """
        check_number("Box.of", "width", width, low=0.0)
        mean = _normalised_mean(sketch)
        spread = width * np.sqrt(_normalised_variance(sketch))
        half = np.maximum(spread, 0.5 * _least_bandwidth(sketch.spec))
        return cls(mean - half, mean + half)

    @property
    def n_features(self) -> int:
        """Dimension d of a point."""
        return len(self.lower)

    def project(self, C: RealArray) -> FloatArray:
        """The nearest points of the box, in the shape of C: O(L d)."""
        return np.clip(np.asarray(C, dtype=np.float64), self.lower, self.upper)

    def contains(self, C: RealArray) -> BoolArray:
        """Whether points C lie in the box, borders included: shape (L,), or () for one point."""
        points = np.asarray(C, dtype=np.float64)
        inside: BoolArray = np.all((points >= self.lower) & (points <= self.upper), axis=-1)
        return inside

    def sample(self, n: int, seed: int, *, first: int = 0) -> FloatArray:
        """Points drawn uniformly, the same for a seed on every machine.

        Parameters
        ----------
        n : int
            How many; the first ones do not depend on it.
        seed : int
            From 0 to 2**64 - 1.
        first : int, default=0
            How many points of the seed to leave out: other points than the first ones.

        Returns
        -------
        C : array of shape (n, d)
            O(n d).
        """
        u = _draw_uniforms(n, self.n_features, seed, first)
        return self.project(self.lower + u * (self.upper - self.lower))

    def grid(self, n_points: int) -> FloatArray:
        """Centres of equal cells, as many on each axis, at most ``n_points`` of them.

        Parameters
        ----------
        n_points : int
            There are p = floor(n_points**(1/d)) cells on an axis, at least one.

        Returns
        -------
        C : array of shape (p**d, d)
            The first axis varies fastest.
        """
        check_integer("Box.grid", "n_points", n_points, 1, 2**40)
        d = self.n_features
        p = _integer_root(n_points, d)
        cells = np.arange(p**d)[:, None] // p ** np.arange(d if p > 1 else 1) % p
        return self.lower + (cells + 0.5) / p * (self.upper - self.lower)


def draw_starts(
    sketch: AnySketch, n: int, seed: int, *, box: Box, kind: str = "normal", first: int = 0
) -> FloatArray:
    """Points from which a decoder climbs, the same for a seed.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Whose mean and covariance "normal" starts have, those weighted by the tilt where there
        is one; beyond 64 columns the variances alone.
    n : int
        How many; the first ones do not depend on it.
    seed : int
        From 0 to 2**64 - 1.
    box : Box
        The domain; normal starts outside are projected to it.
    kind : {"normal", "uniform"}
        Law of the starts; uniform ones fill the box.
    first : int, default=0
        How many starts of the seed to leave out: other starts than the first ones.

    Returns
    -------
    C : array of shape (n, d)
        In the normalised coordinates of the sketch's spec. O(n d^2 + d^3) for "normal",
        O(n d) for "uniform".
    """
    check_choice("draw_starts", "kind", kind, ("normal", "uniform"))
    d = sketch.spec.n_features
    if box.n_features != d:
        msg = f"the sketch has {d} columns, and the box has {box.n_features}. Use Box.of(sketch)."
        raise SpecError(msg)
    if kind == "uniform":
        return box.sample(n, seed, first=first)
    normals = normal_quantile(_draw_uniforms(n, d, seed, first))
    if sketch.spec.has_full_covariance:
        deviations = normals @ _square_root(_normalised_covariance(sketch))
    else:
        deviations = normals * np.sqrt(_normalised_variance(sketch))
    return box.project(_normalised_mean(sketch) + deviations)


def _draw_uniforms(n: Any, d: int, seed: Any, start: int = 0) -> FloatArray:
    """Numbers in (0, 1) of the stream kept for starts: shape (n, d)."""
    check_integer("draw_starts", "n", n, 1, 2**31)
    check_integer("draw_starts", "seed", seed, 0, 2**64 - 1)
    result = np.empty((n, d))
    step = max(1, _BLOCK // d)
    for first in range(0, n, step):
        j = np.arange(first, min(first + step, n))
        result[j] = uniforms(int(seed), Purpose.START, start + j, d)
    return result


def _normalised_mean(sketch: AnySketch) -> FloatArray:
    spec = sketch.spec
    if sketch.total_weight == 0:
        raise DataError(f"this sketch has {sketch.count} rows of weight 0, hence no mean.")
    return (sketch.outline[0] - spec.center_vector) * spec.per_unit


def _normalised_covariance(sketch: AnySketch) -> FloatArray:
    per_unit = sketch.spec.per_unit
    return sketch.outline[1] * per_unit * per_unit[:, None]


def _normalised_variance(sketch: AnySketch) -> FloatArray:
    variance = np.diagonal(sketch.outline[1])
    return np.maximum(variance, 0.0) * sketch.spec.per_unit**2


def _least_bandwidth(spec: SketchSpec) -> float:
    return spec.bandwidth[0] if isinstance(spec.bandwidth, tuple) else spec.bandwidth


def _square_root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root; unlike a Cholesky factor it exists for constant columns too."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def _integer_root(n: int, d: int) -> int:
    """The largest p with p**d <= n, whatever the rounding of n**(1/d)."""
    p: int = round(n ** (1.0 / d))
    return p - 1 if p**d > n else p
