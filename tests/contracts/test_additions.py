"""What others can add: a file format and an engine, through public registration alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.engines.driver import merge_tables
from sketchshift.errors import DataError, SpecError

X = np.random.default_rng(0).normal(size=(300, 2))
X[:100] += 8.0
X = X.round(3)
TABLE = pa.table(
    {"x": X[:, 0], "y": X[:, 1], "w": np.arange(300) % 3 + 1, "day": np.arange(300) % 4}
)
SPEC = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=1.0)


# A file format: lines of numbers separated by bars.


def open_toy(path, request):
    return np.loadtxt(path, delimiter="|", ndmin=2)


def write_toy(path, rows):
    np.savetxt(path, rows, fmt="%.3f", delimiter="|")
    return path


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Part files of the rows in the current folder, whose format is registered."""
    ss.data.register_format((".toy", ".toy.txt"), open_toy)
    write_toy(tmp_path / "a.toy", X[:120])
    write_toy(tmp_path / "b.TOY.txt", X[120:])
    write_toy(tmp_path / "all.toy", X).rename(tmp_path / "all.rows")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, status=0):
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == status, result.output
    return result


def test_files_folders_and_globs_of_a_new_format_are_read_like_their_rows(toy):
    assert ss.sketch("a.toy", SPEC) == ss.sketch(X[:120], SPEC)
    assert ss.sketch(["a.toy", "b.TOY.txt"], SPEC) == ss.sketch(X, SPEC)
    assert ss.plan(["a.toy", "b.TOY.txt"], 2) == ss.plan(X, 2)
    assert ss.CompressiveKMeans(2, spec=SPEC, random_state=0).fit("a.toy").sketch_ == ss.sketch(
        X[:120], SPEC
    )
    for folder_or_glob in (toy, "*.[tT]*"):
        assert ss.sketch(folder_or_glob, SPEC) == ss.sketch(X, SPEC)


def test_a_pass_over_a_new_format_can_be_cut_off_and_gone_on_with(toy):
    ss.sketch(toy, SPEC, checkpoint="sums")

    assert ss.sketch(toy, SPEC, checkpoint="sums") == ss.sketch(X, SPEC)


def test_a_new_format_may_have_names_and_come_in_blocks(tmp_path):
    ss.data.register_format(".tables", lambda path, request: TABLE)
    ss.data.register_format(
        ".blocks", lambda path, request: iter(TABLE.to_batches(max_chunksize=70))
    )
    named, by_day = TABLE.select(["x", "y"]), ss.sketch_by(TABLE, "day", SPEC, columns=["x", "y"])

    for name in ("all.tables", "all.blocks"):
        file = tmp_path / name
        file.touch()
        options = {"columns": ["x", "y"], "sample_weight": "w"}
        assert ss.sketch(file, SPEC, **options) == ss.sketch(TABLE, SPEC, **options)
        assert ss.sketch_by(file, "day", SPEC, columns=["x", "y"]) == by_day
        assert ss.plan(file, 2, columns=["x", "y"]) == ss.plan(named, 2)


def open_blocks(path, request):
    yield np.loadtxt(path, delimiter="|", ndmin=2)


SAME = iter([X[:50], X[50:]])
OTHERS = iter([TABLE.select(["x", "y"]), TABLE.select(["y", "x"])])
WRONG = {
    "a torn file": (open_toy, "1|2\n3|", r"cannot read .*a\.toy: it seems damaged"),
    "a torn first block": (open_blocks, "1|2\n3|q", r"cannot read .*a\.toy: it seems damaged"),
    "a missing value": (open_toy, "1|2\n" * 7 + "nan|1\n", r"row 7 of .*a\.toy"),
    "no data": (lambda *_: {"a": 1}, "", r"reader of .*a\.toy' returned a dict\. It must return"),
    "one iterator": (lambda *_: SAME, "", r"a\.toy' returned the same iterator twice"),
    "columns that change": (lambda *_: next(OTHERS), "", r"the columns of .*a\.toy' changed"),
}


