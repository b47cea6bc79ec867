"""Values in the names of folders, as Hive writes them: ``day=2026-01-05/country=FR/x.parquet``.

They are columns of all files below, of any format: keys, and what conditions compare. A value is
read like a cell of a text file, so that which columns are numbers is told from all files together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sketchshift.data.source import Block, Request, Source, mark_as_written

__all__ = ["add_values", "keep_text"]

FOLDER = {b"sketchshift from": b"folder"}  # marks a column


def add_values(source: Source, request: Request) -> Source:
    """A source whose blocks have values among their keys, the same in all rows.

    Parameters
    ----------
    source : Source
        Of one file. A key that it delivers itself stays.
    request : Request
        Has the values. Those of its keys are added, and no others. Where it says that rows with
        these cannot count, the file is left after its first block, and not read again.
    """
    values = request.beyond
    wanted = [name for name in request.key_names if name in values]
    if not wanted:
        return source
    is_out = False

    def add(blocks: Iterator[Block]) -> Iterator[Block]:
        nonlocal is_out
        if is_out:
            return
        for number, block in enumerate(blocks):
            own = set() if block.keys is None else set(block.keys.schema.names)
            new = [name for name in wanted if name not in own]
            keys = _beside(block.keys, len(block.values), values, new)
            if number == 0 and new and request.may_count is not None:
                is_out = not request.may_count(keys.select(new).slice(0, 1))
                if is_out:
                    return
            yield replace(block, keys=keys)

    return source.map_blocks(add)


def _beside(keys: Any, n_rows: int, values: Mapping[str, str | None], new: Sequence[str]) -> Any:
    import pyarrow as pa

    fields, columns = ([], []) if keys is None else (list(keys.schema), list(keys.columns))
    for name in new:
        value, kind = values[name], pa.string()
        fields.append(pa.field(name, kind))
        columns.append(pa.nulls(n_rows, kind) if value is None else pa.repeat(value, n_rows))
    made = pa.Table if isinstance(keys, pa.Table) else pa.RecordBatch
    table = mark_as_written(made.from_arrays(columns, schema=pa.schema(fields)), new)
    marked = [f.with_metadata(f.metadata | FOLDER) if f.name in new else f for f in table.schema]
    return made.from_arrays(table.columns, schema=pa.schema(marked))


def keep_text(source: Source) -> Source:
    """The same source, whose values of folders are text for good.

    Sums that are kept by key need one type, and folders that come later may hold no numbers.
    """

    def unmark(blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            fields = [] if block.keys is None else list(block.keys.schema)
            if any(map(_is_of_folder, fields)):
                yield replace(block, keys=_unmarked(block.keys))
            else:
                yield block

    return source.map_blocks(unmark)


def _unmarked(keys: Any) -> Any:
    import pyarrow as pa

    fields = [f.remove_metadata() if _is_of_folder(f) else f for f in keys.schema]
    return type(keys).from_arrays(keys.columns, schema=pa.schema(fields))


def _is_of_folder(field: Any) -> bool:
    return field.metadata is not None and FOLDER.items() <= field.metadata.items()
