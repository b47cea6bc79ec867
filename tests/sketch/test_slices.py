from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sketchshift as ss
from sketchshift.errors import DataError, InvalidRowsError

N = 3000
NAMES = ["x", "y"]
SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5, columns=NAMES)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    rng = np.random.default_rng(0)
    days = [dt.date(2026, 1, 1) + dt.timedelta(int(i)) for i in rng.integers(0, 5, N)]
    origins = np.array(["SFO", "OAK", None], dtype=object)[rng.integers(0, 3, N)]
    x, y = rng.normal(size=(2, N))
    return pa.table({"day": days, "x": x, "origin": origins, "y": y, "w": rng.integers(1, 4, N)})


def rows_of(events: pa.Table, **key: Any) -> np.ndarray:
    """The plain rows of one key, by looking at every one of them."""
    kept = [
        (row["x"], row["y"])
        for row in events.to_pylist()
        if all(row[name] == value for name, value in key.items())
    ]
    return np.array(kept)


def test_every_slice_is_the_sketch_of_its_rows(events: pa.Table) -> None:
    table = ss.sketch_by(events, by=["day", "origin"], spec=SPEC)
    assert table.by == ("day", "origin")
    assert len(table) == 15
    for (day, origin), sketch in table:
        assert sketch == ss.sketch(rows_of(events, day=day, origin=origin), SPEC)


def test_slices_add_up_to_the_sketch_of_all_rows(events: pa.Table) -> None:
    assert ss.sketch_by(events, by="day", spec=SPEC).merge() == ss.sketch(events, SPEC)


def test_keys_come_in_order_with_the_missing_one_last(events: pa.Table) -> None:
    table = ss.sketch_by(events, by="origin", spec=SPEC)
    assert table.keys.column("origin").to_pylist() == ["OAK", "SFO", None]


@pytest.fixture(params=["parquet", "csv", "tsv", "arrow", "many"])
def path(request: pytest.FixtureRequest, events: pa.Table, tmp_path: Path) -> Path:
    kind = request.param
    file = tmp_path / f"events.{kind}"
    if kind == "parquet":
        pq.write_table(events, file, row_group_size=700)
    elif kind in ("csv", "tsv"):
        options = pyarrow.csv.WriteOptions(delimiter="," if kind == "csv" else "\t")
        pyarrow.csv.write_csv(events, file, options)
    elif kind == "arrow":
        with pa.ipc.new_file(file, events.schema) as writer:
            writer.write_table(events, 500)
    else:
        file.mkdir()
        for part in range(3):
            pq.write_table(events.slice(part * 1000, 1000), file / f"part-{part}.parquet")
    return file


def test_files_of_every_kind_give_the_same_table(path: Path, events: pa.Table) -> None:
    expected = ss.sketch_by(events, by=["origin", "day"], spec=SPEC)
    assert ss.sketch_by(path, by=["origin", "day"], spec=SPEC) == expected


FORMS = {
    "pandas": lambda t: t.to_pandas(),
    "pandas with categories": lambda t: t.to_pandas().astype({"origin": "category"}),
    "polars": pl.from_arrow,
    "stream": lambda t: t.to_reader(max_chunksize=97),
    "batches": lambda t: iter(t.to_batches(max_chunksize=113)),
    "dictionaries": lambda t: t.set_column(2, "origin", t["origin"].dictionary_encode()),
    "large text": lambda t: t.set_column(2, "origin", t["origin"].cast(pa.large_string())),
    "chunks": lambda t: pa.Table.from_batches(t.to_batches(max_chunksize=250)),
}


@pytest.mark.parametrize("form", FORMS)
def test_frames_and_streams_give_the_same_table(form: str, events: pa.Table) -> None:
    expected = ss.sketch_by(events, by="origin", spec=SPEC)
    assert ss.sketch_by(FORMS[form](events), by="origin", spec=SPEC) == expected


