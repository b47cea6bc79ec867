"""Rows chosen by what they hold: data in another order gives the same sample.

Every row gets a hash of its content and of its rank among equal rows, and those with the
least hashes are drawn, in the order of these. So any row is as likely as any other, and data
of many equal rows gives a sample of many equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data.blocks import Block, Source, spans
from sketchshift.data.row_hash import HashArray, hash_rows, mix

__all__ = ["Keep", "Sample", "draw_by_content", "usable_rows"]

Keep: TypeAlias = Callable[[Block], IntArray | None]
"""Says which rows of a block may be drawn, ``None`` for all; may raise."""

HASHES_AT_A_TIME = 2**16
PREFIX_BITS = 16


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a source.

    Parameters
    ----------
    values : array of shape (n, d)
        The rows, in float64.
    weights : array of shape (n,) or None
        Their weights.
    lower, upper : arrays of shape (d,)
        Least and largest values of the columns in all rows looked at.
    """

    values: FloatArray
    weights: FloatArray | None
    lower: FloatArray
    upper: FloatArray


def draw_by_content(source: Source, n_rows: int, *, seed: int, keep: Keep) -> Sample:
    """Draw rows in two passes, one of their hashes and one of the rows themselves.

    Parameters
    ----------
    source : Source
        Read twice.
    n_rows : int
        Number of rows to draw; all of them if there are no more.
    seed : int
        Another seed draws other rows.
    keep : callable
        Says which rows of a block may be drawn; may raise.

    Returns
    -------
    sample : Sample
        It does not depend on the order of the N rows. O(N (d + log N)) time, 16 bytes a row of
        memory.
    """
    bounds = np.array([[np.inf], [-np.inf]]).repeat(source.n_features, axis=1)
    kept: list[IntArray | None] = []
    parts = [np.empty(0, np.uint64)]
    for block in source:
        kept.append(keep(block))
        parts.append(hash_rows(*_usable(block, kept[-1]), seed, bounds))
    hashes = np.concatenate(parts)
    parts.clear()
    drawn = _least(np.sort(hashes), n_rows)
    different, place = np.unique(drawn, return_inverse=True)
    rows, row_weights = _fetch(source, kept, hashes, different)
    return Sample(rows[place], None if row_weights is None else row_weights[place], *bounds)


def usable_rows(source: Source, keep: Keep) -> Iterator[tuple[RealArray, FloatArray | None]]:
    """Values and weights of the rows that may be drawn, block by block."""
    for block in source:
        yield _usable(block, keep(block))


def _usable(block: Block, rows: IntArray | None) -> tuple[RealArray, FloatArray | None]:
    if rows is None:
        return block.values, block.weights
    return block.values[rows], None if block.weights is None else block.weights[rows]


def _fetch(
    source: Source, kept: Sequence[IntArray | None], hashes: HashArray, wanted: HashArray
) -> tuple[FloatArray, FloatArray | None]:
    """A row for each hash wanted; ``hashes`` are those of all rows kept of the blocks."""
    rows = np.empty((len(wanted), source.n_features))
    row_weights: FloatArray | None = None
    may_be_wanted = np.zeros(2**PREFIX_BITS, dtype=bool)  # sorts out nearly all at little cost
    may_be_wanted[_prefixes(wanted)] = True
    first = 0
    for block, kept_rows in zip(source, kept, strict=True):
        values, weights = _usable(block, kept_rows)
        here = hashes[first : first + len(values)]
        first += len(here)
        found = np.flatnonzero(may_be_wanted[_prefixes(here)])
        at = np.minimum(np.searchsorted(wanted, here[found]), len(wanted) - 1)
        is_wanted = wanted[at] == here[found]
        found, at = found[is_wanted], at[is_wanted]
        rows[at] = values[found]  # of equal rows the last one stays: they are equal
        if weights is not None:
            row_weights = np.ones(len(wanted)) if row_weights is None else row_weights
            row_weights[at] = weights[found]
    return rows, row_weights


def _prefixes(hashes: HashArray) -> HashArray:
    return hashes >> np.uint64(64 - PREFIX_BITS)


def _least(hashes: HashArray, n_rows: int) -> HashArray:
    """Hashes of the rows drawn, given those of all rows, sorted.

    Equal rows have equal hashes and would be drawn all or none, so that a row's key is a hash of
    its hash and its rank among its equals. Those with the least keys are drawn, in the order
    of their keys; a hash stands there as often as rows with it are drawn.
    """
    keys, owners = np.empty(0, np.uint64), np.empty(0, np.uint64)
    begin, limit = 0, np.uint64(2**64 - 1)
    for span in spans(len(hashes), HASHES_AT_A_TIME):
        part = hashes[span]
        ranks, begin = _ranks(hashes, span, begin)
        new = mix(part) if ranks is None else mix(part ^ mix(ranks))
        is_low = new <= limit
        keys = np.concatenate([keys, new[is_low]])
        owners = np.concatenate([owners, part[is_low]])
        if len(keys) > n_rows:
            least = np.argpartition(keys, n_rows - 1)[:n_rows]
            keys, owners = keys[least], owners[least]
            limit = keys[-1]  # argpartition puts the largest of them last
    return owners[np.lexsort((owners, keys))]


def _ranks(hashes: HashArray, span: slice, begin: int) -> tuple[HashArray | None, int]:
    """Ranks of sorted hashes among their equals, and where the last run of equals begins.

    ``begin`` is where the run begins that may reach into ``span``. None stands for ranks that
    are all 0, as in data without equal rows.
    """
    part = hashes[span]
    is_first = np.ones(len(part), dtype=bool)
    is_first[1:] = part[1:] != part[:-1]
    is_first[0] = span.start == 0 or part[0] != hashes[span.start - 1]
    if is_first.all():
        return None, span.stop - 1
    at = np.arange(span.start, span.stop)
    begins = np.maximum.accumulate(np.where(is_first, at, begin))
    return (at - begins).astype(np.uint64), int(begins[-1])
