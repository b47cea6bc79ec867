"""Reading stored tables of sketches: a few rows at a time, each sketch checked.

A file of some kilobytes may decode to gigabytes: a value that is written once for many rows, a page
of zeros. The sizes that the footer states are checked before a row is read. A footer may be wrong,
so rows are decoded one at a time, and the bytes in memory are counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sketchshift._paths import Place, RemotePath, arrow_file, check_unchanged, parse_path
from sketchshift._text import listed
from sketchshift._typing import IntArray
from sketchshift.data.source import spans
from sketchshift.errors import DataError, SketchFormatError
from sketchshift.sketch.file import decode_alike
from sketchshift.sketch.keys import normalise_keys, refuse_kind, stack_keys
from sketchshift.sketch.sketch import Sketch, check_same_spec
from sketchshift.sketch.table import COUNT, SKETCH, group_keys
from sketchshift.sketch.totals import Totals
from sketchshift.sketch.where import ROW, find_rows

__all__ = [
    "MOST_BYTES",
    "TablePart",
    "join_parts",
    "read_parts",
    "select_parts",
    "stack_all",
    "summarise_file",
]

BYTES = ("binary", "large_binary", "binary_view")  # types of Arrow
UNNAMED = re.compile(r"__index_level_\d+__")  # numbers of rows that pandas adds to its columns

MOST_BYTES = 2**30
"""Of sketches that a table read from a file may hold, unless more are asked for."""

BATCH_BYTES = 2**24  # joined to one batch; never less than a row
BATCH_ROWS = 1024
MOST_DIGITS = 2**22  # of slices that are decoded at a time, were all their cells full
SMALLEST = 256  # bytes; the sketch of one column and one frequency has more


@dataclass(frozen=True)
class TablePart:
    """Some rows of a table: keys, as :func:`normalise_keys` makes them, and their totals.

    Attributes
    ----------
    keys : Arrow table of n rows
        Of the slices.
    totals : Totals or None
        None of no rows.
    fingerprint : str
        Of the spec.
    """

    keys: Any
    totals: Totals | None
    fingerprint: str

    @property
    def counts(self) -> IntArray:
        """Numbers of rows behind each slice."""
        return np.zeros(0, np.int64) if self.totals is None else self.totals.counts[:, 0]

    @property
    def n_bytes(self) -> int:
        """Memory of the totals."""
        return 0 if self.totals is None else self.totals.n_bytes


def read_parts(
    path: str | os.PathLike[str], where: str | None = None, *, max_bytes: int | None = None
) -> Iterator[TablePart]:
    """The rows of a Parquet file, or of a folder of them, for which a condition holds.

    Parameters
    ----------
    path : path
        What is wrong with it is said with its name.
    where : str or None
        As :meth:`SketchTable.where` takes it.
    max_bytes : int or None
        What all parts together may take, for a caller that holds them; None for one that holds
        the keys alone.

    Yields
    ------
    part : TablePart
        The first has no rows. Memory: one part, and one page and one row of each column.
    """
    with _name_errors(path):
        n_held, limit = 0, max_bytes or MOST_BYTES
        for opened in _open_files(parse_path(path)):
            with opened as source:
                file = pq.ParquetFile(source, pre_buffer=False, buffer_size=2**16)
                _check_sizes(file, where, max_bytes)
                # any number of rows may share one large value of a dictionary
                batches = _join_batches(file.iter_batches(batch_size=1, use_threads=False))
                n_read = 0
                for part in select_parts(batches, file.schema_arrow, where):
                    n_held += part.keys.nbytes + (0 if max_bytes is None else part.n_bytes)
                    n_read += len(part.keys)
                    if n_held > limit:
                        about = n_held / n_read * file.metadata.num_rows if where is None else 0
                        raise _too_large(max(n_held, int(about)), limit)
                    yield part


def _join_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Join batches of one row to batches of BATCH_ROWS rows, or of BATCH_BYTES if that is less."""
    held, n_bytes = [], 0
    for batch in batches:
        held.append(batch)
        n_bytes += batch.nbytes
        if len(held) == BATCH_ROWS or n_bytes >= BATCH_BYTES:
            joined = pa.Table.from_batches(held).combine_chunks()
            held, n_bytes = [], 0  # before the caller takes memory of its own
            yield joined
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _open_files(path: Place) -> Iterator[Any]:
    """The file, or one after the other those of a folder."""
    if isinstance(path, RemotePath):
        names = [file for file in path.rglob("*") if not file.name.startswith((".", "_"))]
        for file in names if path.is_dir() else [path]:
            yield arrow_file(file, "bits")
            check_unchanged(file)
        return
    files = pq.ParquetDataset(path, partitioning=None)
    yield from map(files.filesystem.open_input_file, files.files)


