"""Progress: rows or steps so far, and the time left where the end is known.

Takes the library's calls, ``progress(n_rows, share_read)`` of a pass over data and
``progress(step)`` of a decoder. Commands and functions show them in a terminal, on stderr with
rich; functions also in a notebook, below the cell. What is short shows nothing, and nothing is left
on the screen afterwards.

Each context manager shows a line with a label while its body runs, and yields None when nothing is
shown: ``show=None`` shows it only where stderr is a terminal. Work has often two phases; the label
becomes ``then`` with the first rows, or with the last step.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

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

from sketchshift._html import progress_line
from sketchshift._text import visible

__all__ = [
    "KINDS",
    "counting_progress",
    "decoding_progress",
    "notebook_progress",
    "reading_progress",
    "show_progress",
]

DELAY, DELAY_OF_FUNCTIONS = 0.5, 2.0
"""Seconds before anything is shown, of commands and of functions."""

EVERY = 0.2
"""Seconds between two pictures in a notebook."""

WINDOW = 5.0
"""Seconds back that the time left is judged by: a plan or a cold disk stalls the first block."""

Advance = Callable[[int, float | None], None]
Count = Callable[[int, int, str], None]
Steps = Callable[[Any], None]


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
    label: str, *, then: str | None = None, show: bool | None = None, delay: float | None = None
) -> Iterator[Advance | None]:
    """Yields a function to call with the rows of a block and the share of the input read."""
    with _show_line(label, _Rows(), show, delay) as line:
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
    label: str, *, then: str | None = None, show: bool | None = None, delay: float | None = None
) -> Iterator[Steps | None]:
    """Yields a function to call with each step of a decoder."""
    with counting_progress(label, then=then, show=show, delay=delay) as count:
        if count is None:
            yield None
            return

        def advance(step: Any) -> None:
            count(step.index, step.total, _what(step))

        yield advance


@contextmanager
def counting_progress(
    label: str, *, then: str | None = None, show: bool | None = None, delay: float | None = None
) -> Iterator[Count | None]:
    """Yields a function to call with the number done, the number of all, and what they are."""
    with _show_line(label, _Steps(), show, delay) as line:
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
    label: str, amount: ProgressColumn, show: bool | None, delay: float | None
) -> Iterator[tuple[Progress, TaskID] | None]:
    """A line with one task, from ``delay`` seconds on; None when nothing is to be shown."""
    console = Console(stderr=True, force_terminal=True if show else None)
    if show is False or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), amount, _TimeLeft())
    progress = Progress(*columns, console=console, transient=True, speed_estimate_period=WINDOW)
    task = progress.add_task(visible(label), total=None, rows=0)
    timer = threading.Timer(DELAY if delay is None else delay, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield progress, task
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def _what(step: Any) -> str:
    """What a decoder counts: Gaussians fitted at once, or one place after the other."""
    return "fits" if hasattr(step, "n_atoms") else "atoms"


KINDS = {"rows": reading_progress, "fits": decoding_progress, "items": counting_progress}
"""By what is counted: rows of a pass, fits or atoms of a decoder, anything one by one."""


# For functions: in a terminal or in a notebook, whichever there is.


def show_progress(kind: str, label: str) -> AbstractContextManager[Callable[..., None] | None]:
    """A bar while the body runs, if that takes more than two seconds.

    Parameters
    ----------
    kind : {"rows", "fits"}
        What is counted, and so what the body calls.
    label : str
        What is being done.

    Returns
    -------
    context : context manager
        Yields what the body calls with each step; None where nobody would see a bar.
    """
    if _is_notebook():
        return notebook_progress(kind, label)
    return KINDS[kind](label, delay=DELAY_OF_FUNCTIONS)


def _is_notebook() -> bool:
    """Whether what is displayed goes to a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def notebook_progress(kind: str, label: str) -> Iterator[Callable[..., None]]:
    """Yields what shows a bar below the cell, in place, until the body ends."""
    ipython: Any = import_module("IPython.display")
    start, last, rows, handle = time.perf_counter(), 0.0, 0, None

    def draw(share: float | None, text: str) -> None:
        nonlocal last, handle
        now = time.perf_counter()
        if now - start < DELAY_OF_FUNCTIONS or now - last < EVERY:
            return
        last = now
        left = "" if not share else f", {(now - start) * (1.0 - share) / share:,.0f} s left"
        picture = ipython.HTML(progress_line(label, share, text + left))
        if handle is None:
            handle = ipython.display(picture, display_id=True)
        else:
            handle.update(picture)

    def advance(n_rows: int, share: float | None) -> None:
        nonlocal rows
        rows += n_rows
        draw(share, f"{rows:,} rows")

    def step(done: Any) -> None:
        draw(done.index / done.total, f"{done.index:,} of {done.total:,} {_what(done)}")

    try:
        yield advance if kind == "rows" else step
    finally:
        if handle is not None:
            handle.update(ipython.HTML(""))
