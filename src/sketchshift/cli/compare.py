"""``sketchshift compare``: whether, and where, the data of two sketches differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import click

from sketchshift._text import column_names, number, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import data_files, load_sum, query_option, sketch_files
from sketchshift.cli.options import columns_option, drift_options
from sketchshift.cli.output import (
    CLUSTERS_SHOWN,
    Output,
    Picture,
    align,
    count_hidden,
    decoding_record,
    describe_trust,
    show_progress,
)
from sketchshift.drift import ClusterChange, Comparison, Distance
from sketchshift.drift import compare as compare_sketches
from sketchshift.drift.compare import ScoredRow, find_top_rows, name_clusters

__all__ = ["compare", "distance_record"]

COLUMNS_SHOWN = 5
ROWS_SHOWN = 20
SMALLEST = 1e-15
"""Probabilities below are told as such: more digits mean nothing."""


@command
@click.argument("first")
@click.argument("second")
@drift_options
@click.option(
    "--rows", "rows_path", metavar="PATH", help="Rows to look at: those most typical of SECOND."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"With --rows: how many of them. Default: {ROWS_SHOWN}.",
)
@columns_option
@query_option
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    first: str,
    second: str,
    n_clusters: int | Literal["auto"],
    false_alarm: float,
    plot: str | None,
    fail_on_drift: bool,
    seed: int,
    rows_path: str | None,
    top: int | None,
    columns: tuple[str, ...] | None,
    out: Output,
) -> None:
    """Tell whether, and where, the data of two sketches differ.

    The first line says what changed: which clusters grew, shrank or moved by more than chance.
    FIRST and SECOND are sketches of one plan, or tables of them, of different rows. The data is
    not needed. For two private sketches the noise is allowed for, and moves are not shown.
    With --rows, rows of any data are listed that SECOND has more of around them than FIRST.

    Examples
    --------
      sketchshift compare day1.sketch day2.sketch
      sketchshift compare day1.sketch day2.sketch -k 3 --plot drift.png

    Then: `sketchshift cluster day2.sketch -k 10`. Over many days: `sketchshift watch`.
    """
    files = sketch_files([first, second])
    if len(files) != 2:
        raise click.UsageError("give two sketches: a pattern of several files is not one.")
    if top is not None and rows_path is None:
        raise click.UsageError("--top says how many rows to list. Say of which data: --rows DATA.")
    picture = Picture.check(plot, files)
    data = [] if rows_path is None else data_files([rows_path])
    a, b = (load_sum([file]) for file in files)
    with show_progress("items", "Comparing the sketches"):
        found = compare_sketches(a, b, n_clusters=n_clusters, false_alarm=false_alarm, seed=seed)
        scored = find_top_rows(a, b, data, top or ROWS_SHOWN, columns) if data else []
    names = name_clusters(found.decoding)
    record = {
        "command": "compare",
        "first": first,
        "second": second,
        "plot": plot,
        "rows": [a.count, b.count],
        **distance_record(found),
        "sentence": found.sentence,
        "clusters": [
            _cluster_record(i, cluster, name)
            for i, (cluster, name) in enumerate(zip(found.clusters, names, strict=True))
        ],
        "decoding": None if found.decoding is None else decoding_record(found.decoding),
    }
    if data:
        record["top_rows"] = [asdict(row) for row in scored]
    lines = [
        found.sentence,
        "",
        *(_table(found, names) if found.decoding is not None else ()),
        *(_table_of_rows(scored, column_names(a.spec)) if data else ()),
        "",
        *_measure(found, rows_in_words(a), rows_in_words(b)),
        *(describe_trust(found.decoding) if found.decoding is not None else ()),
        *picture.write("comparison", found),
    ]
    then = ["compare", first, second, "--plot", "drift.png"]
    if found.decoding is None:  # a plan for drift: there is nothing to draw or to decode
        then = ["inspect", second] if data else ["compare", first, second, "--rows", "DATA"]
    elif plot:
        then = ["cluster", second, "-k", "auto"]
    out.report(record, lines, then=then)
    if fail_on_drift and found.drifted:
        ctx.exit(1)


def distance_record(test: Distance) -> dict[str, Any]:
    """The numbers of a test, and what they say."""
    names = Distance.__dataclass_fields__
    return {name: getattr(test, name) for name in names} | {"drifted": test.drifted}


def _measure(found: Comparison, rows_a: str, rows_b: str) -> list[str]:
    """The numbers behind the first line."""
    p = f"{found.p_value:.2g}" if found.p_value >= SMALLEST else f"less than {SMALLEST:g}"
    return [
        f"{rows_a} and {rows_b}: distance {found.distance:.3g}, threshold {found.threshold:.3g}. "
        f"Without a change the probability of such a distance is {p}, "
        f"and {100 * found.false_alarm:g} % of distances are beyond the threshold."
    ]


def _table(found: Comparison, names: Sequence[str]) -> list[str]:
    rows = [["cluster", "first", "second", "change", "error", "moved", "verdict", "what it is"]]
    for i, cluster in enumerate(found.clusters[:CLUSTERS_SHOWN]):
        shares = [_share(cluster.share_a), _share(cluster.share_b)]
        change = [f"{100 * cluster.change:+.1f} %", _share(cluster.standard_error)]
        move = "-" if math.isnan(cluster.move) else f"{cluster.relative_move:.2f}"
        rows.append([str(i), *shares, *change, move, cluster.verdict, names[i].strip("'")])
    lines = align(rows, right=True)
    hidden = {"cluster": len(found.clusters) - CLUSTERS_SHOWN}
    key = "error: standard error of the change. moved: in widths of the cluster."
    return [*lines, *count_hidden(hidden, "--json shows all"), key]


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table_of_rows(rows: Sequence[ScoredRow], names: Sequence[str]) -> list[str]:
    head = ["row", "score", *names[:COLUMNS_SHOWN]]
    cells = [
        [str(row.row), f"{row.score:.3g}", *(number(value) for value in row.values[:COLUMNS_SHOWN])]
        for row in rows
    ]
    title = "Rows most typical of the second (the first row is 0):"
    return ["", title, *align([head, *cells], right=True)]


def _cluster_record(i: int, cluster: ClusterChange, name: str) -> dict[str, Any]:
    return {
        "cluster": i,
        "name": name.strip("'"),
        "share_first": cluster.share_a,
        "share_second": cluster.share_b,
        "change": cluster.change,
        "standard_error": cluster.standard_error,
        "share_p_value": cluster.share_p_value,
        "move": cluster.move,
        "relative_move": cluster.relative_move,
        "move_p_value": cluster.move_p_value,
        "verdict": cluster.verdict,
        "centroid": cluster.centroid.tolist(),
        "centroid_first": cluster.centroid_a.tolist(),
        "centroid_second": cluster.centroid_b.tolist(),
    }
