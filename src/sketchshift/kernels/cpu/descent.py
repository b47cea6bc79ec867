"""A joint descent over all parameters of a fit of Gaussians, without leaving compiled code.

Limited-memory BFGS with a weak Wolfe line search (Nocedal and Wright 2006, chapters 3 and 7).
At a thousand frequencies an evaluation takes as long as the bookkeeping of a general-purpose
optimiser, which is why this one is written out.

Symbols
-------
T, d      components, dimension
x         parameters, shape (T (1 + 2 d),): T alpha >= 0, then C / unit, then S / unit
"""

from __future__ import annotations

import numpy as np

from sketchshift._typing import Float32Array, FloatArray
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.matching import ROWS, match

__all__ = ["HALVINGS", "descend"]

MEMORY = 10  # pairs of steps and changes of the gradient kept
ARMIJO, WOLFE = 1e-4, 0.9
TRIALS = 12  # of a line search
HALVINGS = 2.0 * np.pi**2 / np.log(2.0)  # e^{-s^2 omega^2 / 2} = 2^{-HALVINGS s^2 turns^2}
TURN = 2.0 * np.pi


@simd.jit
def _penalty(
    alpha: FloatArray,  # IN  (T,)
    C: FloatArray,  # IN  (T, d)
    S: FloatArray,  # IN  (T, d)
    mean: FloatArray,  # IN  (d,)
    covariance: FloatArray,  # IN  (d, d)
    full: bool,  # IN  whether the covariance is known off its diagonal
    by_alpha: FloatArray,  # IN/OUT  (T,)
    by_C: FloatArray,  # IN/OUT  (T, d)
    by_S: FloatArray,  # IN/OUT  (T, d)
    strength: float,  # IN
) -> float:
    """Add the penalty of wrong moments, times its strength, to the gradients."""
    T, d = C.shape
    per_square = 0.0
    for k in range(d):
        per_square += covariance[k, k]
    per_square = 1.0 / per_square
    P, bent = np.empty((T, d)), np.zeros((T, d))
    mass, e, E = -1.0, np.zeros(d), np.zeros((d, d))
    for i in range(T):
        mass += alpha[i]
        for k in range(d):
            P[i, k] = C[i, k] - mean[k]
            e[k] += alpha[i] * P[i, k]
            E[k, k] += alpha[i] * S[i, k] * S[i, k]
    for k in range(d):
        for j in range(d):
            if full or k == j:
                for i in range(T):
                    E[k, j] += alpha[i] * P[i, k] * P[i, j]
                E[k, j] -= covariance[k, j]
                for i in range(T):
                    bent[i, k] += E[k, j] * P[i, j]
    value = mass * mass
    for k in range(d):
        value += per_square * e[k] * e[k]
        for j in range(d):
            value += per_square**2 * E[k, j] * E[k, j]
    for i in range(T):
        linear, square = 0.0, 0.0
        for k in range(d):
            linear += P[i, k] * e[k]
            square += bent[i, k] * P[i, k] + S[i, k] * S[i, k] * E[k, k]
            slope = 4.0 * per_square**2 * bent[i, k] + 2.0 * per_square * e[k]
            by_C[i, k] += strength * alpha[i] * slope
            by_S[i, k] += strength * alpha[i] * 4.0 * per_square**2 * S[i, k] * E[k, k]
        by_alpha[i] += strength * 2.0 * (mass + per_square * linear + per_square**2 * square)
    return strength * value


@simd.jit
def _evaluate(
    x: FloatArray,  # IN  (n,)
    gradient: FloatArray,  # OUT  (n,)
    shape: tuple[int, int],
    unit: float,
    moments: tuple[FloatArray, FloatArray, bool, float],
    problem: tuple[Float32Array, Float32Array, Float32Array],
    scratch: tuple[Float32Array, Float32Array, Float32Array, Float32Array],
    padded: tuple[Float32Array, Float32Array, Float32Array, FloatArray],
) -> float:
    """Value and gradient of misfit and penalty."""
    T, d = shape
    alpha, C, S = np.empty(T), np.empty((T, d)), np.empty((T, d))
    centers, rates, weights, result = padded
    for i in range(T):
        alpha[i] = x[i] / T
        weights[i] = alpha[i]
        for k in range(d):
            at = T + i * d + k
            C[i, k], S[i, k] = unit * x[at], unit * x[at + T * d]
            centers[i, k] = C[i, k]
            rates[i, k] = HALVINGS * S[i, k] * S[i, k]
    value = match(
        centers, rates, weights, problem[0], problem[1], problem[2],
        scratch[0], scratch[1], scratch[2], scratch[3], result,
    )  # fmt: skip
    by_alpha, by_C, by_S = np.empty(T), np.empty((T, d)), np.empty((T, d))
    for i in range(T):
        by_alpha[i] = -2.0 * result[i, 0]
        for k in range(d):
            by_C[i, k] = 2.0 * TURN * alpha[i] * result[i, 1 + k]
            by_S[i, k] = 2.0 * TURN**2 * alpha[i] * S[i, k] * result[i, 1 + d + k]
    mean, covariance, full, strength = moments
    if strength > 0.0:
        value += _penalty(alpha, C, S, mean, covariance, full, by_alpha, by_C, by_S, strength)
    for i in range(T):
        gradient[i] = by_alpha[i] / T
        for k in range(d):
            at = T + i * d + k
            gradient[at], gradient[at + T * d] = unit * by_C[i, k], unit * by_S[i, k]
    return value


