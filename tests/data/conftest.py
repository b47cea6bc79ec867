"""What every source must satisfy, checked wherever a test reads one to the end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sketchshift.data import open_source


@pytest.fixture(params=[1, 7, None], ids=lambda rows: f"rows={rows}")
def block_rows(request):
    return request.param


@pytest.fixture
def gather():
    """Read everything, check the laws of blocks, and return values and weights."""

    def read(data, **options):
        source = open_source(data, **options)
        blocks = list(source)
        _check(source, blocks, options.get("block_rows"))
        d = source.n_features
        values = np.concatenate([b.values for b in blocks] or [np.empty((0, d))])
        if options.get("weights") is None:
            assert all(block.weights is None for block in blocks)
            return values
        return values, np.concatenate([b.weights for b in blocks])

    return read


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
