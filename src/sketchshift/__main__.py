"""``python -m sketchshift``: the same as the ``sketchshift`` command."""

from __future__ import annotations

from sketchshift.cli import main

main()
