"""What the README shows is what happens: its code runs, and its output is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sketchshift.cli import main

TEXT = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def without_times(text: str) -> list[str]:
    """Lines with their blanks made one, and the seconds that differ from run to run taken out."""
    plain = re.sub(r"\d+\.\d+ s(, [\d,]+ rows/s)?", "0 s", text)
    return [" ".join(line.split()) for line in plain.splitlines()]


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks("python")
    assert len(found) == 2
    names: dict[str, object] = {}
    for block in found:
        exec(block, names)


def test_the_tour_of_the_readme_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tour,) = blocks("console")
    runner = CliRunner()
    assert runner.invoke(main, ["demo"]).exit_code == 0
    for step in re.split(r"^\$ ", tour, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition("\n")
        words = shlex.split(line)
        assert words[0] == "sketchshift"
        result = runner.invoke(main, words[1:])
        assert result.exit_code == 0, result.output
        printed = without_times(result.stdout)
        for expected in without_times(shown):
            assert expected in printed or expected in ("", "...")
