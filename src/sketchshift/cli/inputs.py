"""What ``cluster`` is given: sketches or tables of them, to be merged, or data to be read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from click.core import ParameterSource

from sketchshift.cli.facts import counted, rows_in_words, say
from sketchshift.cli.files import check_output, data_files, has_magic, is_table, sketch_files
from sketchshift.cli.spec_options import columns_option
from sketchshift.cli.tables import load_sum, where_option
from sketchshift.cli.turnkey_options import checkpoint_option, on_invalid_option
from sketchshift.errors import DataError
from sketchshift.features.plan import planned_clusters
from sketchshift.sketch import AnySketch

__all__ = ["OF_DATA", "Inputs", "for_clusters", "input_options"]

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=AnySketch)

AUTO = 20  # clusters that data is planned for with -k auto
OF_DATA = (
    "columns",
    "weights",
    "standardize",
    "sketch_size",
    "on_invalid",
    "checkpoint",
    "save_sketch",
)
"""Flags that a sketch does not take."""


def input_options(function: F) -> F:
    """Add the flags that say how data is read."""
    options = (
        where_option,
        columns_option,
        click.option("--weights", metavar="COLUMN", help="Column of the weights of the rows."),
        click.option(
            "--standardize", is_flag=True, help="A scale for each column, if units differ."
        ),
        click.option(
            "-m",
            "--sketch-size",
            type=click.IntRange(min=1),
            help="Number m of frequencies. Default: 10·k·d.",
        ),
        on_invalid_option,
        checkpoint_option,
        click.option(
            "--save-sketch", metavar="PATH", help="Keep the sketch of the data, for other k."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


class Inputs:
    """Files on the command line, either all sketches and tables of them, or all data.

    Parameters
    ----------
    ctx : click.Context
        Of a command with :func:`input_options`.
    paths : sequence of str
        Files, folders of data, and quoted globs.
    """

    def __init__(self, ctx: click.Context, paths: Sequence[str]) -> None:
        self._params = ctx.params
        self.is_data, self.files = _files(paths)
        if not self.is_data:
            source = ctx.get_parameter_source
            given = [name for name in OF_DATA if source(name) is ParameterSource.COMMANDLINE]
            if given:
                flag = "--" + given[0].replace("_", "-")
                msg = f"{flag} says how data is read, and {str(self.files[0])!r} is a sketch."
                raise click.UsageError(msg)
        elif self._params["where"] is not None:
            msg = (
                f"--where selects slices of a table of sketches, and {str(self.files[0])!r} is "
                "data. Write such a table with `sketchshift sketch --by`."
            )
            raise click.UsageError(msg)
        saved = self._params["save_sketch"]
        self.saved = None if saved is None else check_output(saved, self.files)

    @property
    def paths(self) -> list[Path]:
        """What is read, and what is written beside the result."""
        return [*self.files, *([] if self.saved is None else [self.saved])]

    def sketch(
        self, n_clusters: int | Literal["auto"], progress: bool | None, checkpoint: Path | None
    ) -> AnySketch:
        """The sketch of all rows; data is planned for and read once, from a checkpoint on."""
        if not self.is_data:
            return for_clusters(load_sum(self.files, self._params["where"]), n_clusters)
        from sketchshift.cli.progress import reading_progress
        from sketchshift.sketch import sketch

        params = self._params
        most = params["max_clusters"] or AUTO
        with reading_progress("Reading", show=progress) as advance:
            result = sketch(
                self.files,
                n_clusters=most if n_clusters == "auto" else n_clusters,
                sketch_size=params["sketch_size"],
                seed=params["seed"],
                standardize=params["standardize"],
                columns=params["columns"],
                sample_weight=params["weights"],
                on_invalid=params["on_invalid"],
                progress=advance,
                checkpoint=checkpoint,
            )
        result = _with_enough_rows(result, n_clusters)
        if self.saved is not None:
            result.save(self.saved)
        return result


def for_clusters(sketch: S, n_clusters: int | Literal["auto"]) -> S:
    """The sketch; more clusters than it was planned for are noted, more than rows an error."""
    planned = planned_clusters(sketch.spec)
    if planned is not None and n_clusters != "auto" and n_clusters > planned:
        msg = (
            f"Note: this sketch was planned for {counted(planned, 'cluster')} (m / (10 d)); "
            f"{n_clusters:,} may be inaccurate. Sketch the data again with -k {n_clusters}."
        )
        say(msg, err=True)
    return _with_enough_rows(sketch, n_clusters)


def _with_enough_rows(sketch: S, n_clusters: int | Literal["auto"]) -> S:
    """The sketch; one of fewer rows than clusters is an error."""
    if n_clusters != "auto" and sketch.count < n_clusters:
        msg = (
            f"there are {rows_in_words(sketch)}, too few for {n_clusters} clusters. Ask for fewer "
            "with -k, or give more data."
        )
        raise DataError(msg)
    return sketch


def _files(paths: Sequence[str]) -> tuple[bool, list[Path]]:
    """Whether the paths are data, and the files they mean."""
    folders = [path for path in paths if Path(path).expanduser().is_dir()]
    others = sketch_files([path for path in paths if path not in folders])
    sketches = [file for file in others if _is_sketch(file)]
    if folders or len(sketches) < len(others):
        if sketches:
            first = folders[0] if folders else next(f for f in others if f not in sketches)
            msg = (
                f"{str(sketches[0])!r} is a sketch and {str(first)!r} is data. Give one kind: "
                "`sketchshift sketch` makes a sketch of data with a --plan, to be merged."
            )
            raise click.UsageError(msg)
        return True, data_files(paths)
    return False, others


def _is_sketch(file: Path) -> bool:
    """A file that says so, or that no reader of data would know."""
    from sketchshift.data.files import KNOWN_SUFFIXES

    is_known = file.name.lower().endswith(KNOWN_SUFFIXES)
    return not is_known or has_magic(file) or is_table(file)
