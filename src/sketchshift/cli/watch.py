"""``sketchshift watch``: drift over the slices of a table, or over sketches in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import click

from sketchshift._paths import Place
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
    promise_lines,
    show_progress,
)
from sketchshift.drift import Distance, Watch, WatchedSlice
from sketchshift.drift import watch as watch_slices
from sketchshift.drift.compare import name_clusters, percent
from sketchshift.drift.watch import EFFECT, FEWEST, Season
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, SketchTable

__all__ = ["watch"]

CLUSTERS_SHOWN = 10
SMALL_SHOWN = 12
FILE = "file"  # what the times of sketches in a row are called
QUOTE = "'"
DRAW = ("--plot", "drift.png")
TESTS = ("before", "earlier", "usual")
"""What distances are from, in the order of the table."""

MANY = (
    "Most slices differ from those before them: that is how they vary, and no news. Say which "
    "period was ordinary, and the others are judged by how much its slices vary."
)


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--by", metavar="COLUMN", help="The column of time. Default: the only one.")
@where_option
@click.option(
    "--reference",
    metavar="CONDITION",
    help="Times that were as they should be, such as \"day < '2026-01-05'\": others are judged by "
    "how much these vary.",
)
@click.option(
    "--season",
    type=click.Choice(["year", "week"]),
    help="Compare with the same month of other years, or the same day of other weeks.",
)
@click.option(
    "--effect",
    type=click.FloatRange(0.0, 1.0),
    default=EFFECT,
    show_default=True,
    help="The least change that is an alarm, as a share of the rows.",
)
@drift_options
@click.pass_context
def watch(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    by: str | None,
    where: str | None,
    reference: str | None,
    season: Season | None,
    effect: float,
    n_clusters: int | Literal["auto"],
    false_alarm: float,
    plot: str | None,
    fail_on_drift: bool,
    seed: int,
    out: Output,
) -> None:
    """Follow sketches over time: what changed, when, and by how much.

    Every slice is compared with the one before it, which finds jumps, and with all earlier
    ones together, which finds slow drift. An alarm is a change that is beyond chance and
    concerns at least 5 % of the rows (--effect). Slices that always vary, as days and
    seasons do, need a period that was ordinary (--reference): the others are then judged by
    how much its slices vary.

    INPUT is a table that `sketchshift sketch --by` wrote, whose slices that agree in the
    column of time are added up. Or it is sketches of one plan in the order of time, all raw or
    all private, those of a glob by name. The data is not needed.

    Examples
    --------
      sketchshift watch sketches.parquet --by day --plot drift.png
      sketchshift watch sketches.parquet --by day --reference "day < '2026-01-05'"

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
            reference=reference,
            season=season,
            effect=effect,
        )
    keys = keys_in_words([each.key for each in found.slices])
    record = {
        "command": "watch",
        "inputs": list(inputs),
        "by": found.by,
        "where": where,
        "plot": plot,
        "false_alarm": false_alarm,
        "reference": reference,
        "season": season,
        "effect": effect,
        "statement": found.whole.statement if isinstance(found.whole, PrivateSketch) else None,
        "slices": [
            _slice_record(*each) for each in zip(keys, found.slices, found.sketches, strict=True)
        ],
        "centroids": [] if found.decoding is None else found.decoding.centroids.tolist(),
        "decoding": None if found.decoding is None else decoding_record(found.decoding),
    }
    lines = [
        *_describe(found, keys),
        "",
        *_table(found, keys),
        "",
        *describe_trust(found.decoding),
        *picture.write("watch", found),
    ]
    again = ["watch", *inputs, *(["--by", found.by] if isinstance(slices, SketchTable) else ())]
    given = {"--where": where, "--reference": reference, "--season": season}
    again += [word for name, value in given.items() if value for word in (name, value)]
    advice = _propose_reference(found, keys)
    if advice:
        lines += ["", MANY]
        out.report(record, lines, then=[*again, "--reference", advice])
    else:
        out.report(record, lines, then=["inspect", files[0]] if plot else [*again, *DRAW])
    if fail_on_drift and found.alarms:
        ctx.exit(1)


