"""``sketchshift inspect``: what is inside a sketch or a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from sketchshift.cli.command import command
from sketchshift.cli.inputs import is_table, load_any, look_into, read_spec, where_option
from sketchshift.cli.output import (
    aligned,
    column_names,
    counted,
    keys_in_words,
    next_step,
    number,
    report,
    sketch_facts,
    spec_facts,
)
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["inspect"]

SHOWN = 20
"""Columns listed for a person; ``--json`` lists all."""


@command
@click.argument("file")
@where_option
def inspect(file: str, where: str | None, as_json: bool) -> None:
    """Show what is inside FILE: a sketch, a table of sketches, or the plan of one.

    Rows, columns with their mean and standard deviation in the units of the data, and the
    spec; of a table also its slices. Two sketches merge if and only if their fingerprints are
    equal. Of a private sketch: what is promised, about how many rows, and what it was spent on.

    Examples
    --------
      sketchshift inspect day1.sketch
      sketchshift inspect sketches.parquet --where "shop = 'a'" --json

    Then: `sketchshift cluster day1.sketch -k 10`, or with a plan
    `sketchshift sketch points.csv --plan plan.json -o day1.sketch`.
    """
    path = Path(file).expanduser()
    if path.is_dir() or not path.exists():
        fact = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{file!r} {fact}. Give a .sketch file, a table or a plan.")
    if where is not None and not is_table(path):
        msg = f"--where selects slices of a table of sketches, and {file!r} is none."
        raise click.UsageError(msg)
    if _is_plan(path):
        spec = read_spec(path)
        about = {"file": file, "kind": "plan", "fingerprint": spec.fingerprint} | spec_facts(spec)
        step = next_step("sketch", "DATA", "--plan", file, "-o", "day1.sketch")
        report(about, [*_table(about), "", step], as_json=as_json)
        return
    if is_table(path):
        sketch, facts = _inspect_table(file, path, where)
    else:
        sketch, facts = _inspect_sketch(file, path)
    served = max(1, min(most_clusters(sketch.spec, None), sketch.count))
    chosen = [] if where is None else ["--where", where]
    step = next_step("cluster", file, *chosen, "-k", str(served))
    columns = ["", *_columns(facts["statistics"])] if "statistics" in facts else []
    lines = [*_table(facts), *columns, *_slices(facts), "", step]
    report(facts, lines, as_json=as_json)


def _is_plan(path: Path) -> bool:
    with path.open("rb") as file:
        return path.suffix == ".json" or file.read(64).lstrip().startswith(b"{")


def _inspect_sketch(file: str, path: Path) -> tuple[AnySketch, dict[str, Any]]:
    sketch, head = load_any(path), path.read_bytes()[8:10]
    is_private = isinstance(sketch, PrivateSketch)
    facts: dict[str, Any] = {"file": file, "kind": "private sketch" if is_private else "sketch"}
    facts |= sketch_facts(sketch, path.stat().st_size)
    facts["format_version"] = int.from_bytes(head, "little")
    if isinstance(sketch, PrivateSketch):
        return sketch, facts
    return sketch, facts | {"statistics": _statistics(sketch)}


def _inspect_table(file: str, path: Path, where: str | None) -> tuple[AnySketch, dict[str, Any]]:
    slices, counts, whole = look_into(path, where)
    facts: dict[str, Any] = {"file": file, "kind": "table of sketches"}
    facts |= sketch_facts(whole, path.stat().st_size) | {"statistics": _statistics(whole)}
    keys = zip(*(keys_in_words(column.to_pylist()) for column in slices.columns), strict=True)
    facts |= {"by": slices.column_names, "n_slices": len(slices)}
    facts["slices"] = [
        {"key": list(key), "rows": rows} for key, rows in zip(keys, counts, strict=True)
    ]
    return whole, facts


def _statistics(sketch: Sketch) -> list[dict[str, Any]]:
    rows = zip(column_names(sketch.spec), sketch.mean, np.sqrt(sketch.variance), strict=True)
    return [
        {"column": name, "mean": float(mean), "standard_deviation": float(deviation)}
        for name, mean, deviation in rows
    ]


def _table(facts: Mapping[str, Any]) -> list[str]:
    rows = [(facts["kind"], facts["file"])]
    if "n_slices" in facts:
        rows += [("slices", f"{facts['n_slices']:,} by {', '.join(facts['by'])}")]
    if "left_out" in facts:
        rows += [
            ("rows", f"{facts['rows']:,}"),
            ("left out", f"{facts['left_out']:,}"),
            ("total weight", f"{facts['total_weight']:,.10g}"),
        ]
    if facts["kind"] == "private sketch":
        rows += _promise(facts)
    if "bytes" in facts:
        rows += [("file size", f"{facts['bytes']:,} bytes")]
    if "format_version" in facts:
        rows += [("format version", str(facts["format_version"]))]
    bandwidth = facts["bandwidth"]
    ends = bandwidth if isinstance(bandwidth, tuple) else (bandwidth,)
    rows += [
        ("columns", _shortened(facts["columns"], f"{facts['n_features']:,} without names")),
        ("sketch size m", f"{facts['sketch_size']:,}"),
        ("law", facts["law"] + (", structured" if facts["structured"] else "")),
        ("bandwidth", " to ".join(map(number, ends))),
        ("far share", number(facts["far_share"])),
        ("seed", str(facts["seed"])),
        ("precision", facts["precision"]),
        ("center", _shortened(facts["center"], "0")),
        ("scale", _shortened(facts["scale"], "1")),
        ("tilt", _tilt(facts["tilt"])),
        ("origin", _origin(facts["origin"])),
        ("fingerprint", facts["fingerprint"]),
    ]
    return aligned(rows)


def _promise(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is promised, and what it was spent on."""
    charges = facts["ledger"]["charges"]
    spent = ", ".join(f"{charge['purpose']} {number(charge['rho'])}" for charge in charges)
    neighbours = f"{facts['adjacency']}, {counted(facts['rows_per_person'], 'row')} a person"
    return [
        ("promise", facts["statement"]),
        ("neighbours", neighbours),
        ("ledger (rho)", f"{number(facts['rho'])}: {spent}"),
        ("noise in z", f"{number(facts['noise_std'])} in each part of sqrt(m) z"),
    ]


