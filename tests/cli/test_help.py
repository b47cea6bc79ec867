"""The help: its shape, its examples, and what it costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.cli.options import keys_of
from sketchshift.data.dialect import Dialect

PROGRAM = Path(sys.executable).with_name("sketchshift")
GROUPS = {
    "Find clusters": ["cluster", "assign", "report", "demo"],
    "Keep sketches": ["sketch", "plan", "merge", "follow", "inspect"],
    "Compare and publish": ["compare", "release"],
}
COMMANDS = [command for group in GROUPS.values() for command in group]


def help_of(command):
    with main.make_context("sketchshift", [command], resilient_parsing=True) as parent:
        found = main.get_command(parent, command)
        ctx = found.make_context(command, [], parent, resilient_parsing=True)
        return found.get_help(ctx)


def examples_in(text):
    lines = text.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


EXAMPLES = [
    example
    for command in COMMANDS
    for example in examples_in(help_of(command))
    if command != "demo"  # has its own tests
]


def sections_of(text):
    """The headings that end with a colon at the margin, and the lines below each."""
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.fullmatch(r"\w[\w ]*:", line):
            lines = sections.setdefault(line[:-1], [])
        elif sections and line:
            lines.append(line)
    return sections


def test_the_commands_are_listed_by_what_people_want_to_do_a_line_each(run):
    sections = sections_of(run("--help").stdout)
    shown = {title: [line.split()[0] for line in sections[title]] for title in GROUPS}
    lines = [line for title in GROUPS for line in sections[title]]

    assert main.list_commands(None)[: len(COMMANDS)] == COMMANDS
    assert shown == GROUPS
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    assert max(map(len, lines)) <= 78


def test_options_for_experts_are_shown_on_demand(run):
    short, long = (run(f"cluster {flag}").stdout for flag in ("--help", "--help-all"))

    *_, last = sections_of(long)
    assert last == "Expert options"
    assert sections_of(long)["Options"] == sections_of(short)["Options"]
    assert "--decoder" not in short
    assert "Keys: n_atoms, n_initializations, fitted_model" in " ".join(long.split())


PAPER = ("bandwidth", "frequencies", "atom", "decoder", "fourier", "residual", "seed")


def test_everyday_options_do_not_speak_like_the_paper():
    for command in ("cluster", "assign", "merge", "compare", "sketch", "plan"):
        text = " ".join(sections_of(help_of(command))["Options"]).lower()
        assert [word for word in PAPER if word in text] == [], command


def test_every_help_has_two_or_three_examples_and_what_comes_next():
    for command in COMMANDS:
        text = help_of(command)
        examples = examples_in(text)
        assert len(examples) in (2, 3)
        assert all(example.startswith(f"sketchshift {command}") for example in examples)
        words = "Then: `sketchshift", "--json", "--help-all", "--help"
        assert [word for word in words if word not in text] == []


def test_options_and_keys_are_few():
    """Each is one that a user of its command sets; keys count once."""
    commands = [main.get_command(None, name) for name in COMMANDS]
    options = [p for each in commands for p in each.params if isinstance(p, click.Option)]
    keys = {key for name in ("sketch-and-shift", "cl-ompr") for key in keys_of(name)}

    assert len(COMMANDS) == 11
    assert len(options) + len(["--debug"]) + len(keys) + len(fields(Dialect)) <= 130


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_runs(example, folder, run):
    result = run(example)

    assert all(line.startswith("Note: ") for line in result.stderr.splitlines())
    if "--json" in example:
        json.loads(result.stdout)
    else:
        assert "Next: sketchshift " in result.stdout


def test_examples_of_the_group_run(folder, run):
    _, other = examples_in(run("--help").stdout)  # the first is the demo's
    run(other)


def test_the_version_is_that_of_the_package(run):
    assert run("--version").stdout.split()[-1] == ss.__version__


def test_help_imports_nothing_heavy():
    code = """
import sys
from sketchshift.cli import main
for words in (["--help"], ["sketch", "--help"], ["demo", "--help"], ["cluster", "--help"]):
    main(words, standalone_mode=False)
heavy = ("pyarrow", "matplotlib", "sklearn", "scipy", "rich", "narwhals")
sys.exit(", ".join(name for name in heavy if name in sys.modules) or 0)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert result.returncode == 0, result.stderr


def test_the_program_is_installed_and_its_exit_status_is_that_of_the_shell(folder):
    """Three real processes: done, failed, misuse."""
    done, failed, misuse = (
        subprocess.run([PROGRAM, *line.split()], capture_output=True, text=True)
        for line in (
            "sketch points.csv -o p.sketch --plan plan.json --json",
            "inspect nothing.sketch",
            "merge",
        )
    )

    assert [done.returncode, failed.returncode, misuse.returncode] == [0, 1, 2], done.stderr
    assert json.loads(done.stdout)["rows"] == 60
    assert done.stderr == ""  # no progress: this is not a terminal
    assert failed.stderr.startswith("Error: 'nothing.sketch' does not exist")
    assert failed.stdout == misuse.stdout == ""
