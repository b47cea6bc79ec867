"""The scripts in examples/ are short, say what they show, and show it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
FAST = {"03_forget_a_customer", "04_day_by_day"}
OF_ENGINES = {"09_federated", "11_spark_streaming"}
CLAIMS = {
    "01_parquet_lake": ["is the sketch of the lake: True", r"from the sketch +1\.00"],
    "02_sorted_stream": ["are equal to the bit: True", r"sorted by red +[2-9]\.\d+ +1\.0"],
    "03_forget_a_customer": ["that never saw them:  True", "that never did:    True", "is refused"],
    "04_day_by_day": ["of all trips:     True", "of its rows:  True", "make the whole:   .*True"],
    "05_choosing_k": ["chosen: k = 12", r"k = 12  RSE 1\.00"],
    "06_drift": ["first alarm: day 8\n", "first and last week: drift", "4 to 6: no drift"],
    "07_from_pycle": [r"ss\.decode +1\.00", "pycle        False", "sketchshift  True"],
    "08_the_paper": [r"  0\.03 +\d\d\.\d+ +1\.0", r"  0\.3 +1\.00"],
    "09_federated": [  # each of three sites misses one of four clusters
        r"60000 rows in 1628 bytes(\n +0\.2[0-4] .*){3}\n +0\.3[2-5] of the rows near \(4\.0, 4\.0\)",
        r"after bergen left: 40000 rows in 1625 bytes(\n +0\.1[5-8] .*\n +0\.3[2-5] .*){2}",
    ],
    "11_spark_streaming": [
        r"(batch \d: 10,000 rows of 2 sensors\n){3}3 tables add up to one pass: True",
        r"centroids: \[\[-?0\.(0[0-4]?)? +-?0\.(0[0-4]?)? *\]"
        r"\n +\[(1\.(0[0-4]?)?|0\.9[5-9]) +(5\.(0[0-4]?)?|4\.9[5-9]) *\]"
        r"\n +\[(4\.(0[0-4]?)?|3\.9[5-9]) +(1\.(0[0-4]?)?|0\.9[5-9]) *\]\]",
    ],
    "12_index_lists": ["never seen: True", r"a third deleted(.*\n)+largest loss: (-|0\.[0-5] )"],
}
"""What their output must say, as patterns."""

NEEDED = {"12_index_lists": ("faiss", "cv2"), "11_spark_streaming": ("pyspark",)}
"""Packages that are not there for every processor and system."""

OF_SPARK = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def tier_of(script):
    kinds = {"thorough": FAST, "engines": OF_ENGINES}
    return next((kind for kind, names in kinds.items() if script.stem in names), "slow")


def run(script, folder):
    """Run a script with an output folder, in an empty working directory; return what it printed."""
    working, output = folder / "working", folder / "output"
    working.mkdir()
    output.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "SKETCHSHIFT_DATA"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", OF_SPARK, script, output],
        cwd=working,
        env=environment | {"TMPDIR": str(output), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not list(working.iterdir())
    return done.stdout


def test_every_script_has_claims_to_check():
    assert {script.stem for script in SCRIPTS} == set(CLAIMS)


def test_a_script_is_short_starts_with_its_title_and_says_what_one_learns():
    """As sphinx-gallery reads it; the list in README.md says the same of each."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text))
        heading, lesson, *_ = docstring.split("\n\n")
        title, underline = heading.splitlines()
        assert underline == "=" * len(title)
        assert f"| [{script.name}]({script.name}) | {lesson} |" in readme
        assert f"python examples/{script.name}" in docstring
        assert len(text.splitlines()) < 100
        assert re.search(r'print\(f"(\\n)?the picture: \{folder', text)


@pytest.mark.parametrize(
    "script", [pytest.param(s, id=s.stem, marks=getattr(pytest.mark, tier_of(s))) for s in SCRIPTS]
)
def test_a_script_shows_what_it_says_and_draws_its_picture(script, tmp_path):
    for package in NEEDED.get(script.stem, ()):
        pytest.importorskip(package)
    printed = run(script, tmp_path)
    for claim in CLAIMS[script.stem]:
        assert re.search(claim, printed), printed
    for picture in re.findall(r"the picture: (.+)", printed):
        assert Path(picture).read_bytes().startswith(b"\x89PNG"), picture
