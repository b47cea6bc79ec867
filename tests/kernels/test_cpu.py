from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.kernels import BITS, MOMENT_ROWS, PHASE_LIMIT, select_kernel

DTYPES = [np.float32, np.float64]
GROUP, PANEL, ROWS = 252, 32, 6  # of native/sums.h
CPU, REFERENCE = select_kernel("cpu"), select_kernel("reference")


def sums(accumulate, rows, weights, m):
    totals = np.zeros((2, m), dtype=np.int64)
    accumulate(rows, weights, totals)
    return totals


def some_rows(n, d, dtype, seed=0, spread=3.0):
    """Rows, and weights among which are 0, 1 and numbers with all their digits."""
    rng = np.random.default_rng(seed)
    weights = rng.random(n).astype(np.float32)
    weights[rng.random(n) < 0.3] = 1
    weights[rng.random(n) < 0.1] = 0
    return (spread * rng.normal(size=(n, d))).astype(dtype), weights


def some_turns(d, m, seed=1):
    return np.random.default_rng(seed).normal(size=(d, m)).astype(np.float32)


def some_blocks(size, m, seed=2):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1, 1], size=(-(-m // size), 3, size)).astype(np.float32)
    return signs, (rng.random(m) / size**1.5).astype(np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, PANEL - 1, PANEL, PANEL + 1, 3 * PANEL + 4])
@pytest.mark.parametrize("d", [1, 2, 10, 65])
@pytest.mark.parametrize("n", [1, ROWS - 1, ROWS, ROWS + 1, GROUP - 1, GROUP, GROUP + 1, 600])
def test_dense_sums_equal_the_reference_bit_for_bit(n, d, m, dtype):
    """At every edge of the tiles, whatever their sizes are on this processor."""
    rows, weights = some_rows(n, d, dtype)
    turns = some_turns(d, m)

    totals = sums(CPU.dense(turns), rows, weights, m)

    np.testing.assert_array_equal(totals, sums(REFERENCE.dense(turns), rows, weights, m))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 15, 17, 70])
@pytest.mark.parametrize("size", [64, 128, 256, 512, 1024])
def test_structured_sums_equal_the_reference_bit_for_bit(size, n, dtype):
    """Every radix of the last pass; d not a power of two, m not a multiple of the block."""
    d, m = 3 * size // 4 + 1, size + size // 2 + 3
    rows, weights = some_rows(n, d, dtype)
    signs, radii = some_blocks(size, m)

    totals = sums(CPU.structured(signs, radii), rows, weights, m)

    expected = sums(REFERENCE.structured(signs, radii), rows, weights, m)
    np.testing.assert_array_equal(totals, expected)


def test_structured_sums_of_many_rows_do_not_overflow():
    """Rows at the origin add 2**22 each: 5000 rows pass the 2**31 of the registers' int32."""
    signs, radii = some_blocks(64, 70)
    weights = np.ones(5000, dtype=np.float32)

    totals = sums(CPU.structured(signs, radii), np.zeros((5000, 64)), weights, 70)

    np.testing.assert_array_equal(totals[0], 5000 * 2**BITS)
    np.testing.assert_array_equal(totals[1], 0)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.floats(-PHASE_LIMIT, PHASE_LIMIT, width=32), min_size=1, max_size=60),
    st.floats(0, 1, width=32),
    st.sampled_from(DTYPES),
)
def test_any_phase_gives_the_integers_of_the_reference(integers_of, t, weight, dtype):
    """Up to 2**20 turns, down to the least float32, for any weight."""
    totals = integers_of(CPU, t, dtype, weight)

    np.testing.assert_array_equal(totals, integers_of(REFERENCE, t, dtype, weight))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e5), st.sampled_from(DTYPES))
def test_rows_far_out_give_the_integers_of_the_reference(seed, spread, dtype):
    """Phases up to 1e5 |omega| turns: the chain of multiply-adds rounds, and alike."""
    rows, weights = some_rows(9, 7, dtype, seed, spread)
    turns = some_turns(7, 20, seed)

    totals = sums(CPU.dense(turns), rows, weights, 20)

    np.testing.assert_array_equal(totals, sums(REFERENCE.dense(turns), rows, weights, 20))


