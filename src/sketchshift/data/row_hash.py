"""A number for every row that depends on what the row holds, and on nothing else.

Equal rows have equal hashes, whatever their place and dtype; unlike rows have unlike ones,
but for one pair in 2^64. Made to draw samples, not to withstand an adversary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray, IntArray, RealArray

__all__ = ["HashArray", "hash_rows", "mix", "random_bits"]

HashArray = NDArray[np.uint64]

_ODD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64
_STEP = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_TILE = 2**14  # numbers at a time: they stay in cache
_FEWEST = 2**11  # rows at a time: of fewer, the calls cost more than the cache saves


def hash_rows(
    values: RealArray, weights: FloatArray | None, seed: int, bounds: FloatArray | None = None
) -> HashArray:
    """Hashes of the rows of a block, together with their weights.

    Parameters
    ----------
    values : array of shape (n, d)
        Hashed as float64; 0 and -0 are the same.
    weights : array of shape (n,) or None
        One more column.
    seed : int
        Another seed gives other hashes.
    bounds : array of shape (2, d), optional
        IN/OUT. Least and largest values of the columns so far: cheaper here than by themselves.

    Returns
    -------
    hashes : uint64 array of shape (n,)
        O(n d).
    """
    hashes = np.full(len(values), _start(seed), dtype=np.uint64)
    step = max(_FEWEST, _TILE // values.shape[1])
    for first in range(0, len(values), step):
        part = values[first : first + step]
        columns = np.empty(part.shape[::-1])
        np.add(part.T, 0.0, out=columns, casting="unsafe")  # -0.0 + 0.0 is 0.0
        for column in columns:
            _take_in(hashes[first : first + step], column)
        if bounds is not None:
            np.minimum(bounds[0], columns.min(axis=1), out=bounds[0])
            np.maximum(bounds[1], columns.max(axis=1), out=bounds[1])
    if weights is not None:
        _take_in(hashes, weights + 0.0)
    return mix(hashes)


def mix(numbers: HashArray) -> HashArray:
    """The finaliser of SplitMix64, a bijection in which every bit moves every other."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _ODD[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _ODD[1]
    return numbers ^ (numbers >> np.uint64(31))


def random_bits(positions: IntArray, seed: int) -> HashArray:
    """64 random bits for each position, always the same ones for the same seed."""
    return mix(mix(positions.astype(np.uint64)) ^ _start(seed))


def _start(seed: int) -> np.uint64:
    return np.uint64((seed + 1) * _STEP & _MASK)


def _take_in(hashes: HashArray, column: FloatArray) -> None:
    """One column more, in place: a bijection of the hash for each value, and the reverse."""
    hashes ^= column.view(np.uint64)
    hashes *= _ODD[0]
    hashes ^= hashes >> np.uint64(32)
