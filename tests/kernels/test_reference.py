"""The kernel that defines the others, against the C library, fractions and complex exponentials."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sketchshift.kernels.contract import BITS, LIMB_BITS, MOMENT_BITS, Runs
from sketchshift.kernels.reference import KERNEL, fused_multiply_add, integer_waves

# digits of a dtype, and what the last binary digit of a number may be worth, as a power of two:
# no product or sum of these numbers leaves the normal range, nor does any error of a product
RANGES = {np.float32: (24, -60, 20), np.float64: (53, -250, 150)}
ONE = np.ones(1, dtype=np.float32)
UNITS = 1.3  # rounding to an integer 0.5, the polynomials and their float32 steps 0.7 (measured)


@st.composite
def summands(draw):
    """A dtype and a, b, c: any numbers, with c next to -a b; or c decides a tie of the product."""
    dtype, kind = draw(st.sampled_from(list(RANGES))), draw(st.sampled_from(["any", "next", "tie"]))
    digits, low, high = RANGES[dtype]
    if kind == "tie":  # of a product with one digit too many; c is 2**20 times smaller
        half = digits // 2
        a, b = (2 * draw(st.integers(2 ** (half - 1), 2**half - 1)) + 1 for _ in range(2))
        assume((a * b).bit_length() == digits + 1)
        return dtype, a, b, draw(st.integers(-1, 1)) * 2.0 ** (digits - draw(st.integers(20, 90)))
    significands = st.integers(-(2**digits) + 1, 2**digits - 1)
    numbers = st.builds(math.ldexp, significands, st.integers(low, high)).map(dtype)
    a, b, c = (draw(numbers) for _ in range(3))
    if kind == "next":
        c = draw(st.integers(-1, 1)) * np.spacing(a * b) - a * b
    return dtype, a, b, c


@settings(max_examples=300)
@given(summands())
@example((np.float32, 1 + 2**-23, 1 - 2**-23, 2.0**24 + 2))  # just below a tie of float32, ...
@example((np.float64, 1 + 2**-52, 1 - 2**-52, 2.0**53 + 2))  # which a plain sum would see as one
def test_a_fused_multiply_add_is_rounded_once(numbers):
    """IEEE 754, fusedMultiplyAdd: the nearest number to the exact a b + c, by the C library.

    If c nearly cancels a b, the error of the product is the result; if the product is a tie, a tiny
    c decides.
    """
    dtype, *arguments = numbers
    library, c_type = ctypes.CDLL(None), np.ctypeslib.as_ctypes_type(dtype)
    fma = library.fmaf if dtype is np.float32 else library.fma
    fma.restype = c_type

    result = fused_multiply_add(*(np.array([x], dtype=dtype) for x in arguments))

    assert result.dtype == dtype
    assert result[0] == fma(*map(c_type, arguments))


def test_quarter_turns_are_exact():
    """Cosine and sine of 0, 1/4, 1/2, 3/4 turns are 0 or +-1, whole turns change nothing."""
    t = np.array([0, 0.25, 0.5, 0.75, 1, 1_000_000.25, -0.25, -0.5, -1_000_000.75])
    cosine, sine = [1, 0, -1, 0, 1, 0, 0, -1, 0], [0, 1, 0, -1, 0, 1, -1, 0, 1]
    for phases in (t, t.astype(np.float32)):
        found = integer_waves(phases, ONE)

        np.testing.assert_array_equal(found, 2**BITS * np.array([cosine, sine]))


@settings(max_examples=50)
@given(
    st.lists(st.integers(-(2**24), 2**24), min_size=1, max_size=100),
    st.integers(4, 40),
    st.sampled_from([0, 1e-3, 1 / 3, 0.999, 1]),
)
def test_integers_are_within_two_units_of_the_weighted_waves(numerators, bits, weight):
    """For t = k / 2**bits, below 2**20 turns: the rest of a turn, which is exact, then exp.

    The weight multiplies before the result is rounded.
    """
    t, weight = np.array(numerators) * 2.0**-bits, np.float32(weight)
    expected = 2**BITS * float(weight) * np.exp(2j * math.pi * (t - np.rint(t)))
    for phases in (t, t.astype(np.float32)):
        found = integer_waves(phases, weight * ONE)

        np.testing.assert_allclose(found, [expected.real, expected.imag], rtol=0, atol=UNITS)


def check_totals(accumulate, turns, rows):
    """Equation 1, from complex exponentials: at most 1.3 units of error a row."""
    weights = np.linspace(0.0, 1.0, len(rows), dtype=np.float32)
    totals = np.zeros((2, turns.shape[1]), dtype=np.int64)

    accumulate(rows, weights, totals)

    waves = 2**BITS * weights @ np.exp(2j * np.pi * (rows @ turns))
    np.testing.assert_allclose(totals, [waves.real, waves.imag], rtol=0, atol=UNITS * len(rows))


def test_dense_totals_are_sums_of_weighted_waves():
    rng = np.random.default_rng(1)
    turns = rng.normal(size=(3, 40)).astype(np.float32)

    check_totals(KERNEL.dense(turns), turns, 100.0 * rng.normal(size=(50, 3)))


def test_structured_totals_are_those_of_the_matrix_product():
    """S H D1 H D2 H D3 with scipy's Hadamard matrix; padding is zeros, the last block cut."""
    rng, H = np.random.default_rng(2), scipy.linalg.hadamard(64)
    signs = rng.choice([-1, 1], size=(2, 3, 64)).astype(np.float32)
    radii = (rng.random(100) / 64**1.5).astype(np.float32)

    transposed = [np.diag(a) @ H @ np.diag(b) @ H @ np.diag(c) @ H for a, b, c in signs]
    turns = np.hstack(transposed)[:50, :100] * radii
    check_totals(KERNEL.structured(signs, radii), turns, rng.normal(size=(20, 50)))


@pytest.mark.parametrize("full", [True, False])
def test_moments_are_the_exact_sums_of_rounded_numbers(full):
    """The contract in Python's integers: rint of K f x, rests, products of rint of K sqrt(f) x."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-4, 6, size=(30, 1))
    K = 2**MOMENT_BITS / 0.25
    pairs = np.triu_indices(4) if full else np.diag_indices(4)
    for factors in (rng.uniform(0, 16, 30), None):
        found = np.zeros((1, 3, 8 + len(pairs[0])), dtype=np.int64)
        KERNEL.moments(rows, factors, 0.25, found, Runs.one(30), full=full)
        limbs = found[0].astype(object)

        f = 1.0 if factors is None else factors[:, None]
        v = f * rows * K
        sums = np.rint([v, (v - np.rint(v)) * 2**LIMB_BITS]).sum(axis=1)  # below 2**53: exact
        w = np.rint(np.sqrt(f) * rows * K).astype(np.int64).astype(object)
        totals = [1, 2**LIMB_BITS, 2 ** (2 * LIMB_BITS)] @ limbs
        assert totals.tolist() == [*sums.ravel(), *(w.T @ w)[pairs]]


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