ACCUMULATORS = {
    "dense": lambda kernel: kernel.dense(some_turns(70, 130)),
    "structured": lambda kernel: kernel.structured(*some_blocks(128, 130)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ACCUMULATORS)
@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 99), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_totals_do_not_depend_on_order_or_cutting(kind, dtype, seed, cuts):
    """Equation 1: the sketch is a sum; of integers, so to the bit."""
    rows, weights = some_rows(300, 70, dtype)
    accumulate = ACCUMULATORS[kind](CPU)
    whole = sums(accumulate, rows, weights, 130)

    order = np.random.default_rng(seed).permutation(300)
    totals = np.zeros((2, 130), dtype=np.int64)
    for part in np.split(order, sorted(cuts)):
        accumulate(rows[part], weights[part], totals)

    np.testing.assert_array_equal(totals, whole)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ACCUMULATORS)
@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_sums_are_added_to_what_the_totals_hold(name, kind, dtype):
    """IN/OUT: totals are neither cleared nor narrowed to 32 bits."""
    rows, weights = some_rows(40, 70, dtype)
    accumulate = ACCUMULATORS[kind](select_kernel(name))
    before = np.arange(260).reshape(2, 130) * 2**50

    totals = before.copy()
    accumulate(rows, weights, totals)

    np.testing.assert_array_equal(totals - before, sums(accumulate, rows, weights, 130))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ACCUMULATORS)
def test_rows_of_weight_zero_add_nothing(kind, dtype):
    """Whatever the row: this is what padding relies on."""
    rows, _ = some_rows(33, 70, dtype, spread=100)

    totals = sums(ACCUMULATORS[kind](CPU), rows, np.zeros(33, dtype=np.float32), 130)

    assert not totals.any()


@pytest.mark.parametrize("kind", ACCUMULATORS)
def test_no_rows_add_nothing(kind):
    accumulate = ACCUMULATORS[kind](CPU)

    assert not sums(accumulate, np.zeros((0, 70)), np.zeros(0, dtype=np.float32), 130).any()


@pytest.mark.parametrize("kind", ACCUMULATORS)
def test_the_memory_order_of_rows_does_not_matter(kind):
    """Kernels read rows in C order; others are copied first."""
    rows, weights = some_rows(64, 140, np.float64)
    rows = rows[:, ::2]
    accumulate = ACCUMULATORS[kind](CPU)

    totals = sums(accumulate, np.asfortranarray(rows), weights, 130)

    expected = sums(accumulate, np.ascontiguousarray(rows), weights, 130)
    np.testing.assert_array_equal(totals, expected)
    np.testing.assert_array_equal(totals, sums(accumulate, rows, weights, 130))


def normalised(kernel, X, center, per_unit):
    """Rows and squared norms, written into arrays that held something else."""
    rows, squared_norms = np.full(X.shape, np.nan), np.full(len(X), np.nan)
    kernel.normalise(X, center, per_unit, rows, squared_norms)
    return rows, squared_norms


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 70])
@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_normalised_rows_equal_the_reference_bit_for_bit(n, d, dtype):
    """Float32 rows are widened first: all operations are in float64."""
    rng = np.random.default_rng(n + d)
    X, center = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-9, 9, d), rng.normal(size=d)
    per_unit = rng.uniform(0.1, 9, d)

    X = X.astype(dtype)

    rows, squared_norms = normalised(CPU, X, center, per_unit)

    expected_rows, expected_norms = normalised(REFERENCE, X, center, per_unit)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(squared_norms, expected_norms)


def test_a_norm_that_is_not_finite_shows_in_the_squared_norm():
    """The check for NaN, infinity and far points reads the squared norms alone."""
    X = np.array([[np.nan, 0], [np.inf, 0], [0, -np.inf], [1e200, 0], [1, 2]])

    _, squared_norms = normalised(CPU, X, np.zeros(2), np.ones(2))

    np.testing.assert_array_equal(squared_norms, [np.nan, np.inf, np.inf, np.inf, 5])


