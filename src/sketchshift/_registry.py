"""What rooms above the core, and other packages, add to it by entry points.

Each group names functions, which are imported once something asks for the group:

- ``sketchshift.addresses``: ``(text)`` gives the :class:`~sketchshift._paths.RemotePath` of an
  address, such as ``s3://bucket/key``;
- ``sketchshift.sources``: ``(data)`` gives a function that opens the data for a request, where the
  data is no file: a connection, a table of a lake;
- ``sketchshift.queries``: ``(data, query)`` gives what :func:`sketchshift.sketch` reads of a
  database; ``query`` is None for its only table;
- ``sketchshift.formats``: openers of files, by the ends of their names;
- ``sketchshift.states``: ``(folder)`` gives what :func:`sketchshift.load` finds in it;
- ``sketchshift.pictures``: functions that draw, by the kind of picture;
- ``sketchshift.cards``: ``(thing)`` gives the HTML that a notebook shows of it.

A function that has nothing to give for its arguments returns None.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

__all__ = ["added", "first_answer", "show_card"]


@cache
def added(group: str) -> dict[str, Any]:
    """The functions of a group by their names; one that cannot be imported is left out."""
    from importlib.metadata import entry_points  # takes a while

    found = {}
    for entry in entry_points(group=f"sketchshift.{group}"):
        try:
            found[entry.name] = entry.load()
        except Exception as error:  # whatever the import of a stranger's module may raise
            what = f"{type(error).__name__}: {error}"
            msg = f"sketchshift.{group}: {entry.name!r} ({entry.value}) is left out. {what}"
            warnings.warn(msg, stacklevel=2)
    return found


def first_answer(group: str, *arguments: Any) -> Any:
    """What the first function of a group gives that knows the arguments; else None."""
    answers = (answer(*arguments) for answer in added(group).values())
    return next((answer for answer in answers if answer is not None), None)


def show_card(thing: Any) -> str | None:
    """The HTML that a notebook shows of a thing; None shows its line of text."""
    found: str | None = first_answer("cards", thing)
    return found
