"""The law of the house: a sketch depends on the rows and the spec, on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift_papers import landmarks

PLAIN = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.5)
PLACES = np.random.default_rng(7).normal(size=(20, 3))
seeds = st.integers(0, 2**32 - 1)
kinds = st.integers(0, 7)


@pytest.fixture(scope="module")
def specs() -> list[ss.SketchSpec]:
    """A spec of each kind."""
    cells, plain = ss.features.Cells.of(PLACES, unit=0.25), ss.SketchSpec(3, 40, 0.5)
    center = (1, 0, 0.3)
    return [
        PLAIN,
        ss.plan(np.random.default_rng(7).normal(size=(3000, 3)), 4),
        ss.SketchSpec(3, 40, (0.1, 2.0)),
        ss.SketchSpec(70, 150, 4.0, structured=True),
        ss.SketchSpec(
            3, 40, 0.5, law="adapted_radius", precision="float64", scale=2.0, center=center
        ),
        plain.replaced(waves=None, families={"landmarks": landmarks.parameters(PLACES, 0.5)}),
        plain.replaced(cells=cells),
        plain.replaced(cells=cells, waves=None),
    ]


def rows(spec: ss.SketchSpec, seed: int, n: int = 200) -> np.ndarray:
    """Rows with a few outliers; with cells, some lie in shells and some beyond all reach."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(n, spec.n_features))
    if spec.cells is not None:
        X *= 10.0 ** rng.choice([0.0, 0.0, 0.0, 0.0, 1.5, 4.0, 80.0], size=(n, 1))
    return X


@given(
    kind=kinds,
    cuts=st.lists(st.integers(0, 200), max_size=8),
    seed=seeds,
    n_threads=st.sampled_from([1, 2, 5]),
    kernel=st.sampled_from(["cpu", "reference"]),
    weighted=st.booleans(),
)
@settings(max_examples=120)
def test_the_bytes_depend_on_rows_and_weights_alone(
    specs, kind, cuts, seed, n_threads, kernel, weighted
):
    """Equation 1 of the paper: the sketch is a sum, so parts merge into the whole."""
    spec = specs[kind]
    X, rng = rows(spec, seed), np.random.default_rng(seed)
    weights = rng.gamma(2.0, size=200) * 10.0 ** rng.uniform(-3, 4) if weighted else np.ones(200)

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
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


def test_sums_that_fill_their_digits_are_those_of_the_parts():
    """Squares of 2**44 steps: half a million rows are more than an int64 holds of them."""
    spec = ss.SketchSpec(n_features=1, sketch_size=8, bandwidth=1.0)
    X = 63.0 + np.arange(1_100_000)[:, None] % 2
    for weights in (None, np.full(len(X), 0.5)):
        parts = [slice(i, i + 100_000) for i in range(0, len(X), 100_000)]
        cut = [None if weights is None else weights[part] for part in parts]
        pairs = zip(parts, cut, strict=True)
        expected = sum(ss.sketch(X[part], spec, sample_weight=w) for part, w in pairs)

        whole = ss.sketch(X, spec, n_threads=1, sample_weight=weights)

        assert whole == expected
        assert whole.variance == pytest.approx([0.25], rel=1e-2)


def test_threads_of_a_large_input_leave_no_trace():
    """Large enough that blocks really go to different threads."""
    X = np.random.default_rng(1).normal(size=(300_000, 2))

    one, two, many = (ss.sketch(X, PLAIN, n_threads=n).to_bytes() for n in (1, 2, 7))

    assert one == two == many


@given(weights=st.lists(st.integers(0, 9), min_size=20, max_size=20), kind=kinds, seed=seeds)
@settings(max_examples=30)
def test_a_whole_weight_is_the_same_as_repeated_rows(specs, weights, kind, seed):
    X = rows(specs[kind], seed, 20)

    weighted = ss.Sketcher(specs[kind]).update(X, sample_weight=np.array(weights)).sketch()
    repeated = ss.Sketcher(specs[kind]).update(np.repeat(X, weights, axis=0)).sketch()

    one, other = weighted._totals, repeated._totals
    for name, digits in one.dense.items():
        assert (digits == other.dense[name]).all()
    for name, entries in one.entries.items():
        assert (entries.names == other.entries[name].names).all()
        assert (entries.digits == other.entries[name].digits).all()


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


@given(kind=kinds, steps=steps, seed=seeds)
@settings(max_examples=50)
def test_small_updates_that_are_held_add_up_like_any_others(specs, kind, steps, seed):
    """Rows one by one, a few or many at a time, removed and read in between: the same sums."""
    spec = specs[kind]
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
