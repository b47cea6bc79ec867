"""``sketchshift assign``: every row with the number of its cluster, in a second pass."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from sketchshift._paths import Place, arrow_file, parse_path
from sketchshift._text import counted, from_cell, nameless_columns
from sketchshift._typing import FloatArray, RealArray
from sketchshift.cli.command import command
from sketchshift.cli.inputs import Data, data_files, paths_of
from sketchshift.cli.options import TEXT_FLAGS, query_option, row_options
from sketchshift.cli.output import (
    RECIPE,
    Output,
    check_output,
    check_suffix,
    count_data_columns,
    show_progress,
    typed_options,
)
from sketchshift.errors import ChooseColumns, DataError, InvalidRowsError
from sketchshift.features.rows import directions_of
from sketchshift.metrics import Assignment, nearest_two
from sketchshift.recipe import Recipe
from sketchshift.sketch.reading import Reading

if TYPE_CHECKING:
    from sketchshift.data import Source

__all__ = ["assign"]

NOTABLE = 0.005  # difference of two shares that is worth a sentence
LABELS, CENTROIDS = (".parquet", ".csv"), (".csv", ".json", ".parquet")


@command
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--centroids", required=True, metavar="PATH", help="What `sketchshift cluster -o` wrote."
)
@click.option(
    "-o", "--output", required=True, metavar="PATH", help="Labelled rows (.parquet or .csv)."
)
@row_options
@query_option
@click.pass_context
def assign(
    ctx: click.Context,
    /,
    data: tuple[str, ...],
    centroids: str,
    output: str,
    columns: tuple[str, ...] | None,
    where: str | None,
    out: Output,
) -> None:
    """Write every row of DATA with the number of its cluster.

    DATA is read block by block, in order: memory does not grow with the number of rows. The
    output has the columns of DATA and four more: cluster, distance (to its centroid), second (the
    next nearest cluster) and confidence, which is 1 at a centroid and 0 half-way between two.
    Rows with missing values have the cluster -1. Columns become numbers, and distances are
    measured, as they were when the clusters were found: the file of centroids says how.

    Examples
    --------
      sketchshift assign points.csv --centroids centroids.csv -o labelled.parquet
      sketchshift assign 'part-*.parquet' --centroids centroids.csv -o labelled.csv

    Then: `sketchshift cluster points.csv -k 4`, to compare with another number of clusters.
    """
    files = data_files(data)
    kind = check_suffix("-o", output, LABELS)
    clusters = read_centroids(centroids)
    target = check_output(output, [*paths_of(files), parse_path(centroids)])
    source = _open(files, clusters, columns, where)
    k = len(clusters.points)
    counts, sums = np.zeros(k + 1, dtype=np.int64), np.zeros(len(clusters.names))
    with (
        show_progress("rows", "Assigning rows to clusters") as advance,
        _Writer(target, kind) as writer,
    ):
        for block in source:
            found = clusters.assign(block.values)
            writer.write(block.keys, found)
            counts += np.bincount(found.labels + 1, minlength=k + 1)
            sums += np.nan_to_num(block.values, posinf=0.0, neginf=0.0).sum(axis=0)
            if advance is not None:
                advance(len(found), block.done)
    record = {
        "command": "assign",
        "output": output,
        "columns": writer.names,
        "rows": int(counts.sum()),
        "n_invalid": int(counts[0]),
        "rows_per_cluster": counts[1:].tolist(),
    }
    same = typed_options(ctx, only=(*TEXT_FLAGS, "query", "columns", "where"))
    then = ["cluster", *data, *same, "-k", str(k + 1)]
    lines = _describe(record, clusters, is_part=where is not None)
    lines += [
        f"{100 * share:.0f} % of the rows have a value of {name!r} that no cluster was found with: "
        "they count as none of its categories."
        for name, share in clusters.unseen(sums / max(int(counts.sum()), 1)).items()
        if share >= NOTABLE
    ]
    out.report(record, lines, then=then)


def _describe(record: dict[str, Any], clusters: Clusters, *, is_part: bool) -> list[str]:
    lines = [f"Wrote {record['output']}: {counted(record['rows'], 'row')}."]
    if record["n_invalid"]:
        rows = counted(record["n_invalid"], "row")
        lines += [f"{rows} with missing or infinite values: -1."]
    counts = np.array(record["rows_per_cluster"])
    shares = counts / max(int(counts.sum()), 1)
    told = [f"{i}: {100 * share:.1f} %" for i, share in enumerate(shares[:20])]
    lines += ["Shares  " + ", ".join(told)]
    known = clusters.shares[: len(shares)]
    if len(known) and not is_part and np.abs(shares - known).max() > NOTABLE:
        i = int(np.abs(shares - known).argmax())
        lines += [
            f"`cluster` reported {100 * known[i]:.1f} % for cluster {i}, from its sketch: rows on "
            "the border of two clusters are shared between them there, and counted with the nearer "
            "one here."
        ]
    return lines


@dataclass(frozen=True)
class Clusters:
    """What ``sketchshift cluster`` wrote.

    Attributes
    ----------
    names : list of str
        Of the columns; "column 0", "column 1", ... when the data had none.
    points : array of shape (k, d)
        Centroids, in the units of the data.
    scale : array of shape (d,)
        What distances are measured in; ones where all columns are alike.
    shares : array of shape (k,)
        As decoded; empty if they are not known.
    recipe : Recipe or None
        How columns become numbers.
    metric : str
        "euclidean" or "cosine".
    """

    names: list[str]
    points: FloatArray
    scale: FloatArray
    shares: FloatArray
    recipe: Recipe | None = None
    metric: str = "euclidean"

    def assign(self, rows: RealArray) -> Assignment:
        """The clusters of rows (n, d)."""
        values = np.asarray(rows, dtype=np.float64)
        seen = directions_of(values) if self.metric == "cosine" else values
        return nearest_two(seen, self.points, self.scale)

    def unseen(self, mean: FloatArray) -> dict[str, float]:
        """Columns with categories that the clusters do not know, and the share of such rows."""
        return {} if self.recipe is None else self.recipe.unseen(mean)


def _open(
    files: Sequence[Data], clusters: Clusters, columns: tuple[str, ...] | None, where: str | None
) -> Source:
    """The columns of the centroids; all in order, where neither they nor the data have names."""
    names: Any = clusters.recipe or clusters.names
    is_named = clusters.names != nameless_columns(len(clusters.names))
    if columns is None and (is_named or set(clusters.names) <= _numeric_columns(files)):
        return Reading(None, names, on_invalid="skip", where=where).open(files, beside="all")
    source = Reading(None, columns, on_invalid="skip", where=where).open(files, beside="all")
    d = len(clusters.names)
    if source.n_features not in (0, d):  # 0: no row has shown its length
        facts = f"has {counted(source.n_features, 'column')}, and the centroids have {d}"
        raise DataError(
            f"{files[0]} {facts}. Choose those of the centroids with ", ChooseColumns(), "."
        )
    return source


def _numeric_columns(files: Sequence[Data]) -> set[str]:
    """Columns of numbers, by the names that the data has or that a text table is given."""
    from sketchshift.data import open_source

    return set(open_source(files, skip_invalid=True, beside="others").columns or ())


class _Writer:
    """Writes rows with their labels; the file appears when all of them are written."""

    def __init__(self, target: Place, kind: str) -> None:
        self._target, self._kind = target, kind
        self._stack, self._writer = ExitStack(), None
        self.names: list[str] = []

    def __enter__(self) -> _Writer:
        from sketchshift._writing import opened_atomically

        self._file = self._stack.enter_context(opened_atomically(self._target))
        return self

    def __exit__(self, *error: Any) -> bool | None:
        if self._writer is None and error[0] is None:
            self._begin(self._label(None, _NO_ROWS))  # a header, at least
        return self._stack.__exit__(*error)

    def write(self, rows: Any, found: Assignment) -> None:
        """Append rows, given as an Arrow table or None, and their labels."""
        table = self._label(rows, found)
        if self._writer is None:
            self._begin(table)
        assert self._writer is not None
        self._writer.write_table(table.cast(self._schema))

    def _begin(self, table: Any) -> None:
        import pyarrow.csv
        import pyarrow.parquet

        make = pyarrow.parquet.ParquetWriter if self._kind == "parquet" else pyarrow.csv.CSVWriter
        self._schema = table.schema.remove_metadata()
        self.names = table.schema.names
        self._writer = self._stack.enter_context(make(self._file, self._schema))

    def _label(self, rows: Any, found: Assignment) -> Any:
        import pyarrow as pa

        own = {
            "cluster": pa.array(found.labels.astype(np.int32)),
            "distance": pa.array(found.distances, from_pandas=True),
            "second": pa.array(found.second.astype(np.int32)),
            "confidence": pa.array(found.confidence),
        }
        there = [] if rows is None else rows.schema.names
        plain = _as_text if self._kind == "csv" else _plain
        columns = [] if rows is None else [plain(rows.column(name)) for name in there]
        names = [f"sketchshift {name}" if name in there else name for name in own]
        return pa.table([*columns, *own.values()], names=[*there, *names])


_NO_ROWS = nearest_two(np.empty((0, 1)), np.zeros((1, 1)))


def _plain(column: Any) -> Any:
    """A column without a dictionary, which may differ from block to block."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _as_text(column: Any) -> Any:
    """A column as CSV can hold it: lists and other nested values are JSON."""
    import pyarrow as pa

    column = _plain(column)
    kind = column.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.string() if pa.types.is_string_view(kind) else pa.binary())
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        values = column.to_pylist()
        texts = [None if value is None else json.dumps(value, default=str) for value in values]
        return pa.array(texts, pa.string())
    return column


