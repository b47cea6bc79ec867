"""Many sketches of one plan, one for each slice of the data: a day, a customer, both.

As an Arrow or Parquet table it has the columns of the key, ``count``, ``plan``, which is the same
in all rows, and ``sketch``, the bytes of a slice, so that every engine of SQL can store, select and
hand them on.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._paths import Place
from sketchshift._registry import show_card
from sketchshift._text import listed
from sketchshift._typing import IntArray
from sketchshift._validation import check_integer
from sketchshift._writing import opened_atomically
from sketchshift.errors import DataError, IncompatibleSketchesError, RemovalError
from sketchshift.features import SketchSpec
from sketchshift.sketch.file import PARQUET_START, check_ending, plan_text, register_kind
from sketchshift.sketch.sketch import Sketch, check_removal, check_same_spec
from sketchshift.sketch.totals import Totals

if TYPE_CHECKING:
    from sketchshift.sketch.windows import RunningSums

__all__ = ["SketchTable"]

COUNT, PLAN, SKETCH = "count", "plan", "sketch"
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

        if len(keys) != len(sketches):
            msg = (
                f"each sketch needs a key: there are {len(keys)} keys and {len(sketches)} sketches."
            )
            raise DataError(msg)
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
    def n_bytes(self) -> int:
        """Memory of the integers."""
        return 0 if self.totals is None else self.totals.n_bytes

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

    def _repr_html_(self) -> str | None:
        return show_card(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SketchTable):
            return NotImplemented
        return bool(self.keys.equals(other.keys)) and self.sketches == other.sketches

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: object) -> SketchTable:
        """Both tables in one, whichever comes first; slices with the same key add up.

        What :meth:`window` has summed already is brought up to date.
        """
        if isinstance(other, int) and other == 0:  # the start of sum()
            return self
        return self._combine(other, "add", 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> SketchTable:
        """Take away the rows of another table, whose keys must be here, too.

        Slices of which nothing is left are gone. What rows cannot have left is refused.
        """
        return self._combine(other, "subtract", -1)

    def _combine(self, other: object, verb: str, sign: int) -> SketchTable:
        if not isinstance(other, SketchTable):
            return NotImplemented  # type: ignore[no-any-return]
        if self.by != other.by:
            msg = (
                f"cannot {verb} tables by {list(self.by)} and by {list(other.by)}. Merge both by "
                "the columns that they share, with merge_by."
            )
            raise IncompatibleSketchesError(msg)
        from sketchshift.sketch.keys import stack_keys

        keys, n = stack_keys(self.keys, other.keys), len(self)
        if not other.totals or not len(other):
            return from_totals(keys, self.totals, self.fingerprint)
        if not self.totals or not n:
            none = SketchTable(keys.slice(0, 0), other.totals.span(0, 0), other.fingerprint)
            if sign < 0:
                none._refuse_removal(other, 0)
            return from_totals(keys, other.totals, other.fingerprint)
        check_same_spec(self.any_sketch(), other.any_sketch(), "merge" if sign > 0 else verb)
        groups, numbers = group_keys(keys)
        own, late = np.split(numbers, [n])
        unknown = ~np.isin(late, own)
        if sign < 0 and unknown.any():
            self._refuse_removal(other, int(np.argmax(unknown)))
        pieces = [(self.totals, own, 1), (other.totals, late, sign)]
        totals = Totals.sum(pieces, len(groups))
        totals.check_capacity()
        found = SketchTable(groups, totals, self.fingerprint)
        for table, rest, places, changed in ((self, other, own, late), (other, self, late, own)):
            running = table.__dict__.get("_running")
            if running is not None and (sign > 0 or table is self):
                with suppress(DataError):  # too heavy together
                    sums = running.after(totals, places, rest.totals, changed, sign)
                    found.__dict__["_running"] = sums
                break
        return found if sign > 0 else found._without_zeros(self, other, np.unique(late))

    def _without_zeros(
        self, before: SketchTable, removed: SketchTable, changed: IntArray
    ) -> SketchTable:
        """The same without changed slices that are 0; those that no rows have left are refused."""
        assert self.totals is not None
        rest = self.totals.take(changed)
        are_sound = rest.are_sound()
        if not are_sound.all():
            key = self.keys.slice(int(changed[np.argmin(are_sound)]), 1)
            self._refuse_removal(removed, _find_row(removed.keys, key), before)
        _, some = rest.without_zeros()
        if len(some) == len(changed):
            return self
        left = np.setdiff1d(np.arange(len(self)), np.delete(changed, some))
        found = SketchTable(self.keys.take(left), self.totals.take(left), self.fingerprint)
        if (running := self.__dict__.get("_running")) is not None:
            found.__dict__["_running"] = running.without(left)
        return found

    def _refuse_removal(
        self, removed: SketchTable, i: int, before: SketchTable | None = None
    ) -> None:
        """Say why slice i of another table cannot be taken away."""
        key = ", ".join(str(column[i].as_py()) for column in removed.keys.columns)
        assert removed.totals is not None
        if before is None:
            msg = (
                f"cannot remove rows of {key}: there is no such slice. Subtract only slices of "
                "rows that were added."
            )
            raise RemovalError(msg)
        assert before.totals is not None
        left = before.totals[_find_row(before.keys, removed.keys.slice(i, 1))]
        try:
            check_removal(left, removed.totals[i], left - removed.totals[i])
        except RemovalError as error:
            raise RemovalError(f"slice {key}: {error}") from None

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
            As ``where`` and :meth:`merge` give it. Sums of all slices up to some edges are made
            once, in less than a tenth of the memory of the slices: a window is the difference of
            two of them and a few slices at both ends.
        """
        first, last = self._find_window(start, stop)
        if self.totals is None or first >= last:
            raise DataError(f"there are no slices from {start} on and before {stop}.")
        if self._running is None:
            totals = self.totals.span(first, last).merged()
        else:
            totals = self._running.window(self.totals, first, last)
        return Sketch(self.totals.layout.spec, self.fingerprint, totals)

    @cached_property
    def _running(self) -> RunningSums | None:
        """What windows are made of."""
        from sketchshift.sketch.windows import RunningSums

        assert self.totals is not None
        return RunningSums.of(self.totals)

    @cached_property
    def _places(self) -> Any:
        """Values of the first column of the key that are not missing, as numbers: ascending."""
        import pyarrow as pa

        column = self.keys.column(0).combine_chunks()
        column = column.slice(0, len(column) - column.null_count)
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
        return column.to_numpy()

    def _find_window(self, start: Any, stop: Any) -> tuple[int, int]:
        """The first slice of a window, and the one after its last."""
        import pyarrow as pa

        kind = self.keys.schema.types[0]
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
        found, places = [0, len(self)], self._places
        for i, value in enumerate((start, stop)):
            if value is not None:
                plain = value.item() if isinstance(value, np.generic) else value
                try:
                    if not _is_bound(plain, own, getattr(kind, "tz", None)):
                        raise TypeError
                    text = isinstance(plain, str)
                    typed = pa.scalar(plain).cast(kind) if text else pa.scalar(plain, kind)
                    end = typed.cast(places.dtype.name).as_py()
                except (pa.ArrowException, ValueError, TypeError, OverflowError) as cause:
                    msg = (
                        f"{value!r} is no value of {self.by[0]!r}, which holds {kind}. Pass one of "
                        "`keys`, or its text, such as '2026-01-05' or '2026-01-05 13:00+01:00'."
                    )
                    raise DataError(msg) from cause
                found[1] = min(found[1], len(places))  # a missing one is in no window with an end
                found[i] = int(np.searchsorted(places, places.dtype.type(end)))
        return found[0], found[1]

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

        from sketchshift.sketch.packing import pack_slices

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
        """Read a table.

        Parameters
        ----------
        data : bytes
            What :meth:`to_bytes` gave.

        Returns
        -------
        table : SketchTable
            As :meth:`from_arrow` makes it.
        """
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
    if isinstance(value, dt.datetime | dt.time):
        return isinstance(value, own) and (value.tzinfo is None) == (zone is None)
    return isinstance(value, (str, own)) and value == value  # NaN has no place


def _find_row(keys: Any, key: Any) -> int:
    """The row of a table of keys that holds the one key of another."""
    from sketchshift.sketch.keys import stack_keys

    _, numbers = group_keys(stack_keys(keys, key))
    return int(np.argmax(numbers[:-1] == numbers[-1]))


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
    keys: Any, pieces: Sequence[tuple[IntArray, Totals]], spec: SketchSpec
) -> SketchTable:
    """Return a table of slices that came in pieces, which are empty afterwards.

    Parameters
    ----------
    keys : Arrow table of n rows
        Columns of the key, in any order; those that are equal add up.
    pieces : sequence of tuple
        The row of the keys that each slice of some totals has, and these totals.
    spec : SketchSpec
        Of all.
    """
    from sketchshift.sketch.keys import normalise_keys

    keys = normalise_keys(keys)
    groups, numbers = group_keys(keys)
    none = Totals.zero(spec, 0), np.zeros(0, dtype=np.int64), 1
    moved = [(totals, numbers[rows], 1) for rows, totals in pieces]
    totals = Totals.sum([none, *moved], len(groups), emptied=True)
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
