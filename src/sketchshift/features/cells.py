"""Cells: centers that share out the rows, and how a plan finds them.

A row belongs to the cell of its nearest center and adds there its weight, its offset and its
squared offset, in integers. Waves see what the plan has not seen; cells see exactly what it has.

Symbols
-------
n, d      rows of the sample, columns
J, G      cells, groups of cells
"""

from __future__ import annotations

import base64
import binascii
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchshift._typing import Float32Array, FloatArray
from sketchshift._validation import check_integer, check_number, parameter_error
from sketchshift.features.stream import Purpose, uniforms
from sketchshift.kernels import (
    CELL_BITS,
    CELL_REACH,
    CELL_WEIGHT_BITS,
    Centers,
    select_kernel,
)

__all__ = ["MAX_CELLS", "ROWS_PER_CELL", "Cells", "n_cells_for", "plan_cells"]

MAX_CELLS = 2**20
OUTSIDE = 12.0  # root mean squared distances from its center, beyond which a row is in no cell
_CALLER = "Cells"


@dataclass(frozen=True)
class Cells:
    """Centers in normalised coordinates: rows are counted, and summed, by the nearest one.

    Parameters
    ----------
    centers : bytes
        Of the centers, float32 and little endian, shape (J, d), group after group: see :meth:`of`.
    n_features : int
        Dimension d.
    starts : sequence of int
        Where each group begins; (0,) for one group. A row looks for its center in the groups whose
        means are nearest to it, so that J may be large.
    probes : int, default=1
        In how many groups.
    unit : float, default=1
        A power of two: offsets are integers in steps of unit / 2**20, and rows lie within 2**11
        units of 0.
    within : float, default=0
        Mean squared distance of the plan's rows to the means of their cells: what rows like these
        will have. Rows that have more are not like these.
    n_rows : int, default=0
        Number of rows that the plan saw.
    lower, upper : sequence of float
        Least and largest values of the columns in these rows, in the units of the data; empty if
        they are not known.

    Notes
    -----
    O((G + probes J / G) d) operations a row, and J (1 + 2 d) integers in a sketch.
    """

    centers: bytes
    n_features: int
    starts: tuple[int, ...] = (0,)
    probes: int = 1
    unit: float = 1.0
    within: float = 0.0
    n_rows: int = 0
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        d = check_integer(_CALLER, "n_features", self.n_features, 1, 2**20)
        if not isinstance(self.centers, bytes):
            raise parameter_error(_CALLER, "centers", "bytes (see Cells.of)", self.centers)
        unit = check_number(_CALLER, "unit", self.unit, low=2.0**-500, high=2.0**500)
        if math.frexp(unit)[0] != 0.5:
            raise parameter_error(_CALLER, "unit", "a power of two", self.unit)
        within = check_number(_CALLER, "within", self.within, low=0.0, high=1e300)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "within", within)
        check_integer(_CALLER, "n_rows", self.n_rows, 0, 2**62)
        self._check_range(d)
        J, rest = divmod(len(self.centers), 4 * d)
        if rest or not 1 <= J <= MAX_CELLS:
            must = f"{4 * d} bytes for each of 1 to {MAX_CELLS} cells"
            raise parameter_error(_CALLER, "centers", must, f"{len(self.centers)} bytes")
        self._check_groups(J)
        largest = np.linalg.norm(self.table.astype(np.float64), axis=1).max()
        if not largest <= CELL_REACH * unit / 2.0:
            must = f"within {CELL_REACH * unit / 2.0:g} of 0"
            raise parameter_error(_CALLER, "centers", must, f"one at {largest:g}")

    @classmethod
    def of(
        cls, centers: Any, starts: Sequence[int] = (0,), probes: int = 1, unit: float = 1.0
    ) -> Cells:
        """Cells around the rows of an array.

        Parameters
        ----------
        centers : array of shape (J, d)
            Rounded to float32, which is what rows are compared with.
        starts, probes, unit
            See :class:`Cells`.

        Returns
        -------
        cells : Cells
            Their centers in the order given.
        """
        values = np.asarray(centers, dtype="<f4")
        if values.ndim != 2 or not values.size:
            raise parameter_error("Cells.of", "centers", "an array of shape (cells, d)", centers)
        values = values + np.float32(0.0)  # -0.0, equal to 0.0, is written as it
        return cls(values.tobytes(), values.shape[1], tuple(starts), probes, unit)

    def _check_range(self, d: int) -> None:
        for name in ("lower", "upper"):
            values = tuple(getattr(self, name))
            if len(values) not in (0, d) or not all(type(x) is float for x in values):
                must = f"{d} numbers, or none"
                raise parameter_error(_CALLER, name, must, getattr(self, name))
            object.__setattr__(self, name, values)
        is_sound = len(self.lower) == len(self.upper) and all(
            -math.inf < low <= high < math.inf
            for low, high in zip(self.lower, self.upper, strict=False)
        )
        if not is_sound:
            raise parameter_error(_CALLER, "upper", "as many, and not below lower", self.upper)

    def _check_groups(self, J: int) -> None:
        starts = tuple(self.starts)
        is_sound = all(type(start) is int for start in starts) and starts[:1] == (0,)
        if not is_sound or any(a >= b for a, b in itertools.pairwise((*starts, J))):
            raise parameter_error(_CALLER, "starts", f"rising from 0 to below {J}", self.starts)
        object.__setattr__(self, "starts", starts)
        check_integer(_CALLER, "probes", self.probes, 1, min(len(starts), 16))

    def __repr__(self) -> str:
        return f"<{self.n_cells:,} cells of {self.n_features} columns from {self.n_rows:,} rows>"

    @property
    def n_cells(self) -> int:
        """Number J of cells."""
        return len(self.centers) // (4 * self.n_features)

    @cached_property
    def table(self) -> Float32Array:
        """The centers, shape (J, d)."""
        return np.frombuffer(self.centers, dtype="<f4").reshape(-1, self.n_features)

    @cached_property
    def groups(self) -> Centers:
        """What a kernel needs: a group's middle is the mean of its centers, rounded once."""
        starts = np.array([*self.starts, self.n_cells], dtype=np.int64)
        middles = [
            [math.fsum(column) / len(group) for column in group.T.astype(np.float64)]
            for group in np.split(self.table, self.starts[1:])
        ]
        return Centers(
            np.ascontiguousarray(self.table, dtype=np.float32),
            starts,
            np.array(middles, dtype=np.float32),
            self.probes,
            self.unit,
            self.limit,
        )

    @property
    def limit(self) -> float:
        """Squared distance from which on a row is in no cell, but in a shell around its center."""
        return OUTSIDE**2 * self.within or math.inf

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the centers in base64, what has its default left out."""
        content: dict[str, Any] = {"centers": base64.b64encode(self.centers).decode("ascii")}
        defaults: dict[str, Any] = {"probes": 1, "starts": (0,), "unit": 1.0, "within": 0.0}
        defaults |= {"n_rows": 0, "lower": (), "upper": ()}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                content[name] = getattr(self, name)
        return content

    @classmethod
    def from_dict(cls, content: Any, n_features: int) -> Cells:
        """What :meth:`to_dict` gave as ``content``, for rows of ``n_features`` columns."""
        names = {field.name for field in fields(cls)} - {"n_features"}
        if not isinstance(content, Mapping) or not {"centers"} <= set(content) <= names:
            must = f"an object with centers and perhaps {', '.join(sorted(names - {'centers'}))}"
            raise parameter_error(_CALLER, "content", must, content)
        found = dict(content)
        try:
            found["centers"] = base64.b64decode(found["centers"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            must = "numbers in base64"
            raise parameter_error(_CALLER, "centers", must, found["centers"]) from None
        for name in ("starts", "lower", "upper"):
            if not isinstance(found.get(name, []), list):
                raise parameter_error(_CALLER, name, "a list", found[name])
        return cls(n_features=n_features, **found)


# Centers from a sample: seeds drawn by their squared distance to earlier ones, which reaches into
# tails, and a few steps of Lloyd's algorithm. Distances and sums are those of the kernels, exact,
# so that a plan is the same to the bit on every machine.

LLOYD_STEPS = 10
CANDIDATES = 3  # for each seed
MARGIN = 30.0  # rows beyond this many times the farthest of the sample are far
SHARE_OF_CELLS = 0.65  # of the numbers, after a plan that saw all there is
SHARE_WHEN_WIDE = 0.9
FEW_CELLS = 4  # for each cluster
HALF_SEEN = 700  # rows after which half of that
ROWS_PER_CELL = 20  # of the sample, at least
SEED_WORK = 2**27  # distances for the seeds, about: of many cells a part of the sample is asked
MOST_IN_ONE_GROUP = 256
PROBES = 2


def n_cells_for(numbers: int, n_rows: int, d: int, n_clusters: int) -> int:
    """How many cells a sketch of so many numbers has, after a plan on ``n_rows`` rows.

    Cells hold what the plan has seen, waves the rest: the share of cells grows with what was seen.
    Where numbers are few, a few cells for each cluster come first. From 30 columns on waves see
    little, and cells have nearly all.
    """
    most = numbers * n_rows // (n_rows + HALF_SEEN) // (1 + 2 * d)
    usual = SHARE_OF_CELLS if d <= 30 else SHARE_WHEN_WIDE
    wanted = max(int(usual * most), min(most, FEW_CELLS * n_clusters))
    return min(wanted, n_rows // ROWS_PER_CELL, MAX_CELLS)


def plan_cells(
    rows: FloatArray, n_cells: int, *, weights: FloatArray | None = None, seed: int = 0
) -> Cells:
    """Cells for data that looks like these rows.

    Parameters
    ----------
    rows : array of shape (n, d)
        Normalised rows of the sample, in an order that does not depend on the data's.
    n_cells : int
        Number J; fewer are made of fewer different rows.
    weights : array of shape (n,), optional
        Positive weights of the rows.
    seed : int, default=0
        Of the seeds.

    Returns
    -------
    cells : Cells
        The same to the bit on every machine. O(n J d).
    """
    narrow = np.ascontiguousarray(rows, dtype=np.float32)
    shares = None if weights is None else weights / weights.max()
    unit = _unit_for(narrow)
    centers = _seed_centers(narrow, shares, n_cells, seed)
    for _ in range(LLOYD_STEPS):
        centers = _move_to_means(rows, shares, centers, unit)
    cells = Cells.of(centers, unit=unit)
    if len(centers) > MOST_IN_ONE_GROUP:
        centers, starts = _group(centers, seed)
        cells = Cells.of(centers, starts, PROBES, unit)
    _, squares = select_kernel().cells(cells.groups).nearest(narrow)
    within = float(np.average(squares.astype(np.float64), weights=shares))
    return replace(cells, within=float(f"{within:.6g}"), n_rows=len(rows))


def _unit_for(rows: Float32Array) -> float:
    """The least power of two that brings all within reach that is not far from these rows."""
    largest = math.sqrt(float(np.square(rows.astype(np.float64)).sum(axis=1).max()))
    return math.ldexp(1.0, math.frexp(max(MARGIN * largest, 1e-100) / CELL_REACH)[1])


def _seed_centers(
    rows: Float32Array, shares: FloatArray | None, n_cells: int, seed: int
) -> Float32Array:
    """Rows drawn by their squared distance to those drawn before; of a few the one that helps most.

    Greedy k-means++, as exact as the distances are.
    """
    step = max(1, len(rows) * n_cells // SEED_WORK)
    rows = np.ascontiguousarray(rows[::step])
    shares = np.ones(len(rows)) if shares is None else shares[::step]
    draws = uniforms(seed, Purpose.CELLS, np.arange(n_cells), CANDIDATES)
    to_rows, chosen = select_kernel().distances(rows), []
    nearest, totals = np.full(len(rows), np.inf, dtype=np.float32), np.cumsum(shares)
    for draw in draws:
        if not totals[-1] > 0.0:
            break
        at = np.searchsorted(totals, draw * totals[-1], "right")
        candidates = np.minimum(at, len(rows) - 1)
        closest = np.minimum(nearest, to_rows(rows[candidates]))
        sums = np.cumsum(shares * closest, axis=1)  # from the first to the last, on every machine
        best = int(sums[:, -1].argmin())
        nearest, totals = closest[best], sums[best]
        chosen.append(int(candidates[best]))
    return rows[chosen]


def _move_to_means(
    rows: FloatArray, shares: FloatArray | None, centers: Float32Array, unit: float
) -> Float32Array:
    """Each center at the mean of its rows; those without rows stay."""
    J, d = centers.shape
    totals = np.zeros((J, 1 + 3 * d), dtype=np.int64)
    select_kernel().cells(Centers.in_one_group(centers, unit)).add(rows, shares, totals)
    weights = np.maximum(totals[:, :1], 1) * 2.0**-CELL_WEIGHT_BITS
    offsets = totals[:, 1 : 1 + d] / weights * (unit * 2.0**-CELL_BITS)
    return np.asarray((centers + offsets).astype(np.float32))


def _group(centers: Float32Array, seed: int) -> tuple[Float32Array, tuple[int, ...]]:
    """The centers, those of a group beside each other, and where each group begins."""
    middles = _seed_centers(centers, None, math.isqrt(len(centers)), seed)
    unit = _unit_for(centers)
    for _ in range(LLOYD_STEPS):
        middles = _move_to_means(centers.astype(np.float64), None, middles, unit)
    labels, _ = select_kernel().cells(Centers.in_one_group(middles, unit)).nearest(centers)
    order = np.argsort(labels, kind="stable")
    _, starts = np.unique(labels[order], return_index=True)
    return centers[order], tuple(int(start) for start in starts)
