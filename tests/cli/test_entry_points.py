"""Commands of other packages: an entry point is enough, and a broken one breaks nothing else."""

from __future__ import annotations

import json
import sys

import pytest

from sketchshift.cli import main
from sketchshift.cli.main import ENTRY_POINTS

MODULE = '''
"""A command of somebody else."""

import click

from sketchshift.errors import DataError
from sketchshift.cli import command


@command
@click.argument("words", nargs=-1)
def count(words, out):
    """Count words."""
    if not words:
        raise DataError("there are no words. Give some.")
    out.report({"words": len(words)}, [f"{len(words)} words."], then=["demo"])


sentence = "not a command"
'''


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """Installs a package with these entry points, as pip would."""

    def install(**entry_points):
        (tmp_path / "stranger.py").write_text(MODULE, encoding="utf-8")
        (tmp_path / "broken_stranger.py").write_text("import not_there_at_all\n", encoding="utf-8")
        info = tmp_path / "stranger-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n" + "\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    for name in ("stranger", "broken_stranger"):
        sys.modules.pop(name, None)


def test_a_package_adds_a_command_with_an_entry_point(stranger, run):
    stranger(count="stranger:count")

    assert "\n  count " in run("--help").stdout
    assert main.list_commands(None)[0] == "cluster"
    assert run("count a b").stdout.splitlines() == ["2 words.", "Next: sketchshift demo"]
    assert json.loads(run("count a b --json").stdout) == {"words": 2}
    assert run.error("count") == "Error: there are no words. Give some.\n"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("broken_stranger:count", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("nowhere_at_all:count", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("stranger:nothing", "AttributeError: module 'stranger' has no attribute 'nothing'"),
        ("stranger:sentence", "it is not a command of click"),
    ],
)
def test_a_broken_command_says_so_and_breaks_no_other(stranger, run, place, reason):
    stranger(broken=place)

    assert "\n  broken " in run("--help").stdout
    expected = f"Error: the command 'broken' cannot be loaded from {place}: {reason}.\n"
    assert run.error("broken --some thing") == expected
    assert run("--version").stdout.startswith("sketchshift")


def test_no_package_replaces_a_command_of_ours(stranger, run, folder, monkeypatch):
    """Only help, and a name that is not ours, ask the packages that are installed."""
    stranger(merge="stranger:count")

    assert "Count words" not in run("merge --help").stdout
    assert main.list_commands(None).count("merge") == 1
    monkeypatch.delattr(sys.modules["sketchshift.cli.main"], "_commands_elsewhere")
    run("inspect day1.sketch")
