"""The flags of a sketch spec, shared by ``plan`` and ``sketch``.

Takes what click parsed; hands a :class:`~sketchshift.SketchSpec`. A spec that cannot be is
misuse of the flags: exit status 2.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec, Tilt
from sketchshift.features.frequencies import LAWS

__all__ = [
    "NAMES",
    "NUMBERS",
    "build_spec",
    "columns_option",
    "flags_given",
    "schema_of",
    "spec_options",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Names(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """Column names between commas; a name that holds a comma goes in double quotes."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        try:
            names = tuple(next(csv.reader([value], skipinitialspace=True), []))
        except csv.Error:  # a line break outside of double quotes
            names = ()
        if not names or "" in names:
            self.fail(f"{value!r} must be column names between commas, as in a,b.", param, ctx)
        return names


class _Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers between commas."""

    name = "numbers"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(text) for text in value.split(","))
        except ValueError:
            self.fail(f"{value!r} must be numbers between commas, as in 0.5,-2.", param, ctx)


NAMES, NUMBERS = _Names(), _Numbers()
_POSITIVE = click.FloatRange(min=0, min_open=True)

_OPTIONS = {
    "bandwidth": click.option(
        "-s",
        "--bandwidth",
        type=_POSITIVE,
        help="Bandwidth of the Gaussian kernel, in the units of the data (divided by --scale).",
    ),
    "bandwidth_high": click.option(
        "--bandwidth-high",
        type=_POSITIVE,
        help="Upper end of a range of bandwidths that starts at --bandwidth, log-uniform.",
    ),
    "far_share": click.option(
        "--far-share",
        type=click.FloatRange(0, 1),
        default=0.0,
        show_default=True,
        help="With a range: share of frequencies with bandwidths up to 100 times beyond it.",
    ),
    "sketch_size": click.option(
        "-m",
        "--sketch-size",
        type=click.IntRange(min=1),
        default=1000,
        show_default=True,
        help="Number m of frequencies; about 10·k·d is a good start for k clusters.",
    ),
    "seed": click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of the frequencies. Sketches merge only if it is the same.",
    ),
    "law": click.option(
        "--law",
        type=click.Choice(list(LAWS)),
        default="gaussian",
        show_default=True,
        help="Law of the length of the frequencies.",
    ),
    "structured": click.option(
        "--structured", is_flag=True, help="Fast Hadamard blocks; for 64 columns or more."
    ),
    "precision": click.option(
        "--precision",
        type=click.Choice(["float32", "float64"]),
        default="float32",
        show_default=True,
        help="Of the phases; float64 for data far from the center.",
    ),
    "center": click.option(
        "--center", type=NUMBERS, help="Subtracted from each row: one number a column, 1,2,3."
    ),
    "scale": click.option(
        "--scale", type=NUMBERS, help="Divides each row: one number, or one a column."
    ),
    "tilt_radius": click.option(
        "--tilt-radius",
        type=_POSITIVE,
        help="Weigh far rows more: min(cap, 1/2 + |x'|²/(2 radius²)).",
    ),
    "tilt_cap": click.option(
        "--tilt-cap",
        type=click.FloatRange(1, 65536),
        default=16.0,
        show_default=True,
        help="The largest weight of a tilt.",
    ),
}


def spec_options(function: F) -> F:
    """Add the flags of a spec, all but its columns."""
    for option in reversed(_OPTIONS.values()):
        function = option(function)
    return function


def columns_option(function: F) -> F:
    """Add ``--columns``."""
    about = "Columns to read, by name: a,b. Default: all but the weights."
    return click.option("--columns", type=NAMES, metavar="NAMES", help=about)(function)


def flags_given(ctx: click.Context) -> list[str]:
    """Flags of a spec that the user typed, as ``--bandwidth``."""
    source = ctx.get_parameter_source
    given = [name for name in _OPTIONS if source(name) is ParameterSource.COMMANDLINE]
    return ["--" + name.replace("_", "-") for name in given]


def build_spec(
    flags: Mapping[str, Any], *, n_features: int, columns: Sequence[str] | None
) -> SketchSpec:
    """The spec that the flags describe.

    Parameters
    ----------
    flags : mapping
        Values of :func:`spec_options` by parameter name; the bandwidth is not None.
    n_features : int
        Dimension d.
    columns : sequence of str or None
        Names of the columns.

    Returns
    -------
    spec : SketchSpec
        What cannot be a spec is a :class:`click.UsageError`.
    """
    if flags["tilt_radius"] is None and flags["tilt_cap"] != 16.0:
        raise click.UsageError("--tilt-cap needs --tilt-radius.")
    low, high, scale = flags["bandwidth"], flags["bandwidth_high"], flags["scale"]
    plain = ("sketch_size", "seed", "law", "structured", "far_share", "precision", "center")
    try:
        radius = flags["tilt_radius"]
        return SketchSpec(
            n_features=n_features,
            bandwidth=low if high is None else (low, high),
            columns=None if columns is None else tuple(columns),
            scale=scale[0] if scale is not None and len(scale) == 1 else scale,
            tilt=None if radius is None else Tilt(radius, flags["tilt_cap"]),
            **{name: flags[name] for name in plain},
        )
    except SpecError as error:
        raise click.UsageError(str(error)) from error


def schema_of(
    file: Path,
    columns: Sequence[str] | None,
    weights: str | None,
    by: tuple[str, ...] | None = None,
) -> tuple[int, tuple[str, ...] | None]:
    """Number and names of the columns of a file, all but the weights and the keys."""
    from sketchshift.data import open_source

    source = open_source(file, columns=columns, weights=weights, keys=by)
    return source.n_features, source.columns
