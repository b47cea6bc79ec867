"""The compiled kernels at their limits; ``test_widths.py`` compares them with the reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sketchshift.kernels import BITS, MOMENT_ROWS

DTYPES = [np.float32, np.float64]


def sums(accumulate, rows, weights, m):
    totals = np.zeros((2, m), dtype=np.int64)
    accumulate(rows, weights, totals)
    return totals


def some_rows(n, d, dtype):
    rng = np.random.default_rng(0)
    return 3.0 * rng.normal(size=(n, d)).astype(dtype), rng.random(n).astype(np.float32)


def some_blocks(size, m):
    rng = np.random.default_rng(2)
    signs = rng.choice([-1, 1], size=(-(-m // size), 3, size)).astype(np.float32)
    return signs, (rng.random(m) / size**1.5).astype(np.float32)


def test_structured_sums_of_many_rows_do_not_overflow(cpu):
    """Rows at the origin add 2**22 each: 5000 rows pass the 2**31 of the registers' int32."""
    signs, radii = some_blocks(64, 70)
    weights = np.ones(5000, dtype=np.float32)

    totals = sums(cpu.structured(signs, radii), np.zeros((5000, 64)), weights, 70)

    np.testing.assert_array_equal(totals[0], 5000 * 2**BITS)
    np.testing.assert_array_equal(totals[1], 0)


@pytest.fixture(params=["dense", "structured"])
def accumulate(request, cpu):
    """Adds rows of 70 columns at 130 frequencies."""
    if request.param == "dense":
        return cpu.dense(np.random.default_rng(1).normal(size=(70, 130)).astype(np.float32))
    return cpu.structured(*some_blocks(128, 130))


def test_totals_do_not_depend_on_order_or_cutting(accumulate):
    """Equation 1: the sketch is a sum; of integers, so to the bit. Other totals are added to.

    Nor does the order of the rows' numbers in memory matter.
    """
    order = np.random.default_rng(0).permutation(300)
    for dtype in DTYPES:
        rows, weights = some_rows(300, 70, dtype)
        before = np.arange(260).reshape(2, 130) * 2**50
        totals = before.copy()

        for part in np.split(order, [0, 1, 8, 150, 150, 299]):
            accumulate(np.asfortranarray(rows[part]), weights[part], totals)

        np.testing.assert_array_equal(totals - before, sums(accumulate, rows, weights, 130))


def as_integers(limbs):
    low, middle, high = limbs.astype(object)
    return (low + middle * 2**20 + high * 2**40).tolist()


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
