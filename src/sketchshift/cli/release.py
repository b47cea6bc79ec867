"""``sketchshift release``: a raw sketch with the noise of differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_raw, sketch_files
from sketchshift.cli.options import FiniteRange, Options
from sketchshift.cli.output import Output, check_output, describe_file, sketch_record

if TYPE_CHECKING:
    from sketchshift.privacy import Account

__all__ = ["account_options", "describe_spending", "open_account", "promise_options", "release"]

# The flags of a promise and of an account, which ``plan --private`` has as well.


def promise_options(*, required: bool) -> Options:
    """Add ``--epsilon``, ``--delta`` and ``--rows-per-person``."""
    return Options(
        click.option(
            "--epsilon",
            type=float,
            required=required,
            help="Privacy loss that is promised: below 1 is strong, above 10 is weak.",
        ),
        click.option(
            "--delta",
            type=float,
            required=required,
            help="Probability that the promise fails: choose it far below 1 / people.",
        ),
        click.option(
            "--rows-per-person",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="The most rows that one person has.",
        ),
    )


account_options = Options(
    click.option(
        "--account",
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="Charge a budget that is kept in this .json file.",
    ),
    click.option(
        "--budget",
        type=FiniteRange(min=0, min_open=True),
        help="With a new --account: the total epsilon that may be spent, at --delta.",
    ),
)


def open_account(path: Path | None, budget: float | None, delta: float) -> Account | None:
    """The account of these flags, made if it is new."""
    from sketchshift.privacy import Account

    if path is not None and budget is None and not path.exists():
        msg = (
            f"the account {str(path)!r} is not there yet. Give its --budget, the total epsilon "
            "that may be spent."
        )
        raise click.UsageError(msg)
    if path is not None:
        return Account(path, budget, None if budget is None else delta)
    if budget is not None:
        raise click.UsageError("--budget belongs to an --account. Give both.")
    return None


def describe_spending(account: Account | None, path: Path | None) -> list[str]:
    """The line that says how much of an account is spent; none without an account."""
    if account is None:
        return []
    limit = f"{account.epsilon:g} at delta {account.delta:g}"
    return [f"Spent epsilon {account.spent:.4g} of {limit} of {path}."]


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
    rows_per_person: int,
    account: Path | None,
    budget: float | None,
    force: bool,
    out: Output,
) -> None:
    """Add noise to SKETCH, so that it may be published: differential privacy.

    Whoever holds the result learns nearly nothing of any one person. It can be clustered for any
    k, at no further cost. SKETCH is raw, and was made with a plan of `sketchshift plan --private`,
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
        raw, epsilon, delta, rows_per_person=rows_per_person, account=budgeted, force=force
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
