"""``sketchshift report``: one HTML file that shows clusters, of data or of sketches."""

from __future__ import annotations

import shlex
from typing import Any, Literal

import click

from sketchshift._text import counted, rows_in_words
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.inputs import OF_DATA, Inputs, input_options
from sketchshift.cli.options import (
    CLUSTERS,
    TEXT_FLAGS,
    by_option,
    configure_decoder,
    decoder_option,
    progress_option,
    seed_option,
)
from sketchshift.cli.output import (
    Output,
    check_output,
    check_suffix,
    cluster_records,
    decoding_record,
    describe_survey,
    describe_trust,
    promise_lines,
    show_progress,
    sketch_record,
    survey_record,
    typed_options,
    warn_of_outcome,
)

__all__ = ["report"]


@command
@click.argument("file")
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    default="auto",
    show_default=True,
    help="Number k of clusters, or auto: chosen from the data.",
)
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.html).")
@by_option
@input_options
@decoder_option
@seed_option("Seed of the starts. The same sketch and seed give the same report.")
@progress_option
@click.pass_context
def report(
    ctx: click.Context,
    /,
    file: str,
    n_clusters: int | Literal["auto"],
    output: str,
    decoder: str,
    seed: int,
    progress: bool | None,
    out: Output,
    **flags: Any,
) -> None:
    """Write a report on FILE: one HTML page that says what the clusters are.

    FILE is data ({formats} files, a folder or a quoted glob), read once as `sketchshift
    cluster` reads it, or a sketch, or a table of sketches. The page opens in any browser, without
    network. It says in words what each cluster is, and shows where the clusters lie, the mean of
    each column, and the shares over slices (--by). Pictures and numbers can be saved from it. It
    holds no rows; for a private sketch, it shows the promise.

    Examples
    --------
      sketchshift report points.csv -o report.html
      sketchshift report sketches.parquet -k 3 --where "shop = 'a'" -o shop.html

    Then: `sketchshift explore points.csv`, to change k and slices as you look.
    """
    from sketchshift.view import report_on

    check_suffix("-o", output, (".html",))
    inputs = Inputs(ctx, [file])
    target = check_output(output, inputs.paths)
    sketch_file = inputs.file(n_clusters, progress)
    with show_progress(
        "fits", "Fitting the sketch", then="Computing the page", show=progress
    ) as advance:
        text, decoding = report_on(
            sketch_file,
            n_clusters,
            seed=seed,
            commands=_commands(ctx),
            progress=advance,
            decoder=configure_decoder(decoder),
        )
    data = text.encode()
    write_atomically(target, data)
    record = {
        "command": "report",
        "input": file,
        "output": output,
        "output_bytes": len(data),
        "n_clusters": n_clusters,
        **survey_record(inputs.survey),
        **decoding_record(decoding),
        "clusters": cluster_records(decoding),
    }
    lines = [
        f"Wrote {output}: {counted(len(decoding.weights), 'cluster')} of "
        f"{rows_in_words(sketch_file.whole)} in {len(data):,} bytes. Open it in a browser.",
        *describe_survey(inputs.survey),
        *promise_lines(sketch_file.whole),
        *describe_trust(decoding),
    ]
    out.report(
        record | sketch_record(sketch_file.whole, sketch_file.n_bytes),
        lines,
        then=["explore", file, *typed_options(ctx, only=(*OF_DATA, *TEXT_FLAGS))],
    )
    warn_of_outcome(decoding, n_clusters)


def _commands(ctx: click.Context) -> list[str]:
    """Lines that give the same report, and the same clusters, again."""
    file, output = ctx.params["file"], ctx.params["output"]
    by = typed_options(ctx, only=("by",))  # cluster has no slices
    same = typed_options(ctx, but=("by", "output", "progress", "checkpoint", "save_sketch"))
    return [
        shlex.join(["sketchshift", "report", file, *by, *same, "-o", output]),
        shlex.join(["sketchshift", "cluster", file, *same, "-o", "centroids.csv"]),
    ]
