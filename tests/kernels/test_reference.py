from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sketchshift.kernels.contract import BITS, LIMB_BITS, MOMENT_BITS
from sketchshift.kernels.reference import KERNEL, fused_multiply_add, integer_waves

DIGITS = {np.float32: 24, np.float64: 53}
ONE = np.ones(1, dtype=np.float32)
UNITS = 1.3  # rounding to an integer 0.5, the polynomials and their float32 steps 0.7 (measured)


def rounded(value: Fraction, digits: int) -> float:
    """The nearest number of so many binary digits, ties to even, exponents without limit."""
    if value == 0:
        return 0.0
    scale = digits - value.numerator.bit_length() + value.denominator.bit_length()
    scale -= abs(value) * Fraction(2) ** scale >= 2**digits
    return math.ldexp(round(value * Fraction(2) ** scale), -scale)


def numbers(dtype, low, high):
    """Numbers of the dtype whose last binary digit is worth 2**low to 2**high."""
    significands = st.integers(-(2 ** DIGITS[dtype]) + 1, 2 ** DIGITS[dtype] - 1)
    return st.builds(math.ldexp, significands, st.integers(low, high))


# no product or sum of these leaves the normal range, nor does any error of a product
RANGES = {np.float32: (-60, 20), np.float64: (-250, 150)}


@st.composite
def summands(draw):
    """A dtype and a, b, c: any numbers, with c next to -a b; or c decides a tie of the product."""
    dtype, kind = draw(st.sampled_from(list(DIGITS))), draw(st.sampled_from(["any", "next", "tie"]))
    a, b, c = (draw(numbers(dtype, *RANGES[dtype])) for _ in range(3))
    if kind == "next":
        c = -rounded(Fraction(a) * Fraction(b), DIGITS[dtype])
        c = np.nextafter(dtype(c), dtype(draw(st.sampled_from([-math.inf, c, math.inf]))))
    elif kind == "tie":
        half = DIGITS[dtype] // 2  # of a product with one digit too many; c is 2**20 times smaller
        a, b = (2 * draw(st.integers(2 ** (half - 1), 2**half - 1)) + 1 for _ in range(2))
        assume((a * b).bit_length() == DIGITS[dtype] + 1)
        c = draw(st.sampled_from([-1, 0, 1])) * 2.0 ** (DIGITS[dtype] - draw(st.integers(20, 90)))
    return dtype, float(a), float(b), float(c)


@settings(max_examples=300)
@given(summands())
@example((np.float32, 1 + 2**-23, 1 - 2**-23, 2.0**24 + 2))  # just below a tie of float32, ...
@example((np.float64, 1 + 2**-52, 1 - 2**-52, 2.0**53 + 2))  # which a plain sum would see as one
def test_a_fused_multiply_add_is_rounded_once(numbers):
    """IEEE 754, fusedMultiplyAdd: the nearest number to the exact a b + c, by fractions.

    If c nearly cancels a b, the error of the product is the result; if the product is a tie, a tiny
    c decides.
    """
    dtype, a, b, c = numbers

    result = fused_multiply_add(*(np.array([x], dtype=dtype) for x in (a, b, c)))

    assert result.dtype == dtype
    assert result[0] == rounded(Fraction(a) * Fraction(b) + Fraction(c), DIGITS[dtype])


def test_quarter_turns_are_exact():
    """Cosine and sine of 0, 1/4, 1/2, 3/4 turns are 0 or +-1, whole turns change nothing."""
    t = np.array([0, 0.25, 0.5, 0.75, 1, 1_000_000.25, -0.25, -0.5, -1_000_000.75])
    for phases in (t, t.astype(np.float32)):
        cosine, sine = integer_waves(phases, ONE)

        np.testing.assert_array_equal(cosine, 2**BITS * np.array([1, 0, -1, 0, 1, 0, 0, -1, 0]))
        np.testing.assert_array_equal(sine, 2**BITS * np.array([0, 1, 0, -1, 0, 1, -1, 0, 1]))


