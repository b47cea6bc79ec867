"""Central moments of integers against Python's own, which divide exactly and round once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.kernels import select_kernel

KERNELS = [select_kernel("cpu"), select_kernel("reference")]
BITS = st.integers(0, 126)
INTEGERS = (
    st.integers(-(2**126), 2**126)
    | st.integers(-(2**54), 2**54)
    | st.builds(lambda power, near: 2**power + near, BITS, st.integers(-2, 2))
)


def digits_of(numbers):
    """Four digits of each integer of nested lists."""
    numbers = np.array(numbers, dtype=object)
    rest, found = numbers.astype(object), np.empty((*numbers.shape, 4), dtype=np.int32)
    for i in range(4):
        digit = (rest + 2**31) % 2**32 - 2**31
        found[..., i], rest = digit, (rest - digit) // 2**32
    return found


@given(
    P=INTEGERS,
    W=INTEGERS,
    pairs=st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=5),
    bits=st.integers(0, 52),
)
@settings(max_examples=300)
def test_moments_are_those_of_python_s_integers_to_the_bit(P, W, pairs, bits):
    taken, weight = sum(L * R for L, R in pairs) << bits, max(W, 1)
    expected = (weight * P - taken) / (weight * weight)
    left, right = (digits_of([[list(numbers)]]) for numbers in zip(*pairs, strict=True))

    for kernel in KERNELS:
        found = kernel.central(digits_of([[P]]), digits_of([W]), left, right, bits)
        assert found.tolist() == [[expected]]
        assert kernel.central(digits_of([[P]]), digits_of([W])).tolist() == [[P / weight]]
        assert kernel.central(digits_of([[P]])).tolist() == [[float(P)]]


@given(numerator=st.integers(2**53, 2**54), weight=st.integers(1, 2**70), off=st.integers(-1, 1))
@settings(max_examples=200)
def test_a_quotient_between_two_floats_is_the_even_one_and_beside_it_the_nearer(
    numerator, weight, off
):
    """An odd numerator is half way between two multiples of 2."""
    P = (2 * numerator + 1) * weight + off

    for kernel in KERNELS:
        found = kernel.central(digits_of([[P, -P]]), digits_of([weight]))
        assert found.tolist() == [[P / weight, -P / weight]]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_variances_of_equal_rows_are_zero_however_far_they_lie(kernel):
    """2**40 rows, each at 2**32 steps less 1: squares are below 2**104, their sum below 2**127."""
    x, n = 2**32 - 1, 2**40 - 1
    sums = digits_of([[[n * x]]])

    assert kernel.central(digits_of([[n * x * x]]), digits_of([n]), sums, sums).tolist() == [[0.0]]
    one_more = kernel.central(digits_of([[n * x * x + 1]]), digits_of([n]), sums, sums)
    assert one_more.tolist() == [[1 / n]]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_no_integers_have_no_moments(kernel):
    assert kernel.central(np.zeros((0, 3, 4), dtype=np.int32)).shape == (0, 3)
    assert kernel.central(np.zeros((2, 0, 4), dtype=np.int32)).shape == (2, 0)
