"""Columns in pictures: names, units, and which tell clusters apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.view.looks import in_units, positions_of, wrap_name


@given(st.text("abc_ .-", min_size=1, max_size=90), st.integers(2, 40))
def test_a_wrapped_name_loses_no_letter_and_has_no_long_line(name, width):
    lines = wrap_name(name, width).split("\n")

    assert all(len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")


def test_names_break_where_words_end():
    assert wrap_name("Horizontal_Distance_To_Roadways", 20) == "Horizontal_Distance_\nTo_Roadways"
    assert wrap_name("cost in $", 20) == r"cost in \$"


@given(
    st.floats(-1e12, 1e12, allow_subnormal=False),
    st.sampled_from([1.0, 2.0, 2.5, 5.0]),
    st.integers(-12, 12),
    st.integers(2, 6),
)
def test_numbers_in_units_are_told_apart_and_right_to_half_a_step(start, digit, power, n):
    step = digit * 10.0**power
    values = (round(start / step) % 10**6 + np.arange(n)) * step  # as ticks are: few digits

    read = np.array([float(text) for text in in_units(values)])

    assert len(set(read)) == n
    np.testing.assert_allclose(read, values, atol=1e-3 * step)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 2.5, 5.0], ["0", "2.5", "5.0"]),
        ([-5e9, 0.0, 5e9, 1e10], ["-5e9", "0", "5e9", "10e9"]),
        ([1e-9, 2e-9], ["1e-9", "2e-9"]),
        ([-1e-8, 0.0, 0.1 * 1e-7], ["-1e-8", "0", "1e-8"]),  # one of them is 1.0000000000000001e-8
        ([0.0, 50_000.0], ["0", "50000"]),
        ([999_999_999.0, 1_000_000_000.0], ["999999999", "1000000000"]),
        ([7.0], ["7"]),
        ([0.0, 0.0], ["0", "0"]),
        ([], []),
    ],
)
def test_numbers_in_units_are_short(values, texts):
    assert in_units(np.array(values)) == texts


@pytest.mark.parametrize("columns", [(), (0, 1, 2, 3), (0, 0), ("z",), (3,), (-1,)])
def test_columns_that_are_not_there_are_refused(columns):
    s = ss.sketch(np.eye(3), ss.SketchSpec(3, 10, 1.0, columns=("a", "b", "c")))

    with pytest.raises(ss.errors.SpecError, match="of caller must be 1 to 3 different columns"):
        positions_of(s, columns, "caller", (1, 3))

    assert positions_of(s, ("c", 0, np.int64(1)), "caller", (1, 3)) == [2, 0, 1]
