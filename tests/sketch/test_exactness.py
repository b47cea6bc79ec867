"""The law of the house: a sketch depends on the rows and the spec, on nothing else."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss

RANGE = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=(0.1, 2.0))
PLAIN = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.5)
STRUCTURED = ss.SketchSpec(n_features=70, sketch_size=150, bandwidth=4.0, structured=True)
LEVERAGE = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.5, law="leverage")
seeds = st.integers(0, 2**32 - 1)
specs = st.sampled_from([PLAIN, RANGE, STRUCTURED, LEVERAGE])


def rows(spec: ss.SketchSpec, seed: int, n: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).standard_t(3, size=(n, spec.n_features))


@given(spec=specs, cuts=st.lists(st.integers(0, 200), max_size=8), seed=seeds)
@settings(deadline=None, max_examples=40)
def test_a_sketch_does_not_depend_on_how_the_data_was_cut(spec, cuts, seed):
    """Equation 1 of the paper: the sketch is a sum, so parts merge into the whole."""
    X = rows(spec, seed)

    parts = [p for p in np.split(X, sorted(cuts)) if len(p)]
    merged = sum(ss.sketch(part, spec) for part in parts)

    assert merged.to_bytes() == ss.sketch(X, spec).to_bytes()


@given(spec=specs, seed=seeds)
@settings(deadline=None, max_examples=20)
def test_a_sketch_does_not_depend_on_the_order_of_rows(spec, seed):
    X = rows(spec, seed)

    shuffled = np.random.default_rng(seed).permutation(X)

    assert ss.sketch(shuffled, spec) == ss.sketch(X, spec)


@pytest.mark.parametrize("spec", [PLAIN, RANGE, STRUCTURED], ids=["plain", "range", "structured"])
@pytest.mark.parametrize(("size", "n_threads"), [(1, 2), (7, 5), (64, 1), (199, 2), (200, 5)])
def test_batch_sizes_and_threads_leave_no_trace(spec, size, n_threads):
    X = rows(spec, 3)
    blocks = (X[first : first + size] for first in range(0, len(X), size))

    in_blocks = ss.sketch(blocks, spec, n_threads=n_threads)

    assert in_blocks.to_bytes() == ss.sketch(X, spec, n_threads=1).to_bytes()


def test_every_partition_and_order_of_a_few_rows_gives_the_same_bytes(spec, X):
    """Brute force: all orders of five rows, each cut in all sixteen ways."""
    X = X[:5]
    whole = ss.sketch(X, spec).to_bytes()
    single = [ss.sketch(row[None], spec) for row in X]

    for order in permutations(range(5)):
        assert sum(single[i] for i in order).to_bytes() == whole
    for cut in range(16):
        ends = [0, *(i + 1 for i in range(4) if cut >> i & 1), 5]
        parts = [ss.sketch(X[a:b], spec) for a, b in pairwise(ends)]
        assert sum(parts).to_bytes() == whole


def test_threads_of_a_large_input_leave_no_trace():
    """Large enough that blocks really go to different threads."""
    X = np.random.default_rng(1).normal(size=(300_000, 2))

    one, two, many = (ss.sketch(X, RANGE, n_threads=n).to_bytes() for n in (1, 2, 7))

    assert one == two == many


@given(spec=specs, seed=seeds, n=st.integers(1, 100))
@settings(deadline=None, max_examples=30)
def test_adding_and_subtracting_cancel(spec, seed, n):
    a, b = ss.sketch(rows(spec, seed), spec), ss.sketch(rows(spec, seed + 1, n), spec)

    assert a + b - b == a
    assert a + b == b + a
    assert (a + b) - a == b


@given(seed=seeds, first=st.integers(0, 199), n=st.integers(1, 100), spec=specs)
@settings(deadline=None, max_examples=30)
def test_forgetting_leaves_no_trace(seed, first, n, spec):
    X = rows(spec, seed)
    removed = X[first : first + n]

    forgotten = ss.Sketcher(spec).update(X).remove(removed).sketch()
    never_seen = ss.Sketcher(spec).update(np.delete(X, slice(first, first + n), axis=0)).sketch()

    assert forgotten.to_bytes() == never_seen.to_bytes()


def test_forgetting_everything_gives_the_empty_sketch(spec, X):
    emptied = ss.Sketcher(spec).update(X).remove(X).sketch()

    assert emptied.to_bytes() == ss.Sketcher(spec).sketch().to_bytes()


@pytest.mark.parametrize("spec", [PLAIN, RANGE], ids=["plain", "range"])
def test_kernels_give_the_same_bytes(spec):
    X = rows(spec, 5)
    weights = np.random.default_rng(5).gamma(1.0, size=len(X))

    cpu, reference = (
        ss.sketch(X, spec, sample_weight=weights, kernel=kernel).to_bytes()
        for kernel in ("cpu", "reference")
    )

    assert cpu == reference


@given(weights=st.lists(st.integers(0, 9), min_size=20, max_size=20), spec=specs, seed=seeds)
@settings(deadline=None, max_examples=20)
def test_a_whole_weight_is_the_same_as_repeated_rows(weights, spec, seed):
    X = rows(spec, seed, 20)

    weighted = ss.Sketcher(spec).update(X, sample_weight=np.array(weights)).sketch()
    repeated = ss.Sketcher(spec).update(np.repeat(X, weights, axis=0)).sketch()

    for name, integers in weighted._totals.parts.items():
        assert np.array_equal(integers, repeated._totals.parts[name])


@given(seed=seeds, spec=specs)
@settings(deadline=None, max_examples=20)
def test_weighted_rows_can_be_forgotten_too(seed, spec):
    X, weights = rows(spec, seed), np.random.default_rng(seed).gamma(2.0, size=200)

    sketcher = ss.Sketcher(spec).update(X, sample_weight=weights)
    sketcher.remove(X[50:], sample_weight=weights[50:])

    assert sketcher.sketch() == ss.sketch(X[:50], spec, sample_weight=weights[:50])


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16, np.float32, np.longdouble, ">f8"],
)
def test_the_dtype_of_the_input_does_not_matter(dtype):
    """The same values give the same bytes: precision belongs to the spec."""
    values = np.random.default_rng(2).integers(0, 100, size=(50, 2))

    assert ss.sketch(values.astype(dtype), PLAIN) == ss.sketch(values.astype(np.float64), PLAIN)


def test_memory_order_and_strides_do_not_matter(spec, X):
    wide = np.zeros((len(X) * 2, 6))
    wide[::2, ::2] = X

    assert ss.sketch(np.asfortranarray(X), spec) == ss.sketch(X, spec)
    assert ss.sketch(wide[::2, ::2], spec) == ss.sketch(X, spec)
    assert ss.sketch(X[::-1], spec) == ss.sketch(X, spec)


steps = st.lists(
    st.tuples(
        st.sampled_from(["update", "remove", "read"]), st.integers(0, 199), st.integers(1, 70)
    ),
    max_size=60,
)


@given(spec=specs, steps=steps, seed=seeds)
@settings(deadline=None, max_examples=40)
def test_small_updates_that_are_held_add_up_like_any_others(spec, steps, seed):
    """Rows one by one, a few or many at a time, removed and read in between: the same sums."""
    X = rows(spec, seed, 270)
    sketcher, expected = ss.Sketcher(spec), ss.Sketcher(spec).sketch()

    for step, first, n in steps:
        part = X[first : first + n]
        if step == "update":
            sketcher.update(part)
            expected = expected + ss.sketch(part, spec)
        elif step == "remove" and sketcher.count >= n:
            sketcher.update(part).remove(part)
        assert sketcher.count == expected.count
        if step == "read":
            assert sketcher.sketch() == expected

    assert sketcher.sketch() == expected
