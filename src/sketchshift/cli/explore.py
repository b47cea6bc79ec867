"""``sketchshift explore``: a page on this machine that clusters again as one looks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import click

from sketchshift._text import counted
from sketchshift.cli.command import command
from sketchshift.cli.inputs import Inputs, input_options
from sketchshift.cli.options import by_option, progress_option
from sketchshift.cli.output import (
    Output,
    describe_survey,
    promise_lines,
    sketch_record,
    survey_record,
    typed_options,
)
from sketchshift.errors import MissingDependencyError
from sketchshift.features.plan import MAX_CLUSTERS

if TYPE_CHECKING:
    from sketchshift.view.explorer import Explorer
    from sketchshift.view.server import Address

__all__ = ["explore"]

CHECK = ("check", "progress", "checkpoint", "save_sketch")  # not said again


@command
@click.argument("file")
@click.option(
    "--max-clusters",
    type=click.IntRange(1, MAX_CLUSTERS),
    help="The largest k to choose from. Default: what the sketch can serve, m / (10 d).",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="Port of this machine; 0 takes any that is free.",
)
@click.option("--browser/--no-browser", default=True, help="Whether to open the page.")
@click.option(
    "--check", is_flag=True, help="Ask for one decoding as the page would, tell the time, and stop."
)
@by_option
@input_options
@progress_option
@click.pass_context
def explore(
    ctx: click.Context,
    /,
    file: str,
    max_clusters: int | None,
    port: int,
    browser: bool,
    check: bool,
    progress: bool | None,
    out: Output,
    **flags: Any,
) -> None:
    """Look at FILE on a page that changes as you move k.

    FILE is data ({formats} files, a folder or a quoted glob), read once as `sketchshift
    cluster` reads it, or a sketch, or a table of sketches. The page shows what `sketchshift
    report` does, for any k and slice. It compares two slices, says what changed, and saves
    pictures, numbers and reports. Its address keeps what you chose. It is served to this machine
    alone, under an address that holds a secret of this run, until Ctrl-C.

    Examples
    --------
      sketchshift explore points.csv --check
      sketchshift explore sketches.parquet --max-clusters 5 --check --json

    Without --check the page opens and stays.

    Then: `sketchshift report sketches.parquet -k 10 -o report.html`, to keep what you saw.
    """
    listening, Explorer = _import_server()
    inputs = Inputs(ctx, [file])
    sketch_file = inputs.file("auto", progress)
    explorer = Explorer(sketch_file, max_clusters)
    record: dict[str, Any] = {
        "command": "explore",
        "input": file,
        "choices": len(sketch_file.choices),
        "max_clusters": explorer.fits.max_clusters,
        **survey_record(inputs.survey),
    } | sketch_record(sketch_file.whole, sketch_file.n_bytes)
    about = [*describe_survey(inputs.survey), *promise_lines(sketch_file.whole)]
    with listening(explorer, port) as address:
        if check:
            record["seconds"] = _ask_once(address, explorer)
            n_clusters = counted(explorer.first, "cluster")
            line = f"The page was served, and {n_clusters} decoded in {record['seconds']:.2f} s."
            out.report(
                record, [line, *about], then=["explore", file, *typed_options(ctx, but=CHECK)]
            )
            return
        line = f"Exploring {file} at {address.url}"
        out.report(record | {"url": address.url}, [line, *about, "Ctrl-C stops it."])
        address.run(browser=browser)


def _import_server() -> tuple[Any, type[Explorer]]:
    try:
        from sketchshift.view.explorer import Explorer
        from sketchshift.view.server import listening
    except ImportError as cause:
        msg = 'the explorer needs Starlette and uvicorn. Run: pip install "sketchshift[view]"'
        raise MissingDependencyError(msg) from cause
    return listening, Explorer


def _ask_once(address: Address, explorer: Explorer) -> float:
    """Seconds of one decoding, asked for over the network after the page."""
    with address.in_background():
        urlopen(address.url).close()
        start = time.perf_counter()
        urlopen(f"{address.url}decode?k={explorer.first}").close()
        return time.perf_counter() - start
