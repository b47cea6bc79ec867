"""The options that commands share, and the values they are turned into."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from inspect import formatannotation
from typing import Any, Literal, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from sketchshift.cli.output import CSV, QUERY
from sketchshift.decoders.decoder import DECODERS, summary_of
from sketchshift.errors import SpecError
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.features.rows import METRICS
from sketchshift.profiling.survey import ON_MISSING, SCALES

__all__ = [
    "CLUSTERS",
    "KEYS",
    "MOST_K",
    "NAMES",
    "NUMBERS",
    "TEXT_FLAGS",
    "ListOption",
    "Options",
    "by_option",
    "columns_option",
    "configure_decoder",
    "decoder_option",
    "list_typed",
    "metric_option",
    "on_invalid_option",
    "option",
    "query_option",
    "row_options",
    "scale_option",
    "seed_option",
    "table_options",
    "weights_option",
    "where_option",
]

F = TypeVar("F", bound=Callable[..., Any])


class Options:
    """A decorator that adds options in the order in which the help lists them.

    Parameters
    ----------
    *options : callable
        Decorators of ``click.option``, or other groups.
    """

    def __init__(self, *options: Callable[[Any], Any]) -> None:
        self._options = options

    def __call__(self, function: F) -> F:
        """Return the function with these options."""
        for option in reversed(self._options):
            function = option(function)
        return function


def option(*names: str, **settings: Any) -> Options:
    """Make one option, with the arguments of ``click.option``."""
    return Options(click.option(*names, **settings))


def list_typed(ctx: click.Context, names: Iterable[str]) -> list[str]:
    """List the options that the user typed among the parameters named, as ``--on-invalid``."""
    source = ctx.get_parameter_source
    typed = [name for name in names if source(name) is ParameterSource.COMMANDLINE]
    return ["--" + name.replace("_", "-") for name in typed]


# Types of values.


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


class _Keys(_Names):
    """Keys between commas; commas within parentheses belong to one key."""

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        keys: list[str] = []
        for name in super().convert(value, param, ctx):
            if keys and keys[-1].count("(") > keys[-1].count(")"):
                keys[-1] += f", {name}"
            else:
                keys.append(name)
        return tuple(keys)


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


class _Clusters(click.ParamType):  # type: ignore[type-arg]
    """A number of clusters, or "auto"."""

    name = "integer|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} must be a whole number or auto.", param, ctx)
        number: int = click.IntRange(1, MAX_CLUSTERS).convert(value, param, ctx)
        return number

    def get_missing_message(self, param: Any, ctx: Any) -> str:
        return "Give the number of clusters, or -k auto."


class _MostClusters(click.IntRange):
    """The largest number of clusters that a plan should serve."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "auto":
            msg = "a plan needs a number: the most clusters there may be, such as 20."
            self.fail(msg, param, ctx)
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} must be a whole number.", param, ctx)
        return super().convert(value, param, ctx)


class FiniteRange(click.FloatRange):
    """A number in a range, and neither infinite nor NaN."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


MOST_K = _MostClusters(1, MAX_CLUSTERS)
CLUSTERS, KEYS, NAMES, NUMBERS = _Clusters(), _Keys(), _Names(), _Numbers()


class ListOption(click.Option):
    """An option that takes a list between commas; repeated options are joined."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **{**settings, "multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> tuple[Any, ...]:
        """Join the lists."""
        given = super().type_cast_value(ctx, value) or ()
        return tuple(item for each in given for item in each)

    def process_value(self, ctx: click.Context, value: Any) -> tuple[Any, ...] | None:
        """Return None where the option is not given."""
        return super().process_value(ctx, value) or None


# How text files are written.


