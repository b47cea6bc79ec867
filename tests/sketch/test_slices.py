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


def test_every_slice_is_the_sketch_of_its_rows_in_order_with_missing_keys_last(events) -> None:
    keys = list(zip(events["origin"].to_pylist(), events["day"].to_pylist(), strict=True))
    table = ss.sketch_by(events, by=["origin", "day"], spec=SPEC)
    in_order = sorted(set(keys), key=lambda key: (key[0] or "Z", key[1]))
    assert (table.by, [key for key, _ in table]) == (("origin", "day"), in_order)
    for own, sketch in table:
        rows = events.filter(pa.array([key == own for key in keys]))
        assert sketch == ss.sketch(rows, SPEC)


def write_csv(events: pa.Table, path: Path, delimiter: str) -> Path:
    pyarrow.csv.write_csv(events, path, pyarrow.csv.WriteOptions(delimiter=delimiter))
    return path


def write_parts(events: pa.Table, path: Path) -> Path:
    path.mkdir()
    for part in range(3):
        pq.write_table(
            events.slice(part * 1000, 1000), path / f"{part}.parquet", row_group_size=300
        )
    return path


def write_arrow(events: pa.Table, path: Path) -> Path:
    with pa.ipc.new_file(path, events.schema) as writer:
        writer.write_table(events, 500)
    return path


FORMS = {
    "csv": lambda t, path: write_csv(t, path / "x.csv", ","),
    "tsv": lambda t, path: write_csv(t, path / "x.tsv", "\t"),
    "arrow": lambda t, path: write_arrow(t, path / "x.arrow"),
    "parquet": lambda t, path: write_parts(t, path / "parts"),
    "pandas with categories": lambda t, _: t.to_pandas().astype({"origin": "category"}),
    "polars": lambda t, _: pl.from_arrow(t),
    "stream": lambda t, _: t.to_reader(max_chunksize=97),
    "batches": lambda t, _: iter(t.to_batches(max_chunksize=113)),
    "large text": lambda t, _: t.set_column(2, "origin", t["origin"].cast(pa.large_string())),
    "chunks": lambda t, _: pa.Table.from_batches(t.to_batches(max_chunksize=250)),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_frames_and_streams_give_the_same_table(form: str, events, tmp_path: Path) -> None:
    options = {"by": ["origin", "day"], "spec": SPEC, "sample_weight": "w"}
    expected = ss.sketch_by(events, **options)
    assert ss.sketch_by(FORMS[form](events, tmp_path), **options) == expected
    assert expected.merge() == ss.sketch(events, SPEC, sample_weight="w")


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


@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    n_threads=st.sampled_from([1, 2, 5]),
)
@settings(max_examples=15)
def test_order_and_threads_do_not_change_a_byte(seed: int, cuts: list[int], n_threads: int) -> None:
    rng = np.random.default_rng(0)
    labels, x, y = rng.integers(0, 7, 400), *rng.normal(size=(2, 400))
    data = pa.table({"key": labels, "x": x, "y": y})
    expected = ss.sketch_by(data, by="key", spec=SPEC, n_threads=1)
    rows = np.split(np.random.default_rng(seed).permutation(400), sorted(cuts))
    table = ss.sketch_by(map(data.take, rows), by="key", spec=SPEC, n_threads=n_threads)
    assert table == expected
    assert [s.to_bytes() for s in table.sketches] == [s.to_bytes() for s in expected.sketches]


def test_numbers_that_are_missing_make_one_slice() -> None:
    X, labels = np.zeros((4, 2)), np.array([np.nan, 1.0, np.nan, 2.0])
    table = ss.sketch_by(X, by=labels, spec=SPEC)
    assert table.keys.column("key").to_pylist() == [1.0, 2.0, None]
    assert table.counts.tolist() == [1, 1, 2]


def test_a_key_may_be_a_number_that_is_sketched_too_and_a_plan_made_on_the_way(events) -> None:
    table = ss.sketch_by(events, by="w", n_clusters=3, columns=["w", "x"], seed=5)
    assert table.spec == ss.plan(events, n_clusters=3, columns=["w", "x"], seed=5)
    assert [float(sketch.mean[0]) for _, sketch in table] == pytest.approx([1.0, 2.0, 3.0])


