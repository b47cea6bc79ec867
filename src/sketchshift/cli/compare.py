"""``sketchshift compare``: whether, and where, the data of two sketches differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import click

from sketchshift._text import column_names, number, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import data_files, load_sum, sketch_files
from sketchshift.cli.options import columns_option, drift_options
from sketchshift.cli.output import (
    CLUSTERS_SHOWN,
    Output,
    Picture,
    align,
    count_hidden,
    decoding_record,
    describe_trust,
    percent,
    show_progress,
)
from sketchshift.drift import ClusterChange, Comparison, Distance
from sketchshift.drift import compare as compare_sketches
from sketchshift.drift.compare import ScoredRow, find_top_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compare", "distance_record"]

COLUMNS_SHOWN = 5


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
    default=20,
    show_default=True,
    help="With --rows: how many of them.",
)
@columns_option
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
    top: int,
    columns: tuple[str, ...] | None,
    out: Output,
) -> None:
    """Tell whether, and where, the data of two sketches differ.

    The distance between them (MMD) is set beside the threshold that samples of one population
    exceed at the false-alarm rate; then the clusters that grew, shrank or moved. FIRST and
    SECOND are sketches of one plan, or tables of them, of different rows. The data is not
    needed. For two private sketches the threshold allows for the noise, and moves are not shown.
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
    picture = Picture.check(plot, files)
    data = [] if rows_path is None else data_files([rows_path])
    a, b = (load_sum([file]) for file in files)
    with show_progress("items", "Comparing the sketches"):
        found = compare_sketches(a, b, n_clusters=n_clusters, false_alarm=false_alarm, seed=seed)
        scored = find_top_rows(a, b, data, top, columns) if data else []
    record = {
        "command": "compare",
        "first": first,
        "second": second,
        "plot": plot,
        "rows": [a.count, b.count],
        **distance_record(found),
        "clusters": [_cluster_record(i, cluster) for i, cluster in enumerate(found.clusters)],
        "decoding": None if found.decoding is None else decoding_record(found.decoding),
    }
    if data:
        record["top_rows"] = [asdict(row) for row in scored]
    lines = [
        *_describe(found, rows_in_words(a), rows_in_words(b)),
        "",
        *(_table(found, column_names(a.spec)) if found.decoding is not None else ()),
        *(_table_of_rows(scored, column_names(a.spec)) if data else ()),
        "",
        *(describe_trust(found.decoding) if found.decoding is not None else ()),
        *picture.write(lambda: _figure(found)),
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


def _describe(found: Comparison, rows_a: str, rows_b: str) -> list[str]:
    verdict = "Drift" if found.drifted else "No drift"
    return [
        f"{verdict} between {rows_a} and {rows_b}: distance {number(found.distance)}, threshold "
        f"{number(found.threshold)}.",
        f"Without drift a distance this large has probability {found.p_value:.2g}; the threshold "
        f"is exceeded in {100 * found.false_alarm:g} % of cases.",
    ]


def _table(found: Comparison, names: Sequence[str]) -> list[str]:
    head = ["cluster", "first", "second", "change", "error", "move", "widths", "verdict"]
    rows = [head + list(names[:COLUMNS_SHOWN])]
    for i, cluster in enumerate(found.clusters[:CLUSTERS_SHOWN]):
        shares = [percent(cluster.share_a), percent(cluster.share_b)]
        change = [f"{100 * cluster.change:+.1f} %", percent(cluster.standard_error)]
        is_told = not math.isnan(cluster.move)
        move = [f"{cluster.move:.3g}", f"{cluster.relative_move:.2g}"] if is_told else ["-", "-"]
        centroid = [number(value) for value in cluster.centroid[:COLUMNS_SHOWN]]
        rows.append([str(i), *shares, *change, *move, cluster.verdict, *centroid])
    hidden = {
        "cluster": len(found.clusters) - CLUSTERS_SHOWN,
        "column": len(names) - COLUMNS_SHOWN,
    }
    return align(rows, right=True) + count_hidden(hidden, "--json shows all")


def _table_of_rows(rows: Sequence[ScoredRow], names: Sequence[str]) -> list[str]:
    head = ["row", "score", *names[:COLUMNS_SHOWN]]
    cells = [
        [str(row.row), f"{row.score:.3g}", *(number(value) for value in row.values[:COLUMNS_SHOWN])]
        for row in rows
    ]
    title = "Rows most typical of the second (the first row is 0):"
    return ["", title, *align([head, *cells], right=True)]


def _cluster_record(i: int, cluster: ClusterChange) -> dict[str, Any]:
    return {
        "cluster": i,
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


def _figure(found: Comparison) -> Figure:
    from matplotlib.figure import Figure

    from sketchshift.plots import plot_comparison

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    plot_comparison(found, figure.subplots())
    return figure
