"""A cube: slices of one plan in a folder, that many writers add to and take away from.

Parts of it are files that never change; a log says which of them count, and whether their rows came
or went (:mod:`sketchshift.live.cube_log`). What is left is the sum of the parts whose rows came
minus that of the parts whose rows went: exact integers, the same bytes as if only the rows that are
left had ever been read.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from sketchshift._text import counted, listed
from sketchshift._typing import IntArray
from sketchshift._validation import told_progress
from sketchshift._writing import hold_new, publish, put_down, sweep_unheld
from sketchshift.data.source import spans
from sketchshift.errors import (
    ConflictError,
    DataError,
    IncompatibleSketchesError,
    RemovalError,
    SketchFormatError,
    SketchshiftError,
)
from sketchshift.features import SketchSpec
from sketchshift.live.cube_log import (
    WHOLE,
    Commit,
    Log,
    PartRecord,
    State,
    bounds_of,
    read_bounds,
)
from sketchshift.live.cube_parts import PartIndex, write_part
from sketchshift.sketch.file import (
    CUBE_HEAD,
    check_fingerprint,
    name_file,
    pack,
    read_header,
    read_spec,
    unpack,
)
from sketchshift.sketch.keys import number_groups, parse, stack_keys
from sketchshift.sketch.reading import Reading
from sketchshift.sketch.sketch import Sketch, check_same_spec
from sketchshift.sketch.sketcher import Progress, sketcher_for
from sketchshift.sketch.slices import check_room, tables_of
from sketchshift.sketch.stored import stack_all
from sketchshift.sketch.table import COUNT, SketchTable, check_names
from sketchshift.sketch.totals import Layout, Sums, Totals
from sketchshift.sketch.where import columns_named, find_ranges, find_rows

__all__ = ["Cube"]

MAGIC = b"\x89SKU\r\n\x1a\n"
PART_SLICES, PART_BYTES = 32_768, 2**29
"""Slices of a part that others were put together in, and their bytes while they are summed."""

FEW_PARTS = 16
"""Parts of about one size, from here on, are put together when the next one comes."""

MOST_TIDIED = 2**24
"""Bytes of a part beyond which only :meth:`Cube.compact` puts it together with others."""

FEWER_KEYS = "Take fewer keys with by, or select some slices with where."
PLANNED = "planned"
"""What of the reading says how the plan was made, and not how rows are read."""

T = TypeVar("T")
_Held = AbstractContextManager[PartRecord]
"""A part on the disk that nobody removes while it is held."""
_KINDS = {"by": list, "fingerprint": str, "reading": dict, "spec": dict}


class Cube:
    """Slices of one plan in a folder, that many writers may add to and take away from.

    Made by :meth:`create` or :meth:`open`.

    Attributes
    ----------
    path : Path
        Of the folder.
    spec : SketchSpec
        What is summed in each slice.
    by : tuple of str
        How rows are cut into slices, as :func:`sketchshift.sketch_by` takes it; empty for a cube
        of one slice.
    reading : dict
        How rows are read, beside the spec: whatever :meth:`create` was given.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> day = np.arange(1000) // 100
    >>> table = ss.sketch_by(X, by=day, n_clusters=5)
    >>> with TemporaryDirectory() as folder:
    ...     cube = ss.live.Cube.create(folder + "/cube", table.spec, by="key")
    ...     version = cube.append(table)
    ...     version = cube.append(removed=table.where("key = 3"))
    ...     cube.merge() == ss.sketch(X[day != 3], table.spec)
    True
    """

    def __init__(self, path: Path, spec: SketchSpec, by: tuple[str, ...], reading: Any) -> None:
        self.path, self.spec, self.by = path, spec, by
        self.reading: dict[str, Any] = dict(reading)
        self._log, self._layout = Log(path), Layout.of(spec)
        self._heads: dict[str, PartIndex] = {}
        self._last: _Selection | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        spec: SketchSpec,
        by: str | Sequence[str] = (),
        *,
        reading: Mapping[str, Any] | None = None,
    ) -> Cube:
        """Make an empty cube.

        Parameters
        ----------
        path : path
            A folder that is made; one with a cube in it is an error.
        spec : SketchSpec
            What is summed in each slice.
        by : str or sequence of str
            How rows are cut into slices, as :func:`sketchshift.sketch_by` takes it. None of them:
            the cube has one slice, and is a stored sketch.
        reading : mapping or None
            Whatever JSON can hold that later readers of rows must know.

        Returns
        -------
        cube : Cube
            Of no rows.
        """
        path, by = Path(path), (by,) if isinstance(by, str) else tuple(by)
        _key_names(by)
        for folder in ("parts", "log", "drafts"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        header = {"by": list(by), "fingerprint": spec.fingerprint, "reading": dict(reading or {})}
        header["spec"] = json.loads(spec.to_json())
        if not publish(path / CUBE_HEAD, pack(MAGIC, header, b""), path / "drafts"):
            msg = (
                f"there is a cube in {path} already. Open it with ss.live.Cube.open({str(path)!r})."
            )
            raise ConflictError(msg)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Cube:
        """Open a cube, to read it or to add to it.

        Parameters
        ----------
        path : path
            Of its folder.
        """
        path = Path(path)
        try:
            data = (path / CUBE_HEAD).read_bytes()
        except OSError as cause:
            msg = f"there is no cube in {path}. Make one: ss.live.Cube.create({str(path)!r}, spec)."
            raise DataError(msg) from cause
        with name_file(path / CUBE_HEAD):
            header = read_header(unpack(data, MAGIC)[0], _KINDS)
            check_fingerprint(header["fingerprint"])
            spec = read_spec(header["spec"])
        for name in ("drafts", "parts"):  # lost while empty, where only files are copied
            with suppress(OSError):
                (path / name).mkdir(exist_ok=True)
        return cls(path, spec, tuple(header["by"]), header["reading"])

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns of the key."""
        return _key_names(self.by)

    @property
    def version(self) -> int:
        """Number of the newest commit; 0 of a cube without any."""
        return self._log.state().number

    @property
    def positions(self) -> dict[str, Any]:
        """Where reading goes on, by the name of the source."""
        return dict(self._log.state().positions)

    def __repr__(self) -> str:
        state = self._log.state()
        by = f" by {', '.join(self.keys)}" if self.by else ""
        return f"<Cube{by} at version {state.number}: {counted(len(state.parts), 'part')}>"

    def append(
        self,
        added: SketchTable | Sketch | None = None,
        removed: SketchTable | Sketch | None = None,
        *,
        kept: Mapping[str, SketchTable | Sketch] | None = None,
        returned: Sequence[str] = (),
        positions: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> int:
        """Add rows that came, take away rows that went, and move positions: all in one commit.

        Parameters
        ----------
        added, removed : SketchTable, Sketch or None
            Of the spec and the keys of the cube; of a cube without keys a sketch. That only rows
            are removed that were added is checked when slices are read.
        kept : mapping or None
            More that came, by a name under which it stays on the disk, to be taken away again.
        returned : sequence of str
            Names of what was kept whose rows went.
        positions : mapping or None
            By the name of a source, what JSON can hold: where reading goes on.
        expected : mapping or None
            The positions that the caller has started from, None where there was none. If another
            writer has moved one of these meanwhile, a :class:`ConflictError` is raised and nothing
            is written.

        Returns
        -------
        version : int
            Number of the commit. It is on the disk.
        """
        rows = added, removed, kept or {}
        return self._append(self._written_sums, rows, returned, positions, expected)

    def append_rows(
        self,
        added: Any = None,
        removed: Any = None,
        *,
        kept: Mapping[str, Any] | None = None,
        returned: Sequence[str] = (),
        positions: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
        n_threads: int | None = None,
        progress: Progress | bool | None = None,
    ) -> int:
        """Sketch rows that came and rows that went by the keys of the cube, in one commit.

        Parameters
        ----------
        added, removed : anything that :func:`sketchshift.sketch` reads, or None
            Rows. They are read once, block by block; a few thousand slices are in memory at a
            time, whatever their number.
        kept : mapping or None
            More rows that came, by name, as in :meth:`append`.
        returned, positions, expected
            As in :meth:`append`.
        n_threads, progress
            As in :func:`sketchshift.sketch`.

        Returns
        -------
        version : int
            Number of the commit. O(N m d) time; slices whose rows do not follow each other are
            written several times, and put together later.
        """
        with told_progress("append_rows", progress, "rows", "Reading rows") as advance:

            def write(sign: int, rows: Any) -> Iterator[_Held]:
                return self._written_rows(sign, rows, n_threads, advance)

            rows = added, removed, kept or {}
            return self._append(write, rows, returned, positions, expected)

    def _append(
        self,
        write: Callable[[int, Any], Iterator[_Held]],
        rows: tuple[Any, Any, Mapping[str, Any]],
        returned: Sequence[str],
        positions: Mapping[str, Any] | None,
        expected: Mapping[str, Any] | None,
    ) -> int:
        """Write parts of rows that came, that went and that are kept, and commit them."""
        *plain, named = rows
        moved, began = _as_json(positions or {}), _as_json(expected or {})
        _check_expected(self._log.state(), began)  # before any row is read
        with ExitStack() as held:
            others = [
                held.enter_context(part)
                for sign, some in zip((1, -1), plain, strict=True)
                if some is not None
                for part in write(sign, some)
            ]
            kept = {
                name: [held.enter_context(part) for part in write(1, some)]
                for name, some in named.items()
            }
            added = (*others, *chain.from_iterable(kept.values()))
            files = {name: [record.name for record in some] for name, some in kept.items()}

            gone: set[str] = set()

            def make(state: State) -> Commit:
                _check_expected(state, began)
                _check_kept(state, returned, kept)
                self._bounds([*state.parts.values(), *added])  # refuses keys of unlike types
                gone.update(part.name for name in returned for part in state.kept[name])
                return Commit(added, (), files, tuple(returned), moved)

            state = self._log.commit(make)
        with suppress(OSError, SketchshiftError):  # of old parts: the commit itself is in
            self._remove(gone - state.files)
            self._tidy(state)
        return state.number

    def _written_sums(self, sign: int, sums: SketchTable | Sketch) -> Iterator[_Held]:
        keys, totals = self._slices_of(sums)
        left = np.flatnonzero(totals.counts.any(axis=1))
        if len(left):
            own = keys.take(pa.array(left)) if self.by else keys
            yield self._written(sign, own, totals.take(left))

    def _written_rows(
        self, sign: int, rows: Any, n_threads: int | None, progress: Progress | None
    ) -> Iterator[_Held]:
        from sketchshift.data.hive import keep_text

        source = keep_text(self._reading.open(rows))
        if not self.by:
            sketcher = sketcher_for(self._reading, n_threads)
            whole = sketcher.update(source, progress=progress).sketch()
            yield from self._written_sums(sign, whole)
            return
        for table in tables_of(source, self._reading, n_threads, progress):
            yield from self._written_sums(sign, table)

    @property
    def _reading(self) -> Reading:
        """How rows are read."""
        keys = parse(self.by) if self.by else ()
        how = {name: value for name, value in self.reading.items() if name != PLANNED}
        return Reading(self.spec, keys=keys, **how)

    def merge(self, where: str | None = None) -> Sketch:
        """The sketch of the rows that are left, or of the slices among them that meet a condition.

        Parameters
        ----------
        where : str or None
            As in :meth:`SketchTable.where`. Parts whose keys cannot meet it are not read.

        Returns
        -------
        sketch : Sketch
            The same bytes as of a pass over these rows alone; of no rows where there are none.
            Time is linear in the bytes of the slices, memory does not grow with them.
        """

        def add(state: State) -> Sums:
            selection = self._select(state, where)
            sums = Sums(self._layout, 1)
            self._add(selection, sums, np.zeros(len(selection), dtype=np.int64))
            return sums

        totals = self._checked_sums(self._read(add).totals())
        return Sketch(self.spec, self.spec.fingerprint, totals)

    def table(self, where: str | None = None, by: str | Sequence[str] | None = None) -> SketchTable:
        """Slices, added up by some of their keys.

        Parameters
        ----------
        where : str or None
            As in :meth:`merge`.
        by : str, sequence of str or None
            Keys to keep; None: all.

        Returns
        -------
        table : SketchTable
            Without slices of which no rows are left. More than would fit in memory are an error.
        """
        if not self.by:
            raise DataError("the cube has no keys, and so no table. Take the sketch: cube.merge().")
        names = list(self.keys) if by is None else [by] if isinstance(by, str) else list(by)
        check_names("by", names, self.keys)

        def add(state: State) -> tuple[Any, Sums]:
            selection = self._select(state, where)
            groups, numbers = number_groups(selection.own_keys.select(names))
            layout, cells = self._layout, self._layout.spec.cells
            n_cells = 0 if cells is None else cells.n_cells
            of_cells = min(selection.n_bytes, layout.bytes_of(0, len(groups) * n_cells))
            needed = 2.0 * (layout.bytes_of(len(groups), 0) + of_cells)
            check_room(len(groups), names, needed, fix=FEWER_KEYS)
            sums = Sums(self._layout, len(groups))
            self._add(selection, sums, numbers)
            return groups, sums

        groups, sums = self._read(add)
        totals = self._checked_sums(sums.totals(), groups)
        left = np.flatnonzero(totals.counts.any(axis=1))
        return SketchTable(groups.take(pa.array(left)), totals.take(left), self.spec.fingerprint)

    def summary(self, where: str | None = None) -> tuple[Any, IntArray]:
        """Keys and numbers of rows of all slices that are left, without their sums.

        Parameters
        ----------
        where : str or None
            As in :meth:`merge`.

        Returns
        -------
        keys : Arrow table
            One row for each slice, in ascending order.
        counts : int array
            Numbers of rows.
        """

        def count(state: State) -> tuple[Any, IntArray]:
            return self._select(state, where).totals()

        keys, counts = self._read(count)
        self._check_counts(keys, counts)
        left = np.flatnonzero(counts.any(axis=1))
        return keys.take(pa.array(left)), counts[left, 0]

    def compact(self) -> int:
        """Put all parts together, sorted by key, and remove files that nobody needs.

        Readers and other writers go on meanwhile.

        Returns
        -------
        version : int
            Number of the newest commit.
        """
        self._log.check()  # what a lost commit refers to must not be swept away
        while not self._put_together(list(self._log.state().parts.values())):
            pass
        sweep_unheld(self.path / "drafts", lambda name: False)
        sweep_unheld(self.path / "parts", lambda name: name in self._log.state().files)
        return self.version

    def _put_together(self, records: Sequence[PartRecord]) -> bool:
        """Replace parts by their sum; False if another writer has replaced one of them."""
        if len(records) < 2:
            return True
        dropped = tuple(record.id for record in records)
        is_done = True
        with ExitStack() as held:
            try:
                parts = [held.enter_context(part) for part in self._sum_of(records)]
            except FileNotFoundError as cause:
                if all(part in self._log.state().parts for part in dropped):
                    raise self._lost(cause) from cause
                return False  # replaced already

            def make(state: State) -> Commit | None:
                nonlocal is_done
                is_done = all(part in state.parts for part in dropped)
                return Commit(tuple(parts), dropped) if is_done else None

            state = self._log.commit(make)
        written = [part.name for part in parts] if not is_done else []
        self._remove({*written, *(record.name for record in records)} - state.files)
        return is_done

    def _remove(self, names: Iterable[str]) -> None:
        """Remove files of parts that nobody will refer to again."""
        for name in names:
            (self.path / "parts" / name).unlink(missing_ok=True)

    def _sum_of(self, records: Sequence[PartRecord]) -> Iterator[_Held]:
        """Parts with the sums of others, sorted by key; a few thousand slices at a time."""
        indexes = [self._index(record) for record in records]
        selection = _Selection(records, indexes, self._bounds(records).schema)
        groups, numbers = _number(selection.own_keys, len(selection))
        for span in spans(len(groups), self._part_slices):
            some = np.flatnonzero((numbers >= span.start) & (numbers < span.stop))
            own = selection.only(some)
            sums = Sums(self._layout, span.stop - span.start)
            own.add_to(sums, numbers[some] - span.start)
            totals, left = sums.totals().without_zeros()
            if len(left):
                keys = groups.take(pa.array(left + span.start))
                yield self._written(1, keys, totals)

    @property
    def _part_slices(self) -> int:
        """Slices of a part that others are put together in."""
        return max(1, min(PART_SLICES, PART_BYTES // (8 * self._layout.width)))

    def _tidy(self, state: State) -> None:
        """Put small parts of about the same size together, once they are many.

        Parts that are half full stay: to write full ones again would leave as many.
        """
        tiers: dict[int, list[PartRecord]] = defaultdict(list)
        for record in state.parts.values():
            if record.n_bytes < MOST_TIDIED and record.n_slices <= self._part_slices // 2:
                tiers[int(math.log(record.n_bytes, FEW_PARTS))].append(record)
        for records in tiers.values():
            if len(records) >= FEW_PARTS:
                self._put_together(records)

    def _add(self, selection: _Selection, sums: Sums, groups: IntArray) -> None:
        """Add slices to sums, unless more rows went from one of them than came."""
        if selection.add_to(sums, groups):
            self._check_counts(*selection.totals())

    def _select(self, state: State, where: str | None) -> _Selection:
        """The slices of a state that meet a condition."""
        if where is not None and not self.by:
            raise DataError("where selects slices by their keys, and the cube has none.")
        records = list(state.parts.values())
        bounds = self._bounds(records)  # a condition means the same, whichever parts it rules out
        if where is not None and records:
            counts = pa.nulls(len(bounds), pa.int64())  # a condition on counts rules no part out
            kept = find_ranges(bounds.append_column(COUNT, counts), where)
            records = [records[i] for i in kept]
        selection = self._all_of(records, bounds.schema)
        if where is None or not len(selection):
            return selection
        if COUNT not in columns_named(where):
            return selection.only(selection.find(where))
        groups, counts = selection.totals()
        _, numbers = number_groups(selection.own_keys)
        found = find_rows(groups.append_column(COUNT, pa.array(counts[:, 0])), where)
        return selection.only(np.flatnonzero(np.isin(numbers, found)))

    def _bounds(self, records: Sequence[PartRecord]) -> Any:
        """Smallest and largest keys of some parts, one below the other, in types that hold all."""
        if not (self.by and records):
            return pa.table({name: pa.nulls(0) for name in self.keys})
        return stack_all([read_bounds(record.keys) for record in records])

    def _all_of(self, records: Sequence[PartRecord], schema: Any) -> _Selection:
        """All slices of some parts; those that were asked for last stay in memory."""
        last = self._last
        if last is None or last.records != records or last.schema != schema:
            indexes = [self._index(record) for record in records]
            self._last = last = _Selection(records, indexes, schema)
        return last

    def _index(self, record: PartRecord) -> PartIndex:
        """The head of a part, which stays in memory."""
        if record.name not in self._heads:
            path = self.path / "parts" / record.name
            head = PartIndex.read(path, record, self._layout)
            if (own := tuple(head.keys)) != self.keys:
                msg = f"{path}: the cube has the keys {listed(self.keys)}, this {listed(own)}."
                raise SketchFormatError(msg)
            self._heads[record.name] = head
        return self._heads[record.name]

    def _read(self, work: Callable[[State], T]) -> T:
        """What some work on the newest state gives; again where its parts were put together."""
        while True:
            state = self._log.state()
            for name in set(self._heads) - state.files:
                del self._heads[name]
            try:
                return work(state)
            except FileNotFoundError as cause:
                if self._log.state().number == state.number:
                    raise self._lost(cause) from cause

    def _lost(self, cause: FileNotFoundError) -> SketchFormatError:
        msg = f"a part of the cube {self.path} is not there: {cause.filename}. {WHOLE}"
        return SketchFormatError(msg)

    def _checked_sums(self, totals: Totals, keys: Any = None) -> Totals:
        """Sums that must be those of rows: of slices with some keys, or of all."""
        totals.check_capacity()
        are_sound = totals.are_sound()
        if not are_sound.all():
            i = int(np.argmin(are_sound))
            n = counted(int(totals.counts[i, 0]), "row")
            left = f"{n} would be left, with sums that no rows have"
            raise self._removed_too_much("" if keys is None else _slice_in_words(keys, i), left)
        return totals

    def _check_counts(self, keys: Any, counts: IntArray) -> None:
        """Refuse slices (G, 2) that more rows have gone from than came."""
        short = np.flatnonzero((counts < 0).any(axis=1))
        if len(short):
            others = f", and {counted(len(short) - 1, 'slice')} more," if len(short) > 1 else ""
            n = counted(-int(counts[short[0]].min()), "row")
            where = _slice_in_words(keys, int(short[0])) + others
            raise self._removed_too_much(where, f"{n} more went than came")

    def _removed_too_much(self, where: str, fact: str) -> RemovalError:
        msg = (
            f"rows were removed from the cube {self.path} that were never added to it{where}: "
            f"{fact}. Append what was removed by mistake again, as added, or make a new cube."
        )
        return RemovalError(msg)

    def _slices_of(self, sums: SketchTable | Sketch) -> tuple[Any, Totals]:
        """Keys and totals, of the spec and the keys of the cube."""
        if isinstance(sums, Sketch) and not self.by:
            self._check_spec(sums)
            return pa.table({"": [0]}).select([]), sums._totals
        if isinstance(sums, SketchTable) and sums.by == self.keys:
            if sums.totals is None or not len(sums):
                return sums.keys, Totals.zero(self._layout, 0)
            self._check_spec(sums.any_sketch())
            return sums.keys, sums.totals
        shown = f"a table by {listed(self.keys)}" if self.by else "a sketch"
        got = f"a table by {listed(sums.by)}" if isinstance(sums, SketchTable) else "a sketch"
        msg = f"this cube takes {shown}, and it was given {got}. Sketch the rows by its keys."
        raise IncompatibleSketchesError(msg)

    def _check_spec(self, sketch: Sketch) -> None:
        own = Sketch(self.spec, self.spec.fingerprint, Totals.zero(self._layout))
        check_same_spec(own, sketch, "merge")

    @contextmanager
    def _written(self, sign: int, keys: Any, totals: Totals) -> Iterator[PartRecord]:
        """A part on the disk; nobody sweeps it while the body runs."""
        keys = self._conform(keys)
        name = f"{secrets.token_hex(16)}.slices"
        with hold_new(self.path / "drafts") as file:
            sizes = write_part(file, keys, totals)
            put_down(file, self.path / "parts" / name)
            record = PartRecord(name, sign, len(totals), *sizes, bounds_of(keys))
            del keys, totals  # many parts are held until they are committed
            yield record

    def _conform(self, keys: Any) -> Any:
        """Keys as the parts before have them: whole numbers become texts where these are such."""
        bounds = self._bounds(list(self._log.state().parts.values()))
        for i, kind in enumerate(bounds.schema.types):
            column = keys.column(i)
            if pa.types.is_string(kind) and pa.types.is_integer(column.type):
                keys = keys.set_column(i, keys.column_names[i], column.cast(pa.string()))
        stack_keys(bounds, keys.slice(0, 1))  # refuses unlike types before more rows are read
        return keys


@dataclass(frozen=True, eq=False)
class _Selection:
    """Some slices of some parts.

    Attributes
    ----------
    schema : Arrow schema
        Of the keys, in types that hold those of the whole cube.
    some : int array of shape (n,) or None
        Which of all slices of the parts are selected, ascending; None: all.
    """

    records: Sequence[PartRecord]
    indexes: Sequence[PartIndex]
    schema: Any
    some: IntArray | None = None

    @cached_property
    def starts(self) -> IntArray:
        """Where the slices of each part begin among all, shape (parts + 1,)."""
        return np.cumsum([0, *(len(index) for index in self.indexes)])

    def __len__(self) -> int:
        return int(self.starts[-1]) if self.some is None else len(self.some)

    @property
    def own_keys(self) -> Any:
        """Those of the slices selected."""
        tables = [index.keys_of(rows, self.schema) for _, index, _, rows in self.by_part()]
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def find(self, where: str) -> IntArray:
        """The slices of all parts for which a condition on their keys is true, ascending.

        It is asked once for all slices with the same values, where these are few.
        """
        in_condition = columns_named(where)
        named = [name for name in self.schema.names if name in in_condition]
        values = [self._values(name) for name in named]
        shape = [len(own) for own, _ in values]
        if not named or math.prod(shape) > len(self):
            return find_rows(self.own_keys, where)
        asked = {field.name: pa.nulls(math.prod(shape), field.type) for field in self.schema}
        grid = np.indices(shape).reshape(len(shape), -1)
        for name, (own, _), at in zip(named, values, grid, strict=True):
            asked[name] = own.take(pa.array(at))
        is_true = np.zeros(shape, dtype=bool)
        is_true.flat[find_rows(pa.table(asked), where)] = True
        places = zip(*(of_parts for _, of_parts in values), strict=True)
        parts = zip(self.indexes, places, self.starts[:-1], strict=True)
        found = [index.find(named, is_true[np.ix_(*own)]) + first for index, own, first in parts]
        return np.concatenate(found)

    def _values(self, name: str) -> tuple[Any, list[IntArray]]:
        """The different values of a key, and which of them are those of each part."""
        own = [index.values_of(self.schema.field(name)) for index in self.indexes]
        encoded = pa.concat_arrays(own).dictionary_encode("encode")
        ends = np.cumsum([len(values) for values in own])
        return encoded.dictionary, np.split(encoded.indices.to_numpy(), ends[:-1])

    def only(self, some: IntArray) -> _Selection:
        """Some of all slices of the parts, ascending."""
        return replace(self, some=some)

    def by_part(self) -> Iterator[tuple[PartRecord, PartIndex, slice, IntArray]]:
        """Each part that slices are selected of, which of them these are, and their rows there."""
        some = np.arange(len(self)) if self.some is None else self.some
        ends = np.searchsorted(some, self.starts)
        for i in np.flatnonzero(np.diff(ends)).tolist():
            own = slice(ends[i], ends[i + 1])
            yield self.records[i], self.indexes[i], own, some[own] - self.starts[i]

    @property
    def n_bytes(self) -> float:
        """Of the selected slices in the parts, if all of a part are of one size."""
        return sum(len(rows) * part.n_bytes / part.n_slices for part, _, _, rows in self.by_part())

    def add_to(self, sums: Sums, groups: IntArray) -> bool:
        """Add all slices to the groups (n,) that they belong to, and say whether rows went."""
        has_gone = False
        for record, index, own, rows in self.by_part():
            for some, totals in index.read_rows(rows):
                sums.add(totals, groups[own][some], record.sign)
                has_gone = has_gone or bool((record.sign * totals.counts < 0).any())
        return has_gone

    def totals(self) -> tuple[Any, IntArray]:
        """The different keys, and their rows and rows left out, shape (G, 2)."""
        groups, numbers = _number(self.own_keys, len(self))
        counts = np.zeros((len(groups), 2), dtype=np.int64)
        for record, index, own, rows in self.by_part():
            np.add.at(counts, numbers[own], record.sign * index.counts[rows])
        return groups, counts


def _number(keys: Any, n: int) -> tuple[Any, IntArray]:
    """The different keys, and which of them each of n slices has: without keys there is one."""
    if keys.num_columns:
        return number_groups(keys)
    return pa.table({"": [0] * min(n, 1)}).select([]), np.zeros(n, dtype=np.int64)


def _slice_in_words(keys: Any, i: int) -> str:
    """Which slice it is, in a sentence; nothing where there are no keys."""
    values = keys.slice(i, 1).to_pylist()[0] if keys.num_columns else {}
    named = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    return f" in the slice {named}" if named else ""


def _key_names(by: Sequence[str]) -> tuple[str, ...]:
    return tuple(key.name for key in parse(by)) if by else ()


def _as_json(positions: Mapping[str, Any]) -> dict[str, Any]:
    """Positions as they are when they have been written and read."""
    try:
        return dict(json.loads(json.dumps(positions, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as cause:
        msg = f"positions must be numbers, texts, lists or mappings, for JSON to hold ({cause})."
        raise DataError(msg) from None


def _check_expected(state: State, expected: Mapping[str, Any]) -> None:
    for name, began in expected.items():
        found = state.positions.get(name)
        if found != began:
            msg = (
                f"the source {name!r} was at {json.dumps(began)} when this writer began, and "
                f"another has moved it to {json.dumps(found)}. Nothing was written: read "
                "cube.positions again, and go on from there."
            )
            raise ConflictError(msg)


def _check_kept(state: State, returned: Sequence[str], kept: Iterable[str]) -> None:
    again = [name for name in kept if name in state.kept and name not in returned]
    if again or len(set(returned)) < len(returned):
        msg = (
            f"sums are kept under a name once, and taken away once. Got {listed(again or returned)}"
            " again: give another name, or what is kept under it as returned."
        )
        raise DataError(msg)
    missing = [name for name in returned if name not in state.kept]
    if missing:
        msg = (
            f"the sums of {listed(missing)} are to be taken away, and the cube does not keep them "
            "under this name. Give the rows that went as removed, or begin a new cube."
        )
        raise DataError(msg)
