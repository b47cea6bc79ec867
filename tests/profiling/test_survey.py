"""A look at a table: which columns are clustered, which are not, and why."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import sketchshift as ss
from sketchshift.errors import Option
from sketchshift.recipe import Category, Cycle, Frequency, Log, Number

N = 400
survey_of = ss.profiling.survey


def messy(seed=0, n=N):
    """What real tables have: an index, text, dates, codes, gaps and tails."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "row": np.arange(n),
            "order_id": rng.permutation(n) + 10_000,
            "name": [f"person {i}" for i in range(n)],
            "city": np.array(["Rome", "Oslo", "Lima"])[rng.integers(3, size=n)],
            "day": pd.date_range("2026-01-01", periods=n, freq="D").strftime("%d.%m.%Y"),
            "year": 2026,
            "age": rng.normal(40.0, 10.0, n),
            "pay": rng.normal(4000.0, 1500.0, n),
            "gas": np.where(rng.random(n) < 0.3, 0.0, 10.0 ** rng.uniform(0.0, 6.0, n)),
            "speed": np.where(rng.random(n) < 0.8, np.nan, 1.0) * rng.normal(size=n),
            "zip": rng.integers(10_000, 99_999, n),
            "nothing": np.nan,
        }
    )
    frame.loc[::25, "age"] = np.nan
    return frame


def reasons(survey):
    return {column.name: column.reason for column in survey.left_out}


def used(survey):
    return [column.name for column in survey.used]


def options(survey):
    """The values that are proposed for each option."""
    found = {}
    for part in [part for note in survey.notes for part in note if isinstance(part, Option)]:
        found.setdefault(part.name, []).append(part.value)
    return found


def chosen(survey):
    """The arguments of a sketch as a survey has them."""
    names = {"columns": "choice", "standardize": "standardize", "on_invalid": "on_invalid"}
    return {name: getattr(survey, attribute) for name, attribute in names.items()}


def test_numbers_are_taken_and_everything_left_out_is_named_with_the_reason():
    survey = survey_of(messy())

    assert used(survey) == ["age", "pay", "gas"]
    assert reasons(survey) == {
        "row": "identifier",
        "order_id": "identifier",
        "name": "text, another in every row",
        "city": "text, 3 values",
        "day": "a time",
        "year": "constant",
        "speed": "79 % missing",
        "zip": "identifier",
        "nothing": "empty",
    }
    assert len(survey.columns) == len(messy().columns)
    assert survey.is_complete
    assert survey.n_rows == N


def test_every_option_that_is_proposed_can_be_passed():
    frame = messy()
    plain = survey_of(frame)
    proposed = options(plain)

    for words in ("Missing values: age (4.0 %). This leaves out 4.0 % of the rows", "gas varies",
                  "times as much as age", "gas spans five powers of ten: try scale='log'"):  # fmt: skip
        assert words in str(plain)
    assert proposed["categories"] == [("city",)]
    assert proposed["cycles"] == [("month(day)",)]
    assert set(proposed) == {"on_missing", "scale", "categories", "cycles"}
    for name, values in proposed.items():
        for value in values:
            other = survey_of(frame, **{name: value})
            assert (other.recipe, other.standardize) != (plain.recipe, plain.standardize)


def test_a_survey_is_all_that_a_sketch_of_a_messy_table_needs():
    frame = messy()
    survey = survey_of(frame, scale="log", categories=["city"], cycles=["weekday(day)"])
    kept = frame.dropna(subset="age")

    sketch = ss.sketch(frame, n_clusters=3, **chosen(survey))

    assert (sketch.count, sketch.n_invalid) == (len(kept), N - len(kept))
    assert sketch.spec.rows.names == survey.recipe.names
    kinds = [type(part) for part in survey.recipe.parts]
    assert kinds == [Number, Number, Log, Category, Cycle]
    mean = dict(zip(sketch.spec.rows.names, sketch.mean, strict=True))
    assert mean["age"] == pytest.approx(kept["age"].mean(), rel=1e-6)
    assert mean["city = Rome"] == pytest.approx((kept["city"] == "Rome").mean(), abs=1e-6)


