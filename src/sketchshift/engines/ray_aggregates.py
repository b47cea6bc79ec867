"""Sketches as aggregates of Ray's, for ``Dataset.aggregate`` and ``groupby().aggregate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from sketchshift.engines.partitions import sketch_partition
from sketchshift.engines.reading import Reading, check_spec
from sketchshift.engines.travel import merge_sketch_bytes
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketcher

try:
    import ray.data
    from ray.data.aggregate import AggregateFn, AggregateFnV2
    from ray.data.block import BlockAccessor
    from ray.data.dataset import MaterializedDataset
except ImportError as cause:
    msg = 'sketchshift.engines.ray needs Ray Data. Install it: pip install "sketchshift[ray]".'
    raise MissingDependencyError(msg) from cause

__all__ = ["WHERE", "MaterializedDataset", "MergeBytes", "MergeSketches", "SketchRows", "ray"]

Merge = Callable[[Iterable[bytes]], bytes | None]
BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_null)
WHERE = "a block"
"""Name for messages: Ray does not number blocks."""


class MergeBytes(AggregateFnV2[bytes, bytes]):  # type: ignore[misc]
    """Adds up a column of bytes; missing ones are left out."""

    def __init__(self, merge: Merge, *, on: str, name: str) -> None:
        self._merge = merge
        super().__init__(name, lambda: b"", on=on, ignore_nulls=True)

    def aggregate_block(self, block: Any) -> bytes | None:
        """What the rows of one block add up to; None if there are none."""
        name = self.get_target_column()
        column = BlockAccessor.for_block(block).to_arrow().column(name)
        if not any(is_kind(column.type) for is_kind in BYTES):
            msg = f"column {name!r} holds {column.type}, not sketches as bytes. Name one that does."
            raise DataError(msg)
        return self._merge(part for part in column.to_pylist() if part)

    def combine(self, current_accumulator: bytes, new: bytes) -> bytes | None:
        """Two results as one."""
        return self._merge(part for part in (current_accumulator, new) if part)


class MergeSketches(MergeBytes):
    """The aggregate of stored sketches, for ``aggregate`` and ``groupby().aggregate``.

    Parameters
    ----------
    on : str, default="sketch"
        Column that holds sketches as bytes.
    name : str, default="sketch"
        Column of the result, again sketches as bytes.
    """

    def __init__(self, on: str = "sketch", *, name: str = "sketch") -> None:
        super().__init__(merge_sketch_bytes, on=on, name=name)


class SketchRows(AggregateFn):  # type: ignore[misc]
    """The aggregate of rows, for ``aggregate`` and ``groupby().aggregate``: beside others.

    ``sketch`` and ``sketch_by`` give the same bytes at less cost, since Ray sorts every block
    by the key before it aggregates. Not an ``AggregateFnV2``: that reads one column, and Ray
    drops the others before it groups.

    Parameters
    ----------
    spec : SketchSpec
        What is summed; it should name its columns, so that the key is not among them.
    name : str, default="sketch"
        Column of the result: sketches as bytes; of no rows, the sketch of none.
    **options
        ``columns``, ``sample_weight``, ``on_invalid`` and ``kernel``, as in :func:`sketch`.
    """

    def __init__(self, spec: SketchSpec, *, name: str = "sketch", **options: Any) -> None:
        reading = Reading(check_spec(spec), **options)

        def add(total: bytes, block: Any) -> bytes | None:
            table = BlockAccessor.for_block(block).to_arrow()
            return merge(total, sketch_partition(table, reading, where=WHERE).to_bytes())

        def merge(left: bytes, right: bytes) -> bytes | None:
            return merge_sketch_bytes(part for part in (left, right) if part)

        def finalize(total: bytes) -> bytes:
            return total or Sketcher(spec).sketch().to_bytes()  # of no rows

        super().__init__(
            init=lambda _: b"", merge=merge, accumulate_block=add, finalize=finalize, name=name
        )
