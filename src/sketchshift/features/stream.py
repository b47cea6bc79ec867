"""Our own random stream: the same frequencies on every machine, in every version.

A counter-based bit generator (Philox4x32-10, Salmon et al. 2011) and functions of its
output built from +, -, *, / and square roots alone, each rounded once as IEEE 754 says: no
library's logarithm or normal variate is trusted with the last bit. Written down, for
implementers in other languages, in ``docs/format.md``.

A number is addressed by (seed, purpose, j, i): a seed, one of the purposes below, the
index j of a frequency, and the place i within it. Hence prefixes nest.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray

__all__ = [
    "Purpose",
    "exponential",
    "logarithm",
    "normal_quantile",
    "normals",
    "philox",
    "signs",
    "uniforms",
]

_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # high part: 32 bits
_WORD = np.uint64(0xFFFFFFFF)
_BLOCK = 1 << 16  # counters held at a time


class Purpose(IntEnum):
    """What a part of the stream is for."""

    NORMAL = 0
    BANDWIDTH = 1
    RADIUS = 2
    SIGN = 3
    START = 4
    SAMPLE = 5
    CELLS = 6
    AXES = 7
    LANDMARKS = 8


def philox(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Ten rounds of Philox4x32.

    Parameters
    ----------
    counter : uint64 array of shape (4, n)
        Words of 32 bits, one counter a column.
    key : pair of int
        Two words of 32 bits.

    Returns
    -------
    words : uint64 array of shape (4, n)
        Words of 32 bits.
    """
    x0, x1, x2, x3 = (word & _WORD for word in counter)
    k0, k1 = key
    shift = np.uint64(32)
    for _ in range(10):
        low, high = np.uint64(0xD2511F53) * x0, np.uint64(0xCD9E8D57) * x2
        x0, x1, x2, x3 = (
            (high >> shift) ^ x1 ^ np.uint64(k0),
            high & _WORD,
            (low >> shift) ^ x3 ^ np.uint64(k1),
            low & _WORD,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([x0, x1, x2, x3])


def _words(seed: int, purpose: Purpose, j: NDArray[Any], n: int) -> NDArray[np.uint64]:
    """``n`` pairs of words for each frequency of ``j``: shape (len(j), n, 2)."""
    n_counters = -(-n // 2)
    places = np.arange(n_counters, dtype=np.uint64)
    counter = np.empty((4, len(j), n_counters), dtype=np.uint64)
    counter[0], counter[1] = places, int(purpose)
    index = np.asarray(j, dtype=np.uint64)[:, None]
    counter[2], counter[3] = index & _WORD, index >> np.uint64(32)
    key = (seed & 0xFFFFFFFF, seed >> 32)
    words = philox(counter.reshape(4, -1), key)
    pairs = words.T.reshape(len(j), n_counters * 2, 2)
    return pairs[:, :n]


def uniforms(seed: int, purpose: Purpose, j: NDArray[Any], n: int) -> FloatArray:
    """Uniform numbers in (0, 1), ``n`` for each frequency of ``j``: shape (len(j), n).

    Place i takes words 2 (i mod 2) and 2 (i mod 2) + 1 of counter i // 2, as the high 32 and
    the low 20 bits of an integer k of 52 bits; the number is (k + 1/2) / 2**52, exactly.
    """
    pairs = _words(seed, purpose, j, n)
    k = (pairs[..., 0] << np.uint64(20)) | (pairs[..., 1] >> np.uint64(12))
    return (k.astype(np.float64) + 0.5) * 2.0**-52


def signs(seed: int, j: NDArray[Any], n: int) -> FloatArray:
    """Random signs, ``n`` for each index of ``j``: +1 where the uniform number is below 1/2."""
    return np.where(uniforms(seed, Purpose.SIGN, j, n) < 0.5, 1.0, -1.0)


def logarithm(x: FloatArray) -> FloatArray:
    """Natural logarithm of positive numbers, from IEEE operations alone; error 1e-15.

    x = 2**e f with f in [sqrt(1/2), sqrt(2)); log f = 2 artanh(s), s = (f - 1) / (f + 1), by
    the series in s^2 up to s^23.
    """
    f, e = np.frexp(x)
    is_small = f < 0.7071067811865476
    f, e = np.where(is_small, 2.0 * f, f), np.where(is_small, e - 1, e).astype(np.float64)
    s = (f - 1.0) / (f + 1.0)
    u = s * s
    series = np.full_like(u, 1.0 / 23.0)
    for odd in range(21, 0, -2):
        series = series * u + 1.0 / odd
    result: FloatArray = e * _LN2_HIGH + (e * _LN2_LOW + 2.0 * s * series)
    return result


def exponential(x: FloatArray) -> FloatArray:
    """Exponential of numbers in [-700, 700], from IEEE operations alone; error 1e-15.

    x = n log 2 + r, |r| <= log(2) / 2; the series of exp(r) up to r^14 / 14!.
    """
    n = np.rint(x * 1.4426950408889634)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    series = np.full_like(r, 1.0)
    for k in range(14, 0, -1):
        series = series * r / float(k) + 1.0
    return np.ldexp(series, n.astype(np.int64))


_CENTRAL = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_MIDDLE = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: FloatArray) -> FloatArray:
    values = []
    for coefficients in polynomials:
        value = np.full_like(x, coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = value * x + coefficient
        values.append(value)
    return values[0] / values[1]


def normal_quantile(u: FloatArray) -> FloatArray:
    """The normal quantile function by the rational functions of AS 241 (Wichura 1988)."""
    q = u - 0.5
    result = q * _ratio(_CENTRAL, 0.180625 - q * q)
    outside = np.abs(q) > 0.425
    p = u[outside]
    r = np.sqrt(-logarithm(np.where(p < 0.5, p, 1.0 - p)))
    tail = np.where(r <= 5.0, _ratio(_MIDDLE, r - 1.6), _ratio(_TAIL, r - 5.0))
    result[outside] = np.copysign(tail, q[outside])
    return result


def normals(seed: int, j: NDArray[Any], n: int) -> FloatArray:
    """Standard normal numbers, ``n`` for each frequency of ``j``: shape (len(j), n)."""
    result = np.empty((len(j), n))
    step = max(1, _BLOCK // n)
    for first in range(0, len(j), step):
        part = slice(first, first + step)
        result[part] = normal_quantile(uniforms(seed, Purpose.NORMAL, j[part], n))
    return result
