"""Merging what partitions sent as bytes, for engines that move columns of bytes."""

from __future__ import annotations

from collections.abc import Iterable

from sketchshift.engines.partitions import PlanRows, merge_plan_rows
from sketchshift.sketch import Sketch

__all__ = ["merge_plan_bytes", "merge_sketch_bytes"]


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


def merge_plan_bytes(parts: Iterable[bytes], *, n_clusters: int) -> bytes | None:
    """Rows for a plan from several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes
        Of :class:`~sketchshift.engines.partitions.PlanRows`, taken one at a time.
    n_clusters : int
        As in :func:`sketchshift.plan`.
    """
    merged: PlanRows | None = None
    for part in map(PlanRows.from_bytes, parts):
        merged = merge_plan_rows([merged, part], n_clusters)
    return None if merged is None else merged.to_bytes()
