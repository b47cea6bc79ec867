"""``python -m sketchshift_papers fig1 ...``: run the paper's experiments again.

Every run is kept in the folder as Parquet, beside the picture and the verdicts (JSON and markdown).
An interrupted program goes on where it stopped. Figures 8 and 10 need real data: ``make data``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sketchshift.cli import show_progress
from sketchshift.errors import DataError
from sketchshift_papers.contenders import without_missing
from sketchshift_papers.definition import BEYOND, PAPER, figure_names, load_figure
from sketchshift_papers.reproduction import reproduce
from sketchshift_papers.verdicts import markdown, write_summary

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Run figures, and say which of their claims hold."""
    parser = argparse.ArgumentParser(prog="sketchshift_papers", description=__doc__)
    parser.add_argument("figures", nargs="*", help="fig1, noise_peaks, ...")
    parser.add_argument("--all", action="store_true", help="every figure of the paper")
    parser.add_argument("--list", action="store_true", help="name the figures there are")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="minutes: the default")
    size.add_argument("--full", action="store_true", help="all the paper's runs")
    parser.add_argument("-o", "--output", default="reproduction", help="a folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--realizations", type=int, help="instead of the number in the file")
    parser.add_argument("--points", type=int, help="at most so many bandwidths")
    parser.add_argument("--again", action="store_true", help="repeat runs that are there")
    parser.add_argument("--paper", type=Path, default=PAPER, help="folder of .toml files")
    options = parser.parse_args(words)
    if options.all + options.list + bool(options.figures) != 1:
        parser.error("name figures or --all")
    try:
        if options.list:
            for source in (options.paper, BEYOND):
                print(f"{source.name}: {', '.join(figure_names(source))}")
            return 0
        return _run_all(options)
    except DataError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _run_all(options: argparse.Namespace) -> int:
    folder, size = Path(options.output).expanduser(), "full" if options.full else "quick"
    folder.mkdir(parents=True, exist_ok=True)
    sources = (options.paper, BEYOND)
    for name in figure_names(sources[0]) if options.all else options.figures:
        figure, left_out = without_missing(load_figure(name, *sources))
        grid = figure.grids[size].thinned(options.realizations, options.points)
        stem = folder / f"{name}-{size}"
        try:
            with show_progress("items", f"{name} ({size})") as count:
                facts = reproduce(
                    figure,
                    grid,
                    stem,
                    n_jobs=options.jobs,
                    again=options.again,
                    progress=count and (lambda done, of: count(done, of, "runs")),
                )
        except KeyboardInterrupt:
            print(
                f"Error: {name} was interrupted. Finished runs are kept in "
                f"'{stem}.parquet'; the same command goes on from there.",
                file=sys.stderr,
            )
            return 130
        except DataError as error:
            if not options.all:
                raise
            print(f"{name} was not run: {error}")
            continue
        print("\n".join([*markdown(facts), *left_out]), flush=True)
    for source in sources:
        write_summary(folder, size, source)
    print(f"Wrote runs, pictures and verdicts into {folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