def gappy(*shares, seed=0, n=2000):
    """Columns c0, c1, ... that lack these shares of their values, each on its own."""
    rng = np.random.default_rng(seed)
    columns = {
        f"c{j}": np.where(rng.random(n) < share, np.nan, rng.normal(size=n))
        for j, share in enumerate(shares)
    }
    return pd.DataFrame(columns)


GAPPY = {
    "few gaps": (0.0, 0.02, 0.05),
    "one column of many gaps": (0.0, 0.0, 0.28),
    "a column that is mostly missing": (0.0, 0.001, 0.3, 0.8),
    "gaps in every column": (0.1, 0.1, 0.2),
    "many columns of few gaps": (0.06,) * 12,
    "hardly any row is whole": (0.5,) * 6,
}


def told_share(words):
    """The share of rows that a sentence leaves out, 0 if it names none."""
    found = re.search(r"([\d.]+) % of the rows", words)
    return float(found[1]) / 100 if found else 0.0


@pytest.mark.parametrize("name", GAPPY)
def test_what_is_told_of_a_choice_is_what_it_does(name):
    frame = gappy(*GAPPY[name])
    survey = survey_of(frame)
    ways = options(survey)["on_missing"]

    for way in ways:
        found = survey_of(frame, on_missing=way)
        share = ss.sketch(frame, n_clusters=2, **chosen(found)).count / len(frame)
        assert 1 - share == pytest.approx(told_share(survey.keeps[way]), abs=6e-3)
        gone = [name for name in used(survey) if name not in used(found)]
        assert gone == re.findall(r"'(c\d+)'", survey.keeps[way])
        assert len(used(found)) >= len(used(survey)) / 2


def test_a_choice_for_rows_does_not_bring_back_columns_that_are_mostly_missing():
    frame = gappy(*GAPPY["a column that is mostly missing"])

    for way in ("skip", "mean", "raise"):
        assert reasons(survey_of(frame, on_missing=way)) == {"c3": "79 % missing"}
        named = survey_of(frame, on_missing=way, columns=["c0", "c3"])
        assert used(named) == ["c0", "c3"]
    raising = survey_of(frame, on_missing="raise")
    with pytest.raises(ss.errors.InvalidRowsError, match="nan in column 'c"):
        ss.plan(frame, n_clusters=2, columns=raising.choice, on_invalid=raising.on_invalid)
    by_column = survey_of(frame, on_missing="column")
    assert used(by_column) == ["c0", "c1"]  # for one gap, a row goes
    assert "'c1'" not in by_column.keeps["column"]


def test_gaps_are_filled_unasked_only_where_each_column_has_few():
    for name, shares in GAPPY.items():
        parts = survey_of(gappy(*shares)).recipe.parts
        filled = [part.column for part in parts if part.fill is not None]
        assert len(filled) == (12 if name == "many columns of few gaps" else 0)
    text = str(survey_of(gappy(*GAPPY["one column of many gaps"])))
    assert "Missing values: c2 (27 %). This leaves out 27 % of the rows" in text


def test_leaving_out_all_columns_is_neither_proposed_nor_done():
    frame = gappy(*GAPPY["gaps in every column"])

    assert "column" not in survey_of(frame).keeps
    with pytest.raises(
        ss.errors.DataError, match=r"every column has missing values.*on_missing='skip'"
    ):
        survey_of(frame, on_missing="column")


def test_a_column_of_zeros_with_a_long_tail_is_named_and_put_on_a_log_scale():
    rng = np.random.default_rng(0)
    cost = np.where(rng.random(5000) < 0.98, 0.0, np.round(10.0 ** rng.uniform(1.5, 6.5, 5000)))
    frame = pd.DataFrame({"cost": cost, "speed": rng.normal(150.0, 40.0, 5000)})

    survey = survey_of(frame)
    logged = survey_of(frame, scale="log")

    expected = "cost is 0 in 98 % of the rows, and spans four powers of ten in the others: try"
    assert expected in str(survey)
    assert [type(part) for part in logged.recipe.parts] == [Log, Number]
    assert logged.recipe.parts[0].encode(np.zeros(1)) == 0.0
    assert "no logarithm" not in str(logged)


def test_logarithms_are_taken_of_what_spans_two_powers_of_ten_and_else_that_is_said():
    for decades in (1.5, 2.5):
        x = 10.0 ** np.linspace(0.0, decades / 0.9, 500)
        survey = survey_of(pd.DataFrame({"x": x, "y": x[::-1]}), scale="log")

        assert [isinstance(part, Log) for part in survey.recipe.parts] == [decades > 2] * 2
        assert ("no logarithm was taken" in str(survey)) == (decades < 2)


