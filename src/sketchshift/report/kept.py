"""Results that are kept for the next time, as long as they take little memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Kept"]


class Kept:
    """What was computed before, by key; what was not asked for longest is forgotten first.

    Parameters
    ----------
    most_bytes : int
        Of all results but the latest.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._results: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        """The result for a key, made if it is not there.

        Parameters
        ----------
        key : hashable
            What was asked for.
        make : callable
            Gives the result and its size in bytes.
        """
        if key not in self._results:
            self._results[key] = make()
        self._results.move_to_end(key)
        while len(self) > 1 and sum(size for _, size in self._results.values()) > self._most:
            self._results.popitem(last=False)
        return self._results[key][0]
