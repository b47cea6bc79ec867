"""A connection that does not let the other side keep the server waiting.

Uvicorn waits for ever for the head of a first request, and for every later one that comes byte
by byte. Here whoever has not said all of a request within ``PATIENCE`` seconds, or does not
read the answer, is hung up on. Where very many wait at a time, those who came first go at once:
so there is always room for one who asks.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["MOST_WAITING", "PATIENCE", "Connection"]

PATIENCE = 10.0
"""Seconds for the head of a request, and for any part of an answer to be read."""

MOST_WAITING = 64
"""Connections that may be silent at a time."""


class Connection(H11Protocol):
    """A connection of uvicorn with a deadline."""

    _deadline: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._wait()
        waiting = [
            other
            for other in self.connections
            if _is_waiting(other) and not other.transport.is_closing()
        ]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=_since).transport.abort()

    def on_response_complete(self) -> None:
        """Begin to wait for the next one, and for the answer to be read."""
        self._wait()  # first: another request may have come already
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._unread = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(PATIENCE, self._hang_up)

    def _hang_up(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread < self._unread:
            self._wait()  # the answer is being read, if slowly
        elif unread or _is_waiting(self):
            self.transport.abort()


def _is_waiting(connection: Any) -> bool:
    """Whether it is the other side's turn: no request is being answered."""
    return connection.cycle is None or connection.cycle.response_complete


def _since(connection: Any) -> float:
    """When it began to be silent."""
    return float(connection._deadline.when())