def test_codes_and_days_of_the_month_are_left_out_and_measures_are_not():
    n, rng = 840, np.random.default_rng(0)
    codes = {
        "individual": np.arange(n) // 4 + 1,
        "flight": rng.integers(1, 4000, n),
        "ID": np.where(np.arange(n) < 3, 2.1, rng.integers(1, 300, n)),
    }
    measures = {
        "dep_time": 100 * rng.integers(24, size=n) + rng.integers(60, size=n),
        "month": rng.integers(1, 13, n),
        "flights": rng.integers(1, 4000, n),
        "year": 1900 + np.arange(n) // 7,
        "price": 50 * rng.integers(1, 40, n),
    }

    survey = survey_of(pd.DataFrame(codes | measures | {"day": rng.integers(1, 29, n)}))

    assert reasons(survey) == dict.fromkeys(codes, "identifier") | {"day": "day of the month"}
    assert used(survey) == list(measures)


def test_the_word_na_is_no_value_of_a_text(tmp_path):
    path = tmp_path / "birds.csv"
    frame = pd.DataFrame({"sex": ["m", "f", "NA", "f"] * 30, "x": np.arange(120.0) ** 0.5})
    frame["note"] = ["NA"] * 90 + ["a", "b", "c"] * 10
    frame["damage"] = ["None", "some"] * 60
    frame.to_csv(path, index=False)

    survey = survey_of(path)

    assert reasons(survey) == {
        "sex": "text, 2 values",
        "note": "text, 3 values, 75 % missing",
        "damage": "text, 2 values",
    }
    assert "categories=['sex', 'damage']" in str(survey)
    names = survey_of(path, categories=["sex", "damage"]).recipe.names[1:]
    sexes = ("sex = f", "sex = m", "sex = (missing)")
    assert names == (*sexes, "damage = None", "damage = some")


def test_counts_of_a_sample_are_not_told_as_those_of_the_table():
    n = 60_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "shop": rng.choice(["a", "b"], n)})
    frame["plane"] = [f"N{i}" for i in rng.integers(5000, size=n)]
    frame["title"] = np.where(np.arange(n) % 50 == 0, "again", np.arange(n).astype(str))

    told = reasons(survey_of(frame))

    assert re.fullmatch(r"text, [45],\d\d\d values or more", told["plane"])
    assert told["title"] == "text, another in nearly every row"
    assert told["shop"] == "text, 2 values"


def test_columns_that_alternate_are_looked_at_in_a_part_that_shows_it():
    n = 60_000
    y, sign = np.random.default_rng(0).normal(size=n), np.tile([1, -1], n // 2)
    frame = pd.DataFrame({"x": sign, "y": y, "z": sign * y, "shop": np.where(sign > 0, "a", "b")})

    thinned = survey_of(frame)

    assert (used(thinned), thinned.n_rows) == (["x", "y", "z"], n // 2)
    assert reasons(thinned) == {"shop": "text, 2 values"}
    assert thinned == survey_of(frame)
    assert "says the same" not in str(survey_of(frame[:40_000]))


@pytest.mark.parametrize(
    ("start", "freq", "n", "cycles", "form"),
    [
        ("2024-01-01", "D", 800, "['month(t)']", None),
        ("2024-01-01", "D", 60, "['weekday(t)']", "%d.%m.%Y %H:%M"),
        ("2024-01-01 00:30", "5h", 2500, "['hour(t)', 'month(t)']", "%d.%m.%Y %H:%M"),
        ("2024-01-01 00:30", "5h", 200, "['hour(t)', 'weekday(t)']", None),
        ("1950-01-01", "YS", 60, None, "%d.%m.%Y %H:%M"),
        ("2024-01-01", "D", 6, None, None),
    ],
)
def test_what_comes_round_in_a_time_is_proposed(start, freq, n, cycles, form):
    times = pd.Series(pd.date_range(start, periods=n, freq=freq))
    times = times if form is None else times.dt.strftime(form)
    text = str(survey_of(pd.DataFrame({"t": times, "x": np.arange(n) ** 0.5})))

    assert (f"cycles={cycles}" in text) if cycles else ("cycles" not in text)


def test_columns_that_repeat_others_are_named_with_how_to_leave_them_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 99, (500, 3)), columns=["other", "repair", "x"])
    frame["miles"] = 0.62 * frame["x"] + rng.normal(scale=0.1, size=500)
    frame["down"] = -frame["other"]

    survey = survey_of(frame)

    assert "miles says the same as x (r = 1.000)" in str(survey)
    assert "down says the same as other (r = -1.000)" in str(survey)
    (repeated,) = options(survey)["exclude"]
    assert set(repeated) == {"miles", "down"}
    left = survey_of(frame, exclude=repeated)
    assert used(left) == ["other", "repair", "x"]
    assert reasons(left)["miles"] == "excluded"
    assert "says the same" not in str(left)


