"""Names, keys and paths of strangers: a terminal shows them and does not obey them."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift import _progress
from sketchshift.cli.assign import read_centroids
from sketchshift.cli.output import encode_clusters

TITLE = "\x1b]0;owned\x07"  # renames the window
HOSTILE = f"a\x1b[31m\x9b2J{TITLE}\u202eb\u2066\u200f\u061c\u2028\x7f\r"
SHORT = "\x1b[31m\u202e"  # what fits below the bars of a picture
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SEEN = r"a\x1b[31m\x9b2J\x1b]0;owned\x07\u202eb\u2066\u200f\u061c\u2028\x7f\r"


@pytest.fixture
def hostile(here):
    """Data, slices and sketches whose columns, keys and file names are all hostile."""
    rng = np.random.default_rng(0)
    rows = {HOSTILE: 1e6 * rng.normal(size=300), "y": rng.normal(size=300)}
    pyarrow.parquet.write_table(pa.table(rows), f"{HOSTILE}.parquet")
    keys = [f"{SHORT}{i % 3}" for i in range(300)]
    scale = (1e6, 1.0)
    spec = ss.SketchSpec(2, 40, 0.5, columns=tuple(rows), scale=scale)
    slices = ss.sketch_by(pa.table({**rows, SHORT: keys}), by=SHORT, spec=spec)
    slices.save("slices.parquet")
    slices.merge().save(f"{HOSTILE}.sketch")


def fill(line):
    """A command line with hostile text in it."""
    return line.format(H=shlex.quote(HOSTILE), S=shlex.quote(SHORT))


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    "line",
    [
        "cluster {H}.parquet -k 2 -o out.csv",
        "plan {H}.parquet -k 2 -o {H}.json",
        "inspect {H}.sketch",
        "inspect slices.parquet",
        "compare slices.parquet -k 2 --plot {H}.svg",
        "report {H}.sketch -k 2 -o {H}.html",
    ],
)
def test_what_commands_print_cannot_control_a_terminal(run, line):
    shown = run(fill(line)).output

    assert not CONTROLS.search(shown)
    assert SEEN in shown or r"\x1b[31m\u202e" in shown
    assert "Units differ: " in shown or ".parquet -k 2 -o out" not in line
    assert r"\u001b[31m" in json.dumps(run.facts(fill(line)))  # programs get the true text


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("cluster {H} -k 2", 1),
        ("cluster {H}.parquet -k 2 --columns {H}x", 2),
        ("cluster {H}.parquet -k 2 --columns {S}x", 1),
        ("cluster {H}.parquet -k {H}", 2),
        ("cluster {H}.parquet -k 2 --{H}", 2),
        ("{H}", 2),
        ("--{H}", 2),
        ("inspect {H}.sketch {H}.sketch", 2),
        ("merge slices.parquet --where {H} -o out.sketch", 1),
        ("merge {H}.sketch {H}.sketch -o out.sketch", 2),
        ("assign {H}.parquet --centroids {H}.csv -o out.csv", 1),
        ("plan {H}.parquet -k 2 -o no/{H}", 1),
    ],
)
def test_what_commands_say_about_mistakes_cannot_control_a_terminal(run, line, status):
    assert not CONTROLS.search(run.error(fill(line), r"\x1b[31m", status=status))


def test_progress_cannot_control_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    with _progress.KINDS["items"](f"Reading {HOSTILE}", show=True) as count:
        count(1, 2, "rows")
        time.sleep(0.3)

    said = capsys.readouterr().err
    assert r"\x1b]0;owned" in said.replace("\n", "")
    assert TITLE not in said
    assert "\u202e" not in said


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


@pytest.mark.usefixtures("hostile")
def test_files_keep_the_true_names(run):
    for kind in ("csv", "json", "parquet"):
        run(fill(f"cluster {{H}}.parquet -k 2 -o out.{kind}"))
        assert read_centroids(f"out.{kind}").names == [HOSTILE, "y"]


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("line", ["cluster {H}.sketch", "compare slices.parquet"])
def test_pictures_show_names_and_are_not_turned_by_them(run, line):
    for kind in ("png", "svg"):
        run(fill(f"{line} -k 2 --plot out.{kind}"))

    text = Path("out.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text.encode())
    assert not CONTROLS.search(text)
    assert r"\x1b[31m" in text


SIGNS = st.text(st.sampled_from("=+-@\t\r\n'\"\uff1d\uff0b\uff0d\uff20 ,;a1é\x1b"), max_size=6)
NAMES = st.one_of(SIGNS, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), has_scale=st.booleans())
@example(names=["=1+1", "-1.5", "'=x", "plain", "'quoted'"], has_scale=False)
def test_names_come_back_and_none_is_a_formula(tmp_path_factory, names, has_scale):
    path = tmp_path_factory.getbasetemp() / "centroids.csv"
    d = len(names)
    C = -np.arange(1.0, 2.0 * d + 1.0).reshape(2, d) / 3.0
    shares = np.array([0.75, 0.25])
    decoding = ss.Decoding(C, shares, None, 1.0, ss.decoders.Outcome.COMPLETE, ())

    path.write_bytes(encode_clusters(decoding, names, "csv", [0.5] * d if has_scale else []))

    read = read_centroids(str(path))
    assert read.names == names
    assert_array_equal(read.points, C)
    assert read.scale.tolist() == [0.5 if has_scale else 1.0] * d
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert not [name for name in head if re.match("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", name)]
    assert [float(value) for row in rows for value in row[2 : 2 + d]] == C.ravel().tolist()
    if "plain" in names:
        assert head == ["cluster", "share", "'=1+1", "'-1.5", "''=x", "plain", "'quoted'"]
