"""``sketchshift cluster``: from data or sketches to clusters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import click
from click.core import ParameterSource

from sketchshift._text import column_names, counted, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import OF_DATA, Inputs, input_options, keep_checkpoint
from sketchshift.cli.options import (
    CLUSTERS,
    DECODER_FLAGS,
    NAMES,
    decoder_of,
    decoder_options,
    domain_of,
    progress_option,
    seed_option,
    warm_up,
)
from sketchshift.cli.output import (
    ClusterFiles,
    Output,
    cluster_records,
    cluster_table,
    curve_record,
    decoding_record,
    describe_choice,
    describe_rows_left_out,
    describe_survey,
    describe_trust,
    join_with_commas,
    show_progress,
    sketch_record,
    survey_record,
    warn_of_outcome,
)
from sketchshift.decoders import Decoding
from sketchshift.sketch import AnySketch

__all__ = ["cluster"]


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    default="auto",
    show_default=True,
    help="Number k of clusters, or auto: chosen from the data.",
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
@seed_option("Seed of the starts. The same sketch and seed give the same centroids.")
@progress_option
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
    out: Output,
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
    sources = Inputs(ctx, inputs)
    files = ClusterFiles.check(output, plot, plot_columns, sources.files)
    decode = decoder_of(ctx, n_clusters, flags)
    with keep_checkpoint(flags["checkpoint"], [*sources.paths, *files.paths]) as checkpoint:
        sketch = sources.sketch(n_clusters, progress, checkpoint)
        files.check_columns(sketch)
        domain = domain_of(sketch, flags["lower"], flags["upper"])
        is_auto = n_clusters == "auto"
        last = "Choosing the number of clusters" if is_auto else "Settling the centroids"
        first = last if sketch.spec.cells else "Fitting the sketch"  # cells need hardly any fits
        with show_progress("fits", first, then=last, show=progress) as advance:
            warm_up(flags["decoder"])
            start = time.perf_counter()
            decoding = decode(sketch, domain, flags["seed"], advance)
            seconds = time.perf_counter() - start
        with show_progress("items", "Writing and drawing", show=progress):
            file_lines = files.write(sketch, decoding)
    record = {
        "command": "cluster",
        "inputs": [str(file) for file in sources.files],
        **survey_record(sources.survey),
        "output": output,
        "plot": plot,
        "n_clusters": n_clusters,
        "decoder": {name: flags[name] for name in DECODER_FLAGS},
        "seconds": seconds,
        **decoding_record(decoding),
        "curve": curve_record(decoding.curve),
        "clusters": cluster_records(decoding),
    }
    choice = describe_choice(decoding.curve, sketch.spec, is_data=sources.is_data)
    about = describe_survey(sources.survey)
    lines = [*_describe(sketch, decoding, seconds, about, choice), *file_lines]
    out.report(record | sketch_record(sketch, sketch.nbytes), lines, then=_next(ctx, sources))
    warn_of_outcome(decoding, n_clusters)


def _describe(
    sketch: AnySketch,
    decoding: Decoding,
    seconds: float,
    about: Sequence[str],
    choice: Sequence[str],
) -> list[str]:
    spec = sketch.spec
    rows, columns = rows_in_words(sketch), counted(spec.n_features, "column")
    return [
        f"{_count(decoding)} in {rows} x {columns}{describe_rows_left_out(sketch)}, decoded from "
        f"{sketch.nbytes:,} bytes in {seconds:.2f} s.",
        *about,
        "",
        *cluster_table(decoding, column_names(spec)),
        "",
        *choice,
        f"Residual norm {decoding.residual_norm:.3g} of the sketch's: the part of it that the "
        "clusters do not explain.",
        *describe_trust(decoding),
    ]


def _count(decoding: Decoding) -> str:
    return counted(len(decoding.weights), "cluster")


_ABOUT_OUTPUT = ("output", "plot", "plot_columns", "progress", "checkpoint", "out", "debug")


def _next(ctx: click.Context, sources: Inputs) -> list[str]:
    """The same command, with what was not asked for yet; of a sketch that was saved, if any."""
    params = ctx.params
    output, saved = params["output"], params["save_sketch"]
    if output is None:
        more = ["-o", "centroids.csv"]
    elif params["plot"] is None:
        more = ["--plot", "clusters.png"]
    elif sources.is_data and saved is None:
        return ["assign", *params["inputs"], "--centroids", output, "-o", "labels.parquet"]
    else:
        return ["inspect", saved or str(sources.files[0])]
    inputs, left_out = (params["inputs"], ()) if saved is None else ((saved,), OF_DATA)
    words = ["cluster", *inputs]
    for param in ctx.command.params:
        name = str(param.name)
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        is_meant = name not in (*_ABOUT_OUTPUT, *left_out)
        if is_typed and is_meant and isinstance(param, click.Option):
            words += _spell(param, params[name])
    return [*words, *more]


def _spell(option: click.Option, value: Any) -> list[str]:
    """An option as it is typed."""
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    text = join_with_commas(value) if isinstance(value, tuple) else str(value)
    return [option.opts[0], text]