@settings(max_examples=50)
@given(
    st.lists(st.integers(-(2**24), 2**24), min_size=1, max_size=100),
    st.integers(4, 40),
    st.sampled_from([0, 1e-3, 1 / 3, 0.999, 1]),
)
def test_integers_are_within_two_units_of_the_weighted_waves(numerators, bits, weight):
    """For t = k / 2**bits, below 2**20 turns: exact turns off by fractions, then exp.

    The weight multiplies before the result is rounded.
    """
    t, weight = np.array(numerators) * 2.0**-bits, np.float32(weight)
    rests = [float(Fraction(k, 2**bits) - round(Fraction(k, 2**bits))) for k in numerators]

    for phases in (t, t.astype(np.float32)):
        cosine, sine = integer_waves(phases, weight * ONE)

        expected = 2**BITS * float(weight) * np.exp(2j * math.pi * np.array(rests))
        np.testing.assert_allclose(cosine, np.real(expected), rtol=0, atol=UNITS)
        np.testing.assert_allclose(sine, np.imag(expected), rtol=0, atol=UNITS)


def totals_of(accumulate, rows, weights, m):
    totals = np.zeros((2, m), dtype=np.int64)
    accumulate(rows, weights, totals)
    return totals[0] + 1j * totals[1]


def test_dense_totals_are_sums_of_weighted_waves():
    """Equation 1, from complex exponentials: at most 1.3 units of error a row."""
    rng = np.random.default_rng(1)
    rows, weights = 100.0 * rng.normal(size=(50, 3)), rng.random(50).astype(np.float32)
    turns = rng.normal(size=(3, 40)).astype(np.float32)

    totals = totals_of(KERNEL.dense(turns), rows, weights, 40)

    errors = totals - 2**BITS * weights @ np.exp(2j * np.pi * (rows @ turns))
    assert max(abs(errors.real).max(), abs(errors.imag).max()) <= 50 * UNITS


def test_structured_totals_are_those_of_the_matrix_product():
    """S H D1 H D2 H D3 with scipy's Hadamard matrix; padding is zeros, the last block cut."""
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(20, 50)), np.ones(20, dtype=np.float32)
    signs = rng.choice([-1, 1], size=(2, 3, 64)).astype(np.float32)
    radii = (rng.random(100) / 64**1.5).astype(np.float32)

    totals = totals_of(KERNEL.structured(signs, radii), rows, weights, 100)

    H = scipy.linalg.hadamard(64)
    blocks = [H @ np.diag(c) @ H @ np.diag(b) @ H @ np.diag(a) for a, b, c in signs]
    turns = (np.concatenate(blocks)[:100, :50] * radii[:, None]).T
    errors = totals - 2**BITS * weights @ np.exp(2j * np.pi * (rows @ turns))
    assert max(abs(errors.real).max(), abs(errors.imag).max()) <= 20 * UNITS


@pytest.mark.parametrize("full", [True, False])
def test_moments_are_the_exact_sums_of_rounded_numbers(full):
    """The contract in Python's integers: rint of K f x, rests, products of rint of K sqrt(f) x."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-4, 6, size=(30, 1))
    K = 2**MOMENT_BITS / 0.25
    pairs = [(a, b) for a in range(4) for b in range(a, 4 if full else a + 1)]
    for factors in (rng.uniform(0, 16, 30), None):
        low, middle, high = KERNEL.moments(rows, factors, 0.25, full=full).astype(object)

        f = np.ones((30, 1)) if factors is None else factors[:, None]
        v = f * rows * K
        w = np.rint(np.sqrt(f) * rows * K).astype(np.int64).astype(object)
        sums = np.rint([v, (v - np.rint(v)) * 2**LIMB_BITS]).astype(np.int64).sum(axis=1)
        products = [w[:, a] @ w[:, b] for a, b in pairs]
        totals = low + middle * 2**LIMB_BITS + high * 2 ** (2 * LIMB_BITS)
        assert totals.tolist() == [*sums.ravel().tolist(), *products]


def test_rows_are_normalised_column_by_column():
    """Rows are (x - center) per_unit in two roundings, squared norms added from the left."""
    rng = np.random.default_rng(4)
    X, center, per_unit = rng.normal(size=(9, 5)), rng.normal(size=5), rng.uniform(0.1, 9, 5)
    for values in (X, X.astype(np.float32)):
        rows, squared_norms = np.full((9, 5), np.nan), np.full(9, np.nan)

        KERNEL.normalise(values, center, per_unit, rows, squared_norms)

        expected = (values.astype(np.float64) - center) * per_unit
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(squared_norms, np.cumsum(expected**2, axis=1)[:, -1])
