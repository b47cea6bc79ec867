"""Run what has not been run yet, then write the tables and the picture."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from quality.conditions import CONDITIONS
from quality.datasets import RECIPES, here
from quality.runs import BYTES, METHODS, REFERENCE, Run, planned
from quality.store import Store
from quality.workers import done

RESULTS = Path(__file__).parents[1] / "results"


def main(words: list[str] | None = None) -> None:
    chosen = _parser().parse_args(words)
    store, methods = Store(chosen.results / "quality"), _usable(chosen.only)
    used = {name for condition in chosen.conditions for name in CONDITIONS[condition].n_clusters}
    datasets = here(name for name in chosen.datasets if name in used)
    runs = planned(chosen.conditions, datasets, methods, chosen.seeds)
    if chosen.again:
        store.forget([run for run in runs if run.method in chosen.only])
    _run_all([run for run in runs if run not in store], store, chosen)
    if not chosen.runs_only and store.rows:
        _write(store.rows, chosen.results)


def _usable(names: list[str]) -> list[str]:
    """Those methods whose packages are here; the references are never left out."""
    for name in names:
        if not METHODS[name].is_here:
            package = METHODS[name].package
            print(f"{name} is left out: there is no package {package}.", file=sys.stderr)
    return [name for name in METHODS if name in {*names, REFERENCE} and METHODS[name].is_here]


def _run_all(left: list[Run], store: Store, chosen: argparse.Namespace) -> None:
    """First our sketches and what does not depend on them; then what keeps as many bytes."""
    deadline, n_done = time.monotonic() + 60.0 * chosen.minutes, 0
    for waits in (False, True):
        of_now = [run for run in left if (METHODS[run.method].keeps == BYTES) is waits]
        sizes = [store.n_bytes(run) if waits else 0 for run in of_now]
        tasks = [(run, n) for run, n in zip(of_now, sizes, strict=True) if n is not None]
        for run, facts in done(tasks, chosen.workers, deadline):
            store.add(run, facts)
            n_done += 1
            _say(run, facts, f"{n_done}/{len(left)}")


def _say(run: Run, facts: dict[str, Any], count: str) -> None:
    outcome = f"{facts['mse']:.6g}, {facts['seconds']:.2f} s" if "mse" in facts else "failed"
    words = f"{run.condition} {run.dataset} {run.method} seed {run.seed}"
    print(f"[{count}] {words}: {outcome}", file=sys.stderr, flush=True)


def _write(rows: list[dict[str, Any]], folder: Path) -> None:
    from quality.picture import write_picture  # pandas and matplotlib: the runs need neither
    from quality.tables import compared, write_tables

    runs = compared(rows)
    write_tables(runs, folder / "quality.md")
    write_picture(runs, folder / "quality.png")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quality", description=__doc__)
    add = parser.add_argument
    conditions, sets, methods = list(CONDITIONS), list(RECIPES), list(METHODS)
    add("--conditions", type=_listed(conditions), default=conditions, help=", ".join(conditions))
    add("--datasets", type=_listed(sets), default=sets, metavar="SETS", help=", ".join(sets))
    add("--only", type=_listed(methods), default=methods, metavar="METHODS", help=_help(methods))
    add("--seeds", type=int, default=5, metavar="N", help="number of seeds, at most")
    add("--workers", type=int, default=1, metavar="N", help="processes, of one thread each")
    add("--minutes", type=float, default=math.inf, help="begin no run later; 0 writes the tables")
    add("--again", action="store_true", help="forget the finished runs of what is chosen")
    add("--runs-only", action="store_true", help="write no tables, which need pandas")
    add("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where results are kept")
    return parser


def _help(methods: list[str]) -> str:
    return f"{', '.join(methods)}; {REFERENCE} always, for errors are relative to it"


def _listed(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """A parser of names with commas in between."""

    def parse(text: str) -> list[str]:
        unknown = [word for word in text.split(",") if word not in choices]
        if unknown:
            known = ", ".join(choices)
            raise argparse.ArgumentTypeError(f"there is no {unknown[0]}. There are {known}.")
        return text.split(",")

    return parse


if __name__ == "__main__":
    main()
