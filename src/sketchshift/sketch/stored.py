"""Reading stored tables of sketches: a few rows at a time, each sketch checked.

A file of some kilobytes may decode to gigabytes: a value that is written once for many rows, a page
of zeros. The sizes that the footer states are checked before a row is read. A footer may be wrong,
so a few rows are decoded at a time, and the bytes in memory are counted. The plan, which all rows
have in common, is read as a dictionary.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from sketchshift.errors import DataError, IncompatibleSketchesError, SketchFormatError
from sketchshift.sketch.file import read_plan
from sketchshift.sketch.keys import normalise_keys, refuse_kind, stack_keys
from sketchshift.sketch.packing import unpack_slices
from sketchshift.sketch.sketch import Sketch, check_same_spec
from sketchshift.sketch.table import COUNT, PLAN, SKETCH, group_keys
from sketchshift.sketch.totals import Layout, Totals
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
TEXTS = ("string", "large_string", "string_view")
UNNAMED = re.compile(r"__index_level_\d+__")  # numbers of rows that pandas adds to its columns

MOST_BYTES = 2**30
"""Of sketches that a table read from a file may hold, unless more are asked for."""

ROWS_AT_ONCE = 16  # decoded together, however large they are
BATCH_BYTES = 2**23  # joined to one batch
BATCH_SHARE = 8  # where all are held, so many batches at least take the bytes that are allowed
SMALLEST = 256  # bytes; no table of so many sketches fits into less memory


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
        The first has no rows. Memory: one part, and of each column one page and 16 rows.
    """
    with _name_errors(path):
        n_held, limit, rows = 0, max_bytes or MOST_BYTES, _Rows()
        for opened in _open_files(parse_path(path)):
            with opened as source:
                _check_sizes(pq.ParquetFile(source), where, max_bytes)
                file = pq.ParquetFile(
                    source,
                    read_dictionary=[PLAN],
                    pre_buffer=False,
                    buffer_size=2**16,
                    page_checksum_verification=True,
                )
                # any number of rows may share one large value
                few = file.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False)
                batches = _join_batches(few, max(BATCH_BYTES, (max_bytes or 0) // BATCH_SHARE))
                n_read = 0
                for part in select_parts(
                    _check_rows(batches, file), file.schema_arrow, where, rows
                ):
                    n_held += part.keys.nbytes + (0 if max_bytes is None else part.n_bytes)
                    n_read += len(part.keys)
                    if n_held > limit:
                        about = n_held / n_read * file.metadata.num_rows if where is None else 0
                        raise _too_large(max(n_held, int(about)), limit)
                    yield part


def _check_rows(batches: Iterable[Any], file: Any) -> Iterator[Any]:
    """The batches of a file; refuses fewer rows than its footer announces."""
    n_rows = 0
    for batch in batches:
        n_rows += batch.num_rows
        for field in batch.schema:
            if pa.types.is_dictionary(field.type) and field.name != PLAN:
                batch.column(field.name).validate(full=True)
        yield batch
    if n_rows != file.metadata.num_rows:
        msg = f"its footer announces {file.metadata.num_rows:,} rows, and {n_rows:,} came. "
        raise DataError(f"{msg}Was it damaged? Copy it again.")


def _join_batches(batches: Iterable[Any], n_bytes: int) -> Iterator[Any]:
    """Join batches until they have so many bytes."""
    held, n_held = [], 0
    for batch in batches:
        held.append(batch)
        n_held += batch.nbytes
        if n_held >= n_bytes:
            joined = pa.Table.from_batches(held)
            held, n_held = [], 0  # before the caller takes memory of its own
            yield joined
    if held:
        yield pa.Table.from_batches(held)


def _open_files(path: Place) -> Iterator[Any]:
    """The file, or one after the other those of a folder."""
    if isinstance(path, RemotePath):
        names = [file for file in path.rglob("*") if not file.name.startswith((".", "_"))]
        for file in names if path.is_dir() else [path]:
            yield arrow_file(file, "bits")
            check_unchanged(file)
        return
    files = pq.ParquetDataset(path, partitioning=None)
    if not files.files:
        msg = "the folder has no Parquet files. Give the one that `save` wrote to."
        raise DataError(msg)
    for file in files.files:
        inside = os.path.relpath(file, path)
        if "=" in inside.rpartition("/")[0]:
            msg = (
                f"the folder of {inside!r} is named after a key, which is in no column of the "
                "file and would be lost. Write the table with all columns of its key."
            )
            raise DataError(msg)
        yield files.filesystem.open_input_file(file)


def select_parts(
    batches: Iterable[Any], schema: Any, where: str | None, rows: _Rows | None = None
) -> Iterator[TablePart]:
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
    rows : _Rows or None
        What reads them, where other files of the table came before.

    Yields
    ------
    part : TablePart
        The first has no rows, so that a condition is read even where there are no batches.
    """
    _check_schema(schema)
    rows, first = rows or _Rows(), 0
    yield rows.part(schema.empty_table(), where, first)
    for batch in batches:
        yield rows.part(batch, where, first)
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
    """Reads rows of one plan, which is parsed once."""

    def __init__(self) -> None:
        self._text: bytes | None = None
        self._plan: tuple[Layout, str] | None = None

    def part(self, piece: Any, where: str | None, first: int) -> TablePart:
        """Those of a piece of a table for which a condition holds."""
        own = [name for name in piece.schema.names if name in (COUNT, PLAN, SKETCH)]
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
        fingerprint = "" if self._plan is None else self._plan[1]
        return TablePart(keys.take(pa.array(rows, pa.int64())), totals, fingerprint)

    def _read(self, piece: Any, rows: IntArray, first: int) -> Totals:
        """Totals of some rows."""

        def name(i: int) -> str:
            return f"row {first + int(rows[i])} of the table: "

        self._check_plans(_one_array(piece.column(PLAN)), rows, name)
        assert self._plan is not None
        sketches = _one_array(piece.column(SKETCH).cast(pa.large_binary())).fill_null(b"")
        _, ends, data = sketches.buffers()
        edges = np.frombuffer(ends, dtype=np.int64)[sketches.offset :]
        octets = np.frombuffer(data or b"", dtype=np.uint8)
        totals = unpack_slices(octets, edges[rows], edges[rows + 1], *self._plan, name)
        if COUNT in piece.schema.names:
            claimed = piece.column(COUNT).take(pa.array(rows)).to_pylist()
            _check_counts(claimed, totals.counts[:, 0].tolist(), (first + rows).tolist())
        return totals

    def _check_plans(self, plans: Any, rows: IntArray, name: Callable[[int], str]) -> None:
        """Refuse rows with different plans, or with none."""
        if not pa.types.is_dictionary(plans.type):
            plans = plans.dictionary_encode()
        numbers = plans.indices.cast(pa.int64()).fill_null(-1).to_numpy()
        codes, firsts = np.unique(numbers[rows], return_index=True)
        for code, i in zip(codes.tolist(), firsts.tolist(), strict=True):
            is_there = 0 <= code < len(plans.dictionary)
            text = plans.dictionary[code].as_buffer().to_pybytes() if is_there else b""
            if text == self._text:
                continue
            try:
                plan = read_plan(text)
            except SketchFormatError as error:
                raise SketchFormatError(f"{name(i)}{error}") from None
            if self._plan is not None:
                try:
                    check_same_spec(_empty_sketch(*self._plan), _empty_sketch(*plan), "merge")
                except IncompatibleSketchesError as error:
                    raise SketchFormatError(f"{name(i)}{error}") from None
            self._text, self._plan = text, plan


def _one_array(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _empty_sketch(layout: Layout, fingerprint: str) -> Sketch:
    return Sketch(layout.spec, fingerprint, Totals.zero(layout))


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
    _check_footer(file)
    sizes = [footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)]
    if max(sizes, default=0) > limit:
        msg = (
            f"it has a row group of {max(sizes):,} bytes, and at most {limit:,} are read. Write it "
            "with smaller row groups, or allow more in Python with max_bytes."
        )
        raise DataError(msg)
    if where is None and max_bytes is not None and sum(sizes) > max_bytes:
        raise _too_large(sum(sizes), max_bytes)


def _check_footer(file: Any) -> None:
    """Refuse a footer whose two schemas, of Parquet and of Arrow, differ: it has no checksum."""
    text = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if text is None:
        return
    try:
        stored = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
    except ValueError as cause:
        raise DataError(f"the schema in its footer is damaged ({cause}). Copy it again.") from None
    pairs = zip(stored.types, file.schema_arrow.types, strict=False)
    if stored.names != file.schema_arrow.names or not all(_agree(*pair) for pair in pairs):
        raise DataError("its footer has two schemas that differ. Was it damaged? Copy it again.")


def _agree(written: Any, read: Any) -> bool:
    """Whether a column written as one type may be read as another, as far as times go."""
    if not pa.types.is_timestamp(written):
        return bool(pa.types.is_date(written) == pa.types.is_date(read))
    if not pa.types.is_timestamp(read) or (written.tz is None) != (read.tz is None):
        return False
    # Parquet has no seconds, and writers may leave nanoseconds out
    return written.unit == read.unit or written.unit in ("s", "ns")


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
    kind = schema.field(PLAN).type if PLAN in schema.names else pa.null()
    has_plan = str(kind.value_type if pa.types.is_dictionary(kind) else kind) in TEXTS
    kind = str(schema.field(SKETCH).type) if SKETCH in schema.names else None
    if kind not in BYTES:
        fact = "is not there" if kind is None else f"holds {kind}, not bytes"
        msg = (
            f"a table of sketches has a column 'sketch' of bytes, and here it {fact}. "
            "`sketchshift sketch --by` writes such tables."
        )
        raise DataError(msg)
    if not has_plan:
        msg = (
            "a table of sketches has a column 'plan' of text, the same in all rows, and here is "
            "none. Select it with the column 'sketch'."
        )
        raise DataError(msg)
    if set(schema.names) <= {COUNT, PLAN, SKETCH}:
        msg = (
            "a table of sketches has at least one column of keys, and here is none. Select the "
            "columns of the key, too."
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
