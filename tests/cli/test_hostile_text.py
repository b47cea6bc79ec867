"""Names, keys and paths of strangers: a terminal shows them and does not obey them."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift._progress import counting_progress
from sketchshift.cli.assign import read_centroids
from sketchshift.cli.output import encode_clusters

TITLE = "\x1b]0;owned\x07"  # renames the window
HOSTILE = f"a\x1b[31m\x9b2J{TITLE}\u202eb\u2066\u200f\u061c\u2028\x7f\r"
SHORT = "\x1b[31m\u202e"  # what fits below the bars of a picture
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SEEN = r"a\x1b[31m\x9b2J\x1b]0;owned\x07\u202eb\u2066\u200f\u061c\u2028\x7f\r"


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Data, slices and sketches whose columns, keys and file names are all hostile."""
    rng = np.random.default_rng(0)
    rows = {HOSTILE: rng.normal(size=300), "y": rng.normal(size=300)}
    keys = [f"{SHORT}{i % 3}" for i in range(300)]
    path = tmp_path / f"{HOSTILE}.parquet"
    pyarrow.parquet.write_table(pa.table(rows), path)
    spec = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.5, columns=tuple(rows))
    slices = ss.sketch_by(pa.table({**rows, SHORT: keys}), by=SHORT, spec=spec)
    slices.to_parquet(tmp_path / "slices.parquet")
    slices.merge().save(tmp_path / f"{HOSTILE}.sketch")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILE = shlex.quote(f"{HOSTILE}.parquet")
SKETCH = shlex.quote(f"{HOSTILE}.sketch")
COMMANDS = [
    f"cluster {FILE} -k 2 -o out.csv",
    f"plan {FILE} -k 2 -o {shlex.quote(HOSTILE)}.json",
    f"inspect {SKETCH}",
    "inspect slices.parquet",
    f"compare slices.parquet -k 2 --plot {shlex.quote(HOSTILE)}.svg",
    f"report {SKETCH} -k 2 -o {shlex.quote(HOSTILE)}.html",
]


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split()[0])
def test_what_commands_print_cannot_control_a_terminal(run, line):
    shown = run(line)
    facts = run.facts(line)

    assert not CONTROLS.search(shown.output)
    assert SEEN in shown.output or r"\x1b[31m\u202e" in shown.output
    assert any(HOSTILE in text or SHORT in text for text in _texts(facts))


def _texts(facts) -> list[str]:
    if isinstance(facts, dict):
        return [text for item in facts.items() for part in item for text in _texts(part)]
    if isinstance(facts, list):
        return [text for item in facts for text in _texts(item)]
    return [facts] if isinstance(facts, str) else []


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    ("line", "status"),
    [
        (f"cluster {shlex.quote(HOSTILE)} -k 2", 1),
        (f"cluster {FILE} -k 2 --columns {shlex.quote(HOSTILE + 'x')}", 2),
        (f"cluster {FILE} -k 2 --columns {shlex.quote(SHORT + 'x')}", 1),
        (f"cluster {FILE} -k {shlex.quote(HOSTILE)}", 2),
        (f"cluster {FILE} -k 2 {shlex.quote('--' + HOSTILE)}", 2),
        (shlex.quote(HOSTILE), 2),
        (shlex.quote("--" + HOSTILE), 2),
        (f"inspect {SKETCH} {SKETCH}", 2),
        (f"merge slices.parquet --where {shlex.quote(HOSTILE)} -o out.sketch", 1),
        (f"merge {SKETCH} {SKETCH} -o out.sketch", 2),
        (f"assign {FILE} --centroids {shlex.quote(HOSTILE)}.csv -o out.csv", 1),
        (f"plan {FILE} -k 2 -o {shlex.quote('no/' + HOSTILE)}", 1),
    ],
)
def test_what_commands_say_about_mistakes_cannot_control_a_terminal(run, line, status):
    said = run.error(line, status)

    assert not CONTROLS.search(said)
    assert r"\x1b[31m" in said


def test_warnings_cannot_control_a_terminal(run, tmp_path, monkeypatch):
    """Sentences about columns with units of their own name them."""
    rng = np.random.default_rng(0)
    rows = {HOSTILE: rng.normal(size=500) * 1e6, "y": rng.normal(size=500)}
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)

    said = run("cluster rows.parquet -k 2").stdout

    assert "Units differ: " in said
    assert r"\x1b[31m" in said
    assert not CONTROLS.search(said)


