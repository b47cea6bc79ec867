"""The laws of blocks, checked wherever a test reads a source to its end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import Access, open_source


@pytest.fixture
def gather():
    """Read all blocks, check their laws, and return values and weights.

    Small data that can be read again are read in blocks of 7 rows, too.
    """

    def read(data, **options):
        source = open_source(data, **options)
        blocks = list(source)
        _check(source, blocks, options.get("block_rows"))
        d = source.n_features
        values = np.concatenate([b.values for b in blocks] or [np.empty((0, d))])
        readings = []
        if source.pieces is not None:
            readings.append((source, list(_read_in_pieces(source)), options.get("block_rows")))
        if source.access is not Access.ONCE and len(values) < 100 and "block_rows" not in options:
            cut = open_source(data, block_rows=7, **options)
            readings.append((cut, list(cut), 7))
        for other, others, block_rows in readings:
            _check(other, others, block_rows)
            _check_same_rows(others, blocks)
        if options.get("weights") is None:
            assert all(block.weights is None for block in blocks)
            return values
        return values, np.concatenate([b.weights for b in blocks])

    return read


@pytest.fixture
def check_rows(gather):
    """Check that data are read as these rows."""

    def check(data, expected, **options):
        assert_array_equal(gather(data, **options), expected)

    return check


def _check(source, blocks, block_rows):
    expected = {}
    for block in blocks:
        assert block.values.ndim == 2
        assert block.values.shape[1] == source.n_features
        assert block.values.dtype.kind in "biuf"
        assert block.values.dtype.isnative
        assert 1 <= len(block.values) <= (block_rows or 65536)
        assert block.first_row == expected.get(block.source, 0)
        expected[block.source] = block.first_row + len(block.values)
        if block.weights is not None:
            assert block.weights.dtype == np.float64
            assert block.weights.shape == (len(block.values),)
    if source.columns is not None:
        assert len(source.columns) == source.n_features
    if source.n_rows is not None:
        assert source.n_rows == sum(len(block.values) for block in blocks)
    shares = [block.done for block in blocks if block.done is not None]
    assert all(0 <= a <= b <= 1 for a, b in pairwise(shares))
    assert not shares or shares[-1] == pytest.approx(1)


def _read_in_pieces(source):
    """All blocks, piece by piece, each read by itself."""
    first_row = {}
    for piece in source.pieces():
        assert len(piece.digest()) == 32
        assert all(0 <= start <= stop <= piece.path.stat().st_size for start, stop in piece.ranges)
        for block in piece.read(first_row.get(piece.path, 0)):
            first_row[piece.path] = block.first_row + len(block.values)
            yield block


def _check_same_rows(blocks, others):
    for name in ("values", "weights"):
        mine, theirs = ([getattr(b, name) for b in side] for side in (blocks, others))
        if mine and mine[0] is not None:
            assert_array_equal(np.concatenate(mine), np.concatenate(theirs))
            assert {part.dtype for part in mine} == {part.dtype for part in theirs}
    mine, theirs = ([b.keys for b in side if b.keys is not None] for side in (blocks, others))
    assert [row for keys in mine for row in keys.to_pylist()] == [
        row for keys in theirs for row in keys.to_pylist()
    ]
