"""Where to look in data that is too long to be read for a sample.

Positions are spread evenly over the whole length, with a jitter that a seed sets, so that
neither the order of the rows nor a period in them can hide anything. Knows no format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop

import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift.data.blocks import Across, Block, Take
from sketchshift.data.row_hash import random_bits

__all__ = ["across_slices", "by_position", "share_out", "spread"]

SEEKS = 1000  # places where one is reached by a seek


def spread(n: int, length: int, seed: int) -> IntArray:
    """Different positions below ``length``, ascending: one in each of n equal parts.

    Parameters
    ----------
    n : int
        Number of positions; all of them if there are no more.
    length : int
        Of what they are spread over.
    seed : int
        Sets the jitter.

    Returns
    -------
    positions : int64 array of shape (min(n, length),)
        Each position is equally likely to be taken.
    """
    n = min(n, length)
    edges = np.arange(n + 1) * length // max(n, 1)
    jitter = random_bits(np.arange(n), seed) / 2.0**64
    inside = (jitter * np.diff(edges)).astype(np.int64)
    positions: IntArray = edges[:-1] + np.minimum(inside, np.diff(edges) - 1)
    return positions


def share_out(
    sizes: Sequence[int], n_rows: int, n_places: int, seed: int
) -> Iterator[tuple[int, int, int]]:
    """How many rows to draw from each of several parts of some data.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of the parts: files, row groups, record batches.
    n_rows : int
        To be drawn in all.
    n_places : int
        At most so many parts are looked into. Of more parts, those are taken that evenly
        spread positions hit.
    seed : int
        Sets the jitter of these.

    Yields
    ------
    part, n_rows, n_places : int
        Number of the part, the rows to draw from it, and the places to look at in it.
    """
    n_hits = n_rows if len(sizes) <= n_places else n_places
    hit = np.searchsorted(np.cumsum(sizes), spread(n_hits, sum(sizes), seed), side="right")
    for part, times in zip(*np.unique(hit, return_counts=True), strict=True):
        share = times / len(hit)
        yield int(part), int(np.ceil(share * n_rows)), int(np.ceil(share * n_places))


def across_slices(
    take: Take, n: int, *, weights: Callable[[slice], FloatArray] | None = None, source: str
) -> Across:
    """Rows of something that can be cut anywhere: runs of a few, at up to 1000 places.

    Parameters
    ----------
    take : callable
        Gives the values of a slice of rows.
    n : int
        Number of rows in all.
    weights : callable, optional
        Gives the weights of a slice of rows.
    source : str
        Name for messages.

    Returns
    -------
    across : callable
        As :class:`Source` has it; seeks are cheap, so that the number of places is its own.
    """

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        run = -(-n_rows // SEEKS)
        for start in spread(-(-n_rows // run), -(-n // run), seed) * run:
            span = slice(int(start), min(int(start) + run, n))
            w = None if weights is None else weights(span)
            yield Block(np.array(take(span)), w, source, span.start)

    return across


def by_position(read: Callable[[], Iterable[Block]]) -> Across:
    """Rows of something that can only be read from start to end: a whole pass.

    Parameters
    ----------
    read : callable
        Starts a pass and returns its blocks.

    Returns
    -------
    across : callable
        As :class:`Source` has it. Every row is equally likely; memory for the rows drawn.
    """

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        heap: list[tuple[int, int, Block]] = []  # the rows with the least keys, worst first
        first = 0
        for block in read():
            keys = random_bits(np.arange(first, first + len(block.values)), seed)
            limit = -heap[0][0] if len(heap) == n_rows else 2**64 - 1
            rows = np.flatnonzero(keys <= np.uint64(limit))
            if len(rows) > n_rows:
                rows = rows[np.argpartition(keys[rows], n_rows)[:n_rows]]
            for i in rows.tolist():
                entry = (-int(keys[i]), first + i, _row(block, i))
                heappush(heap, entry) if len(heap) < n_rows else heappushpop(heap, entry)
            first += len(keys)
        yield from (block for _, _, block in sorted(heap, key=lambda entry: entry[1]))

    return across


def _row(block: Block, i: int) -> Block:
    """One row, copied: the block it comes from may be a large one."""
    weights = None if block.weights is None else block.weights[i : i + 1].copy()
    return Block(block.values[i : i + 1].copy(), weights, block.source, block.first_row + i)
