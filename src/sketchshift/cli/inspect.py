"""``sketchshift inspect``: what is inside a sketch or a plan, and what centroids cost on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

from sketchshift._paths import Place, parse_path, shown
from sketchshift._text import counted, nameless_columns, number, rows_in_words
from sketchshift._typing import FloatArray
from sketchshift.cli.assign import read_centroids
from sketchshift.cli.command import command
from sketchshift.cli.inputs import is_table, load_any, load_sum, look_into, read_spec, size_of
from sketchshift.cli.output import Output, align, keys_in_words, sketch_record, spec_record
from sketchshift.decoders.certificate import certify
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch, load
from sketchshift.sketch.file import is_cube

__all__ = ["inspect"]

SHOWN = 20
"""Columns and slices listed for a person; ``--json`` lists all."""


@command
@click.argument("file")
@click.option(
    "--centroids",
    metavar="PATH",
    help="Prove what these centroids, a table such as `cluster -o` writes, cost at most.",
)
def inspect(file: str, centroids: str | None, out: Output) -> None:
    """Show what is inside FILE: a sketch, a table of sketches, a cube, or a plan.

    Of a sketch: its rows, the mean and standard deviation of its columns in the units of the data,
    and the plan that it was made with. Of a table also its slices. Two sketches merge if their
    fingerprints are equal. Of a private sketch: what it promises, about how many rows it has, and
    what it has cost.

    With --centroids: a proof of the largest mean squared distance that a row has to its nearest
    centroid, in the units of the data. The centroids may be anybody's. The proof needs a sketch
    with cells, as -k plans them.

    Examples
    --------
      sketchshift inspect day1.sketch
      sketchshift inspect points.sketch --centroids centroids.csv

    Then: `sketchshift cluster day1.sketch -k 10`, or with a plan
    `sketchshift sketch points.csv --plan plan.json -o day1.sketch`.
    """
    path, file = parse_path(file), shown(file)
    if (path.is_dir() and not is_cube(path)) or not path.exists():
        fact = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{file!r} {fact}. Give a .sketch file, a table or a plan.")
    if centroids is not None:
        _report_proof(out, file, path, centroids)
    elif _is_plan(path):
        spec = read_spec(path)
        about = {"file": file, "kind": "plan", "fingerprint": spec.fingerprint} | spec_record(spec)
        then = ["sketch", "DATA", "--plan", file, "-o", "day1.sketch"]
        out.report(about, [*_table(about), ""], then)
    else:
        sketch, record = _inspect(file, path)
        k = max(1, min(most_clusters(sketch.spec, None), sketch.count))
        out.report(
            record,
            [*_table(record), *_columns(record), *_slices(record), ""],
            then=["cluster", file, "-k", str(k)],
        )


def _is_plan(path: Place) -> bool:
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return path.suffix == ".json" or file.read(64).lstrip().startswith(b"{")


def _inspect(file: str, path: Place) -> tuple[AnySketch, dict[str, Any]]:
    """Return the sketch in a file, or the sum of a table, and the facts about it."""
    record: dict[str, Any] = {"file": file, "kind": "sketch"}
    slices: dict[str, Any] = {}
    sketch: AnySketch
    if is_table(path):
        keys, counts, sketch = look_into(path)
        record["kind"] = "table of sketches"
        words = zip(*(keys_in_words(column.to_pylist()) for column in keys.columns), strict=True)
        rows = [{"key": list(key), "rows": n} for key, n in zip(words, counts, strict=True)]
        slices = {"by": keys.column_names, "n_slices": len(keys), "slices": rows}
    else:
        sketch = load_any(path)
        if isinstance(sketch, PrivateSketch):
            record["kind"] = "private sketch"
    if is_cube(path):
        cube: Any = load(path)
        record |= {"kind": "cube" if cube.by else "sketch in a cube", "version": cube.version}
    record |= sketch_record(sketch, size_of(path))
    if isinstance(sketch, Sketch):
        record["statistics"] = _statistics(sketch)
    return sketch, record | slices


def _statistics(sketch: Sketch) -> list[dict[str, Any]]:
    if not sketch.spec.has_moments:
        return []
    names = sketch.spec.rows.labels
    rows = zip(names, sketch.mean, np.sqrt(sketch.variance), strict=True)
    return [
        {"column": name, "mean": float(mean), "standard_deviation": float(deviation)}
        for name, mean, deviation in rows
    ]


def _table(record: Mapping[str, Any]) -> list[str]:
    """Describe a file and its plan, in lines of a name and a value."""
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
    if "format_version" in record:
        rows += [("format version", str(record["format_version"]))]
    if record["columns"] is None:
        rows += [("columns", f"{record['n_features']:,} without names")]
    rows += [("cells", "none" if record["cells"] is None else record["cells"]["sentence"])]
    for name in _OF_SPEC:
        value = record.get(name)
        if value is not None and value is not False and value != _USUAL.get(name):
            rows += [(_TITLES.get(name, name.replace("_", " ")), _in_words(value))]
    return align([*rows, ("fingerprint", record["fingerprint"])])


_OF_SPEC = (
    *("columns", "sketch_size", "bandwidth", "law", "structured"),
    *("far_share", "seed", "precision", "center", "scale", "origin", "families"),
)
_USUAL = {"law": "gaussian", "far_share": 0.0, "precision": "float32"}
_TITLES = {"sketch_size": "sketch size m"}


def _in_words(value: Any) -> str:
    """A value of a spec; the first eight of many."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(each)}" for name, each in value.items())
    if isinstance(value, tuple):
        more = f" and {len(value) - 8:,} more" if len(value) > 8 else ""
        return ", ".join(map(_in_words, value[:8])) + more
    if isinstance(value, bool | str):
        return "yes" if value is True else str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


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


