"""``sketchshift follow``: a stored sketch, or a cube of slices, kept up with data that changes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sketchshift._paths import shown
from sketchshift._text import counted, rows_in_words
from sketchshift.cli.command import command
from sketchshift.cli.inputs import read_spec
from sketchshift.cli.options import KEYS, columns_option, progress_option
from sketchshift.cli.output import Output, show_progress
from sketchshift.errors import DataError
from sketchshift.sketch.file import is_cube

if TYPE_CHECKING:
    from sketchshift.live.cube import Cube

__all__ = ["follow"]


@command
@click.argument("source")
@click.argument("state")
@click.option(
    "-k",
    "--n-clusters",
    type=click.IntRange(min=1),
    help="For a new STATE: plan on the first rows, for k clusters or fewer. The same again later.",
)
@click.option("--plan", metavar="PATH", help="For a new STATE: plan by `sketchshift plan`.")
@click.option(
    "--by",
    type=KEYS,
    metavar="NAMES",
    help="For a new STATE: a slice for each value of these columns; also day(time), month(time).",
)
@columns_option
@click.option(
    "--where",
    metavar="CONDITION",
    help="For a new STATE: rows that count, as in \"shop = 'a'\".",
)
@click.option(
    "--on-invalid",
    type=click.Choice(["raise", "skip"]),
    help="For a new STATE: leave rows with missing values out, or refuse them. Default: raise.",
)
@click.option(
    "--until",
    metavar="JSON",
    help="Stop at the position that has these values: '{\"version\": 12}'.",
)
@click.option("--once", is_flag=True, help="Read what is there, and end: the default.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.01),
    metavar="SECONDS",
    help="Look again so many seconds after each time, until it is stopped.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="With -k: seed of the plan. Default: 0."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Default: the processors at hand. The bytes do not depend on it.",
)
@progress_option
def follow(
    source: str,
    state: str,
    n_clusters: int | None,
    plan: str | None,
    by: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    where: str | None,
    on_invalid: str | None,
    until: str | None,
    once: bool,
    every: float | None,
    seed: int,
    threads: int | None,
    progress: bool | None,
    out: Output,
) -> None:
    """Bring STATE up to the newest rows of SOURCE, which changes.

    SOURCE is a folder of data files ({formats}), here or in a store (s3://bucket/folder), or an
    address of a kind that is known, such as delta:PATH. Rows that came are added, rows that went
    are subtracted, and only these are read. STATE is a folder, made if it is not there: a sketch,
    or with --by a cube of slices, that `cluster`, `report`, `merge` and `inspect` take like a
    table. What is read and how far is written in one step. So after a crash the same command goes
    on, two of them may run at once, and no row is lost or counted twice.

    Examples
    --------
      sketchshift follow incoming state --columns x,y -k 3
      sketchshift follow incoming cube --by day --plan plan.json --json

    With --every 60 it looks once a minute, until Ctrl-C.

    Then: `sketchshift cluster state -k 3`.
    """
    if once and every is not None:
        raise click.UsageError("give --once or --every, not both.")
    if plan is not None and n_clusters is not None:
        raise click.UsageError("give -k or --plan, not both: -k makes a plan of the first rows.")
    if not is_cube(state) and plan is None and n_clusters is None:
        msg = f"{state!r} is new: give -k, the number of clusters, or --plan plan.json."
        raise click.UsageError(msg)
    options: dict[str, Any] = {"by": by, "columns": columns, "where": where, "n_threads": threads}
    options |= {"on_invalid": on_invalid, "until": _read_until(until)}
    if plan is not None:
        options["spec"] = read_spec(plan)
    if n_clusters is not None:
        options |= {"n_clusters": n_clusters, "seed": seed}
    while True:
        _bring_up(source, state, options, progress, out, is_quiet=every is not None)
        if every is None:
            return
        time.sleep(every)


def _bring_up(
    source: str,
    state: str,
    options: dict[str, Any],
    progress: bool | None,
    out: Output,
    *,
    is_quiet: bool,
) -> None:
    """Follow once, and tell what came of it; of nothing, where that is no news, nothing."""
    from sketchshift.live.cube import Cube
    from sketchshift.live.following import follow as follow_once

    before = Cube.open(state).version if is_cube(state) else 0
    with show_progress("rows", "Looking for changes", then="Reading rows", show=progress) as told:
        cube = follow_once(source, state, **options, progress=told)
    if is_quiet and cube.version == before:
        return
    out.report(*_describe(source, state, cube, cube.version - before), then=["inspect", state])


def _describe(
    source: str, state: str, cube: Cube, n_commits: int
) -> tuple[dict[str, Any], list[str]]:
    whole = cube.merge()
    n_bytes = sum(file.stat().st_size for file in Path(state).rglob("*") if file.is_file())
    record = {
        "command": "follow",
        "source": shown(source),
        "state": state,
        "version": cube.version,
        "commits": n_commits,
        "positions": cube.positions,
        "by": list(cube.keys),
        "rows": whole.count,
        "left_out": whole.n_invalid,
        "bytes": n_bytes,
    }
    lines = [f"{state}: {rows_in_words(whole)}, {counted(n_commits, 'new commit')}."]
    if cube.by:
        n_slices = len(cube.summary()[1])
        record["slices"] = n_slices
        lines += [f"It has {counted(n_slices, 'slice')} by {', '.join(cube.keys)}."]
    return record, lines


def _read_until(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    except ValueError:
        pass
    msg = f"--until takes a JSON object, as in '{{\"version\": 12}}', and not {text!r}."
    raise DataError(msg)
