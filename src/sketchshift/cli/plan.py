"""``sketchshift plan``: write down the spec that all machines share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sketchshift._text import counted, number
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command
from sketchshift.cli.inputs import Data, data_files, look_at, paths_of
from sketchshift.cli.options import (
    MOST_K,
    NUMBERS,
    TEXT_FLAGS,
    FiniteRange,
    Options,
    list_typed,
    metric_option,
    on_invalid_option,
    query_option,
    scale_option,
    seed_option,
    table_options,
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
from sketchshift.cli.release import (
    account_options,
    describe_spending,
    open_account,
    promise_options,
)
from sketchshift.drift import plan_drift
from sketchshift.features import SketchSpec
from sketchshift.features.plan import cells_in_words
from sketchshift.sketch import plan as make_plan

if TYPE_CHECKING:
    from sketchshift.privacy import Account
    from sketchshift.profiling.survey import Survey

__all__ = ["plan"]

_OF_PLAIN = ("exclude", "categories", "where", "scale", "metric", "on_invalid", "drift")
_OF_NOISE = ("epsilon", "delta", "rows_per_person", "account", "budget")
_OF_PRIVATE = ("public", "center", "radius", "spread", *_OF_NOISE)

private_options = Options(
    click.option("--private", is_flag=True, help="A plan that may be published with releases."),
    click.option(
        "--public",
        is_flag=True,
        help="With --private: DATA is a public sample, and needs no noise.",
    ),
    click.option("--center", type=NUMBERS, help="Middle of the rows as you know it: 0,0.5,-2."),
    click.option(
        "--radius",
        type=FiniteRange(min=0, min_open=True),
        help="Radius of a ball around --center that holds the rows.",
    ),
    click.option(
        "--spread",
        type=FiniteRange(min=0, min_open=True),
        help="Without DATA: the typical distance of a row from --center.",
    ),
    promise_options(required=False),
    account_options,
)


@command
@click.argument("data", required=False)
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.json).")
@click.option("-k", "--n-clusters", type=MOST_K, help="Plan for k clusters or fewer.")
@click.option(
    "--drift",
    is_flag=True,
    help="Instead of -k: plan for `compare` alone, 16 kB a sketch for any columns.",
)
@table_options
@query_option
@scale_option
@metric_option
@on_invalid_option
@seed_option("Seed of the plan.")
@private_options
@click.pass_context
def plan(ctx: click.Context, /, data: str | None, output: str, out: Output, **flags: Any) -> None:
    """Write the plan that every sketch to be merged must share.

    DATA is a file ({formats}), a folder or a quoted glob. Up to 200,000
    rows from all along it set everything. With --drift, 4,096 rows set a plan that finds changes
    and nothing else. Sketches taken with one plan add up exactly, on whatever machine and day they
    were taken.

    With --private the plan may be published with every release. Its numbers come from private
    rows with noise, at the cost of --epsilon and --delta, which an --account can charge; --center
    and --radius may be 100 times too large. Or they come from a sample that anybody may see:
    --public. Or, without DATA, from --center and --spread that you declare.

    Examples
    --------
      sketchshift plan points.csv -k 3 -o plan.json
      sketchshift plan points.csv --private --public -k 3 -o plan.json

    Then: `sketchshift sketch points.csv --plan plan.json -o day1.sketch`.
    """
    _check_flags(ctx)
    inputs, path = [] if data is None else data_files([data]), flags["account"]
    target = check_output(output, [*paths_of(inputs), *([] if path is None else [path])])
    survey, account, then = None, None, ["-o", "day1.sketch"]
    with show_progress("items", "Planning on a sample"):
        if flags["private"]:
            spec, account = _plan_private(inputs, flags)
            then = ["-o", "people.sketch"]
        else:
            spec, survey = _plan(inputs, ctx)
            then = ["--on-invalid", "skip"] * bool(survey and survey.keeps) + then
    write_atomically(target, spec.to_json().encode() + b"\n")
    record: dict[str, Any] = {"command": "plan", "output": output, "fingerprint": spec.fingerprint}
    if flags["private"]:
        record["spent"] = None if account is None else account.spent
    again = (*TEXT_FLAGS, "query", "where", *(() if spec.rows.names else ("columns",)))
    out.report(
        record | survey_record(survey) | spec_record(spec),
        [
            *_describe(output, spec),
            *describe_survey(survey),
            *describe_spending(account, path),
        ],
        then=["sketch", data or "DATA", *typed_options(ctx, only=again), "--plan", output, *then],
    )


def _check_flags(ctx: click.Context) -> None:
    """Refuse options of another kind of plan."""
    params = ctx.params
    if params["drift"] == (params["n_clusters"] is not None):
        raise click.UsageError("give -k, the number of clusters, or --drift: one of them.")
    needed: tuple[str, ...] = ()
    others: tuple[str, ...]
    if params["data"] is None:
        kind, others = "a plan without DATA", (*_OF_PLAIN, "public", *_OF_NOISE)
        needed = ("private", "center", "spread")
    elif not params["private"]:
        kind, others = "a plan without --private", _OF_PRIVATE
    elif params["public"]:
        kind, others = "a plan from a --public sample", (*_OF_PLAIN, "center", "spread", *_OF_NOISE)
    else:
        kind, others = "a plan from private DATA", (*_OF_PLAIN, "spread")
        needed = ("center", "radius", "epsilon", "delta")
    missing = [f"--{name}" for name in needed if params[name] in (None, False)]
    if missing:
        raise click.UsageError(f"{kind} needs {', '.join(missing)}.")
    given = list_typed(ctx, others)
    if given:
        raise click.UsageError(f"{kind} takes no {', '.join(given)}.")


def _plan(inputs: Sequence[Data], ctx: click.Context) -> tuple[SketchSpec, Survey | None]:
    """Plan for clusters or for drift, with what was found out about the columns."""
    params = ctx.params
    survey, options = look_at(inputs, params)
    options |= {"seed": params["seed"], "metric": params["metric"]}
    if params["drift"]:
        return plan_drift(inputs, **options), survey
    return make_plan(inputs, params["n_clusters"], **options), survey


def _plan_private(
    inputs: Sequence[Data], flags: dict[str, Any]
) -> tuple[SketchSpec, Account | None]:
    """Make a plan that may be published, and return the account that it was charged to."""
    from sketchshift import privacy

    shared = {name: flags[name] for name in ("n_clusters", "seed", "columns", "radius")}
    if not inputs:
        return privacy.plan_declared(flags["center"], flags["spread"], **shared), None
    if flags["public"]:
        return privacy.plan_public(inputs, **shared), None
    names = ("center", "epsilon", "delta", "rows_per_person")
    account = open_account(flags["account"], flags["budget"], flags["delta"])
    noise = {name: flags[name] for name in names}
    return privacy.plan(inputs, **noise, **shared, account=account), account


def _describe(output: str, spec: SketchSpec) -> list[str]:
    """Describe the plan that was written."""
    waves = ""
    if spec.waves is not None:
        ends = map(number, dict.fromkeys(spec.waves.range))
        waves = f"bandwidth {' to '.join(ends)}, seed {spec.waves.seed}, "
    line = (
        f"Wrote {output}: {counted(spec.n_features, 'column')}, m = {spec.sketch_size:,}, "
        f"{waves}fingerprint {spec.fingerprint[:8]}."
    )
    cells = cells_in_words(spec)
    return [line] if cells is None else [line, f"It was {cells}."]
