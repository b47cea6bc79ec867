"""``sketchshift release``: a raw sketch with the noise of differential privacy."""

from __future__ import annotations

import click

from sketchshift.cli.command import command
from sketchshift.cli.facts import next_step, report, sketch_facts, wrote
from sketchshift.cli.files import check_output, load_raw, sketch_files
from sketchshift.cli.privacy_options import promise_options

__all__ = ["release"]


@command
@click.argument("sketch", metavar="SKETCH")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@promise_options(required=True)
@click.option("--account", metavar="PATH", help="Charge a budget that is kept in this .json file.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    help="With a new --account: the epsilon that all releases together may cost, at --delta.",
)
@click.option("--force", is_flag=True, help="Also if clusters will be mostly noise.")
def release(
    sketch: str,
    output: str,
    epsilon: float,
    delta: float,
    adjacency: str,
    rows_per_person: int,
    account: str | None,
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

    if budget is not None and account is None:
        raise click.UsageError("--budget is that of an --account. Give both.")
    (file,) = sketch_files([sketch])
    target = check_output(output, [file])
    kept = None
    if account is not None:
        kept = privacy.Account(account, budget, None if budget is None else delta)
    released = privacy.release(
        load_raw(file), epsilon, delta, adjacency, rows_per_person, account=kept, force=force
    )
    released.save(target)
    size = target.stat().st_size
    facts = {"command": "release", "output": output, "spent": None if kept is None else kept.spent}
    lines = [wrote(output, released, size), next_step("inspect", output)]
    if kept is not None:
        spent = f"epsilon {kept.spent:.4g} of {kept.epsilon:g} at delta {kept.delta:g}"
        lines.insert(1, f"Spent {spent} of {account}.")
    report(facts | sketch_facts(released, size), lines, as_json=as_json)
