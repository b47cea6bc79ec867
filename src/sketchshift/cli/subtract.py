"""``sketchshift subtract``: the sketch of what remains without some parts."""

from __future__ import annotations

import click

from sketchshift.cli.command import command
from sketchshift.cli.facts import counted, next_step, report, sketch_facts, wrote
from sketchshift.cli.files import check_output, sketch_files
from sketchshift.errors import DataError
from sketchshift.sketch import load

__all__ = ["subtract"]


@command
@click.argument("whole")
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where to write (.sketch).")
def subtract(whole: str, parts: tuple[str, ...], output: str, as_json: bool) -> None:
    """Take the rows of the sketches PART out of the sketch WHOLE.

    The result is the sketch of the remaining rows, bit for bit as if the others had never
    been read: yesterday leaves a sliding window, one person leaves a dataset. The rows must
    be in; removing more than was added is refused. A PART may be a quoted glob.

    Examples
    --------
      sketchshift subtract week.sketch day1.sketch -o rest.sketch
      sketchshift subtract week.sketch 'day*.sketch' -o rest.sketch

    Then: `sketchshift inspect rest.sketch`. To add it back: `sketchshift merge`.
    """
    files = sketch_files([whole, *parts])
    if len(sketch_files([whole])) > 1:
        raise DataError(f"WHOLE must be one sketch, and {whole!r} matches several.")
    target = check_output(output, files)
    rest = load(files[0])
    for file in files[1:]:
        rest = rest - load(file)
    rest.save(target)
    size = target.stat().st_size
    removed = [str(file) for file in files[1:]]
    facts = {"command": "subtract", "output": output, "whole": whole, "subtracted": removed}
    lines = [
        f"Subtracted {counted(len(removed), 'sketch')} from {whole}.",
        wrote(output, rest, size),
        next_step("inspect", output),
    ]
    report(facts | sketch_facts(rest, size), lines, as_json=as_json)
