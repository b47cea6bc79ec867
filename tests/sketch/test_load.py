"""One function reads every kind of file of ours, and says what it saw of any other."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.features import Ball

SPEC = ss.SketchSpec(2, 20, 0.5, columns=("x", "y"))
SPEC = SPEC.replaced(rows=replace(SPEC.rows, onto=Ball("declared", 100.0)))
ROWS = 600


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table(
        {"x": rng.normal(size=ROWS), "y": rng.normal(size=ROWS), "day": np.arange(ROWS) // 100}
    )
    pq.write_table(table, tmp_path / "data.parquet")
    return tmp_path / "data.parquet"


@pytest.fixture
def sketch(data):
    return ss.sketch(data, SPEC)


@pytest.fixture
def files(data, sketch, tmp_path):
    """A file of each kind, under names that say nothing, with what it holds."""
    table = ss.sketch_by(data, "day", SPEC)
    private = ss.privacy.release(sketch, 9.0, 1e-8)
    paths = {
        name: tmp_path / f"{i}"
        for i, name in enumerate(["sketch", "private sketch", "table", "plan", "pass", "slices"])
    }
    sketch.save(paths["sketch"])
    private.save(paths["private sketch"])
    table.save(paths["table"])
    paths["plan"].write_text(SPEC.to_json())
    ss.sketch(data, SPEC, checkpoint=paths["pass"])
    ss.sketch_by(data, "day", SPEC, checkpoint=paths["slices"])
    content = [sketch, private.to_bytes(), table, SPEC, sketch, table]
    return dict(zip(paths.values(), content, strict=True))


def test_every_kind_of_file_is_read_whatever_its_name(files):
    for path, content in files.items():
        found = ss.load(str(path))

        is_private = isinstance(found, ss.privacy.PrivateSketch)
        assert (found.to_bytes() if is_private else found) == content


def test_a_saved_sketcher_goes_on(data, sketch, tmp_path):
    ss.Sketcher(SPEC).update(data).save(tmp_path / "keeper", position=[3, "b"])

    keeper = ss.load(tmp_path / "keeper")

    assert isinstance(keeper, ss.Sketcher)
    assert keeper.position == [3, "b"]
    assert keeper.update(data).sketch() == sketch + sketch


def test_a_checkpoint_by_texts_dates_and_missing_keys_is_a_table(tmp_path):
    shops = ["b", None, "a", "b"] * 5
    times = pa.array([2**40, 2**40, 2**41, 2**42] * 5, pa.timestamp("ms"))
    rows = pa.table({"x": np.arange(20.0), "y": np.ones(20), "shop": shops, "t": times})
    pq.write_table(rows, tmp_path / "rows.parquet")

    table = ss.sketch_by(
        tmp_path / "rows.parquet", ["shop", "day(t)"], SPEC, checkpoint=tmp_path / "c"
    )

    assert ss.load(tmp_path / "c") == table
    assert table.by == ("shop", "day")


def test_a_folder_is_read_as_a_table(data, tmp_path):
    table = ss.sketch_by(data, "day", SPEC)
    (tmp_path / "slices").mkdir()
    for day in range(6):
        table.where(f"day = {day}").save(tmp_path / "slices" / f"{day}.parquet")

    assert ss.load(tmp_path / "slices") == table


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (
            b"x,y\n1,2\n",
            r"a sketch file but b'x,y\\n1,2\\n'\. `ss\.load` reads a plan",
        ),
        (gzip.compress(b"x", mtime=0), r"not those of a sketch file but b'\\x1f\\x8b"),
        (b"\x93NUMPY\x01\x00", r"b'\\x93NUMPY\\x01\\x00'"),
        (b"\x89SK", "3 bytes are too few for a sketch. Was the file cut off?"),
        (b"PA", "2 bytes are too few for a table of sketches"),
    ],
)
def test_any_other_file_is_refused_by_what_it_begins_with(content, words, tmp_path):
    (tmp_path / "thing").write_bytes(content)

    with pytest.raises(ss.errors.SketchFormatError, match=rf"thing: .*{words}"):
        ss.load(tmp_path / "thing")


def test_data_in_parquet_and_json_that_is_no_plan_are_refused(data, tmp_path):
    with pytest.raises(ss.errors.DataError, match=r"data\.parquet.*a column 'sketch' of bytes"):
        ss.load(data)
    for content in (b'{"a": 1}', b'{"a": "\xe9"}'):
        (tmp_path / "settings.json").write_bytes(content)
        with pytest.raises(ss.errors.SpecError, match=r"settings\.json: "):
            ss.load(tmp_path / "settings.json")
    (tmp_path / "plan.json").write_text("\n  " + SPEC.to_json().replace(",", ",\n") + "\n")
    assert ss.load(tmp_path / "plan.json") == SPEC


def test_every_truncation_of_every_kind_is_an_error_of_ours_that_names_the_file(files, tmp_path):
    for path in files:
        content = path.read_bytes()
        for length in {*range(12), *np.linspace(12, len(content) - 1, 25).astype(int)}:
            (tmp_path / "cut").write_bytes(content[:length])
            with pytest.raises(ss.errors.SketchshiftError, match="cut"):
                ss.load(tmp_path / "cut")


def test_a_checkpoint_of_slices_that_does_not_say_by_what_is_refused(files, tmp_path):
    from sketchshift.sketch.checkpoint import MAGIC, read_checkpoint, write_checkpoint

    path = list(files)[-1]
    position, state, integers = read_checkpoint(path, "slices")
    for reading in ({}, {"by": ["day", "shop"]}, {"by": 3}, []):
        write_checkpoint(path, "slices", position | {"reading": reading}, state, integers)
        assert path.read_bytes().startswith(MAGIC)
        with pytest.raises(
            ss.errors.SketchFormatError, match="slices of the checkpoint are damaged"
        ):
            ss.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(
        ss.errors.SketchFormatError, match=r"pipe is a pipe.*Save it to a file first"
    ):
        ss.load(tmp_path / "pipe")


def test_a_condition_reads_some_slices_and_is_refused_where_there_are_none(files):
    paths = list(files)
    table = files[paths[2]]

    assert ss.load(paths[2], where="day >= 4") == table.where("day >= 4")
    for path in paths[:2] + paths[3:]:
        with pytest.raises(
            ss.errors.DataError, match="'where' applies to tables of sketches alone"
        ):
            ss.load(path, where="day >= 4")
