"""Structured frequencies: blocks S H D1 H D2 H D3 instead of independent directions.

H is the Walsh-Hadamard matrix of the next power of two D, the D's are random signs, S the
radii of the law. A block gives D frequencies for O(D log D) operations instead of O(D^2).
Points are padded with zeros, so a frequency is the first d coordinates of a row of length
R sqrt(D / d): of length R in the mean (exactly R when d is a power of two).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchshift._typing import Float32Array, FloatArray
from sketchshift.features.stream import signs as draw_random_signs

__all__ = ["MIN_FEATURES", "Structure", "draw_signs", "padded_size"]

MIN_FEATURES = 64
"""Below this dimension, frequencies one by one are as fast."""


def padded_size(d: int) -> int:
    """The least power of two that is at least d."""
    return 1 << (d - 1).bit_length()


def draw_signs(seed: int, *, n_blocks: int, size: int) -> Float32Array:
    """Random signs of shape (n_blocks, 3, size), in the order in which they are applied."""
    signs = draw_random_signs(seed, np.arange(n_blocks), 3 * size)
    return signs.reshape(n_blocks, 3, size).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Structure:
    """Signs and radii of structured frequencies.

    Attributes
    ----------
    d : int
        Dimension of the points before padding.
    signs : float32 array of shape (blocks, 3, D)
        In the order in which they are applied.
    radii : float32 array of shape (m,)
        What the transform of a padded point is multiplied by to give turns.
    """

    d: int
    signs: Float32Array
    radii: Float32Array

    @property
    def size(self) -> int:
        """D, the dimension after padding."""
        return int(self.signs.shape[-1])

    @cached_property
    def largest(self) -> float:
        """Length in turns of the longest padded frequency."""
        return float(self.radii.astype(np.float64).max() * self.size * math.sqrt(self.size))

    @cached_property
    def turns(self) -> Float32Array:
        """The frequencies written out, shape (d, m): for decoders, O(m d) memory."""
        identity = np.eye(self.d, self.size)
        blocks = []
        for of_block in self.signs.astype(np.float64):
            y = identity
            for sign in of_block:
                y = _hadamard(y * sign)
            blocks.append(y)
        turns = np.concatenate(blocks, axis=1)[:, : len(self.radii)] * self.radii
        return turns.astype(np.float32)

    def to_bytes(self) -> bytes:
        """Signs as bytes 0 (+1) or 1 (-1), then radii, little-endian."""
        return (self.signs < 0).tobytes() + np.ascontiguousarray(self.radii, dtype="<f4").tobytes()


def _hadamard(y: FloatArray) -> FloatArray:
    """Walsh-Hadamard transform of the rows, unnormalised: sums of integers, so exact."""
    stride = 1
    while stride < y.shape[1]:
        pairs = y.reshape(len(y), -1, 2, stride)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        y = np.stack([a + b, a - b], axis=2).reshape(y.shape)
        stride *= 2
    return y
