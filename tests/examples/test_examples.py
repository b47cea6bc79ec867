"""The scripts in examples/ are short, say what they show, and show it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
FAST = {"03_forget_a_customer", "04_day_by_day"}
CLAIMS = {
    "01_parquet_lake": ["is the sketch of the lake: True", r"from the sketch +1\.00"],
    "02_sorted_stream": ["are equal to the bit: True", r"sorted by red +[2-9]\.\d+ +1\.0"],
    "03_forget_a_customer": ["that never saw them:  True", "that never did:    True", "is refused"],
    "04_day_by_day": ["of all trips:     True", "of its rows:  True", "make the whole:   .*True"],
    "05_choosing_k": ["chosen: k = 12", r"k = 12  RSE 1\.00"],
    "06_drift": ["first alarm: day 8\n", "first and last week: drift", "4 to 6: no drift"],
    "07_from_pycle": [r"ss\.decode +1\.00", "pycle        False", "sketchshift  True"],
    "08_the_paper": [r"  0\.03 +\d\d\.\d+ +1\.0", r"  0\.3 +1\.00"],
    "12_index_lists": ["never seen: True", r"a third deleted(.*\n)+largest loss: (-|0\.[0-5] )"],
}
"""What their output must say, as patterns."""

NEEDED = {"12_index_lists": ("faiss", "cv2")}
"""Packages that are not there for every processor and system."""

OF_ENGINES = {"09_federated", "11_spark_streaming"}  # run in tests/engines

every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def run(script: Path, folder: Path) -> str:
    """Run a script with an output folder, in an empty working directory; hand what it printed."""
    working, output = folder / "working", folder / "output"
    working.mkdir()
    output.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "SKETCHSHIFT_DATA"}
    done = subprocess.run(
        [sys.executable, "-W", "error", script, output],
        cwd=working,
        env=environment | {"TMPDIR": str(output), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not list(working.iterdir())
    return done.stdout


def check(script: Path, folder: Path) -> None:
    """Its claims are true, and its pictures are there."""
    for package in NEEDED.get(script.stem, ()):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    printed = run(script, folder)
    for claim in CLAIMS[script.stem]:
        assert re.search(claim, printed), printed
    for picture in re.findall(r"the picture: (.+)", printed):
        assert Path(picture).read_bytes().startswith(b"\x89PNG"), picture


def test_there_are_at_least_eight_with_claims_to_check():
    assert len(SCRIPTS) >= 8
    assert {script.stem for script in SCRIPTS} == set(CLAIMS) | OF_ENGINES


@every_script
def test_a_script_is_short_and_says_what_it_shows(script):
    text = script.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text))

    assert len(text.splitlines()) < 100
    assert docstring is not None
    assert f"python examples/{script.name}" in docstring
    assert re.search(r'print\(f"(\\n)?the picture: \{folder', text)


@every_script
def test_a_script_starts_with_a_title_and_with_what_one_learns(script):
    """As sphinx-gallery reads it; the list in README.md says the same of each."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    heading, lesson, *_ = docstring.split("\n\n")
    title, underline = heading.splitlines()
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert underline == "=" * len(title)
    assert f"| [{script.name}]({script.name}) | {lesson} |" in readme


@pytest.mark.parametrize(
    "script", [path for path in SCRIPTS if path.stem in FAST], ids=lambda path: path.stem
)
def test_the_fastest_scripts_show_what_they_say(script, tmp_path):
    check(script, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [path for path in SCRIPTS if path.stem in CLAIMS.keys() - FAST],
    ids=lambda path: path.stem,
)
def test_the_other_scripts_show_what_they_say(script, tmp_path):
    check(script, tmp_path)
