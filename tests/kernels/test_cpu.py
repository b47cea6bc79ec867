"""The compiled kernels add the integers of the reference, with every instruction set.

``test_widths.py`` compares them on random numbers; here are the edges of their loops.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.kernels import BITS, MOMENT_ROWS, PHASE_LIMIT

DTYPES = [np.float32, np.float64]
GROUP, PANEL, ROWS = 252, 32, 6  # of native/sums.h


def sums(accumulate, rows, weights, m):
    totals = np.zeros((2, m), dtype=np.int64)
    accumulate(rows, weights, totals)
    return totals


def some_rows(n, d, dtype, spread=3.0):
    """Rows, and weights among which are 0, 1 and numbers with all their digits."""
    rng = np.random.default_rng(0)
    weights = rng.random(n).astype(np.float32)
    weights[rng.random(n) < 0.3] = 1
    weights[rng.random(n) < 0.1] = 0
    return (spread * rng.normal(size=(n, d))).astype(dtype), weights


def some_turns(d, m):
    return np.random.default_rng(1).normal(size=(d, m)).astype(np.float32)


def some_blocks(size, m):
    rng = np.random.default_rng(2)
    signs = rng.choice([-1, 1], size=(-(-m // size), 3, size)).astype(np.float32)
    return signs, (rng.random(m) / size**1.5).astype(np.float32)


def test_dense_sums_equal_the_reference_bit_for_bit(compiled, reference):
    """At every edge of the tiles, whatever their sizes are with an instruction set."""
    edges_of_n = [1, ROWS - 1, ROWS, ROWS + 1, GROUP - 1, GROUP, GROUP + 1, 600]
    edges_of_m = [1, PANEL - 1, PANEL, PANEL + 1, 3 * PANEL + 4]
    for i, (n, m) in enumerate(itertools.product(edges_of_n, edges_of_m)):
        d = [1, 2, 10, 65][i % 4]
        rows, weights = some_rows(n, d, DTYPES[i // 4 % 2])
        turns = some_turns(d, m)
        expected = sums(reference.dense(turns), rows, weights, m)
        for name, kernel in compiled.items():
            totals = sums(kernel.dense(turns), rows, weights, m)
            np.testing.assert_array_equal(totals, expected, f"{name}: n={n}, d={d}, m={m}")


def test_structured_sums_equal_the_reference_bit_for_bit(compiled, reference):
    """Every radix of the last pass; d not a power of two, m not a multiple of the block."""
    for i, size in enumerate([64, 128, 256, 512, 1024]):
        d, m = 3 * size // 4 + 1, size + size // 2 + 3
        signs, radii = some_blocks(size, m)
        for n, dtype in itertools.product(([1, 17], [15, 70])[i % 2], DTYPES):
            rows, weights = some_rows(n, d, dtype)
            expected = sums(reference.structured(signs, radii), rows, weights, m)
            for name, kernel in compiled.items():
                totals = sums(kernel.structured(signs, radii), rows, weights, m)
                np.testing.assert_array_equal(totals, expected, f"{name}: n={n}, size={size}")


def test_structured_sums_of_many_rows_do_not_overflow(cpu):
    """Rows at the origin add 2**22 each: 5000 rows pass the 2**31 of the registers' int32."""
    signs, radii = some_blocks(64, 70)
    weights = np.ones(5000, dtype=np.float32)

    totals = sums(cpu.structured(signs, radii), np.zeros((5000, 64)), weights, 70)

    np.testing.assert_array_equal(totals[0], 5000 * 2**BITS)
    np.testing.assert_array_equal(totals[1], 0)


@settings(max_examples=50)
@given(
    st.lists(st.floats(-PHASE_LIMIT, PHASE_LIMIT, width=32), min_size=1, max_size=60),
    st.floats(0, 1, width=32),
    st.sampled_from(DTYPES),
)
def test_any_phase_gives_the_integers_of_the_reference(
    integers_of, cpu, reference, t, weight, dtype
):
    """Up to 2**20 turns, down to the least float32, for any weight."""
    totals = integers_of(cpu, t, dtype, weight)

    np.testing.assert_array_equal(totals, integers_of(reference, t, dtype, weight))


@pytest.fixture(params=["dense", "structured"])
def accumulate(request, cpu):
    """Adds rows of 70 columns at 130 frequencies."""
    if request.param == "dense":
        return cpu.dense(some_turns(70, 130))
    return cpu.structured(*some_blocks(128, 130))