def test_what_was_done_to_units_is_told_whatever_it_was():
    x = np.random.default_rng(0).normal(size=500)
    frame = pd.DataFrame(
        {"a": x, "b": 5.0 * x[::-1], "c": ["u", "v"] * 250, "m": [1, 2, 5, 9] * 125}
    )
    for options, words in (
        ({}, "were taken in their units: b varies 5.0 times as much as a; scale='standard'"),
        ({"scale": "standard"}, "Each column was divided by its standard deviation."),
        ({"scale": "robust"}, "Each column was divided by the distance of its quartiles."),
        ({"categories": ["c"]}, "column was divided by its standard deviation; scale='none'"),
        ({"cycles": ["month(m)"]}, "Numbers stand beside categories or times, so each column"),
    ):
        columns = None if "cycles" in options else ["a", "b"]
        assert words in str(survey_of(frame, columns=columns, **options))
    for ratio in (5.0, 9.0, 12.0):
        frame["b"] = ratio * x[::-1]
        assert survey_of(frame[["a", "b"]]).standardize == (ratio > 10)


def test_columns_that_are_named_are_taken_whatever_they_look_like():
    survey = survey_of(messy(), columns=["zip", "row", "pay"])

    assert used(survey) == ["zip", "row", "pay"]
    assert survey.choice == ("zip", "row", "pay")
    assert set(reasons(survey).values()) == {"not named"}
    assert "Left out: all others." in str(survey)
    assert "categories" not in str(survey)


def test_many_categories_become_their_frequency():
    """All categories are those of text with few values."""
    frame = messy()
    frame["word"] = [f"w{i % 40}" for i in range(N)]

    def last_part(**options):
        return survey_of(frame, **options).recipe.parts[-1]

    part = last_part(categories=["word"])
    assert isinstance(part, Frequency)
    assert part.shares == pytest.approx([1 / 40] * 40)
    assert isinstance(last_part(categories=["word"], encode="onehot"), Category)
    assert last_part(categories="all").column == "city"


