"""Drift over the slices of a table, or over sketches in a row, for ``sketchshift compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sketchshift._paths import Place
from sketchshift._text import counted, rows_in_words
from sketchshift.cli.inputs import is_table, load_any, load_table
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
from sketchshift.drift import Distance, Watch, WatchedSlice, watch
from sketchshift.drift.compare import name_clusters
from sketchshift.drift.compare import percent as rounded
from sketchshift.drift.watch import FEWEST
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, SketchTable

__all__ = ["compare_over_time", "distance_record"]

CLUSTERS_SHOWN = 10
SMALL_SHOWN = 12
FILE = "file"  # what the times of sketches in a row are called
TESTS = ("before", "earlier", "usual")
"""The slices that distances are measured from, in the order of the table."""

MANY = (
    "Most slices differ from the one before, so this is normal variation. Name a period that was "
    "ordinary, and the others are judged by how much its slices vary."
)


def distance_record(test: Distance) -> dict[str, Any]:
    """Return the numbers of a test, and its verdict."""
    names = Distance.__dataclass_fields__
    return {name: getattr(test, name) for name in names} | {"drifted": test.drifted}


def compare_over_time(
    inputs: Sequence[str],
    files: Sequence[Place],
    flags: dict[str, Any],
    picture: Picture,
    out: Output,
) -> bool:
    """Report what changed between slices, and when.

    Parameters
    ----------
    inputs : sequence of str
        Sketches in the order of time, or a table of them, as typed.
    files : sequence of Place
        The files that they mean.
    flags : dict
        Values of over, where, reference, n_clusters and false_alarm.
    picture : Picture
        Is drawn if it was asked for.
    out : Output
        Receives the report.

    Returns
    -------
    has_alarms : bool
        Whether any slice drifted.
    """
    reference, where = flags["reference"], flags["where"]
    slices = _slices(files, flags["over"], where)
    is_of_table = isinstance(slices, SketchTable)
    names = ("n_clusters", "false_alarm", "reference")
    with show_progress("items", "Comparing the slices"):
        found = watch(
            slices,
            by=flags["over"] if is_of_table else FILE,
            **{name: flags[name] for name in names},
        )
    keys = keys_in_words([each.key for each in found.slices])
    record = {
        "command": "compare",
        "inputs": list(inputs),
        "by": found.by,
        "where": where,
        "plot": picture.name,
        "false_alarm": flags["false_alarm"],
        "reference": reference,
        "effect": found.effect,
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
    again = ["compare", *inputs, *(["--over", found.by] if is_of_table else ())]
    given = {"--where": where, "--reference": reference}
    again += [word for name, value in given.items() if value for word in (name, value)]
    advice = _propose_reference(found, keys)
    if advice:
        lines += ["", MANY]
        again += ["--reference", advice]
    elif picture.name:
        again = ["inspect", str(files[0])]
    else:
        again += ["--plot", "drift.png"]
    out.report(record, lines, then=again)
    return bool(found.alarms)


def _slices(
    files: Sequence[Place], over: str | None, where: str | None
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
    if over is not None or where is not None:
        msg = f"--over and --where are for tables, and {str(files[0])!r} is a single sketch."
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
        f"An alarm is a change beyond chance that concerns at least {rounded(found.effect)} of the "
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
    names = [name.strip("'") for name in name_clusters(found.decoding)]
    k = min(len(names), CLUSTERS_SHOWN)
    which = [w for w in TESTS if any(getattr(each, w) is not None for each in found.slices)]
    titles = [title for w in which for title in (w, "threshold")]
    head = [found.by, f"{found.whole.about}rows", "verdict", "change", *titles]
    rows = [head + [f"cluster {i}" for i in range(k)]]
    for key, each in zip(keys, found.slices, strict=True):
        tests = [cell for w in which for cell in _cells(getattr(each, w))]
        change = rounded(each.effect) if each.tests else "-"
        shares = [percent(share) for share in each.shares[:k].tolist()]
        rows.append([str(key), f"{each.count:,}", _verdict(each), change, *tests, *shares])
    hidden = {"cluster": len(names) - CLUSTERS_SHOWN}
    lines = align(rows, right=True) + count_hidden(hidden, "--json shows all")
    called = [f"cluster {i}: {name}" for i, name in enumerate(names[:k])]
    return [*lines, *(["", *called] if called else ())]


def _verdict(each: WatchedSlice) -> str:
    if each.is_reference:
        return "reference"
    return "alarm" if each.drifted else "small" if each.is_small else ""


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
