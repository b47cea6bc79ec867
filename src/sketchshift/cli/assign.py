"""``sketchshift assign``: the nearest centroid of every row, in a second pass."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from sketchshift._text import counted, from_cell, nameless_columns
from sketchshift._typing import FloatArray
from sketchshift.cli.command import command
from sketchshift.cli.inputs import data_files
from sketchshift.cli.options import columns_option, metric_option, progress_option
from sketchshift.cli.output import (
    Output,
    check_output,
    check_suffix,
    count_data_columns,
    join_with_commas,
    show_progress,
)
from sketchshift.errors import ChooseColumns, DataError, InvalidRowsError
from sketchshift.features.spec import directions_of
from sketchshift.metrics import assign as nearest

if TYPE_CHECKING:
    from sketchshift.data import Source

__all__ = ["assign"]

LABELS, CENTROIDS = (".parquet", ".csv"), (".csv", ".json", ".parquet")


@command
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--centroids", required=True, metavar="PATH", help="What `sketchshift cluster -o` wrote."
)
@click.option("-o", "--output", required=True, metavar="PATH", help="Labels (.parquet or .csv).")
@columns_option
@metric_option
@progress_option
def assign(
    data: tuple[str, ...],
    centroids: str,
    output: str,
    columns: tuple[str, ...] | None,
    metric: str,
    progress: bool | None,
    out: Output,
) -> None:
    """Write the number of the nearest centroid for every row of DATA.

    DATA is read block by block, in order: memory does not grow with the number of rows. The
    columns are those that the centroids have names for, or the column of vectors that --columns
    names. Distances are those that the clusters were found by, standardised if they were; if they
    were found with --metric cosine, give it here, too. The output has one column, "cluster", and a
    row for each row of DATA, -1 where a value is missing or infinite.

    Examples
    --------
      sketchshift assign points.csv --centroids centroids.csv -o labels.parquet
      sketchshift assign 'part-*.parquet' --centroids centroids.csv -o labels.csv

    Labels are in the order of the rows: join them by position.

    Then: `sketchshift cluster points.csv -k 4`, to compare with another number of clusters.
    """
    files = data_files(data)
    kind = check_suffix("-o", output, LABELS)
    names, C, scale = read_centroids(centroids)
    target = check_output(output, [*files, Path(centroids)])
    source = _open(files, names, columns)
    counts, start = np.zeros(len(C) + 1, dtype=np.int64), time.perf_counter()
    shown = show_progress("rows", "Assigning rows to clusters", show=progress)
    with shown as advance, _writer(target, kind) as write:
        for labels, done in _labels(source, C, scale, metric):
            write(labels)
            counts += np.bincount(labels + 1, minlength=len(counts))
            if advance is not None:
                advance(len(labels), done)
    record = {
        "command": "assign",
        "output": output,
        "rows": int(counts.sum()),
        "n_invalid": int(counts[0]),
        "rows_per_cluster": counts[1:].tolist(),
        "seconds": time.perf_counter() - start,
    }
    chosen = [] if columns is None else ["--columns", join_with_commas(columns)]
    then = ["cluster", *data, *chosen, "-k", str(len(C) + 1)]
    out.report(record, _describe(record), then=then)


def _describe(record: dict[str, Any]) -> list[str]:
    lines = [f"Wrote {record['output']}: {counted(record['rows'], 'row')}."]
    if record["n_invalid"]:
        rows = counted(record["n_invalid"], "row")
        lines += [f"{rows} with missing or infinite values: -1."]
    counts = record["rows_per_cluster"]
    total = max(sum(counts), 1)
    shares = [f"{i}: {100 * n / total:.1f} %" for i, n in enumerate(counts[:20])]
    return [*lines, "Shares  " + ", ".join(shares)]


def _open(files: Sequence[Path], names: list[str], columns: tuple[str, ...] | None) -> Source:
    """The columns of the centroids; all in order, where neither they nor the data have names."""
    from sketchshift.data import open_source

    if columns is None and names != nameless_columns(len(names)):
        return open_source(files, columns=names, skip_invalid=True)
    source = open_source(files, columns=columns, skip_invalid=True)
    if columns is None and set(names) <= set(source.columns or ()):
        source = open_source(files, columns=names, skip_invalid=True)
    if source.n_features not in (0, len(names)):  # 0: no row has shown its length
        facts = f"has {counted(source.n_features, 'column')}, and the centroids have {len(names)}"
        raise DataError(
            f"{files[0]} {facts}. Choose those of the centroids with ", ChooseColumns(), "."
        )
    return source


def _labels(
    source: Source, C: FloatArray, scale: FloatArray, metric: str
) -> Iterator[tuple[Any, float | None]]:
    for block in source:
        values = np.asarray(block.values, dtype=np.float64)
        if metric == "cosine":
            values = directions_of(values)
        values = values / scale
        labels = np.full(len(values), -1, dtype=np.int64)
        is_finite = np.isfinite(values).all(axis=1)
        if is_finite.any():
            labels[is_finite] = nearest(values[is_finite], C / scale)
        yield labels, block.done


@contextmanager
def _writer(target: Path, kind: str) -> Iterator[Any]:
    """A function that appends labels; the file appears when all of them are written."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from sketchshift._writing import opened_atomically

    schema = pa.schema([("cluster", pa.int32())])
    make = pyarrow.parquet.ParquetWriter if kind == "parquet" else pyarrow.csv.CSVWriter
    with opened_atomically(target) as file, make(file, schema) as writer:

        def write(labels: Any) -> None:
            batch = pa.record_batch([pa.array(labels.astype(np.int32))], schema=schema)
            writer.write_batch(batch)

        yield write


