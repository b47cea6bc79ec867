"""``sketchshift sketch``: the one pass over the data."""

from __future__ import annotations

import time
from typing import Any

import click

from sketchshift._places import Place
from sketchshift._text import counted
from sketchshift.cli.command import command
from sketchshift.cli.inputs import data_files, keep_checkpoint, look_at, read_schema, read_spec
from sketchshift.cli.options import (
    KEYS,
    build_spec,
    checkpoint_option,
    list_typed,
    on_invalid_option,
    progress_option,
    refuse_mixture,
    refuse_table_flags,
    spec_flags_typed,
    spec_options,
    table_options,
    turnkey_arguments,
    turnkey_options,
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
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, SketchTable

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
@click.option(
    "--by",
    type=KEYS,
    metavar="NAMES",
    help="A sketch for each value of these columns; also day(time), month(time).",
)
@click.option("--plan", metavar="PATH", help="Plan written by `sketchshift plan`.")
@turnkey_options
@table_options
@spec_options
@weights_option
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Default: the processors at hand. The bytes do not depend on it.",
)
@click.option(
    "--kernel",
    type=click.Choice(["auto", "cpu", "cuda", "reference"]),
    default="auto",
    show_default=True,
    help="Where to sum; cuda is an NVIDIA GPU. The bytes do not depend on it.",
)
@on_invalid_option
@checkpoint_option
@progress_option
@click.pass_context
def sketch(
    ctx: click.Context,
    /,
    data: tuple[str, ...],
    output: str,
    by: tuple[str, ...] | None,
    plan: str | None,
    n_clusters: int | None,
    columns: tuple[str, ...] | None,
    weights: str | None,
    threads: int | None,
    kernel: str,
    on_invalid: str,
    checkpoint: str | None,
    progress: bool | None,
    out: Output,
    **flags: Any,
) -> None:
    """Read DATA once and write its sketch.

    DATA is one or more files ({formats}), folders or quoted globs,
    read block by block: memory does not grow with the number of rows. The sketch is the sum
    over all rows of m random Fourier features, and what cells count and sum, in exact integers:
    the same data gives the same bytes, however it is cut into files. What is summed, a --plan
    says, to be shared by sketches that will be merged; -k plans on the way. With --by, a table
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
    _check_flags(ctx)
    if by is not None:
        check_suffix("-o", output, (".parquet",))
    files = data_files(data)
    target = check_output(output, files)
    start, survey = time.perf_counter(), None
    arguments: dict[str, Any]
    if n_clusters is None:
        skips = "raise" if on_invalid == "auto" else on_invalid
        arguments = {"spec": _spec(plan, flags, files[0], columns, weights, by), "columns": columns}
        arguments |= {"on_invalid": skips, "where": flags["where"]}
    else:
        survey, arguments = look_at(files, ctx.params, keys=_key_columns(by))
        arguments |= {"spec": None} | turnkey_arguments(ctx)
    arguments |= {"sample_weight": weights, "n_threads": threads, "kernel": kernel}
    with keep_checkpoint(checkpoint, [*files, target]) as place:
        is_continued = place is not None and place.exists()
        first = "Reading rows" if n_clusters is None else "Planning on a sample"
        with show_progress("rows", first, then="Reading rows", show=progress) as advance:
            result, table = _read(files, by, arguments | {"progress": advance, "checkpoint": place})
        seconds = time.perf_counter() - start
        if table is None:
            result.save(target)
        else:
            table.to_parquet(target)
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


def _read(
    files: list[Place], by: tuple[str, ...] | None, arguments: dict[str, Any]
) -> tuple[Sketch, SketchTable | None]:
    """The sketch of all rows, and the table of slices if it was asked for."""
    if by is None:
        from sketchshift.sketch import sketch as read_once

        return read_once(files, **arguments), None
    from sketchshift.sketch.slices import sketch_by

    table = sketch_by(files, by, **arguments)
    return table.merge(), table


def _key_columns(by: tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns that keys are made of."""
    from sketchshift.sketch.keys import parse

    return () if by is None else tuple(key.column for key in parse(by))


def _check_flags(ctx: click.Context) -> None:
    params = ctx.params
    if params["n_clusters"] is None:
        if params["on_invalid"] in ("mean", "column"):
            msg = f"--on-invalid {params['on_invalid']} needs -k: the plan says what is filled in."
            raise click.UsageError(msg)
        refuse_table_flags(ctx)
    if params["plan"] is None:
        neither = "give -k, the number of clusters, or --plan plan.json, or --bandwidth 0.3."
        refuse_mixture(ctx, neither=neither)
        return
    given = spec_flags_typed(ctx)
    given += ["-k"] * (params["n_clusters"] is not None)
    given += ["--standardize"] * params["standardize"] + list_typed(ctx, ["cells"])
    if given:
        msg = (
            f"give --plan or the flags of a spec, not both: {', '.join(given)} cannot change "
            "what the plan says. Write another plan with `sketchshift plan`."
        )
        raise click.UsageError(msg)


def _spec(
    plan: str | None,
    flags: dict[str, Any],
    first: Place,
    columns: tuple[str, ...] | None,
    weights: str | None,
    by: tuple[str, ...] | None,
) -> SketchSpec:
    if plan is not None:
        return read_spec(plan)
    d, names = read_schema(first, columns, weights, by)
    return build_spec(flags, n_features=d, columns=names)
