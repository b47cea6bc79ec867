"""The explorer talks to its own page and to nobody else: one test for each promise."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from contextlib import ExitStack, suppress
from urllib.parse import quote, urlsplit

import pytest

from sketchshift.errors import DataError
from sketchshift.view.server import MOST_WAITING, listening


class Client:
    """Requests to a running explorer, as any program on this machine can send them."""

    def __init__(self, address) -> None:
        parts = urlsplit(address.url)
        self.host, self.port, self.root = parts.hostname, parts.port, parts.path

    def get(self, path: str | None = None, method: str = "GET", body=None, **headers: str):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        target = self.root if path is None else path
        connection.request(method, target, body=body, headers=named)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def ask(self, what: str, **headers: str):
        return self.get(self.root + what, **headers)


@pytest.fixture
def client(address) -> Client:
    return Client(address)


def test_the_page_is_served_under_its_own_address(client):
    for host in (f"127.0.0.1:{client.port}", f"localhost:{client.port}"):
        assert client.get(Host=host).status == 200


def test_the_server_listens_on_the_loopback_interface_alone(address):
    assert address.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((_own_address(), _port(address)), 5)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", ""]
)
def test_other_host_headers_are_refused(client, host):
    """A page elsewhere whose name was made to point here (DNS rebinding)."""
    answer = client.get(Host=host.format(port=client.port))

    assert answer.status in (400, 403)
    assert "sketches.parquet" not in answer.text


def test_without_the_token_of_this_run_nothing_is_answered(client, explorer):
    nearly = client.root[:-2] + ("B/" if client.root[-2] == "A" else "A/")
    for path in ("/", "/decode?k=2", "/x/decode?k=2", client.root[:-1], nearly):
        answer = client.get(path)
        assert answer.status == 403
        assert "sketches.parquet" not in answer.text
    with listening(explorer) as other:
        assert urlsplit(other.url).path != client.root
        assert len(client.root.strip("/")) >= 32


def test_no_other_origin_may_read_an_answer(client):
    for method in ("GET", "OPTIONS"):
        answer = client.get(method=method, Origin="http://evil.example")
        assert not [name for name, _ in answer.getheaders() if "access-control" in name.lower()]
        assert answer.getheader("cross-origin-resource-policy") == "same-origin"
    assert client.get(method="OPTIONS", Origin="http://evil.example").status == 405


def test_no_path_is_taken_from_a_request(client, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("top secret")

    for path in (str(secret), "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "static/base.js"):
        answer = client.ask(path.lstrip("/"))
        assert answer.status == 404
        assert "secret" not in answer.text
        assert "root:" not in answer.text
    for query in ("decode?k=2&file=/etc/passwd", "decode?k=2&where=1%3D1", "decode?k=2&choice=a"):
        assert client.ask(query).status == 400


@pytest.mark.parametrize("k", ["0", "6", "-1", "1e3", "1000000", "1_0", "٣", "9" * 30, ""])
def test_k_has_a_limit(client, k):
    answer = client.ask(f"decode?k={quote(k)}")

    assert answer.status == 400
    assert json.loads(answer.text)["error"] == "k must be a whole number from 1 to 5."


def test_choices_have_a_limit(client, explorer):
    n = len(explorer.file.choices)

    assert client.ask(f"decode?k=2&choice={n - 1}").status == 200
    assert client.ask(f"decode?k=2&choice={n}").status == 400


@pytest.mark.parametrize("page", ["-1", "1.5", "1000000000", "a", ""])
def test_a_page_is_a_small_number_too(client, page):
    assert client.ask("decode?k=2&page=999999999").status == 200
    assert client.ask(f"decode?k=2&page={page}").status == 400


def test_long_requests_and_bodies_are_refused(client):
    assert client.ask("decode?k=" + "1" * 300).status == 414
    assert client.get(method="POST", body=b"x" * 10).status == 405
    assert client.get(body=b"x" * 10).status == 413
    assert client.get(X_Long="x" * 20_000).status == 431


def test_every_answer_carries_the_policy(client):
    for answer in (client.get(), client.ask("decode?k=2"), client.get("/")):
        policy = answer.getheader("content-security-policy")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.getheader("referrer-policy") == "no-referrer"
        assert answer.getheader("x-content-type-options") == "nosniff"
        assert answer.getheader("cache-control") == "no-store"


def test_a_port_that_is_taken_is_named(address, explorer):
    with (
        pytest.raises(DataError, match=r"cannot listen on port \d+: Address already in use"),
        listening(explorer, _port(address)),
    ):
        pass


def _port(address) -> int:
    return urlsplit(address.url).port


def _own_address() -> str:
    """Another address of this machine than 127.0.0.1."""
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        found = "127.0.0.1"
    return "127.0.0.2" if found == "127.0.0.1" else found


def _hold(address, first: bytes) -> socket.socket:
    """A connection that has said this much and says no more."""
    held = socket.create_connection(("127.0.0.1", _port(address)), 30)
    held.sendall(first)
    return held


def _is_closed(held: socket.socket, seconds: float) -> bool:
    """Whether the server hangs up within some seconds, whatever it says before."""
    held.settimeout(seconds)
    try:
        while held.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.fixture
def hasty(monkeypatch):
    """A server that waits for half a second."""
    monkeypatch.setattr("sketchshift.view.server.PATIENCE", 0.5)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("first", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_whole_head_is_closed(address, first):
    with _hold(address, first) as held:
        assert _is_closed(held, 5.0)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("is_second", [False, True], ids=["first request", "second request"])
def test_a_head_that_comes_drop_by_drop_is_not_waited_for(address, client, is_second):
    """Every byte is in time, and the whole is not."""
    whole = f"GET {client.root} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n".encode()
    begin = time.monotonic()
    with _hold(address, whole + b"\r\n" if is_second else b"") as held, suppress(ConnectionError):
        while time.monotonic() - begin < 10.0:
            held.sendall(b"G" if is_second else b"x")
            time.sleep(0.05)

    assert time.monotonic() - begin < 5.0


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("size", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
def test_a_body_that_never_ends_is_not_waited_for(address, client, size):
    head = f"POST {client.root} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n{size}\r\n\r\n"
    begin = time.monotonic()
    with _hold(address, head.encode()) as held, suppress(ConnectionError):
        while time.monotonic() - begin < 10.0:
            held.sendall(b"1")
            time.sleep(0.05)

    assert time.monotonic() - begin < 5.0


@pytest.mark.usefixtures("hasty")
def test_an_answer_that_nobody_reads_is_not_kept(address, client):
    """Many requests in a row, so that the answers fill all buffers on the way."""
    one = f"GET {client.root} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode()
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    held.connect(("127.0.0.1", client.port))
    with held:
        held.sendall(one * 100)
        held.recv(1)
        deadline = time.monotonic() + 10.0
        while address.server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.05)

        assert not address.server.server_state.connections


def test_two_hundred_silent_connections_keep_nobody_from_the_page(address, client):
    starts = [b"", b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n"]
    with ExitStack() as held:
        for i in range(200):
            held.enter_context(_hold(address, starts[i % 3]))
            if i % 20 == 0:
                assert client.get().status == 200
        assert [client.ask("decode?k=2").status for _ in range(20)] == [200] * 20
        assert len(address.server.server_state.connections) <= MOST_WAITING + 1


@pytest.mark.usefixtures("hasty")
def test_connections_in_use_are_kept_and_slow_answers_waited_for(client, explorer):
    """Who has asked is not hurried: only the server keeps the other side waiting."""
    decode, connection = explorer.decode, http.client.HTTPConnection("127.0.0.1", client.port)

    def slowly(wish, check):
        time.sleep(1.5)
        return decode(wish, check)

    explorer.decode = slowly
    try:
        with listening(explorer) as other, other.in_background():
            assert Client(other).ask("decode?k=2").status == 200
    finally:
        del explorer.decode
    for _ in range(4):
        connection.request("GET", client.root)
        assert connection.getresponse().read()
        time.sleep(0.3)
    connection.close()


def test_more_requests_at_once_than_can_be_worked_on_are_sent_away():
    from sketchshift.view.server import MOST_AT_ONCE, Guard

    async def run() -> list[int]:
        gate, statuses = asyncio.Event(), []

        async def application(scope, receive, send):
            await gate.wait()
            await send({"type": "http.response.start", "status": 200})

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        guard = Guard(application, "t", ["h"], "p")
        scope = {"type": "http", "path": "/t/", "method": "GET", "query_string": b""}
        asked = {**scope, "headers": [(b"host", b"h")]}
        tasks = [asyncio.create_task(guard(asked, None, send)) for _ in range(MOST_AT_ONCE + 3)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)
        return statuses

    statuses = asyncio.run(run())

    assert statuses.count(503) == 3
    assert statuses.count(200) == len(statuses) - 3
