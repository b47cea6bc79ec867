"""Run what has not been run yet, then write the tables and the picture."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import sketchshift as ss
from quality.clock import Clock, in_words
from quality.datasets import RECIPES, Dataset, here, load
from quality.found import centroid_index
from quality.picture import write_picture
from quality.runs import METHODS, MULTIPLES, QUICK, SEEDS, SLOW, Run, planned, sketch_size
from quality.store import Store
from quality.tables import write_tables

RESULTS = Path(__file__).parents[1] / "results"


def main(words: list[str] | None = None) -> None:
    chosen = _parser().parse_args(words)
    left_out = SLOW if chosen.quick else QUICK
    methods = chosen.only or [name for name in METHODS if name not in left_out]
    store = Store(chosen.results / "quality")
    if chosen.again:
        store.forget(methods, chosen.datasets)
    runs = planned(here(chosen.datasets), methods, chosen.multiples, chosen.seeds)
    left = [run for run in runs if run not in store]
    if chosen.estimate:
        _estimate(left, Clock(store.rows))
        return
    _run_all(left, store)
    if store.rows:
        write_tables(store.rows, chosen.results / "quality.md")
        write_picture(store.rows, chosen.results / "quality.png")


def _run_all(left: list[Run], store: Store) -> None:
    """Dataset by dataset, so that each is read once."""
    clock, n_done = Clock(store.rows), 0
    for name, of_dataset in groupby(left, key=lambda run: run.dataset):
        data = load(name)
        reference = store.reference(data)
        for run in of_dataset:
            facts = judged(data, run, reference)
            store.add(run, facts)
            clock.add(run.method, run.dataset, run.multiple, facts["total_seconds"])
            n_done += 1
            _say(run, facts, f"{n_done}/{len(left)}", clock.expected(left[n_done:]))


def judged(data: Dataset, run: Run, reference: float) -> dict[str, Any]:
    """Do one run; the facts that are kept of it."""
    start = time.perf_counter()
    found = METHODS[run.method](data, run)
    error, truth = ss.mse(data.X, found.centroids), data.true_centroids
    return {
        "n": data.n,
        "d": data.d,
        "k": data.k,
        "m": sketch_size(data, run),
        "mse": error,
        "rse": error / reference,
        "centroid_index": None if truth is None else centroid_index(found.centroids, truth),
        "seconds": round(found.seconds, 4),
        "bytes": found.n_bytes,
        "total_seconds": round(time.perf_counter() - start, 3),
        "date": str(date.today()),
    }


def _say(run: Run, facts: dict[str, Any], done: str, seconds_left: float) -> None:
    size = "" if run.multiple is None else f" {run.multiple}kd"
    width = "" if run.bandwidth is None else f" bandwidth {run.bandwidth}"
    words = f"{run.dataset} {run.method}{size}{width} seed {run.seed}"
    time_left = in_words(seconds_left)
    line = f"[{done}] {words}: RSE {facts['rse']:.3f}, {facts['seconds']:.2f} s; {time_left} left"
    print(line, file=sys.stderr, flush=True)


def _estimate(left: list[Run], clock: Clock) -> None:
    """Number of runs and time left of each method, from the runs that are in the file."""
    print(f"{'all':<28}{len(left):6} runs{in_words(clock.expected(left)):>10}")
    for name in METHODS:
        mine = [run for run in left if run.method == name]
        if mine:
            print(f"{name:<28}{len(mine):6} runs{in_words(clock.expected(mine)):>10}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quality", description=__doc__)
    add = parser.add_argument
    add("--only", type=_listed(METHODS), metavar="METHODS", help=", ".join(METHODS))
    add("--datasets", type=_listed(RECIPES), default=list(RECIPES), help=", ".join(RECIPES))
    add("--multiples", type=_listed(MULTIPLES, int), default=MULTIPLES, help="sizes, in k d")
    add("--seeds", type=_seeds, default=SEEDS, metavar="N", help="number of seeds")
    add("--quick", action="store_true", help="Algorithm 2 with 100 starts instead of 1000")
    add("--again", action="store_true", help="forget the finished runs of what is chosen")
    add("--estimate", action="store_true", help="say how long it would take, and run nothing")
    add("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where results are kept")
    return parser


def _listed(choices: Iterable[Any], kind: Callable[[str], Any] = str) -> Callable[[str], list[Any]]:
    """A parser of names with commas in between."""

    def parse(text: str) -> list[Any]:
        values = [kind(word) for word in text.split(",")]
        unknown = [value for value in values if value not in choices]
        if unknown:
            known = ", ".join(map(str, choices))
            raise argparse.ArgumentTypeError(f"there is no {unknown[0]}. There are {known}.")
        return values

    return parse


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(range(int(text)))


if __name__ == "__main__":
    main()
