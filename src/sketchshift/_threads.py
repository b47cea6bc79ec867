"""How many threads the products of matrices may use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, TypeVar, cast

__all__ = ["one_blas_thread"]

F = TypeVar("F", bound=Callable[..., Any])


class _Limit:
    """One thread for BLAS while anybody is inside.

    The limit is that of the process: the first who comes sets it, and the last who goes takes it
    back, whatever threads they are in. Setting it takes some milliseconds.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside, self._limits = Lock(), 0, cast(Any, None)

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                from threadpoolctl import threadpool_limits

                self._limits = threadpool_limits(1)
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limits.restore_original_limits()


_LIMIT = _Limit()


def one_blas_thread(function: F) -> F:
    """Let BLAS use one thread inside: faster for small products, and always the same."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with _LIMIT:
            return function(*args, **kwargs)

    return cast(F, limited)
