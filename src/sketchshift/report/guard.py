"""Who may talk to the explorer: the page it was made for, and nobody else.

An ASGI application around another one. A page from elsewhere in the same browser can send
requests to this machine, under a name of its own that it lets point here. So a request must
name the very host and port, carry the token of this run in its path, and be small; answers
allow no other origin to read them.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

__all__ = ["Guard"]

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
