"""How a text table is opened, in every pass over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

__all__ = ["delimiter_of", "first_text", "is_gzipped", "open_text", "parse_text"]


def open_text(
    path: Path,
    size: int,
    types: Mapping[str, Any],
    on_ragged: Callable[[Any], str] | None = None,
    *,
    text_as_written: bool = False,
    part: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
) -> tuple[Any, Any]:
    """A reader of record batches, and the raw file below it.

    Text as it is written is UTF-8 and never missing: an empty cell is an empty text. Of a
    ``part`` of the file, a range of bytes without the header, the columns have these ``names``.

    Neither is closed here: Arrow reads ahead in a thread, which must not find its file
    closed. Both go when the last reference does.
    """
    text, raw = _open(path)
    if part is not None:
        text = raw.get_stream(part[0], part[1] - part[0])
    read = csv.ReadOptions(block_size=size, use_threads=on_ragged is None, column_names=names)
    options = _options(path, types, on_ragged, text_as_written=text_as_written)
    return csv.open_csv(text, read, *options), raw


def first_text(path: Path, size: int) -> str:
    """The first bytes as text, whatever their encoding."""
    return str(_open(path)[0].read(size).decode("latin-1"))


def parse_text(path: Path, text: bytes, types: Mapping[str, Any]) -> Any:
    """A table of a few lines of the file at ``path``, the header among them."""
    read = csv.ReadOptions(block_size=max(len(text), 1), use_threads=False)
    return csv.read_csv(pa.BufferReader(text), read, *_options(path, types))


def _options(
    path: Path,
    types: Mapping[str, Any],
    on_ragged: Callable[[Any], str] | None = None,
    *,
    text_as_written: bool = False,
) -> tuple[Any, Any]:
    parse = csv.ParseOptions(
        delimiter=delimiter_of(path),
        newlines_in_values=True,
        invalid_row_handler=on_ragged,
    )
    convert = csv.ConvertOptions(
        include_columns=list(types),
        column_types=dict(types),
        strings_can_be_null=not text_as_written,
        check_utf8=text_as_written,
    )
    return parse, convert


def _open(path: Path) -> tuple[Any, Any]:
    """The text, unpacked, and the raw file below it."""
    raw = pa.OSFile(str(path))
    return pa.CompressedInputStream(raw, "gzip") if is_gzipped(path) else raw, raw


def delimiter_of(path: Path) -> str:
    """What separates the cells, going by the name of the file."""
    return "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","


def is_gzipped(path: Path) -> bool:
    """Whether the text has to be unpacked, going by the name of the file."""
    return path.name.lower().endswith(".gz")
