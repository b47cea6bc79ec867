"""The facts a command reports: the same ones to people and to machines."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import click

from sketchshift._text import visible, visible_lines
from sketchshift.features import Origin, SketchSpec
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch

__all__ = [
    "aligned",
    "between_commas",
    "column_names",
    "counted",
    "keys_in_words",
    "left_out",
    "next_step",
    "number",
    "promise",
    "quoted",
    "report",
    "rows_in_words",
    "say",
    "sketch_facts",
    "spec_facts",
    "wrote",
]


MIDNIGHT = time_of_day()


def report(facts: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print the facts as one JSON object, or the lines that tell them.

    Parameters
    ----------
    facts : mapping
        Numbers, texts, lists and mappings of them. NaN and infinity become null.
    lines : iterable of str
        The same facts for a person.
    as_json : bool
        Which of the two.
    """
    if as_json:
        say(json.dumps(_finite(facts), allow_nan=False))
        return
    for line in lines:
        say(visible(line))


def say(text: str, *, err: bool = False) -> None:
    """Print text: all that goes to a terminal passes here, and none of it can control one."""
    click.echo(visible_lines(text), err=err)


def spec_facts(spec: SketchSpec) -> dict[str, Any]:
    """What a spec says, defaults included; cheap, without the fingerprint."""
    tilt = None if spec.tilt is None else {"radius": spec.tilt.radius, "cap": spec.tilt.cap}
    return {
        "n_features": spec.n_features,
        "columns": spec.columns,
        "sketch_size": spec.sketch_size,
        "bandwidth": spec.bandwidth,
        "seed": spec.seed,
        "law": spec.law,
        "structured": spec.structured,
        "far_share": spec.far_share,
        "precision": spec.precision,
        "center": spec.center,
        "scale": spec.scale,
        "tilt": tilt,
        "origin": None if spec.origin is None else _origin_facts(spec.origin),
    }


def _origin_facts(origin: Origin) -> dict[str, Any]:
    """Where a plan that may be published comes from; the ledger has its charges."""
    return {"kind": origin.kind, "radius": origin.radius}


def column_names(spec: SketchSpec) -> Sequence[str]:
    """Names of the columns, or their positions in words."""
    return spec.columns or [f"column {i}" for i in range(spec.n_features)]


def sketch_facts(sketch: AnySketch, n_bytes: int) -> dict[str, Any]:
    """What a sketch holds, beside its numbers."""
    facts: dict[str, Any] = {"rows": sketch.count, "total_weight": sketch.total_weight}
    if isinstance(sketch, Sketch):
        facts["left_out"] = sketch.n_invalid
    if isinstance(sketch, PrivateSketch):
        facts |= _privacy_facts(sketch)
    facts |= {"bytes": n_bytes, "fingerprint": sketch.fingerprint}
    return facts | spec_facts(sketch.spec)


def _privacy_facts(sketch: PrivateSketch) -> dict[str, Any]:
    ledger = sketch.ledger
    return {
        "statement": sketch.statement,
        "rows_std": sketch.count_std,
        "epsilon": ledger.epsilon(),
        "delta": ledger.delta,
        "rho": ledger.rho,
        "adjacency": ledger.charges[0].adjacency,
        "rows_per_person": ledger.charges[0].rows_per_person,
        "noise_std": sketch.noise_std,
        "ledger": ledger.to_dict(),
    }


def rows_in_words(sketch: AnySketch) -> str:
    """How many rows there are, or about how many."""
    return sketch.about + counted(sketch.count, "row")


def promise(sketch: AnySketch) -> list[str]:
    """The line that says what a private sketch promises; none of a raw one."""
    return [f"Promise: {sketch.statement}."] if isinstance(sketch, PrivateSketch) else []


def wrote(output: str, sketch: AnySketch, n_bytes: int) -> str:
    """The sentence that says what was written."""
    if not isinstance(sketch, Sketch):
        columns = counted(sketch.spec.n_features, "column")
        promise = f": {sketch.statement}" if isinstance(sketch, PrivateSketch) else ""
        return f"Wrote {output}{promise} x {columns}, in {n_bytes:,} bytes."
    weight = sketch.total_weight
    weighed = f" of total weight {weight:.6g}" if weight != sketch.count else ""
    columns = counted(sketch.spec.n_features, "column")
    rows = counted(sketch.count, "row")
    return f"Wrote {output}: {rows}{weighed} x {columns} in {n_bytes:,} bytes{left_out(sketch)}."


def left_out(sketch: AnySketch) -> str:
    """How many rows were left out, to go on with a sentence; nothing if there are none."""
    n = sketch.n_invalid if isinstance(sketch, Sketch) else 0
    return f", {counted(n, 'row')} left out" if n else ""


def keys_in_words(keys: Sequence[Any]) -> list[str | None]:
    """Keys of the slices, of one column; times as dates, where all of them are midnights."""
    times = [key for key in keys if isinstance(key, datetime)]
    are_dates = all(time.timetz() == MIDNIGHT for time in times)
    shown = (key.date() if are_dates and isinstance(key, datetime) else key for key in keys)
    return [None if key is None else str(key) for key in shown]


def counted(n: int, noun: str) -> str:
    """A number of things: ``"1 row"``, ``"2,000 rows"``."""
    plural = noun if n == 1 else noun + ("es" if noun.endswith("ch") else "s")
    return f"{n:,} {plural}"


def next_step(*arguments: str | Path) -> str:
    """The line that names the command to run next, quoted for a shell."""
    return "Next: sketchshift " + " ".join(quoted(str(argument)) for argument in arguments)


def quoted(word: str) -> str:
    """Double quotes around a condition with single ones: easier to read than what shlex does."""
    is_plain = "'" in word and not any(sign in word for sign in '"$`\\!')
    return f'"{word}"' if is_plain else shlex.quote(word)


def between_commas(values: Sequence[Any]) -> str:
    """Names or numbers as an option takes them; a name that holds a comma in double quotes."""
    names = (f'"{v}"' if isinstance(v, str) and "," in v else str(v) for v in values)
    return ",".join(names)


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Lines of a table: cells padded to the widest of their column, two blanks between.

    Parameters
    ----------
    rows : sequence of rows of str
        All of one length.
    right : bool
        Whether all columns but the first are set flush right, as numbers are.

    Returns
    -------
    lines : list of str
        Without blanks at their ends.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def pad(i: int, cell: str) -> str:
        return cell.rjust(widths[i]) if right and i else cell.ljust(widths[i])

    return ["  ".join(pad(i, cell) for i, cell in enumerate(row)).rstrip() for row in rows]


def number(value: float) -> str:
    """Six significant digits; a dash where there is no number."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
