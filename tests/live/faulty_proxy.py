"""A proxy in front of an HTTP server that breaks some of the answers, by a seed.

Run as a program: ``python faulty_proxy.py UPSTREAM`` prints its port. It counts what it sends, and
takes orders at ``/__proxy__``: ``?rate=0.2&seed=1&kinds=slow,cut`` sets which share of the requests
fail and how, and ``deny=TEXT`` which paths are forbidden by their ends; the answer are the counts
since the last order, as JSON.

slow   503 SlowDown, as S3 throttles
many   429 Too Many Requests, as Google throttles
reset  the connection is reset before a byte of the answer
cut    a part of the body, then the connection ends: fewer bytes than Content-Length says
short  a part of the body, whose Content-Length says just that
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KINDS = ("slow", "many", "reset", "cut", "short")
THROTTLED = {"slow": 503, "many": 429}
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
FAULT_S = 0.005  # before one, as over a network: Google's library pauses longer after quick ones
WRITTEN_BYTES = 2**16  # at a time; the kernel may hold a little more, and not megabytes
HOP = ("connection", "transfer-encoding", "keep-alive", "server", "content-length")


class Proxy(ThreadingHTTPServer):
    """Faults to come, and counts of what was."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, upstream, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.upstream, self.lock = upstream, threading.Lock()
        self.order({})

    def order(self, said):
        self.rate = float(said.get("rate", ["0"])[0])
        self.kinds = said.get("kinds", [",".join(KINDS)])[0].split(",")
        self.denied = said.get("deny", [None])[0]
        self.random = random.Random(int(said.get("seed", ["0"])[0]))
        self.counts = {"requests": 0, "body_bytes": 0, **dict.fromkeys(KINDS, 0)}

    def fault(self):
        with self.lock:
            self.counts["requests"] += 1
            if self.random.random() >= self.rate:
                return None
            kind = self.random.choice(self.kinds)
            self.counts[kind] += 1
            return kind

    def handle_error(self, request, client_address):
        """Clients that give up are no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WRITTEN_BYTES)
        super().setup()

    def log_message(self, *_):
        pass

    def do(self):
        where = urlsplit(self.path)
        if where.path == "/__proxy__":
            with self.server.lock:
                text = json.dumps(self.server.counts).encode()
                self.server.order(parse_qs(where.query))
            self.answer(200, [], text)
            return
        sent = self.read_body()
        kind = self.server.fault()
        if kind is not None:
            time.sleep(FAULT_S)
        if kind == "reset":
            self.reset()
            return
        if kind in THROTTLED:
            self.answer(THROTTLED[kind], [("Content-Type", "application/xml")], SLOW_DOWN)
            return
        if self.server.denied and self.path.endswith(self.server.denied):
            self.answer(403, [], b"")
            return
        self.forward(sent, kind)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def forward(self, sent, kind):
        status, headers, body, length = self.fetch(sent)
        if kind in ("cut", "short") and len(body) < 2:  # nothing to take away from
            self.reset()
            return
        part = body[: len(body) // 2] if kind in ("cut", "short") else body
        self.answer(status, headers, part, length or len(body if kind == "cut" else part))
        if kind == "cut":
            self.reset()

    def fetch(self, sent):
        """What the upstream answers: status, headers, body, and of a HEAD the length."""
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=60)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in (*HOP, "expect"):
                upstream.putheader(name, value)
        upstream.putheader("Content-Length", str(len(sent)))
        upstream.endheaders(sent)
        answer = upstream.getresponse()
        body = answer.read()
        headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in HOP]
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        upstream.close()
        return answer.status, headers, body, length

    def answer(self, status, headers, body, length=None):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            for start in range(0, len(body), WRITTEN_BYTES):
                part = body[start : start + WRITTEN_BYTES]
                self.wfile.write(part)
                with self.server.lock:
                    self.server.counts["body_bytes"] += len(part) if self.command == "GET" else 0

    def reset(self):
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


if __name__ == "__main__":
    proxy = Proxy(sys.argv[1])
    print(proxy.server_address[1], flush=True)  # noqa: T201
    proxy.serve_forever()
