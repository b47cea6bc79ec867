"""Samples of the parts of some data, and the sample of all of it that they make together.

Every row of a part gets a key, and those with the least keys are drawn. Keys travel with their
rows, so that samples merge in any order, any number of times. The key of a row comes from what
its part holds as a whole: rows in another order give the same sample, and rows that repeat, in
one part or in several, have keys of their own and are drawn as often as any others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift.data.blocks import Block, Source
from sketchshift.data.by_content import Keep, Sample, draw_by_content, usable_rows
from sketchshift.data.row_hash import HashArray, hash_rows, random_bits

__all__ = ["PartSample", "draw_part", "in_one_order", "merge_parts"]


@dataclass(frozen=True)
class PartSample(Sample):
    """Rows drawn from one or several parts.

    Parameters
    ----------
    keys : uint64 array of shape (n,)
        Of the rows, ascending.
    """

    keys: HashArray


def draw_part(source: Source, n_rows: int, *, seed: int, keep: Keep) -> PartSample:
    """Draw rows of one part.

    Parameters
    ----------
    source : Source
        The part; read twice.
    n_rows : int
        Number of rows to draw; all of them if there are no more.
    seed : int
        Another seed draws other rows.
    keep : callable
        Says which rows of a block may be drawn; may raise.

    Returns
    -------
    sample : PartSample
        It does not depend on the order of the N rows. O(N (d + log N)) time, 32 bytes a row of
        memory.
    """
    bounds = np.array([[np.inf], [-np.inf]]).repeat(source.n_features, axis=1)
    parts = [hash_rows(*rows, seed, bounds) for rows in usable_rows(source, keep)]
    hashes = np.concatenate([np.empty(0, np.uint64), *parts])
    keys = random_bits(np.arange(len(hashes)), int(hashes.sum()))  # the sum wraps around
    least = np.argsort(keys, kind="stable")[:n_rows]
    values, weights = _fetch(source, keep, np.argsort(hashes)[least])
    return PartSample(values, weights, bounds[0], bounds[1], keys[least])


def merge_parts(samples: Sequence[PartSample], n_rows: int) -> PartSample:
    """The sample of several parts together.

    Parameters
    ----------
    samples : sequence of PartSample
        Each of ``n_rows`` rows, or of all that its part has.
    n_rows : int
        Number of rows to draw.

    Returns
    -------
    sample : PartSample
        Every row of the parts is equally likely to be in it.
    """
    keys = np.concatenate([sample.keys for sample in samples])
    least = np.argsort(keys, kind="stable")[:n_rows]
    weights = [s.weights for s in samples if s.weights is not None]
    return PartSample(
        np.concatenate([sample.values for sample in samples])[least],
        np.concatenate(weights)[least] if weights else None,
        np.min([sample.lower for sample in samples], axis=0),
        np.max([sample.upper for sample in samples], axis=0),
        keys[least],
    )


def in_one_order(sample: PartSample, *, seed: int) -> Sample:
    """The same rows in the order in which they would be drawn from data in memory."""
    block = Block(sample.values, sample.weights)
    source = Source(None, len(sample.lower), None, lambda: iter([block]))
    rows = draw_by_content(source, len(sample.values), seed=seed, keep=lambda _: None)
    return Sample(rows.values, rows.weights, sample.lower, sample.upper)


def _fetch(source: Source, keep: Keep, positions: IntArray) -> tuple[FloatArray, FloatArray | None]:
    """Values and weights of the usable rows at some positions."""
    values = np.empty((len(positions), source.n_features))
    weights: FloatArray | None = None
    first = 0
    for block_values, block_weights in usable_rows(source, keep):
        last = first + len(block_values)
        wanted = np.flatnonzero((first <= positions) & (positions < last))
        values[wanted] = block_values[positions[wanted] - first]
        if block_weights is not None:
            weights = np.empty(len(positions)) if weights is None else weights
            weights[wanted] = block_weights[positions[wanted] - first]
        first = last
    return values, weights
