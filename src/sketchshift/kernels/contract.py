"""What a kernel computes, to the bit where the sketch needs it to the bit.

A kernel takes arrays and gives arrays; it knows no noun of the library. Several kernels
may run the same sketch on different hardware, so the exact ones (``normalise``, the
accumulators, ``moments``, ``cells``) are defined as a sequence of IEEE operations, here and in
``docs/format.md``. The decoding ones (``correlate``, ``matcher``, ``features``,
``correlation``, ``hessian``) need not agree to the bit.

Symbols
-------
n, d, m   rows, columns, frequencies
J, G      cells, groups of cells
turns     frequencies divided by 2 pi, float32, shape (d, m): t = <x', turns> is in turns
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sketchshift._typing import (
    ComplexArray,
    Digits,
    Float32Array,
    FloatArray,
    IntArray,
    RealArray,
)

__all__ = [
    "BITS",
    "CELL_BITS",
    "CELL_REACH",
    "CELL_ROWS",
    "CELL_WEIGHT_BITS",
    "COSINE",
    "G1",
    "G2",
    "LIMB_BITS",
    "MOMENT_BITS",
    "MOMENT_ROWS",
    "PHASE_LIMIT",
    "ROUND_TO_HALF_TURNS",
    "ROUND_TO_INTEGERS",
    "SINE",
    "SQUARE_BITS",
    "WIDE_CELL_BITS",
    "Accumulator",
    "CellAccumulator",
    "Centers",
    "Kernel",
    "LeftOut",
    "Matcher",
    "Runs",
]

BITS = 22
"""A cosine of 1 with weight 1 adds the integer 2**BITS."""

SINE = np.float32(2.0**BITS) * np.array(
    [
        6.283185005187988,
        -41.34165573120117,
        81.60100555419922,
        -76.5497817993164,
        39.536705017089844,
    ],
    dtype=np.float32,
)
"""2**BITS sin(2 pi r) = r S(r^2) for |r| <= 1/4, lowest degree first, error 0.7 units."""

COSINE = np.float32(2.0**BITS) * np.array(
    [
        1,
        -19.739208221435547,
        64.9393539428711,
        -85.45382690429688,
        60.1482048034668,
        -25.00679588317871,
    ],
    dtype=np.float32,
)
"""2**BITS cos(2 pi r) = C(r^2) for |r| <= 1/4, lowest degree first, error 0.5 units."""

ROUND_TO_HALF_TURNS = 1.5 * 2.0**22
"""A float32 beside this number has a last bit worth half a turn."""

ROUND_TO_INTEGERS = 1.5 * 2.0**23
"""A float32 beside this number has a last bit worth one: adding it rounds to integers."""

PHASE_LIMIT = 2.0**20
"""Turns beyond which the range reduction would lose its exactness (2**21) are refused."""

MOMENT_BITS = 16
"""Moments are sums of rint(2**MOMENT_BITS x'/unit), unit a power of two, and of their rests."""

LIMB_BITS = 20
"""Bits between the limbs in which a kernel returns moments."""

MOMENT_ROWS = 2**18
"""Rows whose moments may be taken in one call without overflow of a limb."""

CELL_BITS = 20
"""Cells sum rint(2**CELL_BITS (x' - c) / unit), unit a power of two, and the squares of these."""

WIDE_CELL_BITS = 15
"""Where cells have axes, the farthest row of a cell is 2**WIDE_CELL_BITS steps from its center."""

CELL_REACH = 2.0**11
"""Rows and centers must be nearer to 0 than this times the unit: a square then fits 64 bits."""

CELL_WEIGHT_BITS = 32
"""A row of weight 1 adds the integer 2**CELL_WEIGHT_BITS to the weight of its cell."""

SQUARE_BITS = 32
"""Bits of the lower limb in which a kernel sums the squares of cells."""

CELL_ROWS = 2**29
"""Rows that may be added to the totals of cells without overflow."""

G2 = 17592194356560
"""Largest a^2 + b^2 a row of weight 1 adds at one frequency, over all float32 residues."""

G1 = 5931642
"""Largest abs(a) + abs(b), likewise; both are recomputed by ``make test-slow``."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows that follow each other, and where their sums go.

    Attributes
    ----------
    starts : int64 array of shape (R + 1,)
        First row of each run, and the number of rows.
    slots : int64 array of shape (R,)
        Which of several totals a run adds to; ascending, each once.
    """

    starts: IntArray
    slots: IntArray

    @classmethod
    def of(cls, slots: IntArray) -> Runs:
        """Find the runs of rows by the ascending slot (n,) of each row."""
        n = len(slots)
        if not n or slots[0] == slots[-1]:
            return cls(np.array([0, n], dtype=np.int64), slots[:1] if n else np.zeros(1, np.int64))
        firsts = np.concatenate([[0], np.flatnonzero(slots[1:] != slots[:-1]) + 1])
        return cls(np.append(firsts, n), slots[firsts])

    @classmethod
    def one(cls, n: int) -> Runs:
        """A single run of n rows."""
        return cls(np.array([0, n], dtype=np.int64), np.zeros(1, dtype=np.int64))

    def __iter__(self) -> Iterator[tuple[slice, int]]:
        """The rows of each run, and its slot."""
        ends = self.starts.tolist()
        for i, slot in enumerate(self.slots.tolist()):
            yield slice(ends[i], ends[i + 1]), slot

    @property
    def lengths(self) -> IntArray:
        """Number of rows of each run."""
        return np.diff(self.starts)


class Accumulator(Protocol):
    """Sums of the cosines and sines of rows at frequencies packed beforehand."""

    def __call__(
        self,
        rows: RealArray,
        weights: Float32Array,
        totals: IntArray,
        runs: Runs | None = None,
    ) -> None:
        """Add the integers of every row to the totals.

        Parameters
        ----------
        rows : array of shape (n, d), float32 or float64
            IN. Normalised rows, |<x', turns>| below ``PHASE_LIMIT``. The dtype is the
            precision of the phases.
        weights : float32 array of shape (n,)
            IN. In [0, 1].
        totals : int64 array of shape (2, m), with runs (slots, 2, m)
            IN/OUT. Cosines, then sines, in units of 2**-BITS.
        runs : Runs or None
            IN. Which of the totals each row adds to.
        """
        ...


@dataclass(frozen=True, eq=False)
class Centers:
    """The centers of cells, in groups: a row looks for the nearest one in a few groups only.

    Attributes
    ----------
    centers : float32 array of shape (J, d)
        In the units of x', group after group.
    starts : int64 array of shape (G + 1,)
        Where each group begins, and J.
    middles : float32 array of shape (G, d)
        What stands for each group while groups are chosen.
    probes : int
        How many groups a row looks into: those whose middles are nearest.
    unit : float
        A power of two: see ``CELL_BITS``.
    limit : float
        Squared distance to the nearest center beyond which a row is in no cell; rounded to float32.
    axes : float32 array of shape (p, d) or None
        Directions along which squares are summed, beside those of the length; None sums those of
        every column.
    """

    centers: Float32Array
    starts: IntArray
    middles: Float32Array
    probes: int = 1
    unit: float = 1.0
    limit: float = math.inf
    axes: Float32Array | None = None

    @property
    def per_unit(self) -> float:
        """Steps in a unit of the normalised rows: a power of two."""
        if self.axes is None:
            return 2.0**CELL_BITS / self.unit
        farthest = min(math.sqrt(self.limit), 2.0 * CELL_REACH * self.unit)
        return math.ldexp(1.0, WIDE_CELL_BITS - math.frexp(1.001 * farthest)[1])

    @property
    def width(self) -> int:
        """Number of totals of a cell."""
        d = int(self.centers.shape[1])
        return 1 + 3 * d if self.axes is None else 2 + d + len(self.axes)

    @classmethod
    def in_one_group(cls, centers: Float32Array, unit: float = 1.0) -> Centers:
        """Centers among which a row looks for the nearest of all."""
        starts = np.array([0, len(centers)], dtype=np.int64)
        return cls(centers, starts, centers[:1], 1, unit)


LeftOut = tuple[IntArray, IntArray]
"""Rows that are in no cell, and their nearest centers."""


class CellAccumulator(Protocol):
    """Cells packed beforehand: the nearest center of a row, and what it adds there."""

    def nearest(self, rows: Float32Array) -> tuple[IntArray, Float32Array]:
        """Index of the nearest center of each row (n, d), and the squared distance, both (n,).

        The squared distance is the sum over the columns, from the first, of the fused multiply-adds
        e e + s of e = x - c, all in float32. Of equal distances the first counts, among groups and
        among centers.
        """
        ...

    def add(
        self,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        totals: IntArray,
    ) -> LeftOut | None:
        """Add every row to its cell, the nearest one to the row rounded to float32.

        With f the factor of a row (None: 1), e = x' - c in float64 and K = 2**CELL_BITS / unit, it
        adds rint(2**CELL_WEIGHT_BITS f), then rint((f e) K) for each column, then the square of
        rint((sqrt(f) e) K): first its lower SQUARE_BITS bits, then the others.

        With axes, K is such that all fits 16 bits (``Centers.per_unit``). A row then adds
        rint(2**BITS f), rint((f e) K) for each column, the sum of the squares of all
        rint((sqrt(f) e) K), and for each axis the square of rint((sqrt(f) (y - g)) K), with y the
        coordinate of the row and g that of the center.

        Parameters
        ----------
        rows : array of shape (n, d)
            IN. Normalised rows, their norms below CELL_REACH times the unit.
        coordinates : array of shape (n, p)
            IN. What :meth:`Kernel.project` gives of them; not looked at without axes.
        factors : array of shape (n,) or None
            IN. In [0, 1].
        totals : int64 array of shape (J, 1 + 3 d), with axes (J, 2 + d + p)
            IN/OUT. Without axes, of at most CELL_ROWS rows in all. On the host, or what
            :meth:`Kernel.zeros` gave.

        Returns
        -------
        left_out : pair of int arrays of shape (l,), or None
            Indices of the rows that were not added, since they are farther than the limit, and
            their nearest centers; None if there are none.
        """
        ...

    def sum_at(
        self,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        labels: IntArray,
        places: IntArray,
        totals: IntArray,
    ) -> None:
        """Add every row to one of the totals, as :meth:`add` adds it to its cell.

        Parameters
        ----------
        rows, coordinates, factors
            As in :meth:`add`, on the host.
        labels, places : int arrays of shape (n,)
            IN. The cell of each row, and which of the totals it adds to.
        totals : int64 array of shape (places, width)
            IN/OUT.
        """
        ...


class Matcher(Protocol):
    """The misfit of Gaussians with diagonal covariances to a vector, at given frequencies."""

    def __call__(
        self, alpha: FloatArray, C: FloatArray, variances: FloatArray | None
    ) -> tuple[float, FloatArray]:
        r"""Value and the sums that its gradient is made of.

        With :math:`\psi_{ij} = e^{2 \pi \mathrm i \langle c_i, t_j \rangle
        - 2 \pi^2 \sum_l v_{il} t_{jl}^2}`, :math:`r = z - \sum_i \alpha_i \psi_i` and
        :math:`b_{ij} = w_j \bar r_j \psi_{ij}`: the value :math:`\sum_j w_j |r_j|^2`, and for
        each i the sums over j of Re b, then of t_jl Im b, then of t_jl^2 Re b, for all l.

        Parameters
        ----------
        alpha : array of shape (T,)
            IN. Weights.
        C : array of shape (T, d)
            IN. Centers.
        variances : array of shape (T, d) or None
            IN. The v_il; None for Diracs.

        Returns
        -------
        value : float
            About 1e-7 of the sum of w_j |z_j|^2 off.
        sums : array of shape (T, 1 + 2 d)
            As said, in the order said.
        """
        ...

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
        """Lower the value, plus ``strength`` times the penalty of wrong moments.

        Parameters
        ----------
        alpha, C, S : arrays of shapes (T,), (T, d), (T, d)
            IN. Weights, centers and standard deviations to start from.
        mean, covariance : arrays of shapes (d,), (d, d)
            IN. Moments to match; entries of the covariance that are NaN are not known.
        strength : float
            IN. Of the penalty that :func:`~sketchshift.kernels.reference.moment_penalty` defines.
        iterations : int
            IN. At most.
        floor : float
            IN. Stop as soon as the value is not above it: what is left is noise.

        Returns
        -------
        value : float
            What was reached.
        alpha, C, S : arrays
            Where; weights and standard deviations are not negative.
        """
        ...


class Kernel(Protocol):
    """The few functions in which all time is spent."""

    name: str
    chunk: int
    """Numbers of rows to hand over at a time: enough to fill the hardware, and to stay in cache."""

    def empty(self, shape: tuple[int, ...]) -> FloatArray:
        """A float64 array for normalised rows or their norms, where this kernel computes."""
        ...

    def zeros(self, shape: tuple[int, ...]) -> IntArray:
        """An int64 array of zeros for totals, where this kernel computes."""
        ...

    def on_host(self, array: Any) -> Any:
        """The same numbers as a NumPy array."""
        ...

    def normalise(
        self,
        X: RealArray,
        center: FloatArray,
        per_unit: FloatArray,
        rows: FloatArray,
        squared_norms: FloatArray,
    ) -> None:
        """Rows x' = (x - center) per_unit and their squared norms, summed from the first column.

        ``X`` is IN (n, d), float32 or float64 in C order; ``rows`` (n, d) and
        ``squared_norms`` (n,) are OUT. All operations are in float64.
        """
        ...

    def project(self, rows: FloatArray, axes: Float32Array) -> FloatArray:
        """Coordinates of rows (n, d) along axes (p, d): shape (n, p).

        The sum over the columns, from the first, of the fused multiply-adds x a + s in float64.
        """
        ...

    def dense(self, turns: Float32Array) -> Accumulator:
        """Accumulator for frequencies given one by one: O(d) operations each."""
        ...

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """Accumulator for the blocks S H D1 H D2 H D3: O(log d) operations a frequency.

        ``signs`` has shape (blocks, 3, D), +1 or -1, D a power of two and at least d, in
        the order applied (D3 first). The butterflies of the three transforms go through the
        strides 1 to D / 2, back from D / 2 to 1, and up again. ``radii`` has shape (m,), and
        frequency j is row j modulo D of block j // D, times its radius.
        """
        ...

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
        """Add first and second moments of rows as integers, in three limbs.

        With f a row's factor (None: 1), v = K (f x') and K = 2**MOMENT_BITS / unit, the sums
        of rint(v); of the rests rint(2**LIMB_BITS (v - rint(v))); and of the products of the
        rint(K (sqrt(f) x')): the upper triangle row by row, or the squares alone unless
        ``full``. They add to ``limbs``, int64 of shape (slots, 3, number of sums), where the runs
        say; limb i counts 2**(LIMB_BITS i). At most ``MOMENT_ROWS`` rows in all.
        """
        ...

    def distances(self, rows: Float32Array) -> Callable[[Float32Array], Float32Array]:
        """What gives squared distances of points (L, d) to rows (n, d), as for cells: (L, n)."""
        ...

    def cells(self, centers: Centers) -> CellAccumulator:
        """Accumulator for cells: O(J d) operations a row, or less where they are in groups."""
        ...

    def central(
        self,
        products: Digits,
        weights: Digits | None = None,
        left: Digits | None = None,
        right: Digits | None = None,
        bits: int = 0,
    ) -> FloatArray:
        r"""Central moments of integers, each rounded once to the nearest float64, or the even one.

        .. math:: \frac{W P - 2^b \sum_k L_k R_k}{W^2}

        An integer is the sum of its n digits d_i, from -2**31 to 2**31 - 1 each, times 2**(32 i):
        of two below 2**63, or four below 2**127. That of 2**b sum_k L_k R_k is below 2**384.

        Parameters
        ----------
        products : int32 array of shape (G, E, n)
            IN. P.
        weights : int32 array of shape (G, n) or None
            IN. W, which counts as 1 where it is less; None: 1.
        left, right : int32 arrays of shape (G, E, r, n) or None
            IN. L and R; None: P / W.
        bits : int
            IN. b, from 0 to 64.

        Returns
        -------
        moments : array of shape (G, E)
            O(G E r).
        """
        ...

    def correlate(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[RealArray, RealArray]:
        """Parts of conj(r_j) e^{i theta_lj}: the real part, and minus the imaginary one.

        ``theta_lj = 2 pi <c_l, turns_j>`` for points of shape (L, d); both results have
        shape (L, m). Not exact: about 1e-6 for phases of a few turns.
        """
        ...

    def matcher(self, turns: Float32Array, z: ComplexArray, weights: FloatArray) -> Matcher:
        """The misfit to z, shape (m,), at frequencies ``turns`` with weights w, shape (m,)."""
        ...

    def features(self, points: FloatArray, turns: Float32Array) -> ComplexArray:
        """Features e^{i theta} / sqrt(m) of points (L, d): shape (L, m)."""
        ...

    def correlation(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[FloatArray, FloatArray]:
        """The correlation function f_r at points (L, d), shape (L,), and its gradients (L, d)."""
        ...

    def hessian(self, points: FloatArray, turns: Float32Array, residual: RealArray) -> FloatArray:
        """Second derivatives of f_r at points (L, d): shape (L, d, d)."""
        ...
