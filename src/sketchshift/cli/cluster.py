"""``sketchshift cluster``: from data or sketches to clusters."""

from __future__ import annotations

from typing import Any, Literal

import click

from sketchshift._text import counted, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import Inputs, input_options
from sketchshift.cli.options import (
    CLUSTERS,
    TEXT_FLAGS,
    configure_decoder,
    decoder_option,
    seed_option,
)
from sketchshift.cli.output import (
    ClusterFiles,
    Output,
    cluster_records,
    cluster_table,
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
from sketchshift.decoders import decode
from sketchshift.decoders.decoder import DECODERS
from sketchshift.features.plan import MAX_CLUSTERS

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
@input_options
@click.option(
    "--max-clusters",
    type=click.IntRange(1, MAX_CLUSTERS),
    hidden=True,
    help="The largest k that -k auto looks at. Default: 20, or what a sketch can serve.",
)
@decoder_option
@seed_option("Seed of the decoder. The same sketch and seed give the same centroids.")
@click.pass_context
def cluster(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    n_clusters: int | Literal["auto"],
    output: str | None,
    plot: str | None,
    max_clusters: int | None,
    decoder: str,
    seed: int,
    out: Output,
    **flags: Any,
) -> None:
    """Find clusters: of data, read once, or of sketches, without the data.

    INPUT is data ({formats} files, folders, quoted globs). A sample
    of it decides which columns are read: those of numbers. The others are listed. Then the data is
    read once, block by block. Or INPUT is sketches that `sketchshift sketch` wrote, which are
    merged. Each cluster is shown with its rows, its share and the columns that set it apart; the
    largest cluster is 0.

    Examples
    --------
      sketchshift cluster points.csv -o centroids.csv
      sketchshift cluster points.csv -k 3 --scale standard
      sketchshift cluster 'day*.sketch' -k 3 --plot clusters.png

    Then: `sketchshift cluster week.sketch -k 4`, to compare: a sketch serves any smaller k.
    """
    sources = Inputs(ctx, inputs)
    files = ClusterFiles.check(output, plot, sources.paths)
    _check_auto(decoder, n_clusters, max_clusters)
    sketch = sources.sketch(n_clusters)
    files.check_columns(sketch)
    last = "Choosing the number of clusters" if n_clusters == "auto" else "Settling the centroids"
    first = last if sketch.spec.cells else "Fitting the sketch"  # cells need hardly any fits
    with show_progress("fits", first, then=last) as advance:
        decoding = decode(
            sketch,
            n_clusters,
            max_clusters=max_clusters,
            seed=seed,
            progress=advance,
            decoder=configure_decoder(decoder),
        )
    with show_progress("items", "Writing and drawing"):
        file_lines = files.write(sketch, decoding)
    keys = sources.count_keys(decoding)
    record = {
        "command": "cluster",
        "inputs": [str(file) for file in sources.files],
        **survey_record(sources.survey),
        "output": output,
        "plot": plot,
        "n_clusters": n_clusters,
        "decoder": {"name": decoder, "seed": seed},
        **decoding_record(decoding),
        "curve": curve_record(decoding.curve),
        "clusters": cluster_records(decoding),
        "profile": decoding.profile.to_dict(),
    }
    if keys is not None:
        record["keys"] = keys.to_dict()
    about = describe_survey(sources.survey)
    lines = [
        f"{counted(len(decoding.weights), 'cluster')} in {rows_in_words(sketch)} x "
        f"{counted(sketch.spec.n_features, 'column')}{describe_rows_left_out(sketch)}, decoded "
        f"from {sketch.nbytes:,} bytes.",
        *about[:2],
        "",
        *decoding.profile.lines(),
        "",
        *cluster_table(decoding),
        "",
        *describe_keys(keys),
        *describe_choice(decoding.curve, sketch.spec, is_data=sources.is_data),
        *about[2:],
        *describe_trust(decoding),
        *file_lines,
    ]
    out.report(record | sketch_record(sketch, sketch.nbytes), lines, then=_next(ctx, sources))
    warn_of_outcome(decoding, n_clusters)


def _check_auto(decoder: str, n_clusters: int | Literal["auto"], max_clusters: int | None) -> None:
    """Refuse a choice of k that the decoder cannot make."""
    able = [name for name, cls in DECODERS.items() if hasattr(cls, "most_clusters")]
    if n_clusters == "auto" and decoder.partition(":")[0] not in able:
        needs = f"-k auto needs --decoder {' or '.join(able)}."
        raise click.UsageError(f"{needs} Give the number of clusters.")
    if n_clusters != "auto" and max_clusters is not None:
        raise click.UsageError("--max-clusters goes with -k auto.")


_WRITTEN = {"output", "plot"}
_OF_REPORT = {"n_clusters", "columns", "exclude", "categories", "where", "query", "scale", "seed"}
_OF_REPORT |= {*TEXT_FLAGS}


def _next(ctx: click.Context, sources: Inputs) -> list[str]:
    """Propose a page first, then files and labels."""
    inputs, output = ctx.params["inputs"], ctx.params["output"]
    if output is not None and sources.is_data:
        read = typed_options(ctx, only=(*TEXT_FLAGS, "query", "where"))
        return ["assign", *inputs, *read, "--centroids", output, "-o", "labelled.csv"]
    same = typed_options(ctx, but=_WRITTEN)
    if len(inputs) == 1 and not typed_options(ctx, but=_WRITTEN | _OF_REPORT):
        return ["report", *inputs, *same, "-o", "report.html"]
    if output is None:
        return ["cluster", *inputs, *same, "-o", "centroids.csv"]
    return ["inspect", str(sources.files[0])]
