"""``sketchshift release``: a raw sketch with the noise of differential privacy."""

from __future__ import annotations

from pathlib import Path

import click

from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_raw, sketch_files
from sketchshift.cli.options import (
    account_options,
    describe_spending,
    open_account,
    promise_options,
)
from sketchshift.cli.output import Output, check_output, describe_file, sketch_record

__all__ = ["release"]


@command
@click.argument("sketch", metavar="SKETCH")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@promise_options(required=True)
@account_options
@click.option("--force", is_flag=True, help="Release even if the clusters will be mostly noise.")
def release(
    sketch: str,
    output: str,
    epsilon: float,
    delta: float,
    adjacency: str,
    rows_per_person: int,
    account: Path | None,
    budget: float | None,
    force: bool,
    out: Output,
) -> None:
    """Add noise to SKETCH, so that it may be published: differential privacy.

    Whoever holds the result learns nearly nothing of any one person. It can be clustered for any
    k, at no further cost. SKETCH is raw, and was made with a plan of `sketchshift private-plan`,
    which may be published too. Keep raw sketches as safe as the data. An --account refuses what
    its budget does not cover. It cannot see releases of copies of the sketch elsewhere.

    Examples
    --------
      sketchshift release people.sketch --epsilon 1 --delta 1e-8 -o week.private.sketch
      sketchshift release people.sketch --epsilon 1 --delta 1e-8 -o week.private.sketch --json

    Then: `sketchshift inspect week.private.sketch`, or
    `sketchshift cluster week.private.sketch -k 3`.
    """
    from sketchshift import privacy

    (file,) = sketch_files([sketch])
    target = check_output(output, [file, *([] if account is None else [account])])
    raw = load_raw(file)
    budgeted = open_account(account, budget, delta)
    private = privacy.release(
        raw, epsilon, delta, adjacency, rows_per_person, account=budgeted, force=force
    )
    private.save(target)
    size = target.stat().st_size
    record = {
        "command": "release",
        "output": output,
        "spent": None if budgeted is None else budgeted.spent,
    }
    lines = [describe_file(output, private, size), *describe_spending(budgeted, account)]
    out.report(record | sketch_record(private, size), lines, then=["inspect", output])
