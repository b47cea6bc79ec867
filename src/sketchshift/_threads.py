"""Pools of threads for iterators, and how many threads the products of matrices may use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import Any, TypeVar, cast

__all__ = ["one_blas_thread", "pool_of_threads"]

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def pool_of_threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool whose end waits for nobody: calls that have not begun never do.

    For generators. One that is left halfway is closed wherever the garbage collector comes upon it,
    even amid the start of another thread. To wait for threads there can be for ever.
    """
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _let_go() -> None:
    """Let any thread set the limit: threadpoolctl obeys only the thread that set it before."""
    from threadpoolctl import OpenBLASController

    if let_go := getattr(OpenBLASController, "clear_controlling_thread", None):  # since 3.8
        let_go(force=True)


class _Limit:
    """One thread for BLAS while anybody is inside.

    The limit is that of the process: the first who comes sets it, and the last who goes takes it
    back, whatever threads they are in. Looking for the libraries takes some milliseconds: it is
    done again only when modules were imported, which may have loaded another one.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside, self._limits = Lock(), 0, cast(Any, None)
        self._n_modules, self._blas = 0, cast(Any, None)

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                from threadpoolctl import ThreadpoolController

                if self._n_modules != len(sys.modules):
                    self._blas = ThreadpoolController().select(user_api="blas")
                    self._n_modules = len(sys.modules)
                _let_go()
                self._limits = self._blas.limit(limits=1)
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                _let_go()
                self._limits.restore_original_limits()
                _let_go()


_LIMIT = _Limit()


def one_blas_thread(function: F) -> F:
    """Let BLAS use one thread inside: faster for small products, and always the same."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with _LIMIT:
            return function(*args, **kwargs)

    return cast(F, limited)