@pytest.mark.parametrize(("opener", "text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_file_of_a_new_format_is_said_with_its_name(
    tmp_path, opener, text, words
):
    ss.data.register_format(".toy", opener)
    (tmp_path / "a.toy").write_text(text)

    with pytest.raises(DataError, match=words):
        ss.sketch(tmp_path / "a.toy", SPEC)


def test_the_longest_end_of_a_name_decides(tmp_path):
    ss.data.register_format(".gz", lambda path, request: np.zeros((3, 2)))
    (tmp_path / "x.csv.gz").write_bytes(b"")

    with pytest.raises(DataError, match=r"x\.csv\.gz"):  # an empty file is no table
        ss.sketch(tmp_path / "x.csv.gz", SPEC)
    (tmp_path / "x.csv.gz").rename(tmp_path / "x.gz")
    assert ss.sketch(tmp_path / "x.gz", SPEC).count == 3


@pytest.mark.parametrize(
    ("suffixes", "opener", "message"),
    [
        ("toy", open_toy, "'suffixes' parameter of register_format must be ends of file names"),
        ([".toy", 3], open_toy, "'suffixes' parameter"),
        (".sketch", open_toy, r"other than '\.sketch'"),
        ([], open_toy, "at least one end of a name"),
        (".toy", "open_toy", "'opener' parameter of register_format must be a function"),
    ],
)
def test_what_is_no_format_is_refused(suffixes, opener, message):
    with pytest.raises(SpecError, match=message):
        ss.data.register_format(suffixes, opener)


def test_the_commands_read_a_new_format(toy):
    whole = ss.sketch(X, n_clusters=2)
    run("sketch", "a.toy", "b.TOY.txt", "-k", "2", "-o", "x.sketch")
    run("plan", "a.toy", "-k", "2", "-o", "plan.json")
    found = json.loads(run("cluster", ".", "-k", "2", "--json").stdout)

    assert ss.load("x.sketch") == whole
    assert ss.SketchSpec.from_json(Path("plan.json").read_text("utf-8")) == ss.plan(X[:120], 2)
    assert found["rows"] == 300


def test_help_and_errors_of_the_commands_name_a_new_format(toy):
    for command in ("sketch", "plan", "cluster"):
        assert ".safetensors, .toy" in " ".join(run(command, "--help").stdout.split())
    known = ".safetensors, .toy, .toy.txt"
    assert known in run("sketch", "all.rows", "-k", "2", "-o", "x.sketch", status=1).stderr
    assert known in run("cluster", "all.rows", "-k", "2", status=1).stderr


PLUGIN = """
import numpy as np
import sketchshift as ss

ss.data.register_format(".toy", lambda path, request: np.loadtxt(path, delimiter="|", ndmin=2))
"""


def install(folder, module, text):
    """A package with one module and an entry point, as an installer leaves it."""
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[sketchshift.plugins]\n{module} = {module}\n")


def test_the_command_line_loads_plugins_and_leaves_broken_ones_out(tmp_path):
    install(tmp_path, "toy_plugin", PLUGIN)
    install(tmp_path, "torn_plugin", "import no_such_module_at_all")
    file = write_toy(tmp_path / "all.toy", X)
    path = os.pathsep.join([str(tmp_path), *sys.path])

    done = subprocess.run(
        [sys.executable, "-m", "sketchshift", "cluster", str(file), "-k", "2", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 300
    assert done.stderr.startswith(
        "Warning: the plugin 'torn_plugin' (torn_plugin) is left out. ModuleNotFoundError: No mod"
    )


# An engine: collections are lists of blocks, and all are read here.


class ToyCollection:
    """Rows in several parts."""

    def __init__(self, *parts):
        self.parts = parts


class ToyEngine:
    """Reads the parts one after the other, and merges the results two at a time."""

    def partitions(self, collection, reading, planning=None):
        reading.column_names(collection.parts[0][:0])
        return [(part, reading) for part in collection.parts]

    def map(self, function, partitions):
        return [
            function(part, reading, where=f"part {number}")
            for number, (part, reading) in enumerate(partitions)
        ]

    def reduce(self, merge, results):
        total = None
        for result in results:
            total = merge([total, result])
        return total


@pytest.fixture
def rows():
    ss.engines.register_engine(ToyCollection, ToyEngine)
    return ToyCollection(X[:7], X[7:200], X[200:])


@pytest.fixture
def table():
    ss.engines.register_engine(ToyCollection, ToyEngine)
    return ToyCollection(TABLE[:50], TABLE[50:51], TABLE[51:51], TABLE[51:])


def test_collections_of_a_new_engine_are_planned_and_sketched(rows, table):
    by_name = {"columns": ["x", "y"], "sample_weight": "w"}

    assert ss.plan(rows, 2) == ss.plan(X, 2)
    assert ss.sketch(rows, SPEC).to_bytes() == ss.sketch(X, SPEC).to_bytes()
    assert ss.sketch(rows, n_clusters=2, seed=3) == ss.sketch(X, n_clusters=2, seed=3)
    assert ss.plan(table, 2, **by_name) == ss.plan(TABLE, 2, **by_name)
    assert ss.sketch(table, SPEC, **by_name) == ss.sketch(TABLE, SPEC, **by_name)


def test_collections_of_a_new_engine_are_sketched_by_key(table, set_free):
    expected = ss.sketch_by(TABLE, "day", SPEC, columns=["x", "y"])
    planned = ss.sketch_by(TABLE, ["day", "w"], n_clusters=2)

    assert ss.sketch_by(table, "day", SPEC, columns=["x", "y"]) == expected
    assert ss.sketch_by(table, ["day", "w"], n_clusters=2) == planned
    set_free(1000)
    with pytest.raises(DataError, match=r"part 0: \d slices by day .* need"):
        ss.sketch_by(table, "day", SPEC, columns=["x", "y"])


def test_tables_of_parts_that_memory_cannot_hold_together_are_refused(set_free):
    halves = TABLE[:90], TABLE[90:]
    tables = (ss.sketch_by(half, "day", SPEC, columns=["x", "y"]) for half in halves)
    parts = [table.to_bytes() for table in tables]

    set_free(0)

    with pytest.raises(DataError, match=r"\d slices by day need"):
        merge_tables(parts)


def test_estimators_fit_collections_of_a_new_engine(rows):
    here, there = (
        ss.CompressiveKMeans(2, random_state=0, spec=SPEC).fit(data) for data in (X, rows)
    )

    assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    assert there.n_features_in_ == 2


CANNOT = {  # of weights and labels from here, each part would take its own
    r"^sketch cannot use n_threads and checkpoint for a": lambda rows, table: ss.sketch(
        rows, SPEC, n_threads=2, checkpoint="x"
    ),
    r"^sketch_by cannot use progress for a": lambda rows, table: ss.sketch_by(
        table, "day", SPEC, progress=print
    ),
    "labels from here do not reach": lambda rows, table: ss.sketch_by(table, LABELS, SPEC),
    "labels from here do not": lambda rows, table: ss.sketch_by(table, LABELS, n_clusters=2),
    r"here: it lies on many machines\. Use ss\.plan": lambda rows, _: ss.Sketcher(SPEC).update(
        rows
    ),
    "no column 'z'": lambda rows, table: ss.plan(table, 2, columns=["x", "z"]),
    "no rows to sketch": lambda rows, table: ss.sketch(ToyCollection(X[:0]), SPEC),
    "sample_weight must be the name of a column for a Toy": lambda rows, table: ss.sketch(
        rows, SPEC, sample_weight=LABELS
    ),
}
LABELS = np.arange(300)


@pytest.mark.parametrize(("words", "call"), CANNOT.items())
def test_what_a_new_engine_cannot_do_is_refused(rows, table, words, call):
    with pytest.raises((SpecError, DataError), match=words):
        call(rows, table)


def test_engines_are_found_by_the_package_of_a_collection_too(rows):
    kind = type("Shelf", (ToyCollection,), {"__module__": "shelves.of.rows"})
    with pytest.raises(SpecError, match="'collections' parameter of register_engine"):
        ss.engines.register_engine(3, ToyEngine)
    with pytest.raises(SpecError, match="'engine' parameter of register_engine"):
        ss.engines.register_engine("shelves", ToyEngine())

    ss.engines.register_engine("shelves", ToyEngine)

    alone = type("Shelf", (), {"__module__": "shelves.of.rows", "parts": rows.parts})()
    assert ss.sketch(kind(X), SPEC) == ss.sketch(alone, SPEC) == ss.sketch(X, SPEC)


def test_columns_that_may_stand_in_another_order_in_other_parts_are_refused(table):
    other = TABLE.slice(150).select(["y", "x"])
    mixed = ToyCollection(TABLE.slice(0, 150).select(["x", "y"]), other)
    with pytest.raises(DataError, match=r"part 0: columns 'x', 'y' may stand in another order"):
        ss.sketch(mixed, SPEC)

    found = ss.sketch(mixed, SPEC, columns=["x", "y"])

    assert found == ss.sketch(TABLE.select(["x", "y"]), SPEC)
