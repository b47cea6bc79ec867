"""Ctrl-C on the command line: a quiet end with exit status 130, whenever it comes.

The first module that the package imports, since the others take a while to import, and what
they do with an exception in their midst is not ours. So a process of the command ends at once
while it imports or ends anyway; only while a command runs is there something to tidy up, and
the interruption is raised. A library that swallows it meets it again a moment later. Programs
that import the package are left alone.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # typing itself takes a while to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from sys import UnraisableHookArgs
    from types import FrameType

__all__ = [
    "STATUS",
    "end_as_interrupted",
    "handles_interruptions",
    "interruptible",
    "was_interrupted",
]

STATUS = 128 + signal.SIGINT
AGAIN_AFTER = 0.5  # seconds


class _State:
    is_handling = False
    is_running = False
    was_interrupted = False
    is_ending = False


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C while the body runs."""
    _State.is_running = True
    try:
        yield
    finally:
        _State.is_running = False
        _remind(0)


def handles_interruptions() -> bool:
    """Whether Ctrl-C is ours: libraries with handlers of their own should leave it to us."""
    return _State.is_handling


def was_interrupted() -> bool:
    """Whether Ctrl-C came, which extension modules turn into exceptions of other kinds."""
    return _State.was_interrupted


def end_as_interrupted() -> None:
    """Let the process end with ``STATUS``, once all others have tidied up.

    Python sometimes remembers an interruption that was caught, and ends the process by the signal
    (seen with 3.12, three times of 28).
    """
    _State.is_ending = _State.was_interrupted


def _end() -> None:
    if _State.is_ending:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(STATUS)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if not _State.is_running:
        os._exit(STATUS)
    _State.was_interrupted = True
    _remind(AGAIN_AFTER)
    if number == signal.SIGINT or not _is_tidying_up():
        raise KeyboardInterrupt


def _remind(after: float) -> None:
    """Interrupt again after some seconds; never, if these are 0. Windows cannot."""
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _interrupt:
        signal.setitimer(signal.ITIMER_REAL, after)


def _is_tidying_up() -> bool:
    """Whether an interruption is on its way through ``finally`` and ``except``."""
    handled = sys.exception()
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    return handled is not None


def _leave_if_lost(lost: UnraisableHookArgs) -> None:
    """End when an interruption came where exceptions are printed and forgotten."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        os._exit(STATUS)
    sys.__unraisablehook__(lost)


def _is_command() -> bool:
    """Whether this process is ``sketchshift ...`` or ``python -m sketchshift ...``."""
    name = "".join(sys.argv[:1]).replace("\\", "/").rpartition("/")[2]
    if name == "-m":  # the module is not found yet, and may be somebody else's
        return re.search(r" -\w*m ?sketchshift( |$)", " ".join(sys.orig_argv)) is not None
    return name in ("sketchshift", "sketchshift.exe", "sketchshift-script.py")


# who starts a command with nohup or in the background has Ctrl-C ignored, and it stays so
if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    _State.is_handling = True
    signal.signal(signal.SIGINT, _interrupt)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _interrupt)
    atexit.register(_end)  # the first one: it runs last
    sys.unraisablehook = _leave_if_lost
