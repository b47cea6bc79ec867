"""What travels as bytes or text, for engines that move no objects: sketches, tables, errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

import sketchshift.errors
from sketchshift.errors import MissingDependencyError
from sketchshift.sketch import Sketch, SketchTable

__all__ = [
    "merge_sketch_bytes",
    "merge_table_bytes",
    "own_errors",
    "table_from_bytes",
    "table_to_bytes",
]

RAISED = re.compile(r"sketchshift\.errors\.(\w+): (.*?)(?=\n\s*(?:SQLSTATE|\n)|\Z)", re.DOTALL)
MISSING = re.compile(r"No module named '(sketchshift|numpy|scipy|numba|pyarrow|narwhals)\b")


def merge_sketch_bytes(parts: Iterable[bytes]) -> bytes | None:
    """The sketch of several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes
        Sketches, taken one at a time.
    """
    merged: Sketch | None = None
    for part in map(Sketch.from_bytes, parts):
        merged = part if merged is None else merged + part
    return None if merged is None else merged.to_bytes()


def merge_table_bytes(parts: Iterable[bytes]) -> bytes | None:
    """The table of several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes
        Of :func:`table_to_bytes`, taken one at a time.
    """
    merged: SketchTable | None = None
    for part in map(table_from_bytes, parts):
        merged = part if merged is None else merged + part
    return None if merged is None else table_to_bytes(merged)


def table_to_bytes(table: SketchTable) -> bytes:
    """A table as a stream of Arrow, with the types of its keys."""
    rows, sink = table.to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def table_from_bytes(data: bytes) -> SketchTable:
    """What :func:`table_to_bytes` wrote."""
    with pa.ipc.open_stream(data) as stream:
        return SketchTable.from_arrow(stream.read_all())


@contextmanager
def own_errors(report: type[Exception]) -> Iterator[None]:
    """Raise what a worker raised, not an engine's report of it.

    Parameters
    ----------
    report : type
        What the engine raises; its text holds the worker's traceback.
    """
    try:
        yield
    except report as error:
        text = str(error)
        missing, raised = MISSING.search(text), RAISED.search(text)
        if missing is not None:
            msg = (
                f"the workers have no {missing[1]}. Install sketchshift where they run, in the "
                "version of this process."
            )
            raise MissingDependencyError(msg) from error
        kind = None if raised is None else getattr(sketchshift.errors, raised[1], None)
        if raised is None or kind is None:
            raise
        raise kind(raised[2].strip()) from error
