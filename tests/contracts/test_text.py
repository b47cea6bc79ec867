"""What may come from strangers is shown as it is, but for signs that do more than show."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sketchshift._text import (
    cell,
    counted,
    finite,
    from_cell,
    listed,
    number,
    visible,
    visible_lines,
)
from sketchshift.features import SketchSpec

MARKS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")


def test_every_control_and_every_mark_of_direction_is_shown_as_an_escape():
    for code in range(0x110000):
        sign, kind = chr(code), unicodedata.category(chr(code))
        if kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(sign) in MARKS:
            assert visible(sign).isascii(), hex(code)
        if kind[0] in "LNPS":
            assert visible(sign) == sign
    for mark in "\u200e\u200f\u061c":
        assert visible(mark).isascii()
    assert visible("\u200c\u200d") == "\u200c\u200d"  # Persian names and emoji need them


@given(st.text())
def test_nothing_is_lost(text):
    plain = text.replace("\\", "/")

    again = re.sub(
        r"\\(x..|u.{4}|U.{8}|[nrt])",
        lambda found: found[0].encode().decode("unicode_escape"),
        visible(plain),
    )

    assert again == plain
    assert visible(visible(plain)) == visible(plain)


@given(st.text())
def test_our_own_line_breaks_stay(text):
    assert visible_lines(text).count("\n") == text.count("\n")


@given(st.text(st.sampled_from("'=+-@\t\r\na")) | st.text())
def test_cells_are_no_formulas_and_give_the_text_back(text):
    assert cell(text)[:1] not in tuple("=+-@\t\r\n")
    assert from_cell(cell(text)) == text


def test_counts_have_their_plural():
    said = [counted(1, "row"), counted(2000, "row"), counted(0, "slice"), counted(2, "sketch")]

    assert said == ["1 row", "2,000 rows", "0 slices", "2 sketches"]


def test_columns_without_names_are_called_by_their_positions():
    assert SketchSpec(2, 50, 1.0, columns=("x", "y")).rows.labels == ("x", "y")
    assert SketchSpec(2, 50, 1.0).rows.labels == ["column 0", "column 1"]
    assert listed([str(i) for i in range(22)]).endswith("'19' and 2 more")


def test_what_is_not_a_finite_number_is_null_for_programs_and_a_dash_for_people():
    facts = {"a": [1.5, float("nan")], "b": {"c": (float("-inf"), "x")}}

    assert finite(facts) == {"a": [1.5, None], "b": {"c": [None, "x"]}}
    assert finite(facts, str.upper)["b"]["c"] == [None, "X"]
    assert [number(2 / 3), number(float("inf"))] == ["0.666667", "-"]
