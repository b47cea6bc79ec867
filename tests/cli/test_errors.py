"""What a command says when it cannot do what was asked."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.cli.command import sentence
from sketchshift.errors import ChooseColumns, LoadSketch, Parameter, SharePlan

MISUSE = {
    "clster points.csv": "No such command 'clster'. Did you mean 'cluster'?",
    "sketch points.csv -o a.sketch": "give -k, the number of clusters, or --plan plan.json: one",
    "sketch points.csv -o a.sketch -k 3 --plan plan.json": "one of them, and not both.",
    "sketch points.csv -o a.sketch -k 0": "0 is not in the range 1<=x<=100000",
    "sketch points.csv -o points.csv -k 3": "'points.csv' is also an input",
    "sketch points.csv -o a.sketch -k 3 --where": "Option '--where' requires an argument.",
    "sketch points.csv -o a.sketch --plan plan.json --on-invalid mean": "--on-invalid mean needs",
    "sketch points.csv -o a.sketch -k 3 --columns a,,b": "must be column names between commas",
    "sketch points.csv -o a.sketch -k 3 --csv comma=.": "'comma=.' must be KEY=VALUE, with a key of "
    "separator, decimal, encoding, missing, header.",
    "sketch points.csv -o a.sketch -k 3 --csv header=maybe": "header must be true or false. Got",
    "sketch points.csv -o a.sketch -k 3 --csv decimal=;": "'.' or ','",
    "sketch -o a.sketch -k 3": "Missing argument 'DATA...'",
    "plan points.csv -o a.json": "give -k, the number of clusters, or --drift: one of them.",
    "plan points.csv -o a.json --drift -k 3": "or --drift: one of them.",
    "plan points.csv -o a.json -k 3 --scale big": "'big' is not one of 'auto', 'none', 'standard'",
    "plan -o a.json -k 3": "a plan without DATA needs --private, --center, --spread.",
    "plan points.csv -o points.csv -k 3": "'points.csv' is also an input",
    "merge day1.sketch day1.sketch -o a.sketch": "'day1.sketch' is given twice",
    "merge 'day*.sketch' -o day2.sketch": "'day2.sketch' is also an input",
    "merge day1.sketch points.csv -o a.sketch": "'points.csv' is data. Take its sketch first: "
    "sketchshift sketch points.csv -k 10 -o day1.sketch",
    "merge week.sketch --minus points.csv -o a.sketch": "'points.csv' is data. Take its sketch",
    "compare day1.sketch points.csv": "'points.csv' is data. Take its sketch first",
    "release people.csv --epsilon 1 --delta 1e-8 -o a.sketch": "'people.csv' is data. Take",
    "inspect points.csv": "'points.csv' is data. Take its sketch first",
    "sketch sketches.parquet -k 3 -o a.sketch": "'sketches.parquet' is a table of sketches, not "
    "data. Cluster it: sketchshift cluster sketches.parquet -k auto",
    "cluster -k 3": "Missing argument 'INPUT...'",
    "cluster week.sketch -k four -o a.csv": "'four' must be a whole number or auto.",
    "sketch points.csv -k four -o a.sketch": "'four' must be a whole number.",
    "plan points.csv -k auto -o a.json": "a plan needs a number: the most clusters there may be",
    "cluster week.sketch points.csv -k 3": "is a sketch and 'points.csv' is data. Give one kind",
    "cluster week.sketch -k 3 --columns x": "--columns says how data is read, and 'week.sketch'",
    "cluster day1.sketch day1.sketch -k 3": "'day1.sketch' is given twice",
    "cluster week.sketch -k 3 -o a.txt": "must end with .csv, .json or .parquet. Got 'a.txt'",
    "cluster week.sketch -k 3 --plot a.csv": "must end with .png, .pdf or .svg. Got 'a.csv'",
    "cluster week.sketch -k auto --decoder cl-ompr": "-k auto needs --decoder turnkey",
    "cluster week.sketch -k 3 --max-clusters 5": "--max-clusters goes with -k auto",
    "cluster week.sketch -k 3 --decoder sketch-and-shift:atoms=4": "'atoms=4' must be KEY=VALUE: the "
    "keys of sketch-and-shift",
    "cluster week.sketch -k 3 --decoder cl-ompr:repairs=maybe": "repairs must be true or false. Got",
    "cluster week.sketch -k 3 --decoder cl-ompr:n_iterations=few": "n_iterations must be of type int "
    "| None. Got 'few'.",
    "cluster week.sketch -k 3 --decoder turnkey:penalty=1": "turnkey has no keys",
    "cluster week.sketch -k 3 --decoder magic": "'magic' is not one of 'turnkey', 'sketch-and-shift'",
    "sketch events.parquet --by day -k 2 -o a.sketch": "must end with .parquet",
    "cluster week.sketch -k 2 --where x": "is a single sketch",
    "merge day1.sketch -o a.sketch --where x": "is a single sketch",
    "cluster sketches.parquet day1.sketch -k 2 --where x": "is a single sketch",
    "cluster sketches.parquet points.csv -k 2": "'points.csv' is data",
    "sketch points.csv -k 2 -o a.sketch --checkpoint points.csv": "Give it a name of its own",
    "sketch points.csv -k 2 -o a.sketch --checkpoint a.sketch": "Give it a name of its own",
    "sketch points.csv -k 2 -o a.sketch --csv separator=;;": "must be one sign",
    "report week.sketch -k 2 -o a.pdf": "must end with .html",
    "report week.sketch -k 2 --by x -o a.html": "--by says how data is read",
    "report 'day*.sketch' -k 2 -o a.html": "means 2 files. Merge them first",
    "report week.sketch -k 2 --where x -o a.html": "is a single sketch",
    "report week.sketch --columns x --serve": "--columns says how data is read",
    "report week.sketch --port 99999 --serve": "99999 is not in the range",
    "report week.sketch": "give -o PATH.html for a file, or --serve",
    "report week.sketch -o a.html --serve": "give -o PATH.html for a file, or --serve",
    "report week.sketch -o a.html --port 99": "--port goes with --serve",
    "compare 'part-*.parquet'": "is data. Take its sketch first",
    "compare sketches.parquet day1.sketch day2.sketch": "'sketches.parquet' is one of 3 files",
    "compare day1.sketch day2.sketch --over day": "--over and --where are for tables",
    "compare day1.sketch day1.sketch": "'day1.sketch' is given twice",
    "compare day1.sketch day2.sketch --plot a.txt": "must end with .png",
    "compare day1.sketch day2.sketch --false-alarm 2": "0.5",
    "follow incoming a --by day --watch": "give -k",
    "follow incoming a -k 2 --watch": "say by which column slices follow: --by day",
    "follow incoming a -k 2 --false-alarm 0.1 --reference r.sketch": "give --watch with --reference, "
    "--false-alarm",
    "follow incoming a -k 2 --every nan": "'nan' is not a finite number",
    "cluster points.csv --csv encoding=base64": "an encoding that Python knows",
    "follow incoming a -k 2 --by day --watch --metrics 9105": "give --every with --metrics",
    "follow incoming a -k 2 --by day --watch --metrics here --every 1": "a port, or a host and a port",
    "follow incoming a -k 2 --plan plan.json": "give one of --n-clusters, --plan",
    "plan people.csv -k 2 --center 0,0 -o a.json": "without --private takes no --center",
    "plan people.csv --private --drift -o a.json": "needs --center, --radius, --epsilon",
    "plan --private -k 2 --center 0,0 -o a.json": "without DATA needs --spread",
    "plan --private -k 2 --center 0,0 --spread 2 --epsilon 1 -o a.json": "takes no --epsilon",
    "plan people.csv --private --public --scale none -k 2 -o a.json": "takes no --scale",
    "plan people.csv --private -k 2 --center 0,0 -o a.json": "needs --radius, --epsilon",
    "plan people.csv --private --public -k 2 --epsilon 1 -o a.json": "takes no --epsilon",
    "plan people.csv --private --public -k 2 --account a -o a.json": "takes no --account",
    "plan people.csv --private -k 2 --center 0,0 --radius 50 --epsilon 1 --delta 1e-8 --budget 3 "
    "-o a.json": "--budget belongs to an",
    "plan people.csv --private -k 2 --center 0,0 --radius 50 --epsilon 1 --delta 1e-8 --account a.json "
    "-o a.json": "also an input",
    "release people.sketch --epsilon 1 --delta 1e-8 --account a.json --budget 3 -o a.json": "also an "
    "input",
    "release people.sketch --epsilon 1 --delta 1e-8 --budget 3 -o a.sketch": "--budget belongs to an",
    "release people.sketch --epsilon 1 --delta 1e-8 --account a.json -o a.sketch": "Give its --budget",
    "release people.sketch --epsilon 1 -o a.sketch": "--delta",
}

FAILURES = {
    "merge sketches.parquet --where \"kye = 'a'\" -o a.sketch": "there is no column 'kye'. It may name 'day'",
    "cluster cut.csv -k 3 -o a.csv": "cut.csv: row 1 (data rows count from 0) has 3 cells",
    "cluster week.sketch -k 500 -o a.csv": "there are 180 rows, too few for 500 clusters.",
    "cluster points.csv -k 3 -o none/a.csv": "cannot write 'none/a.csv': there is no folder",
    "sketch points.csv -o a.sketch --plan none.json": "cannot read the plan 'none.json': No such",
    "sketch points.csv -o a.sketch --plan points.csv": "points.csv: a sketch spec must be JSON",
    "sketch none.csv -o a.sketch -k 3": "there is no file or folder 'none.csv'",
    "sketch 'none*.csv' -o a.sketch -k 3": "no file matches 'none*.csv'",
    "sketch points.csv -o a.sketch -k 3 --columns x,z": "points.csv has no column 'z'",
    "sketch gaps.csv -o a.sketch --plan plan.json": "row 1 of gaps.csv has nan in column 'x'",
    "sketch gaps.csv -o a.sketch -k 3 --on-invalid raise": "row 1 of gaps.csv has nan in column",
    "plan gaps.csv -o a.json -k 3 --on-invalid raise": "row 1 of gaps.csv has nan in column 'x'",
    "plan names.csv -o a.json -k 3 --columns x,who": "'who' (text) cannot be read as numbers",
    "plan words.csv -o a.json -k 3": "there is no column of numbers to cluster: 'who' (text, 2",
    "merge day1.sketch other.sketch -o a.sketch": "cannot merge sketches that were made with",
    "merge 'none*.sketch' -o a.sketch": "no file matches 'none*.sketch'",
    "merge none.sketch -o a.sketch": "there is no file 'none.sketch'",
    "merge . -o a.sketch": "'.' is a folder, not a sketch",
    "merge day1.sketch --minus week.sketch -o a.sketch": "cannot remove more than was added",
    "merge week.sketch --minus damaged.sketch -o a.sketch": "damaged.sketch: the digest does not",
    "inspect damaged.sketch": "damaged.sketch: the digest does not match",
    "cluster notes.doc -k 3": "a sketch file, and data is read from files that end in .parq",
    "merge notes.doc -o a.sketch": "notes.doc: the first bytes are not those of a sketch file, and",
    "sketch notes.doc -k 3 -o a.sketch": "'notes.doc': its name does not end in .parquet, .csv,",
    "sketch week.sketch -k 3 -o a.sketch": "'week.sketch' is a sketch, not data. Cluster it: "
    "sketchshift cluster week.sketch -k auto\n",
    "plan 'day*.sketch' -k 3 -o a.json": "'day1.sketch' is a sketch, not data. Cluster it: ",
    "assign day1.sketch --centroids centroids.csv -o a.csv": "'day1.sketch' is a sketch, not data",
    "inspect none.sketch": "'none.sketch' does not exist",
    "inspect .": "'.' is a folder",
    "cluster damaged.sketch -k 3 -o a.csv": "damaged.sketch: the digest does not match",
    "cluster none.sketch -k 3 -o a.csv": "there is no file 'none.sketch'",
    "cluster plan.json -k 3 -o a.csv": "plan.json: the first bytes are not those of a sketch",
    "cluster day1.sketch other.sketch -k 3 -o a.csv": "cannot merge sketches that were made",
    "cluster empty.sketch -k 3 -o a.csv --plot a.png": "there are 0 rows, too few for 3",
    "cluster damaged.sketch -k 3 -o none/a.csv": "cannot write 'none/a.csv': there is no folder",
    "cluster damaged.sketch -k 3 --plot none/a.png": "cannot write 'none/a.png': there is no",
    "cluster part-1.parquet -k 2 --where 'nope = 1'": "has no column 'nope'",
    "sketch events.parquet --by dya -k 2 -o a.parquet": "Did you mean 'day'",
    "cluster sketches.parquet -k 2 --where \"shop = 'it''s'\"": "no slice by day, shop has shop = "
    "'it''s'",
    "report week.sketch -k 500 -o a.html": "180 rows, too few for 500 clusters",
    "report none.sketch -k 2 -o a.html": "there is no file 'none.sketch'",
    "report week.sketch -k 2 -o nowhere/a.html": "there is no folder",
    "compare sketches.parquet": "only one of them is the time",
    "compare sketches.parquet --over week": "cannot merge by 'week'",
    "compare sketches.parquet --over day --reference \"day < '2026-01-02'\"": "a reference needs at "
    "least 3 slices with rows",
    "compare day1.sketch": "'day1.sketch' is one sketch, and not a table",
    "compare day1.sketch other.sketch": "cannot compare sketches that were made with different plans:"
    "\n",
    "assign points.csv --centroids none.csv -o a.csv": "cannot read 'none.csv'",
    "assign points.csv --centroids points.csv -o a.csv": "'points.csv' does not hold centroids",
    "assign points.csv --centroids broken.csv -o a.csv": "'broken.csv' does not hold centroids",
    "assign points.csv --centroids empty.csv -o a.csv": "holds no centroids",
    "assign points.csv --centroids xz.csv -o a.csv": "'z'",
    "inspect points.sketch --centroids xz.csv": "has no column 'y'",
    "release week.sketch --epsilon 1 --delta 1e-8 -o a.sketch": "may tell of private rows",
    "inspect week.sketch --centroids centroids.csv": "only sketches with cells prove anything",
}


@pytest.fixture
def faulty(folder):
    """The folder with files in which something is wrong."""
    for name, text in {
        "names.csv": "x,y,who\n1,2,Ada\n3,4,Emmy\n",
        "words.csv": "who,what\nAda,x\nEmmy,y\n",
        "cut.csv": "x,y\n1,2\n3,4,5\n6,7\n8,9\n1,1\n",
        "notes.doc": "1 2\n3 4\n",
        "gaps.csv": "x,y\n1,2\n,3\n4,5\n",
        "broken.parquet": "PAR1 but nothing else",
        "empty.csv": "cluster,share,x,y\n",
        "broken.csv": "cluster,share,x\ry\n0,1,2\n",
        "xz.csv": "cluster,share,x,z\n0,1,0,0\n",
    }.items():
        Path(name).write_text(text)
    data = bytearray(Path("day1.sketch").read_bytes())
    data[-100] ^= 1
    Path("damaged.sketch").write_bytes(data)
    day = ss.load("day1.sketch")
    ss.sketch("points.csv", day.spec.replaced(waves=replace(day.spec.waves, bandwidth=0.1))).save(
        "other.sketch"
    )
    (day - day).save("empty.sketch")
    return folder


@pytest.mark.parametrize("line", list(MISUSE))
def test_misuse_is_exit_status_2_and_a_sentence(line, faulty, run):
    error = run.error(line, status=2)

    assert MISUSE[line] in " ".join(error.split())
    assert not list(faulty.glob("a.*"))


@pytest.mark.parametrize("line", list(FAILURES))
def test_failure_is_exit_status_1_and_a_sentence(line, faulty, run):
    assert run.error(line, FAILURES[line]).startswith("Error: ")
    assert not list(faulty.glob("a.*"))


def test_the_advice_is_in_the_words_of_the_command_line(faulty, run):
    """Where a command has no such option, it is about the plan."""
    run.error("sketch names.csv -o a.sketch -k 2 --columns x,y,who", "--columns x,y")
    run("sketch names.csv -o a.sketch -k 2 --columns x,y")
    words = "Take categories with `sketchshift plan DATA --categories who,what`."
    run.error("sketch words.csv -o a.sketch -k 2", words)
    run.error("plan words.csv -o a.json -k 2", "--categories who,what.")


@pytest.mark.parametrize(
    ("output", "fact"),
    [
        ("none/a.sketch", "there is no folder"),
        ("points.csv/a.sketch", "there is no folder"),
        ("x" * 300, "File name too long"),
        (".", "it is a folder"),
        ("/dev/null", "it is not a regular file"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_data_is_read(
    output, fact, faulty, run
):
    """The data is broken, and that is not what the error is about."""
    error = run.error(f"sketch broken.parquet -o {output} -k 2", "cannot write", fact)

    assert "broken" not in error


def test_a_failure_leaves_the_old_output_alone(faulty, run):
    Path("old.sketch").write_bytes(b"old")

    run.error("sketch gaps.csv -o old.sketch --plan plan.json")

    assert Path("old.sketch").read_bytes() == b"old"


def test_debug_shows_the_traceback(folder, run):
    result = run("--debug inspect none.sketch", 1)

    assert isinstance(result.exception, ss.errors.DataError)


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (lambda **_: 1 / 0, ZeroDivisionError),
        (lambda **_: warnings.warn("old", DeprecationWarning, stacklevel=1), DeprecationWarning),
    ],
)
def test_errors_and_warnings_that_nobody_expected_are_left_to_python(
    broken, error, folder, run, monkeypatch
):
    """Warnings are errors here, as everywhere in these tests."""
    monkeypatch.setattr(main.get_command(None, "merge"), "callback", broken)

    assert isinstance(run("merge day1.sketch -o a.sketch", 1).exception, error)


def test_advice_has_the_words_of_python_in_python_and_those_of_flags_in_a_terminal():
    """A parameter without a flag keeps its name; an error of the system names its file."""
    many = tuple(f"x{i}" for i in range(21))
    chosen = ss.errors.DataError("Choose ", ChooseColumns(("a, b", "c")), " instead.")
    noise = ss.errors.SpecError(Parameter("SketchSpec", "noise"), " must be a Spectrum.")

    assert str(chosen) == "Choose columns=['a, b', 'c'] instead."
    assert sentence(chosen) == """Choose --columns '"a, b",c' instead."""
    assert sentence(ss.errors.DataError("Choose ", ChooseColumns(many))) == "Choose --columns NAMES"
    assert str(ss.errors.DataError("Choose ", ChooseColumns())) == "Choose columns=[...]"
    assert sentence(noise) == "The 'noise' parameter of SketchSpec must be a Spectrum."
    full = OSError(28, "No space left on device", "week.sketch")
    assert sentence(full) == "week.sketch: No space left on device."


def test_an_error_that_travelled_between_processes_says_the_same():
    error = ss.errors.IncompatibleSketchesError("cannot. ", LoadSketch("day 1.sketch"), SharePlan())
    again = pickle.loads(pickle.dumps(error))

    assert (str(again), sentence(again)) == (str(error), sentence(error))
    assert str(error) != sentence(error)
