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

from sketchshift._typing import Float32Array, FloatArray, RealArray
from sketchshift._validation import check_flag, check_integer, check_number, parameter_error
from sketchshift.features.stream import Purpose, uniforms
from sketchshift.kernels import (
    CELL_BITS,
    CELL_REACH,
    CELL_WEIGHT_BITS,
    Centers,
    select_kernel,
)

__all__ = [
    "MAX_CELLS",
    "ROWS_PER_CELL",
    "WIDE_CELLS",
    "Axes",
    "Cells",
    "from_text",
    "n_cells_for",
    "n_wide_cells_for",
    "plan_axes",
    "plan_cells",
    "plan_wide_cells",
    "to_text",
]

MAX_CELLS = 2**20
MAX_AXES = 256
ROWS_FOR_AXES = 5_000
AXES_STEPS = 8
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
    middles : bytes, default=b""
        What stands for each group while groups are chosen, shape (G, d); if empty, the means of
        their centers.
    are_half : bool, default=False
        Whether centers and middles are float16, which takes half of the room in a plan.

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
    middles: bytes = b""
    are_half: bool = False

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
        check_flag(_CALLER, "are_half", self.are_half)
        self._check_range(d)
        J, rest = divmod(len(self.centers), self._dtype.itemsize * d)
        if rest or not 1 <= J <= MAX_CELLS:
            must = f"{self._dtype.itemsize * d} bytes for each of 1 to {MAX_CELLS} cells"
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
            object.__setattr__(self, name, tuple(x + 0.0 for x in values))
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
        n_bytes = self._dtype.itemsize * self.n_features * len(starts)
        if not isinstance(self.middles, bytes) or len(self.middles) not in (0, n_bytes):
            raise parameter_error(_CALLER, "middles", f"{n_bytes} bytes, or none", self.middles)
        if not np.isfinite(np.frombuffer(self.middles, dtype=self._dtype)).all():
            raise parameter_error(_CALLER, "middles", "finite numbers", "others")

    def __repr__(self) -> str:
        return f"<{self.n_cells:,} cells of {self.n_features} columns from {self.n_rows:,} rows>"

    @property
    def n_cells(self) -> int:
        """Number J of cells."""
        return len(self.centers) // (self._dtype.itemsize * self.n_features)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype("<f2" if self.are_half else "<f4")

    @cached_property
    def table(self) -> Float32Array:
        """The centers, shape (J, d)."""
        return self._read(self.centers)

    def _read(self, numbers: bytes) -> Float32Array:
        values = np.frombuffer(numbers, dtype=self._dtype).reshape(-1, self.n_features)
        return np.ascontiguousarray(values, dtype=np.float32)

    @cached_property
    def groups(self) -> Centers:
        """What a kernel needs."""
        return Centers(
            self.table,
            np.array([*self.starts, self.n_cells], dtype=np.int64),
            self._group_middles,
            self.probes,
            self.unit,
            self.limit,
        )

    @property
    def _group_middles(self) -> Float32Array:
        """Those given, or the means of the centers of each group, rounded once: (G, d)."""
        if self.middles:
            return self._read(self.middles)
        means = [
            [math.fsum(column) / len(group) for column in group.T.astype(np.float64)]
            for group in np.split(self.table, self.starts[1:])
        ]
        return np.array(means, dtype=np.float32)

    @property
    def limit(self) -> float:
        """Squared distance from which on a row is in no cell, but in a shell around its center."""
        return OUTSIDE**2 * self.within or math.inf

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the centers in base64, what has its default left out."""
        content: dict[str, Any] = {"centers": to_text(self.centers)}
        defaults: dict[str, Any] = {"probes": 1, "starts": (0,), "unit": 1.0, "within": 0.0}
        defaults |= {"n_rows": 0, "lower": (), "upper": (), "are_half": False}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                content[name] = getattr(self, name)
        if self.middles:
            content["middles"] = to_text(self.middles)
        return content

    @classmethod
    def from_dict(cls, content: Any, n_features: int) -> Cells:
        """What :meth:`to_dict` gave as ``content``, for rows of ``n_features`` columns."""
        names = {field.name for field in fields(cls)} - {"n_features"}
        if not isinstance(content, Mapping) or not {"centers"} <= set(content) <= names:
            must = f"an object with centers and perhaps {', '.join(sorted(names - {'centers'}))}"
            raise parameter_error(_CALLER, "content", must, content)
        found = dict(content)
        for name in {"centers", "middles"} & set(found):
            found[name] = from_text(_CALLER, name, found[name])
        for name in ("starts", "lower", "upper"):
            if not isinstance(found.get(name, []), list):
                raise parameter_error(_CALLER, name, "a list", found[name])
        return cls(n_features=n_features, **found)


def to_text(numbers: bytes) -> str:
    """Numbers of a spec for JSON: in base64."""
    return base64.b64encode(numbers).decode("ascii")


def from_text(caller: str, name: str, text: Any) -> bytes:
    """What :func:`to_text` gave; an error that names the parameter for anything else."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise parameter_error(caller, name, "numbers in base64", text) from None


