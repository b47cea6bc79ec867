"""``sketchshift report``: one HTML file that shows the clusters of a sketch or a table."""

from __future__ import annotations

import shlex
from typing import Any, Literal

import click

from sketchshift.cli.command import command
from sketchshift.cli.inputs import for_clusters, load_subject, sketch_files, where_option
from sketchshift.cli.options import CLUSTERS, decoder_option
from sketchshift.cli.output import (
    check_output,
    check_suffix,
    cluster_facts,
    counted,
    next_step,
    promise,
    rows_in_words,
    sketch_facts,
)
from sketchshift.cli.output import report as print_facts

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
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    help="Seed of the starts. The same sketch and seed give the same report.",
)
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress on stderr. Default: only if that is a terminal.",
)
def report(
    file: str,
    n_clusters: int | Literal["auto"],
    output: str,
    where: str | None,
    decoder: str,
    seed: int,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Write a report on FILE, a sketch or a table of sketches: one HTML file.

    It opens in any browser, without network: clusters as a table to sort and as lines across
    the columns, where the rows lie for any two columns, residuals for other numbers of
    clusters, shares over the slices of a table, and how to get it all again. It holds the
    numbers of the sketch, but no rows; of a private sketch, its promise too.

    Examples
    --------
      sketchshift report week.sketch -k 3 -o report.html
      sketchshift report sketches.parquet -k auto --where "shop = 'a'" -o shop.html

    Then: `sketchshift explore sketches.parquet`, to change k and slices as you look.
    """
    from sketchshift._writing import write_atomically
    from sketchshift.cli.progress import decoding_progress
    from sketchshift.report import report_on

    check_suffix("-o", output, (".html",))
    target = check_output(output, sketch_files([file]))
    subject = load_subject(file, where)
    for_clusters(subject.whole, n_clusters)
    with decoding_progress("Decoding", show=progress) as advance:
        text, decoding = report_on(
            subject,
            n_clusters,
            seed=seed,
            commands=_commands(file, n_clusters, where, decoder, seed, output),
            progress=advance,
            decoder=decoder,
        )
    data = text.encode()
    write_atomically(target, data)
    facts: dict[str, Any] = {
        "command": "report",
        "input": file,
        "output": output,
        "output_bytes": len(data),
        "n_clusters": n_clusters,
        "outcome": decoding.outcome.name,
        "clusters": cluster_facts(decoding),
    } | sketch_facts(subject.whole, subject.n_bytes)
    lines = [
        f"Wrote {output}: {counted(len(decoding.weights), 'cluster')} of "
        f"{rows_in_words(subject.whole)} in {len(data):,} bytes. Open it in a browser.",
        *promise(subject.whole),
        str(decoding.outcome),
        next_step("explore", file),
    ]
    print_facts(facts, lines, as_json=as_json)


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