def read_centroids(path: str) -> Clusters:
    """What ``sketchshift cluster`` wrote: a table or JSON, as ``encode_clusters`` makes them."""
    kind = check_suffix("--centroids", path, CENTROIDS)
    try:
        names, shares, rows, made = _read(parse_path(path), kind)
        C, d = np.array(rows, dtype=np.float64), len(names)
        C = C.reshape(len(rows), 2 * d if C.size == 2 * d * len(rows) else d)
        C, scale = C[:, :d], C[0, d:] if C[:, d:].size else np.ones(d)
        recipe = made.get(RECIPE)
        recipe = None if recipe is None else Recipe.from_list(recipe)
        clusters = Clusters(
            names, C, scale, np.array(shares), recipe, made.get("metric", "euclidean")
        )
    except OSError as error:
        raise DataError(f"cannot read {path!r}: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, StopIteration, csv.Error) as error:
        msg = f"{path!r} does not hold centroids: `sketchshift cluster -o` writes such files."
        raise DataError(msg) from error
    if not C.size or not np.isfinite(C).all() or not (scale > 0.0).all():
        raise InvalidRowsError(f"{path!r} holds no centroids, or some that are not finite.")
    return clusters


def _read(path: Place, kind: str) -> tuple[list[str], list[float], Any, dict[str, Any]]:
    """Names of columns, shares, rows of centroids and scales, and how rows become numbers."""
    if kind == "json":
        content = json.loads(path.read_text(encoding="utf-8"))
        scale, clusters = list(content.get("scale", [])), content["clusters"]
        rows: Any = [row["centroid"] + scale for row in clusters]
        return list(content["columns"]), [row["share"] for row in clusters], rows, content
    if kind == "parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.ParquetFile(arrow_file(path)).read()  # names may come twice
        head, cells = table.column_names, [column.to_pylist() for column in table.columns]
    else:
        with path.open(newline="", encoding="utf-8") as file:
            head, *lines = list(csv.reader(file))
        cells = [list(column) for column in zip(*lines, strict=True)] or [[] for _ in head]
        if len(cells) != len(head):
            raise ValueError(head)
        head = [from_cell(name) for name in head]
    if head[:2] != ["cluster", "share"]:
        raise ValueError(head)
    made: dict[str, Any] = {}
    if head[-1] == RECIPE and cells[-1] and str(cells[-1][0]).startswith("{"):
        made, head, cells = json.loads(cells[-1][0]), head[:-1], cells[:-1]
    shares, *columns = ([float(cell) for cell in column] for column in cells[1:])
    names = head[2:]
    return names[: count_data_columns(names)], shares, np.column_stack(columns), made