def test_numbers_taken_as_they_are_give_the_bytes_of_a_plan_without_a_survey():
    """The survey changes nothing where there is nothing to change."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 3)), columns=list("abc"))
    survey = survey_of(frame)

    assert ss.plan(frame, n_clusters=3, **chosen(survey)) == ss.plan(frame, n_clusters=3)


def test_a_condition_is_applied_before_the_look():
    frame = messy()

    survey = survey_of(frame, where="city = 'Rome'")

    assert survey.n_rows == (frame["city"] == "Rome").sum()
    assert reasons(survey)["city"] == "constant"


def test_large_tables_are_looked_at_in_part(tmp_path):
    """The mean stands for gaps also beyond the rows that were looked at."""
    n, path = 200_000, tmp_path / "large.parquet"
    x, y = np.random.default_rng(0).normal(size=(2, n))
    y[[23_457, 100_001, 133_333]] = np.nan
    table = pa.table({"id": np.arange(n), "x": x, "y": y, "late": np.arange(n) // 190_000})
    pyarrow.parquet.write_table(table, path, row_group_size=5000)

    survey = survey_of(path, on_missing="mean")

    assert not survey.is_complete
    assert survey.n_rows <= 50_000
    assert used(survey) == ["x", "y", "late"]  # no constant further down
    assert not any(part.fill is None for part in survey.recipe.parts)


def test_missing_times_are_counted_and_each_choice_applies_to_them():
    times = pd.Series(pd.date_range("2026-01-01", periods=300, freq="h"))
    times[::3] = pd.NaT
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=300), "t": times})

    for way, count, columns in (
        ("auto", 200, 3),
        ("skip", 200, 3),
        ("mean", 300, 3),
        ("column", 300, 1),
    ):
        survey = survey_of(frame, cycles=["hour(t)"], on_missing=way)
        assert "t (33 %)" in str(survey)
        assert "leaves out 33 % of the rows" in survey.keeps["skip"]
        sketch = ss.sketch(frame, n_clusters=2, **chosen(survey))
        assert (sketch.count, len(sketch.mean)) == (count, columns)
        if way == "mean":
            known = Cycle("t", "hour").encode(pa.array(times.dropna()))
            assert sketch.mean[1:] == pytest.approx(known.mean(axis=0), abs=1e-3)


def test_days_in_digits_times_of_day_and_durations_are_no_numbers():
    n = 60
    days = pd.date_range("2026-01-01", periods=n)
    frame = pd.DataFrame(
        {
            "x": np.random.default_rng(0).normal(size=n),
            "at": [day.time() for day in pd.date_range("2026-01-01", periods=n, freq="37min")],
            "on": np.repeat(days.strftime("%Y%m%d").astype(int)[::2], 2),
            "took": pd.to_timedelta(np.arange(n), "s"),
        }
    )

    survey = survey_of(frame)

    assert reasons(survey) == {
        "at": "a time of day",
        "on": "days such as 20260101",
        "took": "a duration",
    }
    assert "cycles=['weekday(on)']" in str(survey)
    assert "cycles=['hour(at)']" in str(survey_of(frame, exclude=["on"]))
    for cycle in ("weekday(on)", "hour(at)"):
        assert survey_of(frame, cycles=[cycle]).recipe.n_features == 3
    assert used(survey_of(frame, columns=["on"])) == ["on"]


def test_it_is_told_which_number_is_monday(tmp_path):
    frame = pd.DataFrame({"x": np.arange(70.0) % 11, "dow": np.arange(70) % 7})
    frame.to_csv(tmp_path / "days.csv", index=False)

    for data in (frame, tmp_path / "days.csv"):
        assert "0 for Monday" in str(survey_of(data, cycles=["weekday(dow)"]))
    assert "Monday" not in str(survey_of(messy(), cycles=["weekday(day)"]))


def test_a_plan_tells_how_many_rows_have_a_category_that_it_has_not_seen():
    frame = messy()
    choice = survey_of(frame, categories=["city"]).choice
    spec = ss.plan(frame, n_clusters=2, on_invalid="skip", columns=choice, standardize=True)

    with pytest.warns(ss.errors.PlanWarning, match="100 % of the rows have a value of 'city'"):
        ss.sketch(frame.assign(city="Bonn"), spec, on_invalid="skip")


def test_wrong_arguments_are_refused_with_what_to_do():
    for arguments, words in (
        ({"exclude": ["agee"]}, "Did you mean 'age'"),
        ({"categories": ["citty"]}, "Did you mean 'city'"),
        ({"cycles": ["hour(zip)"]}, "Numbers must be 0 to 24"),
        ({"cycles": ["moon(day)"]}, r"hour\(...\)"),
        ({"scale": "big"}, "scale"),
        ({"on_missing": "drop"}, "on_missing"),
        ({"encode": "hash"}, "encode"),
        ({"categories": "city"}, "a list of column names"),
        ({"cycles": ["hour(name)"]}, "person 0"),
        ({"columns": ["name"]}, "cannot be read as numbers"),
    ):
        with pytest.raises((ss.errors.SpecError, ss.errors.DataError), match=words):
            survey_of(messy(), **arguments)


def test_a_table_without_numbers_says_what_can_be_taken():
    frame = messy()[["name", "city", "year"]]

    with pytest.raises(ss.errors.DataError, match=r"categories=\['city'\]"):
        survey_of(frame)
    with pytest.raises(ss.errors.DataError, match=r"^(?!.*columns=)"):  # of text as numbers
        survey_of(frame[["name"]])
    assert survey_of(frame, categories=["city"]).recipe.n_features == 3


def test_data_without_names_or_a_second_pass_is_refused():
    for data in (np.eye(3), iter([np.eye(3)])):
        with pytest.raises(ss.errors.DataError, match="survey"):
            survey_of(data)
