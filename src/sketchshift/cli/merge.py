"""``sketchshift merge``: the sketch of all the data from the sketches of its parts."""

from __future__ import annotations

import click

from sketchshift._text import counted
from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_sum, sketch_files
from sketchshift.cli.options import where_option
from sketchshift.cli.output import Output, check_output, describe_file, show_progress, sketch_record

__all__ = ["merge"]


@command
@click.argument("sketches", nargs=-1, required=True, metavar="SKETCH...")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@click.option("--disjoint", is_flag=True, help="Private sketches: no person is in two of them.")
@where_option
def merge(
    sketches: tuple[str, ...], output: str, disjoint: bool, where: str | None, out: Output
) -> None:
    """Add sketches of parts of a dataset.

    The result is the sketch of all their rows together, bit for bit as if they had been
    read in one pass. All must have been made with one plan. A SKETCH may be a quoted glob,
    or a table that `sketchshift sketch --by` wrote, of which --where selects slices. Private
    sketches merge as well: their costs add up, or with --disjoint the largest one counts.

    Examples
    --------
      sketchshift merge 'day*.sketch' -o week.sketch
      sketchshift merge sketches.parquet --where "day >= '2026-01-05'" -o some.sketch

    Then: `sketchshift inspect week.sketch`. To take a part out again:
    `sketchshift subtract`.
    """
    files = sketch_files(sketches)
    target = check_output(output, files)
    with show_progress("items", "Adding sketches"):
        total = load_sum(files, where, disjoint=disjoint)
    total.save(target)
    size = target.stat().st_size
    record = {
        "command": "merge",
        "output": output,
        "merged": [str(file) for file in files],
        "where": where,
    }
    lines = [
        f"Merged {counted(len(files), 'file')}{f' where {where}' if where else ''}.",
        describe_file(output, total, size),
    ]
    out.report(record | sketch_record(total, size), lines, then=["inspect", output])