def _set_dialect(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    ctx.meta[CSV] = value
    if value:
        from sketchshift.data.dialect import text_dialect

        try:
            ctx.with_resource(text_dialect(**_parse_dialect(value)))
        except ValueError as cause:
            raise click.BadParameter(str(cause), ctx, param) from cause


def _parse_dialect(items: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``text_dialect`` that ``KEY=VALUE`` items set."""
    from sketchshift.data.dialect import Dialect

    keys = [field.name for field in fields(Dialect)]
    given: dict[str, Any] = {}
    for item in items:
        short, sign, text = item.partition("=")
        found = [key for key in keys if short and key.startswith(short)]
        if not sign or not found:
            raise ValueError(f"{item!r} must be KEY=VALUE, with a key of {', '.join(keys)}.")
        key = found[0]
        if key == "header":
            given[key] = _read_value("header", "bool", text)
        elif key == "missing":
            given[key] = [*given.get(key, ()), text]
        else:
            given[key] = "\t" if text == "tab" else text
    return given


csv_option = option(
    "--csv",
    multiple=True,
    metavar="KEY=VALUE",
    expose_value=False,
    callback=_set_dialect,
    hidden=True,
    help="How text files are written, where that is not found out: separator=';' (or tab), "
    "decimal=',', encoding=cp1252, missing=n/k (a word for a missing value), "
    "header=false. Repeatable; sep=';' is short for separator=';'.",
)

TEXT_FLAGS = ("csv",)


def _set_query(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[QUERY] = value


query_option = option(
    "--query",
    metavar="SQL",
    expose_value=False,
    callback=_set_query,
    help="Of a database: a SELECT, or the name of a table. Default: its only table.",
)


# Which columns and rows of a table are read.

columns_option = Options(
    click.option(
        "--columns",
        type=NAMES,
        metavar="NAMES",
        help="Columns to read, by name: a,b. Default: those of numbers, without identifiers.",
    ),
    csv_option,
)

row_options = Options(
    columns_option,
    click.option(
        "--where",
        metavar="CONDITION",
        help="Only some rows, or slices of a table of sketches: \"day >= '2026-01-05' AND price > "
        '0".',
    ),
)

table_options = Options(
    row_options,
    click.option(
        "--exclude", cls=ListOption, type=NAMES, metavar="NAMES", help="Columns to leave out: a,b."
    ),
    click.option(
        "--categories",
        cls=ListOption,
        type=NAMES,
        metavar="NAMES",
        help="Columns of text to use as categories, or all: those with at most 12 values. Also "
        "times that come round: 'hour(pickup),weekday(pickup),month(day)'.",
    ),
)

where_option = option(
    "--where",
    metavar="CONDITION",
    help="Only slices of a table of sketches: \"day >= '2026-01-05' AND shop = 'a'\".",
)

by_option = option(
    "--by",
    cls=ListOption,
    type=KEYS,
    metavar="NAMES",
    help="A sketch for each value of these columns; also day(time), month(time).",
)

weights_option = option(
    "--weights", metavar="COLUMN", help="Column that holds the weights of the rows."
)

scale_option = option(
    "--scale",
    type=click.Choice(SCALES),
    default="auto",
    show_default=True,
    help="Units that differ: standard divides each column by its standard deviation, robust by the "
    "distance of its quartiles, log takes logarithms of long tails as well, none changes nothing; "
    "auto is standard if columns differ 10 times or more.",
)

metric_option = option(
    "--metric",
    type=click.Choice(METRICS),
    default="euclidean",
    show_default=True,
    help="Cosine divides every row by its length first.",
)

on_invalid_option = option(
    "--on-invalid",
    type=click.Choice(ON_MISSING),
    default="auto",
    show_default=True,
    help="Missing values: refuse them, skip such rows, count them as the mean, or leave out "
    "columns that have many. auto skips rows, and leaves out columns where a third would go.",
)


def seed_option(about: str) -> Options:
    """Make a ``--seed``; ``about`` says what depends on it."""
    return option(
        "--seed",
        type=click.IntRange(0, 2**64 - 1),
        default=0,
        show_default=True,
        hidden=True,
        help=about,
    )


# Decoders: NAME, or NAME:key=value,key=value.


class _DecoderText(click.ParamType):  # type: ignore[type-arg]
    """A registered decoder with the constants that are set; the value stays text."""

    name = "decoder"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            configure_decoder(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in DECODERS if name.startswith(incomplete)]


class _DecoderOption(click.Option):
    """``--decoder``, whose help has a sentence and the keys of each registered decoder."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        told = ((name, summary_of(name), ", ".join(keys_of(name))) for name in DECODERS)
        self.help = " ".join(
            f"{name}: {about}{f' Keys: {keys}.' if keys else ''}" for name, about, keys in told
        )
        return super().get_help_record(ctx)


decoder_option = option(
    "--decoder",
    cls=_DecoderOption,
    type=_DecoderText(),
    metavar="NAME[:KEY=VALUE,...]",
    default="turnkey",
    show_default=True,
    hidden=True,
)


def keys_of(name: str) -> dict[str, str]:
    """Return the constants of a decoder that can be typed, with their types; turnkey has none."""
    cls = DECODERS[name]
    if name == "turnkey" or not is_dataclass(cls):
        return {}
    kinds = {f.name: formatannotation(f.type).strip("'") for f in fields(cls)}
    return {key: kind for key, kind in kinds.items() if _READ.keys() & kind.split(" | ")}


def configure_decoder(text: str) -> Any:
    """Make the decoder that ``NAME:key=value,key=value`` describes.

    Parameters
    ----------
    text : str
        Name of a registered decoder, and values for fields of its dataclass.

    Returns
    -------
    decoder : Decoder
        Raises ValueError for an unknown name, key or value.
    """
    name, _, rest = text.partition(":")
    if name not in DECODERS:
        raise ValueError(f"{name!r} is not one of {', '.join(map(repr, DECODERS))}.")
    kinds = keys_of(name)
    decoder: Any = DECODERS[name]()
    given: dict[str, Any] = {}
    for item in rest.split(",") if rest else ():
        key, sign, value = item.partition("=")
        if not sign or key not in kinds:
            known = f"the keys of {name} are {', '.join(kinds)}" if kinds else f"{name} has no keys"
            raise ValueError(f"{item!r} must be KEY=VALUE: {known}.")
        given[key] = _read_value(key, kinds[key], value)
    return replace(decoder, **given) if given else decoder


_READ: Mapping[str, Callable[[str], Any]] = {
    "bool": {"true": True, "false": False}.__getitem__,
    "int": int,
    "float": float,
    "str": str,
}


def _read_value(key: str, kind: str, text: str) -> Any:
    """Read a text as a value of an annotation such as ``int | None``."""
    read = next(_READ[each] for each in kind.split(" | ") if each in _READ)
    try:
        return read(text)
    except (KeyError, ValueError):
        must = "true or false" if kind == "bool" else f"of type {kind}"
        raise SpecError(f"{key} must be {must}. Got {text!r}.") from None