def test_labels_may_come_beside_an_array_or_a_frame(events: pa.Table) -> None:
    X = np.column_stack([events["x"], events["y"]])
    expected = ss.sketch_by(events, by="origin", spec=SPEC)
    origins = events["origin"].to_pandas()
    for data in (X, sparse.csr_array(X), events.select(NAMES), events.select(NAMES).to_pandas()):
        table = ss.sketch_by(data, by=origins, spec=SPEC)
        assert table.sketches == expected.sketches
    assert ss.sketch_by(X, by=pd.Series(origins, name="origin"), spec=SPEC) == expected
    assert ss.sketch_by(X, by=pl.Series("origin", origins), spec=SPEC) == expected
    assert ss.sketch_by(X, by=np.arange(N) % 2, spec=SPEC).by == ("key",)


@given(seed=st.integers(0, 2**32 - 1), n_threads=st.sampled_from([1, 2, 5]))
@settings(max_examples=15, deadline=None)
def test_order_and_threads_do_not_change_a_byte(seed: int, n_threads: int) -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 2)), rng.integers(0, 7, 400)
    expected = ss.sketch_by(X, by=labels, spec=SPEC, n_threads=1)
    order = np.random.default_rng(seed).permutation(400)
    cuts = np.sort(np.random.default_rng(seed).integers(0, 400, 5))
    blocks = (
        pa.table({"key": labels[rows], "x": X[rows, 0], "y": X[rows, 1]})
        for rows in np.split(order, cuts)
    )
    table = ss.sketch_by(blocks, by="key", spec=SPEC, n_threads=n_threads)
    assert table == expected
    assert [s.to_bytes() for s in table.sketches] == [s.to_bytes() for s in expected.sketches]


def test_numbers_that_are_missing_make_one_slice() -> None:
    X, labels = np.zeros((4, 2)), np.array([np.nan, 1.0, np.nan, 2.0])
    table = ss.sketch_by(X, by=labels, spec=SPEC)
    assert table.keys.column("key").to_pylist() == [1.0, 2.0, None]
    assert table.counts.tolist() == [1, 1, 2]


def test_a_key_may_be_a_number_that_is_sketched_too(events: pa.Table) -> None:
    spec = ss.SketchSpec(n_features=1, sketch_size=20, bandwidth=0.5, columns=["w"])
    table = ss.sketch_by(events, by="w", spec=spec)
    assert table.keys.column("w").to_pylist() == [1, 2, 3]
    assert float(table[2].mean[0]) == pytest.approx(2.0)


def test_weights_count_in_each_slice(events: pa.Table) -> None:
    table = ss.sketch_by(events, by="origin", spec=SPEC, sample_weight="w")
    assert table.merge() == ss.sketch(events, SPEC, sample_weight="w")


def test_a_plan_is_made_on_the_way(events: pa.Table) -> None:
    table = ss.sketch_by(events, by="origin", n_clusters=3, columns=NAMES, seed=5)
    assert table.spec == ss.plan(events, n_clusters=3, columns=NAMES, seed=5)


def test_a_bad_row_is_named_as_it_lies_in_the_file(events: pa.Table, tmp_path: Path) -> None:
    x = np.array(events["x"]).copy()
    x[2345] = np.nan
    pq.write_table(events.set_column(1, "x", pa.array(x)), tmp_path / "bad.parquet")
    with pytest.raises(InvalidRowsError, match=r"row 2345 of .*bad.parquet has nan in column 'x'"):
        ss.sketch_by(tmp_path / "bad.parquet", by="origin", spec=SPEC)
    table = ss.sketch_by(tmp_path / "bad.parquet", by="origin", spec=SPEC, on_invalid="skip")
    assert sum(sketch.n_invalid for sketch in table.sketches) == 1


