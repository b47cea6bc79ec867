"""Parts of a cube: files of slices that never change."""

from __future__ import annotations

import base64
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sketchshift.sketch.keys import normalise_keys
from sketchshift.sketch.sketch import Sketch

__all__ = ["bounds_of", "read_bounds", "read_part", "write_part"]


def write_part(file: IO[bytes], keys: Any, sketches: list[Sketch]) -> None:
    """Write slices, one for each row of the keys."""
    data = pa.array([sketch.to_bytes() for sketch in sketches], pa.binary())
    table = pa.table({"sketch": data})
    for name in keys.column_names:
        table = table.append_column(name, keys.column(name))
    pq.write_table(table, file, compression="zstd")


def read_part(path: Any) -> tuple[Any, list[Sketch]]:
    """Keys and sketches."""
    table = pq.ParquetFile(path).read()
    sketches = [Sketch.from_bytes(data.as_py()) for data in table.column("sketch")]
    return normalise_keys(table.drop_columns(["sketch"])), sketches


def bounds_of(keys: Any) -> str:
    """Smallest and largest value of each key."""
    columns = {}
    for name in keys.column_names:
        found = pc.min_max(keys.column(name)).as_py()
        columns[name] = pa.array([found["min"], found["max"]], keys.column(name).type)
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return base64.b64encode(sink.getvalue()).decode()


def read_bounds(text: str) -> Any:
    """What :func:`bounds_of` gave, as a table of two rows."""
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()
