from __future__ import annotations

import numpy as np
import pytest

from sketchshift.data import Block
from sketchshift.data.source import join_blocks, spans


def test_spans_cover_every_row_once_in_order():
    assert [(s.start, s.stop) for s in spans(7, 3)] == [(0, 3), (3, 6), (6, 7)]
    assert list(spans(0, 3)) == []


@pytest.mark.parametrize("n_rows", [1, 7, 10, 1000])
def test_blocks_that_follow_each_other_are_joined_and_no_others(n_rows):
    X = np.arange(60.0).reshape(30, 2)
    one = [Block(X[i : i + 5], None, "one", i, i / 30) for i in range(0, 30, 5)]
    weighted = [Block(X[:5], np.ones(5), "one", 30)]
    other = [Block(X[:5], None, "other", 35), Block(X[5:10], None, "other", 50)]

    found = list(join_blocks([*one, *weighted, *other], n_rows))

    rows = np.concatenate([block.values for block in found])
    np.testing.assert_array_equal(rows, np.concatenate([X, X[:5], X[:10]]))
    assert [block.first_row for block in found][-3:] == [30, 35, 50]
    assert all(len(block.values) >= min(n_rows, 30) for block in found[:1])
    for block in found[:-3]:  # rows keep their numbers
        np.testing.assert_array_equal(block.values[0], X[block.first_row])
