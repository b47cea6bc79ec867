from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from importlib import import_module
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

SLICES = import_module("sketchshift.sketch.slices")
N = 3000
SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5, columns=["x", "y"])
ONE = ss.SketchSpec(n_features=1, sketch_size=8, bandwidth=1.0, columns=["x"])


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


def write_files(events: pa.Table, folder: Path) -> Path:
    pyarrow.csv.write_csv(events[:1000], folder / "0.csv")
    pq.write_table(events[1000:], folder / "1.parquet", row_group_size=300)
    return folder


FORMS = {
    "files": write_files,
    "pandas with categories": lambda t, _: t.to_pandas().astype({"origin": "category"}),
    "polars": lambda t, _: pl.from_arrow(t),
    "stream": lambda t, _: t.to_reader(max_chunksize=97),
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
    origins = pd.Series(events["origin"].to_pandas(), name="origin")

    for data in (X, sparse.csr_array(X), events.select(["x", "y"])):
        assert ss.sketch_by(data, by=origins, spec=SPEC) == expected
    assert ss.sketch_by(X, by=pl.Series("origin", events["origin"]), spec=SPEC) == expected
    assert ss.sketch_by(X, by=np.arange(N) % 2, spec=SPEC).by == ("key",)


@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    n_threads=st.sampled_from([1, 2, 5]),
)
@settings(max_examples=15)
def test_order_and_threads_do_not_change_a_byte(events, seed, cuts, n_threads) -> None:
    data = events[:400]
    rows = np.split(np.random.default_rng(seed).permutation(400), sorted(cuts))

    table = ss.sketch_by(map(data.take, rows), by="origin", spec=SPEC, n_threads=n_threads)

    expected = ss.sketch_by(data, by="origin", spec=SPEC, n_threads=1)
    assert table == expected
    assert [s.to_bytes() for s in table.sketches] == [s.to_bytes() for s in expected.sketches]


def test_numbers_that_are_missing_make_one_slice() -> None:
    table = ss.sketch_by(np.zeros((4, 2)), by=np.array([np.nan, 1.0, np.nan, 2.0]), spec=SPEC)

    assert [(key, s.count) for key, s in table] == [(1.0, 1), (2.0, 1), (None, 2)]


def test_a_key_may_be_a_number_that_is_sketched_too_and_a_plan_made_on_the_way(events) -> None:
    table = ss.sketch_by(events, by="w", n_clusters=3, columns=["w", "x"], seed=5)

    assert table.spec == ss.plan(events, n_clusters=3, columns=["w", "x"], seed=5)
    assert [float(sketch.mean[0]) for _, sketch in table] == pytest.approx([1.0, 2.0, 3.0])


def test_a_bad_row_is_named_as_it_lies_in_the_data(events: pa.Table) -> None:
    x = events["x"].to_pylist()
    x[2345] = None
    bad = events.set_column(1, "x", pa.array(x))

    with pytest.raises(InvalidRowsError, match="row 2345 of table has nan in column 'x'"):
        ss.sketch_by(bad, by="origin", spec=SPEC)
    table = ss.sketch_by(bad, by="origin", spec=SPEC, on_invalid="skip")
    assert sum(sketch.n_invalid for sketch in table.sketches) == 1


REFUSED = {
    "no column 'orgin'. Did you mean 'origin'": "orgin",
    "each once": ["day", "day"],
    "by must be the name of a column": 3.5,
    "say how to cut": None,
    "labels but the table has 3000 rows": np.arange(5),
    r"day\(origin\): '...' cannot be read as a date or time": "day(origin)",
    "'x' holds double": "day(x)",
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_wrong_key_is_refused_with_the_remedy(words: str, events: pa.Table) -> None:
    with pytest.raises(DataError, match=words):
        ss.sketch_by(events, REFUSED[words], SPEC)


def test_labels_beside_a_stream_and_data_without_rows_are_refused(events: pa.Table) -> None:
    with pytest.raises(DataError, match="Store the labels as a column"):
        ss.sketch_by(events.to_reader(), by=np.arange(N), spec=SPEC)
    with pytest.raises(DataError, match="no rows"):
        ss.sketch_by(events.slice(0, 0).to_batches(), by="day", spec=SPEC)


def keys_in(folder: Path, *texts: str) -> list[Any]:
    """Keys found in text files of which each has these in a column."""
    for i, text in enumerate(texts):
        (folder / f"{i}.csv").write_text("k,x\n" + "".join(f"{k},1\n" for k in text.split("|")))
    return ss.sketch_by(folder, by="k", spec=ONE).keys["k"].to_pylist()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1234|7|-5||1234", [-5, 7, 1234, None]),
        ("01234|1234", ["01234", "1234"]),
        ("1.1|1.10|1", ["1", "1.1", "1.10"]),
        ("NA|DE||NA", ["DE", "NA", None]),
        ("+1|1", ["+1", "1"]),
        ("9223372036854775807|0", [0, 2**63 - 1]),
        ("9223372036854775808|0", ["0", "9223372036854775808"]),
        ("true||false", [False, True, None]),
        ("2026-01-05|NA", [dt.date(2026, 1, 5), None]),
        ("caf\xe9", ["caf\xe9"]),
    ],
)
def test_keys_of_a_text_file_keep_what_is_written(tmp_path, text, keys) -> None:
    assert keys_in(tmp_path, text) == keys


