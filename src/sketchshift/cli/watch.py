"""``sketchshift watch``: drift over the slices of a table, or over sketches in a row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from sketchshift._text import counted, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.compare import distance_record
from sketchshift.cli.inputs import is_table, load_any, load_table, sketch_files
from sketchshift.cli.options import drift_options, where_option
from sketchshift.cli.output import (
    Output,
    Picture,
    align,
    count_hidden,
    decoding_record,
    describe_trust,
    keys_in_words,
    percent,
    promise_lines,
    show_progress,
)
from sketchshift.drift import Distance, Watch, WatchedSlice
from sketchshift.drift import watch as watch_slices
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, SketchTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["watch"]

CLUSTERS_SHOWN = 10
FILE = "file"  # what the times of sketches in a row are called


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--by", metavar="COLUMN", help="The column of time. Default: the only one.")
@where_option
@drift_options
@click.pass_context
def watch(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    by: str | None,
    where: str | None,
    n_clusters: int | Literal["auto"],
    false_alarm: float,
    plot: str | None,
    fail_on_drift: bool,
    seed: int,
    out: Output,
) -> None:
    """Follow sketches over time: distances, alarms, shares of the clusters.

    Every slice is compared with the one before it, which finds jumps, and with all earlier
    ones together, which finds slow drift. INPUT is a table that `sketchshift sketch --by` wrote,
    whose slices that agree in the column of time are added up; or sketches of one plan in the
    order of time, all raw or all private, those of a glob by name. The data is not needed.

    Examples
    --------
      sketchshift watch sketches.parquet --by day --plot drift.png
      sketchshift watch 'day*.sketch' -k 2 --json

    Then: `sketchshift cluster sketches.parquet --where "day = '2026-01-05'" -k 3`. Two
    sketches in detail: `sketchshift compare`.
    """
    files = sketch_files(inputs)
    picture = Picture.check(plot, files)
    slices = _slices(files, by, where)
    with show_progress("items", "Comparing the slices"):
        found = watch_slices(
            slices,
            by=by if isinstance(slices, SketchTable) else FILE,
            n_clusters=n_clusters,
            false_alarm=false_alarm,
            seed=seed,
        )
    keys = keys_in_words([moment.key for moment in found.slices])
    record = {
        "command": "watch",
        "inputs": list(inputs),
        "by": found.by,
        "where": where,
        "plot": plot,
        "false_alarm": false_alarm,
        "statement": found.whole.statement if isinstance(found.whole, PrivateSketch) else None,
        "slices": [
            _slice_record(*each) for each in zip(keys, found.slices, found.sketches, strict=True)
        ],
        "centroids": [] if found.decoding is None else found.decoding.centroids.tolist(),
        "decoding": None if found.decoding is None else decoding_record(found.decoding),
    }
    lines = [
        *_describe(found),
        "",
        *_table(found, keys),
        "",
        *describe_trust(found.decoding),
        *picture.write(lambda: _figure(found)),
    ]
    column = ["--by", found.by] if isinstance(slices, SketchTable) else []
    again = ["watch", *inputs, *column, "--plot", "drift.png"]
    out.report(record, lines, then=["inspect", files[0]] if plot else again)
    if fail_on_drift and found.alarms:
        ctx.exit(1)


def _slices(
    files: Sequence[Path], by: str | None, where: str | None
) -> SketchTable | dict[str, AnySketch]:
    """The slices of one table, or several sketches under the names of their files."""
    tables = [file for file in files if is_table(file)]
    if len(files) == 1 and tables:
        return load_table(files[0], where)
    if tables:
        msg = f"give one table, or sketches: {str(tables[0])!r} is one of {len(files)} files."
        raise click.UsageError(msg)
    sketches: dict[str, AnySketch] = {str(file): load_any(file) for file in files}
    if len(files) == 1:
        msg = (
            f"{str(files[0])!r} is one sketch, and not a table of them. Give several, in the order "
            "of time, or a table that `sketchshift sketch --by` writes."
        )
        raise DataError(msg)
    if by is not None or where is not None:
        msg = f"--by and --where are for tables, and {str(files[0])!r} is a single sketch."
        raise click.UsageError(msg)
    return sketches


def _describe(found: Watch) -> list[str]:
    alarms = counted(len(found.alarms), "alarm") if found.alarms else "no alarms"
    return [
        f"{counted(len(found), 'slice')} by {found.by}, {rows_in_words(found.whole)}: {alarms}.",
        "Without drift, the probability of any alarm in such a table is at most "
        f"{100 * found.false_alarm:g} %.",
        *promise_lines(found.whole),
    ]


def _table(found: Watch, keys: Sequence[str | None]) -> list[str]:
    n_clusters = 0 if found.decoding is None else len(found.decoding.weights)
    k = min(n_clusters, CLUSTERS_SHOWN)
    titles = ["before", "threshold", "earlier", "threshold", "alarm"]
    head = [found.by, f"{found.whole.about}rows", *titles]
    rows = [head + [f"cluster {i}" for i in range(k)]]
    for key, moment in zip(keys, found.slices, strict=True):
        tests = [*_cells(moment.before), *_cells(moment.earlier)]
        shares = [percent(share) for share in moment.shares[:k].tolist()]
        alarm = "drift" if moment.drifted else ""
        rows.append([str(key), f"{moment.count:,}", *tests, alarm, *shares])
    hidden = {"cluster": n_clusters - CLUSTERS_SHOWN}
    return align(rows, right=True) + count_hidden(hidden, "--json shows all")


def _cells(test: Distance | None) -> list[str]:
    if test is None:
        return ["-", "-"]
    return [f"{test.distance:.4f}", f"{test.threshold:.4f}"]


def _slice_record(key: str | None, moment: WatchedSlice, sketch: AnySketch) -> dict[str, Any]:
    tests = {"before": moment.before, "earlier": moment.earlier}
    distances = {
        name: None if test is None else distance_record(test) for name, test in tests.items()
    }
    return {
        "key": moment.key if isinstance(moment.key, int | float) else str(key),
        "rows": moment.count,
        "rows_std": sketch.count_std,
        "drifted": moment.drifted,
        **distances,
        "shares": moment.shares.tolist(),
        "share_errors": moment.share_errors.tolist(),
    }


def _figure(found: Watch) -> Figure:
    from sketchshift.plots import watch_figure

    return watch_figure(found)