REFUSED = {
    "more than 2 slices by origin": {"by": "origin", "max_slices": 2},
    "no column 'orgin'. Did you mean 'origin'": {"by": "orgin"},
    "each once": {"by": ["day", "day"]},
    "by must be the name of a column": {"by": 3.5},
    "say how to cut": {"by": None},
    "labels but the table has 3000 rows": {"by": np.arange(5)},
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_wrong_key_is_refused_with_the_remedy(words: str, events: pa.Table) -> None:
    with pytest.raises(DataError, match=words):
        ss.sketch_by(events, spec=SPEC, **REFUSED[words])


def test_labels_beside_a_stream_are_refused(events: pa.Table) -> None:
    with pytest.raises(DataError, match="Store the labels as a column"):
        ss.sketch_by(events.to_reader(), by=np.arange(N), spec=SPEC)


def test_a_key_of_lists_is_refused() -> None:
    data = pa.table({"key": [[1], [2]], "x": [0.0, 1.0], "y": [0.0, 1.0]})
    with pytest.raises(DataError, match="a key cannot hold list"):
        ss.sketch_by(data, by="key", spec=SPEC)


ONE = ss.SketchSpec(n_features=1, sketch_size=8, bandwidth=1.0, columns=["x"])


def keys_in(data: Any, *texts: str) -> list[Any]:
    """Keys found in text files of which each has these in a column."""
    for i, text in enumerate(texts):
        (data / f"{i}.csv").write_text("k,x\n" + "".join(f"{k},1\n" for k in text.split("|")))
    return ss.sketch_by(data, by="k", spec=ONE).keys["k"].to_pylist()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1234|7|-5||1234", [-5, 7, 1234, None]),
        ("01234|1234", ["01234", "1234"]),
        ("1.1|1.10|1", ["1", "1.1", "1.10"]),
        ("NA|DE||NA", ["DE", "NA", None]),
        ("1|NA", ["1", "NA"]),
        ("+1|1", ["+1", "1"]),
        ("9223372036854775807|0", [0, 2**63 - 1]),
        ("9223372036854775808|0", ["0", "9223372036854775808"]),
        ("true||false", [False, True, None]),
        ("2026-01-05|NA", [dt.date(2026, 1, 5), None]),
    ],
)
def test_keys_of_a_text_file_keep_what_is_written(
    tmp_path: Path, text: str, keys: list[Any]
) -> None:
    assert keys_in(tmp_path, text) == keys


def test_one_cell_makes_text_of_a_key_wherever_it_stands(tmp_path: Path) -> None:
    """In a later file, or a later block of a file of 3 MiB."""
    numbers = [str(i % 50) for i in range(600_000)]
    expected = sorted({*numbers, "007"})

    assert keys_in(tmp_path, "7|8", "007|7") == ["007", "7", "8"]
    assert keys_in(tmp_path, "|".join([*numbers, "007"]), "1|2") == expected
    assert keys_in(tmp_path, "|".join(["007", *numbers]), "1|2") == expected
    assert keys_in(tmp_path, "|".join(numbers), "1|2") == list(range(50))


def test_a_key_that_is_not_utf8_is_read_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"k,x\ncaf\xe9,1\n")
    assert [key for key, _ in ss.sketch_by(tmp_path, by="k", spec=ONE)] == ["café"]


def test_files_whose_keys_have_unlike_types_are_refused(tmp_path: Path) -> None:
    for name, keys in (("a", [1, 2]), ("b", ["1", "2"])):
        data = pa.table({"key": keys, "x": [0.0, 1.0], "y": [0.0, 1.0]})
        pq.write_table(data, tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="another type in some blocks or files"):
        ss.sketch_by(tmp_path, by="key", spec=SPEC)


@pytest.mark.parametrize("kind", [pa.Table.to_batches, pa.Table.to_pandas, lambda table: table])
def test_data_without_rows_is_refused(events: pa.Table, kind: Any) -> None:
    with pytest.raises(DataError, match="no rows"):
        ss.sketch_by(kind(events.slice(0, 0)), by="day", spec=SPEC)


