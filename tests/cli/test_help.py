"""The help: its shape, its examples, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sketchshift as ss
from sketchshift.cli import main

PROGRAM = Path(sys.executable).with_name("sketchshift")
COMMANDS = [
    "demo",
    "plan",
    "private-plan",
    "sketch",
    "merge",
    "subtract",
    "release",
    "inspect",
    "cluster",
    "report",
    "explore",
    "assign",
    "certify",
    "compare",
    "watch",
    "monitor",
    "data",
    "reproduce",
]


def help_of(command: str) -> str:
    with main.make_context("sketchshift", [command], resilient_parsing=True) as parent:
        found = main.get_command(parent, command)
        ctx = found.make_context(command, [], parent, resilient_parsing=True)
        return found.get_help(ctx)


def examples_in(text: str) -> list[str]:
    lines = text.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


EXAMPLES = [example for command in COMMANDS for example in examples_in(help_of(command))]


def test_the_commands_are_listed_in_the_order_of_use(run):
    text = run("--help").stdout

    assert main.list_commands(None) == COMMANDS
    assert [text.index(f"\n  {name} ") for name in COMMANDS] == sorted(
        text.index(f"\n  {name} ") for name in COMMANDS
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_two_examples_and_what_comes_next(command):
    text = help_of(command)

    assert len(examples_in(text)) == 2
    assert all(example.startswith(f"sketchshift {command}") for example in examples_in(text))
    assert "Then: `sketchshift" in text
    assert all(option in text for option in ("--json", "--debug", "--help"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_runs(example, folder, run):
    result = run(example)

    assert result.stderr == ""
    if "--json" in example:
        json.loads(result.stdout)
    else:
        assert "Next: sketchshift " in result.stdout


def test_examples_of_the_group_run(folder, run):
    examples = examples_in(run("--help").stdout)

    assert len(examples) == 2
    run(examples[1])  # the first is the demo's


def test_the_version_is_that_of_the_package(run):
    assert run("--version").stdout.split()[-1] == ss.__version__


@pytest.mark.parametrize(
    "arguments", [["--help"], ["sketch", "--help"], ["demo", "--help"], ["cluster", "--help"]]
)
def test_help_imports_nothing_heavy(arguments):
    code = f"""
import sys
from sketchshift.cli import main
main({arguments!r}, standalone_mode=False)
heavy = ("pyarrow", "matplotlib", "sklearn", "scipy", "rich", "narwhals")
sys.exit(", ".join(name for name in heavy if name in sys.modules) or 0)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert result.returncode == 0, result.stderr


def test_the_program_is_installed_and_its_exit_status_is_that_of_the_shell(folder):
    """Three real processes: done, failed, misuse."""

    def run_program(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)

    done = run_program("sketch", "points.csv", "-o", "p.sketch", "--plan", "plan.json", "--json")
    failed = run_program("inspect", "nothing.sketch")
    misuse = run_program("merge")

    assert [done.returncode, failed.returncode, misuse.returncode] == [0, 1, 2], done.stderr
    assert json.loads(done.stdout)["rows"] == 60
    assert done.stderr == ""  # no progress: this is not a terminal
    assert failed.stderr.startswith("Error: 'nothing.sketch' does not exist")
    assert failed.stdout == misuse.stdout == ""
