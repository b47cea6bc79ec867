from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import sketchshift as ss
from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
PARTS = [X[:9], X[9:10], X[10:10], X[10:]]
FRAMES = [pd.DataFrame(part, columns=list("abc")) for part in PARTS]
NAMED = pa.table(dict(zip("abc", X.T, strict=True)))


class Loader:
    """An iterable of a library, which gives a new iterator each time."""

    def __iter__(self):
        return iter(PARTS)


def test_blocks_of_every_kind_are_read_in_order(check_rows):
    mixed = [NAMED[:9], pl.from_arrow(NAMED[9:])[["c", "a", "b"]]]
    for blocks in (mixed, FRAMES, tuple(PARTS), list(map(scipy.sparse.coo_array, PARTS)), Loader()):
        check_rows(blocks, X)
        check_rows(iter(blocks), X, block_rows=7)


def test_a_generator_is_never_more_than_one_item_ahead():
    asked = []

    def items():
        for i in range(5):
            asked.append(i)
            yield np.full((4, 2), i)

    source = open_source(items(), block_rows=2)
    assert asked == [0]

    seen = [(len(asked), int(block.values[0, 0])) for block in source]

    assert seen == [(i + 1, i) for i in range(5) for _ in range(2)]


def test_a_list_can_be_read_again_and_an_iterator_cannot():
    again, single = open_source(PARTS), open_source(iter(PARTS))

    assert len(list(again)) == len(list(again)) == len(list(single))
    with pytest.raises(DataError, match="iterator of blocks can be read only once"):
        iter(single)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_iterator_may_fill_the_same_array_again(n_threads):
    X = np.random.default_rng(0).normal(size=(12_000, 2))

    def blocks():
        buffer = np.empty((1000, 2))
        for part in np.split(X, 12):
            buffer[:] = part
            yield buffer

    with pytest.warns(ss.errors.PlanWarning, match="first 2,000 rows"):
        found = ss.sketch(blocks(), n_clusters=2, n_threads=n_threads, cells=False)
    assert found == ss.sketch(X, found.spec)
    assert ss.sketch(blocks(), found.spec, n_threads=n_threads) == found


REFUSED = {
    "no rows": (iter(()), {}),
    r"ragged blocks: block 1 .*has 2 columns, but block 0 has 3": (iter([X, X[:, :2]]), {}),
    r"block 1 .*has columns 'a', 'b', 'z', but block 0 has columns 'a', 'b', 'c'": (
        [NAMED, NAMED.rename_columns(["a", "b", "z"])],
        {},
    ),
    r"block 1 .*has no column names, but block 0 has columns": ([NAMED, X], {}),
    r"block 0 \(counting from 0\): .*reshape\(-1, 1\)": (iter([X[:, 0]]), {}),
    r"block 1 .*: the table has no column 'c'": ([NAMED, NAMED.drop("c")], {"columns": ["c"]}),
    r"block 1 .* is of type dict": ([X, {}], {}),
    r"block 0 .* is a path.*pass a list of paths": (iter(["a.csv"]), {}),
    "sample_weight cannot be an array for an iterator": (PARTS, {"weights": np.ones(20)}),
}


@pytest.mark.parametrize(("words", "given"), REFUSED.items())
def test_what_is_wrong_with_a_block_is_said_with_its_number(words, given):
    data, options = given

    with pytest.raises(DataError, match=words):
        list(open_source(data, **options))
