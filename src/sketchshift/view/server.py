"""A server for this machine alone: one address, one token, until Ctrl-C.

Who may talk to it is the page it was made for, and nobody else. A page from elsewhere in the same
browser can send requests to this machine, under a name of its own that it lets point here. So a
request must name the very host and port, carry the token of this run in its path, and be small;
answers allow no other origin to read them.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sketchshift.errors import DataError
from sketchshift.view.explorer import Explorer
from sketchshift.view.page import policy

__all__ = ["MOST_WAITING", "PATIENCE", "Address", "Connection", "Guard", "listening"]

# A connection that does not let the other side keep the server waiting.
#
# Uvicorn waits for ever for the head of a first request, and for every later one that comes byte
# by byte. Here whoever has not said all of a request within ``PATIENCE`` seconds, or does not
# read the answer, is hung up on. Where very many wait at a time, those who came first go at once:
# so there is always room for one who asks.

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


# What a request must have, looked at before the application sees it.

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_QUERY, MOST_HEADERS = 256, 16_384
"""Bytes of a query, where five numbers need far fewer, and of all headers."""


MOST_AT_ONCE = 64
"""Requests that are worked on."""


class Guard:
    """Refuses what does not come from the page, before the application sees it.

    Parameters
    ----------
    application : ASGI application
        Sees paths without the token.
    token : str
        Of this run.
    hosts : iterable of str
        Values of the Host header that are meant for this server, with their port.
    policy : str
        The Content-Security-Policy of all answers.
    """

    def __init__(
        self, application: Application, token: str, hosts: Iterable[str], policy: str
    ) -> None:
        self._application, self._prefix = application, f"/{token}/".encode()
        self._hosts = {host.encode() for host in hosts}
        self._n_running = 0
        self._headers = [
            (b"content-security-policy", f"{policy}; frame-ancestors 'none'".encode()),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request of ASGI."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self._headers]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(guarded, *refusal)
            return
        path = scope["path"][len(self._prefix) - 1 :]
        self._n_running += 1
        try:
            await self._application({**scope, "path": path, "raw_path": None}, receive, guarded)
        finally:
            self._n_running -= 1

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 403, "this server answers to its own address only."
        path = scope["path"].encode()
        if not secrets.compare_digest(path[: len(self._prefix)], self._prefix):
            return 403, "the address lacks the token of this run. Open the one that was printed."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "this server is only asked, with GET."
        if any(name in (b"content-length", b"transfer-encoding") for name, _ in headers):
            return 413, "a request here has no body."
        if len(scope["query_string"]) > MOST_QUERY:
            return 414, f"a query here has at most {MOST_QUERY} bytes."
        if sum(len(name) + len(value) for name, value in headers) > MOST_HEADERS:
            return 431, f"the headers of a request have at most {MOST_HEADERS} bytes here."
        if self._n_running >= MOST_AT_ONCE:
            return 503, f"{MOST_AT_ONCE} requests are being worked on. Ask again later."
        return None


async def _refuse(send: Send, status: int, sentence: str) -> None:
    # closed, so that nobody goes on to send what is not wanted
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


HOST = "127.0.0.1"
MOST_HEAD = 65_536  # bytes of the head of a request that are waited for


@dataclass(frozen=True, eq=False)
class Address:
    """Where the explorer listens.

    Attributes
    ----------
    url : str
        With the token of this run: who has it may ask.
    server : uvicorn.Server
        Not running yet.
    socket : socket
        Bound already, so that the port is known.
    """

    url: str
    server: uvicorn.Server
    socket: socket.socket

    def run(self, *, browser: bool) -> None:
        """Serve until Ctrl-C, or until somebody sets ``server.should_exit``.

        Parameters
        ----------
        browser : bool
            Whether to open the page.
        """
        if browser:
            threading.Thread(target=webbrowser.open, args=(self.url,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            self.server.run(sockets=[self.socket])

    @contextmanager
    def in_background(self) -> Iterator[None]:
        """Serve while the body runs."""
        thread = threading.Thread(target=self.run, kwargs={"browser": False}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.server.should_exit = True
            thread.join()


@contextmanager
def listening(explorer: Explorer, port: int = 0) -> Iterator[Address]:
    """Bind a port of this machine that other machines cannot reach.

    Parameters
    ----------
    explorer : Explorer
        What to answer.
    port : int, default=0
        0 takes any that is free.

    Yields
    ------
    address : Address
        Connections wait until it runs.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, port))
            bound.listen(MOST_WAITING)
        except OSError as error:
            msg = f"cannot listen on port {port}: {error.strerror}. Leave --port out."
            raise DataError(msg) from error
        own, token = bound.getsockname()[1], secrets.token_urlsafe(24)
        hosts = (f"{HOST}:{own}", f"localhost:{own}")
        guard = Guard(explorer.application(), token, hosts, policy(live=True))
        config = uvicorn.Config(
            guard,
            http=Connection,
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=MOST_HEAD,
            timeout_graceful_shutdown=1,
        )
        yield Address(f"http://{HOST}:{own}/{token}/", uvicorn.Server(config), bound)
