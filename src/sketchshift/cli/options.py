"""The flags that commands share, and what they are turned into."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click
import numpy as np
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from sketchshift.cli.command import sentence
from sketchshift.cli.output import DIALECT
from sketchshift.decoders import Decoding, decode
from sketchshift.decoders.decoder import DECODERS, Progress, summary_of
from sketchshift.decoders.objective import Box
from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.frequencies import LAWS
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.features.spec import METRICS
from sketchshift.profiling.survey import ENCODINGS, ON_MISSING, SCALES
from sketchshift.sketch import AnySketch
from sketchshift.sketch import sketch as sketch_rows

if TYPE_CHECKING:
    pass

__all__ = [
    "CLUSTERS",
    "DECODER_FLAGS",
    "KEYS",
    "LARGEST_K",
    "NAMES",
    "NUMBERS",
    "TABLE_FLAGS",
    "TEXT_FLAGS",
    "ListOption",
    "Options",
    "build_spec",
    "by_option",
    "checkpoint_option",
    "columns_option",
    "configure_decoder",
    "decoder_of",
    "decoder_option",
    "decoder_options",
    "domain_of",
    "drift_arguments",
    "drift_options",
    "list_typed",
    "on_invalid_option",
    "progress_option",
    "refuse_mixture",
    "refuse_table_flags",
    "scale_option",
    "seed_option",
    "spec_flags_typed",
    "spec_options",
    "standardize_option",
    "table_options",
    "text_options",
    "turnkey_arguments",
    "turnkey_options",
    "warm_up",
    "weights_option",
    "where_option",
]

F = TypeVar("F", bound=Callable[..., Any])


class Options:
    """Flags as a decorator: adds them in the order in which the help lists them.

    Parameters
    ----------
    *options : callable
        What ``click.option`` gives, or other groups.
    """

    def __init__(self, *options: Callable[[Any], Any]) -> None:
        self._options = options

    def __call__(self, function: F) -> F:
        """The function with these flags."""
        for option in reversed(self._options):
            function = option(function)
        return function


def option(*names: str, **settings: Any) -> Options:
    """One flag, with the arguments of ``click.option``."""
    return Options(click.option(*names, **settings))


def list_typed(ctx: click.Context, names: Iterable[str]) -> list[str]:
    """Of the parameters named, the flags that the user typed, as ``--sketch-size``."""
    source = ctx.get_parameter_source
    typed = [name for name in names if source(name) is ParameterSource.COMMANDLINE]
    return ["--" + name.replace("_", "-") for name in typed]


# The flags of a sketch spec, shared by ``plan`` and ``sketch``.
#
# Takes what click parsed; hands a :class:`~sketchshift.SketchSpec`. A spec that cannot be is
# misuse of the flags: exit status 2.


class _RegisteredName(click.ParamType):  # type: ignore[type-arg]
    """One of the names that are registered when the command runs."""

    name = "name"

    def __init__(self, registry: Mapping[str, Any]) -> None:
        self._registry = registry

    def get_metavar(self, param: Any, ctx: Any) -> str:
        return f"[{'|'.join(self._registry)}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        if value not in self._registry:
            names = ", ".join(map(repr, self._registry))
            self.fail(f"{value!r} is not one of {names}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._registry if name.startswith(incomplete)]


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
    """Keys between commas; what stands between commas in parentheses belongs to one key."""

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


class _Scale(click.ParamType):  # type: ignore[type-arg]
    """How columns of different units are made alike, in a word; or numbers that divide them."""

    name = "|".join(SCALES)

    def convert(self, value: Any, param: Any, ctx: Any) -> str | tuple[float, ...]:
        if value in SCALES or isinstance(value, tuple):
            return cast("str | tuple[float, ...]", value)
        try:
            return tuple(float(text) for text in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not one of {', '.join(SCALES)}.", param, ctx)


KEYS, NAMES, NUMBERS = _Keys(), _Names(), _Numbers()


class ListOption(click.Option):
    """An option that takes a list between commas: given twice, both lists count."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **{**settings, "multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> tuple[Any, ...]:
        """All lists as one."""
        given = super().type_cast_value(ctx, value) or ()
        return tuple(item for each in given for item in each)

    def process_value(self, ctx: click.Context, value: Any) -> tuple[Any, ...] | None:
        """None where the option is not given."""
        return super().process_value(ctx, value) or None


_POSITIVE = click.FloatRange(min=0, min_open=True)

scale_option = option(
    "--scale",
    type=_Scale(),
    default="auto",
    show_default=True,
    help="Units that differ: standard divides each column by its standard deviation, robust by the "
    "distance of its quartiles, log takes logarithms of long tails as well, none changes nothing; "
    "auto is standard if columns differ 10 times or more.",
)

