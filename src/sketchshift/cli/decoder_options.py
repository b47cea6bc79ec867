"""The flags that choose a decoder, and the decoder they choose."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar

import click
import numpy as np
from click.core import ParameterSource

from sketchshift.cli.spec_options import NUMBERS
from sketchshift.decoders import ClOmpr, Decoding, SketchAndShift, decode
from sketchshift.decoders.base import MAX_CLUSTERS
from sketchshift.decoders.decoding import Progress
from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec
from sketchshift.objective import Box
from sketchshift.sketch import AnySketch
from sketchshift.sketch import sketch as sketch_rows

__all__ = ["CLUSTERS", "DECODER_FLAGS", "decoder_of", "decoder_options", "domain_of", "warm_up"]

F = TypeVar("F", bound=Callable[..., Any])
Decode = Callable[[AnySketch, Box | None, int, Progress | None], Decoding]

_OPTIONS = (
    click.option(
        "--max-clusters",
        type=click.IntRange(1, MAX_CLUSTERS),
        help="The largest k that -k auto looks at. Default: 20, or what a sketch can serve.",
    ),
    click.option(
        "--decoder",
        type=click.Choice(["turnkey", "sketch-and-shift", "cl-ompr"]),
        default="turnkey",
        show_default=True,
        help="Nothing to tune; Algorithm 2 of the paper; or its rival.",
    ),
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
        type=NUMBERS,
        help="Where to look, in the units of the data: a number a column.",
    ),
    click.option(
        "--upper", type=NUMBERS, help="Default: mean plus or minus three standard deviations."
    ),
)

DECODER_FLAGS = ("decoder", "refine", "fitted_model", "starts", "atoms", "lower", "upper", "seed")
_ONLY_PAPER = ("refine", "fitted_model", "starts", "atoms", "lower", "upper")


def decoder_options(function: F) -> F:
    """Add the flags."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


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


def decoder_of(
    ctx: click.Context, n_clusters: int | Literal["auto"], flags: dict[str, Any]
) -> Decode:
    """The decoder that the flags describe; flags that it does not have are misuse."""
    if flags["decoder"] == "turnkey":
        source = ctx.get_parameter_source
        given = [name for name in _ONLY_PAPER if source(name) is ParameterSource.COMMANDLINE]
        if given:
            flag = "--" + given[0].replace("_", "-")
            msg = f"{flag} belongs to --decoder sketch-and-shift or cl-ompr; turnkey needs none."
            raise click.UsageError(msg)
        most = flags["max_clusters"]
        if most is not None and n_clusters != "auto":
            raise click.UsageError("--max-clusters goes with -k auto.")
        return lambda sketch, domain, seed, progress: decode(
            sketch, n_clusters, max_clusters=most, seed=seed, progress=progress
        )
    if n_clusters == "auto":
        raise click.UsageError("-k auto needs --decoder turnkey. Give the number of clusters.")
    decoder = _paper_decoder(n_clusters, flags)
    return lambda sketch, domain, seed, progress: decoder(
        sketch, n_clusters, domain=domain, seed=seed, progress=progress
    )


@cache
def warm_up(decoder: str) -> None:
    """Load what a decoder needs, so that the seconds told are those of the decoding alone."""
    spec = SketchSpec(n_features=2, sketch_size=50, bandwidth=1.0)
    tiny = sketch_rows(np.eye(2), spec, kernel="reference")
    if decoder == "turnkey":
        decode(tiny, 1)
    else:
        SketchAndShift(n_initializations=1, refine=True)(tiny, 1)


def _paper_decoder(n_clusters: int, flags: dict[str, Any]) -> SketchAndShift | ClOmpr:
    starts, atoms = flags["starts"], flags["atoms"]
    if atoms is not None and atoms < n_clusters:
        msg = f"--atoms {atoms} cannot give -k {n_clusters} clusters. Give at least as many atoms."
        raise click.UsageError(msg)
    if flags["decoder"] == "sketch-and-shift":
        n_starts = {} if starts is None else {"n_initializations": starts}
        refine, fitted_model = flags["refine"], flags["fitted_model"]
        return SketchAndShift(n_atoms=atoms, fitted_model=fitted_model, refine=refine, **n_starts)
    if flags["fitted_model"] != "dirac" or not flags["refine"]:
        flag = "--no-refine" if flags["fitted_model"] == "dirac" else "--fitted-model gaussian"
        msg = f"{flag} belongs to --decoder sketch-and-shift; cl-ompr has no such choice."
        raise click.UsageError(msg)
    return ClOmpr(n_iterations=atoms, n_initializations=1 if starts is None else starts)


def domain_of(
    sketch: AnySketch, lower: tuple[float, ...] | None, upper: tuple[float, ...] | None
) -> Box | None:
    """Where to look, in the units of the data; None where it was not said."""
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
