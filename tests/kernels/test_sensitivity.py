"""How much one row can add: what differential privacy calibrates its noise to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.kernels import BITS, PHASE_LIMIT
from sketchshift.kernels.contract import G1, G2

QUARTERS = st.builds(
    lambda k, nudge: k / 4 + nudge, st.integers(-4000, 4000), st.floats(-1e-6, 1e-6)
)
PHASES = st.one_of(
    QUARTERS,
    st.floats(-1e-30, 1e-30),
    st.floats(-1, 1),
    st.floats(-PHASE_LIMIT, PHASE_LIMIT),
)


@settings(max_examples=50)
@given(
    st.lists(PHASES, min_size=1, max_size=100),
    st.floats(0, 1, width=32),
    st.sampled_from([np.float32, np.float64]),
)
def test_no_row_adds_more_than_the_bounds(integers_of, cpu, t, weight, dtype):
    """a^2 + b^2 <= G2 and |a| + |b| <= G1 at each frequency, for any weight up to 1."""
    for w in (1.0, weight):
        a, b = integers_of(cpu, t, dtype, w)

        assert (a * a + b * b).max() <= G2
        assert (abs(a) + abs(b)).max() <= G1


def test_the_bounds_are_little_more_than_those_of_exact_waves():
    """Q + 1 and sqrt(2) Q + 1, Q = 2**22: float32 polynomials cost less than one unit."""
    assert 2**BITS < math.sqrt(G2) < 2**BITS + 1
    assert math.sqrt(2) * 2**BITS < G1 < math.sqrt(2) * 2**BITS + 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bounds_are_the_maxima_over_all_rests_of_a_phase(cpu, integers_of, dtype):
    """All 1 048 576 001 float32 numbers from 0 to 1/4, through the kernel itself.

    A float64 phase leaves a rest that is rounded to float32, one of the same numbers.

    A negative rest changes the sign of the sine alone, an odd number of half turns both signs
    (tested against the reference), and a weight below 1 only shrinks what is rounded.
    """
    last, step = int(np.float32(0.25).view(np.int32)), 2**18
    largest_2 = largest_1 = 0

    for first in range(0, last + 1, step):
        bits = np.arange(first, min(first + step, last + 1), dtype=np.int32)
        a, b = integers_of(cpu, bits.view(np.float32), dtype)
        largest_2 = max(largest_2, int((a * a + b * b).max()))
        largest_1 = max(largest_1, int((abs(a) + abs(b)).max()))

    assert (largest_2, largest_1) == (G2, G1)
