"""Progress on stderr: rows, rows per second, time left where the end is known.

Takes the library's calls ``progress(n_rows, share_read)``; draws with rich. Short passes
show nothing, and nothing is left on the screen afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = ["reading_progress"]

DELAY = 0.5
"""Seconds before anything is shown."""

Advance = Callable[[int, float | None], None]


class _Rows(TextColumn):
    """Rows so far, rows per second, and the share read."""

    def __init__(self) -> None:
        super().__init__("")
        self._start = time.perf_counter()

    def render(self, task: Task) -> Text:
        rows = int(task.fields["rows"])
        if not rows:
            return Text("")
        rate = rows / (time.perf_counter() - self._start)
        share = "" if task.total is None else f"{task.percentage:3.0f} %  "
        return Text(f"{share}{rows:,} rows  {rate:,.0f} rows/s")


class _TimeLeft(TimeRemainingColumn):
    """Time left, or nothing where the end is not known."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else super().render(task)


@contextmanager
def reading_progress(label: str, *, show: bool | None = None) -> Iterator[Advance | None]:
    """A progress line on stderr while the body runs.

    Parameters
    ----------
    label : str
        What is being done.
    show : bool or None
        None shows it only where stderr is a terminal.

    Yields
    ------
    advance : callable or None
        To be called with the rows of a block and the share of the input read; None when
        nothing is shown.
    """
    console = Console(stderr=True, force_terminal=True if show else None)
    if show is False or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _Rows(), _TimeLeft())
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(label, total=None, rows=0)
    rows = 0

    def advance(n_rows: int, share: float | None) -> None:
        nonlocal rows
        rows += n_rows
        total = None if share is None else 1.0
        progress.update(task, completed=share, total=total, rows=rows)

    timer = threading.Timer(DELAY, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield advance
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
