"""Data that changes: what to follow, where it lies, and what is kept of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchshift._stores import storage
    from sketchshift.live.changes import register_changes
    from sketchshift.live.cube import Cube
    from sketchshift.live.following import follow
    from sketchshift.live.monitor import watch

__all__ = ["Cube", "follow", "register_changes", "storage", "watch"]

_HOMES = {
    "Cube": "live.cube",
    "follow": "live.following",
    "register_changes": "live.changes",
    "storage": "_stores",
    "watch": "live.monitor",
}
"""Names, and the modules that they are imported from on first use."""


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"sketchshift.{_HOMES[name]}"), name)
    return found
