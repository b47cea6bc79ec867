"""A server for this machine alone: one address, one token, until Ctrl-C.

Who may talk to it is the page it was made for, and nobody else. A page from elsewhere in the same
browser can send requests to this machine, under a name of its own that it lets point here. So a
request must name the very host and port and carry the token of this run in its path; answers
allow no other origin to read them.
"""

from __future__ import annotations

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

from sketchshift.errors import DataError
from sketchshift.view.explorer import Explorer
from sketchshift.view.page import policy

__all__ = ["Address", "Guard", "listening"]

# What a request must have, looked at before the application sees it.

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


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
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await guarded({"type": "http.response.start", "status": 403, "headers": headers})
            await guarded({"type": "http.response.body", "body": f"{refusal}\n".encode()})
            return
        path = scope["path"][len(self._prefix) - 1 :]
        await self._application({**scope, "path": path, "raw_path": None}, receive, guarded)

    def _refusal(self, scope: Message) -> str | None:
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "this server answers to its own address only."
        path = scope["path"].encode()
        if not secrets.compare_digest(path[: len(self._prefix)], self._prefix):
            return "the address lacks the token of this run. Open the one that was printed."
        return None


HOST = "127.0.0.1"
MOST_AT_ONCE = 64  # connections


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
            bound.listen(MOST_AT_ONCE)
        except OSError as error:
            msg = f"cannot listen on port {port}: {error.strerror}. Leave --port out."
            raise DataError(msg) from error
        own, token = bound.getsockname()[1], secrets.token_urlsafe(24)
        hosts = (f"{HOST}:{own}", f"localhost:{own}")
        guard = Guard(explorer.application(), token, hosts, policy(live=True))
        config = uvicorn.Config(
            guard,
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_AT_ONCE,
            timeout_graceful_shutdown=1,
        )
        yield Address(f"http://{HOST}:{own}/{token}/", uvicorn.Server(config), bound)