def test_correlations_agree_with_the_reference():
    """Phases of a few turns: float32 leaves 2 pi 4 2**-24 = 1.5e-6, times |r|, times a few."""
    rng = np.random.default_rng(0)
    points, turns = rng.normal(size=(20, 5)), some_turns(5, 77) / 4
    residual = rng.normal(size=77) + 1j * rng.normal(size=77)

    parts = CPU.correlate(points, turns, residual)

    for part, expected in zip(parts, REFERENCE.correlate(points, turns, residual), strict=True):
        np.testing.assert_allclose(part, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["cpu", "reference"])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_minus_the_imaginary_part_gives_the_gradient(name, k):
    """d/dc_k sum Re(conj(r) e^{i theta}) = sum 2 pi turns_k (-Im): by central differences.

    The differences of float64 values (the reference's) are good to 1e-6; the gradient of the
    cpu kernel, a sum of 40 float32 terms of size 10, to 1e-3.
    """
    rng = np.random.default_rng(1)
    point, turns = rng.normal(size=(1, 3)), some_turns(3, 40)
    residual = rng.normal(size=40) + 1j * rng.normal(size=40)
    step = 1e-5 * np.eye(3)[k]

    _, minus_imag = select_kernel(name).correlate(point, turns, residual)

    ahead, behind = (
        REFERENCE.correlate(point + sign * step, turns, residual)[0].sum() for sign in (1, -1)
    )
    gradient = (2 * math.pi * turns[k] * minus_imag[0]).sum()
    assert gradient == pytest.approx((ahead - behind) / 2e-5, abs=1e-3)


def phase_errors(dtype, radians, n=50, d=10, m=1000):
    """Errors of cosines and sines of phases up to so many radians, and sums of partial phases.

    The oracle adds exact products in extended precision and takes the turns off there.
    """
    rng = np.random.default_rng(0)
    turns = some_turns(d, m)
    errors, partial = [], []
    for _ in range(n):
        x = rng.normal(size=d)
        x = (x * radians / np.abs(2 * math.pi * x @ turns).max()).astype(dtype)
        totals = sums(CPU.dense(turns), x[None], np.ones(1, dtype=np.float32), m)
        t = np.cumsum(x.astype(np.longdouble)[:, None] * turns.astype(np.longdouble), axis=0)
        angle = 2 * math.pi * (t[-1] - np.rint(t[-1])).astype(np.float64)
        errors.append(np.abs(totals * 2.0**-BITS - [np.cos(angle), np.sin(angle)]).max(axis=0))
        partial.append(np.abs(t).sum(axis=0).astype(np.float64))
    return np.array(errors), np.array(partial)


@pytest.mark.parametrize(("radians", "bound"), [(1, 4e-7), (100, 3e-5), (1e4, 3e-3)])
def test_float32_phases_err_by_their_last_digits(radians, bound):
    """Each of d = 10 multiply-adds rounds the phase so far by at most 2**-24 of itself.

    So the error is at most 2 pi 2**-24 times the sum of partial phases, plus 1.3 units. In the
    worst of 50 000 (measured 2e-7, 1.7e-5, 1.7e-3) it is about 1.7e-7 of the largest phase.
    """
    errors, partial = phase_errors(np.float32, radians)

    assert (errors <= 2 * math.pi * 2.0**-24 * 1.001 * partial + 1.3 * 2.0**-BITS).all()
    assert errors.max() < bound


@pytest.mark.parametrize("radians", [1, 100, 1e4, 2 * math.pi * 0.99 * PHASE_LIMIT])
def test_float64_phases_err_by_the_polynomials_alone(radians):
    """1.3 units of 2**-22 = 3.1e-7 (measured 2.9e-7) for any phase up to 2**20 turns."""
    errors, _ = phase_errors(np.float64, radians)

    assert errors.max() < 1.3 * 2.0**-BITS


