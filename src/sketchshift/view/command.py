"""``sketchshift report``: a page about clusters, written to a file or served to this machine."""

from __future__ import annotations

import shlex
from typing import Any, Literal

import click

from sketchshift._text import counted, rows_in_words
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.inputs import OF_DATA, Inputs
from sketchshift.cli.options import (
    CLUSTERS,
    NAMES,
    TEXT_FLAGS,
    ListOption,
    by_option,
    columns_option,
    list_typed,
    query_option,
    scale_option,
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
from sketchshift.errors import MissingDependencyError
from sketchshift.view.document import SketchFile
from sketchshift.view.page import report_on

__all__ = ["report"]

OF_SERVER = ("serve", "port", "browser")


@command
@click.argument("file")
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    default="auto",
    show_default=True,
    help="Number k of clusters, or auto: chosen from the data. With --serve: the largest k.",
)
@click.option("-o", "--output", metavar="PATH", help="Where to write the page (.html).")
@by_option
@columns_option
@click.option(
    "--exclude", cls=ListOption, type=NAMES, metavar="NAMES", help="Columns to leave out: a,b."
)
@click.option(
    "--categories",
    cls=ListOption,
    type=NAMES,
    metavar="NAMES",
    help="Columns of text to use as categories, or all: those with at most 12 values.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="Only some rows, or slices of a table of sketches: \"day >= '2026-01-05'\".",
)
@query_option
@scale_option
@seed_option("Seed of the decoder. The same sketch and seed give the same report.")
@click.option("--serve", is_flag=True, help="Serve the page to this machine, for any k and slice.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="With --serve: port of this machine; 0 takes any that is free.",
)
@click.option(
    "--browser/--no-browser", default=True, help="With --serve: whether to open a browser."
)
@click.pass_context
def report(
    ctx: click.Context,
    /,
    file: str,
    n_clusters: int | Literal["auto"],
    output: str | None,
    seed: int,
    serve: bool,
    port: int,
    browser: bool,
    out: Output,
    **flags: Any,
) -> None:
    """Write a report on FILE, one HTML page, or serve a page to explore FILE.

    FILE is data ({formats} files, a folder or a quoted glob), read once as `sketchshift
    cluster` reads it, or a sketch, or a table of sketches. The page opens in any browser, without
    network. It says in words what each cluster is, and shows where the clusters lie, the mean of
    each column, and the shares over slices (--by). Pictures and numbers can be saved from it. It
    holds no rows; for a private sketch, it shows the promise.

    With --serve the page changes as you move k or choose a slice, compares two slices, and saves
    reports. It is served to this machine alone, under an address with a secret of this run, until
    Ctrl-C.

    Examples
    --------
      sketchshift report points.csv -o report.html
      sketchshift report sketches.parquet -k 3 --where "shop = 'a'" -o shop.html

    Then: `sketchshift report sketches.parquet --serve`, to change k and slices as you look.
    """
    if serve == (output is not None):
        raise click.UsageError("give -o PATH.html for a file, or --serve for a page to explore.")
    if not serve and (typed := list_typed(ctx, OF_SERVER)):
        raise click.UsageError(f"{typed[0]} goes with --serve.")
    if output is None:
        _serve(ctx, n_clusters, out)
        return
    check_suffix("-o", output, (".html",))
    inputs = Inputs(ctx, [file])
    target = check_output(output, inputs.paths)
    shown = SketchFile.of(*inputs.load(n_clusters))
    with show_progress("fits", "Fitting the sketch", then="Computing the page") as advance:
        text, decoding = report_on(
            shown, n_clusters, seed=seed, commands=_commands(ctx), progress=advance
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
        f"{rows_in_words(shown.whole)} in {len(data):,} bytes. Open it in a browser.",
        *describe_survey(inputs.survey),
        *promise_lines(shown.whole),
        *describe_trust(decoding),
    ]
    out.report(
        record | sketch_record(shown.whole, shown.n_bytes),
        lines,
        then=["report", file, *typed_options(ctx, only=(*OF_DATA, *TEXT_FLAGS)), "--serve"],
    )
    warn_of_outcome(decoding, n_clusters)


def _commands(ctx: click.Context) -> list[str]:
    """Lines that give the same report, and the same clusters, again."""
    file, output = ctx.params["file"], ctx.params["output"]
    by = typed_options(ctx, only=("by",))  # cluster has no slices
    same = typed_options(ctx, but=("by", "output"))
    return [
        shlex.join(["sketchshift", "report", file, *by, *same, "-o", output]),
        shlex.join(["sketchshift", "cluster", file, *same, "-o", "centroids.csv"]),
    ]


def _serve(ctx: click.Context, n_clusters: int | Literal["auto"], out: Output) -> None:
    """Serve the page until Ctrl-C."""
    try:
        from sketchshift.view.explorer import Explorer
        from sketchshift.view.server import listening
    except ImportError as cause:
        msg = '--serve needs Starlette and uvicorn. Run: pip install "sketchshift[view]"'
        raise MissingDependencyError(msg) from cause
    params = ctx.params
    inputs = Inputs(ctx, [params["file"]])
    shown = SketchFile.of(*inputs.load(n_clusters))
    most = None if n_clusters == "auto" else n_clusters
    explorer = Explorer(shown, most, seed=params["seed"])
    with listening(explorer, params["port"]) as address:
        record: dict[str, Any] = {
            "command": "report",
            "input": params["file"],
            "url": address.url,
            "choices": len(shown.choices),
            "max_clusters": explorer.fits.max_clusters,
            **survey_record(inputs.survey),
        }
        lines = [
            f"Exploring {params['file']} at {address.url}",
            *describe_survey(inputs.survey),
            *promise_lines(shown.whole),
            "Ctrl-C stops it.",
        ]
        out.report(record | sketch_record(shown.whole, shown.n_bytes), lines)
        address.run(browser=params["browser"])
