from __future__ import annotations

from dataclasses import replace

import pytest

from sketchshift.data.source import Choice, Field, choose, make_request
from sketchshift.errors import DataError

FIELDS = [
    Field("height", "double", True),
    Field("weight", "double", True),
    Field("name", "string", False),
    Field("count", "int64", True),
]
NUMBERS = [field for field in FIELDS if field.is_number]


def ask(fields, columns=None, weights=None, default_columns=None):
    return choose(fields, make_request(columns, weights, None, default_columns), "people.csv")


def test_all_columns_are_taken_but_the_weights():
    assert ask(NUMBERS) == Choice(("height", "weight", "count"), None)
    assert ask(NUMBERS, weights="count") == Choice(("height", "weight"), "count")


def test_columns_come_in_the_order_asked_for():
    choice = ask(FIELDS, ["count", "height"], weights="weight")

    assert choice.columns == ("count", "height")
    assert choice.names == ["count", "height", "weight"]


def test_a_missing_column_is_named_with_a_close_one_and_all_there_are():
    message = (
        r"^people\.csv has no column 'hight'\. Did you mean 'height'\? "
        r"It has 'height', 'weight', 'name', 'count'\.$"
    )
    with pytest.raises(DataError, match=message):
        ask(FIELDS, ["hight"])


def test_nothing_is_suggested_when_nothing_is_close():
    with pytest.raises(DataError, match=r"no columns 'x', 'q'\. It has"):
        ask(FIELDS, ["x", "q"])


def test_a_missing_column_of_weights_is_named():
    with pytest.raises(DataError, match=r"no column 'counts'\. Did you mean 'count'\?"):
        ask(NUMBERS, weights="counts")


def test_text_is_refused_and_the_numeric_columns_listed():
    message = r"column 'name' \(string\) cannot .* columns=\['height', 'weight', 'count'\]"
    with pytest.raises(DataError, match=message):
        ask(FIELDS)
    with pytest.raises(DataError, match=message):
        ask(FIELDS, ["name", "height"])


def test_weights_must_be_numbers_too():
    for asking in ({"columns": ["height"]}, {"default_columns": ["height"]}):
        with pytest.raises(
            DataError, match=r"'name' \(string\) cannot be read as weights"
        ) as caught:
            ask(FIELDS, **asking, weights="name")
        assert "spec" not in str(caught.value)


def test_a_table_without_numbers_says_so():
    with pytest.raises(DataError, match="It has no numeric column"):
        ask([Field("name", "string", False)])


def test_numbers_beside_those_asked_for_are_proposed():
    request = replace(make_request(["name"], None, None, None), beside="others")

    with pytest.raises(DataError, match=r"Choose numeric ones with columns=\['height'"):
        choose(FIELDS, request, "people.csv")


def test_columns_beside_two_of_one_name_can_be_looked_at():
    fields = [Field("p", "double", True), *NUMBERS, Field("p", "double", True)]

    with pytest.raises(DataError, match=r"named 'p'\. .*columns=\['height', 'weight', 'count'\]"):
        choose(fields, replace(make_request(None, None, None, None), beside="others"), "x.csv")
    request = replace(make_request(["height"], None, None, None), beside="others")
    assert choose(fields, request, "x.csv").keys == ("weight", "count")


def test_a_column_cannot_be_weight_and_coordinate():
    with pytest.raises(DataError, match="'count' cannot be both"):
        ask(FIELDS, ["count"], weights="count")


def test_something_must_be_left_beside_the_weights():
    with pytest.raises(DataError, match="no columns to read beside the weights"):
        ask([Field("w", "double", True)], weights="w")
    with pytest.raises(DataError, match="no columns to read"):
        ask([])


def test_a_name_that_occurs_twice_cannot_be_chosen():
    twice = [*NUMBERS, Field("height", "double", True)]

    with pytest.raises(DataError, match="more than one column named 'height'"):
        ask(twice)
    assert ask(twice, ["count"]).columns == ("count",)
