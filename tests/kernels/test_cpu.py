"""The compiled kernels at their limits; ``test_widths.py`` compares them with the reference."""

from __future__ import annotations

import itertools

import numpy as np

from sketchshift.kernels import BITS, MOMENT_ROWS, Runs


def test_structured_sums_of_many_rows_do_not_overflow(cpu):
    """Rows at the origin add 2**22 each: 5000 rows pass the 2**31 of the registers' int32."""
    signs, radii = np.ones((2, 3, 64), dtype=np.float32), np.ones(70, dtype=np.float32)
    totals = np.zeros((2, 70), dtype=np.int64)

    cpu.structured(signs, radii)(np.zeros((5000, 64)), np.ones(5000, dtype=np.float32), totals)

    np.testing.assert_array_equal(totals, [[5000 * 2**BITS] * 70, [0] * 70])


def test_moments_of_as_many_rows_as_allowed_do_not_overflow(cpu):
    """2**18 equal rows: n v and n v^2 in Python's integers, v = 2**16 x up to 2**40."""
    for x in (90.0, 127.9, 2.0**12 - 1, 2.0**24 - 2.0**-16):
        limbs = np.zeros((1, 3, 3), dtype=np.int64)
        rows = np.full((MOMENT_ROWS, 1), x)
        cpu.moments(rows, None, 1.0, limbs, Runs.one(MOMENT_ROWS), full=True)

        v = round(2**16 * x)
        rest = round((2**16 * x - v) * 2**20)
        found = [1, 2**20, 2**40] @ limbs[0].astype(object)
        assert found.tolist() == [MOMENT_ROWS * each for each in (v, rest, v * v)]


def test_limbs_of_few_rows_add_up_over_many_calls(kernel):
    """Callers add limbs of up to 1.25 * 2**18 rows in int64: a row may add 2**63 / that."""
    for exponent, n in itertools.product(range(8, 24), [1, 3, 64, 100]):
        rows = np.full((n, 3), 0.99 * 2.0**exponent)

        limbs = np.zeros((1, 3, 12), dtype=np.int64)
        kernel.moments(rows, None, 1.0, limbs, Runs.one(n), full=True)

        assert abs(limbs).max() * 1.25 * MOMENT_ROWS / n < 2.0**63
