from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from sketchshift.data import Block, open_source
from sketchshift.data.source import join_blocks, read_once, spans
from sketchshift.errors import DataError


def test_spans_cover_every_row_once_in_order():
    assert [(s.start, s.stop) for s in spans(7, 3)] == [(0, 3), (3, 6), (6, 7)]
    assert list(spans(0, 3)) == []


def test_blocks_say_where_they_lie_and_how_much_is_done():
    blocks = list(open_source(np.zeros((4, 1)), block_rows=3))

    assert [(b.source, b.first_row, b.done) for b in blocks] == [
        ("array", 0, 0.75),
        ("array", 3, 1),
    ]


def test_a_block_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Block(np.zeros((1, 1))).first_row = 3


def test_an_array_can_be_read_again():
    source = open_source(np.eye(3))

    assert len(list(source)) == len(list(source)) == 1


def test_what_can_be_read_once_says_so_the_second_time():
    read = read_once(iter([Block(np.zeros((1, 1)))]), "this stream")

    assert len(list(read())) == 1
    with pytest.raises(DataError, match="this stream can be read only once"):
        read()


def test_importing_the_room_loads_no_table_library():
    """``import sketchshift`` must stay fast."""
    heavy = {"narwhals", "pandas", "polars", "pyarrow", "scipy", "sklearn"}
    code = (
        "import sys, numpy as np, sketchshift.data as data;"
        "list(data.open_source(np.eye(2)));"
        f"print(sorted({heavy} & set(sys.modules)))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"


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
