"""Frequencies omega_1 ... omega_m: the laws they are drawn from.

Takes numbers from ``stream``; hands :class:`Frequencies` to ``sketch`` and ``decoders``.
The law sets the length of a frequency, the bandwidth its scale: omega = R phi / bandwidth,
with a direction phi uniform on the sphere.

Symbols
-------
d, m      dimension of a point, sketch size
turns     frequencies divided by 2 pi, rounded to float32, shape (d, m)
R         length of a frequency at bandwidth 1
p, q      densities of omega at bandwidth 1: of the Gaussian law, of the law it is drawn from
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import Float32Array, FloatArray
from sketchshift._validation import frozen, parameter_error
from sketchshift.features.stream import Purpose, exponential, logarithm, normals, uniforms
from sketchshift.features.stream import signs as draw_random_signs

__all__ = [
    "FAR",
    "LAWS",
    "MIN_FEATURES",
    "Frequencies",
    "Structure",
    "draw_frequencies",
    "draw_signs",
    "padded_size",
    "parse_law",
    "register_law",
]

# Structured frequencies: blocks S H D1 H D2 H D3 instead of independent directions.
#
# H is the Walsh-Hadamard matrix of the next power of two D, the D's are random signs, S the
# radii of the law. A block gives D frequencies for O(D log D) operations instead of O(D^2).
# Points are padded with zeros, so a frequency is the first d coordinates of a row of length
# R sqrt(D / d): of length R in the mean (exactly R when d is a power of two).

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

    def __post_init__(self) -> None:
        frozen(self.signs)
        frozen(self.radii)

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
        return frozen(turns.astype(np.float32))

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


FAR = 100.0
"""Bandwidths beyond the range reach up to FAR times its upper end."""

_BLOCK = 1 << 20  # random numbers held at a time
_MAX_TRIES = 64  # a radius is refused with probability below 0.03 each time
Radius = Callable[..., "FloatArray | tuple[FloatArray, FloatArray]"]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequencies as the kernels want them.

    Attributes
    ----------
    dense : float32 array of shape (d, m) or None
        The frequencies in turns, when they were drawn one by one.
    structure : Structure or None
        Signs and radii, when they come in fast blocks.
    weights : array of shape (m,) or None
        What each counts in a mean over the frequencies, 1 in expectation: sums so weighted have
        the kernel of the Gaussian law. None: all 1.
    """

    dense: Float32Array | None
    structure: Structure | None
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        for array in (self.dense, self.weights):
            if array is not None:
                frozen(array)

    @cached_property
    def turns(self) -> Float32Array:
        """Frequencies divided by 2 pi, shape (d, m); structured ones are written out, O(m d)."""
        if self.structure is not None:
            return self.structure.turns
        assert self.dense is not None
        return self.dense

    @cached_property
    def largest(self) -> float:
        """Length in turns of the longest frequency: |<x', turns>| <= largest |x'|."""
        if self.structure is not None:
            return self.structure.largest
        return float(_norms(self.turns.T.astype(np.float64)).max())

    def to_bytes(self) -> bytes:
        """What the fingerprint covers: the numbers of each frequency in turn, little-endian."""
        if self.structure is not None:
            return self.structure.to_bytes()
        return np.ascontiguousarray(self.turns.T, dtype="<f4").tobytes()


def _norms(g: FloatArray) -> FloatArray:
    """Lengths of the rows, summed in the order of the columns."""
    total = np.zeros(len(g))
    for column in g.T:
        total = total + column * column
    return np.sqrt(total)


def _gaussian_radius(seed: int, j: NDArray[Any], g: FloatArray) -> FloatArray:
    """R of omega ~ N(0, I_d): the paper's law."""
    return _norms(g)


def _folded_radius(seed: int, j: NDArray[Any], g: FloatArray) -> FloatArray:
    """R = abs(N(0, 1)), whatever the dimension."""
    return np.abs(normals(seed, j, g.shape[1] + 1)[:, -1])


def _adapted_radius(seed: int, j: NDArray[Any], g: FloatArray) -> FloatArray:
    r"""R with density proportional to :math:`\sqrt{R^2 + R^4/4}\, e^{-R^2/2}`.

    By rejection from R (1 + R^2/8) e^{-R^2/2}, a mixture of chi laws with 2 and 4 degrees of
    freedom in proportions 4 : 1. Try i uses the numbers 4 i to 4 i + 3 of the frequency.
    """
    u = uniforms(seed, Purpose.RADIUS, j, 4 * _MAX_TRIES).reshape(len(j), _MAX_TRIES, 4)
    minus_log = -logarithm(u[..., :2])
    half_square = minus_log[..., 0] + np.where(u[..., 2] < 0.2, minus_log[..., 1], 0.0)
    accepted = u[..., 3] * (1.0 + 0.25 * half_square) < np.sqrt(1.0 + 0.5 * half_square)
    first = np.argmax(accepted, axis=1)  # 0 where none is: probability 1e-100
    radius: FloatArray = np.sqrt(2.0 * half_square[np.arange(len(j)), first])
    return radius