@simd.jit
def _dot(a: FloatArray, b: FloatArray) -> float:
    """Inner product, in eight sums that fit a vector: no library call, nothing to compile."""
    sums, n = np.zeros(8), a.size - a.size % 8
    for first in range(0, n, 8):
        for i in range(8):
            sums[i] += a[first + i] * b[first + i]
    for i in range(n, a.size):
        sums[0] += a[i] * b[i]
    total: float = sums.sum()
    return total


@simd.jit
def _add(factor: float, a: FloatArray, b: FloatArray) -> None:
    """Add factor * a to b."""
    for i in range(a.size):
        b[i] += factor * a[i]


@simd.jit
def _direction(
    g: FloatArray,  # IN  (n,)
    steps: FloatArray,  # IN  (MEMORY, n)
    changes: FloatArray,  # IN  (MEMORY, n)
    products: FloatArray,  # IN  (MEMORY,), of step and change
    n_pairs: int,
    p: FloatArray,  # OUT  (n,)
) -> None:
    """The quasi-Newton direction, by the two loops over the pairs kept."""
    factors = np.empty(MEMORY)
    for i in range(g.size):
        p[i] = -g[i]
    first = max(0, n_pairs - MEMORY)
    for j in range(n_pairs - 1, first - 1, -1):
        i = j % MEMORY
        factors[i] = _dot(steps[i], p) / products[i]
        _add(-factors[i], changes[i], p)
    if n_pairs:
        i = (n_pairs - 1) % MEMORY
        scale = products[i] / _dot(changes[i], changes[i])
        for k in range(g.size):
            p[k] *= scale
    for j in range(first, n_pairs):
        i = j % MEMORY
        _add(factors[i] - _dot(changes[i], p) / products[i], steps[i], p)


@simd.jit
def _move(
    x: FloatArray,  # IN  (n,)
    p: FloatArray,  # IN  (n,)
    step: float,
    T: int,
    trial: FloatArray,  # OUT  (n,)
    change: FloatArray,  # OUT  (n,)
) -> None:
    """Go a step along p, weights not below 0."""
    for i in range(x.size):
        trial[i] = x[i] + step * p[i]
        if i < T and trial[i] < 0.0:
            trial[i] = 0.0
        change[i] = trial[i] - x[i]


@simd.jit
def descend(
    x: FloatArray,  # IN/OUT  (T (1 + 2 d),)
    shape: tuple[int, int],
    unit: float,
    moments: tuple[FloatArray, FloatArray, bool, float],
    problem: tuple[Float32Array, Float32Array, Float32Array],
    scratch: tuple[Float32Array, Float32Array, Float32Array, Float32Array],
    iterations: int,
    ends: tuple[float, float],  # share of the value to gain at least; value that is enough
) -> tuple[float, int]:
    """Lower misfit and penalty; gives the value reached and the number of evaluations."""
    n, (T, d), (tolerance, floor) = x.size, shape, ends
    size = -(-T // ROWS) * ROWS
    padded = (
        np.zeros((size, d), dtype=np.float32),
        np.zeros((size, d), dtype=np.float32),
        np.zeros(size, dtype=np.float32),
        np.empty((size, 1 + 2 * d)),
    )
    steps, changes, products = np.empty((MEMORY, n)), np.empty((MEMORY, n)), np.empty(MEMORY)
    g, free, p = np.empty(n), np.empty(n), np.empty(n)
    trial, g_trial, change = np.empty(n), np.empty(n), np.empty(n)
    value = _evaluate(x, g, shape, unit, moments, problem, scratch, padded)
    n_pairs, n_evaluations = 0, 1
    for _ in range(iterations):
        if value <= floor:
            break
        for i in range(n):  # weights at 0 that want below it stay there
            free[i] = 0.0 if i < T and x[i] <= 0.0 and g[i] > 0.0 else g[i]
        norm = np.sqrt(_dot(free, free))
        if norm == 0.0:
            break
        _direction(free, steps, changes, products, n_pairs, p)
        for i in range(T):
            if x[i] <= 0.0 and (p[i] < 0.0 or g[i] > 0.0):
                p[i] = 0.0
        if _dot(free, p) >= 0.0:  # rounding has spoilt the pairs: start anew, by the gradient
            n_pairs = 0
            for i in range(n):
                p[i] = -free[i]
        step, low, high, found = 1.0 if n_pairs else 1.0 / norm, 0.0, np.inf, False
        for _ in range(TRIALS):
            _move(x, p, step, T, trial, change)
            reached = _evaluate(trial, g_trial, shape, unit, moments, problem, scratch, padded)
            n_evaluations += 1
            slope = _dot(g, change)
            found = reached <= value + ARMIJO * slope
            if not found:
                high = step
            elif _dot(g_trial, change) < WOLFE * slope:
                low = step
            else:
                break
            step = 2.0 * low if high == np.inf else 0.5 * (low + high)
        if not found or not reached < value:
            if n_pairs == 0:
                break
            n_pairs = 0  # once more, by the gradient alone
            continue
        i = n_pairs % MEMORY
        product = _dot(change, g_trial) - _dot(change, g)
        if product > 0.0:
            products[i] = product
            for k in range(n):
                steps[i, k], changes[i, k] = change[k], g_trial[k] - g[k]
            n_pairs += 1
        gain = value - reached
        value = reached
        for k in range(n):
            x[k], g[k] = trial[k], g_trial[k]
        if gain <= tolerance * value:
            break
    return value, n_evaluations
