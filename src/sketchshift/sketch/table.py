"""Many sketches of one plan, one for each slice of the data: a day, a customer, both.

As an Arrow or Parquet table it has the columns of the key, ``count``, ``plan``, which is the same
in all rows, and ``sketch``, the bytes of a slice, so that every engine of SQL can store, select and
hand them on.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchshift._html import Cell, Row, bar, card, curve, facts, fold, grid, note
from sketchshift._paths import Place
from sketchshift._text import counted, listed
from sketchshift._typing import IntArray
from sketchshift._validation import check_integer
from sketchshift._writing import opened_atomically
from sketchshift.errors import DataError, IncompatibleSketchesError
from sketchshift.features import SketchSpec
from sketchshift.sketch.file import PARQUET_START, check_ending, plan_text, register_kind
from sketchshift.sketch.packing import pack_slices
from sketchshift.sketch.sketch import Sketch, check_same_spec
from sketchshift.sketch.totals import Totals

__all__ = ["SketchTable"]

COUNT, PLAN, SKETCH = "count", "plan", "sketch"
SLICES_SHOWN = 14  # in a notebook
BLOCK = 64  # slices that are added up for windows
_ROWS_AT_ONCE = 1024  # slices that a reader of a file may skip together


@dataclass(frozen=True, eq=False)
class SketchTable:
    """One sketch for each slice of a dataset.

    Made by :func:`sketchshift.sketch_by` or :func:`sketchshift.load`. Any slices of it merge into
    the sketch of their rows, bit for bit as if only these had been read.

    Attributes
    ----------
    keys : Arrow table
        One row for each slice, in ascending order, missing keys last.
    totals : Totals or None
        What the rows of each slice add up to, in the same order; None where no spec is known.
    fingerprint : str
        That of the spec.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> day = np.arange(1000) // 100
    >>> table = ss.sketch_by(X, by=day, n_clusters=5)
    >>> len(table), table[3].count
    (10, 100)
    >>> table.where("key >= 8").merge() == ss.sketch(X[800:], table.spec)
    True
    """

    keys: Any
    totals: Totals | None
    fingerprint: str = ""

    @classmethod
    def of(cls, keys: Any, sketches: Sequence[Sketch]) -> SketchTable:
        """Return a table of sketches with their keys in any order; those with equal keys add up.

        Parameters
        ----------
        keys : Arrow table of n rows
            Columns of the key.
        sketches : sequence of n sketches
            Of one spec.
        """
        from sketchshift.sketch.keys import normalise_keys

        for sketch in sketches[1:]:
            check_same_spec(sketches[0], sketch, "merge")
        if not sketches:
            return cls(normalise_keys(keys), None)
        totals = Totals.join([sketch._totals for sketch in sketches])
        return from_totals(keys, totals, sketches[0].fingerprint)

    @cached_property
    def sketches(self) -> tuple[Sketch, ...]:
        """The sketch of each slice, in the order of the keys; they share their digits."""
        if self.totals is None:
            return ()
        spec = self.totals.layout.spec
        parts = (self.totals[i] for i in range(len(self)))
        return tuple(Sketch(spec, self.fingerprint, part) for part in parts)

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the columns of the key."""
        return tuple(self.keys.column_names)

    @property
    def spec(self) -> SketchSpec:
        """What was summed in each of them."""
        if self.totals is None or not len(self):
            raise DataError("the table has no slices, and so no spec. Check the condition.")
        return self.totals.layout.spec

    @property
    def counts(self) -> IntArray:
        """Number of rows of each slice."""
        return np.zeros(0, np.int64) if self.totals is None else self.totals.counts[:, 0].copy()

    def __len__(self) -> int:
        return 0 if self.totals is None else len(self.totals)

    def __iter__(self) -> Iterator[tuple[Any, Sketch]]:
        """Keys with their sketches; a key of several columns is a tuple."""
        rows = zip(*(column.to_pylist() for column in self.keys.columns), strict=True)
        for row, sketch in zip(rows, self.sketches, strict=True):
            yield row if len(row) > 1 else row[0], sketch

    def __getitem__(self, key: Any) -> Sketch:
        for own, sketch in self:
            if own == key:
                return sketch
        msg = f"there is no slice {key!r} by {', '.join(self.by)}. See `keys` for those there are."
        raise KeyError(msg)

    def __repr__(self) -> str:
        rows = int(self.counts.sum())
        return f"<SketchTable of {len(self)} slices by {', '.join(self.by)}: {rows} rows>"

    def _repr_html_(self) -> str:
        counts, names = self.counts, [_key_in_words(key) for key, _ in self]
        title = f"{counted(len(self), 'slice')} by {', '.join(self.by)}: "
        title += counted(int(counts.sum()), "row")
        if not len(self):
            return card(title)
        largest, n = int(counts.max()), len(self)
        shown = (
            list(range(n)) if n <= SLICES_SHOWN else [*range(SLICES_SHOWN - 3), *range(n - 3, n)]
        )
        rows: list[Row] = [
            [Cell(names[i], is_text=True), bar(counts[i] / max(largest, 1), f"{counts[i]:,}")]
            for i in shown
        ]
        if n > len(shown):
            rows.insert(SLICES_SHOWN - 3, [Cell(f"{n - len(shown):,} more", is_text=True), ""])
        titles = [
            f"{name}: {counted(int(c), 'row')}" for name, c in zip(names, counts, strict=True)
        ]
        parts = [
            note("Rows of each slice, in order:"),
            curve([float(c) for c in counts], titles),
            grid([", ".join(self.by), "rows"], rows),
        ]
        return card(title, *parts, fold("Plan", facts(self.spec.facts)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SketchTable):
            return NotImplemented
        return bool(self.keys.equals(other.keys)) and self.sketches == other.sketches

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: object) -> SketchTable:
        """Both tables in one, whichever comes first; slices with the same key add up."""
        if isinstance(other, int) and other == 0:  # the start of sum()
            return self
        if not isinstance(other, SketchTable):
            return NotImplemented
        if self.by != other.by:
            msg = (
                f"cannot add tables by {list(self.by)} and by {list(other.by)}. Merge both by the "
                "columns that they share, with merge_by."
            )
            raise IncompatibleSketchesError(msg)
        from sketchshift.sketch.keys import stack_keys

        keys = stack_keys(self.keys, other.keys)
        some = [table for table in (self, other) if len(table)]
        if len(some) < 2:
            return from_totals(keys, some[0].totals, some[0].fingerprint) if some else self
        check_same_spec(self.any_sketch(), other.any_sketch(), "merge")
        return from_totals(
            keys, Totals.join([t.totals for t in some if t.totals]), self.fingerprint
        )

    __radd__ = __add__

    def where(self, condition: str) -> SketchTable:
        """The slices for which a condition on their keys is true.

        Parameters
        ----------
        condition : str
            Comparisons as in SQL, joined by AND, OR and NOT, of the columns of the key and of
            ``count``: ``"day >= '2026-01-05' AND count > 100"``. Text and dates are in single
            quotes.

        Returns
        -------
        table : SketchTable
            Possibly of no slices.
        """
        from sketchshift.sketch.where import find_rows

        rows = find_rows(self._with_counts(), condition)
        totals = None if self.totals is None else self.totals.take(np.asarray(rows, dtype=np.int64))
        return SketchTable(self.keys.take(rows), totals, self.fingerprint)

    def merge(self) -> Sketch:
        """The sketch of the rows of all slices."""
        if self.totals is None or not len(self):
            raise DataError("there are no slices to merge. Check the condition.")
        return Sketch(self.totals.layout.spec, self.fingerprint, self.totals.merged())

    def any_sketch(self) -> Sketch:
        """The sketch of one of the slices."""
        assert self.totals is not None
        return Sketch(self.totals.layout.spec, self.fingerprint, self.totals[0])

    def window(self, start: Any = None, stop: Any = None) -> Sketch:
        """The sketch of the rows of all slices from one value of the key on and before another.

        Parameters
        ----------
        start, stop : date, time, number, text of one, or None
            Values of the first column of the key, which holds dates, times or numbers. None: no
            end on this side.

        Returns
        -------
        sketch : Sketch
            As ``where`` and :meth:`merge` give it. Sums of blocks of 64 slices are made once and
            take the place of the slices in them, so that the time hardly grows with the window.
        """
        first, last = self._find_window(start, stop)
        if self.totals is None or first >= last:
            raise DataError(f"there are no slices from {start} on and before {stop}.")
        whole = -(-first // BLOCK), last // BLOCK
        if whole[0] >= whole[1]:
            spans = [self.totals.span(first, last)]
        else:
            edges = (first, whole[0] * BLOCK), (whole[1] * BLOCK, last)
            spans = [self._blocks.span(*whole), *(self.totals.span(*edge) for edge in edges)]
        pieces = [(span, np.zeros(len(span), dtype=np.int64), 1) for span in spans]
        totals = Totals.sum(pieces, 1)
        totals.check_capacity()
        return Sketch(self.totals.layout.spec, self.fingerprint, totals)

    @cached_property
    def _blocks(self) -> Totals:
        """Sums of so many slices that follow each other; the last ones may be fewer."""
        assert self.totals is not None
        groups = np.arange(len(self)) // BLOCK
        return Totals.sum([(self.totals, groups, 1)], -(-len(self) // BLOCK))

    def _find_window(self, start: Any, stop: Any) -> tuple[int, int]:
        """The first slice of a window, and the one after its last."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.keys.column(0)
        kind, is_in = column.type, np.ones(len(self), dtype=bool)
        bounds = {
            pa.types.is_date: dt.date,
            pa.types.is_timestamp: dt.datetime,
            pa.types.is_time: dt.time,
            pa.types.is_duration: dt.timedelta,
            pa.types.is_integer: int,
            pa.types.is_floating: (int, float),
        }
        own = next((python for is_so, python in bounds.items() if is_so(kind)), None)
        if own is None:
            msg = (
                f"a window needs slices by dates, times or numbers, and {self.by[0]!r} holds "
                f"{kind}. Select slices with where."
            )
            raise DataError(msg)
        for value, is_beyond in ((start, pc.greater_equal), (stop, pc.less)):
            if value is not None:
                plain = value.item() if isinstance(value, np.generic) else value
                try:
                    if not _is_bound(plain, own, getattr(kind, "tz", None)):
                        raise TypeError
                    end = pa.scalar(plain).cast(kind)
                except (pa.ArrowException, ValueError, TypeError, OverflowError) as cause:
                    msg = f"{value!r} is no value of {self.by[0]!r}, which holds {kind}."
                    raise DataError(msg) from cause
                is_in &= is_beyond(column, end).fill_null(False).to_numpy()
        found = np.flatnonzero(is_in)
        return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)

    def merge_by(self, by: str | Sequence[str]) -> SketchTable:
        """Add slices up that agree in some columns of their key.

        Parameters
        ----------
        by : str or sequence of str
            Columns of the key to keep.

        Returns
        -------
        table : SketchTable
            A slice for each value of these columns.
        """
        names = [by] if isinstance(by, str) else list(by)
        check_names("merge_by", names, self.by)
        return from_totals(self.keys.select(names), self.totals, self.fingerprint)

    def to_arrow(self) -> Any:
        """An Arrow table with the columns of the key, ``count``, ``plan`` and ``sketch``."""
        import pyarrow as pa

        chunks, plans = [], []
        if self.totals is not None:
            plans = [plan_text(self.fingerprint, self.totals.layout).decode()]
            for data, ends in pack_slices(self.totals, self.fingerprint):
                buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
                chunks.append(pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers))
        codes = pa.array(np.zeros(len(self), np.int32))
        plan = pa.DictionaryArray.from_arrays(codes, pa.array(plans, pa.string()))
        table = self._with_counts().append_column(PLAN, plan)
        return table.append_column(SKETCH, pa.chunked_array(chunks, pa.binary()))

    @classmethod
    def from_arrow(cls, table: Any, *, where: str | None = None) -> SketchTable:
        """Read what :meth:`to_arrow` gave, or an engine made of it.

        Parameters
        ----------
        table : Arrow table, or frame or result that exports one
            Of pyarrow, DuckDB, Polars, pandas or whatever has ``__arrow_c_stream__``. All columns
            but ``plan``, ``sketch`` and ``count`` are the key. Rows with equal keys are added up.
        where : str or None
            As in :meth:`where`; other sketches are not looked at, unless it names ``count``.

        Returns
        -------
        table : SketchTable
            Anything but intact sketches of one spec is an error, and so is a ``count`` that is
            not that of its sketch.
        """
        from sketchshift.sketch.stored import join_parts, select_parts

        with _open_stream(table) as reader:
            parts = join_parts(select_parts(reader, reader.schema, where))
        return from_totals(*parts)

    def to_bytes(self) -> bytes:
        """The table as a stream of Arrow: what checkpoints hold and engines send."""
        from sketchshift.sketch.keys import to_stream

        return to_stream(self.to_arrow())

    @classmethod
    def from_bytes(cls, data: bytes) -> SketchTable:
        """Read what :meth:`to_bytes` gave, as :meth:`from_arrow` does."""
        import pyarrow as pa

        with pa.ipc.open_stream(data) as stream:
            return cls.from_arrow(stream)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a Parquet file: all of it is there afterwards, or nothing changed.

        Parameters
        ----------
        path : path
            Usually ``*.parquet``; never ``*.sketch``. An existing file is replaced.
        """
        import pyarrow.parquet as pq

        check_ending(path, ".parquet", "a table of sketches")
        rows = self.to_arrow()
        with opened_atomically(path) as file:
            pq.write_table(
                rows,
                file,
                use_dictionary=[*self.by, PLAN],
                dictionary_pagesize_limit=2**30,  # the plan is written once, however large
                compression="zstd",
                compression_level=-1,  # the integers are packed already
                row_group_size=_ROWS_AT_ONCE,
                write_statistics=[*self.by, COUNT],
                write_page_checksum=True,
            )

    def _with_counts(self) -> Any:
        import pyarrow as pa

        clashes = [name for name in self.by if name in (COUNT, PLAN, SKETCH)]
        if clashes:
            msg = f"the key has a column {clashes[0]!r}, which the table needs. Rename it."
            raise DataError(msg)
        return self.keys.append_column(COUNT, pa.array(self.counts))


def _is_bound(value: Any, own: Any, zone: str | None) -> bool:
    """Whether a bound of a window is a text, or of the Python type that values of the key have."""
    if (own is dt.date and isinstance(value, dt.datetime)) or isinstance(value, bool):
        return False
    if own is dt.datetime and isinstance(value, dt.datetime):
        return (value.tzinfo is None) == (zone is None)
    return isinstance(value, (str, own))


def _key_in_words(key: Any) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _load(path: Place, where: str | None = None, max_bytes: int = 2**30) -> SketchTable:
    from sketchshift.sketch.stored import join_parts, read_parts

    check_integer("load", "max_bytes", max_bytes, 1, 2**62)
    return from_totals(*join_parts(read_parts(path, where, max_bytes=max_bytes)))


register_kind(PARQUET_START, "a table of sketches", _load)


def from_totals(keys: Any, totals: Totals | None, fingerprint: str) -> SketchTable:
    """Return a table of slices with their keys in any order; those with equal keys add up.

    Parameters
    ----------
    keys : Arrow table of n rows
        Columns of the key.
    totals : Totals or None
        Of n slices; None where there are none.
    fingerprint : str
        Of the spec.

    Returns
    -------
    table : SketchTable
        Sorted by key. Time is linear in the digits.
    """
    from sketchshift.sketch.keys import normalise_keys

    keys = normalise_keys(keys)
    if totals is None or not len(totals):
        return SketchTable(keys, totals, fingerprint)
    groups, numbers = group_keys(keys)
    is_sorted = len(groups) == len(keys) and bool((np.diff(numbers) > 0).all())
    own = totals if is_sorted else totals.sum_by(numbers, len(groups))
    return SketchTable(groups, own, fingerprint)


def from_pieces(
    keys: Any, pieces: Sequence[tuple[Totals, IntArray]], spec: SketchSpec
) -> SketchTable:
    """Return a table of slices that came in pieces.

    Parameters
    ----------
    keys : Arrow table of n rows
        Columns of the key, in any order; those that are equal add up.
    pieces : sequence of tuple
        Totals, and the row of the keys that each of their slices has.
    spec : SketchSpec
        Of all.
    """
    from sketchshift.sketch.keys import normalise_keys

    keys = normalise_keys(keys)
    groups, numbers = group_keys(keys)
    none = Totals.zero(spec, 0), np.zeros(0, dtype=np.int64), 1
    moved = [(totals, numbers[rows], 1) for totals, rows in pieces]
    totals = Totals.sum([none, *moved], len(groups))
    totals.check_capacity()
    return SketchTable(groups, totals, spec.fingerprint)


def check_names(argument: str, names: Sequence[str], keys: Sequence[str]) -> None:
    """Refuse names to merge by that are none of the keys, or are there twice."""
    unknown = [name for name in names if name not in keys]
    if unknown:
        raise DataError(f"cannot merge by {listed(unknown)}: the key has {listed(keys)}.")
    if not names or len(set(names)) < len(names):
        msg = f"{argument} must name columns of the key, each once. Got {names} instead."
        raise DataError(msg)


def group_keys(keys: Any) -> tuple[Any, IntArray]:
    """The different keys as :func:`number_groups` gives them.

    Refuses keys that cannot be shown: dates of the year 12000, bytes that are no text.
    """
    from sketchshift.sketch.keys import number_groups

    groups, numbers = number_groups(keys)
    for name in groups.column_names:
        try:
            groups.column(name).to_pylist()
        except (ValueError, OverflowError) as cause:
            msg = (
                f"the key {name!r} holds a value that Python cannot hold ({cause}). Correct it, "
                "or store the column as bytes or numbers."
            )
            raise DataError(msg) from cause
    return groups, numbers


@contextmanager
def _open_stream(data: Any) -> Iterator[Any]:
    """Whatever exports a stream of Arrow, as a reader of record batches."""
    import pyarrow as pa

    if not hasattr(data, "__arrow_c_stream__"):
        msg = (
            f"cannot read {type(data).__name__} as a table of sketches. Pass an Arrow table, or a "
            "frame or result that gives one: of DuckDB, Polars or pandas. Collect a lazy frame "
            "first; ss.load reads files."
        )
        raise DataError(msg)
    try:
        yield pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, OSError) as cause:
        msg = f"cannot read {type(data).__name__} as a table of sketches: {cause}"
        raise DataError(msg) from cause
