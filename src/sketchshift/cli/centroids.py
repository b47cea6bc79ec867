"""Clusters as a table for people, and as a file for programs.

Takes what a decoder found; hands lines to print and bytes to write. Clusters are numbered
from 0, heaviest first: as the rows of ``Decoding.centroids``, as labels, and as the marks in
the pictures.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sketchshift._text import cell
from sketchshift.cli.facts import aligned, counted, number
from sketchshift.decoders import Decoding

__all__ = ["check_suffix", "cluster_facts", "cluster_table", "encode_clusters", "n_columns"]

COLUMNS_SHOWN, CLUSTERS_SHOWN = 8, 40
"""What a table for people holds; files and ``--json`` hold all."""


def check_suffix(flag: str, path: str, suffixes: Sequence[str]) -> str:
    """The suffix of an output, without its dot; one that means no format is misuse."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        known = " or ".join([", ".join(suffixes[:-1]), suffixes[-1]][len(suffixes) < 2 :])
        raise click.UsageError(f"the name after {flag} must end with {known}. Got {path!r}.")
    return suffix[1:]


def cluster_facts(decoding: Decoding) -> list[dict[str, Any]]:
    """One mapping a cluster; floats are those of the decoding, to the last bit."""
    facts: list[dict[str, Any]] = []
    for i, (weight, centroid) in enumerate(
        zip(decoding.weights.tolist(), decoding.centroids.tolist(), strict=True)
    ):
        facts.append({"cluster": i, "share": weight, "centroid": centroid})
        if decoding.covariances is not None:
            facts[-1]["covariance"] = decoding.covariances[i].tolist()
    return facts


def cluster_table(decoding: Decoding, names: Sequence[str]) -> list[str]:
    """Lines for people: number, share and centroid of each cluster.

    Parameters
    ----------
    decoding : Decoding
        What was found.
    names : sequence of str
        Of the columns.

    Returns
    -------
    lines : list of str
        At most ``COLUMNS_SHOWN`` columns and ``CLUSTERS_SHOWN`` clusters; the last line says
        how to see the rest.
    """
    k, d = decoding.centroids.shape
    shown = decoding.centroids[:CLUSTERS_SHOWN, :COLUMNS_SHOWN]
    columns = [_numbers(column.tolist()) for column in shown.T]
    shares = [f"{100 * weight:.1f} %" for weight in decoding.weights[:CLUSTERS_SHOWN]]
    rows = [["cluster", "share", *names[:COLUMNS_SHOWN]]]
    rows += [[str(i), shares[i], *(column[i] for column in columns)] for i in range(len(shown))]
    hidden = [(k - CLUSTERS_SHOWN, "cluster"), (d - COLUMNS_SHOWN, "column")]
    more = " and ".join(f"{counted(n, noun)} more" for n, noun in hidden if n > 0)
    return aligned(rows, right=True) + [f"{more}: -o centroids.csv writes all."] * bool(more)


def encode_clusters(
    decoding: Decoding, names: Sequence[str], kind: str, scale: Sequence[float] = ()
) -> bytes:
    """The clusters as a file.

    Parameters
    ----------
    decoding : Decoding
        What was found.
    names : sequence of str
        Of the columns.
    kind : {"csv", "json", "parquet"}
        Of the file. Tables have the columns "cluster", "share", then those of the data; JSON
        also holds covariances, where there are any. Names that a spreadsheet would take for
        formulas have an apostrophe in front in CSV.
    scale : sequence of float
        Of each column, if they have scales of their own: what distances are measured in. In
        tables, more columns: "x scale" for the column "x".

    Returns
    -------
    data : bytes
        Reading it gives the same floats.
    """
    if kind == "json":
        clusters = {"columns": list(names), "clusters": cluster_facts(decoding)}
        clusters |= {"scale": list(scale)} if scale else {}
        return json.dumps(clusters, indent=1, allow_nan=False).encode() + b"\n"
    if n_columns(names) < len(names):
        scale = scale or [1.0] * len(names)  # said, since names of the data look like scales
    head = ["cluster", "share", *names, *(_scale_name(name) for name in names if scale)]
    if kind == "parquet":
        return _parquet(decoding, head, scale)
    lines: list[list[Any]] = [[cell(name) for name in head]]
    lines += [[f["cluster"], f["share"], *f["centroid"], *scale] for f in cluster_facts(decoding)]
    return "".join(map(_csv_line, lines)).encode()


def n_columns(names: Sequence[str]) -> int:
    """Of the names in a table of centroids, those of the data: scales follow, or do not."""
    d = len(names) // 2
    has_scales = d > 0 and list(names[d:]) == [_scale_name(name) for name in names[:d]]
    return d if has_scales else len(names)


def _csv_line(cells: Sequence[Any]) -> str:
    """A line of CSV; cells with a carriage return are quoted too, as they are not by default."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _scale_name(name: str) -> str:
    """The column that holds the scale of a column."""
    return f"{name} scale"


def _numbers(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as leave the largest six digits."""
    largest = max(map(abs, values), default=0.0)
    if not 1e-3 <= largest < 1e6:
        return [number(value) for value in values]
    decimals = 5 - math.floor(math.log10(largest))
    return [f"{value:.{decimals}f}" for value in values]


def _parquet(decoding: Decoding, head: Sequence[str], scale: Sequence[float]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    arrays = [pa.array(range(len(decoding.weights)), type=pa.int64())]
    arrays += [pa.array(column) for column in (decoding.weights, *decoding.centroids.T)]
    arrays += [pa.array([width] * len(decoding.weights)) for width in scale]
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_arrays(arrays, names=list(head)), sink)
    return bytes(sink.getvalue().to_pybytes())