def test_a_unit_of_what_is_no_time_is_refused(events: pa.Table) -> None:
    with pytest.raises(DataError, match=r"day\(origin\): '...' cannot be read as a date or time"):
        ss.sketch_by(events, by="day(origin)", spec=SPEC)
    with pytest.raises(DataError, match="'x' holds double"):
        ss.sketch_by(events, by="day(x)", spec=SPEC)


def test_one_column_of_times_may_make_two_keys(events: pa.Table) -> None:
    table = ss.sketch_by(events, by=["month(day)", "day"], spec=SPEC)
    assert table.by == ("month", "day")
    assert table.where("month = '2026-01-01'").merge() == table.merge()


def test_progress_hears_of_every_row(events: pa.Table) -> None:
    seen: list[int] = []
    ss.sketch_by(events, by="day", spec=SPEC, progress=lambda rows, _: seen.append(rows))
    assert sum(seen) == N


ONE_COLUMN = ss.SketchSpec(n_features=1, sketch_size=20, bandwidth=1.0, columns=["x"])


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_too_many_slices_are_too_many_on_any_number_of_threads(n_threads: int) -> None:
    """Sorted keys: no thread alone sees them all."""
    keys = np.repeat(np.arange(150), 2000)
    data = pa.table({"key": keys, "x": np.ones(len(keys))})

    with pytest.raises(DataError, match="more than 149 slices by key"):
        ss.sketch_by(data, "key", ONE_COLUMN, max_slices=149, n_threads=n_threads)
    assert len(ss.sketch_by(data, "key", ONE_COLUMN, max_slices=150, n_threads=n_threads)) == 150


def test_many_columns_of_a_key_are_as_many_slices_as_there_are_values() -> None:
    """Ten columns of 200 values each: the product of their sizes is beyond any integer."""
    ids = np.random.default_rng(0).integers(200, size=2000)
    names = [f"k{i}" for i in range(10)]
    data = pa.table({"x": ids.astype(np.float64)} | dict.fromkeys(names, ids * 7))

    table = ss.sketch_by(data, names, ONE_COLUMN)

    assert table.counts.tolist() == np.unique(ids, return_counts=True)[1].tolist()
    assert table.keys.column("k9").to_pylist() == (np.unique(ids) * 7).tolist()


def test_a_file_whose_keys_are_all_missing_is_one_with_the_missing_keys(tmp_path) -> None:
    """Such a column has no type; the other file says which one it is."""
    pq.write_table(pa.table({"k": [1, None, 2], "x": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": pa.nulls(2), "x": [4.0, 5.0]}), tmp_path / "b.parquet")

    table = ss.sketch_by(tmp_path, "k", ONE_COLUMN)

    assert table.keys.column("k").to_pylist() == [1, 2, None]
    assert table.counts.tolist() == [1, 1, 3]


@pytest.mark.parametrize("name", ["count", "sketch", "__row__"])
def test_a_key_named_like_a_column_of_the_table_is_refused_before_the_pass(name: str) -> None:
    blocks = iter([pa.table({"x": [1.0], name: ["a"]})])

    with pytest.raises(DataError, match=f"a key cannot be named '{name}'.* Rename it"):
        ss.sketch_by(blocks, name, ONE_COLUMN)
    assert next(blocks).num_rows == 1


@pytest.mark.parametrize(("written", "keys"), [("1", [1, 3, 5]), ("01", ["01", "1", "3", "5"])])
def test_keys_of_text_files_and_of_others_are_numbers_if_all_are(tmp_path, written, keys) -> None:
    (tmp_path / "a.csv").write_text(f"k,x\n{written},2\n3,4\n")
    pq.write_table(pa.table({"k": [1, 5], "x": [1.0, 2.0]}), tmp_path / "b.parquet")

    table = ss.sketch_by([tmp_path / "a.csv", tmp_path / "b.parquet"], "k", ONE_COLUMN)

    assert table.keys.column("k").to_pylist() == keys
    assert table.merge().count == 4
