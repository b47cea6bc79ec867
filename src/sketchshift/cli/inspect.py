"""``sketchshift inspect``: what is inside a sketch or a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

from sketchshift._paths import Place, parse_path, shown
from sketchshift._text import column_names, counted, number
from sketchshift.cli.command import command
from sketchshift.cli.inputs import is_table, load_any, look_into, read_spec, size_of
from sketchshift.cli.options import where_option
from sketchshift.cli.output import Output, align, keys_in_words, sketch_record, spec_record
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch, load
from sketchshift.sketch.file import is_cube

__all__ = ["inspect"]

SHOWN = 20
"""Columns listed for a person; ``--json`` lists all."""


@command
@click.argument("file")
@where_option
def inspect(file: str, where: str | None, out: Output) -> None:
    """Show what is inside FILE: a sketch, a table of sketches, a cube, or a plan.

    Of a sketch: its rows, the mean and standard deviation of its columns in the units of the data,
    and the plan that it was made with. Of a table also its slices. Two sketches merge if their
    fingerprints are equal. Of a private sketch: what it promises, about how many rows it has, and
    what it has cost.

    Examples
    --------
      sketchshift inspect day1.sketch
      sketchshift inspect sketches.parquet --where "shop = 'a'" --json

    Then: `sketchshift cluster day1.sketch -k 10`, or with a plan
    `sketchshift sketch points.csv --plan plan.json -o day1.sketch`.
    """
    path, file = parse_path(file).expanduser(), shown(file)
    if (path.is_dir() and not is_cube(path)) or not path.exists():
        fact = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{file!r} {fact}. Give a .sketch file, a table or a plan.")
    if where is not None and not is_table(path):
        msg = f"--where selects slices of a table of sketches, and {file!r} is none."
        raise click.UsageError(msg)
    if _is_plan(path):
        spec = read_spec(path)
        about = {"file": file, "kind": "plan", "fingerprint": spec.fingerprint} | spec_record(spec)
        then = ["sketch", "DATA", "--plan", file, "-o", "day1.sketch"]
        out.report(about, [*_table(about), ""], then)
        return
    if is_table(path):
        sketch, record = _inspect_table(file, path, where)
    else:
        sketch, record = _inspect_sketch(file, path)
    columns = ["", *_columns(record["statistics"])] if "statistics" in record else []
    condition = [] if where is None else ["--where", where]
    k = max(1, min(most_clusters(sketch.spec, None), sketch.count))
    out.report(
        record,
        [*_table(record), *columns, *_slices(record), ""],
        then=["cluster", file, *condition, "-k", str(k), *_decoder(sketch.spec)],
    )


def _decoder(spec: SketchSpec) -> list[str]:
    """What the command needs beside k: the usual decoder takes no landmarks."""
    is_landmarks_alone = spec.landmarks is not None and not spec.sketch_size
    return ["--decoder", "sketch-and-shift"] if is_landmarks_alone else []


def _is_plan(path: Place) -> bool:
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return path.suffix == ".json" or file.read(64).lstrip().startswith(b"{")


def _inspect_sketch(file: str, path: Place) -> tuple[AnySketch, dict[str, Any]]:
    sketch = load_any(path)
    is_private = isinstance(sketch, PrivateSketch)
    record: dict[str, Any] = {"file": file, "kind": "private sketch" if is_private else "sketch"}
    record |= _record_of_cube(path) | sketch_record(sketch, size_of(path))
    if isinstance(sketch, PrivateSketch):
        return sketch, record
    return sketch, record | {"statistics": _statistics(sketch)}


def _inspect_table(file: str, path: Place, where: str | None) -> tuple[AnySketch, dict[str, Any]]:
    slices, counts, whole = look_into(path, where)
    record: dict[str, Any] = {"file": file, "kind": "table of sketches"} | _record_of_cube(path)
    record |= sketch_record(whole, size_of(path)) | {"statistics": _statistics(whole)}
    keys = zip(*(keys_in_words(column.to_pylist()) for column in slices.columns), strict=True)
    record |= {"by": slices.column_names, "n_slices": len(slices)}
    record["slices"] = [
        {"key": list(key), "rows": rows} for key, rows in zip(keys, counts, strict=True)
    ]
    return whole, record


def _record_of_cube(path: Place) -> dict[str, Any]:
    """What a cube has beside its rows; nothing of a file."""
    if not is_cube(path):
        return {}
    cube = load(path)
    return {"kind": "cube" if cube.by else "sketch in a cube", "version": cube.version}


def _statistics(sketch: Sketch) -> list[dict[str, Any]]:
    if not sketch.spec.has_moments:
        return []
    names = column_names(sketch.spec)
    rows = zip(names, sketch.mean, np.sqrt(sketch.variance), strict=True)
    return [
        {"column": name, "mean": float(mean), "standard_deviation": float(deviation)}
        for name, mean, deviation in rows
    ]


def _table(record: Mapping[str, Any]) -> list[str]:
    rows = [(record["kind"], record["file"])]
    if "n_slices" in record:
        rows += [("slices", f"{record['n_slices']:,} by {', '.join(record['by'])}")]
    if "left_out" in record:
        rows += [
            ("rows", f"{record['rows']:,}"),
            ("left out", f"{record['left_out']:,}"),
            ("total weight", f"{record['total_weight']:,.10g}"),
            *_places(record["where"]),
        ]
    if record["kind"] == "private sketch":
        rows += _promise(record)
    if "bytes" in record:
        rows += [("file size", f"{record['bytes']:,} bytes")]
    bandwidth = record["bandwidth"]
    ends = bandwidth if isinstance(bandwidth, tuple) else (bandwidth,)
    rows += [
        ("columns", _shorten(record["columns"], f"{record['n_features']:,} without names")),
        ("cells", "none" if record["cells"] is None else record["cells"]["sentence"]),
        *([("landmarks", f"{record['landmarks']:,}")] if record["landmarks"] else []),
        ("sketch size m", f"{record['sketch_size']:,}"),
        ("law", _law(record)),
        ("bandwidth", " to ".join(map(number, ends))),
        ("far share", number(record["far_share"])),
        ("seed", str(record["seed"])),
        ("precision", record["precision"]),
        ("center", _shorten(record["center"], "0")),
        ("scale", _shorten(record["scale"], "1")),
        ("origin", _origin(record["origin"])),
        ("fingerprint", record["fingerprint"]),
    ]
    return align(rows)


def _law(record: Mapping[str, Any]) -> str:
    saturation = record["saturation"]
    until = "" if saturation is None else f", saturation {number(saturation)}"
    return f"{record['law']}{until}" + (", structured" if record["structured"] else "")


def _places(where: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Where the rows are, of a sketch with cells."""
    if where is None:
        return []
    rows = [("in cells", f"{where['in_cells']:,.10g}")]
    if where["outer"] or where["far"]:
        far = f"{where['outer'] + where['far']:,.10g}, of which waves miss {where['far']:,.10g}"
        rows += [("beyond all cells", f"{far}; up to {number(where['farthest'])} spreads away")]
    if where["partial"]:
        rows += [("partial weights", f"{where['partial']:,}")]
    return rows


