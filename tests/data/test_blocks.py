from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import Block
from sketchshift.data.source import join_blocks, spans


def test_spans_cover_every_row_once_in_order():
    assert [(s.start, s.stop) for s in spans(7, 3)] == [(0, 3), (3, 6), (6, 7)]
    assert list(spans(0, 3)) == []


@pytest.mark.parametrize("n_rows", [1, 7, 1000])
def test_blocks_that_follow_each_other_are_joined_and_no_others(n_rows):
    X = np.arange(60.0).reshape(30, 2)
    one = [Block(X[i : i + 5], X[i : i + 5, 0], "one", i, i / 30) for i in range(0, 30, 5)]
    others = [Block(X[:5], None, name, row) for name, row in (("one", 30), ("other", 35))]

    *joined, a, b = join_blocks([*one, *others], n_rows)

    assert [a, b] == others
    assert len(joined[0].values) >= min(n_rows, 30)
    assert_array_equal(np.concatenate([block.values for block in joined]), X)
    for block in joined:  # rows keep their numbers and weights
        assert_array_equal(block.values[0], X[block.first_row])
        assert_array_equal(block.weights, block.values[:, 0])
