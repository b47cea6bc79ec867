"""``sketchshift plan``: write down the spec that all machines share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sketchshift._paths import Place
from sketchshift._text import counted, number
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.inputs import (
    Data,
    data_files,
    look_at,
    paths_of,
    query_option,
    read_schema,
)
from sketchshift.cli.options import (
    TEXT_FLAGS,
    build_spec,
    drift_arguments,
    on_invalid_option,
    refuse_mixture,
    refuse_table_flags,
    spec_options,
    table_options,
    turnkey_arguments,
    turnkey_options,
    weights_option,
)
from sketchshift.cli.output import (
    Output,
    check_output,
    describe_survey,
    show_progress,
    spec_record,
    survey_record,
    typed_options,
)
from sketchshift.drift import plan_drift
from sketchshift.features import SketchSpec
from sketchshift.features.plan import cells_in_words
from sketchshift.sketch import plan as make_plan

__all__ = ["describe_plan", "plan", "write_plan"]


@command
@click.argument("data", required=False)
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.json).")
@turnkey_options
@table_options
@query_option
@spec_options
@click.option("--n-features", type=click.IntRange(min=1), help="Number d of columns, without DATA.")
@weights_option
@on_invalid_option
@click.option(
    "--drift",
    is_flag=True,
    help="Plan from the data for `compare` and `watch` alone: 16 kB a sketch for any columns.",
)
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    data: str | None,
    output: str,
    columns: tuple[str, ...] | None,
    n_features: int | None,
    n_clusters: int | None,
    weights: str | None,
    drift: bool,
    out: Output,
    **flags: Any,
) -> None:
    """Write the plan that every sketch to be merged must share.

    DATA is a file ({formats}), a folder or a quoted glob. With -k, up
    to 200,000 rows from all along it set everything; with --bandwidth, only its column names
    are read. With --drift, 4,096 rows set a plan that finds changes and nothing else. Sketches
    taken with one plan add up exactly, on whatever machine and day they were taken.

    Examples
    --------
      sketchshift plan points.csv -k 3 -o plan.json
      sketchshift plan -o plan.json -s 0.3 --bandwidth-high 3 -m 5000 --columns x,y

    Then: `sketchshift sketch points.csv --plan plan.json -o day1.sketch`.
    """
    neither = "give -k, the number of clusters, or the bandwidth: --bandwidth 0.3."
    if not drift:
        refuse_mixture(ctx, neither=neither)
    inputs = [] if data is None else data_files([data])
    target = check_output(output, paths_of(inputs))
    survey, then = None, []
    if drift or n_clusters is not None:
        _check_sample(inputs, n_features, flag="--drift" if drift else "-k")
        with show_progress("items", "Planning on a sample"):
            survey, options = look_at(inputs, ctx.params)
            if drift:
                spec = plan_drift(inputs, **drift_arguments(ctx), **options)
            else:
                options["sample_weight"] = weights
                spec = make_plan(inputs, **turnkey_arguments(ctx), **options)
        then = ["--on-invalid", "skip"] if survey is not None and survey.keeps else []
    else:
        refuse_table_flags(ctx)
        d, names = _shape(inputs, columns, n_features, weights)
        spec = build_spec(flags, n_features=d, columns=names)
    write_plan(spec, target)
    record = {"command": "plan", "output": output, "fingerprint": spec.fingerprint}
    again = (*TEXT_FLAGS, "query", "where", *(() if spec.columns else ("columns",)))
    read = typed_options(ctx, only=again)
    out.report(
        record | survey_record(survey) | spec_record(spec),
        [*describe_plan(output, spec), *describe_survey(survey)],
        then=["sketch", data or "DATA", *read, "--plan", output, *then, "-o", "day1.sketch"],
    )


def _shape(
    files: Sequence[Data],
    columns: tuple[str, ...] | None,
    n_features: int | None,
    weights: str | None,
) -> tuple[int, tuple[str, ...] | None]:
    """Number and names of the columns: from the data, or from the flags alone."""
    if files and n_features is not None:
        msg = "give DATA or --n-features, not both: the data says how many columns there are."
        raise click.UsageError(msg)
    if files:
        return read_schema(files[0], columns, weights)
    if n_features is None and columns is None:
        msg = "give DATA to take its columns, or --columns, or --n-features."
        raise click.UsageError(msg)
    if n_features is not None:
        return n_features, columns
    assert columns is not None
    return len(columns), columns


def _check_sample(files: Sequence[Data], n_features: int | None, flag: str = "-k") -> None:
    if n_features is not None:
        msg = f"give {flag} or --n-features, not both: {flag} takes the columns of DATA."
        raise click.UsageError(msg)
    if not files:
        msg = f"{flag} plans from rows: give DATA, all of it or a sample across it."
        raise click.UsageError(msg)


def write_plan(spec: SketchSpec, target: Place) -> None:
    """Write a plan file, all of it or nothing."""
    write_atomically(target, spec.to_json().encode() + b"\n")


def describe_plan(output: str, spec: SketchSpec) -> list[str]:
    """The sentences that say which plan was written where, and what it has."""
    ends = spec.bandwidth if isinstance(spec.bandwidth, tuple) else (spec.bandwidth,)
    line = (
        f"Wrote {output}: {counted(spec.n_features, 'column')}, m = {spec.sketch_size:,}, "
        f"bandwidth {' to '.join(map(number, ends))}, seed {spec.seed}, fingerprint "
        f"{spec.fingerprint[:8]}."
    )
    cells = cells_in_words(spec)
    return [line] if cells is None else [line, f"It was {cells}."]
