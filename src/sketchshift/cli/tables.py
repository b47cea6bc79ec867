"""Tables of sketches on the command line: selected by ``--where``, added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from sketchshift.cli.files import is_table, load_any
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import Sketch, SketchTable

__all__ = ["load_sum", "load_table", "look_into", "where_option"]

F = TypeVar("F", bound=Callable[..., Any])


def where_option(function: F) -> F:
    """Add ``--where``."""
    about = "Only slices of a table of sketches: \"day >= '2026-01-05' AND shop = 'a'\"."
    return click.option("--where", metavar="CONDITION", help=about)(function)


def load_table(file: Path, where: str | None) -> SketchTable:
    """The slices of a table for which a condition holds; none of them is an error."""
    table = SketchTable.from_parquet(file, where=where)
    if not len(table):
        raise _no_slices(file, table.by, where)
    return table


def look_into(file: Path, where: str | None = None) -> tuple[Any, list[int], Sketch]:
    """Keys and numbers of rows of a table, and their sum; none of them is an error."""
    from sketchshift.sketch.stored import overview

    keys, counts, whole = overview(file, where)
    if whole is None:
        raise _no_slices(file, keys.column_names, where)
    return keys, counts, whole


def _no_slices(file: Path, by: Sequence[str], where: str | None) -> DataError:
    fact = f"no slice by {', '.join(by)} has {where}" if where else "it has no slices"
    return DataError(f"{file}: {fact}. `sketchshift inspect {file}` lists them.")


def load_sum(
    files: Sequence[Path], where: str | None = None, *, disjoint: bool = False
) -> Sketch | PrivateSketch:
    """The sketch of all rows of sketches and tables, with a few of them in memory at a time.

    Parameters
    ----------
    files : sequence of Path
        At least one; all raw or all private.
    where : str or None
        Which slices of tables count; without tables it is misuse.
    disjoint : bool
        Whether no person has rows in two of them; only private sketches have to know.

    Returns
    -------
    sketch : Sketch or PrivateSketch
        The sum, of the kind of the files.
    """
    tables = [file for file in files if is_table(file)]
    if where is not None and len(tables) < len(files):
        other = next(file for file in files if file not in tables)
        msg = f"--where selects slices of a table, and {str(other)!r} is a single sketch."
        raise click.UsageError(msg)
    parts = (look_into(file, where)[2] if file in tables else load_any(file) for file in files)
    return reduce(partial(_added, disjoint=disjoint), parts)


def _added(
    total: Sketch | PrivateSketch, part: Sketch | PrivateSketch, *, disjoint: bool
) -> Sketch | PrivateSketch:
    if isinstance(total, PrivateSketch) and isinstance(part, PrivateSketch):
        return total.merge(part, disjoint=disjoint)
    return total + part
