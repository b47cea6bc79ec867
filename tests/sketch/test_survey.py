"""A look at a table: which columns are clustered, which are not, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import sketchshift as ss
from sketchshift.errors import Option
from sketchshift.recipe import Category, Cycle, Frequency, Log, Number

N = 400


def messy(seed: int = 0, n: int = N) -> pd.DataFrame:
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


def reasons(survey: ss.Survey) -> dict[str, str]:
    return {column.name: column.reason for column in survey.left_out}


def test_numbers_are_taken_and_everything_left_out_is_named_with_the_reason():
    survey = ss.survey(messy())

    assert [column.name for column in survey.used] == ["age", "pay", "gas"]
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


def test_what_was_decided_is_told_in_words_that_can_be_passed_on():
    text = str(ss.survey(messy()))

    assert "Missing values: age (4.0 %). This leaves out 4.0 % of the rows" in text
    assert "gas varies" in text
    assert "times as much as age" in text
    assert "scale='none'" in text
    assert "gas spans five powers of ten: try scale='log'" in text
    assert "categories=['city']" in text
    assert "cycles=['weekday(day)']" in text


def test_every_option_that_is_proposed_can_be_passed():
    frame = messy()
    notes = [part for note in ss.survey(frame).notes for part in note if isinstance(part, Option)]

    assert {option.name for option in notes} == {"on_missing", "scale", "categories", "cycles"}
    for option in notes:
        value = option.value if isinstance(option.value, str) else list(option.value)
        assert ss.survey(frame, **{option.name: value}).recipe != ss.survey(frame).recipe or (
            ss.survey(frame, **{option.name: value}).standardize != ss.survey(frame).standardize
        )


def test_a_survey_is_all_that_a_sketch_of_a_messy_table_needs():
    frame = messy()
    survey = ss.survey(frame, scale="log", categories=["city"], cycles=["weekday(day)"])
    kept = frame.dropna(subset="age")

    sketch = ss.sketch(
        frame,
        n_clusters=3,
        columns=survey.choice,
        standardize=survey.standardize,
        on_invalid=survey.on_invalid,
    )

    assert (sketch.count, sketch.n_invalid) == (len(kept), N - len(kept))
    assert sketch.spec.columns == survey.recipe.names
    kinds = [type(part) for part in survey.recipe.parts]
    assert kinds == [Number, Number, Log, Category, Cycle]
    mean = dict(zip(sketch.spec.columns, sketch.mean, strict=True))
    assert mean["age"] == pytest.approx(kept["age"].mean(), rel=1e-6)
    assert mean["city = Rome"] == pytest.approx((kept["city"] == "Rome").mean(), abs=1e-6)


@pytest.mark.parametrize(
    ("way", "rows", "columns"),
    [("skip", 384, ["age", "pay"]), ("mean", 400, ["age", "pay"]), ("column", 400, ["pay"])],
)
def test_each_way_with_missing_values_keeps_what_it_says(way, rows, columns):
    frame = messy()[["age", "pay"]]
    survey = ss.survey(frame, on_missing=way)

    sketch = ss.sketch(
        frame, n_clusters=2, columns=survey.choice, on_invalid=survey.on_invalid, standardize=True
    )

    assert sketch.count == rows
    assert list(sketch.spec.columns) == columns
    if way == "mean":
        assert sketch.mean[0] == pytest.approx(frame["age"].mean(), rel=1e-5)


def test_many_gaps_are_filled_rather_than_half_of_the_rows_dropped():
    frame = messy()[["age", "pay"]]
    frame.loc[::4, "age"] = np.nan

    survey = ss.survey(frame)

    assert survey.recipe.parts[0].fill == pytest.approx(frame["age"].mean(), rel=1e-5)
    assert "on_missing='skip' leaves out 28 % of the rows" in str(survey)


def test_raising_is_still_a_choice():
    frame = messy()[["age", "pay"]]
    survey = ss.survey(frame, on_missing="raise")

    assert survey.on_invalid == "raise"
    with pytest.raises(ss.InvalidRowsError, match="nan in column 'age'"):
        ss.plan(frame, n_clusters=2, columns=survey.choice, on_invalid=survey.on_invalid)


def test_columns_that_are_named_are_taken_whatever_they_look_like():
    survey = ss.survey(messy(), columns=["zip", "row", "pay"])

    assert [column.name for column in survey.used] == ["zip", "row", "pay"]
    assert survey.choice == ("zip", "row", "pay")


def test_excluded_columns_are_left_out():
    survey = ss.survey(messy(), exclude=["gas"])

    assert [column.name for column in survey.used] == ["age", "pay"]
    assert reasons(survey)["gas"] == "excluded"


def test_a_misspelt_name_is_refused():
    with pytest.raises(ss.DataError, match="Did you mean 'city'"):
        ss.survey(messy(), categories=["citty"])


def test_many_categories_become_their_frequency():
    frame = messy()
    frame["word"] = [f"w{i % 40}" for i in range(N)]

    part = ss.survey(frame, categories=["word"]).recipe.parts[-1]

    assert isinstance(part, Frequency)
    assert part.shares == pytest.approx([1 / 40] * 40)
    assert isinstance(
        ss.survey(frame, categories=["word"], encode="onehot").recipe.parts[-1], Category
    )


def test_all_categories_are_those_of_text_with_few_values():
    frame = messy()
    frame["word"] = [f"w{i % 40}" for i in range(N)]

    parts = ss.survey(frame, categories="all").recipe.parts

    assert [part.column for part in parts if part.kind == "category"] == ["city"]


@pytest.mark.parametrize(("ratio", "scaled"), [(5.0, False), (9.0, False), (12.0, True)])
def test_units_are_made_alike_from_a_factor_of_ten_on(ratio, scaled):
    x = np.random.default_rng(0).normal(size=500)
    frame = pd.DataFrame({"a": x, "b": ratio * x[::-1]})

    assert ss.survey(frame).standardize is scaled


def test_numbers_taken_as_they_are_give_the_bytes_of_a_plan_without_a_survey():
    """The survey changes nothing where there is nothing to change."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 3)), columns=list("abc"))
    survey = ss.survey(frame)

    planned = ss.plan(
        frame,
        n_clusters=3,
        columns=survey.choice,
        standardize=survey.standardize,
        on_invalid=survey.on_invalid,
    )

    assert planned == ss.plan(frame, n_clusters=3)


