"""Run the stages of `make test-all`, two at a time, and print the time of each.

One lane has the tests that use a processor each; the other has the stages that mostly wait for a browser, for
servers or for the processes of an engine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

LANES = (
    ("test-more",),
    ("docs", "test-browser", "test-prometheus", "test-brokers", "test-stores", "test-engines"),
)
printing = Lock()


def run_lane(stages: tuple[str, ...]) -> list[tuple[str, float, int]]:
    """Run stages one after the other, and print the output of each when it ends."""
    results = []
    for stage in stages:
        start = time.monotonic()
        done = subprocess.run(
            ["make", "--no-print-directory", stage, "GALLERY=0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        results.append((stage, time.monotonic() - start, done.returncode))
        with printing:
            print(f"\n===== make {stage}\n{done.stdout}", flush=True)
    return results


def main() -> int:
    """Run the stages named, or all; return 1 if one failed."""
    named = set(sys.argv[1:]) or {stage for lane in LANES for stage in lane}
    lanes = [tuple(stage for stage in lane if stage in named) for lane in LANES]
    with ThreadPoolExecutor(len(lanes)) as pool:
        results = [result for lane in pool.map(run_lane, lanes) for result in lane]
    for stage, seconds, status in results:
        print(f"{stage:16s} {seconds:5.0f} s  {'FAILED' if status else 'passed'}")
    return int(any(status for *_, status in results))


if __name__ == "__main__":
    sys.exit(main())