# Axes: of many columns, those directions along which rows differ most.


@dataclass(frozen=True)
class Axes:
    """Directions in normalised coordinates: waves, and squares of cells, are those along them.

    Parameters
    ----------
    directions : bytes
        Float32 and little endian, shape (p, d): see :meth:`of`.
    n_features : int
        Dimension d.
    """

    directions: bytes
    n_features: int

    def __post_init__(self) -> None:
        d = check_integer("Axes", "n_features", self.n_features, 1, 2**20)
        if not isinstance(self.directions, bytes):
            raise parameter_error("Axes", "directions", "bytes (see Axes.of)", self.directions)
        p, rest = divmod(len(self.directions), 4 * d)
        if rest or not 1 <= p <= min(d, MAX_AXES):
            must = f"{4 * d} bytes for each of 1 to {min(d, MAX_AXES)} axes"
            raise parameter_error("Axes", "directions", must, f"{len(self.directions)} bytes")
        lengths = np.linalg.norm(self.table.astype(np.float64), axis=1)
        if not (np.abs(lengths - 1.0) < 1e-3).all():
            raise parameter_error("Axes", "directions", "of length 1", lengths.tolist())

    @classmethod
    def of(cls, directions: Any) -> Axes:
        """Axes along the ``directions`` (p, d), orthogonal and of length 1; rounded to float32."""
        values = np.asarray(directions, dtype="<f4")
        if values.ndim != 2 or not values.size:
            must = "an array of shape (axes, d)"
            raise parameter_error("Axes.of", "directions", must, directions)
        return cls((values + np.float32(0.0)).tobytes(), values.shape[1])

    def __repr__(self) -> str:
        return f"<{self.n_axes} axes of {self.n_features} columns>"

    def to_text(self) -> str:
        """For JSON: the directions in base64."""
        return to_text(self.directions)

    @classmethod
    def from_text(cls, text: Any, n_features: int) -> Axes:
        """What :meth:`to_text` gave as ``text``, for rows of ``n_features`` columns."""
        return cls(from_text("Axes", "directions", text), n_features)

    @property
    def n_axes(self) -> int:
        """Number p of axes."""
        return len(self.directions) // (4 * self.n_features)

    @cached_property
    def table(self) -> Float32Array:
        """The directions, shape (p, d)."""
        return np.frombuffer(self.directions, dtype="<f4").reshape(-1, self.n_features)


def plan_axes(rows: RealArray, n_axes: int, *, seed: int = 0) -> Axes:
    """Axes along which these rows differ most: their principal ones, nearly.

    Parameters
    ----------
    rows : array of shape (n, d)
        Normalised rows of the sample; the first of them are enough.
    n_axes : int
        Number p, at most d.
    seed : int, default=0
        Of the directions to start from.

    Returns
    -------
    axes : Axes
        By orthogonal iteration in operations of a fixed order: the same to the bit on every
        machine. O(n p d) a step.
    """
    kernel, some = select_kernel(), np.ascontiguousarray(rows[:ROWS_FOR_AXES], dtype=np.float64)
    across = np.ascontiguousarray(some.T)
    draws = uniforms(seed, Purpose.AXES, np.arange(n_axes), rows.shape[1])
    directions = _orthonormal(2.0 * draws - 1.0)
    for _ in range(AXES_STEPS):
        coordinates = kernel.project(some, directions)
        pulled = kernel.project(across, np.ascontiguousarray(coordinates.T, dtype=np.float32))
        directions = _orthonormal(pulled.T)
    return Axes.of(directions)


