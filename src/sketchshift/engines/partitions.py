"""What a worker does with one partition, and how the results of partitions become one.

An engine cuts a collection into partitions, runs these functions where the partitions lie,
and moves what they return: a sketch, or some thousand rows for a plan. Neither grows with the
partition. Merging is associative and commutative, so any tree of merges will do, and a partition
that is read again after a fault gives what it gave before. Knows no engine.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from sketchshift._typing import IntArray
from sketchshift.data import Source, open_source
from sketchshift.data.parts import PartSample, in_one_order, merge_parts
from sketchshift.data.places import spread
from sketchshift.data.sampling import PLACES
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.keys import columns_of, parse
from sketchshift.sketch.plan import draw_sample, plan_sample, sample_size
from sketchshift.sketch.sketcher import open_for
from sketchshift.sketch.slices import rows_of_block, slices_of

__all__ = [
    "PlanRows",
    "merge_plan_rows",
    "merge_sketches",
    "partitions_to_sample",
    "plan_rows_of_partition",
    "plan_spec",
    "sketch_partition",
    "sketch_partition_by",
    "thinned",
]

THINNED_ROWS = 100_000
"""Rows of a partition that a plan draws from, where a partition is a stream of batches."""


def sketch_partition(
    partition: Any,
    spec: SketchSpec,
    *,
    where: str,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
) -> Sketch:
    """The sketch of one partition, on one thread: the engine decides how many run at a time.

    Parameters
    ----------
    partition : array, frame, Arrow data, or list or iterator of such blocks
        May be empty; then the sketch is that of no rows.
    spec : SketchSpec
        What is summed.
    where : str
        Name of the partition for messages.
    columns, sample_weight, on_invalid, kernel
        As in :func:`sketchshift.sketch`.

    Returns
    -------
    sketch : Sketch
        O(n m d) time; memory beside the partition does not grow with it.
    """
    sketcher = Sketcher(spec, n_threads=1, on_invalid=on_invalid, kernel=kernel)
    with _named(where):
        blocks = _blocks_of(partition)
        if blocks is not None:
            sketcher.update(blocks, columns=columns, sample_weight=sample_weight)
    return sketcher.sketch()


def sketch_partition_by(
    partition: Any,
    by: str | Sequence[str],
    spec: SketchSpec,
    *,
    where: str,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    max_slices: int = 10_000,
    on_invalid: str = "raise",
    kernel: str = "auto",
) -> SketchTable | None:
    """The sketches of one partition by key, on one thread.

    Parameters
    ----------
    partition, spec, where, columns, sample_weight, on_invalid, kernel
        As in :func:`sketch_partition`.
    by, max_slices
        As in :func:`sketchshift.sketch_by`.

    Returns
    -------
    table : SketchTable or None
        None for a partition without rows, whose keys have no type. Memory grows with the number
        of keys.
    """
    sketcher = Sketcher(spec, n_threads=1, on_invalid=on_invalid, kernel=kernel)
    with _named(where):
        blocks, keys = _blocks_of(partition), parse(by)
        if blocks is None:
            return None
        source = open_for(
            spec,
            blocks,
            columns,
            names=spec.columns,
            weights=sample_weight,
            keys=columns_of(keys),
            block_rows=rows_of_block(spec),
        )
        table = slices_of(source, sketcher, keys, max_slices=max_slices)
    return table if len(table) else None


def merge_sketches(sketches: Sequence[Sketch]) -> Sketch:
    """The sketch of several partitions together."""
    return sum(sketches[1:], sketches[0])


@dataclass(frozen=True)
class PlanRows:
    """Rows of some partitions that a plan of the whole collection may need.

    Parameters
    ----------
    columns : tuple of str or None
        Names of the columns.
    sample : PartSample
        As many rows as a plan looks at, or all there are.
    """

    columns: tuple[str, ...] | None
    sample: PartSample

    def __sizeof__(self) -> int:
        # engines weigh by it what to move and what to keep
        arrays = [array for array in vars(self.sample).values() if array is not None]
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in arrays)

    def to_bytes(self) -> bytes:
        """The rows as bytes, for engines that move columns of bytes."""
        arrays = {name: array for name, array in vars(self.sample).items() if array is not None}
        if self.columns is not None:
            arrays["columns"] = np.array(self.columns)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> PlanRows:
        """What :meth:`to_bytes` wrote; ``data`` comes from a worker."""
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {"weights": None, **file}
        columns = arrays.pop("columns", None)
        names = None if columns is None else tuple(columns.tolist())
        return cls(names, PartSample(**arrays))


def thinned(batches: Iterator[Any]) -> list[Any]:
    """Some batches from all along a partition: 100 000 rows and a batch more, at most."""
    kept: list[Any] = []
    stride = 1
    for number, batch in enumerate(batches):
        if number % stride == 0:
            kept.append(batch)
        if len(kept) > 1 and sum(batch.num_rows for batch in kept) > THINNED_ROWS:
            kept, stride = kept[::2], 2 * stride
    return kept


def partitions_to_sample(n_partitions: int, seed: int) -> IntArray:
    """Numbers of the partitions that a plan looks into: 64 at most, from all along."""
    return spread(PLACES, n_partitions, seed)


def plan_rows_of_partition(
    partition: Any,
    n_clusters: int,
    *,
    seed: int,
    where: str,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    on_invalid: str = "raise",
) -> PlanRows | None:
    """Draw rows of one partition, by a hash of what they hold.

    Parameters
    ----------
    partition : array, frame, Arrow table, or list of such blocks
        Is read twice; may be empty.
    n_clusters, seed : int
        As in :func:`sketchshift.plan`.
    where : str
        Name of the partition for messages.
    columns, sample_weight, on_invalid
        As in :func:`sketchshift.plan`.

    Returns
    -------
    rows : PlanRows or None
        max(2000, 20 k) rows at most. None for a list without blocks, whose columns nobody knows.
    """
    with _named(where):
        blocks = _blocks_of(partition)
        if blocks is None:
            return None
        source: Source = open_source(blocks, columns=columns, weights=sample_weight)
        sample = draw_sample(source, n_clusters, seed=seed, on_invalid=on_invalid)
    return PlanRows(source.columns, sample)


def merge_plan_rows(parts: Sequence[PlanRows | None], n_clusters: int) -> PlanRows | None:
    """Of the rows of several partitions, those to draw from all of them.

    Parameters
    ----------
    parts : sequence of PlanRows or None
        Drawn with one seed and this number of clusters, or merged from such.
    n_clusters : int
        As in :func:`sketchshift.plan`.

    Returns
    -------
    rows : PlanRows or None
        The same in whichever order partitions are merged.
    """
    drawn = [part for part in parts if part is not None]
    if not drawn:
        return None
    for part in drawn:
        if part.columns != drawn[0].columns:
            msg = (
                f"partitions have different columns: {drawn[0].columns} and {part.columns}. "
                "Choose columns that all have with columns=[...]."
            )
            raise DataError(msg)
    samples = [part.sample for part in drawn]
    return PlanRows(drawn[0].columns, merge_parts(samples, sample_size(n_clusters)))


def plan_spec(
    rows: PlanRows | None,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    standardize: bool = False,
) -> SketchSpec:
    """The spec that suits the rows drawn; parameters as in :func:`sketchshift.plan`."""
    if rows is None:
        raise DataError("there are no rows to plan on. Check the path or the filter.")
    return plan_sample(
        in_one_order(rows.sample, seed=seed),
        n_clusters,
        columns=rows.columns,
        sketch_size=sketch_size,
        seed=seed,
        standardize=standardize,
    )


def _blocks_of(partition: Any) -> Any:
    """The partition as ``data`` reads it; None for a list or iterator that has no blocks."""
    if isinstance(partition, list | tuple):
        return partition or None
    if not isinstance(partition, Iterator) or hasattr(partition, "__arrow_c_stream__"):
        return partition
    first = next(partition, None)
    return None if first is None else chain([first], partition)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Rows are counted within a partition, so a message must name it."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{where}: {error}") from None
