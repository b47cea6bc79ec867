"""Rows for a plan: drawn where partitions lie, merged on the way, planned on here.

They travel as bytes, some thousand rows of a partition, however many it has. Merging is
associative and commutative. Knows no engine.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._typing import IntArray
from sketchshift._validation import check_flag, check_integer
from sketchshift.data.parts import PartSample, in_one_order, merge_parts
from sketchshift.data.places import spread
from sketchshift.data.sampling import PLACES
from sketchshift.engines.partitions import blocks_of, naming
from sketchshift.engines.reading import Reading
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.features.spec import MAX_SKETCH_SIZE
from sketchshift.sketch.plan import draw_sample, plan_sample, sample_size

__all__ = [
    "Planning",
    "merge_plan_rows",
    "partitions_to_sample",
    "plan_rows_of_partition",
    "plan_spec",
    "thinned",
]

THINNED_ROWS = 100_000
"""Rows of a partition that a plan draws from, where a partition is a stream of batches."""


@dataclass(frozen=True)
class Planning:
    """The parameters of :func:`sketchshift.plan`, checked before any row is drawn."""

    n_clusters: int
    sketch_size: int | None = None
    seed: int = 0
    standardize: bool = False

    def __post_init__(self) -> None:
        check_integer("plan", "n_clusters", self.n_clusters, 1, MAX_CLUSTERS)
        check_integer("plan", "seed", self.seed, 0, 2**64 - 1)
        check_flag("plan", "standardize", self.standardize)
        if self.sketch_size is not None:
            check_integer("plan", "sketch_size", self.sketch_size, 1, MAX_SKETCH_SIZE)


def partitions_to_sample(n_partitions: int, seed: int) -> IntArray:
    """Numbers of the partitions that a plan looks into: 64 at most, from all along."""
    return spread(PLACES, n_partitions, seed)


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


def plan_rows_of_partition(
    partition: Any, reading: Reading, planning: Planning, *, where: str
) -> bytes | None:
    """Draw rows of one partition, by a hash of what they hold.

    Parameters
    ----------
    partition : array, frame, Arrow table, or list of such blocks
        Is read twice; may be empty.
    reading : Reading
        Without a spec.
    planning : Planning
        Says how many rows, and has the seed.
    where : str
        Name of the partition for messages.

    Returns
    -------
    rows : bytes or None
        max(2000, 20 k) rows at most. None for a list without blocks, whose columns nobody knows.
    """
    with naming(where):
        blocks = blocks_of(partition)
        if blocks is None:
            return None
        source = reading.open(blocks)
        sample = draw_sample(
            source, planning.n_clusters, seed=planning.seed, on_invalid=reading.on_invalid
        )
    return _Drawn(source.columns, sample).to_bytes()


def merge_plan_rows(parts: Iterable[bytes | None], planning: Planning) -> bytes | None:
    """Of the rows of several partitions, those to draw from all of them.

    Parameters
    ----------
    parts : iterable of bytes or None
        Drawn with this planning, or merged from such; taken one at a time.
    planning : Planning
        Says how many rows.

    Returns
    -------
    rows : bytes or None
        The same in whichever order partitions are merged; None if there are none.
    """
    merged: _Drawn | None = None
    for part in parts:
        if part is not None:
            drawn = _Drawn.from_bytes(part)
            merged = drawn if merged is None else merged.with_rows_of(drawn, planning)
    return None if merged is None else merged.to_bytes()


def plan_spec(rows: bytes | None, planning: Planning) -> SketchSpec:
    """The spec that suits the rows drawn."""
    if rows is None:
        raise DataError("there are no rows to plan on. Check the path or the filter.")
    drawn = _Drawn.from_bytes(rows)
    return plan_sample(
        in_one_order(drawn.sample, seed=planning.seed),
        planning.n_clusters,
        columns=drawn.columns,
        sketch_size=planning.sketch_size,
        seed=planning.seed,
        standardize=planning.standardize,
    )


@dataclass(frozen=True)
class _Drawn:
    """Rows of some partitions, as many as a plan looks at or all there are; names of columns."""

    columns: tuple[str, ...] | None
    sample: PartSample

    def with_rows_of(self, other: _Drawn, planning: Planning) -> _Drawn:
        if self.columns != other.columns:
            msg = (
                f"partitions have different columns: {self.columns} and {other.columns}. "
                "Choose columns that all have with columns=[...]."
            )
            raise DataError(msg)
        n_rows = sample_size(planning.n_clusters)
        return _Drawn(self.columns, merge_parts([self.sample, other.sample], n_rows))

    def to_bytes(self) -> bytes:
        arrays = {name: array for name, array in vars(self.sample).items() if array is not None}
        if self.columns is not None:
            arrays["columns"] = np.array(self.columns)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> _Drawn:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {"weights": None, **file}
        columns = arrays.pop("columns", None)
        return cls(None if columns is None else tuple(columns.tolist()), PartSample(**arrays))