def select_parts(batches: Iterable[Any], schema: Any, where: str | None) -> Iterator[TablePart]:
    """The rows of record batches for which a condition holds.

    Parameters
    ----------
    batches : iterable of RecordBatch or Table
        Taken one at a time.
    schema : Arrow schema
        Theirs; what is no table of sketches is refused before a batch is taken.
    where : str or None
        As in :func:`read_parts`. Of rows left out no sketch is looked at, unless the condition
        names ``count``, which is then that of the sketches.

    Yields
    ------
    part : TablePart
        The first has no rows, so that a condition is read even where there are no batches.
    """
    _check_schema(schema)
    rows, first = _Rows(), 0
    yield rows.part(schema.empty_table(), where, first)
    for batch in batches:
        for span in spans(batch.num_rows, BATCH_ROWS):
            piece = batch.slice(span.start, span.stop - span.start)
            yield rows.part(piece, where, first + span.start)
        first += batch.num_rows


def join_parts(parts: Iterable[TablePart]) -> tuple[Any, Totals | None, str]:
    """The keys, the totals and the fingerprint of all parts."""
    keys, totals, fingerprint = [], [], ""
    for part in parts:
        keys.append(part.keys)
        if part.totals is not None:
            totals.append(part.totals)
            fingerprint = part.fingerprint
    return stack_all(keys), Totals.join(totals) if totals else None, fingerprint


def summarise_file(
    path: str | os.PathLike[str], where: str | None = None
) -> tuple[Any, list[int], Sketch | None]:
    """What there is in a file of sketches, without holding more than a few of them.

    Parameters
    ----------
    path, where
        As in :func:`read_parts`.

    Returns
    -------
    keys : Arrow table
        One row for each slice, as :class:`SketchTable` has them.
    counts : list of int
        Numbers of rows of the slices.
    whole : Sketch or None
        Of the rows of all; None if there are no slices.
    """
    keys, counts, sums, fingerprint = [], [np.zeros(0, np.int64)], None, ""
    for part in read_parts(path, where):
        keys.append(part.keys)
        counts.append(part.counts)
        if part.totals is not None:
            fingerprint = part.fingerprint
            sums = part.totals.merged() if sums is None else sums + part.totals.merged()
    if sums is None:
        return keys[0], [], None
    slices, numbers = group_keys(stack_all(keys))
    found = np.zeros(len(slices), dtype=np.int64)
    np.add.at(found, numbers, np.concatenate(counts))
    return slices, found.tolist(), Sketch(sums.layout.spec, fingerprint, sums)


def stack_all(keys: Sequence[Any]) -> Any:
    """One below the other; those of two files may differ in their types."""
    if all(part.schema == keys[0].schema for part in keys):
        return pa.concat_tables(keys)
    return reduce(_below, keys)


def _below(above: Any, below: Any) -> Any:
    if set(above.column_names) != set(below.column_names):
        msg = (
            f"files of one table have the same key, and here one has {listed(above.column_names)} "
            f"and another {listed(below.column_names)}. Read them one by one."
        )
        raise DataError(msg)
    return stack_keys(above, below)


