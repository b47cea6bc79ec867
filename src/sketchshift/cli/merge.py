"""``sketchshift merge``: the sketch of all the data from the sketches of its parts."""

from __future__ import annotations

import click

from sketchshift.cli.command import command
from sketchshift.cli.facts import counted, next_step, report, sketch_facts, wrote
from sketchshift.cli.files import check_output, load_sum, sketch_files

__all__ = ["merge"]


@command
@click.argument("sketches", nargs=-1, required=True, metavar="SKETCH...")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@click.option("--disjoint", is_flag=True, help="Private sketches: no person is in two of them.")
def merge(sketches: tuple[str, ...], output: str, disjoint: bool, as_json: bool) -> None:
    """Add sketches of parts of a dataset.

    The result is the sketch of all their rows together, bit for bit as if they had been
    read in one pass. All must have been taken with one plan. A SKETCH may be a quoted glob;
    one sketch is in memory at a time. Private sketches merge as well: their costs add up, or
    with --disjoint the dearest counts.

    Examples
    --------
      sketchshift merge day1.sketch day2.sketch -o both.sketch
      sketchshift merge 'day*.sketch' -o week.sketch --json

    Then: `sketchshift inspect week.sketch`. To take a part out again:
    `sketchshift subtract`.
    """
    files = sketch_files(sketches)
    target = check_output(output, files)
    total = load_sum(files, disjoint=disjoint)
    total.save(target)
    size = target.stat().st_size
    facts = {"command": "merge", "output": output, "merged": [str(file) for file in files]}
    lines = [
        f"Merged {counted(len(files), 'sketch')}.",
        wrote(output, total, size),
        next_step("inspect", output),
    ]
    report(facts | sketch_facts(total, size), lines, as_json=as_json)
