"""``sketchshift cluster``: from data or sketches to clusters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import click

from sketchshift._text import counted, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import (
    OF_DATA,
    Inputs,
    input_options,
    keep_checkpoint,
    paths_of,
)
from sketchshift.cli.options import (
    CLUSTERS,
    DECODER_FLAGS,
    NAMES,
    TEXT_FLAGS,
    ListOption,
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
    align,
    cluster_records,
    cluster_table,
    count_hidden,
    curve_record,
    decoding_record,
    describe_choice,
    describe_keys,
    describe_rows_left_out,
    describe_survey,
    describe_trust,
    show_progress,
    sketch_record,
    survey_record,
    typed_options,
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
    cls=ListOption,
    type=NAMES,
    metavar="A,B",
    help="Two columns, by name or position, to draw them over. Default: the main axes.",
)
@click.option(
    "--examples",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Show the N rows of data nearest to each centroid, in one more pass.",
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
    examples: int | None,
    progress: bool | None,
    out: Output,
    **flags: Any,
) -> None:
    """Find clusters: of data, read once, or of sketches, without the data.

    INPUT is data ({formats} files, folders, quoted globs), of which
    a sample is looked at first: columns of numbers are taken, and what is left out is told. Then
    it is read once, block by block. Or INPUT is sketches that `sketchshift sketch` wrote, which
    are merged. Each cluster is told with its rows, its share and what sets it apart; the largest
    one is 0.

    Examples
    --------
      sketchshift cluster points.csv -o centroids.csv
      sketchshift cluster points.csv -k 3 --examples 2
      sketchshift cluster 'day*.sketch' -k 3 --plot clusters.png

    Then: `sketchshift cluster week.sketch -k 4`, to compare: a sketch serves any smaller k.
    """
    sources = Inputs(ctx, inputs)
    if examples is not None and not sources.is_data:
        raise click.UsageError("--examples shows rows of data, and a sketch has none. Give data.")
    files = ClusterFiles.check(output, plot, plot_columns, paths_of(sources.files))
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
        rows = None
        if examples is not None:
            with show_progress("items", "Looking for examples", show=progress):
                rows = decoding.examples(sources.files, examples, where=flags["where"])
    keys = sources.count_keys(decoding)
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
        "profile": decoding.profile.to_dict(),
    }
    if keys is not None:
        record["keys"] = keys.to_dict()
    if rows is not None:
        record["examples"] = [{n: _plain(v) for n, v in row.items()} for row in rows.to_pylist()]
    choice = describe_choice(decoding.curve, sketch.spec, is_data=sources.is_data)
    about = describe_survey(sources.survey)
    middle = [*describe_keys(keys), *_describe_examples(rows)]
    lines = [*_describe(sketch, decoding, seconds, about, [*middle, *choice]), *file_lines]
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
        *about[:2],
        "",
        *decoding.profile.lines(),
        "",
        *cluster_table(decoding),
        "",
        *choice,
        *about[2:],
        *describe_trust(decoding),
    ]


def _describe_examples(rows: Any) -> list[str]:
    """The rows nearest to the centroids, as a table; none if they were not asked for."""
    if rows is None:
        return []
    columns = [[_text(value) for value in column.to_pylist()] for column in rows.columns]
    head, lines = rows.column_names, zip(*columns, strict=True)
    shown = [[name[:WIDEST] for name in head[:COLUMNS_SHOWN]]]
    shown += [[text[:WIDEST] for text in line[:COLUMNS_SHOWN]] for line in lines]
    hidden = count_hidden({"column": len(head) - COLUMNS_SHOWN}, "--json has all")
    return ["Rows nearest to the centroids:", *align(shown), *hidden, ""]


def _plain(value: Any) -> Any:
    """A value as JSON has it: numbers stay numbers, times become text."""
    return value if isinstance(value, bool | int | float | None) else str(value)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _count(decoding: Decoding) -> str:
    return counted(len(decoding.weights), "cluster")


COLUMNS_SHOWN, WIDEST = 12, 24  # columns of an example, and characters of a cell

_ABOUT_OUTPUT = {"output", "examples", "plot", "plot_columns", "progress", "checkpoint"}
_ABOUT_OUTPUT |= {"save_sketch"}
_OF_REPORT = {"n_clusters", "columns", "exclude", "categories", "where", "query", "scale", "seed"}
_OF_REPORT |= {*TEXT_FLAGS}


def _next(ctx: click.Context, sources: Inputs) -> list[str]:
    """A page first, then files and labels; of a sketch that was saved, if any."""
    params = ctx.params
    output, saved = params["output"], params["save_sketch"]
    inputs, left_out = (params["inputs"], set()) if saved is None else ((saved,), {*OF_DATA})
    if output is not None and sources.is_data:
        read = typed_options(ctx, only=(*TEXT_FLAGS, "query", "where"))
        return ["assign", *params["inputs"], *read, "--centroids", output, "-o", "labelled.csv"]
    same = typed_options(ctx, but=_ABOUT_OUTPUT | left_out)
    others = typed_options(ctx, but=_ABOUT_OUTPUT | left_out | _OF_REPORT)
    if len(inputs) == 1 and not others:
        return ["report", *inputs, *same, "-o", "report.html"]
    if output is None:
        return ["cluster", *inputs, *same, "-o", "centroids.csv"]
    return ["inspect", str(sources.files[0])]
