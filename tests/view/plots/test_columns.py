"""Columns in pictures: which of them, and how their names are broken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.view.looks import positions_of, wrap_name


@given(st.text("abc_ .-", min_size=1, max_size=90), st.integers(2, 40))
def test_a_wrapped_name_loses_no_letter_and_has_no_long_line(name, width):
    lines = wrap_name(name, width).split("\n")

    assert all(len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")


def test_names_break_where_words_end():
    assert wrap_name("Horizontal_Distance_To_Roadways", 20) == "Horizontal_Distance_\nTo_Roadways"
    assert wrap_name("cost in $", 20) == r"cost in \$"


def test_columns_that_are_not_there_are_refused():
    s = ss.sketch(np.eye(3), ss.SketchSpec(3, 10, 1.0, columns=("a", "b", "c")))

    assert positions_of(s, ("c", 0, np.int64(1)), "caller", (1, 3)) == [2, 0, 1]
    for columns in ((), (0, 1, 2, 3), (0, 0), ("z",), (3,), (-1,)):
        with pytest.raises(ss.errors.SpecError, match="of caller must be 1 to 3 different columns"):
            positions_of(s, columns, "caller", (1, 3))