_SPEC_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "bandwidth": click.option(
        "-s",
        "--bandwidth",
        type=_POSITIVE,
        help="Bandwidth of the Gaussian kernel, in the units of the data divided by --scale, which "
        "then takes numbers, one a column.",
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
        type=_RegisteredName(LAWS),
        default="gaussian",
        show_default=True,
        help="Distribution of the lengths of the frequencies.",
    ),
    "structured": click.option(
        "--structured", is_flag=True, help="Use fast Hadamard blocks; needs 64 columns or more."
    ),
    "precision": click.option(
        "--precision",
        type=click.Choice(["float32", "float64"]),
        default="float32",
        show_default=True,
        help="Precision of the phases; float64 for data far from the center.",
    ),
    "center": click.option(
        "--center",
        cls=ListOption,
        type=NUMBERS,
        help="Subtracted from each row: one number a column, 1,2,3.",
    ),
    "scale": scale_option,
}


spec_options = Options(*_SPEC_OPTIONS.values())
"""All of a spec but its columns."""


def spec_flags_typed(ctx: click.Context) -> list[str]:
    """Flags of a spec that the user typed, as ``--bandwidth``."""
    return list_typed(ctx, _SPEC_OPTIONS)


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
    low, high, scale = flags["bandwidth"], flags["bandwidth_high"], flags["scale"]
    if isinstance(scale, str):
        if scale not in ("auto", "none"):
            raise click.UsageError(f"--scale {scale} needs -k: it takes scales from the data.")
        scale = None
    plain = ("sketch_size", "seed", "law", "structured", "far_share", "precision", "center")
    try:
        return SketchSpec(
            n_features=n_features,
            bandwidth=low if high is None else (low, high),
            columns=None if columns is None else tuple(columns),
            scale=scale[0] if scale is not None and len(scale) == 1 else scale,
            **{name: flags[name] for name in plain},
        )
    except SpecError as error:
        raise click.UsageError(sentence(error)) from error


# The flags of a turnkey plan and of a pass, shared by ``plan``, ``sketch`` and ``cluster``.
#
# With ``-k`` the bandwidths and the rest come from the data; without it, from the flags of a
# spec. One spec comes from one place: other combinations are misuse.

_WITH_K = ("--sketch-size", "--seed", "--scale")


class _LargestK(click.IntRange):
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


LARGEST_K = _LargestK(1, MAX_CLUSTERS)


metric_option = option(
    "--metric",
    type=click.Choice(METRICS),
    default="euclidean",
    show_default=True,
    help="Cosine divides every row by its length first.",
)

standardize_option = option("--standardize", is_flag=True, help="The same as --scale standard.")

turnkey_options = Options(
    click.option(
        "-k",
        "--n-clusters",
        type=LARGEST_K,
        help="Plan from the data, for k clusters or fewer; no other flag is needed. m is 10·k·d "
        "unless given, and cells take their share of it.",
    ),
    standardize_option,
    click.option(
        "--cells/--no-cells",
        default=True,
        show_default=True,
        help="With -k: count rows by cells as well, or only sum waves, as the paper does.",
    ),
    metric_option,
)


