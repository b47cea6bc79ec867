"""The command line: one file per command, and what a command of another package needs.

Nobody below imports this room. Each command imports what it needs when it runs, so that
``sketchshift --help`` answers at once.

Another package adds a command by an entry point of the group ``sketchshift.commands``: the name
of the command, and where the function is that :func:`command` was put on. That module is imported
for ``sketchshift --help`` too, so it must be light.
"""

from __future__ import annotations

from sketchshift._writing import opened_atomically, write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.main import main
from sketchshift.cli.output import Output, note, show_progress

__all__ = [
    "Output",
    "command",
    "main",
    "note",
    "opened_atomically",
    "show_progress",
    "write_atomically",
]
