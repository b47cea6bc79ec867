"""Progress on stderr: rows or atoms so far, and the time left where the end is known.

Takes the library's calls, ``progress(n_rows, share_read)`` of a pass over data and
``progress(step)`` of a decoder; draws with rich. What is short shows nothing, and nothing is
left on the screen afterwards. Each context manager shows a line with a label while its body runs,
and yields None when nothing is shown: ``show=None`` shows it only where stderr is a terminal. Work
has often two phases; the label becomes ``then`` with the first rows, or with the last step.
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
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from sketchshift._text import visible
from sketchshift.decoders import Round, Step
from sketchshift.decoders.decoder import Progress as DecodingProgress

__all__ = ["KINDS", "counting_progress", "decoding_progress", "reading_progress"]

DELAY = 0.5
"""Seconds before anything is shown."""

WINDOW = 5.0
"""Seconds back that the time left is judged by: a plan or a cold disk stalls the first block."""

Advance = Callable[[int, float | None], None]
Count = Callable[[int, int, str], None]


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


class _Steps(TextColumn):
    """Atoms found, or fits made, of all."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("")
        what = task.fields.get("what", "steps")
        return Text(f"{int(task.completed):,} of {int(task.total):,} {what}")


class _TimeLeft(TimeRemainingColumn):
    """Time left, or nothing where the end is not known."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else super().render(task)


@contextmanager
def reading_progress(
    label: str, *, then: str | None = None, show: bool | None = None
) -> Iterator[Advance | None]:
    """Yields a function to call with the rows of a block and the share of the input read."""
    with _show_line(label, _Rows(), show) as line:
        if line is None:
            yield None
            return
        progress, task = line
        rows, reading = 0, visible(then or label)

        def advance(n_rows: int, share: float | None) -> None:
            nonlocal rows
            is_first, rows = rows == 0, rows + n_rows
            total = None if share is None else 1.0
            progress.update(
                task,
                completed=share,
                total=total,
                rows=rows,
                description=reading,
                refresh=is_first,
            )

        yield advance


@contextmanager
def decoding_progress(
    label: str, *, then: str | None = None, show: bool | None = None
) -> Iterator[DecodingProgress | None]:
    """Yields a function to call with each step of a decoder."""
    with counting_progress(label, then=then, show=show) as count:
        if count is None:
            yield None
            return

        def advance(step: Step | Round) -> None:
            count(step.index, step.total, "atoms" if isinstance(step, Step) else "fits")

        yield advance


@contextmanager
def counting_progress(
    label: str, *, then: str | None = None, show: bool | None = None
) -> Iterator[Count | None]:
    """Yields a function to call with the number done, the number of all, and what they are."""
    with _show_line(label, _Steps(), show) as line:
        if line is None:
            yield None
            return
        progress, task = line

        def count(n_done: int, n_all: int, what: str) -> None:
            if then is not None and n_done == n_all:
                progress.update(task, visible=False)  # rich forgets no total
                progress.add_task(visible(then), total=None, rows=0)
            else:
                is_first = n_done == 1
                progress.update(task, completed=n_done, total=n_all, what=what, refresh=is_first)

        yield count


@contextmanager
def _show_line(
    label: str, amount: ProgressColumn, show: bool | None
) -> Iterator[tuple[Progress, TaskID] | None]:
    """A line with one task, from ``DELAY`` seconds on; None when nothing is to be shown."""
    console = Console(stderr=True, force_terminal=True if show else None)
    if show is False or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), amount, _TimeLeft())
    progress = Progress(*columns, console=console, transient=True, speed_estimate_period=WINDOW)
    task = progress.add_task(visible(label), total=None, rows=0)
    timer = threading.Timer(DELAY, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield progress, task
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


KINDS = {"rows": reading_progress, "fits": decoding_progress, "items": counting_progress}
"""By what is counted: rows of a pass, fits or atoms of a decoder, anything one by one."""