def test_a_bad_row_is_named_as_it_lies_in_the_data(events: pa.Table) -> None:
    x = np.array(events["x"]).copy()
    x[2345] = np.nan
    bad = events.set_column(1, "x", pa.array(x))
    with pytest.raises(InvalidRowsError, match="row 2345 of table has nan in column 'x'"):
        ss.sketch_by(bad, by="origin", spec=SPEC)
    table = ss.sketch_by(bad, by="origin", spec=SPEC, on_invalid="skip")
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


def test_labels_beside_a_stream_and_data_without_rows_are_refused(events: pa.Table) -> None:
    with pytest.raises(DataError, match="Store the labels as a column"):
        ss.sketch_by(events.to_reader(), by=np.arange(N), spec=SPEC)
    with pytest.raises(DataError, match="no rows"):
        ss.sketch_by(events.slice(0, 0).to_batches(), by="day", spec=SPEC)


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
        ("caf\xe9", ["caf\xe9"]),
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


def test_files_whose_keys_have_unlike_types_are_refused(tmp_path: Path) -> None:
    for name, keys in (("a", [1, 2]), ("b", ["1", "2"])):
        data = pa.table({"key": keys, "x": [0.0, 1.0], "y": [0.0, 1.0]})
        pq.write_table(data, tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="another type in some blocks or files"):
        ss.sketch_by(tmp_path, by="key", spec=SPEC)


def test_a_unit_of_what_is_no_time_is_refused(events: pa.Table) -> None:
    with pytest.raises(DataError, match=r"day\(origin\): '...' cannot be read as a date or time"):
        ss.sketch_by(events, by="day(origin)", spec=SPEC)
    with pytest.raises(DataError, match="'x' holds double"):
        ss.sketch_by(events, by="day(x)", spec=SPEC)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_too_many_slices_are_too_many_on_any_number_of_threads(n_threads: int) -> None:
    """Sorted keys: no thread alone sees them all."""
    keys = np.repeat(np.arange(150), 2000)
    data = pa.table({"key": keys, "x": np.ones(len(keys))})

    with pytest.raises(DataError, match="more than 149 slices by key"):
        ss.sketch_by(data, "key", ONE, max_slices=149, n_threads=n_threads)
    assert len(ss.sketch_by(data, "key", ONE, max_slices=150, n_threads=n_threads)) == 150


def test_many_columns_of_a_key_are_as_many_slices_as_there_are_values() -> None:
    """Ten columns of 200 values each: the product of their sizes is beyond any integer."""
    ids = np.random.default_rng(0).integers(200, size=2000)
    names = [f"k{i}" for i in range(10)]
    data = pa.table({"x": ids.astype(np.float64)} | dict.fromkeys(names, ids * 7))

    table = ss.sketch_by(data, names, ONE)

    assert table.counts.tolist() == np.unique(ids, return_counts=True)[1].tolist()
    assert table.keys.column("k9").to_pylist() == (np.unique(ids) * 7).tolist()


@pytest.mark.parametrize("name", ["count", "sketch", "__row__"])
def test_a_key_named_like_a_column_of_the_table_is_refused_before_the_pass(name: str) -> None:
    blocks = iter([pa.table({"x": [1.0], name: ["a"]})])

    with pytest.raises(DataError, match=f"a key cannot be named '{name}'.* Rename it"):
        ss.sketch_by(blocks, name, ONE)
    assert next(blocks).num_rows == 1


@pytest.mark.parametrize(("written", "keys"), [("1", [1, 3, 5]), ("01", ["01", "1", "3", "5"])])
def test_keys_of_text_files_and_of_others_are_numbers_if_all_are(tmp_path, written, keys) -> None:
    (tmp_path / "a.csv").write_text(f"k,x\n{written},2\n3,4\n")
    pq.write_table(pa.table({"k": [1, 5], "x": [1.0, 2.0]}), tmp_path / "b.parquet")

    table = ss.sketch_by([tmp_path / "a.csv", tmp_path / "b.parquet"], "k", ONE)

    assert table.keys.column("k").to_pylist() == keys
    assert table.merge().count == 4
