"""``sketchshift cluster``: from data or sketches to clusters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import click
from click.core import ParameterSource

from sketchshift.cli.command import command
from sketchshift.cli.inputs import OF_DATA, Inputs, input_options
from sketchshift.cli.options import (
    CLUSTERS,
    DECODER_FLAGS,
    NAMES,
    checkpointed,
    decoder_of,
    decoder_options,
    domain_of,
    warm_up,
)
from sketchshift.cli.output import (
    Targets,
    between_commas,
    choice_facts,
    choice_in_words,
    cluster_facts,
    cluster_table,
    column_names,
    counted,
    left_out,
    next_step,
    report,
    rows_in_words,
    say,
    sketch_facts,
)
from sketchshift.decoders import Decoding, Outcome
from sketchshift.sketch import AnySketch

__all__ = ["cluster"]


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    required=True,
    help="Number k of clusters, or auto: chosen from the sketch.",
)
@click.option("-o", "--output", metavar="PATH", help="Write them (.csv, .json or .parquet).")
@click.option("--plot", metavar="PATH", help="Draw them (.png, .pdf or .svg); needs no data.")
@click.option(
    "--plot-columns",
    type=NAMES,
    metavar="A,B",
    help="Two columns, by name or position, to draw them over. Default: the main axes.",
)
@input_options
@decoder_options
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    help="Seed of the starts. The same sketch and seed give the same centroids.",
)
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress on stderr. Default: only if that is a terminal.",
)
@click.pass_context
def cluster(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    n_clusters: int | Literal["auto"],
    output: str | None,
    plot: str | None,
    plot_columns: tuple[str, ...] | None,
    progress: bool | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Find k clusters: of data, read once, or of sketches, without the data.

    INPUT is data ({formats} files, folders, quoted globs), which is
    planned for and read once, block by block; or sketches that `sketchshift sketch` wrote,
    which are merged first. Centroids are in the units of the data, heaviest first, numbered
    from 0; shares are those of the rows.

    Examples
    --------
      sketchshift cluster points.csv -k auto -o centroids.csv
      sketchshift cluster 'day*.sketch' -k 3 --plot clusters.png

    Then: `sketchshift cluster week.sketch -k 4`, to compare: a sketch serves any smaller k.
    """
    from sketchshift.cli.progress import decoding_progress

    given = Inputs(ctx, inputs)
    targets = Targets.of(output, plot, plot_columns, given.files)
    decode = decoder_of(ctx, n_clusters, flags)
    with checkpointed(flags["checkpoint"], [*given.paths, *targets.paths]) as checkpoint:
        sketch = given.sketch(n_clusters, progress, checkpoint)
        targets.check_columns(sketch)
        domain = domain_of(sketch, flags["lower"], flags["upper"])
        with decoding_progress("Decoding", show=progress) as advance:
            warm_up(flags["decoder"])
            start = time.perf_counter()
            decoding = decode(sketch, domain, flags["seed"], advance)
            seconds = time.perf_counter() - start
        targets.write(sketch, decoding)
    facts = {
        "command": "cluster",
        "inputs": [str(file) for file in given.files],
        "output": output,
        "plot": plot,
        "n_clusters": n_clusters,
        "decoder": {name: flags[name] for name in DECODER_FLAGS},
        "seconds": seconds,
        "residual_norm": decoding.residual_norm,
        "outcome": decoding.outcome.name,
        "sentence": str(decoding.outcome),
        "curve": choice_facts(decoding.curve),
        "clusters": cluster_facts(decoding),
    } | sketch_facts(sketch, sketch.nbytes)
    choice = choice_in_words(decoding.curve, sketch.spec, is_data=given.is_data)
    lines = [*_story(sketch, decoding, seconds, choice), *targets.lines(), _next(ctx, given)]
    report(facts, lines, as_json=as_json)
    if decoding.outcome is not Outcome.COMPLETE:
        say(f"Warning: {_found(decoding)} of {n_clusters}. {decoding.outcome}", err=True)


def _story(
    sketch: AnySketch, decoding: Decoding, seconds: float, choice: Sequence[str]
) -> list[str]:
    rows, columns = rows_in_words(sketch), counted(sketch.spec.n_features, "column")
    return [
        f"{_found(decoding)} in {rows} x {columns}{left_out(sketch)}, decoded from "
        f"{sketch.nbytes:,} bytes in {seconds:.2f} s.",
        "",
        *cluster_table(decoding, column_names(sketch.spec)),
        "",
        *choice,
        f"Residual norm {decoding.residual_norm:.3g} of the sketch's: 0 if the clusters were "
        "all there is.",
        str(decoding.outcome),
    ]


def _found(decoding: Decoding) -> str:
    return counted(len(decoding.weights), "cluster")


def _next(ctx: click.Context, given: Inputs) -> str:
    """The same command, with what was not asked for yet; of a sketch that was kept, if any."""
    params = ctx.params
    output, kept = params["output"], params["save_sketch"]
    if output is None:
        more = ["-o", "centroids.csv"]
    elif params["plot"] is None:
        more = ["--plot", "clusters.png"]
    elif given.is_data and kept is None:
        return next_step("assign", *params["inputs"], "--centroids", output, "-o", "labels.parquet")
    else:
        return next_step("inspect", kept or given.files[0])
    inputs, passed = (params["inputs"], ()) if kept is None else ((kept,), OF_DATA)
    words = ["cluster", *inputs]
    for param in ctx.command.params:
        name, value = str(param.name), params.get(str(param.name))
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        is_meant = name not in (*_ABOUT_OUTPUT, *passed)
        if is_typed and is_meant and isinstance(param, click.Option):
            words += _as_typed(param, value)
    return next_step(*words, *more)


_ABOUT_OUTPUT = ("output", "plot", "plot_columns", "progress", "checkpoint", "as_json", "debug")


def _as_typed(option: click.Option, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    text = between_commas(value) if isinstance(value, tuple) else str(value)
    return [option.opts[0], text]
