"""Files over a real connection to a server of ours, which fails in every way that servers do."""

from __future__ import annotations

import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from sketchshift.data import public as module
from sketchshift.data.public import RemoteFile, download
from sketchshift.errors import DataError

BYTES = np.random.default_rng(0).bytes(300_000)
DIGEST = hashlib.sha256(BYTES).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves ``BYTES`` under any name; what goes wrong is a list, one fault a request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[str | int] = []
        self.asked: list[str | None] = []
        self.has_ranges = True
        self.says_length = True

    def file(self, **options) -> RemoteFile:
        address = f"http://127.0.0.1:{self.server_port}/file.bin"
        pins = {"size": len(BYTES), "sha256": DIGEST} | options
        return RemoteFile("file.bin", pins.pop("urls", (address,)), **pins)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        fault = self.server.faults.pop(0) if self.server.faults else None
        if isinstance(fault, int):
            self.send_error(fault)
            return
        if fault == "elsewhere":
            self.send_response(302)
            self.send_header("Location", "/other.bin")
            self.end_headers()
            return
        start = int(asked[6:-1]) if asked and self.server.has_ranges else 0
        if start >= len(BYTES):
            self.send_error(416)
            return
        body = BYTES[start:]
        if fault == "other bytes":
            body = bytes(len(body))
        self.send_response(206 if start else 200)
        if start:
            shift = 7 if fault == "another part" else 0
            place = f"bytes {start - shift}-{len(BYTES) - 1}/{len(BYTES)}"
            self.send_header("Content-Range", place)
        if self.server.says_length:
            length = 12 if fault == "another file" else len(body)
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2 if fault in ("reset", "truncated") else None])
        if fault == "reset":
            # linger 0: the connection is reset and not closed
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.wfile.flush()
            self.connection.close()

    def log_message(self, *words) -> None:
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetched(server, tmp_path):
    """Fetches the server's file; waits between tries are noted and not waited."""
    waits = []

    def fetched(**options) -> bytes:
        path = download(server.file(**options), tmp_path, wait=waits.append)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["file.bin"]
        return path.read_bytes()

    fetched.waits = waits
    return fetched


def test_a_file_is_fetched_once(server, fetched):
    assert fetched() == BYTES
    assert fetched() == BYTES
    assert server.asked == [None]


@pytest.mark.parametrize("fault", ["reset", "truncated"])
@pytest.mark.parametrize("says_length", [True, False])
def test_a_connection_that_breaks_is_taken_up_where_it_broke(server, fetched, fault, says_length):
    """A reset may take bytes along that were on their way: the second request tells from where."""
    server.faults, server.says_length = [fault], says_length

    assert fetched() == BYTES
    assert len(server.asked) == 2
    assert fault == "reset" or server.asked[1] == f"bytes={len(BYTES) // 2}-"


def test_a_second_call_goes_on_where_the_first_one_stopped(server, fetched, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BYTES[:123_456])

    assert fetched() == BYTES
    assert server.asked == ["bytes=123456-"]


def test_a_server_without_ranges_sends_it_all_again(server, fetched):
    server.has_ranges, server.faults = False, ["truncated"]

    assert fetched() == BYTES


def test_a_server_that_sends_us_elsewhere_is_followed_in_the_middle_too(server, fetched, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BYTES[:1000])
    server.faults = ["elsewhere"]

    assert fetched() == BYTES
    assert server.asked == ["bytes=1000-"] * 2


def test_progress_is_told_in_bytes(server, tmp_path):
    told = []
    (tmp_path / "file.bin.part").write_bytes(BYTES[:200_000])

    download(server.file(), tmp_path, progress=lambda *place: told.append(place))

    assert told[0][0] > 200_000
    assert told[-1] == (len(BYTES), len(BYTES))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_busy_server_is_asked_again_after_a_while(server, fetched, status):
    server.faults = [status, status]

    assert fetched() == BYTES
    assert fetched.waits == [1.0, 3.0]


def test_a_server_that_stays_busy_is_given_up_with_its_answer(server, fetched):
    server.faults = [503] * 9

    with pytest.raises(DataError, match=r"'file\.bin': 127\.0\.0\.1:\d+ answers 503 \(Service Un"):
        fetched()
    assert len(server.asked) == 4


def test_a_missing_file_is_not_asked_for_again(server, fetched):
    server.faults = [404]

    with pytest.raises(DataError, match=r"127\.0\.0\.1:\d+ answers 404 \(Not Found\)\.$"):
        fetched()
    assert len(server.asked) == 1


def test_the_next_place_is_tried(server, fetched):
    server.faults = [404]
    url = server.file().urls[0]

    assert fetched(urls=(url, url)) == BYTES


def test_other_bytes_than_those_pinned_are_thrown_away(server, fetched, tmp_path):
    server.faults = ["other bytes"]

    with pytest.raises(DataError, match=f"other bytes than those pinned: SHA-256 .* not {DIGEST}"):
        fetched()
    assert list(tmp_path.iterdir()) == []


def test_bytes_of_an_earlier_call_that_are_wrong_are_fetched_anew(server, fetched, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(bytes(1000))

    assert fetched() == BYTES
    assert server.asked == ["bytes=1000-", None]


def test_more_bytes_than_there_are_are_thrown_away(server, fetched, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BYTES + b"more")

    assert fetched() == BYTES


def test_a_file_of_another_size_is_not_fetched(server, fetched, tmp_path):
    """A page that asks for a password, say."""
    server.faults = ["another file"]

    with pytest.raises(DataError, match="offers 12 bytes and not 300,000: it is another file"):
        fetched()
    assert list(tmp_path.iterdir()) == []


def test_another_part_than_was_asked_for_is_refused(server, fetched, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BYTES[:1000])
    server.faults = ["another part"]

    with pytest.raises(DataError, match="another part of the file than was asked for"):
        fetched()


def test_a_file_without_pins_is_taken_as_it_comes(server, fetched):
    server.faults = ["truncated"]

    assert fetched(size=None, sha256=None) == BYTES


def test_where_nobody_listens_the_sentence_asks_for_a_network(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    file = RemoteFile("file.bin", (f"http://127.0.0.1:{port}/file.bin",))

    with pytest.raises(DataError, match=r"cannot be reached \(Connection refused; is there a net"):
        download(file, tmp_path, wait=lambda seconds: None)


def test_a_host_that_is_not_known_is_not_asked_again(tmp_path, monkeypatch):
    def unknown(*words, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    file = RemoteFile("file.bin", ("http://data.invalid/file.bin",))

    with pytest.raises(DataError, match=r"data\.invalid cannot be found \(is there a network\?\)"):
        download(file, tmp_path, wait=pytest.fail)


def test_a_server_that_falls_silent_is_given_up_and_what_came_is_kept(
    server, fetched, tmp_path, monkeypatch
):
    """It sends half, and then nothing for longer than the limit."""
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    monkeypatch.setattr(module, "WAITS", ())
    silent = threading.Event()

    def half_then_silence(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BYTES)))
        self.end_headers()
        self.wfile.write(BYTES[:65536])
        silent.wait(10)

    monkeypatch.setattr(Handler, "do_GET", half_then_silence)
    with pytest.raises(DataError, match=r"\(.*timed out\)\. The 65,536 bytes so far are kept"):
        fetched()
    silent.set()
    assert (tmp_path / "file.bin.part").read_bytes() == BYTES[:65536]
