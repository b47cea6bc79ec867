"""The explorer talks to its own page and to nobody else: one test for each promise."""

from __future__ import annotations

import http.client
import json
import socket
from urllib.parse import quote, urlsplit

import pytest

from sketchshift.errors import DataError
from sketchshift.view.server import listening


class Client:
    """Requests to a running explorer, as any program on this machine can send them."""

    def __init__(self, address):
        parts = urlsplit(address.url)
        self.host, self.port, self.root = parts.hostname, parts.port, parts.path

    def get(self, path=None, method="GET", **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.request(method, self.root if path is None else path, headers=headers)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def ask(self, what):
        return self.get(self.root + what)


@pytest.fixture
def client(address):
    return Client(address)


def test_the_server_listens_on_the_loopback_interface_alone(address, client):
    """Not on 127.0.0.2 either, where one that listens everywhere would answer."""
    assert address.socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", client.port), 5)


def test_the_page_is_served_under_its_own_address_and_other_host_headers_are_refused(client):
    """A page elsewhere whose name was made to point here (DNS rebinding)."""
    port = client.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert client.get(Host=host).status == 200
    for host in (f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", ""):
        answer = client.get(Host=host)
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

    for path in (str(secret)[1:], "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "static/base.js"):
        answer = client.ask(path)
        assert (answer.status, "secret" in answer.text) == (404, False)
    for query in ("decode?k=2&file=/etc/passwd", "decode?k=2&where=1%3D1", "decode?k=2&choice=a"):
        assert client.ask(query).status == 400


def test_k_and_choices_have_limits(client, explorer):
    n = len(explorer.file.choices)

    assert client.ask(f"decode?k=5&choice={n - 1}").status == 200
    for k in ("0", "6", "-1", "1e3", "1_0", "٣", "9" * 300, ""):
        answer = client.ask(f"decode?k={quote(k)}")
        assert answer.status == 400
        assert json.loads(answer.text)["error"] == "k must be a whole number from 1 to 5."
    assert client.ask(f"decode?k=2&choice={n}").status == 400


def test_every_answer_carries_the_policy(client):
    fixed = {
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    for answer in (client.get(), client.ask("decode?k=2"), client.get("/")):
        policy = answer.getheader("content-security-policy")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert fixed.items() <= dict(answer.getheaders()).items()


def test_a_port_that_is_taken_is_named(client, explorer):
    with (
        pytest.raises(DataError, match=r"cannot listen on port \d+: Address already in use"),
        listening(explorer, client.port),
    ):
        pass
