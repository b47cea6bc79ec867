"""What travels as bytes or text, for engines that move no objects: results, and errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import sketchshift.errors
from sketchshift.engines.partitions import PlanRows, merge_plan_rows
from sketchshift.sketch import Sketch

__all__ = ["merge_plan_bytes", "merge_sketch_bytes", "own_errors"]


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
        pattern = r"sketchshift\.errors\.(\w+): (.*?)(?=\n\s*(?:SQLSTATE|\n)|\Z)"
        found = re.search(pattern, str(error), re.DOTALL)
        if found is None:
            raise
        raise getattr(sketchshift.errors, found[1])(found[2].strip()) from error