def test_progress_cannot_control_a_terminal(capsys):
    with counting_progress(f"Reading {HOSTILE}", show=True) as count:
        count(1, 2, "rows")
        time.sleep(1.0)

    said = capsys.readouterr().err
    assert r"\x1b]0;owned" in said.replace("\n", "")
    assert TITLE not in said
    assert "\u202e" not in said


def test_errors_of_the_library_cannot_control_a_terminal():
    with pytest.raises(ss.errors.DataError) as caught:
        ss.sketch(f"{HOSTILE}.csv", n_clusters=2)

    assert not CONTROLS.search(str(caught.value))


@pytest.mark.usefixtures("hostile")
def test_a_traceback_cannot_control_a_terminal():
    words = [sys.executable, "-m", "sketchshift", "--debug", "cluster", HOSTILE, "-k", "2"]

    said = subprocess.run(words, capture_output=True, text=True).stderr

    assert "Traceback" in said
    assert not CONTROLS.search(said)


@pytest.mark.usefixtures("hostile")
def test_a_file_name_that_is_not_text_is_shown(run):
    name = b"\xff\x1b.csv".decode(errors="surrogateescape")

    assert r"\udcff" in run.error(f"cluster {shlex.quote(name)} -k 2")


def test_files_keep_the_true_names(run, hostile):
    run(f"cluster {FILE} -k 2 -o out.csv")
    run(f"cluster {FILE} -k 2 -o out.json")
    run(f"cluster {FILE} -k 2 -o out.parquet")

    for kind in ("csv", "json", "parquet"):
        assert read_centroids(str(hostile / f"out.{kind}")).names == [HOSTILE, "y"]


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_pictures_show_names_and_are_not_turned_by_them(run, hostile, kind):
    run(f"cluster {SKETCH} -k 2 --plot out.{kind}")
    run(f"compare slices.parquet -k 2 --plot watch.{kind}")

    if kind == "svg":
        for picture in (hostile / "out.svg", hostile / "watch.svg"):
            ElementTree.parse(picture)
            assert not CONTROLS.search(picture.read_text(encoding="utf-8"))
            assert r"\x1b[31m" in picture.read_text(encoding="utf-8")


SIGNS = st.text(st.sampled_from("=+-@\t\r\n'\"\uff1d\uff0b\uff0d\uff20 ,;a1é\x1b"), max_size=6)
NAMES = st.one_of(SIGNS, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), has_scale=st.booleans())
def test_names_come_back_and_none_is_a_formula(tmp_path_factory, names, has_scale):
    path = tmp_path_factory.getbasetemp() / "centroids.csv"
    d = len(names)
    C = -np.arange(1.0, 2.0 * d + 1.0).reshape(2, d) / 3.0
    scale = [0.5] * d if has_scale else []

    path.write_bytes(encode_clusters(_decoding(C), names, "csv", scale))
    read = read_centroids(str(path))
    found, centroids, scales = read.names, read.points, read.scale
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)

    assert found == names
    np.testing.assert_array_equal(centroids, C)
    assert scales.tolist() == ([0.5] * d if has_scale else [1.0] * d)
    assert not [name for name in head if re.match("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", name)]
    assert [float(value) for row in rows for value in row[2 : 2 + d]] == C.ravel().tolist()


def _decoding(C: np.ndarray) -> ss.Decoding:
    spec = ss.SketchSpec(n_features=C.shape[1], sketch_size=20, bandwidth=1.0)
    found = ss.decode(ss.sketch(np.zeros((4, C.shape[1])), spec), 1)
    return replace(found, centroids=C, weights=np.array([0.75, 0.25]))


def test_the_documented_names(tmp_path):
    path = tmp_path / "centroids.csv"
    names = ["=1+1", "-1.5", "'=x", "plain", "'quoted'"]
    path.write_bytes(encode_clusters(_decoding(np.full((2, 5), -1.5)), names, "csv"))

    head = path.read_text(encoding="utf-8").splitlines()[0]
    assert head == "cluster,share,'=1+1,'-1.5,''=x,plain,'quoted'"
    assert path.read_text(encoding="utf-8").splitlines()[1].endswith(",-1.5,-1.5,-1.5,-1.5,-1.5")
    assert read_centroids(str(path)).names == names


def test_a_broken_table_of_centroids_is_refused_with_a_sentence(run, folder):
    (folder / "broken.csv").write_bytes(b"cluster,share,x\ry\n0,1,2\n")

    said = run.error("assign points.csv --centroids broken.csv -o labels.csv")
    assert "'broken.csv' does not hold centroids" in said