def read_centroids(path: str) -> tuple[list[str], FloatArray, FloatArray]:
    """Names of the columns, centroids and scales, from what ``sketchshift cluster`` wrote.

    Parameters
    ----------
    path : str
        With the columns "cluster" and "share", then those of the data, then their scales if
        they have any; or JSON.

    Returns
    -------
    names : list of str
        Of the columns; "column 0", "column 1", ... when the data had none.
    centroids : array of shape (k, d)
        In the units of the data.
    scale : array of shape (d,)
        What distances are measured in; ones where all columns are alike.
    """
    kind = check_suffix("--centroids", path, CENTROIDS)
    try:
        names, rows = _read(Path(path).expanduser(), kind)
        C, d = np.array(rows, dtype=np.float64), len(names)
        C = C.reshape(len(rows), 2 * d if C.size == 2 * d * len(rows) else d)
        C, scale = C[:, :d], C[0, d:] if C[:, d:].size else np.ones(d)
    except OSError as error:
        raise DataError(f"cannot read {path!r}: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, StopIteration, csv.Error) as error:
        msg = f"{path!r} does not hold centroids: `sketchshift cluster -o` writes such files."
        raise DataError(msg) from error
    if not C.size or not np.isfinite(C).all() or not (scale > 0.0).all():
        raise InvalidRowsError(f"{path!r} holds no centroids, or some that are not finite.")
    return names, C, scale


def _read(path: Path, kind: str) -> tuple[list[str], Any]:
    """Names of the columns, and rows: centroids, followed by scales if there are any."""
    if kind == "json":
        content = json.loads(path.read_text(encoding="utf-8"))
        scale = list(content.get("scale", []))
        return list(content["columns"]), [row["centroid"] + scale for row in content["clusters"]]
    if kind == "parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.ParquetFile(path).read()  # names may come twice
        head, columns = table.column_names, [column.to_numpy() for column in table.columns]
        rows: Any = np.column_stack(columns)[:, 2:]
    else:
        with path.open(newline="", encoding="utf-8") as file:
            head, *lines = list(csv.reader(file))
        head = [from_cell(name) for name in head]
        rows = [[float(cell) for cell in line[2:]] for line in lines]
    if head[:2] != ["cluster", "share"]:
        raise ValueError(head)
    names = head[2:]
    return names[: count_data_columns(names)], rows
