"""``sketchshift watch``: drift over the slices of a table of sketches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from sketchshift.cli.command import command
from sketchshift.cli.drift_options import Picture, distance_facts, drift_options, percent
from sketchshift.cli.facts import aligned, counted, keys_in_words, next_step, report
from sketchshift.cli.files import is_table, sketch_files
from sketchshift.cli.tables import load_table, where_option
from sketchshift.drift import Distance, Moment, Watch
from sketchshift.drift import watch as watch_table
from sketchshift.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["watch"]

CLUSTERS_SHOWN = 10


@command
@click.argument("table")
@click.option("--by", metavar="COLUMN", help="The column of time. Default: the only one.")
@where_option
@drift_options
@click.pass_context
def watch(
    ctx: click.Context,
    /,
    table: str,
    by: str | None,
    where: str | None,
    n_clusters: int | Literal["auto"],
    false_alarm: float,
    plot: str | None,
    fail_on_drift: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Follow a table of sketches over time: distances, alarms, shares of the clusters.

    Every slice is compared with the one before it, which finds jumps, and with all earlier
    ones together, which finds slow drift. TABLE is what `sketchshift sketch --by` wrote;
    slices that agree in the column of time are added up. The data is not needed.

    Examples
    --------
      sketchshift watch sketches.parquet --by day --plot drift.png
      sketchshift watch sketches.parquet --by day -k 2 --where "shop = 'a'" --json

    Then: `sketchshift cluster sketches.parquet --where "day = '2026-01-05'" -k 3`. Two
    sketches in detail: `sketchshift compare`.
    """
    files = sketch_files([table])
    if len(files) != 1:
        raise click.UsageError("give one table: a pattern of several files is not one.")
    if not is_table(files[0]):
        msg = (
            f"{table!r} is not a table of sketches. `sketchshift sketch --by` writes one; two "
            "sketches are for `sketchshift compare`."
        )
        raise DataError(msg)
    picture = Picture.of(plot, files)
    slices = load_table(files[0], where)
    found = watch_table(slices, by=by, n_clusters=n_clusters, false_alarm=false_alarm, seed=seed)
    keys = keys_in_words([moment.key for moment in found.moments])
    facts = {
        "command": "watch",
        "table": table,
        "by": found.table.by[0],
        "where": where,
        "plot": plot,
        "false_alarm": false_alarm,
        "slices": [_slice_facts(*pair) for pair in zip(keys, found.moments, strict=True)],
        "centroids": [] if found.decoding is None else found.decoding.centroids.tolist(),
    }
    lines = [
        *_story(found),
        "",
        *_lines(found, keys),
        "",
        *picture.write(lambda: _figure(found)),
        _next(table, found, plot),
    ]
    report(facts, lines, as_json=as_json)
    if fail_on_drift and found.alarms:
        ctx.exit(1)


def _story(found: Watch) -> list[str]:
    rows = sum(moment.count for moment in found.moments)
    alarms = counted(len(found.alarms), "alarm") if found.alarms else "no alarms"
    return [
        f"{counted(len(found), 'slice')} by {found.table.by[0]}, {counted(rows, 'row')}: {alarms}.",
        f"Without drift, any alarm in such a table has probability {100 * found.false_alarm:g} % "
        "at most.",
    ]


def _lines(found: Watch, keys: Sequence[str | None]) -> list[str]:
    k = 0 if found.decoding is None else min(len(found.decoding.weights), CLUSTERS_SHOWN)
    head = [found.table.by[0], "rows", "before", "threshold", "earlier", "threshold", "alarm"]
    rows = [head + [f"cluster {i}" for i in range(k)]]
    for key, moment in zip(keys, found.moments, strict=True):
        tests = [*_cells(moment.before), *_cells(moment.earlier)]
        shares = [percent(share) for share in moment.shares[:k].tolist()]
        alarm = "drift" if moment.drifted else ""
        rows.append([str(key), f"{moment.count:,}", *tests, alarm, *shares])
    hidden = (0 if found.decoding is None else len(found.decoding.weights)) - k
    more = [f"{counted(hidden, 'cluster')} more: --json shows all."] * (hidden > 0)
    return aligned(rows, right=True) + more


def _cells(test: Distance | None) -> list[str]:
    if test is None:
        return ["-", "-"]
    return [f"{test.distance:.4f}", f"{test.threshold:.4f}"]


def _slice_facts(key: str | None, moment: Moment) -> dict[str, Any]:
    tests = {"before": moment.before, "earlier": moment.earlier}
    distances = {
        name: None if test is None else distance_facts(test) for name, test in tests.items()
    }
    return {
        "key": moment.key if isinstance(moment.key, int | float) else str(key),
        "rows": moment.count,
        "drifted": moment.drifted,
        **distances,
        "shares": moment.shares.tolist(),
        "share_errors": moment.share_errors.tolist(),
    }


def _figure(found: Watch) -> Figure:
    from sketchshift.plots import watch_figure

    return watch_figure(found)


def _next(table: str, found: Watch, plot: str | None) -> str:
    if plot is None:
        return next_step("watch", table, "--by", found.table.by[0], "--plot", "drift.png")
    return next_step("inspect", table)