def _note_dialect(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Text files are read so while the command runs."""
    if value in (None, ()):
        return
    from sketchshift.data.dialect import text_dialect

    said = ctx.meta.setdefault(DIALECT, {})
    said[str(param.name)] = value
    signs = {"tab": "\t"}
    try:
        ctx.with_resource(text_dialect(**{name: signs.get(x, x) for name, x in said.items()}))
    except ValueError as cause:
        raise click.BadParameter(str(cause), ctx, param) from cause


def _text_option(name: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(name, expose_value=False, callback=_note_dialect, **settings)


text_options = Options(
    _text_option(
        "--separator", metavar="SIGN", help="Between the cells of a text file: ';' or tab."
    ),
    _text_option("--decimal", type=click.Choice([".", ","]), help="Decimal sign of a text file."),
    _text_option(
        "--thousands", metavar="SIGN", help="Between thousands in a text file: ',', '.' or ' '."
    ),
    _text_option("--encoding", metavar="NAME", help="Of a text file: utf-8, cp1252."),
    _text_option(
        "--missing",
        cls=ListOption,
        type=NAMES,
        metavar="WORDS",
        help="Words that mean a missing value in a text file, beside the usual ones: n/k,-999.",
    ),
    _text_option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a text file has the names of the columns.",
    ),
)
"""How text files are written. Default: that is found out from each file."""

TEXT_FLAGS = ("separator", "decimal", "thousands", "encoding", "missing", "header")

columns_option = Options(
    click.option(
        "--columns",
        type=NAMES,
        metavar="NAMES",
        help="Columns to read, by name: a,b. Default: those of numbers, without identifiers.",
    ),
    text_options,
)

table_options = Options(
    columns_option,
    click.option(
        "--exclude", cls=ListOption, type=NAMES, metavar="NAMES", help="Columns to leave out: a,b."
    ),
    click.option(
        "--categories",
        cls=ListOption,
        type=NAMES,
        metavar="NAMES",
        help="Columns of text to use as categories, or all: those with at most 12 values.",
    ),
    click.option(
        "--encode",
        type=click.Choice(ENCODINGS),
        default="auto",
        show_default=True,
        help="Categories as a column of zeros and ones for each value (auto: up to 12 values), or "
        "as the share of the rows that have the value.",
    ),
    click.option(
        "--cycles",
        cls=ListOption,
        type=NAMES,
        metavar="TIMES",
        help="Times that come round: 'hour(pickup),weekday(pickup)'; also month(...).",
    ),
    click.option(
        "--where",
        metavar="CONDITION",
        help="Only some rows, or slices of a table of sketches: \"day >= '2026-01-05' AND price > "
        '0".',
    ),
)
"""Which columns and rows of a table are read."""

TABLE_FLAGS = ("columns", "exclude", "categories", "encode", "cycles", "where")

by_option = option(
    "--by",
    type=KEYS,
    metavar="NAMES",
    help="A sketch for each value of these columns; also day(time), month(time).",
)

weights_option = option(
    "--weights", metavar="COLUMN", help="Column that holds the weights of the rows."
)

where_option = option(
    "--where",
    metavar="CONDITION",
    help="Only slices of a table of sketches: \"day >= '2026-01-05' AND shop = 'a'\".",
)

on_invalid_option = option(
    "--on-invalid",
    type=click.Choice(ON_MISSING),
    default="auto",
    show_default=True,
    help="Missing values: refuse them, skip such rows, count them as the mean, or leave out "
    "columns that have many. auto skips rows, and leaves out columns where a third would go.",
)

checkpoint_option = option(
    "--checkpoint",
    metavar="PATH",
    help="Keep the sums so far in this file: after a crash, the same command goes on.",
)

progress_option = option(
    "--progress/--no-progress",
    default=None,
    help="Progress on stderr. Default: only if that is a terminal.",
)


def seed_option(about: str) -> Options:
    """The ``--seed`` of a decoder; ``about`` says what depends on it."""
    return option(
        "--seed",
        type=click.IntRange(0, 2**64 - 1),
        default=0,
        show_default=True,
        help=about,
    )


def refuse_mixture(ctx: click.Context, *, neither: str) -> None:
    """Refuse a spec from two places, or from none.

    Parameters
    ----------
    ctx : click.Context
        Of a command with the flags of a spec and those of this module.
    neither : str
        What to say when there is neither ``-k`` nor ``--bandwidth``.
    """
    params = ctx.params
    if params["n_clusters"] is not None:
        given = [flag for flag in spec_flags_typed(ctx) if flag not in _WITH_K]
        _refuse_beside("-k", given + ["--scale"] * isinstance(params["scale"], tuple))
    elif params["standardize"]:
        raise click.UsageError("--standardize needs -k. With --bandwidth, give --scale instead.")
    elif list_typed(ctx, ["cells"]):
        raise click.UsageError("--cells and --no-cells need -k: cells come from the data.")
    elif list_typed(ctx, ["metric"]):
        raise click.UsageError("--metric needs -k: the rest of the plan comes from the data.")
    elif params["bandwidth"] is None:
        raise click.UsageError(neither)


def refuse_table_flags(ctx: click.Context) -> None:
    """Refuse what only a plan from the data can use: without -k, columns are taken as they are."""
    for flag in list_typed(ctx, [name for name in TABLE_FLAGS if name not in ("columns", "where")]):
        raise click.UsageError(f"{flag} needs -k: the rest of the plan comes from the data.")


def turnkey_arguments(ctx: click.Context) -> dict[str, Any]:
    """Arguments of :func:`sketchshift.plan` that were typed."""
    params = ctx.params
    is_given = "--sketch-size" in spec_flags_typed(ctx)
    return {
        "n_clusters": params["n_clusters"],
        "sketch_size": params["sketch_size"] if is_given else None,
        "seed": params["seed"],
        "cells": params["cells"],
        "metric": params["metric"],
    }


def drift_arguments(ctx: click.Context) -> dict[str, Any]:
    """Arguments of :func:`sketchshift.drift.plan_drift` that were typed; others are refused."""
    params, typed = ctx.params, spec_flags_typed(ctx)
    others = [flag for flag in typed if flag not in _WITH_K]
    others += list_typed(ctx, ["n_clusters", "cells", "weights"])
    if others:
        msg = (
            f"give --drift or {', '.join(others)}, not both. Beside --drift go --sketch-size, "
            "--seed, --columns, --standardize and --metric."
        )
        raise click.UsageError(msg)
    given: dict[str, Any] = {"seed": params["seed"]}
    if "metric" in params:
        given["metric"] = params["metric"]
    return given | ({"sketch_size": params["sketch_size"]} if "--sketch-size" in typed else {})


def _refuse_beside(first: str, others: Sequence[str]) -> None:
    if others:
        msg = (
            f"give {first} or {', '.join(others)}, not both: {first} takes them from the data. "
            "Beside it go --sketch-size, --seed, --columns, --weights, --scale, --cells and "
            "--metric."
        )
        raise click.UsageError(msg)


# The flags that choose a decoder, and the decoder they choose.

Decode = Callable[[AnySketch, Box | None, int, Progress | None], Decoding]


class _DecoderOption(click.Option):
    """``--decoder``, whose help says in a line what each registered one is."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = " ".join(f"{name}: {summary_of(name)}" for name in DECODERS)
        return super().get_help_record(ctx)


decoder_option = option(
    "--decoder",
    cls=_DecoderOption,
    type=_RegisteredName(DECODERS),
    default="turnkey",
    show_default=True,
)

decoder_options = Options(
    click.option(
        "--max-clusters",
        type=click.IntRange(1, MAX_CLUSTERS),
        help="The largest k that -k auto looks at. Default: 20, or what a sketch can serve.",
    ),
    decoder_option,
    click.option(
        "--refine/--no-refine",
        default=True,
        show_default=True,
        help="End with a joint descent over all centroids; the paper does not, CL-OMPR always.",
    ),
    click.option(
        "--fitted-model",
        type=click.Choice(["dirac", "gaussian"]),
        default="dirac",
        show_default=True,
        help="What a cluster is while the next one is looked for.",
    ),
    click.option(
        "--starts",
        type=click.IntRange(1, 10**7),
        help="Number L of starts of each search. Default: 1000; of cl-ompr 1.",
    ),
    click.option(
        "--atoms",
        type=click.IntRange(1, 10**6),
        help="Number T of atoms looked for, of which the k heaviest are kept. Default: 2 k.",
    ),
    click.option(
        "--lower",
        cls=ListOption,
        type=NUMBERS,
        help="Where to look, in the units of the data: a number a column.",
    ),
    click.option(
        "--upper",
        cls=ListOption,
        type=NUMBERS,
        help="Default: mean plus or minus three standard deviations.",
    ),
)

DECODER_FLAGS = ("decoder", "refine", "fitted_model", "starts", "atoms", "lower", "upper", "seed")
_FIELDS = {
    "fitted_model": ("fitted_model",),
    "refine": ("refine",),
    "starts": ("n_initializations",),
    "atoms": ("n_atoms", "n_iterations"),
    "lower": ("domain",),
    "upper": ("domain",),
}
"""Fields of decoders that flags set."""

# What a decoder without the choice does anyway, and how the other is typed.
_UNCHANGED = {"fitted_model": "dirac", "refine": True}
_CHANGED = {"fitted_model": "--fitted-model gaussian", "refine": "--no-refine"}
_ON_COMMAND_LINE = {"sketch-and-shift": {"refine": True}}
"""Fields that the command line sets unless a flag says otherwise."""


class _Clusters(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
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


CLUSTERS = _Clusters()


def configure_decoder(name: str) -> Any:
    """A registered decoder, as commands use it."""
    return _with_fields(DECODERS[name](), _ON_COMMAND_LINE.get(name, {}))


def decoder_of(
    ctx: click.Context, n_clusters: int | Literal["auto"], flags: dict[str, Any]
) -> Decode:
    """The decoder that the flags describe; flags that it does not have are misuse."""
    decoder: Any = configure_decoder(flags["decoder"])
    _refuse_others(ctx, decoder, flags)
    can_choose, most = hasattr(decoder, "most_clusters"), flags["max_clusters"]
    if n_clusters == "auto" and not can_choose:
        names = [name for name, cls in DECODERS.items() if hasattr(cls, "most_clusters")]
        needs = f"-k auto needs --decoder {' or '.join(names)}."
        raise click.UsageError(f"{needs} Give the number of clusters.")
    if most is not None and can_choose and n_clusters != "auto":
        raise click.UsageError("--max-clusters goes with -k auto.")
    atoms = flags["atoms"]
    if atoms is not None and n_clusters != "auto" and atoms < n_clusters:
        msg = f"--atoms {atoms} cannot give -k {n_clusters} clusters. Give at least as many atoms."
        raise click.UsageError(msg)
    source = ctx.get_parameter_source
    typed = {
        flag: flags[flag]
        for flag in ("refine", "fitted_model", "starts", "atoms")
        if source(flag) is ParameterSource.COMMANDLINE
    }
    decoder = _with_fields(decoder, typed)

    def run(
        sketch: AnySketch, domain: Box | None, seed: int, progress: Progress | None
    ) -> Decoding:
        return decode(
            sketch,
            n_clusters,
            max_clusters=most if n_clusters == "auto" else None,
            seed=seed,
            progress=progress,
            decoder=_with_fields(decoder, {"lower": domain}),
        )

    return run


@cache
def warm_up(decoder: str) -> None:
    """Load what a decoder needs, so that the seconds told are those of the decoding alone."""
    spec = SketchSpec(n_features=2, sketch_size=50, bandwidth=1.0)
    tiny = sketch_rows(np.eye(2), spec, kernel="reference")
    quick = _with_fields(DECODERS[decoder](), {"refine": True, "starts": 1})
    quick.fit(tiny, 1).decode(1)


def _with_fields(decoder: Any, flags: Mapping[str, Any]) -> Any:
    """The decoder with the constants that flags give, where it has such fields."""
    found = {_field(decoder, flag): value for flag, value in flags.items()}
    given = {name: value for name, value in found.items() if name and value is not None}
    return replace(decoder, **given) if given else decoder


def _field(decoder: Any, flag: str) -> str | None:
    """The field of a decoder, or of its class, that a flag is about; None if it has none."""
    names = [field.name for field in fields(decoder)] if is_dataclass(decoder) else []
    return next((name for name in _FIELDS[flag] if name in names), None)


def _refuse_others(ctx: click.Context, decoder: Any, flags: dict[str, Any]) -> None:
    """Refuse flags that a decoder has no field for; of one that has some, only what changes it."""
    source = ctx.get_parameter_source
    given = [flag for flag in _FIELDS if source(flag) is ParameterSource.COMMANDLINE]
    has_any = any(_field(decoder, flag) for flag in _FIELDS)
    if has_any:
        given = [flag for flag in given if flags[flag] != _UNCHANGED.get(flag)]
    unknown = [flag for flag in given if _field(decoder, flag) is None]
    if not unknown:
        return
    name, flag = flags["decoder"], unknown[0]
    like = [flag] if has_any else list(_FIELDS)
    owners = [other for other, cls in DECODERS.items() if any(_field(cls, f) for f in like)]
    words = _CHANGED.get(flag) if has_any else None
    words = words or "--" + flag.replace("_", "-")
    ending = "needs none" if name == "turnkey" else "has no such choice"
    raise click.UsageError(f"{words} belongs to --decoder {' or '.join(owners)}; {name} {ending}.")


def domain_of(
    sketch: AnySketch, lower: tuple[float, ...] | None, upper: tuple[float, ...] | None
) -> Box | None:
    """Where to look, in the units of the data; None where it was not given."""
    if lower is None and upper is None:
        return None
    if lower is None or upper is None:
        raise click.UsageError("give --lower and --upper together.")
    d = sketch.spec.n_features
    if len(lower) != d or len(upper) != d:
        got = f"{len(lower)} and {len(upper)}"
        raise click.UsageError(f"--lower and --upper take {d} numbers, one a column. Got {got}.")
    try:
        return Box(lower, upper)  # type: ignore[arg-type]  # a Box makes arrays of them
    except SpecError as error:
        raise click.UsageError(f"--lower, --upper: {error}") from error


# The flags of ``compare`` and ``watch``.

drift_options = Options(
    click.option(
        "-k",
        "--n-clusters",
        type=CLUSTERS,
        default="auto",
        show_default=True,
        help="Number k of clusters to follow, or auto: chosen from the sketches.",
    ),
    click.option(
        "--false-alarm",
        type=click.FloatRange(1e-12, 0.5),
        default=0.01,
        show_default=True,
        help="The rate of alarms without drift; of `watch`, for the whole table.",
    ),
    click.option("--plot", metavar="PATH", help="Draw it (.png, .pdf or .svg); needs no data."),
    click.option(
        "--fail-on-drift", is_flag=True, help="Exit with status 1 if there is drift, for scripts."
    ),
    seed_option("Seed of the decoder."),
)
