"""One computation at a time, and of those that wait the latest only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sketchshift.errors import SketchshiftError

__all__ = ["Latest", "OutdatedError"]


class OutdatedError(SketchshiftError):
    """A newer request made this one pointless."""


class Latest:
    """Turns that newer ones take over.

    A computation calls its check now and then; once somebody else has asked, the check raises
    and the computation ends there.
    """

    def __init__(self) -> None:
        self._newest = 0
        self._counting, self._computing = threading.Lock(), threading.Lock()

    def ask(self) -> Callable[[], None]:
        """Take a turn: those asked for before are outdated from now on.

        Returns
        -------
        check : callable
            Raises :class:`OutdatedError` once there is a newer turn.
        """
        with self._counting:
            self._newest += 1
            own = self._newest

        def check() -> None:
            if own != self._newest:
                raise OutdatedError("a newer request came in. Ask again if it is still wanted.")

        return check

    @contextmanager
    def turn(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait until nobody else computes; outdated turns are not begun."""
        with self._computing:
            check()
            yield
