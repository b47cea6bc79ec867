"""Some rows of any source, to plan a sketch with.

Decides how much is read: all of what lies in memory, a little from all along a large file,
the beginning of a stream. How rows are chosen then is the business of ``by_content``,
``places`` and the readers of files.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np

from sketchshift.data.blocks import Access, Block, Source, once
from sketchshift.data.by_content import Keep, Sample, draw_by_content, usable_rows
from sketchshift.data.places import by_position

__all__ = ["Sample", "draw_head", "draw_rows"]

PLACES = 64  # row groups, record batches or files that are looked into
FEW_ROWS = 4  # times as many as are drawn: read them all
FEW_BYTES = 2**24  # likewise, unless they are many rows packed well
FEW_PACKED = 2**22  # rows


def draw_rows(source: Source, n_rows: int, *, seed: int, keep: Keep) -> Sample:
    """Draw rows of a source, each equally likely.

    Parameters
    ----------
    source : Source
        Data in memory and small files are read twice. Of larger files some rows are read, from
        all along them. For streams there is :func:`draw_head`.
    n_rows : int
        Number of rows to draw; all of them if there are no more.
    seed : int
        Another seed draws other rows.
    keep : callable
        Says which rows of a block may be drawn; may raise.

    Returns
    -------
    sample : Sample
        For data in memory and small files it does not depend on the order of the N rows:
        O(N (d + log N)) time, 16 bytes a row of memory.
    """
    if source.access is Access.DISK and not _is_small(source, n_rows):
        source, keep = _drawn_across(source, n_rows, seed, keep), lambda _: None
    return draw_by_content(source, n_rows, seed=seed, keep=keep)


def draw_head(
    source: Source, n_rows: int, *, seed: int, keep: Keep
) -> tuple[Sample, int | None, Source]:
    """Draw from the first rows of a stream, which still delivers them.

    Parameters
    ----------
    source : Source
        Can be read once.
    n_rows : int
        Blocks are taken until there are so many rows, and held.
    seed, keep
        As in :func:`draw_rows`.

    Returns
    -------
    sample : Sample
        Drawn from the blocks taken.
    n_taken : int or None
        Rows in these blocks; None if they are all there is.
    source : Source
        All rows of the stream, those taken first.
    """
    stream = iter(source)
    taken: list[Block] = []
    n_usable = 0
    while n_usable < n_rows and (block := next(stream, None)) is not None:
        taken.append(block)
        rows = keep(block)
        n_usable += len(block.values if rows is None else rows)
    held = replace(source, read=lambda: iter(taken))
    sample = draw_by_content(held, n_rows, seed=seed, keep=keep)
    behind = next(stream, None)
    n_taken = None if behind is None else sum(len(block.values) for block in taken)
    rest = chain(taken, [] if behind is None else [behind], stream)
    return sample, n_taken, replace(source, read=once(rest, "a stream"))


def _is_small(source: Source, n_rows: int) -> bool:
    n = source.n_rows
    if n is not None and n <= FEW_ROWS * n_rows:
        return True
    is_short = source.n_bytes is not None and source.n_bytes <= FEW_BYTES
    return is_short and (n is None or n <= FEW_PACKED)


def _drawn_across(source: Source, n_rows: int, seed: int, keep: Keep) -> Source:
    """About as many usable rows from all along the source, as one block."""
    across = source.across or by_position(source.read)
    drawn = replace(source, read=lambda: across(n_rows, PLACES, seed))
    parts = list(usable_rows(drawn, keep))
    blocks: list[Block] = []
    if parts:
        values = np.concatenate([values for values, _ in parts])
        weights = [weights for _, weights in parts if weights is not None]
        blocks.append(Block(values, np.concatenate(weights) if weights else None))
    return replace(source, read=lambda: iter(blocks))
