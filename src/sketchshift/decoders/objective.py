"""What decoders climb and descend: functions of centroids, given a sketch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from sketchshift._typing import BoolArray, ComplexArray, Float32Array, FloatArray, RealArray
from sketchshift._validation import check_choice, check_integer, check_number, unmasked
from sketchshift.errors import DataError, SpecError
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.kernels import Kernel, Matcher, select_kernel
from sketchshift.sketch import AnySketch

__all__ = [
    "Box",
    "Correlation",
    "CorrelationFunction",
    "Matching",
    "MomentMatching",
    "Spread",
    "check_frequency_weights",
    "draw_starts",
]

# The correlation function f_r, with its gradient and Hessian (Definition 1).
#
# Takes a residual from ``sketch``; hands a :class:`CorrelationFunction` to ``decoders``. Knows
# neither how its maxima are searched for nor which device adds up the features: the sums are
# ``kernels``' business. Points are in the normalised coordinates x' of the spec.
#
# Symbols
# -------
# d, m      dimension of a point, sketch size
# turns     frequencies divided by 2 pi, shape (d, m): omega = 2 pi turns
# r         residual, complex, shape (m,)
# C         candidate centroids, one a row, shape (L, d)


class Correlation(Protocol):
    """What is climbed: a function of points, of whatever features a sketch is made of."""

    def __call__(self, C: RealArray) -> FloatArray:
        """Values at the rows of C, shape (L,)."""
        ...

    def value_and_gradient(self, C: RealArray) -> tuple[FloatArray, FloatArray]:
        """Values, shape (L,), and gradients, shape (L, d)."""
        ...

    def hessian(self, C: RealArray) -> FloatArray:
        """Second derivatives, shape (L, d, d)."""
        ...


@dataclass(frozen=True, eq=False)
class CorrelationFunction:
    r"""Correlation of a residual with the sketch of a Dirac.

    .. math::

        f_r(c) = \mathrm{Re}\, \langle r, \mathcal A \delta_c \rangle
               = \frac{1}{\sqrt m}\, \mathrm{Re} \sum_j w_j \bar r_j
                 e^{\mathrm{i} \langle \omega_j, c \rangle}

    With r = z it tends to the kernel density estimator as m grows, error 1 / sqrt(m).

    Parameters
    ----------
    turns : float32 array of shape (d, m)
        Frequencies divided by 2 pi.
    residual : complex array of shape (m,)
        The sketch, or what is left of it.
    kernel : Kernel or None
        Where the sums happen; None: the fastest there is.
    frequency_weights : array of shape (m,) or None
        The w_j of frequencies that were not drawn from the Gaussian law; None: all 1.

    Examples
    --------
    >>> import numpy as np
    >>> turns = np.array([[0.0, 0.25]], dtype=np.float32)
    >>> f = CorrelationFunction(turns, np.array([1.0, 1.0]) / np.sqrt(2))  # of a Dirac at 0
    >>> f([[0.0], [2.0]]).round(3) + 0.0
    array([1., 0.])
    """

    turns: Float32Array
    residual: ComplexArray
    kernel: Kernel | None = None
    frequency_weights: FloatArray | None = None

    def __post_init__(self) -> None:
        turns = np.asarray(self.turns, dtype=np.float32)
        residual = np.asarray(self.residual, dtype=np.complex128)
        if turns.ndim != 2 or residual.shape != turns.shape[1:]:
            msg = (
                "a CorrelationFunction takes frequencies of shape (d, m) and a residual of shape "
                f"(m,). Got {turns.shape} and {residual.shape}."
            )
            raise SpecError(msg)
        object.__setattr__(self, "turns", turns)
        object.__setattr__(self, "residual", residual)
        object.__setattr__(self, "kernel", self.kernel or select_kernel())
        if self.frequency_weights is not None:
            weights = check_frequency_weights(self.frequency_weights, residual)
            object.__setattr__(self, "frequency_weights", weights)

    @classmethod
    def of(cls, sketch: AnySketch) -> CorrelationFunction:
        """The correlation function of a sketch itself: r = z.

        Parameters
        ----------
        sketch : Sketch
            Of any spec; points are then in its normalised coordinates.

        Returns
        -------
        f : CorrelationFunction
            Draws the frequencies on first use: O(m d).
        """
        weights = sketch.frequencies.weights
        return cls(sketch.turns.astype(np.float32), sketch.z, frequency_weights=weights)

    def __call__(self, C: RealArray) -> FloatArray:
        """Values f_r(c) at the rows of C, shape (L,): O(L m d)."""
        return self.value_and_gradient(C)[0]

    def gradient(self, C: RealArray) -> FloatArray:
        """Gradients of f_r at the rows of C, shape (L, d): O(L m d)."""
        return self.value_and_gradient(C)[1]

    def value_and_gradient(self, C: RealArray) -> tuple[FloatArray, FloatArray]:
        r"""Values and gradients in one pass of sines: O(L m d).

        .. math::

            \nabla f_r(c) = -\frac{1}{\sqrt m}\, \mathrm{Im} \sum_j \bar r_j
                e^{\mathrm{i} \langle \omega_j, c \rangle}\, \omega_j

        Parameters
        ----------
        C : array of shape (L, d) or (d,)
            Points; a single one counts as L = 1.

        Returns
        -------
        values : array of shape (L,)
            The f_r(c), off by about 1e-6 of the norm of r.
        gradients : array of shape (L, d)
            Theirs, likewise.
        """
        return self._kernel.correlation(self._points(C), self.turns, self._weighted)

    def hessian(self, C: RealArray) -> FloatArray:
        r"""Second derivatives of f_r, shape (L, d, d): O(L m d^2).

        .. math::

            \nabla^2 f_r(c) = -\frac{1}{\sqrt m}\, \mathrm{Re} \sum_j \bar r_j
                e^{\mathrm{i} \langle \omega_j, c \rangle}\, \omega_j \omega_j^T
        """
        return self._kernel.hessian(self._points(C), self.turns, self._weighted)

    @cached_property
    def _weighted(self) -> ComplexArray:
        weights = self.frequency_weights
        return self.residual if weights is None else self.residual * weights

    @property
    def _kernel(self) -> Kernel:
        assert self.kernel is not None
        return self.kernel

    def _points(self, C: RealArray) -> FloatArray:
        points = np.atleast_2d(np.asarray(C, dtype=np.float64))
        if points.ndim != 2 or points.shape[1] != len(self.turns):
            msg = (
                f"this CorrelationFunction has frequencies in dimension {len(self.turns)}, and the "
                f"points have shape {points.shape}."
            )
            raise DataError(msg)
        return points


def check_frequency_weights(weights: FloatArray, z: ComplexArray) -> FloatArray:
    """Weights of frequencies as floats; an error unless there is one of at least 0 for each."""
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != z.shape or not np.all(np.isfinite(checked) & (checked >= 0)):
        msg = (
            f"frequency_weights must be {len(z)} finite numbers of at least 0, one a "
            f"frequency. Got shape {checked.shape}, least {checked.min(initial=np.inf):g}."
        )
        raise SpecError(msg)
    return checked


# How far a mixture's sketch is from a given one, with gradients (moment matching).
#
# Takes frequencies and a sketch z as arrays; hands value and gradient to the descents of
# ``decoders``. Knows no optimiser: :meth:`MomentMatching.pack` makes the vector one wants.
#
# Symbols
# -------
# k, d, m   components, dimension, frequencies
# alpha, C  weights, shape (k,); centroids in normalised coordinates, shape (k, d)
# S         spreads: None, (k,), (k, d) or (k, d, d), by the kind of component
# psi_ij    exp(i <omega_j, c_i> - q_ij / 2), characteristic function of component i

Spread = Literal["none", "isotropic", "diagonal", "full"]


class Matching(Protocol):
    """What a joint descent lowers: see :class:`MomentMatching`, which it is for waves."""

    def value_and_gradient(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray | None]:
        """The value and its derivatives by weights (k,), centroids (k, d) and spreads."""
        ...

    def pack(self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None) -> FloatArray:
        """One vector of weights, centroids and spreads, or of their gradients."""
        ...

    def unpack(
        self, vector: FloatArray, k: int
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """The inverse of :meth:`pack`."""
        ...

    def covariances(self, S: FloatArray | None, d: int) -> FloatArray | None:
        """Covariances of spreads, shape (k, d, d); None for points."""
        ...


_TURN = 2.0 * math.pi


@dataclass(frozen=True, eq=False)
class MomentMatching:
    r"""The objective of a joint descent over weights, centroids and spreads.

    .. math::

        F(\alpha, C, S) = \sum_j w_j \Big| z_j
            - \frac{1}{\sqrt m} \sum_i \alpha_i \psi_{ij} \Big|^2,
        \qquad
        \psi_{ij} = e^{\mathrm{i} \langle \omega_j, c_i \rangle - q_{ij} / 2}

    with, by the spread, :math:`q_{ij} = 0`; :math:`s_i^2 |\omega_j|^2`;
    :math:`\sum_l s_{il}^2 \omega_{jl}^2`; or :math:`|L_i^T \omega_j|^2`, where
    :math:`\Sigma_i = L_i L_i^T`.

    Parameters
    ----------
    turns : float32 array of shape (d, m)
        Frequencies divided by 2 pi.
    z : complex array of shape (m,)
        The sketch to match.
    spread : {"none", "isotropic", "diagonal", "full"}
        Diracs (S is None), or Gaussians with S of shape (k,), (k, d), or (k, d, d) and lower
        triangular.
    frequency_weights : array of shape (m,) or None
        The :math:`w_j >= 0`; None: all 1.

    Notes
    -----
    A value with its gradient is one pass of sines: O(k m d) time, O(k) memory beside the
    frequencies; for "full", O(k m d^2) time and O(k m) memory. Sines are in float32,
    so values are off by about 1e-7 of the norm of z squared.
    """

    turns: Float32Array
    z: ComplexArray
    spread: Spread = "none"
    frequency_weights: FloatArray | None = None

    def __post_init__(self) -> None:
        check_choice("MomentMatching", "spread", self.spread, ("none", *_RANKS))
        turns = np.ascontiguousarray(self.turns, dtype=np.float32)
        z = np.asarray(self.z, dtype=np.complex128)
        if turns.ndim != 2 or z.shape != turns.shape[1:]:
            msg = (
                "MomentMatching takes frequencies of shape (d, m) and a sketch z of shape (m,). "
                f"Got {turns.shape} and {z.shape}."
            )
            raise SpecError(msg)
        object.__setattr__(self, "turns", turns)
        object.__setattr__(self, "z", z)
        if self.frequency_weights is not None:
            weights = check_frequency_weights(self.frequency_weights, z)
            object.__setattr__(self, "frequency_weights", weights)

    def atoms(self, C: FloatArray, S: FloatArray | None = None) -> ComplexArray:
        r"""Sketches :math:`\psi_i / \sqrt m` of the components, shape (k, m)."""
        cosines, minus_sines = self._correlate(C, self._envelopes(C, S), self._ones)
        atoms = np.empty(cosines.shape, dtype=np.complex128)
        atoms.real, atoms.imag = cosines, -minus_sines
        return atoms

    def residual(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None
    ) -> ComplexArray:
        r"""What is left of the sketch, :math:`z - \sum_i \alpha_i \psi_i / \sqrt m`: shape (m,)."""
        return self._residual(alpha, C, self._envelopes(C, S))

    def value(self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None) -> float:
        """The objective F, O(k m d)."""
        if self.spread != "full":
            self._check_spreads(C, S)
            return self._matcher(alpha, C, self._variances(S))[0]
        r = self.residual(alpha, C, S)
        return float(np.vdot(r, self._weighted(r)).real)

    def value_and_gradient(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray | None]:
        r"""F and its derivatives, from one pass of sines (two for "full").

        With :math:`b_{ij} = w_j \bar r_j \psi_{ij} / \sqrt m`,

        .. math::

            \frac{\partial F}{\partial \alpha_i} = -2 \sum_j \mathrm{Re}\, b_{ij}, \quad
            \frac{\partial F}{\partial c_i} =
                2 \alpha_i \sum_j \mathrm{Im}\, b_{ij}\, \omega_j, \quad
            \frac{\partial F}{\partial S_i} =
                \alpha_i \sum_j \mathrm{Re}\, b_{ij} \frac{\partial q_{ij}}{\partial S_i} .

        Parameters
        ----------
        alpha : array of shape (k,)
            Weights.
        C : array of shape (k, d)
            Centroids.
        S : array or None
            Spreads, as the class says.

        Returns
        -------
        value : float
            F.
        gradient_alpha, gradient_C, gradient_S : arrays of the shapes of alpha, C and S
            The last is None for Diracs, and lower triangular for "full".
        """
        self._check_spreads(C, S)
        if self.spread == "full":
            return self._full_value_and_gradient(alpha, C, S)
        value, sums = self._matcher(alpha, C, self._variances(S))
        of_weight, of_center, of_variance = np.split(sums, [1, 1 + C.shape[1]], axis=1)
        gradient_C = (2.0 * _TURN * alpha)[:, None] * of_center
        gradient_alpha = -2.0 * of_weight[:, 0]
        if S is None:
            return value, gradient_alpha, gradient_C, None
        if self.spread == "isotropic":
            of_variance = of_variance.sum(axis=1)
        gradient_S = (2.0 * _TURN**2 * alpha * (S * of_variance).T).T
        return value, gradient_alpha, gradient_C, gradient_S

    def _full_value_and_gradient(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray | None]:
        assert S is not None
        envelopes = self._envelopes(C, S)
        r = self._residual(alpha, C, envelopes)
        weighted = self._weighted(r)
        re, minus_im = self._correlate(C, envelopes, weighted)
        gradient_C = (-2.0 * alpha)[:, None] * (minus_im @ self._omega.T)
        # q = |L^T omega|^2 has the derivative 2 omega omega^T L
        sums = np.array([(self._omega * row) @ self._omega.T for row in re])
        gradient_S = np.tril((2.0 * alpha)[:, None, None] * (sums @ S))
        value = float(np.vdot(r, weighted).real)
        return value, -2.0 * re.sum(axis=1), gradient_C, gradient_S

    def covariances(self, S: FloatArray | None, d: int) -> FloatArray | None:
        r"""The :math:`\Sigma_i` of spreads in dimension d: shape (k, d, d), None for Diracs."""
        if S is None:
            return None
        if self.spread == "full":
            return S @ S.swapaxes(1, 2)
        squares = np.broadcast_to(S[:, None] if self.spread == "isotropic" else S, (len(S), d)) ** 2
        covariances: FloatArray = squares[:, :, None] * np.eye(d)
        return covariances

    def pack(self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None) -> FloatArray:
        """One vector of weights, centroids, spreads; of L_i the lower triangle alone, by rows.

        Packs gradients as well, so that ``pack(*gradients)`` is the gradient by the vector.
        """
        self._check_spreads(C, S)
        parts = [alpha, C.ravel()]
        if S is not None:
            parts.append(S[:, *np.tril_indices(C.shape[1])].ravel() if S.ndim == 3 else S.ravel())
        return np.concatenate(parts)

    def unpack(
        self, vector: FloatArray, k: int
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Weights, centroids and spreads of k components: the inverse of :meth:`pack`."""
        d = len(self.turns)
        alpha, C, rest = np.split(vector, [k, k + k * d])
        C = C.reshape(k, d)
        if self.spread == "none":
            return alpha, C, None
        if self.spread != "full":
            return alpha, C, rest.reshape((k, d)[: _RANKS[self.spread]])
        S = np.zeros((k, d, d))
        S[:, *np.tril_indices(d)] = rest.reshape(k, -1)
        return alpha, C, S

    @cached_property
    def _matcher(self) -> Matcher:
        """One pass for value and gradient; the kernel's waves have no 1 / sqrt(m)."""
        m = len(self.z)
        weights = np.ones(m) if self.frequency_weights is None else self.frequency_weights
        return select_kernel().matcher(self.turns, self.z * math.sqrt(m), weights / m)

    def _variances(self, S: FloatArray | None) -> FloatArray | None:
        """Squared spreads along the axes, (k, d); None for Diracs."""
        if S is None:
            return None
        return np.broadcast_to(S[:, None] if S.ndim == 1 else S, (len(S), len(self.turns))) ** 2

    @cached_property
    def _ones(self) -> ComplexArray:
        return np.ones(len(self.z), dtype=np.complex128)

    @cached_property
    def _omega(self) -> FloatArray:
        return _TURN * self.turns.astype(np.float64)

    @cached_property
    def _squares(self) -> FloatArray:
        """What squared spreads are multiplied by: |omega|^2, (1, m), or each omega_l^2, (d, m)."""
        squares = self._omega**2
        return squares.sum(axis=0, keepdims=True) if self.spread == "isotropic" else squares

    def _weighted(self, r: ComplexArray) -> ComplexArray:
        return r if self.frequency_weights is None else r * self.frequency_weights

    def _envelopes(self, C: FloatArray, S: FloatArray | None) -> Float32Array | None:
        """The e^{-q_ij / 2}, shape (k, m); None: all 1."""
        self._check_spreads(C, S)
        if S is None:
            return None
        if self.spread == "full":
            q = np.array([((L.T @ self._omega) ** 2).sum(axis=0) for L in S])
        else:
            q = S.reshape(len(S), -1) ** 2 @ self._squares
        envelopes: Float32Array = np.exp((-0.5 * q).astype(np.float32))
        return envelopes

    def _correlate(
        self, C: FloatArray, envelopes: Float32Array | None, r: ComplexArray
    ) -> tuple[FloatArray, FloatArray]:
        """Real and minus the imaginary parts of conj(r_j) psi_ij / sqrt(m), each (k, m)."""
        real, minus_imag = select_kernel().correlate(C, self.turns, r / math.sqrt(len(r)))
        if envelopes is not None:
            real *= envelopes
            minus_imag *= envelopes
        return real.astype(np.float64), minus_imag.astype(np.float64)

    def _residual(
        self, alpha: FloatArray, C: FloatArray, envelopes: Float32Array | None
    ) -> ComplexArray:
        cosines, minus_sines = self._correlate(C, envelopes, self._ones)
        residual: ComplexArray = self.z - alpha @ cosines + 1j * (alpha @ minus_sines)
        return residual

    def _check_spreads(self, C: FloatArray, S: FloatArray | None) -> None:
        d = len(self.turns)
        expected = None if self.spread == "none" else (len(C), d, d)[: _RANKS[self.spread]]
        actual = None if S is None else S.shape
        if C.ndim != 2 or C.shape[1] != d or actual != expected:
            msg = (
                f"MomentMatching with spread {self.spread!r} in dimension {d} takes C of shape "
                f"(k, {d}) and S of shape {expected}. Got {C.shape} and {actual}."
            )
            raise SpecError(msg)