def test_totals_do_not_depend_on_order_or_cutting(accumulate):
    """Equation 1: the sketch is a sum; of integers, so to the bit. Other totals are added to."""
    order = np.random.default_rng(0).permutation(300)
    for dtype in DTYPES:
        rows, weights = some_rows(300, 70, dtype)
        before = np.arange(260).reshape(2, 130) * 2**50
        totals = before.copy()

        for part in np.split(order, [0, 1, 8, 150, 150, 299]):
            accumulate(rows[part], weights[part], totals)

        np.testing.assert_array_equal(totals - before, sums(accumulate, rows, weights, 130))


def test_rows_of_weight_zero_and_no_rows_add_nothing(accumulate):
    """Whatever the row: this is what padding relies on."""
    for n, dtype in itertools.product([0, 33], DTYPES):
        rows, _ = some_rows(n, 70, dtype, spread=100)

        assert not sums(accumulate, rows, np.zeros(n, dtype=np.float32), 130).any()


def test_the_memory_order_of_rows_does_not_matter(accumulate):
    """Kernels read rows in C order; others are copied first."""
    rows, weights = some_rows(64, 140, np.float64)
    rows = rows[:, ::2]

    expected = sums(accumulate, rows.copy(), weights, 130)

    for other in (rows, np.asfortranarray(rows)):
        np.testing.assert_array_equal(sums(accumulate, other, weights, 130), expected)


def test_a_norm_that_is_not_finite_shows_in_the_squared_norm(cpu):
    """The check for NaN, infinity and far points reads the squared norms alone."""
    X = np.array([[np.nan, 0], [np.inf, 0], [0, -np.inf], [1e200, 0], [1, 2]])
    squared_norms = np.empty(5)

    cpu.normalise(X, np.zeros(2), np.ones(2), np.empty((5, 2)), squared_norms)

    np.testing.assert_array_equal(squared_norms, [np.nan, np.inf, np.inf, np.inf, 5])


def as_integers(limbs):
    low, middle, high = limbs.astype(object)
    return (low + middle * 2**20 + high * 2**40).tolist()


def test_moments_equal_those_of_the_reference(compiled, reference):
    """Integers of any length: short ones, and long ones that are multiplied in two halves.

    The limbs need not be the same, only what they stand for.
    """
    rng = np.random.default_rng(0)
    for d, full in itertools.product([*range(1, 21), 64], [True, False]):
        largest = [0.01, 100, 2.0**23][d % 3]
        rows = rng.uniform(-largest, largest, size=(150, d))
        factors = rng.uniform(0, 1, 150) if d % 2 else None
        expected = as_integers(reference.moments(rows, factors, 1.0, full=full))
        for name, kernel in compiled.items():
            limbs = kernel.moments(rows, factors, 1.0, full=full)
            assert as_integers(limbs) == expected, (name, d)


def test_moments_of_as_many_rows_as_allowed_do_not_overflow(cpu):
    """2**18 equal rows: n v and n v^2 in Python's integers, v = 2**16 x up to 2**40."""
    for x in (90.0, 127.9, 2.0**12 - 1, 2.0**24 - 2.0**-16):
        rows = np.full((MOMENT_ROWS, 1), x)

        total, rest, square = as_integers(cpu.moments(rows, None, 1.0, full=True))

        v = round(2**16 * x)
        assert (total, square) == (MOMENT_ROWS * v, MOMENT_ROWS * v * v)
        assert rest == MOMENT_ROWS * round((2**16 * x - v) * 2**20)


def test_limbs_of_few_rows_add_up_over_many_calls(kernel):
    """Callers add limbs of up to 1.25 * 2**18 rows in int64: a row may add 2**63 / that."""
    for exponent, n in itertools.product(range(8, 24), [1, 3, 64, 100]):
        rows = np.full((n, 3), 0.99 * 2.0**exponent)

        limbs = kernel.moments(rows, None, 1.0, full=True)

        assert abs(limbs).max() * 1.25 * MOMENT_ROWS / n < 2.0**63


def test_no_rows_have_no_moments(cpu):
    for full in (True, False):
        assert not cpu.moments(np.zeros((0, 3)), None, 1.0, full=full).any()
