"""Cluster the wide sets in every way, each run in a process of its own; then write the table.

What is in ``results/wide/runs.jsonl`` is not run again: an interrupted benchmark goes on.

    python -m wide --datasets mnist,patches --minutes 30
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from harness import machine

from sketchshift.errors import DataError
from wide.datasets import MAKERS, path_of
from wide.methods import METHODS, Problem, mse

RESULTS = Path(__file__).parents[1] / "results"
CLUSTERS = (10, 100)
N_REFERENCES = 2


@dataclass(frozen=True, order=True)
class Run:
    """One clustering: of which data, how, and of what the plan was made."""

    dataset: str
    k: int
    plan: str
    method: str
    seed: int = 0


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="wide", description=__doc__)
    parser.add_argument("--datasets", default=",".join(MAKERS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--clusters", default=",".join(map(str, CLUSTERS)))
    parser.add_argument("--minutes", type=float, default=600.0, help="no run starts after these")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="also what was run before")
    parser.add_argument("--one", metavar="JSON", help="do a single run, and print its facts")
    chosen = parser.parse_args(words)
    if chosen.one is not None:
        print(json.dumps(do(**json.loads(chosen.one))))
        return
    store, end = Store(chosen.results / "wide"), time.monotonic() + 60.0 * chosen.minutes
    sets, methods = here(chosen.datasets.split(",")), chosen.methods.split(",")
    for run in planned(sets, [int(k) for k in chosen.clusters.split(",")], methods):
        if run in store and not chosen.again:
            continue
        if time.monotonic() > end:
            break
        store.add(run, run_apart(run, store))
    (chosen.results / "wide.md").write_text(table(store.rows))


def here(names: list[str]) -> list[str]:
    """The sets that are made already, or can be made with the packages that are installed."""
    found = []
    for name in names:
        try:
            path_of(name)
            found.append(name)
        except (ImportError, DataError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def planned(sets: list[str], clusters: list[int], methods: list[str]) -> Iterator[Run]:
    """All runs; ours come before those that keep as many bytes."""
    for dataset in sets:
        for k in clusters:
            for method in methods:
                if method == "k-means":
                    yield from (Run(dataset, k, "none", method, i) for i in range(N_REFERENCES))
                elif method == "sample":
                    yield Run(dataset, k, "none", method)
                else:
                    yield from (Run(dataset, k, plan, method) for plan in ("fresh", "stale"))


class Store:
    """Finished runs in a file of JSON lines; the last line of a run counts."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "runs.jsonl"
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self._facts = {_run_of(row): row for row in map(json.loads, lines)}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All runs, sorted."""
        return [self._facts[run] for run in sorted(self._facts)]

    def __contains__(self, run: Run) -> bool:
        return "mse" in self._facts.get(run, {})

    def n_bytes(self, run: Run) -> int:
        """What our sketch of the same data has; 0 if that is not known."""
        row = self._facts.get(Run(run.dataset, run.k, "fresh", "ours"), {})
        return int(row.get("bytes", 0))

    def add(self, run: Run, facts: dict[str, Any]) -> None:
        """Append a run, at once."""
        self._facts[run] = asdict(run) | facts
        with self._path.open("a") as file:
            file.write(json.dumps(self._facts[run]) + "\n")


def _run_of(row: dict[str, Any]) -> Run:
    return Run(row["dataset"], row["k"], row["plan"], row["method"], row["seed"])


def run_apart(run: Run, store: Store) -> dict[str, Any]:
    """Do a run in a fresh process, so that its peak of memory is its own."""
    task = json.dumps(asdict(run) | {"n_bytes": store.n_bytes(run)})
    command = [sys.executable, "-W", "ignore", "-m", "wide", "--one", task]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        facts = {"failed": done.stderr.strip().splitlines()[-1]}
    else:
        facts = json.loads(done.stdout)
    print(run, facts, file=sys.stderr, flush=True)
    return facts | {"date": str(date.today()), "machine": machine()}


def do(
    dataset: str, k: int, plan: str, method: str, seed: int = 0, n_bytes: int = 0
) -> dict[str, Any]:
    """One run: seconds of this process and of the clock, its peak of memory, bytes, error."""
    problem = Problem(path_of(dataset), k, plan == "stale", seed, n_bytes)
    wall, own = time.perf_counter(), time.process_time()
    found = METHODS[method](problem)
    wall, own = time.perf_counter() - wall, time.process_time() - own
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kB on Linux
    error = mse(problem.rows, found.centroids)
    facts = {"mse": error, "seconds": round(own, 2), "wall": round(wall, 2)}
    return facts | {"peak_mb": round(peak), "bytes": found.n_bytes}


LABELS = {
    ("ours", "fresh"): "ours",
    ("ours", "stale"): "ours, stale plan",
    ("pilot", "fresh"): "pilot only",
    ("pilot", "stale"): "pilot only, stale plan",
    ("pilot-pass", "fresh"): "pilot + one exact pass",
    ("pilot-pass", "stale"): "pilot + one exact pass, stale plan",
    ("sample", "none"): "rows of as many bytes",
    ("k-means", "none"): "k-means of all rows, one run",
}
HEAD = """# Wide data

RSE: mean squared error over that of the best of {n} single runs of scikit-learn's k-means with all
rows in memory. Seconds are of one thread (process time), from the file to the centroids; memory is
the peak of a fresh process. `python -m wide`, {dates}, {machine}.

"""


def table(rows: list[dict[str, Any]]) -> str:
    """A table for each number of clusters, as Markdown."""
    rows = [row for row in rows if "mse" in row]
    dates = sorted({row["date"] for row in rows})
    text = HEAD.format(
        n=N_REFERENCES,
        dates=" to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "no runs",
        machine=" and ".join(sorted({row["machine"] for row in rows})),
    )
    for k in sorted({row["k"] for row in rows}):
        mine = [row for row in rows if row["k"] == k]
        sets = [name for name in MAKERS if any(row["dataset"] == name for row in mine)]
        text += f"## k = {k}: RSE, seconds, MB\n\n| | {' | '.join(sets)} |\n"
        text += "|---" * (len(sets) + 1) + "|\n"
        for (method, plan), label in LABELS.items():
            cells = [_cell(mine, name, method, plan) for name in sets]
            text += f"| {label} | {' | '.join(cells)} |\n"
        text += "\n"
    return text


def _cell(rows: list[dict[str, Any]], dataset: str, method: str, plan: str) -> str:
    of_set = [row for row in rows if row["dataset"] == dataset]
    best = [row["mse"] for row in of_set if row["method"] == "k-means"]
    own = [row for row in of_set if (row["method"], row["plan"]) == (method, plan)]
    if not own or not best:
        return ""
    row = max(own, key=lambda row: row["mse"])
    return f"{row['mse'] / min(best):.4f}, {row['seconds']:.1f} s, {row['peak_mb']} MB"


if __name__ == "__main__":
    main()