def _orthonormal(vectors: FloatArray) -> Float32Array:
    """By Gram and Schmidt, each product summed in a fixed order, rounded to float32."""
    kernel, done = select_kernel(), np.zeros((0, vectors.shape[1]), dtype=np.float32)
    for vector in vectors:
        rest = np.ascontiguousarray(vector[None], dtype=np.float64)
        for _ in range(2):  # once more takes off what rounding left
            for other in done:
                rest = rest - kernel.project(rest, other[None]) * other
        length = math.sqrt(_squared_length(rest))
        if not length > 0.0:  # rows of fewer dimensions: any direction does
            rest, length = np.eye(1, len(vector), len(done)), 1.0
        done = np.vstack([done, (rest / length).astype(np.float32)])
    return done


def _squared_length(row: FloatArray) -> float:
    largest = float(np.abs(row).max())
    narrow = (row / (largest or 1.0)).astype(np.float32)
    return float(select_kernel().project(narrow.astype(np.float64), narrow)[0, 0]) * largest**2


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
MOST_AT_ONCE = 2**13  # cells; of more, that part would have less than two rows for each seed
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
    rows: FloatArray,
    n_cells: int,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    splits_values: bool = False,
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
    splits_values : bool, default=False
        Whether no cell has rows with a value that is frequent in a column, and others: there is a
        group of cells for each pattern of such values.

    Returns
    -------
    cells : Cells
        The same to the bit on every machine. O(n J d), or O(n d) times the root of J where these
        are more than 8,192: then groups of them are found first.
    """
    narrow = np.ascontiguousarray(rows, dtype=np.float32)
    shares = None if weights is None else weights / weights.max()
    unit = _unit_for(narrow)
    patterns = _find_patterns(rows, shares, n_cells) if splits_values else narrow[:0]
    if len(patterns) > 1:
        centers, starts = _cut_patterns(rows, shares, patterns, n_cells, unit, seed)
        cells = replace(Cells.of(centers, starts, unit=unit), middles=patterns.tobytes())
    elif n_cells > MOST_AT_ONCE:
        groups = _find_centers(narrow, shares, math.isqrt(n_cells), unit, seed)
        rarest = FEWEST_ROWS_PER_CELL  # of tails: they have few rows, and most of the cost
        most = n_cells - len(groups)  # each group may round up
        centers, starts = _cut_groups(narrow, shares, groups, most, rarest, unit, seed)
        cells = Cells.of(centers, starts, min(PROBES, len(starts)), unit)
    else:
        centers = _find_centers(rows, shares, n_cells, unit, seed)
        cells = Cells.of(centers, unit=unit)
        if len(centers) > MOST_IN_ONE_GROUP:
            centers, starts = _group(centers, seed)
            cells = Cells.of(centers, starts, PROBES, unit)
    _, squares = select_kernel().cells(cells.groups).nearest(narrow)
    within = float(np.average(squares.astype(np.float64), weights=shares))
    return replace(cells, within=float(f"{within:.6g}"), n_rows=len(rows))


WIDE_CELLS = (10, 4)  # for each cluster where these are few, and where they are many
FEW_CLUSTERS, MANY_CLUSTERS = 128, 1024
MOST_GROUPS = 2048  # beyond, groups are not clusters: a row would look at too many
PROBES_WHEN_MANY = 4
WIDE_ROWS_PER_CELL, FEWEST_ROWS_PER_CELL = 8, 2  # the latter where rows are few
PILOT_STARTS, START_STEPS = 6, 10
PILOT_STEPS = (30, 16)  # of few clusters, and of many
FEWEST_FOR_STARTS, ROWS_FOR_STARTS = 8192, 100  # the latter for each cluster


def n_wide_cells_for(n_clusters: int, n_rows: int) -> int:
    """How many cells a plan of many columns has: from 10 to 4 a cluster, as rows suffice."""
    few, many = WIDE_CELLS
    share = math.log(max(n_clusters, FEW_CLUSTERS) / FEW_CLUSTERS) / math.log(
        MANY_CLUSTERS / FEW_CLUSTERS
    )
    wanted = round(n_clusters * (few - (few - many) * min(share, 1.0)))
    enough = max(n_rows // WIDE_ROWS_PER_CELL, min(n_rows // FEWEST_ROWS_PER_CELL, 4 * n_clusters))
    return min(wanted, enough, MAX_CELLS)


def plan_wide_cells(
    rows: Float32Array,
    n_clusters: int,
    n_cells: int,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> Cells:
    """Cells for data of many columns that looks like these rows: clusters, cut into a few parts.

    Each group of cells is a cluster of the sample. A row looks for the nearest cluster, then for
    the nearest cell in it, so that no cell lies across two clusters: what k-means of the sample,
    followed by one exact pass, would give is in the sums.

    Parameters
    ----------
    rows, weights, seed
        See :func:`plan_cells`.
    n_clusters : int
        Number k; beyond 2,048, groups are larger, and a row looks into four of them.
    n_cells : int
        Number J, about.

    Returns
    -------
    cells : Cells
        The same to the bit on every machine. O(n k d) a step.
    """
    shares = None if weights is None else weights / weights.max()
    unit = _unit_for(rows)
    n_groups = n_clusters if n_clusters <= MOST_GROUPS else 2 * math.isqrt(n_cells)
    probes = 1 if n_groups == n_clusters else PROBES_WHEN_MANY
    groups = _best_clusters(rows, shares, min(n_groups, n_cells), unit, seed)
    at_least = min(WIDE_ROWS_PER_CELL, max(FEWEST_ROWS_PER_CELL, len(rows) // n_cells))
    centers, starts = _cut_groups(rows, shares, groups, n_cells, at_least, unit, seed)
    numbers = ((points + np.float32(0.0)).astype("<f2").tobytes() for points in (centers, groups))
    table, middles = numbers
    probes = min(probes, len(starts))
    cells = Cells(table, rows.shape[1], starts, probes, unit, middles=middles, are_half=True)
    _, squares = select_kernel().cells(cells.groups).nearest(rows)
    within = float(np.average(squares.astype(np.float64), weights=shares))
    return replace(cells, within=float(f"{within:.6g}"), n_rows=len(rows))


def _best_clusters(
    rows: Float32Array, shares: FloatArray | None, k: int, unit: float, seed: int
) -> Float32Array:
    """Centers of clusters of the rows: of some starts, the best after a few steps goes on."""
    n_starts = PILOT_STARTS if k <= FEW_CLUSTERS else 1
    some = slice(max(FEWEST_FOR_STARTS, ROWS_FOR_STARTS * k))  # in no order: a sample of all
    few, of_few = rows[some], None if shares is None else shares[some]
    found: list[tuple[float, Float32Array]] = []
    for i in range(n_starts):
        centers = _seed_centers(few, of_few, k, seed + i)
        for _ in range(START_STEPS):
            centers = _move_to_means(few, of_few, centers, unit)
        found.append((_cost(few, of_few, centers, unit), centers))
    _, centers = min(found, key=lambda each: each[0])
    for _ in range(PILOT_STEPS[k > FEW_CLUSTERS]):
        centers = _move_to_means(rows, shares, centers, unit)
    return centers


def _cost(
    rows: Float32Array, shares: FloatArray | None, centers: Float32Array, unit: float
) -> float:
    _, squares = select_kernel().cells(Centers.in_one_group(centers, unit)).nearest(rows)
    return math.fsum(squares if shares is None else squares * shares)


def _cut_groups(
    rows: Float32Array,
    shares: FloatArray | None,
    groups: Float32Array,
    n_cells: int,
    at_least: int,
    unit: float,
    seed: int,
) -> tuple[Float32Array, tuple[int, ...]]:
    """Centers of the cells of each group, as many as its share of the cost; where groups begin.

    A cell has so many rows at least, on average over its group.
    """
    labels, squares = select_kernel().cells(Centers.in_one_group(groups, unit)).nearest(rows)
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(len(groups) + 1))
    costs = squares.astype(np.float64) if shares is None else squares * shares
    total, centers, starts = math.fsum(costs) or 1.0, [], [0]
    for g in range(len(groups)):
        own = order[ends[g] : ends[g + 1]]
        wanted = round(n_cells * math.fsum(costs[own]) / total)
        wanted = max(1, min(wanted, len(own) // at_least))
        of_group = groups[g : g + 1]
        if wanted > 1:
            of_own = None if shares is None else shares[own]
            of_group = _find_centers(rows[own], of_own, wanted, unit, seed)
        centers.append(of_group)
        starts.append(starts[-1] + len(of_group))
    return np.concatenate(centers), tuple(starts[:-1])


# Values that repeat: where many rows have one value in a column, zero mostly, and others do not, a
# cell that holds both knows their mean and variance, and not that one is a plane without any width.

REPEATED = 0.05  # share of the rows of one value in a column, from which on they are told apart
BESIDE = 5e-3  # values as near as this count as equal to it; the spread of all rows is about 1
ROWS_PER_PATTERN = 40
CELLS_PER_PATTERN = 4  # patterns are at most so few, the most frequent ones


def _find_patterns(rows: FloatArray, shares: FloatArray | None, n_cells: int) -> Float32Array:
    """For each frequent pattern of rows below, at or above repeated values, a place (G, d).

    The nearest one tells which pattern a row has: places differ by twice ``BESIDE`` in a column.
    Columns without a repeated value are 0 in all.
    """
    n, weights = len(rows), np.ones(len(rows)) if shares is None else shares
    signs, values = np.zeros(rows.shape, dtype=np.int8), np.zeros(rows.shape[1])
    for a, column in enumerate(rows.T):
        different, which = np.unique(column, return_inverse=True)
        sums = np.bincount(which, weights)
        if len(different) > 1 and sums.max() >= REPEATED * weights.sum():
            values[a] = different[sums.argmax()]
            off = column - values[a]
            signs[:, a] = np.sign(off) * (np.abs(off) > BESIDE)
    patterns, which, counts = np.unique(signs, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: max(1, n_cells // CELLS_PER_PATTERN)]
    kept = patterns[order[counts[order] >= min(ROWS_PER_PATTERN, n)]]
    return (values + 2.0 * BESIDE * kept).astype("<f4")


def _cut_patterns(
    rows: FloatArray,
    shares: FloatArray | None,
    patterns: Float32Array,
    n_cells: int,
    unit: float,
    seed: int,
) -> tuple[Float32Array, tuple[int, ...]]:
    """Centers of the cells of each pattern, as many as its share of the rows; where they begin."""
    narrow = np.ascontiguousarray(rows, dtype=np.float32)
    labels, _ = select_kernel().cells(Centers.in_one_group(patterns, unit)).nearest(narrow)
    centers, starts = [], [0]
    for g, pattern in enumerate(patterns):
        own = np.flatnonzero(labels == g)
        wanted = min(n_cells * len(own) // len(rows), len(own) // ROWS_PER_CELL)
        of_own = None if shares is None else shares[own]
        of_group = _find_centers(rows[own], of_own, max(1, wanted), unit, seed)
        centers.append(of_group if len(of_group) else pattern[None])
        starts.append(starts[-1] + len(centers[-1]))
    return np.concatenate(centers), tuple(starts[:-1])


def _find_centers(
    rows: RealArray, shares: FloatArray | None, n_cells: int, unit: float, seed: int
) -> Float32Array:
    """Means of the rows nearest to each other: seeds, and some steps of Lloyd's algorithm."""
    narrow = np.ascontiguousarray(rows, dtype=np.float32)
    centers = _seed_centers(narrow, shares, n_cells, seed)
    for _ in range(LLOYD_STEPS):
        centers = _move_to_means(rows, shares, centers, unit)
    return centers


def _unit_for(rows: Float32Array) -> float:
    """The least power of two that brings all within reach that is not far from these rows."""
    step = max(1, 2**20 // rows.shape[1])
    parts = (rows[first : first + step] for first in range(0, len(rows), step))
    largest = math.sqrt(max(np.square(p.astype(np.float64)).sum(axis=1).max() for p in parts))
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
    rows: RealArray, shares: FloatArray | None, centers: Float32Array, unit: float
) -> Float32Array:
    """Each center at the mean of its rows; those without rows stay."""
    J, d = centers.shape
    totals = np.zeros((J, 1 + 3 * d), dtype=np.int64)
    cells, step = select_kernel().cells(Centers.in_one_group(centers, unit)), max(1, 2**20 // d)
    for first in range(0, len(rows), step):
        part = rows[first : first + step].astype(np.float64)
        of_part = None if shares is None else shares[first : first + step]
        cells.add(part, part, of_part, totals)
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
