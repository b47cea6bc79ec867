"""``sketchshift compare``: whether, where and when the data of sketches differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from sketchshift._paths import Place
from sketchshift._text import rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import load_sum, sketch_files
from sketchshift.cli.options import CLUSTERS, FiniteRange, where_option
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
from sketchshift.cli.over_time import compare_over_time, distance_record
from sketchshift.drift import ClusterChange, Comparison
from sketchshift.drift import compare as compare_sketches
from sketchshift.drift.compare import name_clusters

__all__ = ["compare"]

SMALLEST = 1e-15
"""Probabilities below are shown as such: more digits mean nothing."""


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--over",
    metavar="COLUMN",
    help="Of a table of sketches: compare its slices in the order of this column of time.",
)
@where_option
@click.option(
    "--reference",
    metavar="CONDITION",
    help="Over time: slices that were as they should be, such as \"day < '2026-01-05'\". Others "
    "are judged by how much these vary.",
)
@click.option(
    "-k",
    "--n-clusters",
    type=CLUSTERS,
    default="auto",
    show_default=True,
    help="Number k of clusters to follow, or auto: chosen from the sketches.",
)
@click.option(
    "--false-alarm",
    type=FiniteRange(1e-12, 0.5),
    default=0.01,
    show_default=True,
    hidden=True,
    help="The rate of alarms without drift; over time, for the whole table.",
)
@click.option("--plot", metavar="PATH", help="Draw it (.png, .pdf or .svg); needs no data.")
@click.option(
    "--fail-on-drift", is_flag=True, help="Exit with status 1 if there is drift, for scripts."
)
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    plot: str | None,
    fail_on_drift: bool,
    out: Output,
    **flags: Any,
) -> None:
    """Report whether, where and when the data of sketches differ.

    Two sketches of one plan, of different rows: the first line says which clusters grew, shrank
    or moved by more than chance. A table of sketches (--over), or more than two sketches in the
    order of time: every slice is compared with the one before it, which finds jumps, and with all
    earlier ones together, which finds slow drift. An alarm is a change that is beyond chance and
    concerns at least 5 % of the rows. Slices that always vary, as days and seasons do, need a
    period that was ordinary (--reference): the others are judged by how much its slices vary.

    The data is not needed. For private sketches the noise is allowed for.

    Examples
    --------
      sketchshift compare day1.sketch day2.sketch -k 3 --plot drift.png
      sketchshift compare sketches.parquet --over day --reference "day < '2026-01-05'"

    Then: `sketchshift cluster day2.sketch -k 10`.
    """
    files = sketch_files(inputs)
    picture = Picture.check(plot, files)
    is_over_time = any(flags[name] is not None for name in ("over", "where", "reference"))
    if len(files) == 2 and not is_over_time:
        has_drifted = _compare_two(inputs, files, flags, picture, out)
    else:
        has_drifted = compare_over_time(inputs, files, flags, picture, out)
    if fail_on_drift and has_drifted:
        ctx.exit(1)


def _compare_two(
    inputs: Sequence[str],
    files: Sequence[Place],
    flags: dict[str, Any],
    picture: Picture,
    out: Output,
) -> bool:
    """Report whether two sketches differ, and return the verdict."""
    a, b = (load_sum([file]) for file in files)
    with show_progress("items", "Comparing the sketches"):
        names = ("n_clusters", "false_alarm")
        found = compare_sketches(a, b, **{name: flags[name] for name in names})
    first, second = map(str, files)
    called = name_clusters(found.decoding)
    record = {
        "command": "compare",
        "first": first,
        "second": second,
        "plot": picture.name,
        "rows": [a.count, b.count],
        **distance_record(found),
        "sentence": found.sentence,
        "clusters": [
            _cluster_record(i, cluster, name)
            for i, (cluster, name) in enumerate(zip(found.clusters, called, strict=True))
        ],
        "decoding": None if found.decoding is None else decoding_record(found.decoding),
    }
    lines = [
        found.sentence,
        "",
        *(_table(found, called) if found.decoding is not None else ()),
        "",
        *_measure(found, rows_in_words(a), rows_in_words(b)),
        *describe_trust(found.decoding),
        *picture.write("comparison", found),
    ]
    then = ["compare", *inputs, "--plot", "drift.png"]
    if found.decoding is None:  # a plan for drift: there is nothing to draw or to decode
        then = ["inspect", second]
    elif picture.name:
        then = ["cluster", second, "-k", "auto"]
    out.report(record, lines, then=then)
    return found.drifted


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
        shares = [percent(cluster.share_a), percent(cluster.share_b)]
        change = [f"{100 * cluster.change:+.1f} %", percent(cluster.standard_error)]
        move = "-" if math.isnan(cluster.move) else f"{cluster.relative_move:.2f}"
        rows.append([str(i), *shares, *change, move, cluster.verdict, names[i].strip("'")])
    lines = align(rows, right=True)
    hidden = {"cluster": len(found.clusters) - CLUSTERS_SHOWN}
    key = "error: standard error of the change. moved: in widths of the cluster."
    return [*lines, *count_hidden(hidden, "--json shows all"), key]


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