LAWS: dict[str, Radius] = {
    "gaussian": _gaussian_radius,
    "folded_gaussian": _folded_radius,
    "adapted_radius": _adapted_radius,
}
"""Laws of the length R of a frequency, by name: see :func:`register_law`."""


def parse_law(law: Any) -> tuple[Radius, tuple[float, ...]]:
    """Return the function of a law, and the parameters that stand in brackets behind its name."""
    match = re.fullmatch(r"(\w+)(?:\(([^()]+)\))?", law) if isinstance(law, str) else None
    if match is None or match[1] not in LAWS:
        must = (
            f"one of {', '.join(map(repr, LAWS))}, or the name of a law that was registered "
            "(features.register_law)"
        )
        raise parameter_error("SketchSpec", "law", must, law)
    try:
        return LAWS[match[1]], tuple(map(float, match[2].split(",") if match[2] else ()))
    except ValueError:
        must = f"a law with numbers in brackets, such as '{match[1]}(2.5)'"
        raise parameter_error("SketchSpec", "law", must, law) from None


def register_law(name: str, radius: Radius) -> None:
    """Add a law of the lengths of frequencies, for ``SketchSpec(law=name)``.

    A plan and a sketch know their law by its name: whoever reads them must have registered it.

    Parameters
    ----------
    name : str
        One that no law has yet: a law that changes makes other sketches.
    radius : callable
        Called as ``radius(seed, j, g, *parameters)``, with the numbers j of some frequencies,
        normal numbers g, of shape (len(j), d), that point in their directions, and the parameters
        in brackets behind the name. It returns their lengths R at bandwidth 1, of shape (len(j),),
        which must depend on these alone: numbers come from ``features.stream``, not from a
        generator that goes on from call to call. A law that draws other lengths than the Gaussian
        law returns lengths and weights, p / q, with which sums have the Gaussian kernel.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> ss.features.register_law("unit", lambda seed, j, g: np.ones(len(j)))  # doctest: +SKIP
    >>> spec = ss.SketchSpec(2, 100, bandwidth=0.5, law="unit")  # doctest: +SKIP
    """
    if not isinstance(name, str) or name in LAWS:
        raise parameter_error("register_law", "name", "a name that no law has yet", name)
    if not callable(radius):
        raise parameter_error("register_law", "radius", "a function of seed, j and g", radius)
    LAWS[name] = radius


def _bandwidths(
    seed: int, j: NDArray[Any], bandwidth: tuple[float, float], beyond: float
) -> FloatArray:
    """The bandwidth of each frequency: one for all, or log-uniform in a range."""
    if bandwidth[0] == bandwidth[1]:
        return np.full(len(j), bandwidth[0])
    log_low, log_high = (float(logarithm(np.array([end]))[0]) for end in bandwidth)
    log_far = float(logarithm(np.array([FAR]))[0])
    u = uniforms(seed, Purpose.BANDWIDTH, j, 2)
    near = log_low + u[:, 0] * (log_high - log_low)
    far = log_high + u[:, 0] * log_far
    return exponential(np.where(u[:, 1] < beyond, far, near))


def draw_frequencies(
    d: int,
    m: int,
    bandwidth: tuple[float, float],
    *,
    law: str = "gaussian",
    seed: int = 0,
    structured: bool = False,
    beyond: float = 0.0,
) -> Frequencies:
    """Draw m frequencies in dimension d; the first ones do not depend on m.

    Parameters
    ----------
    d, m : int
        Dimension, number of frequencies.
    bandwidth : pair of float
        Ends of the range in which each frequency has its own, log-uniform; both the same for one.
    law : str
        Law of the length of a frequency at bandwidth 1: see :func:`parse_law`.
    seed : int
        From 0 to 2**64 - 1.
    structured : bool
        Directions from products of Hadamard matrices and signs, with the same lengths.
    beyond : float
        With a range: the share of frequencies whose bandwidth lies beyond its upper end, up
        to ``FAR`` times.

    Returns
    -------
    frequencies : Frequencies
        In float32. O(m d) time, of which most goes into normal numbers.
    """
    radius, parameters = parse_law(law)
    weights: list[FloatArray] = []
    turns = None if structured else np.empty((d, m), dtype=np.float32)
    radii = np.empty(m)
    step = max(1, _BLOCK // max(d, 4 * _MAX_TRIES))
    for first in range(0, m, step):
        j = np.arange(first, min(first + step, m))
        g = normals(seed, j, d)
        per_turn = 1.0 / (2.0 * math.pi * _bandwidths(seed, j, bandwidth, beyond))
        lengths = radius(seed, j, g, *parameters)
        if isinstance(lengths, tuple):
            weights.append(lengths[1])
            lengths = lengths[0]
        radii[j] = lengths * per_turn
        if turns is not None:
            factor = per_turn if law == "gaussian" else radii[j] / _norms(g)
            turns[:, j] = (g * factor[:, None]).T
    of_law = np.concatenate(weights) if weights else None
    if turns is not None:
        return Frequencies(turns, None, of_law)
    size = padded_size(d)
    signs = draw_signs(seed, n_blocks=-(-m // size), size=size)
    scaled = radii * math.sqrt(size / d) / (size * math.sqrt(size))
    return Frequencies(None, Structure(d, signs, scaled.astype(np.float32)), of_law)
