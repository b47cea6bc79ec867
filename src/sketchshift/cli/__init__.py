"""The command line: one file per command.

Nobody imports this room. Each command imports what it needs when it runs, so that
``sketchshift --help`` answers at once.
"""

from __future__ import annotations

from sketchshift.cli.main import main

__all__ = ["main"]
