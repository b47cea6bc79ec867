"""The law of the house: a sketch depends on the rows and the spec, on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss

RANGE = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=(0.1, 2.0))
PLAIN = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.5)
STRUCTURED = ss.SketchSpec(n_features=70, sketch_size=150, bandwidth=4.0, structured=True)
LEVERAGE = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.5, law="leverage")
DOUBLE = ss.SketchSpec(
    3, 33, bandwidth=0.7, law="adapted_radius", precision="float64", scale=2.0, center=(1, 0, 0.3)
)
seeds = st.integers(0, 2**32 - 1)
specs = st.sampled_from([PLAIN, RANGE, STRUCTURED, LEVERAGE, DOUBLE])


def rows(spec: ss.SketchSpec, seed: int, n: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).standard_t(3, size=(n, spec.n_features))


@given(
    spec=specs,
    cuts=st.lists(st.integers(0, 200), max_size=8),
    seed=seeds,
    n_threads=st.sampled_from([1, 2, 5]),
    kernel=st.sampled_from(["cpu", "reference"]),
    weighted=st.booleans(),
)
@settings(max_examples=80)
def test_the_bytes_depend_on_rows_and_weights_alone(spec, cuts, seed, n_threads, kernel, weighted):
    """Equation 1 of the paper: the sketch is a sum, so parts merge into the whole."""
    X, rng = rows(spec, seed), np.random.default_rng(seed)
    weights = rng.gamma(2.0, size=200) if weighted else np.ones(200)

    def sketcher(part, **options):
        w = weights[part] if weighted else None
        return ss.Sketcher(spec, **options).update(X[part], sample_weight=w)

    whole = sketcher(slice(None)).sketch()
    parts = [part for part in np.split(rng.permutation(200), sorted(cuts)) if len(part)]
    first, *others = [sketcher(p, kernel=kernel, n_threads=n_threads).sketch() for p in parts]
    rest = sum(others, ss.Sketcher(spec).sketch())
    forgotten = sketcher(slice(None)).remove(X[parts[0]], sample_weight=weights[parts[0]])

    assert (first + rest).to_bytes() == (rest + first).to_bytes() == whole.to_bytes()
    assert (whole - first).to_bytes() == forgotten.sketch().to_bytes() == rest.to_bytes()


def test_threads_of_a_large_input_leave_no_trace():
    """Large enough that blocks really go to different threads."""
    X = np.random.default_rng(1).normal(size=(300_000, 2))

    one, two, many = (ss.sketch(X, RANGE, n_threads=n).to_bytes() for n in (1, 2, 7))

    assert one == two == many


@given(weights=st.lists(st.integers(0, 9), min_size=20, max_size=20), spec=specs, seed=seeds)
@settings(max_examples=20)
def test_a_whole_weight_is_the_same_as_repeated_rows(weights, spec, seed):
    X = rows(spec, seed, 20)

    weighted = ss.Sketcher(spec).update(X, sample_weight=np.array(weights)).sketch()
    repeated = ss.Sketcher(spec).update(np.repeat(X, weights, axis=0)).sketch()

    for name, integers in weighted._totals.parts.items():
        assert np.array_equal(integers, repeated._totals.parts[name])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float32, np.longdouble, ">f8"])
def test_dtype_memory_order_and_strides_do_not_matter(dtype):
    """The same values give the same bytes: precision belongs to the spec."""
    values = np.random.default_rng(2).integers(0, 100, size=(50, 2))
    wide = np.zeros((100, 4), dtype)
    wide[::2, ::2] = values
    expected = ss.sketch(values.astype(np.float64), PLAIN)

    assert ss.sketch(values.astype(dtype), PLAIN) == expected
    assert ss.sketch(np.asfortranarray(values, dtype), PLAIN) == expected
    assert ss.sketch(wide[-2::-2, ::2], PLAIN) == expected


steps = st.lists(
    st.tuples(
        st.sampled_from(["update", "remove", "read"]), st.integers(0, 199), st.integers(1, 70)
    ),
    max_size=60,
)


@given(spec=specs, steps=steps, seed=seeds)
@settings(max_examples=40)
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