_RANKS = {"isotropic": 1, "diagonal": 2, "full": 3}  # number of axes of S

# Where centroids are searched for: a box, and points to start from.
#
# Takes mean and covariance from ``sketch``; hands a :class:`Box` and starts to ``decoders``.
# Everything is in the normalised coordinates x' = (x - center) / scale of the spec, in which
# the bandwidth is given; starts come from the library's own random stream.
#
# Symbols
# -------
# d, L      dimension of a point, number of points
# C         points, one a row, shape (L, d)

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
            Its mean and variances.
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
        half = np.maximum(spread, 0.5 * sketch.spec.bandwidths[0])
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
        Whose mean and covariance "normal" starts have; beyond 64 columns the variances alone.
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
    return (sketch.outline[0] - spec.rows.center_vector) * spec.rows.per_unit


def _normalised_covariance(sketch: AnySketch) -> FloatArray:
    per_unit = sketch.spec.rows.per_unit
    return sketch.outline[1] * per_unit * per_unit[:, None]


def _normalised_variance(sketch: AnySketch) -> FloatArray:
    variance = np.diagonal(sketch.outline[1])
    return np.maximum(variance, 0.0) * sketch.spec.rows.per_unit**2


def _square_root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root; unlike a Cholesky factor it exists for constant columns too."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def _integer_root(n: int, d: int) -> int:
    """The largest p with p**d <= n, whatever the rounding of n**(1/d)."""
    p: int = round(n ** (1.0 / d))
    return p - 1 if p**d > n else p
