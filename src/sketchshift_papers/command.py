"""``sketchshift reproduce``: the paper's figures, run again on this library.

Imported for ``sketchshift --help`` too: what it needs beyond that, it imports when it runs.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sketchshift.cli import Output, command, show_progress
from sketchshift.errors import DataError, SketchshiftError

if TYPE_CHECKING:
    from sketchshift_papers.runner import Progress

__all__ = ["reproduce"]

WIDTH = 96


@command
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--all", "is_all", is_flag=True, help="Every figure there is.")
@click.option(
    "--quick/--full", default=True, show_default=True, help="Minutes, or all the paper's runs."
)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    help="For runs, pictures and verdicts. Default: reproduction; reproduction-NAME with --paper.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; default: the processors.")
@click.option(
    "--realizations", type=click.IntRange(min=1), help="Instead of the number in the file."
)
@click.option("--points", type=click.IntRange(min=1), help="At most so many bandwidths.")
@click.option("--again", is_flag=True, help="Repeat runs that are already there.")
@click.option(
    "--paper",
    default="sketch_and_shift",
    show_default=True,
    metavar="FOLDER",
    help="Of .toml files of figures, or the name of an installed one: sketch_and_shift, beyond.",
)
def reproduce(
    figures: tuple[str, ...],
    is_all: bool,
    quick: bool,
    output: str | None,
    jobs: int | None,
    realizations: int | None,
    points: int | None,
    again: bool,
    paper: str,
    out: Output,
) -> None:
    """Run the paper's experiments again, and say which of its claims hold.

    FIGURE is fig1, fig2, ... Every run is kept in FOLDER as Parquet, beside the picture and
    the verdicts (JSON and markdown). An interrupted command goes on where it stopped. Figures
    8 and 10 need real data; that of figure 8 is fetched by `sketchshift data`. What the paper
    leaves open is in another set of figures: `--paper beyond`.

    Examples
    --------
      sketchshift reproduce fig3 --jobs 1
      sketchshift reproduce fig1 --realizations 1 --points 2 --jobs 1 -o figures --json

    Then: `sketchshift reproduce --all --full`, and read verdicts-full.md.
    """
    from sketchshift_papers import figure_names, paper_folder, write_summary

    source = paper_folder(paper)
    names = figure_names(source)
    if not names:
        msg = f"the folder {paper!r} has no .toml files of figures. Give another one with --paper."
        raise DataError(msg)
    if is_all == bool(figures):
        raise click.UsageError(f"name figures or --all. There are: {', '.join(names)}.")
    is_other = source != paper_folder()
    output = output or ("reproduction" + (f"-{source.name}" if is_other else ""))
    folder, size = _output_folder(output), "quick" if quick else "full"
    n_jobs = jobs or _processors()
    found, left_out = [], {}
    for name in names if is_all else figures:
        try:
            facts = _one(name, source, folder, size, n_jobs, realizations, points, again)
        except DataError as error:
            if not is_all:
                raise
            left_out[name] = str(error)
            continue
        found.append(facts)
        out.say(*_table(facts), "")
    summary = write_summary(folder, size, names)
    whole = {"command": "reproduce", "size": size, "summary": str(summary)}
    facts = whole | {"figures": found, "not_run": left_out}
    lines = [f"{name} was not run: {why}" for name, why in left_out.items()]
    lines += [f"Wrote {summary}, and runs, pictures and verdicts beside it."]
    other = "--full" if quick else "--quick"
    of_paper = ["--paper", paper] if is_other else []
    out.report(facts, lines, then=["reproduce", "--all", other, *of_paper, "-o", output])


def _one(
    name: str,
    source: Path,
    folder: Path,
    size: str,
    n_jobs: int,
    realizations: int | None,
    points: int | None,
    again: bool,
) -> dict[str, Any]:
    from sketchshift_papers import Files, load_figure
    from sketchshift_papers import reproduce as run
    from sketchshift_papers.contenders import without_missing

    figure, says = without_missing(load_figure(name, source))
    grid = figure.grids[size].thinned(realizations, points)
    files = Files(folder, f"{name}-{size}")
    try:
        with _progress(f"{name} ({size})") as progress:
            facts = run(figure, grid, files, n_jobs=n_jobs, again=again, progress=progress)
            return facts | {"left_out": says}
    except KeyboardInterrupt as interruption:
        msg = (
            f"{name} was interrupted. Finished runs are kept in {str(files.runs)!r}; "
            "the same command goes on from there."
        )
        raise SketchshiftError(msg) from interruption


@contextmanager
def _progress(label: str) -> Iterator[Progress | None]:
    """A line on stderr with the runs so far and the time left, where that is a terminal."""
    with show_progress("items", label) as count:
        yield None if count is None else lambda n_done, n_all: count(n_done, n_all, "runs")


def _output_folder(output: str) -> Path:
    folder = Path(output).expanduser()
    if folder.exists() and not folder.is_dir():
        raise DataError(f"cannot write to {output!r}: it is a file. Give the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _table(facts: dict[str, Any]) -> list[str]:
    """Verdicts for a person: one paragraph a claim."""
    from sketchshift_papers.verdicts import asides, details, how_much, shown_verdict

    lines = [f"{facts['figure']}  {facts['title']}: {how_much(facts)}"]
    lines += [f"  {line}" for line in facts["left_out"]]
    for claim in facts["claims"]:
        head = f"  {claim['number']:<5} {shown_verdict(claim):<19} "
        texts = [f"{claim['says']} ({claim['section']})", *asides(claim), *details(claim)]
        for i, text in enumerate(texts):
            indent = " " * len(head)
            first = head if i == 0 else indent + "- "
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=first, subsequent_indent=indent + "  "
            )
    return lines
