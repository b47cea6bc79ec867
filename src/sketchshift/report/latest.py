"""One computation at a time, and of those that a page waits for the latest only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sketchshift.errors import SketchshiftError

__all__ = ["Latest", "OutdatedError"]

MOST_PAGES = 64
"""Pages that are remembered, those that asked last."""


class OutdatedError(SketchshiftError):
    """A newer request made this one pointless."""


class Latest:
    """Turns, of which a page has one: its newer ones take over, those of other pages wait.

    A computation calls its check now and then; once the same page has asked anew, the check raises
    and the computation ends there. What is idle gives way to other pages too.
    """

    def __init__(self) -> None:
        self._asked = self._wanted = 0
        self._newest: OrderedDict[int, int] = OrderedDict()
        self._counting, self._computing = threading.Lock(), threading.Lock()

    def ask(self, page: int, *, idle: bool = False) -> Callable[[], None]:
        """Take a turn: those that this page asked for before are outdated from now on.

        Parameters
        ----------
        page : int
            Who asks. Turns of a page that was forgotten since are completed.
        idle : bool, default=False
            Whether nobody waits for the result.

        Returns
        -------
        check : callable
            Raises :class:`OutdatedError` once there is a newer turn of the page, and if it is
            idle, one of any page that is not.
        """
        with self._counting:
            self._asked += 1
            own = self._newest[page] = self._asked
            self._wanted = self._wanted if idle else own
            self._newest.move_to_end(page)
            if len(self._newest) > MOST_PAGES:
                self._newest.popitem(last=False)

        def check() -> None:
            if self._newest.get(page, own) != own or (idle and self._wanted > own):
                raise OutdatedError("a newer request came in. Ask again if it is still wanted.")

        return check

    @contextmanager
    def turn(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait until nobody else computes; outdated turns are not begun."""
        with self._computing:
            check()
            yield
