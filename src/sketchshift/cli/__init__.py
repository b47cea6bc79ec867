"""The command line: one file per command, and what a command of another package needs.

Nobody below imports this room. Each command imports what it needs when it runs, so that
``sketchshift --help`` answers at once.

Another package adds a command by an entry point of the group ``sketchshift.commands``: the name
of the command, and where the function is that :func:`command` was put on. That module is imported
for ``sketchshift --help`` too, so it must be light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sketchshift._writing import opened_atomically, write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.main import main
from sketchshift.cli.output import next_step, say
from sketchshift.cli.output import report as tell

if TYPE_CHECKING:
    from sketchshift.cli.progress import counting_progress

__all__ = [
    "command",
    "counting_progress",
    "main",
    "next_step",
    "opened_atomically",
    "say",
    "tell",
    "write_atomically",
]


def __getattr__(name: str) -> object:
    """Progress, which imports rich, on first use."""
    if name == "counting_progress":
        from sketchshift.cli.progress import counting_progress

        return counting_progress
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
