"""Plain NumPy: the definition that every other kernel is tested against, bit for bit.

Fused multiply-adds, which NumPy lacks, are computed from error-free transformations and
one rounding to odd (Boldo & Melquiond 2008), so that these few lines are the meaning of
the sketch's integers. Slow: for tests, and for machines without a compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import (
    ComplexArray,
    Digits,
    Float32Array,
    FloatArray,
    IntArray,
    RealArray,
)
from sketchshift.kernels.contract import (
    BITS,
    CELL_WEIGHT_BITS,
    COSINE,
    LIMB_BITS,
    MOMENT_BITS,
    ROUND_TO_HALF_TURNS,
    ROUND_TO_INTEGERS,
    SINE,
    SQUARE_BITS,
    Accumulator,
    CellAccumulator,
    Centers,
    Matcher,
    Runs,
)
from sketchshift.kernels.host import CellsOnHost, Correlations, OnHost

__all__ = [
    "KERNEL",
    "ReferenceKernel",
    "descend",
    "fused_multiply_add",
    "integer_waves",
    "integers_of",
    "moment_penalty",
]

# The joint descent that any kernel can run: SciPy's L-BFGS-B on its misfit.
#
# A kernel with a descent of its own is tested against this one.
#
# Symbols
# -------
# T, d      components, dimension
# alpha, C  weights, shape (T,); centers, shape (T, d)
# S         standard deviations along the axes, shape (T, d)

_TURN = 2.0 * math.pi

Misfit = Callable[[FloatArray, FloatArray, FloatArray | None], tuple[float, FloatArray]]


def moment_penalty(
    alpha: FloatArray, C: FloatArray, S: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    r"""Squared errors of mass, mean and covariance, without units, and their derivatives.

    .. math::

        P = \Big(\sum_i \alpha_i - 1\Big)^2 + \frac{|e|^2}{\operatorname{tr} \Sigma}
            + \frac{\|E\|_F^2}{(\operatorname{tr} \Sigma)^2}, \quad
        e = \sum_i \alpha_i (c_i - \mu), \quad
        E = \sum_i \alpha_i \big((c_i - \mu)(c_i - \mu)^T + \operatorname{diag} s_i^2\big) - \Sigma

    Entries of :math:`\Sigma` that are NaN are not known, and not matched. O(T d^2).
    """
    per_square = 1.0 / float(np.trace(covariance))
    mass, places, variances = alpha.sum() - 1.0, C - mean, S * S
    e = alpha @ places
    E = (places.T * alpha) @ places + np.diag(alpha @ variances) - covariance
    E[np.isnan(covariance)] = 0.0
    bent, diagonal = places @ E, np.diagonal(E)
    value = mass * mass + per_square * (e @ e) + per_square**2 * np.sum(E * E)
    square = (bent * places).sum(axis=1) + variances @ diagonal
    by_alpha = 2.0 * mass + 2.0 * per_square * (places @ e) + 2.0 * per_square**2 * square
    by_C = alpha[:, None] * (4.0 * per_square**2 * bent + 2.0 * per_square * e)
    by_S = alpha[:, None] * (4.0 * per_square**2 * S * diagonal)
    return float(value), by_alpha, by_C, by_S


def descend(
    misfit: Misfit,
    alpha: FloatArray,
    C: FloatArray,
    S: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    strength: float,
    iterations: int,
    floor: float,
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """See ``Matcher.descend``; ``misfit`` is the matcher's call."""
    from scipy.optimize import minimize

    T, d = C.shape
    unit = math.sqrt(float(np.trace(covariance)) / d)

    def unpack(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        weights, centers, spreads = np.split(x, [T, T + T * d])
        return weights / T, centers.reshape(T, d) * unit, spreads.reshape(T, d) * unit

    def f(x: FloatArray) -> tuple[float, FloatArray]:
        alpha, C, S = unpack(x)
        value, sums = misfit(alpha, C, S * S)
        penalty, by_alpha, by_C, by_S = moment_penalty(alpha, C, S, mean, covariance)
        by_alpha = strength * by_alpha - 2.0 * sums[:, 0]
        by_C = strength * by_C + (2.0 * _TURN * alpha)[:, None] * sums[:, 1 : 1 + d]
        by_S = strength * by_S + (2.0 * _TURN**2 * alpha)[:, None] * S * sums[:, 1 + d :]
        gradient = np.concatenate([by_alpha / T, unit * by_C.ravel(), unit * by_S.ravel()])
        return value + strength * penalty, gradient

    def stop_at_floor(intermediate_result: Any) -> None:
        if intermediate_result.fun <= floor:
            raise StopIteration

    result = minimize(
        f,
        np.concatenate([alpha * T, C.ravel() / unit, S.ravel() / unit]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * T + [(None, None)] * (2 * T * d),
        options={"maxiter": iterations},
        callback=stop_at_floor,
    )
    alpha, C, S = unpack(result.x)
    return float(result.fun), alpha, C, np.abs(S)


_BLOCK = 1 << 20  # pairs of row and frequency held at a time


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded sum and its exact error (Knuth)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def _two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded product and its exact error (Dekker)."""
    high_a, high_b = (134217729.0 * a, 134217729.0 * b)
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    p = a * b
    return p, ((high_a * high_b - p) + high_a * low_b + low_a * high_b) + low_a * low_b


def _sum_to_odd(a: FloatArray, b: FloatArray) -> FloatArray:
    """The sum rounded to odd: a later rounding to nearest is then as if it were the only one."""
    s, error = _two_sum(a, b)
    is_even = s.view(np.int64) & 1 == 0
    toward_error = np.nextafter(s, np.copysign(np.inf, error))
    return np.where((error != 0) & is_even, toward_error, s)


def fused_multiply_add(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """The value of a b + c rounded once, for float32 or float64 arrays that broadcast."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b  # exact: 48 bits
        return _sum_to_odd(product, c.astype(np.float64)).astype(np.float32)
    high, low = _two_product(a, b)
    middle, low = _two_sum(c, low)
    high, middle = _two_sum(high, middle)
    return high + _sum_to_odd(low, middle)


def _horner(coefficients: Float32Array, u: Float32Array) -> Float32Array:
    value = np.full_like(u, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = fused_multiply_add(value, u, np.full(1, coefficient))
    return value


def integer_waves(t: RealArray, weights: Float32Array) -> tuple[IntArray, IntArray]:
    """Integers that phases of ``t`` turns add with these weights: of the cosine, of the sine.

    Half turns are taken off exactly; the rest r, |r| <= 1/4, is rounded to float32 and
    enters the polynomials; an odd number of half turns turns both signs round.
    """
    magic = t.dtype.type(ROUND_TO_HALF_TURNS if t.dtype == np.float32 else 1.5 * 2.0**51)
    half_turns = (t + magic) - magic
    r = (t - half_turns).astype(np.float32)
    sign = np.where(np.rint(2 * half_turns).astype(np.int64) & 1, np.float32(-1), np.float32(1))
    u = r * r
    waves = _horner(COSINE, u), _horner(SINE, u) * r
    magic32 = np.full(1, ROUND_TO_INTEGERS, dtype=np.float32)
    cosine, sine = (
        (fused_multiply_add(wave, sign * weights, magic32) - magic32).astype(np.int64)
        for wave in waves
    )
    return cosine, sine


def _hadamard(y: Float32Array, *, up: bool) -> Float32Array:
    """Walsh-Hadamard transform of the last axis, unnormalised: strides 1, 2, 4, ... or back."""
    size = y.shape[-1]
    strides = [1 << level for level in range(size.bit_length() - 1)]
    for stride in strides if up else reversed(strides):
        pairs = y.reshape(*y.shape[:-1], size // (2 * stride), 2, stride)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        y = np.stack([a + b, a - b], axis=-2).reshape(y.shape)
    return y


class ReferenceKernel(OnHost, Correlations):
    """The contract in NumPy."""

    name = "reference"

    def normalise(
        self,
        X: RealArray,
        center: FloatArray,
        per_unit: FloatArray,
        rows: FloatArray,
        squared_norms: FloatArray,
    ) -> None:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        rows[:] = (X.astype(np.float64) - center) * per_unit
        squared_norms[:] = 0.0
        for column in rows.T:
            squared_norms += column * column

    def project(self, rows: FloatArray, axes: Float32Array) -> FloatArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        s = np.zeros((len(rows), len(axes)))
        for column, along in zip(rows.T, axes.T.astype(np.float64), strict=True):
            s = fused_multiply_add(column[:, None], along[None, :], s)
        return s

    def dense(self, turns: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        block = max(1, _BLOCK // turns.shape[1])

        def add(rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
            for first in range(0, len(rows), block):
                part = rows[first : first + block]
                t = np.zeros((len(part), turns.shape[1]), dtype=rows.dtype)
                for column, turn in zip(part.T, turns.astype(rows.dtype), strict=True):
                    t = fused_multiply_add(column[:, None], turn[None, :], t)
                _add_waves(t, weights[first : first + block], totals)

        return _by_runs(add)

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        size = signs.shape[-1]
        block = max(1, _BLOCK // size)

        def add(rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
            for first in range(0, len(rows), block):
                part = rows[first : first + block]
                padded = np.zeros((len(part), size), dtype=rows.dtype)
                padded[:, : part.shape[1]] = part
                for b, of_block in enumerate(signs.astype(rows.dtype)):
                    span = slice(b * size, min((b + 1) * size, len(radii)))
                    y = padded
                    for sign, up in zip(of_block, (True, False, True), strict=True):
                        y = _hadamard(y * sign, up=up)
                    t = y[:, : span.stop - span.start] * radii[span]
                    _add_waves(t, weights[first : first + block], totals[:, span])

        return _by_runs(add)

    def moments(
        self,
        rows: FloatArray,
        factors: FloatArray | None,
        unit: float,
        limbs: IntArray,
        runs: Runs,
        *,
        full: bool,
    ) -> None:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        for some, slot in runs:
            of_some = None if factors is None else factors[some]
            limbs[slot] += self._moments(rows[some], of_some, unit, full=full)

    def _moments(
        self, rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool
    ) -> IntArray:
        f = np.ones(len(rows)) if factors is None else factors
        per_unit = 2.0**MOMENT_BITS / unit
        v = (f[:, None] * rows) * per_unit
        rests = np.rint((v - np.rint(v)) * 2.0**LIMB_BITS)
        w = np.rint((np.sqrt(f)[:, None] * rows) * per_unit).astype(np.int64)
        high, low = w >> LIMB_BITS, w & (2**LIMB_BITS - 1)
        d = rows.shape[1]
        i, j = np.triu_indices(d) if full else (np.arange(d), np.arange(d))
        limbs = np.zeros((3, 2 * d + len(i)), dtype=np.int64)
        limbs[0, :d] = np.rint(v).astype(np.int64).sum(axis=0)
        limbs[0, d : 2 * d] = rests.astype(np.int64).sum(axis=0)
        for k in range(len(i)):
            a, b = i[k], j[k]
            limbs[0, 2 * d + k] = low[:, a] @ low[:, b]
            limbs[1, 2 * d + k] = low[:, a] @ high[:, b] + high[:, a] @ low[:, b]
            limbs[2, 2 * d + k] = high[:, a] @ high[:, b]
        return limbs

    def distances(self, rows: Float32Array) -> Callable[[Float32Array], Float32Array]:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return lambda points: _squared_distances(points, rows)

    def cells(self, centers: Centers) -> CellAccumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return ReferenceCells(centers)

    def central(
        self,
        products: Digits,
        weights: Digits | None = None,
        left: Digits | None = None,
        right: Digits | None = None,
        bits: int = 0,
    ) -> FloatArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        P = integers_of(products)
        W = 1 if weights is None else np.maximum(integers_of(weights), 1)[:, None]
        if left is None or right is None:
            return np.asarray(P / W, dtype=np.float64)
        taken = (integers_of(left) * integers_of(right)).sum(axis=2) << bits
        return np.asarray((W * P - taken) / (W * W), dtype=np.float64)

    def correlate(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[RealArray, RealArray]:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        waves = np.conj(residual) * np.exp(2j * np.pi * (points @ turns.astype(np.float64)))
        return waves.real, -waves.imag

    def matcher(self, turns: Float32Array, z: ComplexArray, weights: FloatArray) -> Matcher:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return ReferenceMatcher(turns.astype(np.float64), z, weights)


def integers_of(digits: Digits) -> NDArray[np.object_]:
    """Integers (...) of Python's from their digits (..., n), the lowest first."""
    found: NDArray[np.object_] = np.zeros(digits.shape[:-1], dtype=object)
    for i in range(digits.shape[-1]):
        found += digits[..., i].astype(object) << 32 * i
    return found


def _squared_distances(points: Float32Array, rows: Float32Array) -> Float32Array:
    s = np.zeros((len(points), len(rows)), dtype=np.float32)
    for x, y in zip(points.T, rows.T, strict=True):
        offsets = x[:, None] - y[None, :]
        s = fused_multiply_add(offsets, offsets, s)
    return s


class ReferenceCells(CellsOnHost):
    """See :class:`~sketchshift.kernels.contract.CellAccumulator`."""

    def __init__(self, centers: Centers) -> None:
        self.centers, self._per_unit = centers, centers.per_unit

    def nearest(self, rows: Float32Array) -> tuple[IntArray, Float32Array]:
        """See :class:`~sketchshift.kernels.contract.CellAccumulator`."""
        of = self.centers
        to_middles = _squared_distances(rows, of.middles)
        chosen = np.argsort(to_middles, axis=1, kind="stable")[:, : of.probes]
        group = np.repeat(np.arange(len(of.middles)), np.diff(of.starts))
        is_chosen = (chosen[:, :, None] == group).any(axis=1)
        squares = np.where(is_chosen, _squared_distances(rows, of.centers), np.inf)
        labels = squares.argmin(axis=1)
        return labels, squares[np.arange(len(rows)), labels].astype(np.float32)

    def sum_at(
        self,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        labels: IntArray,
        places: IntArray,
        totals: IntArray,
    ) -> None:
        """Add every row to one of the totals: the row of cell ``labels`` to that at ``places``."""
        of = self.centers
        f = np.ones(len(rows)) if factors is None else factors
        offsets = rows - of.centers[labels]
        sums, w = (self._steps(factors, offsets) for factors in (f, np.sqrt(f)))
        if of.axes is None:
            one, W = 2.0**CELL_WEIGHT_BITS, w.view(np.uint64) ** 2
            low, high = W & np.uint64(2**SQUARE_BITS - 1), W >> np.uint64(SQUARE_BITS)
            squares = np.hstack([low, high]).astype(np.int64)
        else:
            middles = KERNEL.project(of.centers.astype(np.float64), of.axes)
            along = self._steps(np.sqrt(f), coordinates - middles[labels])
            one = 2.0**BITS
            squares = np.hstack([(w**2).sum(axis=1, keepdims=True), along**2])
        weights = np.rint(f * one).astype(np.int64)[:, None]
        np.add.at(totals, places, np.hstack([weights, sums, squares]))

    def _steps(self, factors: FloatArray, offsets: FloatArray) -> IntArray:
        return np.rint((factors[:, None] * offsets) * self._per_unit).astype(np.int64)


class ReferenceMatcher:
    """The misfit as its definition says, in float64."""

    def __init__(self, turns: FloatArray, z: ComplexArray, weights: FloatArray) -> None:
        self._turns, self._z, self._weights = turns, z, weights

    def __call__(
        self, alpha: FloatArray, C: FloatArray, variances: FloatArray | None
    ) -> tuple[float, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Matcher`."""
        t, squares = self._turns, self._turns**2
        exponents = 2j * np.pi * (C @ t)
        if variances is not None:
            exponents -= 2.0 * np.pi**2 * (variances @ squares)
        psi = np.exp(exponents)
        residual = self._z - alpha @ psi
        b = np.conj(self._weights * residual) * psi
        sums = [b.real.sum(axis=1, keepdims=True), b.imag @ t.T, b.real @ squares.T]
        return float(self._weights @ np.abs(residual) ** 2), np.hstack(sums)

    def descend(
        self,
        alpha: FloatArray,
        C: FloatArray,
        S: FloatArray,
        *,
        mean: FloatArray,
        covariance: FloatArray,
        strength: float,
        iterations: int,
        floor: float = 0.0,
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Matcher`."""
        return descend(self, alpha, C, S, mean, covariance, strength, iterations, floor)


def _by_runs(add: Callable[[RealArray, Float32Array, IntArray], None]) -> Accumulator:
    """Add the rows of each run to its own totals."""

    def accumulate(
        rows: RealArray, weights: Float32Array, totals: IntArray, runs: Runs | None = None
    ) -> None:
        if runs is None:
            add(rows, weights, totals)
            return
        for some, slot in runs:
            add(rows[some], weights[some], totals[slot])

    return accumulate


def _add_waves(t: RealArray, weights: Float32Array, totals: IntArray) -> None:
    cosine, sine = integer_waves(t, weights[:, None])
    totals[0] += cosine.sum(axis=0)
    totals[1] += sine.sum(axis=0)


KERNEL = ReferenceKernel()
