"""Sketches with landmarks as problems that the paper's decoders can be given.

Takes a ``Sketch`` whose spec has landmarks; hands a :class:`LandmarkProblem` to ``paper``. An atom
is the kernel of a point, projected on the span of the kernels of the landmarks.

Symbols
-------
d, J, r   dimension, landmarks, dimension of the span of their kernels
K         kernels of the landmarks with each other, shape (J, J)
W         root of the pseudo-inverse of K: K^+ = W W^T, shape (J, r)
C         points, one a row, shape (L, d)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray, RealArray
from sketchshift._validation import parameter_error
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Box, Correlation, Matching, Spread
from sketchshift.decoders.problem import EMPTY, Problem, check_decodable, normalise_domain
from sketchshift.errors import SpecError
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["LandmarkCorrelation", "LandmarkMap", "LandmarkProblem", "pose"]

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
        spec, means = sketch.spec, sketch.kernel_means if isinstance(sketch, Sketch) else None
        if spec.landmarks is None or means is None or isinstance(spec.bandwidth, tuple):
            raise parameter_error(caller, "sketch", "a Sketch with landmarks", sketch)
        if domain is not None:
            domain = normalise_domain(domain, sketch, caller)
        features = LandmarkMap.of(spec.landmarks.table, spec.bandwidth)
        z = (means @ features.root).astype(np.complex128)
        turns = sketch.frequencies.turns
        return cls(sketch, turns, z, spec.bandwidth, domain, map=features)

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


def pose(sketch: AnySketch, n_clusters: int, domain: Box | None, seed: int, caller: str) -> Problem:
    """The problem of a sketch: of its waves, or of its landmarks where it has no waves."""
    has_landmarks = isinstance(sketch, Sketch) and sketch.spec.landmarks is not None
    if has_landmarks and sketch.spec.sketch_size == 0:
        return LandmarkProblem.of(sketch, n_clusters, domain, seed, caller)
    return Problem.of(sketch, n_clusters, domain, seed, caller)
