"""Data that changes: what to follow, where it lies, and what is kept of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchshift.live.changes import register_changes
    from sketchshift.live.cube import Cube
    from sketchshift.live.following import follow
    from sketchshift.live.monitor import watch
    from sketchshift.live.stores import storage

__all__ = ["Cube", "follow", "register_changes", "storage", "watch"]

_HOMES = {
    "Cube": "cube",
    "follow": "following",
    "register_changes": "changes",
    "storage": "stores",
    "watch": "monitor",
}
"""Names, and the modules of this room that they are imported from on first use."""


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
