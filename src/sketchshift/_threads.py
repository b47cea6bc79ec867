"""How many threads the products of matrices may use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Any, TypeVar, cast

__all__ = ["one_blas_thread"]

F = TypeVar("F", bound=Callable[..., Any])

_limits = local()  # whether this thread has set the limit already: it takes some milliseconds


def one_blas_thread(function: F) -> F:
    """Let BLAS use one thread inside: faster for small products, and always the same."""

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        if getattr(_limits, "is_set", False):
            return function(*args, **kwargs)
        from threadpoolctl import threadpool_limits

        _limits.is_set = True
        try:
            with threadpool_limits(1):
                return function(*args, **kwargs)
        finally:
            _limits.is_set = False

    return cast(F, limited)
