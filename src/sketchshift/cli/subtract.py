"""``sketchshift subtract``: the sketch of what remains without some parts."""

from __future__ import annotations

from typing import Any

import click

from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_sum, sketch_files, where_option
from sketchshift.cli.output import check_output, counted, next_step, report, sketch_facts, wrote
from sketchshift.errors import DataError

__all__ = ["subtract"]


@command
@click.argument("whole")
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
@where_option
def subtract(
    whole: str, parts: tuple[str, ...], output: str, where: str | None, as_json: bool
) -> None:
    """Take the rows of the sketches PART out of the sketch WHOLE.

    The result is the sketch of the remaining rows, bit for bit as if the others had never
    been read: yesterday leaves a sliding window, one person leaves a dataset. The rows must
    be in; removing more than was added is refused. A PART may be a quoted glob, or a table
    that `sketchshift sketch --by` wrote, of which --where selects slices.

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
    removed = [str(file) for file in files[1:]]
    facts: dict[str, Any] = {
        "command": "subtract",
        "output": output,
        "whole": whole,
        "subtracted": removed,
    }
    lines = [
        f"Subtracted {counted(len(removed), 'file')}{f' where {where}' if where else ''} from "
        f"{whole}.",
        wrote(output, rest, size),
        next_step("inspect", output),
    ]
    report(facts | {"where": where} | sketch_facts(rest, size), lines, as_json=as_json)
