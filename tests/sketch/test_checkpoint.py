"""A pass that is cut off and goes on ends with the bytes of one that was never disturbed."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import pairwise, product
from operator import getitem

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
from sketchshift.sketch.rows import RowAdder

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
            "number": np.arange(N) % 3 + seed,
        }
    )


def write(table: pa.Table, path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=60)
    elif path.suffix in (".arrow", ".ipc"):
        new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with new(path, table.schema) as writer:
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


KINDS = ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.ipc"]
PASSES = [
    *[([name], {"spec": NAMED}) for name in KINDS],
    (["x.npy"], {"spec": SPEC}),
    (
        ["a.csv", "b.parquet", "c.arrow"],
        {"n_clusters": 3, "columns": ["x", "y"], "sample_weight": "w"},
    ),
    (["a.csv", "b.csv"], {"spec": NAMED, "by": "key"}),
    (["a.csv", "b.parquet"], {"spec": NAMED, "by": ["number", "key"]}),
]


@pytest.mark.parametrize(("names", "options"), PASSES)
@given(cuts=st.lists(st.integers(0, 20), max_size=5), n_threads=st.sampled_from([1, 2]))
@settings(max_examples=5)
def test_a_pass_that_goes_on_ends_with_the_same_bytes(
    tmp_path_factory, names, options, cuts, n_threads
):
    """Keys are the texts 07 and 7 in some files: they stay apart, as in an undisturbed pass."""
    folder = tmp_path_factory.mktemp("pass")
    for i, name in enumerate(names):
        write(rows(i), folder / name)
    sketch = ss.sketch_by if "by" in options else ss.sketch

    def read(**more):
        return sketch(folder, **options, n_threads=n_threads, **more)

    assert sketch_with_cuts(lambda: read(checkpoint=folder / "c"), cuts) == read()


def test_rows_that_are_in_are_not_summed_again(tmp_path, monkeypatch):
    write(rows(), tmp_path / "x.parquet")
    summed = []
    monkeypatch.setattr(RowAdder, "add", lambda self, block: summed.append(len(block.values)))

    def read():
        return ss.sketch(tmp_path / "x.parquet", NAMED, checkpoint=tmp_path / "c")

    with pytest.raises(ss.errors.DataError, match="no rows"):
        sketch_with_cuts(read, [9, 9])

    assert sum(summed) < N + 3 * 13


def cut_off(tmp_path, name: str, **by):
    """A checkpoint of a pass over a file that was cut off."""
    write(rows(), tmp_path / name)

    def read():
        sketch = ss.sketch_by if by else ss.sketch
        return sketch(tmp_path / name, spec=NAMED, checkpoint=tmp_path / "c", **by)

    with pytest.raises(PowerCutError), cut_off_after(8):
        read()
    return read


def with_x(row: int) -> pa.Table:
    x = rows()["x"].to_numpy().copy()
    x[row] += 1e-9
    return rows().set_column(0, "x", pa.array(x))


CHANGES = {
    "the first row": lambda: with_x(0),
    "the last row that was read": lambda: with_x(45),
    "no rows": lambda: rows().slice(0, 0),
    "fewer rows": lambda: rows().slice(0, 50),
    "names": lambda: rows().rename_columns(["y", "x", *rows().column_names[2:]]),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_complete", [False, True])
def test_data_that_has_changed_is_refused(tmp_path, name, change, is_complete):
    """Also where all was read."""
    read = cut_off(tmp_path, name)
    if is_complete:
        read()
    write(CHANGES[change](), tmp_path / name)
    before = (tmp_path / "c").read_bytes()

    with pytest.raises(ss.errors.DataError, match=r"has changed since the checkpoint.*delete"):
        read()

    assert (tmp_path / "c").read_bytes() == before


@pytest.mark.parametrize("name", ["x.parquet", "x.ipc"])
def test_keys_that_were_renamed_in_their_dictionary_are_seen(tmp_path, name):
    """Each row has the number that it had; what the numbers mean is another thing now."""

    def read(*names):
        keys = pa.DictionaryArray.from_arrays(pa.array(np.arange(N) % 2, pa.int8()), list(names))
        write(rows().set_column(3, "key", keys), tmp_path / name)
        ss.sketch_by(tmp_path / name, "key", NAMED, checkpoint=tmp_path / "c")

    with pytest.raises(PowerCutError), cut_off_after(2):
        read("a", "b")
    with pytest.raises(ss.errors.DataError, match="changed since the checkpoint"):
        read("a", "c")


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


OTHER = ss.SketchSpec(2, 30, 2.0, columns=("x", "y"))
REFUSED = {
    r"another plan:\n.*bandwidth=1\.0.*\n.*bandwidth=2\.0": {"spec": OTHER},
    "begun with on_invalid='raise', and now it is 'skip'": {"on_invalid": "skip"},
    "begun with sample_weight=None, and now it is 'w'": {"sample_weight": "w"},
    r"with columns=\['x', 'y'\], and now it is \['y', 'w'\]": {"spec": SPEC, "columns": ["y", "w"]},
    "checkpoint of a sketch, not of slices": {"by": "key"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_other_options_are_refused_by_name(tmp_path, words):
    cut_off(tmp_path, "x.csv")
    options = {"spec": NAMED, "checkpoint": tmp_path / "c"} | REFUSED[words]

    with pytest.raises(ss.errors.SketchshiftError, match=words):
        (ss.sketch_by if "by" in options else ss.sketch)(tmp_path / "x.csv", **options)
    with pytest.raises(ss.errors.SketchFormatError, match="of a sketch, not of a Sketcher"):
        ss.Sketcher.load(tmp_path / "c")


def test_another_plan_of_slices_is_refused_too(tmp_path):
    write(rows(), tmp_path / "x.csv")
    ss.sketch_by(tmp_path / "x.csv", "key", NAMED, checkpoint=tmp_path / "c")

    with pytest.raises(ss.errors.DataError, match=r"^the checkpoint was begun with another plan"):
        ss.sketch_by(tmp_path / "x.csv", "key", OTHER, checkpoint=tmp_path / "c")


def test_data_in_memory_needs_no_checkpoint_and_gets_none(tmp_path):
    with pytest.raises(ss.errors.DataError, match=r"needs data in files.*Sketcher"):
        ss.sketch(np.zeros((9, 2)), SPEC, checkpoint=tmp_path / "c")

    assert not (tmp_path / "c").exists()


def test_a_file_that_is_no_checkpoint_is_left_as_it_is(tmp_path):
    write(rows(), tmp_path / "x.csv")
    (tmp_path / "c").write_text("my thesis")

    with pytest.raises(ss.errors.SketchFormatError, match=r"no checkpoint\. It was left as it is"):
        ss.sketch(tmp_path / "x.csv", NAMED, checkpoint=tmp_path / "c")

    assert (tmp_path / "c").read_text() == "my thesis"


STRANGE = [None, -1, 2**70, 1.5, "x", "00", [], {}, [[]], [{}], True, "f" * 64]


def forge(parts, place, strange):
    """Parts of a checkpoint, one place of which holds something strange."""
    forged = json.loads(json.dumps(parts))
    *above, last = place
    reduce(getitem, above, forged)[last] = strange
    return forged


def places_in(content, above=()):
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for name, value in items:
        yield (*above, name)
        if isinstance(value, dict | list):
            yield from places_in(value, (*above, name))


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "by"), [("a sketch", {}), ("slices", {"by": "key"})])
def test_a_forged_checkpoint_is_refused_or_goes_on_but_never_breaks(tmp_path, kind, by):
    """Every field of the header replaced by everything strange, the digest mended."""
    read = cut_off(tmp_path, "x.csv", **by)
    *parts, integers = checkpoint.read_checkpoint(tmp_path / "c", kind)
    for place, strange in product(places_in(parts), STRANGE):
        forged = forge(parts, place, strange)
        checkpoint.write_checkpoint(tmp_path / "c", kind, *forged, integers)
        with suppress(ss.errors.SketchshiftError):
            read()


@pytest.mark.parametrize("field", ["digest", "n_rows", "files", "reading"])
def test_a_header_that_does_not_say_what_was_read_is_refused(tmp_path, field):
    read = cut_off(tmp_path, "x.csv")
    *parts, integers = checkpoint.read_checkpoint(tmp_path / "c", "a sketch")
    forged = forge(parts, (0, field), 1.5 if field != "digest" else "x")
    checkpoint.write_checkpoint(tmp_path / "c", "a sketch", *forged, integers)

    with pytest.raises(ss.errors.SketchFormatError, match="does not say what was read"):
        read()


@pytest.mark.parametrize("field", ["n_position", "n_state"])
@pytest.mark.parametrize("strange", [-1, 1, 2**70, True])
def test_forged_lengths_and_damage_are_refused(tmp_path, field, strange):
    read = cut_off(tmp_path, "x.csv")
    text, payload = unpack((tmp_path / "c").read_bytes(), checkpoint.MAGIC)
    header = json.loads(text) | {field: strange}
    data = bytearray(pack(checkpoint.MAGIC, header, bytes(payload)))
    for words in ("cannot go on from .*c", "cannot go on from .*c: the digest"):
        (tmp_path / "c").write_bytes(data)
        with pytest.raises(ss.errors.SketchFormatError, match=words):
            read()
        data[len(data) // 2] ^= 1


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


@pytest.mark.parametrize("position", [{1, 2}, float("nan"), b"bytes", {(1, 2): 3}])
def test_a_position_that_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path, position):
    with pytest.raises(ss.errors.DataError, match="position"):
        ss.Sketcher(SPEC).save(tmp_path / "s", position=position)

    assert not (tmp_path / "s").exists()
