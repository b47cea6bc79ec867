from __future__ import annotations

from dataclasses import replace

import pytest

from sketchshift.data.source import Choice, Field, choose, make_request
from sketchshift.errors import DataError

HEIGHT, NAME = Field("height", "double", True), Field("name", "string", False)
FIELDS = [HEIGHT, Field("weight", "double", True), NAME, Field("count", "int64", True)]
NUMBERS = [field for field in FIELDS if field.is_number]


def ask(fields, columns=None, weights=None, default_columns=None, beside=None):
    request = make_request(columns, weights, None, default_columns)
    return choose(fields, replace(request, beside=beside) if beside else request, "people.csv")


def test_all_columns_are_taken_but_the_weights():
    assert ask(NUMBERS) == Choice(("height", "weight", "count"), None)
    assert ask(NUMBERS, weights="count") == Choice(("height", "weight"), "count")
    assert ask(FIELDS, ["count", "height"], "weight").names == ["count", "height", "weight"]


def test_of_columns_beside_one_those_of_another_name_are_keys():
    twice = [*NUMBERS, HEIGHT]

    assert ask(twice, ["count"]).columns == ("count",)
    assert ask(twice, ["count"], beside="others").keys == ("weight",)


NO_TEXT = r"column 'name' \(string\) cannot .* columns=\['height', 'weight', 'count'\]"
NO_WEIGHTS = r"'name' \(string\) cannot be read as weights(?!.*spec)"
REFUSED = [
    (
        (FIELDS, ["hight"]),
        r"^people\.csv has no column 'hight'\. Did you mean 'height'\? "
        r"It has 'height', 'weight', 'name', 'count'\.$",
    ),
    ((FIELDS, ["x", "q"]), r"no columns 'x', 'q'\. It has"),
    ((NUMBERS, None, "counts"), r"no column 'counts'\. Did you mean 'count'\?"),
    ((FIELDS,), NO_TEXT),
    ((FIELDS, ["name", "height"]), NO_TEXT),
    ((FIELDS, ["height"], "name"), NO_WEIGHTS),
    ((FIELDS, None, "name", ["height"]), NO_WEIGHTS),
    (([NAME],), "It has no numeric column"),
    ((FIELDS, ["name"], None, None, "others"), r"numeric ones with columns=\['height'"),
    (([HEIGHT, *FIELDS], None, None, None, "others"), r"'height'\. .*columns=\['weight', 'count'"),
    ((FIELDS, ["count"], "count"), "'count' cannot be both"),
    (([HEIGHT], None, "height"), "no columns to read beside the weights"),
    (([],), "no columns to read"),
    (([*NUMBERS, HEIGHT],), "more than one column named 'height'"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_what_cannot_be_chosen_is_refused_with_what_can(asked, words):
    with pytest.raises(DataError, match=words):
        ask(*asked)
