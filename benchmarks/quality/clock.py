"""How long the runs that are left will take, from those that are done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from quality.runs import Run


class Clock:
    """Mean seconds of runs of the same kind; the more alike, the better."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._sums: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for row in rows:
            self.add(row["method"], row["dataset"], row["multiple"], row["total_seconds"])

    def add(self, method: str, dataset: str, multiple: int | None, seconds: float) -> None:
        """A run is done."""
        for kind in _kinds(method, dataset, multiple):
            self._sums[kind][0] += seconds
            self._sums[kind][1] += 1.0

    def expected(self, runs: Iterable[Run]) -> float:
        """Seconds for all of these; one second for a run of a kind never seen."""
        return sum(self._expected(run) for run in runs)

    def _expected(self, run: Run) -> float:
        for kind in _kinds(run.method, run.dataset, run.multiple):
            if kind in self._sums:
                total, count = self._sums[kind]
                return total / count
        return 1.0


def _kinds(method: str, dataset: str, multiple: int | None) -> Iterator[tuple[Any, ...]]:
    yield method, dataset, multiple
    yield method, dataset
    yield (method,)


def in_words(seconds: float) -> str:
    """A duration, short."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
