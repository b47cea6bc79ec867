"""``sketchshift report``: one HTML file that shows the clusters of a sketch or a table."""

from __future__ import annotations

import shlex
from typing import Literal

import click

from sketchshift._text import counted, rows_in_words
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.inputs import check_rows, load_file, sketch_files
from sketchshift.cli.options import (
    CLUSTERS,
    configure_decoder,
    decoder_option,
    progress_option,
    seed_option,
    where_option,
)
from sketchshift.cli.output import (
    Output,
    check_output,
    check_suffix,
    cluster_records,
    decoding_record,
    describe_trust,
    promise_lines,
    show_progress,
    sketch_record,
    warn_of_outcome,
)

__all__ = ["report"]


@command
@click.argument("file")
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    required=True,
    help="Number k of clusters, or auto: chosen from the sketch.",
)
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.html).")
@where_option
@decoder_option
@seed_option("Seed of the starts. The same sketch and seed give the same report.")
@progress_option
def report(
    file: str,
    n_clusters: int | Literal["auto"],
    output: str,
    where: str | None,
    decoder: str,
    seed: int,
    progress: bool | None,
    out: Output,
) -> None:
    """Write a report on FILE, a sketch or a table of sketches: one HTML file.

    It opens in any browser, without network. It says in words what each cluster is, and shows
    where the clusters lie, the mean of each column, and the shares over the slices of a table.
    Pictures and numbers can be saved from it. It holds no rows; for a private sketch, it shows
    the promise.

    Examples
    --------
      sketchshift report week.sketch -k 3 -o report.html
      sketchshift report sketches.parquet -k auto --where "shop = 'a'" -o shop.html

    Then: `sketchshift explore sketches.parquet`, to change k and slices as you look.
    """
    from sketchshift.report import report_on

    check_suffix("-o", output, (".html",))
    target = check_output(output, sketch_files([file]))
    sketch_file = load_file(file, where)
    check_rows(sketch_file.whole, n_clusters)
    with show_progress(
        "fits", "Fitting the sketch", then="Computing the page", show=progress
    ) as advance:
        text, decoding = report_on(
            sketch_file,
            n_clusters,
            seed=seed,
            commands=_commands(file, n_clusters, where, decoder, seed, output),
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
        **decoding_record(decoding),
        "clusters": cluster_records(decoding),
    }
    lines = [
        f"Wrote {output}: {counted(len(decoding.weights), 'cluster')} of "
        f"{rows_in_words(sketch_file.whole)} in {len(data):,} bytes. Open it in a browser.",
        *promise_lines(sketch_file.whole),
        *describe_trust(decoding),
    ]
    out.report(
        record | sketch_record(sketch_file.whole, sketch_file.n_bytes),
        lines,
        then=["explore", file],
    )
    warn_of_outcome(decoding, n_clusters)


def _commands(
    file: str, k: int | str, where: str | None, decoder: str, seed: int, output: str
) -> list[str]:
    """Lines that give the same clusters, and the same report, again."""
    same = [file, "-k", str(k)] + (["--where", where] if where is not None else [])
    same += ["--decoder", decoder] if decoder != "turnkey" else []
    same += ["--seed", str(seed)] if seed else []
    return [
        shlex.join(["sketchshift", "report", *same, "-o", output]),
        shlex.join(["sketchshift", "cluster", *same, "-o", "centroids.csv"]),
    ]