@pytest.mark.parametrize("turns", [1, 1000, 2**20 - 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_turns_change_nothing(integers_of, turns, dtype):
    """Range reduction is exact: phases on a grid of float32 beside 2**20, plus whole turns."""
    t = np.arange(-16, 16) / 16  # a float32 below 2**20 resolves 1/16

    totals = integers_of(CPU, t + turns, dtype)

    np.testing.assert_array_equal(totals, integers_of(CPU, t, dtype))


def as_integers(limbs):
    low, middle, high = limbs.astype(object)
    return (low + middle * 2**20 + high * 2**40).tolist()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("largest", [0.01, 100, 2.0**23])
@pytest.mark.parametrize("d", [*range(1, 21), 64])
def test_moments_equal_those_of_the_reference(d, largest, weighted, full):
    """Integers of any length: short ones, and long ones that are multiplied in two halves.

    The limbs need not be the same, only what they stand for.
    """
    rng = np.random.default_rng(d)
    rows = rng.uniform(-largest, largest, size=(150, d))
    factors = rng.uniform(0, 1, 150) if weighted else None

    limbs = CPU.moments(rows, factors, 1.0, full=full)

    expected = REFERENCE.moments(rows, factors, 1.0, full=full)
    assert limbs.shape == expected.shape
    assert as_integers(limbs) == as_integers(expected)


@pytest.mark.parametrize("unit", [2.0**-30, 0.25, 2.0**40])
def test_moments_of_rows_of_many_sizes_equal_those_of_the_reference(unit):
    """Short and long integers side by side, strip after strip, and the sums between them."""
    rng = np.random.default_rng(0)
    rows = unit * rng.normal(size=(2000, 5)) * 10.0 ** rng.uniform(-6, 6, size=(2000, 1))

    limbs = CPU.moments(rows, None, unit, full=True)

    assert as_integers(limbs) == as_integers(REFERENCE.moments(rows, None, unit, full=True))


@pytest.mark.parametrize("x", [90.0, 127.9, 2.0**12 - 1, 2.0**24 - 2.0**-16])
def test_moments_of_as_many_rows_as_allowed_do_not_overflow(x):
    """2**18 equal rows: n v and n v^2 in Python's integers, v = 2**16 x up to 2**40."""
    rows = np.full((MOMENT_ROWS, 1), x)

    total, rest, square = as_integers(CPU.moments(rows, None, 1.0, full=True))

    v = round(2**16 * x)
    assert (total, square) == (MOMENT_ROWS * v, MOMENT_ROWS * v * v)
    assert rest == MOMENT_ROWS * round((2**16 * x - v) * 2**20)


@pytest.mark.parametrize("n", [1, 3, 64, 100])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_limbs_of_few_rows_add_up_over_many_calls(name, n, d):
    """Callers add limbs of up to 1.25 * 2**18 rows in int64: a row may add 2**63 / that."""
    for exponent in range(8, 24):
        rows = np.full((n, d), 0.99 * 2.0**exponent)

        limbs = select_kernel(name).moments(rows, None, 1.0, full=True)

        assert abs(limbs).max() * 1.25 * MOMENT_ROWS / n < 2.0**63


def test_moments_do_not_depend_on_order_or_cutting():
    """Sums of integers: 1000 rows far out, in any order and in parts of any size."""
    rng = np.random.default_rng(0)
    rows, factors = 1e6 * rng.normal(size=(1000, 3)), rng.uniform(0, 16, 1000)
    order = rng.permutation(1000)

    parts = np.split(order, [1, 8, 500, 777])
    total = sum(
        np.array(as_integers(CPU.moments(rows[p], factors[p], 1.0, full=True))) for p in parts
    )

    assert total.tolist() == as_integers(CPU.moments(rows, factors, 1.0, full=True))


@pytest.mark.parametrize("full", [True, False])
def test_no_rows_have_no_moments(full):
    assert not CPU.moments(np.zeros((0, 3)), None, 1.0, full=full).any()
