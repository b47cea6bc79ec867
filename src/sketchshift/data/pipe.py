"""Rows that come through a pipe, as they come: Arrow, lines of JSON, or CSV.

The first byte says which. Hands Arrow tables; of text whole lines, many where many have come and
few where the sender pauses.
"""

from __future__ import annotations

import csv
import io
import os
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sketchshift.errors import DataError

__all__ = ["RowPipe"]

CHUNK_BYTES = 2**20  # of text that is parsed at once, where so much has come
GLANCE = 0.1  # seconds between two looks at whether to stop


class RowPipe:
    """Rows of standard input, or of another pipe.

    Parameters
    ----------
    descriptor : int
        Of the pipe.
    columns : sequence of str or None
        Columns of text that are read; None: all.
    is_stopped : callable
        Asked while the sender pauses. The pipe seems to end once it says True.
    """

    def __init__(
        self, descriptor: int, columns: Sequence[str] | None, is_stopped: Callable[[], bool]
    ) -> None:
        self._raw, self._columns = _RawPipe(descriptor, is_stopped), columns
        self._buffered = io.BufferedReader(self._raw, CHUNK_BYTES)

    @property
    def is_empty(self) -> bool:
        """Whether it ends before its first byte, or was to be stopped before that came."""
        return not self._buffered.peek(1)

    def tables(self) -> Iterator[Any]:
        """The rows, once, as Arrow tables or record batches."""
        import pyarrow as pa

        first = self._buffered.peek(1)[:1]
        try:
            if first == b"\xff":
                with pa.ipc.open_stream(self._buffered) as reader:
                    yield from reader
            else:
                yield from self._parse_lines(is_json=first == b"{")
        except pa.ArrowException as cause:
            if self._raw.is_stopped():  # in the midst of a batch
                return
            msg = f"cannot read standard input: {cause} Choose columns of numbers with --columns."
            raise DataError(msg) from cause

    def _parse_lines(self, is_json: bool) -> Iterator[Any]:
        lines = self._lines()
        if is_json:
            names = self._columns
            for text in lines:
                table = _parse_json(text, names)
                names = names or table.column_names
                yield table
            return
        header = self._buffered.readline()
        names = next(csv.reader([_decode(header)]), [])
        wanted = self._columns or names
        missing = [name for name in wanted if name not in names]
        if missing:
            msg = f"standard input has no column {missing[0]!r} in its first line: {names}."
            raise DataError(msg)
        for text in lines:
            yield _parse_csv(text, names, wanted)

    def _lines(self) -> Iterator[bytes]:
        """Whole lines: many, where many have come; few, where the sender pauses."""
        rest = b""
        while data := self._buffered.read1(CHUNK_BYTES):
            rest += data
            if len(rest) < CHUNK_BYTES and self._raw.has_more(0.0):
                continue
            lines, _, rest = rest.rpartition(b"\n")
            if lines.strip():
                yield lines
        if rest.strip() and not self._raw.is_stopped():
            yield rest


class _RawPipe(io.RawIOBase):
    """A pipe that seems to end when we are asked to stop."""

    def __init__(self, descriptor: int, is_stopped: Callable[[], bool]) -> None:
        self._descriptor, self.is_stopped = descriptor, is_stopped

    def readable(self) -> bool:
        return True

    def has_more(self, seconds: float) -> bool:
        """Whether a read would not wait; Windows cannot tell."""
        return os.name != "posix" or bool(select.select([self._descriptor], [], [], seconds)[0])

    def readinto(self, buffer: Any) -> int:
        while not self.has_more(GLANCE):
            if self.is_stopped():
                return 0
        data = b"" if self.is_stopped() else os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _decode(header: bytes) -> str:
    """The first line of a text."""
    try:
        return header.decode("utf-8-sig")
    except UnicodeDecodeError:
        msg = (
            "standard input is neither CSV, nor JSON lines, nor an Arrow stream. Give files by "
            "their names instead of -."
        )
        raise DataError(msg) from None


def _parse_csv(text: bytes, names: Sequence[str], wanted: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    return pyarrow.csv.read_csv(
        pa.BufferReader(text),
        read_options=pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float64())
        ),
    )


def _parse_json(text: bytes, wanted: Sequence[str] | None) -> Any:
    import pyarrow as pa
    import pyarrow.json

    options = None
    if wanted is not None:
        schema = pa.schema([(name, pa.float64()) for name in wanted])
        options = pyarrow.json.ParseOptions(schema, unexpected_field_behavior="ignore")
    return pyarrow.json.read_json(pa.BufferReader(text), parse_options=options)
