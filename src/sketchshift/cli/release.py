"""``sketchshift release``: a raw sketch with the noise of differential privacy."""

from __future__ import annotations

from pathlib import Path

import click

from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_raw, sketch_files
from sketchshift.cli.options import (
    account_options,
    open_account,
    promise_options,
    spent_facts,
)
from sketchshift.cli.output import check_output, next_step, report, sketch_facts, wrote

__all__ = ["release"]


@command
@click.argument("sketch", metavar="SKETCH")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@promise_options(required=True)
@account_options
@click.option("--force", is_flag=True, help="Also if clusters will be mostly noise.")
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
    as_json: bool,
) -> None:
    """Release SKETCH with differential privacy: z and the number of rows, with noise.

    Whoever holds the result learns nearly nothing of any one person; it decodes for any k, at
    no further cost. SKETCH is raw, taken with a plan that may be published: one written by
    `sketchshift private-plan`. Keep raw sketches as safe as the data. A --account refuses what
    its budget does not cover; a release elsewhere of a copied sketch it cannot see.

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
    kept = open_account(account, budget, delta)
    released = privacy.release(
        raw, epsilon, delta, adjacency, rows_per_person, account=kept, force=force
    )
    released.save(target)
    size = target.stat().st_size
    spent, lines = spent_facts(kept, account)
    facts = {"command": "release", "output": output, **spent, **sketch_facts(released, size)}
    lines = [wrote(output, released, size), *lines, next_step("inspect", output)]
    report(facts, lines, as_json=as_json)
