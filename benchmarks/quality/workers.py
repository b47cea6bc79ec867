"""Runs in several processes, each on one processor and with one thread."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing.queues import Queue
from typing import Any

from quality.runs import Run, do

Task = tuple[Run, int]  # and the bytes that it may keep
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def done(
    tasks: Sequence[Task], n_workers: int, deadline: float
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Runs and their facts as they end; none is begun after the deadline."""
    if n_workers == 1:
        for run, n_bytes in tasks:
            if time.monotonic() < deadline:
                yield run, do(run, n_bytes)
        return
    with _pool(n_workers) as pool:
        futures = {pool.submit(_do_before, deadline, *task): task[0] for task in tasks}
        for future in as_completed(futures):
            if (facts := future.result()) is not None:
                yield futures[future], facts


def _pool(n_workers: int) -> ProcessPoolExecutor:
    for name in THREADS:
        os.environ[name] = "1"
    context = multiprocessing.get_context("spawn")
    processors: Queue[int] = context.Queue()
    for i in range(n_workers):
        processors.put(i)
    return ProcessPoolExecutor(n_workers, context, _take_one, (processors,))


def _take_one(processors: Queue[int]) -> None:
    """Stay on one processor, so that no library starts more threads than one."""
    with suppress(AttributeError, OSError):  # not every system can
        mine = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {mine[processors.get() % len(mine)]})


def _do_before(deadline: float, run: Run, n_bytes: int) -> dict[str, Any] | None:
    """The clock is that of the machine: all processes have the same."""
    return do(run, n_bytes) if time.monotonic() < deadline else None
