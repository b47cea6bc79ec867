"""What commands print with ``--json``, and what they and functions say of errors."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from click.testing import CliRunner
from decodings import specs_for

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.features import Ball

DROPPED = re.compile(
    "command|file|inputs?|output|source|state|merged|whole|subtracted|first|second|plot|python|data"
    "|.*bytes|.*seconds|rows_per_second|times_smaller|fingerprint|.*version|commits|positions"
    "|decoder|seed|ledger|spent|statement|sentence|notes|landmarks|saturation|sketch"
)
"""Facts that depend on the words of the command line, the time or the format, and sentences."""

COMMANDS = {
    "sketch with weights": "sketch day1.csv --plan plan.json --weights w -o day1.sketch",
    "sketch": "sketch day2.csv --plan plan.json -o day2.sketch",
    "slices": "sketch day1.csv day2.csv --plan plan.json --by shop -o shops.parquet",
    "sum of two sketches": "merge day1.sketch day2.sketch -o both.sketch",
    "difference of two sketches": "merge both.sketch --minus day1.sketch -o rest.sketch",
    "sum of slices": "merge shops.parquet --where 'shop > 0' -o some.sketch",
    "a plan in a file": "inspect plan.json",
    "a sketch in a file": "inspect both.sketch",
    "slices in a file": "inspect shops.parquet",
    "clusters": "cluster both.sketch -k 3 -o centroids.csv",
    "clusters, number chosen": "cluster both.sketch -k auto",
    "clusters of a slice": "cluster shops.parquet -k 2 --where 'shop = 1'",
    "clusters by another decoder": "cluster both.sketch -k 3 --decoder cl-ompr",
    "rows with their clusters": "assign day1.csv --centroids centroids.csv -o labels.csv",
    "a bound on the cost of centroids": "inspect day2.sketch --centroids centroids.csv",
    "report on a sketch": "report both.sketch -k 3 -o report.html",
    "comparison of two sketches": "compare day1.sketch day2.sketch -k 3",
    "comparison of slices over a column": "compare shops.parquet --over shop -k 3",
    "a folder that is followed": "follow incoming state --plan plan.json",
    "the same again": "follow incoming state --plan plan.json",
    "a folder that is followed by slices": "follow incoming cube --plan plan.json --by shop",
    "a state in a folder": "inspect state",
    "slices in a folder": "inspect cube",
    "demo": "demo",
}
"""Command lines by what they do, in the order in which they make the files of each other."""

OF_RELEASES = "release day2.private -o noisy.sketch --epsilon 4 --delta 1e-8"
KEPT_OF_RELEASES = (
    "epsilon",
    "delta",
    "rho",
    "adjacency",
    "rows_per_person",
    "rows_std",
)

PLANNED = {
    "plan": "plan day1.csv -k 3 --columns x,y,z -o planned.json",
    "plan, standardised": "plan day1.csv -k 3 --exclude shop,w --scale standard -o other.json",
    "private plan, declared": "plan --private -k 3 --center 0,0 --spread 2 --columns x,y -o own.json",
    "clusters of a table": "cluster day1.csv -k 3 --columns x,y,z --scale standard",
}
"""Command lines that plan."""


def days():
    """Yield the columns of two days."""
    rng = np.random.default_rng(1)
    for day in (1, 2):
        X = rng.normal(size=(900, 3)) + rng.integers(0, 3, 900)[:, None] * [4.0, 0.0, day]
        columns = {name: X[:, j] for j, name in enumerate("xyz")}
        yield columns | {"w": rng.integers(1, 4, 900), "shop": rng.choice(3, 900)}


def first_rows():
    """Return rows of the first day."""
    return np.column_stack([next(days())[name] for name in "xyz"])


def plan():
    """Return a plan that was not planned."""
    found = specs_for(first_rows(), standardize=False)["cells and waves"]
    return found.replaced(rows=replace(found.rows, columns=("x", "y", "z")))


@contextlib.contextmanager
def folder():
    """Work in a folder that has the days and the plan."""
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        for day, columns in enumerate(days(), start=1):
            pa.csv.write_csv(pa.table(columns), f"day{day}.csv")
        Path("incoming").mkdir()
        pa.csv.write_csv(pa.table(columns), "incoming/day2.csv")
        Path("plan.json").write_text(plan().to_json())
        yield


def run(line):
    """Run a command in this process."""
    return CliRunner().invoke(main, shlex.split(line))


def facts_of(line):
    """Return the facts that a command prints."""
    result = run(f"{line} --json")
    assert result.exit_code == 0, f"{line}: {result.stderr}"
    return without_dropped(json.loads(result.stdout))


def without_dropped(value):
    """Return the facts that last."""
    if isinstance(value, list):
        return [without_dropped(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_dropped(each) for name, each in value.items() if not DROPPED.fullmatch(name)
    }


def commands():
    """Return the facts of commands that do not plan."""
    with folder():
        found = {what: facts_of(line) for what, line in COMMANDS.items()}
        found["a bound on the cost of centroids"].pop("centroids")  # is the name of their file
        private = plan().replaced(
            rows=replace(plan().rows, columns=None, onto=Ball("declared", 8.0)), cells=None
        )
        ss.sketch(first_rows(), private).save("day2.private")
        of_release = facts_of(OF_RELEASES)
    return found | {"release": {name: of_release[name] for name in KEPT_OF_RELEASES}}


def planned_commands():
    """Return the facts of commands that plan."""
    with folder():
        return {what: facts_of(line) for what, line in PLANNED.items()}


# Errors. The text is what users meet: first of functions, then of commands.


def with_seed(spec, seed):
    """Draw other frequencies."""
    return spec.replaced(waves=replace(spec.waves, seed=seed))


def _wrong_calls():
    X, spec = first_rows(), plan()
    sketch = ss.sketch(X, spec)
    holes = np.where(X > 9.0, np.nan, X)
    paper = ss.SketchSpec(3, 60, 0.3)
    return {
        "sum of sketches of two plans": lambda: sketch + ss.sketch(X, with_seed(spec, 1)),
        "NaN in a row": lambda: ss.sketch(holes, spec),
        "wrong number of columns": lambda: ss.sketch(X[:, :2], spec),
        "missing column": lambda: ss.sketch(pa.table({"x": X[:, 0], "y": X[:, 1]}), spec),
        "column of text": lambda: ss.sketch(pa.table({name: ["a"] for name in "xyz"}), spec),
        "no plan": lambda: ss.sketch(X),
        "no clusters": lambda: ss.decode(sketch, 0),
        "unknown decoder": lambda: ss.decode(sketch, 3, decoder="best"),
        "no rows": lambda: ss.decode(ss.Sketcher(spec).sketch(), 3),
        "no cells to certify": lambda: ss.certify(ss.sketch(X, paper), X[:3]),
        "negative weight": lambda: ss.sketch(X, spec, sample_weight=-(X[:, 0] ** 2)),
        "no such file": lambda: ss.sketch("nothing.parquet", spec),
        "not a sketch": lambda: ss.load("day1.csv"),
    }


WRONG_LINES = {
    "no such file": "cluster nothing.csv -k 3",
    "missing column": "cluster day1.csv -k 3 --columns x,missing",
    "column of text": "cluster names.csv -k 3 --columns name",
    "no clusters": "cluster day1.csv -k 0",
    "NaN in a row": "cluster holes.csv -k 1 --on-invalid raise",
    "no plan": "sketch day1.csv -o day1.sketch",
    "plan that is not there": "sketch day1.csv --plan none.json -o day1.sketch",
    "not a sketch": "merge day1.csv day2.csv -o both.sketch",
    "sketches of two plans": "merge first.sketch second.sketch -o both.sketch",
    "unknown value of an option": "cluster day1.csv -k 3 --metric manhattan",
    "unknown option": "cluster day1.csv --frobnicate 3",
    "unknown command": "clusters day1.csv",
    "output of a wrong kind": "assign day1.csv --centroids centroids.csv -o labels.xls",
}


def errors():
    """Return the texts of errors, without fingerprints."""
    found = {}
    with folder():
        for i, name in enumerate(("first", "second")):
            ss.sketch(first_rows(), with_seed(plan(), i)).save(f"{name}.sketch")
        Path("names.csv").write_text("name,x\na,1\nb,2\n")
        Path("holes.csv").write_text("x,y\n1,2\n,3\n4,5\n")
        Path("centroids.csv").write_text("x,y,z\n1,2,3\n4,5,6\n")
        for what, call in _wrong_calls().items():
            found[what] = {"function": _error_of(call)}
        for what, line in WRONG_LINES.items():
            result = run(line)
            lines = [each for each in result.stderr.splitlines() if each]
            at = next(i for i, each in enumerate(lines) if each.startswith("Error"))
            found.setdefault(what, {})["command"] = [result.exit_code, *map(_masked, lines[at:])]
    return found


def _error_of(call):
    try:
        call()
    except ss.errors.SketchshiftError as error:
        return [type(error).__name__, *map(_masked, str(error).splitlines())]
    raise AssertionError("there was no error")


def _masked(text):
    return re.sub("fingerprint=[0-9a-f]{8}", "fingerprint=...", text)