def _slices(record: Mapping[str, Any]) -> list[str]:
    """The keys with their numbers of rows, the first ones of many."""
    if "slices" not in record:
        return []
    head = [(*record["by"], "rows")]
    keys = (("-" if key is None else key for key in each["key"]) for each in record["slices"])
    counts = (f"{each['rows']:,}" for each in record["slices"])
    return _first(head, [(*key, n) for key, n in zip(keys, counts, strict=True)])


def _columns(record: Mapping[str, Any]) -> list[str]:
    """The mean and standard deviation of each column, the first ones of many."""
    if "statistics" not in record:
        return []
    told = ("mean", "standard_deviation")
    rows = [(row["column"], *(number(row[name]) for name in told)) for row in record["statistics"]]
    return _first([("column", "mean", "standard deviation")], rows)


def _first(head: list[Any], rows: Sequence[Any]) -> list[str]:
    """A table of the first rows, and how many more there are."""
    more = len(rows) - SHOWN
    lines = align([*head, *rows[:SHOWN]], right=True)
    return ["", *lines] + [f"and {more:,} more: see --json"] * (more > 0)


# What centroids cost at most, proved without the data.


def _report_proof(out: Output, file: str, path: Place, centroids: str) -> None:
    sketch = load_sum([path])
    C = _centroids_for(sketch, centroids)
    found = certify(sketch, C)
    shares = zip(found.weights.tolist(), found.bounds.tolist(), strict=True)
    record = {
        "command": "inspect",
        "file": file,
        "centroids": centroids,
        "rows": sketch.count,
        "n_clusters": len(C),
        "cost_bound": found.cost_bound,
        "confidence": found.confidence,
        "clusters": [
            {"cluster": i, "share": share, "bound": bound}
            for i, (share, bound) in enumerate(shares)
        ],
    }
    sure = "" if found.confidence == 1.0 else f", with a confidence of {found.confidence:g}"
    line = (
        f"The mean squared distance of {rows_in_words(sketch)} to {counted(len(C), 'centroid')} is "
        f"proved to be at most {number(found.cost_bound)}{sure}."
    )
    out.report(record, [line], then=["cluster", file, "-k", str(len(C))])


def _centroids_for(sketch: AnySketch, path: str) -> FloatArray:
    """The centroids in a file, their columns in the order of the sketch: shape (k, d)."""
    clusters = read_centroids(path)
    names, C = clusters.names, clusters.points
    wanted = list(sketch.spec.rows.labels)
    if len(names) == len(wanted) and nameless_columns(len(names)) in (names, wanted):
        return C
    missing = [name for name in wanted if name not in names]
    if missing:
        msg = (
            f"{path!r} has no column {missing[0]!r}, which the sketch has. Its columns are "
            f"{', '.join(map(repr, names[:8]))}."
        )
        raise DataError(msg)
    return C[:, [names.index(name) for name in wanted]]
