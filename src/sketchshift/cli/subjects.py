"""What ``report`` and ``explore`` look at: one sketch, or one table of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sketchshift.cli.files import is_table, sketch_files
from sketchshift.cli.tables import load_sum, load_table

if TYPE_CHECKING:
    from sketchshift.report import Subject

__all__ = ["load_subject"]


def load_subject(file: str, where: str | None = None) -> Subject:
    """Read a sketch or a table of sketches; anything else is misuse.

    Parameters
    ----------
    file : str
        As the user typed it.
    where : str or None
        Which slices of a table count.

    Returns
    -------
    subject : Subject
        Under that name.
    """
    from sketchshift.report import Subject

    found = sketch_files([file])
    if len(found) > 1:
        msg = f"{file!r} means {len(found)} files. Merge them first, with `sketchshift merge`."
        raise click.UsageError(msg)
    path = found[0]
    given = load_table(path, where) if is_table(path) else load_sum([path], where)
    return Subject.of(file, path.stat().st_size, given)