def test_a_condition_is_applied_before_the_look():
    frame = messy()

    survey = ss.survey(frame, where="city = 'Rome'")

    assert survey.n_rows == (frame["city"] == "Rome").sum()
    assert reasons(survey)["city"] == "constant"


def test_large_tables_are_looked_at_in_part(tmp_path):
    rng = np.random.default_rng(0)
    n = 400_000
    table = pa.table({"id": np.arange(n), "x": rng.normal(size=n), "late": np.arange(n) // 390_000})
    pyarrow.parquet.write_table(table, tmp_path / "large.parquet", row_group_size=10_000)

    survey = ss.survey(tmp_path / "large.parquet")

    assert not survey.is_complete
    assert survey.n_rows <= 50_000
    assert [column.name for column in survey.used] == ["x", "late"]  # not constant further down


def test_hours_and_months_come_round():
    frame = pd.DataFrame(
        {"hour": np.arange(480) % 24, "x": np.random.default_rng(0).normal(size=480)}
    )

    assert "cycles=['hour(hour)']" in str(ss.survey(frame))
    survey = ss.survey(frame, cycles=["hour(hour)"])
    assert survey.recipe.names == ("x", "hour(hour) cos", "hour(hour) sin")


def gappy_times(n: int = 300) -> pd.DataFrame:
    times = pd.Series(pd.date_range("2026-01-01", periods=n, freq="h"))
    times[::3] = pd.NaT
    return pd.DataFrame({"x": np.random.default_rng(0).normal(size=n), "t": times})


def test_missing_times_are_counted_and_each_choice_applies_to_them():
    frame = gappy_times()
    counted = {way: ss.survey(frame, cycles=["hour(t)"], on_missing=way) for way in WAYS}

    assert "t (33 %)" in str(counted["auto"])
    assert "leaves out 33 % of the rows" in counted["auto"].keeps["skip"]
    rows = {
        way: ss.sketch(
            frame, n_clusters=2, columns=found.choice, standardize=True, on_invalid="skip"
        ).count
        for way, found in counted.items()
    }
    assert rows == {"auto": 300, "skip": 200, "mean": 300, "column": 300}
    assert counted["column"].recipe.names == ("x",)
    whole = ss.sketch(frame, n_clusters=2, columns=counted["mean"].choice, standardize=True).mean
    known = Cycle("t", "hour").encode(pa.array(frame["t"].dropna()))
    assert whole[1:] == pytest.approx(known.mean(axis=0), abs=1e-3)


WAYS = ("auto", "skip", "mean", "column")


def test_the_mean_stands_for_gaps_beyond_the_rows_that_were_looked_at(tmp_path):
    n = 400_000
    x, y = np.random.default_rng(0).normal(size=(2, n))
    y[[123_457, 200_001, 333_333]] = np.nan
    pyarrow.parquet.write_table(
        pa.table({"x": x, "y": y}), tmp_path / "large.parquet", row_group_size=10_000
    )

    survey = ss.survey(tmp_path / "large.parquet", on_missing="mean")

    assert not survey.is_complete
    assert [part.fill is None for part in survey.recipe.parts] == [False, False]


def test_a_plan_on_times_of_a_zone_reads_texts_of_the_same_times_alike():
    times = pd.date_range("2026-03-28", periods=72, freq="h", tz="UTC").tz_convert("Europe/Paris")
    frame = pd.DataFrame({"x": np.arange(72.0) % 7, "t": times})

    (_, cycle) = ss.survey(frame, columns=["x"], cycles=["hour(t)"]).recipe.parts

    texts = pa.array(times.strftime("%Y-%m-%d %H:%M:%S%z"))
    assert cycle.zone == "Europe/Paris"
    assert np.array_equal(cycle.encode(texts), cycle.encode(pa.array(times)))


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

    survey = ss.survey(frame)

    assert reasons(survey) == {
        "at": "a time of day",
        "on": "days such as 20260101",
        "took": "a duration",
    }
    assert "cycles=['weekday(on)']" in str(survey)
    assert "cycles=['hour(at)']" in str(ss.survey(frame, exclude=["on"]))
    for cycle in ("weekday(on)", "hour(at)"):
        assert ss.survey(frame, cycles=[cycle]).recipe.n_features == 3
    assert [c.name for c in ss.survey(frame, columns=["on"]).used] == ["on"]


def test_what_was_not_named_is_not_told_as_something_else():
    survey = ss.survey(messy(), columns=["age", "pay"])

    assert set(reasons(survey).values()) == {"not named"}
    assert "Left out" not in str(survey)
    assert "categories" not in str(survey)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_it_is_told_which_number_is_monday(tmp_path, suffix):
    frame = pd.DataFrame({"x": np.arange(70.0) % 11, "dow": np.arange(70) % 7})
    path = tmp_path / f"days.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)

    assert "0 for Monday" in str(ss.survey(path, cycles=["weekday(dow)"]))
    assert "Monday" not in str(ss.survey(messy(), cycles=["weekday(day)"]))


def test_a_plan_tells_how_many_rows_have_a_category_that_it_has_not_seen():
    frame = messy()
    chosen = {"columns": ss.survey(frame, categories=["city"]).choice, "standardize": True}
    spec = ss.plan(frame, n_clusters=2, on_invalid="skip", **chosen)

    with pytest.warns(ss.PlanWarning, match="100 % of the rows have a value of 'city'"):
        ss.sketch(frame.assign(city="Bonn"), spec, on_invalid="skip")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"exclude": ["agee"]}, "Did you mean 'age'"),
        ({"cycles": ["hour(zip)"]}, "Numbers must be 0 to 24"),
        ({"cycles": ["moon(day)"]}, "hour(...)"),
        ({"scale": "big"}, "scale"),
        ({"on_missing": "drop"}, "on_missing"),
        ({"encode": "hash"}, "encode"),
        ({"categories": "city"}, "a list of column names"),
        ({"cycles": ["hour(name)"]}, "person 0"),
        ({"columns": ["name"]}, "cannot be read as numbers"),
    ],
)
def test_wrong_arguments_are_refused_with_what_to_do(arguments, words):
    with pytest.raises((ss.SpecError, ss.DataError)) as refusal:
        ss.survey(messy(), **arguments)

    assert words in str(refusal.value)


def test_a_table_without_numbers_says_what_can_be_taken():
    frame = messy()[["name", "city", "year"]]

    with pytest.raises(ss.DataError, match=r"categories=\['city'\]"):
        ss.survey(frame)
    assert ss.survey(frame, categories=["city"]).recipe.n_features == 3


@pytest.mark.parametrize("data", [np.eye(3), iter([np.eye(3)])])
def test_data_without_names_or_a_second_pass_is_refused(data):
    with pytest.raises(ss.DataError, match="survey"):
        ss.survey(data)
