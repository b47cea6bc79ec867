"""What the benchmarks share: fair timing, data that may be missing, results in dated files."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TypeVar

from sketchshift.errors import DataError

T = TypeVar("T")


def if_here(name: str, load: Callable[[], T]) -> T | None:
    """A dataset, or None with a sentence on stderr where it is not here."""
    try:
        return load()
    except DataError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return None


def best_of(
    candidates: dict[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Least seconds of each candidate; all are warmed up first and then take turns.

    ``time.process_time`` as clock leaves out what other processes took: for long runs of one
    thread on shared cores.
    """
    for run in candidates.values():
        run()
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(repeats):
        for name, run in candidates.items():
            start = clock()
            run()
            best[name] = min(best[name], clock() - start)
    return best


def report(name: str, results: Mapping[str, Mapping[str, float]]) -> None:
    """Print a table, and write it to results/<machine>/<date>-<commit>-<name>.json."""
    for title, rows in results.items():
        print(title)
        for fact, value in rows.items():
            print(f"    {fact:<52}{value:10.3f}")
    folder = Path(__file__).parent / "results" / _processor()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{date.today()}-{_commit()}-{name}.json"
    path.write_text(json.dumps(results, indent=2) + "\n")


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    """The machine in words, as tables quote it."""
    return f"{os.cpu_count()} cores, {_processor().replace('-', ' ')}"


def _processor() -> str:
    """Name of the processor, fit for a folder."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return "-".join((names[0] if names else platform.machine()).replace("(R)", "").split())
