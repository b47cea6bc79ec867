"""Progress: rows or steps so far, and the time left where the end is known.

Takes the library's calls, ``progress(n_rows, share_read)`` of a pass over data and
``progress(step)`` of a decoder. Commands and functions show them in a terminal, on stderr with
rich; functions also in a notebook, below the cell. What is short shows nothing, and nothing is left
on the screen afterwards.

Each context manager shows a line with a label while its body runs, and yields None when nothing is
shown. Work has often two phases; the label becomes ``then`` with the first rows, or with the last
step.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

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

from sketchshift._html import progress_line
from sketchshift._text import visible

__all__ = [
    "KINDS",
    "notebook_progress",
    "show_progress",
    "terminal_progress",
]

DELAY, DELAY_OF_FUNCTIONS = 0.5, 2.0
"""Seconds before anything is shown, of commands and of functions."""

EVERY = 0.2
"""Seconds between two pictures in a notebook."""

WINDOW = 5.0
"""Seconds back that the time left is judged by: a plan or a cold disk stalls the first block."""


class _TimeLeft(TimeRemainingColumn):
    """Time left, or nothing where the end is not known."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else super().render(task)


@contextmanager
def terminal_progress(
    kind: str,
    label: str,
    *,
    then: str | None = None,
    show: bool | None = None,
    delay: float | None = None,
) -> Iterator[Callable[..., None] | None]:
    """Show a line on stderr from ``delay`` seconds on; None where stderr is no terminal.

    Parameters
    ----------
    kind : {"rows", "fits", "items"}
        What the body calls: with the rows of a block and the share of the input read; with a step
        of a decoder; or with the number done, the number of all, and their name.
    label, then : str
        What is being done, and from the first rows on or after the last step.
    show : bool or None
        None shows the line only where stderr is a terminal.
    delay : float or None
        None waits as long as commands do.
    """
    console = Console(stderr=True, force_terminal=True if show else None)
    if show is False or not console.is_terminal:
        yield None
        return
    texts = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[amount]}")
    columns = SpinnerColumn(), *texts, _TimeLeft()
    progress = Progress(*columns, console=console, transient=True, speed_estimate_period=WINDOW)
    task = progress.add_task(visible(label), total=None, amount="")
    start, rows = time.perf_counter(), 0

    def advance(n_rows: int, share: float | None) -> None:
        nonlocal rows
        is_first, rows = rows == 0, rows + n_rows
        percent = "" if share is None else f"{100 * share:3.0f} %  "
        rate = rows / (time.perf_counter() - start)
        progress.update(
            task,
            completed=share,
            total=None if share is None else 1.0,
            amount=f"{percent}{rows:,} rows  {rate:,.0f} rows/s",
            description=visible(then or label),
            refresh=is_first,
        )

    def count(n_done: int, n_all: int, what: str) -> None:
        if then is not None and n_done == n_all:
            progress.update(task, visible=False)  # rich forgets no total
            progress.add_task(visible(then), total=None, amount="")
        else:
            amount = f"{n_done:,} of {n_all:,} {what}"
            progress.update(task, completed=n_done, total=n_all, amount=amount, refresh=n_done == 1)

    def step(done: Any) -> None:
        count(done.index, done.total, _what(done))

    calls: dict[str, Callable[..., None]] = {"rows": advance, "fits": step, "items": count}
    timer = threading.Timer(DELAY if delay is None else delay, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield calls[kind]
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def _what(step: Any) -> str:
    """What a decoder counts: Gaussians fitted at once, or one place after the other."""
    return "fits" if hasattr(step, "n_atoms") else "atoms"


KINDS = {kind: partial(terminal_progress, kind) for kind in ("rows", "fits", "items")}
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
