"""``sketchshift sketch``: the one pass over the data."""

from __future__ import annotations

import time
from typing import Any

import click

from sketchshift._text import counted
from sketchshift.cli.command import command
from sketchshift.cli.inputs import (
    data_files,
    keep_checkpoint,
    key_columns,
    look_at,
    paths_of,
    read_data,
    read_spec,
)
from sketchshift.cli.options import (
    MOST_K,
    by_option,
    on_invalid_option,
    query_option,
    row_options,
    weights_option,
)
from sketchshift.cli.output import (
    Output,
    check_output,
    check_suffix,
    describe_file,
    describe_survey,
    show_progress,
    sketch_record,
    survey_record,
)

__all__ = ["sketch"]

FEWEST_FOR_RATE = 100_000
"""Rows below which a rate would be mostly that of loading the program."""


@command
@click.argument("data", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="PATH",
    help="Where to write (.sketch; .parquet with --by).",
)
@click.option("--plan", metavar="PATH", help="Plan of `sketchshift plan`, or the JSON of a spec.")
@click.option(
    "-k", "--n-clusters", type=MOST_K, help="Plan from the data, for k clusters or fewer."
)
@by_option
@row_options
@query_option
@weights_option
@on_invalid_option
@click.option(
    "--checkpoint",
    metavar="PATH",
    hidden=True,
    help="Keep the sums so far in this file: after a crash, the same command goes on.",
)
@click.pass_context
def sketch(
    ctx: click.Context,
    /,
    data: tuple[str, ...],
    output: str,
    plan: str | None,
    n_clusters: int | None,
    by: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    where: str | None,
    weights: str | None,
    on_invalid: str,
    checkpoint: str | None,
    out: Output,
) -> None:
    """Read DATA once and write its sketch.

    DATA is one or more files ({formats}), folders or quoted globs,
    read block by block: memory does not grow with the number of rows. The sketch is the sum
    over all rows of m random Fourier features, and what cells count and sum, in exact integers:
    the same data gives the same bytes, however it is cut into files. A --plan says what is summed,
    and is shared by sketches that will be merged; -k plans on the way. With --by, a table
    of sketches is written, one for each day, customer or other key: any slice of it can be
    clustered later. With --checkpoint, a pass that was cut off goes on when the same command
    is given again.

    Examples
    --------
      sketchshift sketch 'part-*.parquet' -o day1.sketch --plan plan.json --weights w
      sketchshift sketch events.parquet --by day -k 3 -o sketches.parquet

    Then: `sketchshift inspect day1.sketch`. To join sketches taken on several machines or
    days: `sketchshift merge`.
    """
    if (plan is None) == (n_clusters is None):
        msg = "give -k, the number of clusters, or --plan plan.json: one of them, and not both."
        raise click.UsageError(msg)
    if plan is not None and on_invalid in ("mean", "column"):
        raise click.UsageError(
            f"--on-invalid {on_invalid} needs -k: a plan says what is filled in."
        )
    if by is not None:
        check_suffix("-o", output, (".parquet",))
    files = data_files(data)
    target = check_output(output, paths_of(files))
    start, survey = time.perf_counter(), None
    arguments: dict[str, Any]
    if plan is not None:
        skips = "raise" if on_invalid == "auto" else on_invalid
        arguments = {"spec": read_spec(plan), "columns": columns, "on_invalid": skips}
        arguments["where"] = where
    else:
        survey, arguments = look_at(files, ctx.params, keys=key_columns(by))
        arguments["n_clusters"] = n_clusters
    arguments["sample_weight"] = weights
    with keep_checkpoint(checkpoint, [*paths_of(files), target]) as place:
        is_continued = place is not None and place.exists()
        first = "Reading rows" if n_clusters is None else "Planning on a sample"
        with show_progress("rows", first, then="Reading rows") as advance:
            result, table = read_data(
                files, by, arguments | {"progress": advance, "checkpoint": place}
            )
        seconds = time.perf_counter() - start
        if table is None:
            result.save(target)
        else:
            table.save(target)
    size, n_read = target.stat().st_size, result.count + result.n_invalid
    record: dict[str, Any] = {
        "command": "sketch",
        "output": output,
        "seconds": seconds,
        "rows_per_second": n_read / seconds,
    }
    lines = [describe_file(output, result, size)]
    if table is not None:
        record |= {"by": list(table.by), "slices": len(table)}
        lines += [f"It has {counted(len(table), 'slice')} by {', '.join(table.by)}."]
    has_rate = n_read >= FEWEST_FOR_RATE and not is_continued
    rate = f", {n_read / seconds:,.0f} rows/s" if has_rate else ""
    lines += [f"Read once in {seconds:.2f} s{rate}.", *describe_survey(survey)]
    record |= survey_record(survey)
    out.report(record | sketch_record(result, size), lines, then=["inspect", output])