def _promise(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is promised, and what it was spent on."""
    charges = record["ledger"]["charges"]
    spent = ", ".join(f"{charge['purpose']} {number(charge['rho'])}" for charge in charges)
    neighbours = f"{record['adjacency']}, {counted(record['rows_per_person'], 'row')} a person"
    return [
        ("promise", record["statement"]),
        ("neighbours", neighbours),
        ("ledger (rho)", f"{number(record['rho'])}: {spent}"),
        ("noise in z", f"{number(record['noise_std'])} in each part of sqrt(m) z"),
    ]


def _origin(origin: Mapping[str, Any] | None) -> str:
    if origin is None:
        return "unknown: not for private releases"
    return f"{origin['kind']}, rows clipped at {number(origin['radius'])} x scale"


def _shorten(values: Any, default: str) -> str:
    """Values between commas, the first eight of them."""
    if values is None:
        return default
    values = values if isinstance(values, tuple) else (values,)
    shown = [value if isinstance(value, str) else number(value) for value in values[:8]]
    more = f" and {len(values) - 8:,} more" if len(values) > 8 else ""
    return ", ".join(shown) + more


def _slices(record: Mapping[str, Any]) -> list[str]:
    """The keys with their numbers of rows, the first ones of many."""
    if "slices" not in record:
        return []
    cells = [(*record["by"], "rows")]
    for part in record["slices"][:SHOWN]:
        cells.append((*("-" if key is None else key for key in part["key"]), f"{part['rows']:,}"))
    more = record["n_slices"] - SHOWN
    return ["", *align(cells, right=True)] + [f"and {more:,} more: see --json"] * (more > 0)


def _columns(statistics: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [("column", "mean", "standard deviation")]
    for row in statistics[:SHOWN]:
        cells.append((row["column"], number(row["mean"]), number(row["standard_deviation"])))
    more = len(statistics) - SHOWN
    return align(cells, right=True) + [f"and {more:,} more: see --json"] * (more > 0)
