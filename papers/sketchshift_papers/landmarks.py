"""Landmarks: places whose kernels rows are summed with, the Nyström features of a sketch.

A family of its own, from the plan to the decoder: ``SketchSpec.of(rows, families={"landmarks":
draw(X, 100, bandwidth=0.3)})``. The mean embedding of the rows, projected on the span of the
kernels of the landmarks, is what such a sketch knows (Chatalic, Carratino, De Vito, Rosasco 2022).
There is no compiled code: 25 to 45 ns a row and landmark.

Symbols
-------
d, J, r   columns, landmarks, dimension of the span of their kernels
K         kernels of the landmarks with each other, shape (J, J)
W         root of the pseudo-inverse of K: K^+ = W W^T, shape (J, r)
C         points, one a row, shape (L, d)
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sketchshift._typing import (
    ComplexArray,
    Float32Array,
    FloatArray,
    RealArray,
)
from sketchshift._validation import check_integer, check_number, parameter_error, unmasked
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Box, Correlation, Matching, Spread
from sketchshift.decoders.problem import (
    EMPTY,
    POSES,
    Problem,
    check_decodable,
    normalise_domain,
)
from sketchshift.errors import DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.cells import from_text, to_text
from sketchshift.features.stream import Purpose, uniforms
from sketchshift.kernels import BITS
from sketchshift.sketch import AnySketch, FunctionFamily, Sketch, register_family
from sketchshift.sketch.totals import Layout

__all__ = [
    "LandmarkFamily",
    "LandmarkMap",
    "LandmarkProblem",
    "draw",
    "kernel_means",
    "parameters",
]

MAX_LANDMARKS = 2**16
_FAINTEST = -64.0  # binary logarithm of a kernel that is 0 in integers
_POWER_OF_TWO = (
    1.0,
    0.6931471805599453,
    0.2402265069591007,
    0.05550410866482158,
    0.009618129107628477,
    0.0013333558146428443,
    0.0001540353039338161,
    1.5252733804059840e-05,
    1.3215486790144309e-06,
)
"""2**r for |r| <= 1/2, log(2)^k / k!, lowest degree first, error 2e-10."""

_LOG2_E = 1.4426950408889634
"""Binary logarithm of e: exp(-x) is 2**(-_LOG2_E x)."""


# Parameters of the family.


def parameters(places: Any, bandwidth: float) -> dict[str, Any]:
    """Return the parameters of the family for landmarks (J, d) in normalised coordinates.

    Parameters
    ----------
    places : array of shape (J, d)
        (x - center) / scale. Rounded to float32.
    bandwidth : float
        Of the kernel, in these units.
    """
    values = _to_table("parameters", "places", "(landmarks, d)", places)
    return {"bandwidth": float(bandwidth), "places": to_text(values.tobytes())}


def draw(rows: RealArray, n_landmarks: int, *, bandwidth: float, seed: int = 0) -> dict[str, Any]:
    """Return the parameters for some of the rows, each as likely as the others.

    Parameters
    ----------
    rows : array of shape (n, d)
        Of a sample, in normalised coordinates: (x - center) / scale.
    n_landmarks : int
        Number J; fewer where fewer rows are different in float32.
    bandwidth : float
        Of the kernel.
    seed : int, default=0
        From 0 to 2**64 - 1. The same on every machine, and the first ones whatever J is.
    """
    J = check_integer("draw", "n_landmarks", n_landmarks, 1, MAX_LANDMARKS)
    check_integer("draw", "seed", seed, 0, 2**64 - 1)
    values = _to_table("draw", "rows", "(n, d)", rows)
    numbers = uniforms(int(seed), Purpose.LANDMARKS, np.arange(len(values)), 1)[:, 0]
    shuffled = values[np.argsort(numbers, kind="stable")]
    _, firsts = np.unique(shuffled, axis=0, return_index=True)
    return parameters(shuffled[np.sort(firsts)[:J]], bandwidth)


def _to_table(caller: str, name: str, shape: str, values: Any) -> Float32Array:
    """Numbers as a table in float32, without negative zeros; what is none is an error."""
    try:
        with np.errstate(over="ignore"):  # too large is infinite, and refused as that
            table = np.asarray(unmasked(values)).astype("<f4", casting="same_kind")
    except (TypeError, ValueError):
        table = np.empty(0, dtype="<f4")
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise parameter_error(caller, name, f"an array of finite numbers of shape {shape}", values)
    return table + np.float32(0.0)


# How rows add to it.


@register_family
class LandmarkFamily(FunctionFamily):
    r"""Gaussian kernels of the rows with each landmark, in steps of 2**-22: shape (J,).

    .. math:: \kappa(x', l_j) = e^{-|x' - l_j|^2 / 2 \sigma^2}

    O(J d) operations a row. A decoder takes O(J^3) once.
    """

    name, lowest = "landmarks", 0.0

    def __init__(self, spec: SketchSpec, places: str, bandwidth: float) -> None:
        caller, width = type(self).__name__, 4 * spec.n_features
        self.bandwidth = check_number(caller, "bandwidth", bandwidth, low=1e-20, high=1e20)
        numbers = from_text(caller, "places", places)
        J, rest = divmod(len(numbers), width)
        if rest or not 1 <= J <= MAX_LANDMARKS:
            must = f"{width} bytes for each of 1 to {MAX_LANDMARKS} landmarks"
            raise parameter_error(caller, "places", must, f"{len(numbers)} bytes")
        self.places: Float32Array = np.frombuffer(numbers, dtype="<f4").reshape(J, -1)
        if not np.isfinite(self.places).all():
            first = float(self.places[~np.isfinite(self.places)][0])
            raise parameter_error(caller, "places", "finite numbers, also in float32", first)
        super().__init__(spec, J)

    def evaluate(self, values: FloatArray) -> FloatArray:
        """The kernels, by a polynomial that is the same on every machine."""
        rate = 0.5 * _LOG2_E / (self.bandwidth * self.bandwidth)
        return _kernels_in_steps(values, self.places.T.astype(np.float64), rate)


def _kernels_in_steps(rows: FloatArray, columns: FloatArray, rate: float) -> FloatArray:
    """The 2**(-rate |x' - l|^2) of rows (n, d) and places (d, J): (n, J).

    The sum of squares runs over the columns, from the first; with t = -(s rate), at least -64, and
    n = rint(t), the power of two at t - n is a polynomial by Horner's rule, all in float64.
    """
    s = np.zeros((len(rows), columns.shape[1]))
    for x, place in zip(rows.T, columns, strict=True):
        offsets = x[:, None] - place
        offsets *= offsets
        s += offsets
    s *= -rate
    np.maximum(s, _FAINTEST, out=s)
    n = np.rint(s)
    s -= n
    power = np.full_like(s, _POWER_OF_TWO[-1])
    for coefficient in _POWER_OF_TWO[-2::-1]:
        power *= s
        power += coefficient
    return np.ldexp(power, n.astype(np.int32))


def kernel_means(sketch: Sketch) -> FloatArray:
    r"""Density of the rows at each landmark, shape (J,).

    .. math:: s_j = \frac{\sum_i w_i e^{-|x'_i - l_j|^2 / 2 \sigma^2}}{\sum_i w_i}
    """
    return np.asarray(sketch.integers(LandmarkFamily.name) / (sketch.total_weight * 2.0**BITS))


# How it is decoded.

_SPAN = 1e-8  # of the largest eigenvalue of K: directions with less are no part of the span


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    r"""Nyström features: points as vectors whose products are the projected kernel.

    .. math:: \Phi(c) = W^T k(L, c), \qquad
        \langle \Phi(c), \Phi(c') \rangle = k(c, L)\, K^+ k(L, c')

    Attributes
    ----------
    places : array of shape (J, d)
        The landmarks.
    bandwidth : float
        Of the kernel.
    root : array of shape (J, r)
        W, from the eigenvectors of K: O(J^3).
    """

    places: FloatArray
    bandwidth: float
    root: FloatArray

    @classmethod
    def of(cls, places: RealArray, bandwidth: float) -> LandmarkMap:
        """The map of some landmarks."""
        wide = np.asarray(places, dtype=np.float64)
        values, vectors = np.linalg.eigh(_kernels(wide, wide, bandwidth))
        is_kept = values > _SPAN * values[-1]
        return cls(wide, bandwidth, vectors[:, is_kept] / np.sqrt(values[is_kept]))

    def kernels(self, C: RealArray) -> FloatArray:
        """Kernels of points with the landmarks, shape (L, J)."""
        return _kernels(np.asarray(C, dtype=np.float64), self.places, self.bandwidth)

    def atoms(self, C: RealArray) -> FloatArray:
        """The features of points, shape (L, r): O(L J (d + r))."""
        return self.kernels(C) @ self.root


def _kernels(C: FloatArray, places: FloatArray, bandwidth: float) -> FloatArray:
    middle = places.mean(axis=0)  # squares of far places would leave no digits to differences
    C, places = C - middle, places - middle
    squares = (C**2).sum(axis=1)[:, None] + (places**2).sum(axis=1) - 2.0 * (C @ places.T)
    kernels: FloatArray = np.exp(np.maximum(squares, 0.0) / (-2.0 * bandwidth**2))
    return kernels


@dataclass(frozen=True, eq=False)
class LandmarkCorrelation:
    r"""The correlation function of a residual with the atoms of points.

    .. math:: f_r(c) = \langle r, \Phi(c) \rangle = k(c, L)\, \beta, \qquad \beta = W r

    Of the sketch itself it is the kernel density of the rows, projected.

    Attributes
    ----------
    map : LandmarkMap
        What makes atoms.
    beta : array of shape (J,)
        Weights of the kernels of the landmarks; of either sign.
    """

    map: LandmarkMap
    beta: FloatArray

    def __call__(self, C: RealArray) -> FloatArray:
        """Values at the rows of C, shape (L,): O(L J d)."""
        return self.value_and_gradient(C)[0]

    def value_and_gradient(self, C: RealArray) -> tuple[FloatArray, FloatArray]:
        """Values, shape (L,), and gradients, shape (L, d): O(L J d)."""
        points = np.atleast_2d(np.asarray(C, dtype=np.float64))
        weighted = self.map.kernels(points) * self.beta
        values = weighted.sum(axis=1)
        pulls = weighted @ self.map.places - values[:, None] * points
        return values, pulls / self.map.bandwidth**2

    def hessian(self, C: RealArray) -> FloatArray:
        """Second derivatives, shape (L, d, d): O(L J d^2)."""
        points = np.atleast_2d(np.asarray(C, dtype=np.float64))
        weighted = self.map.kernels(points) * self.beta
        offsets = (self.map.places - points[:, None]) / self.map.bandwidth
        outer = np.einsum("lj,lja,ljb->lab", weighted, offsets, offsets)
        flat = weighted.sum(axis=1)[:, None, None] * np.eye(points.shape[1])
        return np.asarray((outer - flat) / self.map.bandwidth**2)


@dataclass(frozen=True, eq=False)
class LandmarkMatching:
    r"""The objective :math:`\|z - \sum_i \alpha_i \Phi(c_i)\|^2` of a joint descent over points.

    Its derivatives are those of the correlation function of the residual: -2 f_r(c_i) by
    :math:`\alpha_i`, and :math:`-2 \alpha_i \nabla f_r(c_i)` by :math:`c_i`.
    """

    map: LandmarkMap
    z: FloatArray

    def value_and_gradient(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray | None]:
        """Value, and derivatives by alpha (k,) and C (k, d); O(k J (d + r))."""
        residual = self.z - alpha @ self.map.atoms(C)
        f = LandmarkCorrelation(self.map, self.map.root @ residual)
        values, gradients = f.value_and_gradient(C)
        return float(residual @ residual), -2.0 * values, -2.0 * alpha[:, None] * gradients, None

    def pack(self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None) -> FloatArray:
        """One vector of weights and places, or of their gradients."""
        return np.concatenate([alpha, C.ravel()])

    def unpack(
        self, vector: FloatArray, k: int
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Weights and places of k points: the inverse of :meth:`pack`."""
        return vector[:k], vector[k:].reshape(k, -1), None

    def covariances(self, S: FloatArray | None, d: int) -> FloatArray | None:
        """None: points have no width."""
        return None


@dataclass(frozen=True, eq=False)
class LandmarkProblem(Problem):
    """A sketch with landmarks to decode: z has the r features of the span of their kernels."""

    map: LandmarkMap = field(kw_only=True)

    @classmethod
    def of(
        cls, sketch: AnySketch, n_clusters: int, domain: Box | None, seed: int, caller: str
    ) -> LandmarkProblem:
        """Check what a decoder was given; ``domain`` is in the units of the data."""
        check_decodable(sketch, n_clusters, seed, caller)
        has_some = isinstance(sketch, Sketch) and LandmarkFamily.name in dict(sketch.spec.families)
        if not isinstance(sketch, Sketch) or not has_some:
            raise parameter_error(caller, "sketch", "a Sketch with landmarks", sketch)
        own: LandmarkFamily = Layout.of(sketch.spec).by_name[LandmarkFamily.name]
        if domain is not None:
            domain = normalise_domain(domain, sketch, caller)
        features = LandmarkMap.of(own.places, own.bandwidth)
        z = (kernel_means(sketch) @ features.root).astype(np.complex128)
        if not np.any(z):
            msg = (
                "no row is near a landmark, and the sketch has nothing else of its rows. Draw the "
                "landmarks from rows like these, as (x - center) / scale, or widen the bandwidth."
            )
            raise DataError(msg)
        return cls(sketch, sketch.frequencies.turns, z, own.bandwidth, domain, map=features)

    @property
    def frequency_weights(self) -> FloatArray | None:
        """None: all features count alike."""
        return None

    @property
    def empty(self) -> float:
        """Share of the sketch below which a residual is rounding: there are no phases to round."""
        return EMPTY

    def correlation(self, residual: ComplexArray) -> Correlation:
        """The correlation function of a residual."""
        return LandmarkCorrelation(self.map, self.map.root @ residual.real)

    def matching(self, spread: Spread) -> Matching:
        """The objective of a joint descent."""
        if spread != "none":
            raise SpecError("a sketch with landmarks is matched by points alone, not by Gaussians.")
        return LandmarkMatching(self.map, self.z.real)

    def atoms(self, mixture: Mixture) -> ComplexArray:
        """Features of the points of a mixture, shape (k, r)."""
        return self.map.atoms(mixture.means).astype(np.complex128)

    def sketch_of(self, mixture: Mixture) -> ComplexArray:
        """The features of a mixture of points, shape (r,)."""
        return np.asarray(mixture.weights @ self.atoms(mixture))

    def residual_of_rows(self, rows: Mixture) -> float:
        """What clusters of the rows, as points, leave of the sketch; 1 for no clusters."""
        return self.residual_norm(rows) if rows.n_components else 1.0


POSES[LandmarkFamily.name] = LandmarkProblem.of
