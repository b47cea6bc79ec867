"""Columns in pictures: names, units, and which tell clusters apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.view.looks import in_units, positions_of, separation, wrap_name


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


def test_separation_is_the_share_of_the_variance_between_clusters():
    """Of rows that are their clusters' centroids it is 1; of a column of noise, nearly 0."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=2_000)
    centers = np.array([[0.0, 1.0], [4.0, 1.0], [9.0, 1.0]])
    X = np.column_stack([centers[labels], rng.normal(size=2_000), np.full(2_000, 3.0)])
    s = ss.sketch(X[:, [0, 2, 3]], ss.SketchSpec(3, 50, 1.0))
    means = np.array([X[labels == i][:, [0, 2, 3]].mean(axis=0) for i in range(3)])
    shares = np.bincount(labels) / len(labels)
    decoding = ss.Decoding(means, shares, None, 0.0, ss.decoders.Outcome.COMPLETE, ())

    first, noise, constant = separation(s, decoding)

    assert first == pytest.approx(1.0, abs=1e-4)  # moments are integers of 2**-16 bandwidths
    assert noise < 0.01
    assert constant == 0.0


@pytest.mark.parametrize("columns", [(), (0, 1, 2, 3), (0, 0), ("z",), (3,), (-1,)])
def test_columns_that_are_not_there_are_refused(columns):
    s = ss.sketch(np.eye(3), ss.SketchSpec(3, 10, 1.0, columns=("a", "b", "c")))

    with pytest.raises(ss.errors.SpecError, match="of caller must be 1 to 3 different columns"):
        positions_of(s, columns, "caller", (1, 3))

    assert positions_of(s, ("c", 0, np.int64(1)), "caller", (1, 3)) == [2, 0, 1]
