"""``sketchshift subtract``: the sketch of what remains without some parts."""

from __future__ import annotations

import click

from sketchshift._text import counted
from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_sum, sketch_files
from sketchshift.cli.options import where_option
from sketchshift.cli.output import Output, check_output, describe_file, sketch_record
from sketchshift.errors import DataError

__all__ = ["subtract"]


@command
@click.argument("whole")
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@where_option
def subtract(
    whole: str, parts: tuple[str, ...], output: str, where: str | None, out: Output
) -> None:
    """Take the rows of the sketches PART out of the sketch WHOLE.

    The result is the sketch of the remaining rows, bit for bit as if the others had never been
    read. So a window slides from day to day, and a person leaves a dataset. Subtract only rows
    that were added: to remove more is refused. A PART may be a quoted glob, or a table that
    `sketchshift sketch --by` wrote, of which --where selects slices.

    Examples
    --------
      sketchshift subtract week.sketch 'day*.sketch' -o rest.sketch
      sketchshift subtract all.sketch sketches.parquet --where "shop = 'a'" -o rest.sketch

    Then: `sketchshift inspect rest.sketch`. To add it back: `sketchshift merge`.
    """
    files = sketch_files([whole, *parts])
    if len(sketch_files([whole])) > 1:
        raise DataError(f"WHOLE must be one sketch, and {whole!r} matches several.")
    target = check_output(output, files)
    rest = load_sum(files[:1]) - load_sum(files[1:], where)
    rest.save(target)
    size = target.stat().st_size
    record = {
        "command": "subtract",
        "output": output,
        "whole": whole,
        "subtracted": [str(file) for file in files[1:]],
        "where": where,
    }
    lines = [
        f"Subtracted {counted(len(files) - 1, 'file')}{f' where {where}' if where else ''} from "
        f"{whole}.",
        describe_file(output, rest, size),
    ]
    out.report(record | sketch_record(rest, size), lines, then=["inspect", output])
