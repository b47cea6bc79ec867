"""A server for this machine alone: one address, one token, until Ctrl-C."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from sketchshift.errors import DataError
from sketchshift.report.connection import MOST_WAITING, Connection
from sketchshift.report.guard import Guard
from sketchshift.report.page import policy
from sketchshift.report.server import Explorer

__all__ = ["Address", "listening"]

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
