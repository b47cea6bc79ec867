"""``sketchshift private-plan``: a plan that may be published with every release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sketchshift.cli.command import EverydayOption, command
from sketchshift.cli.inputs import data_files, paths_of, query_option
from sketchshift.cli.options import (
    LARGEST_K,
    NUMBERS,
    columns_option,
)
from sketchshift.cli.output import (
    Output,
    check_output,
    show_progress,
    spec_record,
    typed_options,
)
from sketchshift.cli.plan import describe_plan, write_plan
from sketchshift.cli.release import (
    account_options,
    describe_spending,
    open_account,
    promise_options,
)
from sketchshift.features import SketchSpec

if TYPE_CHECKING:
    from sketchshift.privacy import Account

__all__ = ["private_plan"]

_POSITIVE = click.FloatRange(min=0, min_open=True)
_COSTS = ("epsilon", "delta", "account", "budget")  # of a plan from private rows alone


@command
@click.argument("data", required=False)
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.json).")
@click.option("-k", "--n-clusters", type=LARGEST_K, required=True)
@click.option(
    "--center",
    cls=EverydayOption,
    type=NUMBERS,
    help="Middle of the data as you know it: 0,0.5,-2.",
)
@click.option(
    "--radius", type=_POSITIVE, help="Radius of a ball around --center that holds the data."
)
@click.option(
    "--spread", type=_POSITIVE, help="Without DATA: the typical distance of a row from --center."
)
@click.option("--public", is_flag=True, help="DATA is a public sample, like the private rows.")
@click.option("--no-cells", is_flag=True, help="With --public: plan waves alone, without cells.")
@promise_options(required=False)
@account_options
@columns_option
@query_option
@click.option("-m", "--sketch-size", type=click.IntRange(min=1), help="Default: 10·k·d.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.pass_context
def private_plan(
    ctx: click.Context, /, data: str | None, output: str, out: Output, **flags: Any
) -> None:
    """Write a plan whose numbers tell nothing of private rows.

    A plan is published with every release. So its numbers must not come from private rows as
    they are. There are three ways. From private DATA: numbers get noise, at the cost of --epsilon
    and --delta, which an --account can charge; --center and --radius say about where the rows lie,
    and may be 100 times too large. From a sample of rows that anybody may see: --public. Without
    DATA: from --center and --spread that you declare.

    Examples
    --------
      sketchshift private-plan points.csv --public -k 3 -o plan.json
      sketchshift private-plan -k 3 --center 0,0 --spread 2 --columns x,y -o plan.json --json

    Then: `sketchshift sketch people.csv --plan plan.json -o people.sketch`, and
    `sketchshift release people.sketch --epsilon 1 --delta 1e-8 -o week.private.sketch`.
    """
    inputs = [] if data is None else data_files([data])
    path = flags["account"]
    target = check_output(output, [*paths_of(inputs), *([] if path is None else [path])])
    with show_progress("items", "Planning on the rows"):
        spec, account = _plan(inputs, flags)
    write_plan(spec, target)
    query = typed_options(click.get_current_context(), only=("query",))
    record = {
        "command": "private-plan",
        "output": output,
        "fingerprint": spec.fingerprint,
        "spent": None if account is None else account.spent,
    }
    out.report(
        record | spec_record(spec),
        [*describe_plan(output, spec), *describe_spending(account, path)],
        then=["sketch", data or "DATA", *query, "--plan", output, "-o", "people.sketch"],
    )


def _plan(inputs: Any, flags: dict[str, Any]) -> tuple[SketchSpec, Account | None]:
    """The plan, and the account that it was charged to."""
    from sketchshift import privacy

    shared = {name: flags[name] for name in ("n_clusters", "sketch_size", "seed", "columns")}
    if not inputs:
        _need(flags, "declared", ("center", "spread"), ("public", "no_cells", *_COSTS))
        spec = privacy.plan_declared(
            flags["center"], flags["spread"], radius=flags["radius"], **shared
        )
        return spec, None
    if flags["public"]:
        _need(flags, "public", (), ("center", "spread", *_COSTS))
        cells = not flags["no_cells"]
        return privacy.plan_public(inputs, radius=flags["radius"], cells=cells, **shared), None
    _need(flags, "private", ("center", "radius", "epsilon", "delta"), ("spread", "no_cells"))
    names = ("center", "radius", "epsilon", "delta", "adjacency", "rows_per_person")
    private = {name: flags[name] for name in names}
    account = open_account(flags["account"], flags["budget"], flags["delta"])
    return privacy.plan(inputs, **private, **shared, account=account), account


def _need(
    flags: dict[str, Any], kind: str, needed: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """Refuse a plan of one kind with the flags of another."""
    what = {
        "declared": "a plan without DATA",
        "public": "a plan from a --public sample",
        "private": "a plan from private DATA",
    }[kind]
    missing = [f"--{name}" for name in needed if flags[name] is None]
    if missing:
        raise click.UsageError(f"{what} needs {', '.join(missing)}.")
    given = [f"--{name.replace('_', '-')}" for name in others if flags[name]]
    if given:
        raise click.UsageError(f"{what} takes no {', '.join(given)}.")