class _Rows:
    """Reads rows of one spec, which is read once."""

    def __init__(self) -> None:
        self._first: Sketch | None = None

    def part(self, piece: Any, where: str | None, first: int) -> TablePart:
        """Those of a piece of a table for which a condition holds."""
        own = [name for name in piece.schema.names if name in (COUNT, SKETCH)]
        own += [name for name in piece.schema.names if UNNAMED.fullmatch(name)]
        keys = normalise_keys(piece.drop_columns(own))
        rows, totals = np.arange(len(keys)), None
        if where is not None:
            counts = pa.nulls(len(keys), pa.int64())
            if COUNT in where and len(keys):  # else it cannot name it
                totals = self._read(piece, rows, first)
                counts = pa.array(totals.counts[:, 0])
            rows = np.asarray(find_rows(keys.append_column(COUNT, counts), where), dtype=np.int64)
        if totals is not None:
            totals = totals.take(rows)
        elif len(rows):
            totals = self._read(piece, rows, first)
        fingerprint = "" if self._first is None else self._first.fingerprint
        return TablePart(keys.take(pa.array(rows, pa.int64())), totals, fingerprint)

    def _read(self, piece: Any, rows: IntArray, first: int) -> Totals:
        """Totals of some rows, as many at a time as fit into memory in any case."""
        column = piece.column(SKETCH)  # of views, which Arrow cannot take
        files = [column[row].as_py() or b"" for row in rows.tolist()]
        if self._first is None:
            self._first = self._sketch(files[0], first + int(rows[0]))
        layout = self._first._totals.layout
        found = []
        for span in spans(len(files), max(1, MOST_DIGITS // layout.most_digits)):
            try:
                totals = decode_alike(files[span], layout, self._first.fingerprint)
            except SketchFormatError:
                totals = None
            if totals is None:
                self._refuse(files[span], first + rows[span])
            else:
                found.append(totals)
        result = Totals.join(found)
        if COUNT in piece.schema.names:
            claimed = piece.column(COUNT).take(pa.array(rows)).to_pylist()
            _check_counts(claimed, result.counts[:, 0].tolist(), (first + rows).tolist())
        return result

    def _refuse(self, files: Sequence[bytes], rows: IntArray) -> None:
        """Raise what is wrong with one of some sketches."""
        assert self._first is not None
        for data, row in zip(files, rows.tolist(), strict=True):
            check_same_spec(self._first, self._sketch(data, row), "merge")

    @staticmethod
    def _sketch(data: bytes, row: int) -> Sketch:
        try:
            return Sketch.from_bytes(data)
        except SketchFormatError as error:
            raise SketchFormatError(f"row {row} of the table: {error}") from None


def _check_counts(claimed: Sequence[Any], counts: Sequence[int], rows: Sequence[int]) -> None:
    for claim, count, row in zip(claimed, counts, rows, strict=True):
        if claim != count:
            shown = "missing" if claim is None else claim
            msg = (
                f"row {row} of the table: its count is {shown}, and its sketch has {count} rows. "
                "Leave the column 'count' out: the sketches know it."
            )
            raise SketchFormatError(msg)


def _check_sizes(file: Any, where: str | None, max_bytes: int | None) -> None:
    """Refuse a file that does not fit into memory, by the sizes that its footer states.

    Only row groups are looked at: pyarrow ends the process when it is asked for a column chunk of
    some damaged footers.
    """
    limit, footer = max(max_bytes or 0, MOST_BYTES), file.metadata
    if footer.num_rows > limit // SMALLEST:
        msg = (
            f"it has {footer.num_rows:,} rows, and at most {limit // SMALLEST:,} are read. Read "
            "it in parts, or allow more in Python with max_bytes."
        )
        raise DataError(msg)
    _check_schema(file.schema_arrow)
    sizes = [footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)]
    if max(sizes, default=0) > limit:
        msg = (
            f"it has a row group of {max(sizes):,} bytes, and at most {limit:,} are read. Write it "
            "with smaller row groups, or allow more in Python with max_bytes."
        )
        raise DataError(msg)
    if where is None and max_bytes is not None and sum(sizes) > max_bytes:
        raise _too_large(sum(sizes), max_bytes)


def _too_large(n_bytes: int, max_bytes: int) -> DataError:
    msg = (
        f"its sketches and keys take about {n_bytes:,} bytes, and at most {max_bytes:,} bytes are "
        "held. Select slices with a condition (where, --where), or allow more in Python with "
        "max_bytes."
    )
    return DataError(msg)


@contextmanager
def _name_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (DataError, SketchFormatError) as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as cause:
        msg = f"cannot read {os.fspath(path)!r} as a Parquet file ({cause})."
        raise DataError(msg) from cause


def _check_schema(schema: Any) -> None:
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise DataError(f"the table has more than one column {twice[0]!r}. Select each once.")
    kind = str(schema.field(SKETCH).type) if SKETCH in schema.names else None
    if kind not in BYTES:
        fact = "is not there" if kind is None else f"holds {kind}, not bytes"
        msg = (
            f"a table of sketches has a column 'sketch' of bytes, and here it {fact}. "
            "`sketchshift sketch --by` writes such tables."
        )
        raise DataError(msg)
    if set(schema.names) <= {COUNT, SKETCH}:
        msg = (
            "a table of sketches has at least one column of keys, and here is none. Select the "
            "columns of the key, too; Sketch.from_bytes reads a sketch without a key."
        )
        raise DataError(msg)
    if ROW in schema.names:
        raise DataError(f"a key cannot be named {ROW!r}. Rename the column.")
    for field in schema:
        refuse_kind(field.type)
    kind = schema.field(COUNT).type if COUNT in schema.names else pa.int64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        msg = (
            f"the column 'count' holds {kind}, and it is the number of rows of each sketch. Leave "
            "it out: the sketches know it."
        )
        raise DataError(msg)
