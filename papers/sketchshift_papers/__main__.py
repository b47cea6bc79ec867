"""``python -m sketchshift_papers fig1 ...``: run the paper's experiments again.

Every run is kept in the folder as Parquet, beside the picture and the verdicts (JSON and markdown).
An interrupted program goes on where it stopped. Figures 8 and 10 need real data: ``make data``.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sketchshift.cli import show_progress
from sketchshift.errors import DataError
from sketchshift_papers.contenders import without_missing
from sketchshift_papers.definition import PAPER, figure_names, load_figure, paper_folder
from sketchshift_papers.reproduction import Files, reproduce
from sketchshift_papers.verdicts import asides, details, how_much, shown_verdict, write_summary

__all__ = ["main"]

WIDTH = 96


def main(words: Sequence[str] | None = None) -> int:
    """Run figures, and say which of their claims hold."""
    parser = argparse.ArgumentParser(prog="sketchshift_papers", description=__doc__)
    parser.add_argument("figures", nargs="*", help="fig1, fig2, ...")
    parser.add_argument("--all", action="store_true", help="every figure there is")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="minutes: the default")
    size.add_argument("--full", action="store_true", help="all the paper's runs")
    parser.add_argument("-o", "--output", default="reproduction", help="a folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--realizations", type=int, help="instead of the number in the file")
    parser.add_argument("--points", type=int, help="at most so many bandwidths")
    parser.add_argument("--again", action="store_true", help="repeat runs that are there")
    parser.add_argument("--paper", default=PAPER, help="folder of the figures' .toml files")
    options = parser.parse_args(words)
    if options.all == bool(options.figures):
        parser.error("name figures or --all")
    try:
        return _run_all(options)
    except DataError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _run_all(options: argparse.Namespace) -> int:
    source, folder = paper_folder(options.paper), Path(options.output).expanduser()
    names, size = figure_names(source), "full" if options.full else "quick"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names if options.all else options.figures:
        figure, left_out = without_missing(load_figure(name, source))
        grid = figure.grids[size].thinned(options.realizations, options.points)
        files = Files(folder, f"{name}-{size}")
        try:
            with show_progress("items", f"{name} ({size})") as count:
                facts = reproduce(
                    figure,
                    grid,
                    files,
                    n_jobs=options.jobs,
                    again=options.again,
                    progress=count and (lambda done, of: count(done, of, "runs")),
                )
        except KeyboardInterrupt:
            print(
                f"Error: {name} was interrupted. Finished runs are kept in {str(files.runs)!r}; "
                "the same command goes on from there.",
                file=sys.stderr,
            )
            return 130
        except DataError as error:
            if not options.all:
                raise
            print(f"{name} was not run: {error}")
            continue
        print("\n".join([*_table(facts), *left_out, ""]), flush=True)
    summary = write_summary(folder, size, names)
    print(f"Wrote {summary}, and runs, pictures and verdicts beside it.")
    return 0


def _table(facts: dict[str, Any]) -> list[str]:
    """Verdicts for a person: one paragraph a claim."""
    lines = [f"{facts['figure']}  {facts['title']}: {how_much(facts)}"]
    for claim in facts["claims"]:
        head = f"  {claim['number']:<5} {shown_verdict(claim):<19} "
        indent = " " * len(head)
        texts = [f"{claim['says']} ({claim['section']})", *asides(claim), *details(claim)]
        for i, text in enumerate(texts):
            first = f"{indent}- " if i else head
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=first, subsequent_indent=f"{indent}  "
            )
    return lines


if __name__ == "__main__":
    sys.exit(main())
