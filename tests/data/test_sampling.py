"""Samples: fair, the same for any order of the rows, and from all along a file."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sketchshift.data import Access, open_source, sample
from sketchshift.data.sample import draw_head, draw_rows


def draw(data, n_rows, seed=0, **options):
    return draw_rows(open_source(data, **options), n_rows, seed=seed, keep=lambda _: None)


def as_counter(X):
    return Counter(map(tuple, X.tolist()))


@settings(max_examples=40)
@given(
    rows=st.lists(st.integers(0, 5), min_size=1, max_size=60),
    seed=st.integers(0, 2**64 - 1),
    n_rows=st.integers(1, 70),
    block_rows=st.sampled_from([1, 7, None]),
    data=st.data(),
)
def test_the_order_of_the_rows_and_the_blocks_do_not_matter(rows, seed, n_rows, block_rows, data):
    """Also with many equal rows: whichever of them is drawn, it is the same row."""
    X = np.array(rows, dtype=float)[:, None] * [1.0, -2.0]
    shuffled = X[np.array(data.draw(st.permutations(range(len(X)))))]

    sample = draw(X, n_rows, seed)
    other = draw(shuffled, n_rows, seed, block_rows=block_rows)

    assert_array_equal(sample.values, other.values)
    assert len(sample.values) == min(n_rows, len(X))
    assert as_counter(sample.values) <= as_counter(X)


def test_every_row_is_equally_likely():
    """200 draws of 30 of 100 rows: each 60 times, standard deviation 6.5."""
    X = np.arange(100.0)[:, None]

    times = np.sum([np.isin(X[:, 0], draw(X, 30, seed).values) for seed in range(200)], axis=0)

    assert np.abs(times - 60).max() < 5 * 6.5
    assert times.std() == pytest.approx(6.5, rel=0.3)


def test_equal_rows_are_drawn_as_often_as_there_are():
    """Nine rows in ten are zero. All or none of them would be an unfair sample."""
    X = np.zeros((20_000, 1))
    X[:2000, 0] = np.arange(1, 2001)

    share = (draw(X, 2000).values == 0).mean()

    assert share == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / 2000))
    weights = np.repeat([1.0, 3.0], 500)
    assert sorted(draw(X[-1000:], 1000, weights=weights).weights) == sorted(weights)


def test_rows_that_may_not_be_drawn_are_not():
    """Bounds are those of all rows that may be drawn."""
    X = np.arange(1000.0)[:, None]

    def keep(block):
        return np.flatnonzero(block.values[:, 0] % 2 == 0)

    sample = draw_rows(open_source(X, block_rows=7), 300, seed=0, keep=keep)

    assert len(sample.values) == 300
    assert not (sample.values % 2).any()
    assert (sample.lower, sample.upper) == ([0.0], [998.0])


@pytest.mark.thorough
def test_wide_rows_are_held_once(tmp_path, monkeypatch):
    """Beside them a few blocks of 2 MiB, which do not grow with the sample."""
    monkeypatch.setattr(sample, "FEW_BYTES", 0)
    X = np.random.default_rng(0).normal(size=(60_000, 128)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)

    for factor in (4, 0):  # two passes; from all along
        monkeypatch.setattr(sample, "FEW_ROWS_FACTOR", factor)
        tracemalloc.start()
        n_bytes = draw(tmp_path / "x.npy", 40_000).values.nbytes
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert n_bytes > 0.99 * 40_000 * 128 * 8
        assert peak < 1.3 * n_bytes


@settings(max_examples=40)
@given(
    rows=st.lists(st.integers(-2, 3), min_size=1, max_size=60),
    n_rows=st.integers(1, 70),
    seed=st.integers(0, 2**64 - 1),
    is_weighted=st.booleans(),
    cut=st.integers(1, 9),
)
def test_rows_from_all_along_are_put_in_the_order_of_a_draw_from_memory(
    rows, n_rows, seed, is_weighted, cut
):
    X = np.array(rows, dtype=float)[:, None] * [1.0, -0.5, 0.0]
    weights = np.arange(len(X)) % 3 + 1.0 if is_weighted else None
    source = open_source(X, weights=weights, block_rows=cut)
    expected = draw_rows(source, n_rows, seed=seed, keep=lambda _: None)
    on_disk = replace(source, access=Access.DISK, across=lambda *_: source.read())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "FEW_ROWS_FACTOR", 0)
        patch.setattr(sample, "ROWS_TOGETHER", 4)
        drawn = draw_rows(on_disk, n_rows, seed=seed, keep=lambda _: None)

    for name in ("values", "weights", "lower", "upper"):
        assert_array_equal(getattr(drawn, name), getattr(expected, name))


def test_the_head_of_a_stream_is_drawn_from_and_still_delivered():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    for rows, n_head in ((1, 100), (30, 120), (1000, None)):
        source = open_source(X[i : i + rows] for i in range(0, 1000, rows))

        sample, n_taken, again = draw_head(source, 100, seed=0, keep=lambda _: None)

        assert n_taken == n_head
        assert_array_equal(sample.values, draw(X[:n_head], 100).values)
        assert_array_equal(np.concatenate([block.values for block in again]), X)