def _origin(origin: Mapping[str, Any] | None) -> str:
    if origin is None:
        return "not said: not for private releases"
    return f"{origin['kind']}, rows clipped at {number(origin['radius'])} x scale"


def _tilt(tilt: Mapping[str, float] | None) -> str:
    return "none" if tilt is None else f"radius {number(tilt['radius'])}, cap {number(tilt['cap'])}"


def _shortened(values: Any, default: str) -> str:
    """Values between commas, the first eight of them."""
    if values is None:
        return default
    values = values if isinstance(values, tuple) else (values,)
    shown = [value if isinstance(value, str) else number(value) for value in values[:8]]
    more = f" and {len(values) - 8:,} more" if len(values) > 8 else ""
    return ", ".join(shown) + more


def _slices(facts: Mapping[str, Any]) -> list[str]:
    """The keys with their numbers of rows, the first ones of many."""
    if "slices" not in facts:
        return []
    cells = [(*facts["by"], "rows")]
    for part in facts["slices"][:SHOWN]:
        cells.append((*("-" if key is None else key for key in part["key"]), f"{part['rows']:,}"))
    more = facts["n_slices"] - SHOWN
    return ["", *aligned(cells, right=True)] + [f"and {more:,} more: see --json"] * (more > 0)


def _columns(statistics: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [("column", "mean", "standard deviation")]
    for row in statistics[:SHOWN]:
        cells.append((row["column"], number(row["mean"]), number(row["standard_deviation"])))
    more = len(statistics) - SHOWN
    return aligned(cells, right=True) + [f"and {more:,} more: see --json"] * (more > 0)
