"""``sketchshift merge``: sketches added up, and others taken away."""

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
@click.option(
    "--minus",
    multiple=True,
    metavar="FILE",
    help="Sketches to subtract from the sum: rows that were added before. Repeatable.",
)
@where_option
def merge(
    sketches: tuple[str, ...],
    output: str,
    minus: tuple[str, ...],
    where: str | None,
    out: Output,
) -> None:
    """Add sketches of parts of a dataset, and subtract others (--minus).

    The result is the sketch of all their rows together, bit for bit as if they had been
    read in one pass, without the rows of --minus. So a window slides from day to day, and a person
    leaves a dataset. All sketches must have been made with one plan. A SKETCH or FILE may be a
    quoted glob, or a table that `sketchshift sketch --by` wrote, of which --where selects slices:
    those to subtract, if there is a --minus. Private sketches merge as well: their costs add up.

    Examples
    --------
      sketchshift merge 'day*.sketch' -o sum.sketch
      sketchshift merge week.sketch --minus day1.sketch -o rest.sketch

    Then: `sketchshift inspect rest.sketch`.
    """
    added = sketch_files(sketches)
    gone = sketch_files(minus)  # a table may stand in both: --where selects what is subtracted
    target = check_output(output, [*added, *gone])
    with show_progress("items", "Adding sketches"):
        total = load_sum(added, None if gone else where)
        if gone:
            total = total - load_sum(gone, where)
    total.save(target)
    size = target.stat().st_size
    record = {
        "command": "merge",
        "output": output,
        "merged": [str(file) for file in added],
        "subtracted": [str(file) for file in gone],
        "where": where,
    }
    condition = f" where {where}" if where else ""
    less = f" and subtracted {counted(len(gone), 'file')}" if gone else ""
    lines = [
        f"Merged {counted(len(added), 'file')}{less}{condition}.",
        describe_file(output, total, size),
    ]
    out.report(record | sketch_record(total, size), lines, then=["inspect", output])
