"""Pictures by name, drawn by the functions of the entry points ``sketchshift.pictures``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

from sketchshift._registry import added
from sketchshift.errors import MissingDependencyError

__all__ = ["draw_picture", "require_matplotlib"]


def draw_picture(
    kind: Literal["comparison", "decoding", "demo", "watch"], *arguments: Any, **options: Any
) -> Any:
    """Draw a picture with the function that is installed under its name.

    Parameters
    ----------
    kind : str
        Name of an entry point of the group ``sketchshift.pictures``.
    *arguments, **options
        Passed to its function.

    Returns
    -------
    figure : matplotlib Figure
        Needs no display.
    """
    require_matplotlib()
    return added("pictures")[kind](*arguments, **options)


def require_matplotlib() -> None:
    """Raise MissingDependencyError, which names the extra, if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        msg = 'pictures need matplotlib. Run: pip install "sketchshift[view]"'
        raise MissingDependencyError(msg)