def _slices(
    files: Sequence[Place], by: str | None, where: str | None
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


def _describe(found: Watch, keys: Sequence[str | None]) -> list[str]:
    """What changed, in a sentence for each alarm; then what an alarm is."""
    counts = [
        counted(len(found.alarms), "alarm") if found.alarms else "no alarms",
        *([counted(len(found.small), "small change")] if found.small else ()),
    ]
    told = zip(keys, found.slices, strict=True)
    small = [str(key) for key, each in zip(keys, found.slices, strict=True) if each.is_small]
    more = f" and {len(small) - SMALL_SHOWN} more" if len(small) > SMALL_SHOWN else ""
    small_line = f"Small changes, not alarms: {', '.join(small[:SMALL_SHOWN])}{more}."
    return [
        f"{counted(len(found), 'slice')} by {found.by}, {rows_in_words(found.whole)}: "
        f"{', '.join(counts)}.",
        *(f"{key}: {each.sentence}" for key, each in told if each.drifted),
        *([small_line] if small else ()),
        f"An alarm is a change beyond chance that concerns at least {percent(found.effect)} of the "
        "rows.",
        "Without drift, the probability of any alarm in such a table is at most "
        f"{100 * found.false_alarm:g} %.",
        *promise_lines(found.whole),
    ]


def _propose_reference(found: Watch, keys: Sequence[str | None]) -> str | None:
    """A condition for the first quarter of the slices, where most slices alarm."""
    first = max(FEWEST, len(found) // 4)
    is_ordinary = 2 * len(found.alarms) < len(found) - 1
    if found.reference is not None or is_ordinary or len(found) < 2 * FEWEST:
        return None
    key = found.slices[first].key
    name = found.by if found.by.isidentifier() else '"' + found.by.replace('"', '""') + '"'
    number = isinstance(key, int | float)
    return None if found.by == FILE else f"{name} < {key if number else repr(str(keys[first]))}"


def _table(found: Watch, keys: Sequence[str | None]) -> list[str]:
    names = name_clusters(found.decoding)
    k = min(len(names), CLUSTERS_SHOWN)
    which = [w for w in TESTS if any(getattr(each, w) is not None for each in found.slices)]
    titles = [title for w in which for title in (w, "threshold")]
    head = [found.by, f"{found.whole.about}rows", "verdict", "change", *titles]
    rows = [head + [f"cluster {i}" for i in range(k)]]
    for key, each in zip(keys, found.slices, strict=True):
        tests = [cell for w in which for cell in _cells(getattr(each, w))]
        change = percent(each.effect) if each.tests else "-"
        shares = [_share(share) for share in each.shares[:k].tolist()]
        rows.append([str(key), f"{each.count:,}", _verdict(each), change, *tests, *shares])
    hidden = {"cluster": len(names) - CLUSTERS_SHOWN}
    lines = align(rows, right=True) + count_hidden(hidden, "--json shows all")
    called = [f"cluster {i}: {name.strip(QUOTE)}" for i, name in enumerate(names[:k])]
    return [*lines, *(["", *called] if called else ())]


def _verdict(each: WatchedSlice) -> str:
    if each.is_reference:
        return "reference"
    return "alarm" if each.drifted else "small" if each.is_small else ""


def _share(share: float) -> str:
    return f"{100 * share:.1f} %" if share == share else "-"


def _cells(test: Distance | None) -> list[str]:
    if test is None:
        return ["-", "-"]
    return [f"{test.distance:.4f}", f"{test.threshold:.4f}"]


def _slice_record(key: str | None, each: WatchedSlice, sketch: AnySketch) -> dict[str, Any]:
    tests = {"before": each.before, "earlier": each.earlier, "usual": each.usual}
    distances = {
        name: None if test is None else distance_record(test) for name, test in tests.items()
    }
    return {
        "key": each.key if isinstance(each.key, int | float) else str(key),
        "rows": each.count,
        "rows_std": sketch.count_std,
        "drifted": each.drifted,
        "verdict": _verdict(each) or "same",
        "change": each.effect,
        "sentence": each.sentence,
        **distances,
        "shares": each.shares.tolist(),
        "share_errors": each.share_errors.tolist(),
    }
