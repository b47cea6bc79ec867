"""A pass that is cut off and goes on ends with the bytes of one that was never disturbed."""

from __future__ import annotations

import gzip
import json
import os
import re
from contextlib import contextmanager, suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.data import npy, source, text_files
from sketchshift.sketch import checkpoint
from sketchshift.sketch.file import pack, unpack
from sketchshift.sketch.measure import RowAdder

SPEC = ss.SketchSpec(n_features=2, sketch_size=30, bandwidth=1.0)
NAMED = ss.SketchSpec(n_features=2, sketch_size=30, bandwidth=1.0, columns=("x", "y"))
N = 200


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Every block is followed by a checkpoint, and files have many pieces."""
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    monkeypatch.setattr(text_files, "PIECE_BYTES", 700)
    monkeypatch.setattr(npy, "PIECE_BYTES", 1000)
    monkeypatch.setattr(source, "FEWEST_ROWS", 1)
    monkeypatch.setattr(source, "MOST_ROWS", 13)


def rows(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": rng.normal(size=N),
            "y": rng.normal(size=N),
            "w": rng.integers(0, 4, N) / 2,
            "key": rng.choice(["a", "b", "07", "7"], N),
        }
    )


def write(table: pa.Table, path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=60)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    elif path.suffix == ".ipc":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    elif path.suffix == ".npy":
        np.save(path, np.column_stack([table["x"], table["y"]]))
    else:
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(table, sink)
        text = sink.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


class PowerCutError(Exception):
    """The end of the process, as far as a pass can tell."""


@contextmanager
def cut_off_after(n_writes: int):
    """Writing a checkpoint fails, once it was written so often."""
    left = [n_writes]
    whole = checkpoint.write_checkpoint

    def write_checkpoint(*arguments):
        if left[0] == 0:
            raise PowerCutError
        left[0] -= 1
        whole(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "write_checkpoint", write_checkpoint)
        yield


def sketch_with_cuts(read, cuts):
    """Call ``read``, cut off after so many checkpoints each time, and once more to the end."""
    for cut in cuts:
        with suppress(PowerCutError), cut_off_after(cut):
            return read()
    return read()


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.ipc", "x.npy"])
@given(cuts=st.lists(st.integers(0, 12), max_size=5), n_threads=st.sampled_from([1, 2]))
@settings(max_examples=6)
def test_a_pass_that_goes_on_ends_with_the_same_bytes(tmp_path_factory, name, cuts, n_threads):
    folder = tmp_path_factory.mktemp("pass")
    write(rows(), folder / name)
    options = {"columns": None if name.endswith("npy") else ["x", "y"], "n_threads": n_threads}

    def read():
        return ss.sketch(folder / name, SPEC, checkpoint=folder / "c", **options)

    assert sketch_with_cuts(read, cuts) == ss.sketch(folder / name, SPEC, **options)


@given(cuts=st.lists(st.integers(0, 40), max_size=6), seed=st.integers(0, 3))
@settings(max_examples=8)
def test_many_files_weights_and_a_plan_on_the_way_make_no_difference(tmp_path_factory, cuts, seed):
    folder = tmp_path_factory.mktemp("pass")
    for i, name in enumerate(["a.csv", "b.parquet", "c.csv.gz", "d.arrow"]):
        write(rows(10 * seed + i), folder / name)
    options = {"n_clusters": 3, "columns": ["x", "y"], "sample_weight": "w"}

    def read():
        return ss.sketch(folder, checkpoint=folder / "c", **options)

    assert sketch_with_cuts(read, cuts) == ss.sketch(folder, **options)


@pytest.mark.parametrize("names", [["a.csv", "b.csv"], ["a.csv", "b.parquet"], ["a.arrow"]])
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
@settings(max_examples=6)
def test_slices_go_on_too(tmp_path_factory, names, cuts):
    """Keys are the texts 07 and 7 in some files: they stay apart, as in an undisturbed pass."""
    folder = tmp_path_factory.mktemp("pass")
    for i, name in enumerate(names):
        write(rows(i), folder / name)

    def read():
        return ss.sketch_by(folder, "key", NAMED, checkpoint=folder / "c")

    assert sketch_with_cuts(read, cuts) == ss.sketch_by(folder, "key", NAMED)


def test_numbers_as_keys_are_numbers_still(tmp_path):
    for name, first in [("a.csv", 0), ("b.csv", 5)]:
        keys = pa.array(np.arange(N) % 3 + first)
        write(rows().set_column(3, "key", keys), tmp_path / name)

    def read():
        return ss.sketch_by(tmp_path, ["key"], NAMED, checkpoint=tmp_path / "c")

    table = sketch_with_cuts(read, [3, 20])

    assert table == ss.sketch_by(tmp_path, ["key"], NAMED)
    assert table.keys["key"].to_pylist() == [0, 1, 2, 5, 6, 7]


def test_rows_that_are_in_are_not_summed_again(tmp_path, monkeypatch):
    write(rows(), tmp_path / "x.parquet")
    summed = []
    monkeypatch.setattr(RowAdder, "add", lambda self, block: summed.append(len(block.values)))

    def read():
        return ss.sketch(tmp_path / "x.parquet", NAMED, checkpoint=tmp_path / "c")

    with pytest.raises(ss.errors.DataError, match="no rows"):
        sketch_with_cuts(read, [9, 9])

    assert sum(summed) < N + 3 * 13


def cut_off(tmp_path, name: str, n_writes: int = 8, **options):
    """A checkpoint of a pass over a file that was cut off."""
    write(rows(), tmp_path / name)

    def read():
        return ss.sketch(tmp_path / name, NAMED, checkpoint=tmp_path / "c", **options)

    with pytest.raises(PowerCutError), cut_off_after(n_writes):
        read()
    return read


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.ipc"])
@pytest.mark.parametrize("row", [0, 20, 40, 45])
def test_data_that_has_changed_is_refused(tmp_path, name, row):
    read = cut_off(tmp_path, name)
    x = rows()["x"].to_numpy().copy()
    x[row] += 1e-9
    write(rows().set_column(0, "x", pa.array(x)), tmp_path / name)
    before = (tmp_path / "c").read_bytes()

    with pytest.raises(
        ss.errors.DataError, match=rf"{name} has changed since the checkpoint.*delete"
    ):
        read()

    assert (tmp_path / "c").read_bytes() == before


@pytest.mark.parametrize("n_left", [0, 30, 50])
def test_data_that_has_become_shorter_is_refused(tmp_path, n_left):
    read = cut_off(tmp_path, "x.csv")
    write(rows().slice(0, n_left), tmp_path / "x.csv")

    with pytest.raises(ss.errors.DataError, match="changed since the checkpoint"):
        read()


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.ipc"])
def test_columns_that_were_renamed_are_seen_also_when_all_was_read(tmp_path, name):
    write(rows(), tmp_path / name)
    ss.sketch(tmp_path / name, NAMED, checkpoint=tmp_path / "c")
    write(rows().rename_columns(["y", "x", "w", "key"]), tmp_path / name)

    with pytest.raises(ss.errors.DataError, match="changed since the checkpoint"):
        ss.sketch(tmp_path / name, NAMED, checkpoint=tmp_path / "c")


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.ipc"])
@pytest.mark.parametrize("n_writes", [1, 2, 3])
def test_keys_that_were_renamed_in_their_dictionary_are_seen(tmp_path, name, n_writes):
    """Each row has the number that it had; what the numbers mean is another thing now."""

    def write_keys(*names):
        keys = pa.DictionaryArray.from_arrays(pa.array(np.arange(N) % 2, pa.int8()), list(names))
        write(rows().set_column(3, "key", keys), tmp_path / name)

    def read():
        return ss.sketch_by(tmp_path / name, "key", NAMED, checkpoint=tmp_path / "c")

    write_keys("a", "b")
    with pytest.raises(PowerCutError), cut_off_after(n_writes):
        read()
    write_keys("a", "c")

    with pytest.raises(ss.errors.DataError, match="changed since the checkpoint"):
        read()


def test_a_file_that_was_only_touched_or_moved_is_gone_on_with(tmp_path):
    read = cut_off(tmp_path, "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").unlink()
    (tmp_path / "x.parquet").write_bytes(content)

    assert read() == ss.sketch(tmp_path / "x.parquet", NAMED)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    write(rows(), tmp_path / "x.csv")

    def progress(n_rows, share):
        with (tmp_path / "x.csv").open("a") as file:
            file.write("1.0,2.0,1.0,a\n")

    with pytest.raises(ss.errors.DataError, match=r"x\.csv changed while it was read"):
        ss.sketch(tmp_path / "x.csv", NAMED, checkpoint=tmp_path / "c", progress=progress)


def test_another_file_may_come_behind_those_that_were_read(tmp_path):
    """The result is that of the data as it is now."""
    write(rows(0), tmp_path / "a.csv")
    ss.sketch(tmp_path, NAMED, checkpoint=tmp_path / "c")
    write(rows(1), tmp_path / "b.csv")

    assert ss.sketch(tmp_path, NAMED, checkpoint=tmp_path / "c") == ss.sketch(tmp_path, NAMED)


def test_another_plan_is_refused_with_both_in_words(tmp_path):
    cut_off(tmp_path, "x.csv")
    other = ss.SketchSpec(n_features=2, sketch_size=30, bandwidth=2.0, columns=("x", "y"))

    with pytest.raises(
        ss.errors.DataError, match=r"another plan:\n.*bandwidth=1\.0.*\n.*bandwidth=2\.0"
    ):
        ss.sketch(tmp_path / "x.csv", other, checkpoint=tmp_path / "c")


def test_another_plan_of_slices_is_refused_too(tmp_path):
    write(rows(), tmp_path / "x.csv")
    ss.sketch_by(tmp_path / "x.csv", "key", NAMED, checkpoint=tmp_path / "c")
    other = ss.SketchSpec(n_features=2, sketch_size=31, bandwidth=1.0, columns=("x", "y"))

    with pytest.raises(ss.errors.DataError, match=r"^the checkpoint was begun with another plan"):
        ss.sketch_by(tmp_path / "x.csv", "key", other, checkpoint=tmp_path / "c")


def test_other_options_are_refused_by_name(tmp_path):
    cut_off(tmp_path, "x.csv")

    with pytest.raises(
        ss.errors.DataError, match="begun with on_invalid='raise', and now it is 'skip'"
    ):
        ss.sketch(tmp_path / "x.csv", NAMED, checkpoint=tmp_path / "c", on_invalid="skip")
    with pytest.raises(
        ss.errors.DataError, match=r"with columns=\['x', 'y'\], and now it is \['y', 'w'\]"
    ):
        ss.sketch(tmp_path / "x.csv", SPEC, checkpoint=tmp_path / "c", columns=["y", "w"])
    with pytest.raises(
        ss.errors.DataError, match="begun with sample_weight=None, and now it is 'w'"
    ):
        ss.sketch(tmp_path / "x.csv", NAMED, checkpoint=tmp_path / "c", sample_weight="w")
    with pytest.raises(ss.errors.SketchFormatError, match="checkpoint of a sketch, not of slices"):
        ss.sketch_by(tmp_path / "x.csv", "key", NAMED, checkpoint=tmp_path / "c")


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    read = cut_off(tmp_path, "x.csv")
    before = (tmp_path / "c").read_bytes()
    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match=re.escape(str(tmp_path / "c"))):
        read()

    assert (tmp_path / "c").read_bytes() == before


@pytest.mark.parametrize(
    "data", [np.zeros((9, 2)), iter([np.zeros((9, 2))]), rows().select(["x", "y"])]
)
def test_data_in_memory_needs_no_checkpoint_and_gets_none(tmp_path, data):
    with pytest.raises(ss.errors.DataError, match=r"needs data in files.*Sketcher"):
        ss.sketch(data, SPEC, columns=None, checkpoint=tmp_path / "c")

    assert not (tmp_path / "c").exists()


def test_a_file_that_is_no_checkpoint_is_left_as_it_is(tmp_path):
    write(rows(), tmp_path / "x.csv")
    (tmp_path / "c").write_text("my thesis")

    with pytest.raises(ss.errors.SketchFormatError, match=r"no checkpoint\. It was left as it is"):
        ss.sketch(tmp_path / "x.csv", NAMED, checkpoint=tmp_path / "c")

    assert (tmp_path / "c").read_text() == "my thesis"


STRANGE = [None, -1, 2**70, 1.5, "x", "00", [], {}, [[]], [{}], True, "f" * 64]


@pytest.mark.parametrize("by", [None, "key"])
def test_a_forged_checkpoint_is_refused_or_goes_on_but_never_breaks(tmp_path, by):
    """Every field of the header replaced by everything strange, the digest mended."""
    write(rows(), tmp_path / "x.csv")

    def read():
        if by is None:
            return ss.sketch(tmp_path / "x.csv", NAMED, checkpoint=tmp_path / "c")
        return ss.sketch_by(tmp_path / "x.csv", by, NAMED, checkpoint=tmp_path / "c")

    with pytest.raises(PowerCutError), cut_off_after(8):
        read()
    kind = "a sketch" if by is None else "slices"
    *parts, integers = checkpoint.read_checkpoint(tmp_path / "c", kind)
    text = json.dumps(parts)
    for place in _places(parts):
        for strange in STRANGE:
            forged = json.loads(text)
            *above, last = place
            inner = forged
            for name in above:
                inner = inner[name]
            inner[last] = strange
            checkpoint.write_checkpoint(tmp_path / "c", kind, *forged, integers)
            with suppress(ss.errors.SketchshiftError):
                read()


@pytest.mark.parametrize("field", ["n_position", "n_state"])
@pytest.mark.parametrize("strange", [-1, 0, 1, 2**70, True, None])
def test_forged_lengths_are_refused(tmp_path, field, strange):
    read = cut_off(tmp_path, "x.csv")
    text, payload = unpack((tmp_path / "c").read_bytes(), checkpoint.MAGIC)
    header = json.loads(text) | {field: strange}
    (tmp_path / "c").write_bytes(pack(checkpoint.MAGIC, header, bytes(payload)))

    with pytest.raises(ss.errors.SketchFormatError, match="cannot go on from"):
        read()


def _places(content, above=()):
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for name, value in items:
        yield (*above, name)
        if isinstance(value, dict | list):
            yield from _places(value, (*above, name))


def test_damage_is_noticed(tmp_path):
    read = cut_off(tmp_path, "x.csv")
    data = bytearray((tmp_path / "c").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "c").write_bytes(data)

    with pytest.raises(ss.errors.SketchFormatError, match=r"cannot go on from .*c: the digest"):
        read()


@given(cuts=st.lists(st.integers(1, 199), min_size=1, max_size=5, unique=True))
@settings(max_examples=8)
def test_a_sketcher_goes_on_from_its_file_and_knows_where_it_was(tmp_path_factory, cuts):
    X = np.random.default_rng(0).normal(size=(200, 2))
    path = tmp_path_factory.mktemp("stream") / "s"
    sketcher = ss.Sketcher(SPEC)

    for first, last in pairwise([0, *sorted(cuts), 200]):
        for i in range(first, last):
            sketcher.update(X[i : i + 1])
        sketcher.save(path, position={"offset": last})
        sketcher.update(X[:7])  # lost in the crash
        sketcher = ss.Sketcher.load(path)
        assert sketcher.position == {"offset": last}

    assert sketcher.sketch() == ss.sketch(X, SPEC)


def test_a_sketcher_keeps_its_columns_and_what_it_does_with_invalid_rows(tmp_path):
    sketcher = ss.Sketcher(SPEC, on_invalid="skip")
    sketcher.update(rows().select(["x", "y"]))
    sketcher.save(tmp_path / "s")

    again = ss.Sketcher.load(tmp_path / "s")
    again.update(rows().select(["w", "y", "x"]))
    again.update(np.full((1, 2), np.nan))

    expected = ss.sketch([rows().select(["x", "y"])] * 2, SPEC)
    assert again.sketch().count == expected.count
    np.testing.assert_array_equal(again.sketch().z, expected.z)
    assert (again.sketch().n_invalid, again.position) == (1, None)


def test_a_long_position_and_a_long_trail_are_read_again(tmp_path):
    ss.Sketcher(SPEC).save(tmp_path / "s", position="x" * 20_000_000)
    files = [{"name": f"{'folder/' * 20}{i}.csv"} for i in range(150_000)]
    checkpoint.write_checkpoint(tmp_path / "t", "a sketch", {"files": files}, {}, b"")

    assert len(ss.Sketcher.load(tmp_path / "s").position) == 20_000_000
    assert checkpoint.read_checkpoint(tmp_path / "t", "a sketch")[0]["files"] == files


def test_a_checkpoint_of_a_pass_is_no_sketcher(tmp_path):
    cut_off(tmp_path, "x.csv")

    with pytest.raises(
        ss.errors.SketchFormatError, match="checkpoint of a sketch, not of a Sketcher"
    ):
        ss.Sketcher.load(tmp_path / "c")


@pytest.mark.parametrize("position", [{1, 2}, float("nan"), b"bytes", {(1, 2): 3}])
def test_a_position_that_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path, position):
    with pytest.raises(ss.errors.DataError, match="position"):
        ss.Sketcher(SPEC).save(tmp_path / "s", position=position)

    assert not (tmp_path / "s").exists()
