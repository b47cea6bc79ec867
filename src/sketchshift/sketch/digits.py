"""Integers as digits: sums of many are sums of their digits, whatever the signs.

An integer is written as a few *digits* d_0, d_1, ... from -2**31 to 2**31 - 1, of which it is the
sum of d_i 2**(32 i). Sums are taken in int64, digit by digit, and carries are left to the end.

Symbols
-------
k, n      integers, digits of each
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchshift._typing import Digits, FloatArray, IntArray
from sketchshift.data.source import spans
from sketchshift.errors import DataError
from sketchshift.kernels.reference import integers_of

__all__ = [
    "Digits",
    "carry",
    "into_digits",
    "lanes_of",
    "shifted",
    "to_floats",
    "to_integers",
]

BITS = 32
_AT_ONCE = 2**18  # numbers at a time: they stay in cache


def carry(lanes: IntArray, n: int) -> Digits:
    """Bring sums of digits (..., k n) into their range; the sums are lost."""
    found = np.empty(lanes.shape, dtype=np.int32)
    for i in range(n - 1):
        own = lanes[..., i::n]
        found[..., i::n] = own
        own -= found[..., i::n]
        own >>= BITS
        lanes[..., i + 1 :: n] += own
    top = lanes[..., n - 1 :: n]
    if top.size and (top.max() >= 2**31 or top.min() < -(2**31)):
        raise DataError("the sums are too large to be held. Keep several sketches.")
    found[..., n - 1 :: n] = top
    return found


def into_digits(numbers: IntArray) -> Digits:
    """Turn integers (n, k) below 2**62 into two digits each, in the memory that they have."""
    words: Digits = numbers.astype("<i8", copy=False).view("<i4")
    for span in spans(len(words), max(1, _AT_ONCE // max(1, words.shape[1]))):
        words[span, 1::2] += words[span, 0::2] < 0
    return words


def lanes_of(parts: Sequence[tuple[IntArray, int]], n: int) -> IntArray:
    """Sums of int64 (..., k), each times a power of two, as digits that are not in their range.

    Parameters
    ----------
    parts : sequence of (int64 array, int)
        Numbers, and the power, of which 32 is not much less than a multiple.
    n : int
        Digits of each.
    """
    shape = parts[0][0].shape
    lanes = np.zeros((*shape[:-1], n * shape[-1]), dtype=np.int64)
    for numbers, power in parts:
        first, rest = divmod(power, BITS)
        if not rest:
            lanes[..., first::n] += numbers  # a carry takes what is more than a digit
            continue
        lanes[..., first::n] += (numbers & 2**BITS - 1) << rest
        lanes[..., first + 1 :: n] += (numbers >> BITS) << rest
    return lanes


def shifted(digits: Digits, n: int, power: int) -> IntArray:
    """Digits (..., k n) times a power of two, not in their range."""
    first, rest = divmod(power, BITS)
    lanes = np.zeros(digits.shape, dtype=np.int64)
    for i in range(n - first):
        lanes[..., i + first :: n] = digits[..., i::n].astype(np.int64) << rest
    return lanes


def to_integers(digits: Digits, n: int) -> Any:
    """Integers (..., k): int64 of two digits, Python's own of more."""
    if n == 2:
        return digits[..., 0::n] + (digits[..., 1::n].astype(np.int64) << BITS)
    return integers_of(digits.reshape(*digits.shape[:-1], digits.shape[-1] // n, n))


def to_floats(digits: Any, n: int) -> FloatArray:
    """Integers (..., k), rounded a few times: relative errors are below 1e-15."""
    found: FloatArray = digits[..., n - 1 :: n].astype(np.float64)
    for i in reversed(range(n - 1)):
        found *= 2.0**BITS
        found += digits[..., i::n]
    return found