def test_one_cell_makes_text_of_a_key_wherever_it_stands(tmp_path: Path) -> None:
    """In a later file, or a later block of a file of 3 MiB."""
    numbers = [str(i % 50) for i in range(600_000)]
    expected = sorted({*numbers, "007"})

    assert keys_in(tmp_path, "7|8", "007|7") == ["007", "7", "8"]
    assert keys_in(tmp_path, "|".join([*numbers, "007"]), "1|2") == expected
    assert keys_in(tmp_path, "|".join(["007", *numbers]), "1|2") == expected
    assert keys_in(tmp_path, "|".join(numbers), "1|2") == list(range(50))


@pytest.mark.parametrize(("written", "keys"), [("1", [1, 3, 5]), ("01", ["01", "1", "3", "5"])])
def test_keys_of_text_files_and_of_others_are_numbers_if_all_are(tmp_path, written, keys) -> None:
    pq.write_table(pa.table({"k": [1, 5], "x": [1.0, 2.0]}), tmp_path / "b.parquet")

    assert keys_in(tmp_path, f"{written}|3") == keys


def test_files_whose_keys_have_unlike_types_are_refused(tmp_path: Path) -> None:
    for name, keys in (("a", [1, 2]), ("b", ["1", "2"])):
        pq.write_table(pa.table({"key": keys, "x": [0.0, 1.0]}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="another type in some blocks or files"):
        ss.sketch_by(tmp_path, by="key", spec=ONE)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_slices_that_memory_cannot_hold_are_refused_with_the_numbers(n_threads, set_free) -> None:
    """Sorted keys: no thread alone sees them all."""
    keys = np.repeat(np.arange(150), 2000)
    data = pa.table({"key": keys, "x": np.ones(len(keys))})

    set_free(50_000)
    with pytest.raises(DataError) as caught:
        ss.sketch_by(data, "key", ONE, n_threads=n_threads)
    assert str(caught.value) == (
        "150 slices by key (such as 149) need 67.2 kB of memory, 448 bytes each, and there are "
        "50 kB that this process may use. Take a coarser key, such as day(time), or a smaller "
        "sketch_size; or add the rows to a cube (ss.live.Cube, sketchshift follow), which needs "
        "1 GB for any number of slices."
    )
    set_free(70_000)
    assert len(ss.sketch_by(data, "key", ONE, n_threads=n_threads)) == 150


def test_slices_are_refused_at_the_block_that_would_be_too_much(set_free) -> None:
    """What the blocks before it have taken counts as memory that the pass may use."""
    blocks = ({"key": np.arange(i, i + 100), "x": np.ones(100)} for i in range(0, 10_000, 100))
    read = []

    def count(n_rows: int, share: float | None) -> None:
        read.append(n_rows)

    set_free(200_000)
    with pytest.raises(DataError, match="slices by key"):
        ss.sketch_by(map(pa.table, blocks), "key", ONE, progress=count)
    assert 1 < len(read) < 10


LIMITED = """
import resource, sys
import numpy as np
import sketchshift as ss
X = np.random.default_rng(0).normal(size=(300_000, 4))
spec = ss.plan(X, n_clusters=4)
ss.sketch_by(X[:10_000], np.arange(10_000) % 3, spec)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    print(len(ss.sketch_by(X, np.arange(len(X)) // int(sys.argv[2]), spec)))
except ss.errors.DataError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's limits")
@pytest.mark.parametrize(
    ("rows", "found"), [(100, "3000"), (2, r"150,000 slices by key .* need \d+ MB of memory")]
)
def test_a_process_of_little_memory_ends_with_a_sentence_and_not_without_memory(rows, found):
    words = [sys.executable, "-c", LIMITED, str(2**28), str(rows)]

    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert re.match(found, done.stdout), done.stdout


def test_threads_do_not_hold_slices_of_few_rows_more_than_once(monkeypatch) -> None:
    """In each block, a third of the slices has most of the rows."""
    held: dict[int, list[float]] = {1: [], 8: []}
    each = np.arange(9000)
    keys = [np.repeat(each, np.where(each // 3000 == i % 3, 15, 1)) for i in range(4)]
    tables = [pa.table({"key": k, "x": np.ones(len(k))}) for k in keys]
    for n_threads, sizes in held.items():
        monkeypatch.setattr(
            SLICES, "check_room", lambda *given, to=sizes: to.append(given[3]) or 0.0
        )
        ss.sketch_by(iter(tables), "key", ONE, n_threads=n_threads)

    assert held[8][-1] < 1.2 * held[1][-1]


def test_many_columns_of_a_key_are_as_many_slices_as_there_are_values() -> None:
    """Ten columns of 200 values each: the product of their sizes is beyond any integer."""
    ids = np.random.default_rng(0).integers(200, size=2000)
    names = [f"k{i}" for i in range(10)]

    table = ss.sketch_by(pa.table({"x": ids / 1.0} | dict.fromkeys(names, ids * 7)), names, ONE)

    values, counts = np.unique(ids, return_counts=True)
    assert table.counts.tolist() == counts.tolist()
    assert table.keys["k9"].to_pylist() == (values * 7).tolist()


def test_a_key_named_like_a_column_of_the_table_is_refused_before_the_pass() -> None:
    blocks = iter([pa.table({"x": [1.0], "count": ["a"]})])

    with pytest.raises(DataError, match=r"a key cannot be named 'count'.* Rename it"):
        ss.sketch_by(blocks, "count", ONE)
    assert next(blocks).num_rows == 1
