"""Arrow Flight in and out, between real processes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import sketchshift as ss
from sketchshift.serving import CubeServer

SPEC = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=1.0, columns=("x", "y"))
PATIENCE = 60
ROWS_SERVER = """
import sys, json
import numpy as np, pyarrow as pa, pyarrow.flight as fl

class Server(fl.FlightServerBase):
    '''Seeded rows, many batches of them, in two streams; "no-info" is known as a ticket alone.'''

    def get_flight_info(self, context, descriptor):
        if descriptor.path == [b"no-info"]:
            raise NotImplementedError("tickets alone")
        n = int(descriptor.path[1] if descriptor.path else descriptor.command)
        halves = [[0, n // 2], [n // 2, n]]
        ends = [fl.FlightEndpoint(json.dumps(half), []) for half in halves]
        return fl.FlightInfo(schema(), descriptor, ends, n * 1000, -1)

    def do_get(self, context, ticket):
        span = [0, 3] if ticket.ticket == b"no-info" else json.loads(ticket.ticket)
        return fl.GeneratorStream(schema(), map(batch, range(*span)))

def schema():
    return pa.schema({"y": pa.float64(), "label": pa.string(), "x": pa.float64()})

def batch(i):
    X = np.random.default_rng(i).normal(size=(2, 1000))
    return pa.record_batch([X[1], ["a"] * 1000, X[0]], schema=schema())

server = Server("grpc://127.0.0.1:0")
print(server.port, flush=True)
server.serve()
"""


@contextmanager
def running(*words: str):
    with subprocess.Popen(words, stdout=-1, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def rows_server():
    with running(sys.executable, "-c", ROWS_SERVER) as process:
        yield int(process.stdout.readline())


def make_rows(n_batches: int) -> np.ndarray:
    parts = [np.random.default_rng(i).normal(size=(2, 1000)) for i in range(n_batches)]
    return np.concatenate(parts, axis=1).T


def test_a_stream_of_flight_is_read_like_a_table(rows_server):
    address = f"grpc://127.0.0.1:{rows_server}"

    assert ss.sketch(f"{address}/rows/40", SPEC) == ss.sketch(make_rows(40), SPEC)
    assert ss.sketch(f"{address}?command=7", SPEC) == ss.sketch(make_rows(7), SPEC)
    assert ss.sketch(f"{address}/no-info", SPEC) == ss.sketch(make_rows(3), SPEC)
    assert ss.sketch_by(f"{address}/rows/4", "label", SPEC)["a"].count == 4000


def test_a_stream_of_flight_can_be_planned_and_read_in_two_passes(rows_server):
    address = f"grpc://127.0.0.1:{rows_server}/rows/20"

    sketch = ss.sketch(address, n_clusters=3, columns=["x", "y"], seed=0)

    assert sketch.count == 20_000
    assert sketch == ss.sketch(make_rows(20), sketch.spec)


def test_a_long_stream_of_flight_fills_no_memory(rows_server):
    """Ten times the rows, in a process of its own: the peak grows by less than a tenth of them."""
    program = (
        "import resource, sys, sketchshift as ss\n"
        "spec = ss.SketchSpec.from_json(sys.argv[2])\n"
        "ss.sketch(sys.argv[1], spec, n_threads=1)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    peaks = []
    for n_batches in (300, 3000):
        address = f"grpc://127.0.0.1:{rows_server}/rows/{n_batches}"
        words = [sys.executable, "-c", program, address, SPEC.to_json()]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE)
        peaks.append(int(done.stdout) * 1024)

    n_bytes = 2700 * 1000 * 16  # and labels
    assert peaks[1] - peaks[0] < n_bytes / 3


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("grpc://127.0.0.1:1/rows", "cannot read grpc://127.0.0.1:1/rows"),
        ("grpc://:hunter2@127.0.0.1:1/rows", "cannot read grpc://127.0.0.1:1/rows"),
        ("grpc://127.0.0.1/rows", "grpc://host:port/path"),
        ("grpc://127.0.0.1:5", "grpc://host:port/path"),
    ],
)
def test_an_address_that_is_not_served_is_named(address, words):
    with pytest.raises(ss.errors.DataError, match=words) as raised:
        ss.sketch(address, SPEC)

    assert "hunter2" not in str(raised.value)


def put(client, path: tuple[str, ...], table: pa.Table, options=None) -> dict:
    descriptor = fl.FlightDescriptor.for_path(*path)
    writer, answers = client.do_put(descriptor, table.schema, options)
    with writer:
        writer.write_table(table, max_chunksize=100)
        writer.done_writing()
        return json.loads(answers.read().to_pybytes())


def make_table(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2, n))
    return pa.table({"x": X[0], "y": X[1], "country": rng.choice(["DE", "FR"], n)})


@pytest.fixture
def cube(tmp_path):
    return ss.live.Cube.create(tmp_path / "state", SPEC, "country")


def test_a_pyarrow_without_flight_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.flight", None)
    monkeypatch.delitem(sys.modules, "sketchshift.data.flight", raising=False)

    with pytest.raises(ss.errors.MissingDependencyError, match=r"built without.*pip install"):
        ss.sketch("grpc://127.0.0.1:1/rows", SPEC)


def test_rows_that_are_put_come_and_go_and_sketches_are_got(cube):
    one, two = make_table(1000, 1), make_table(500, 2)
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        assert put(client, ("rows",), one) == {"version": 1, "was_there": False}
        put(client, ("rows",), two)
        put(client, ("removed",), two.slice(0, 200))
        left = pa.concat_tables([one, two.slice(200)])

        table = ss.SketchTable.from_arrow(client.do_get(fl.Ticket("table")).read_all())
        asked = json.dumps({"get": "sketch", "where": "country = 'FR'"})
        french = client.do_get(fl.Ticket(asked)).read_all()
        flights = [info.descriptor.path for info in client.list_flights()]

    assert table == ss.sketch_by(left, "country", SPEC)
    only = left.filter(pa.compute.equal(left["country"], "FR"))
    assert ss.Sketch.from_bytes(french["sketch"][0].as_py()) == ss.sketch(only, SPEC)
    assert flights == [[b"sketch"], [b"table"]]


def test_a_stream_that_is_sent_again_counts_once(cube):
    one, two = make_table(100, 1), make_table(100, 2)
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        first = put(client, ("rows", "sensor-7", "1"), one)
        again = put(client, ("rows", "sensor-7", "1"), one)
        put(client, ("rows", "sensor-7", "2"), two)
        late = put(client, ("rows", "sensor-7", "1"), one)

    assert (first["was_there"], again["was_there"], late["was_there"]) == (False, True, True)
    assert cube.merge() == ss.sketch(pa.concat_tables([one, two]), SPEC)


def test_a_stream_of_fewer_rows_than_were_announced_leaves_nothing(cube):
    """A writer that an error closes ends its stream as if it were done."""
    rows = make_table(1000)
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        with pytest.raises(fl.FlightServerError, match="900 rows came of a stream of 1,000"):
            put(client, ("rows", "a", "1", "1000"), rows.slice(0, 900))
        assert cube.version == 0
        assert not put(client, ("rows", "a", "1", "1000"), rows)["was_there"]

    assert cube.merge() == ss.sketch(rows, SPEC)


def test_a_stream_that_breaks_leaves_nothing(cube):
    bad = make_table(1000).set_column(0, "x", pa.array([np.nan] * 1000))
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        with pytest.raises(fl.FlightServerError, match="missing or infinite values"):
            put(client, ("rows",), bad)
        with pytest.raises(fl.FlightServerError, match="knows the paths 'rows', 'removed'"):
            put(client, ("cows",), make_table(10))
        with pytest.raises(fl.FlightServerError, match="a ticket is"):
            client.do_get(fl.Ticket(b'{"get": "table", "by": 5}')).read_all()
        with pytest.raises(fl.FlightServerError, match="a ticket is"):
            client.do_get(fl.Ticket("everything")).read_all()

    assert cube.version == 0


KILLED = """
import sys, pyarrow as pa, pyarrow.flight as fl
rows = pa.table({"x": [1.0] * 500, "y": [2.0] * 500, "country": ["DE"] * 500})
client = fl.connect(("127.0.0.1", int(sys.argv[1])))
writer, answers = client.do_put(fl.FlightDescriptor.for_path("rows", "a", "1"), rows.schema)
writer.write_table(rows)
print("sent", flush=True)
sys.stdin.read()
"""


def test_a_client_that_is_killed_leaves_nothing_and_may_send_again(cube, monkeypatch):
    """Its stream ends for the server like one that is done."""
    rows, ended, take = make_table(500), threading.Event(), CubeServer.do_put

    def watched(self, *words):
        try:
            take(self, *words)
        finally:
            ended.set()

    monkeypatch.setattr(CubeServer, "do_put", watched)
    with CubeServer(cube) as server:
        words = [sys.executable, "-c", KILLED, str(server.port)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(words, **pipes) as client:
            client.stdout.readline()
            client.kill()
        assert ended.wait(PATIENCE)
        assert cube.version == 0
        with fl.connect(("127.0.0.1", server.port)) as client:
            answer = put(client, ("rows", "a", "1"), rows)

    assert not answer["was_there"]
    assert cube.merge() == ss.sketch(rows, SPEC)


def test_a_token_keeps_others_out(cube):
    with CubeServer(cube, token="secret") as server:
        address = ("127.0.0.1", server.port)
        with fl.connect(address) as client, pytest.raises(fl.FlightUnauthenticatedError):
            client.do_get(fl.Ticket("sketch")).read_all()
        known = fl.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
        with fl.connect(address) as client:
            put(client, ("rows",), make_table(10), known)

    assert cube.merge().count == 10


def test_a_server_for_other_machines_needs_a_token(cube):
    with pytest.raises(
        ss.errors.DataError, match=r"'0\.0\.0\.0' can be reached from other machines"
    ):
        CubeServer(cube, host="0.0.0.0")


def test_the_command_serves_other_processes(tmp_path, monkeypatch):
    """Four producers at once, each in a process of its own, one stream sent twice by each."""
    monkeypatch.setenv("SKETCHSHIFT_TOKEN", "secret")
    (tmp_path / "plan.json").write_text(SPEC.to_json(), encoding="utf-8")
    program = [sys.executable, "-m", "sketchshift", "serve", str(tmp_path / "served")]
    options = ["--plan", str(tmp_path / "plan.json"), "--by", "country", "--port", "0", "--json"]
    with running(*program, *options) as server:
        url = json.loads(server.stdout.readline())["url"]
        words = [sys.executable, "-c", PRODUCER, url]
        producers = [subprocess.Popen([*words, str(seed)]) for seed in range(4)]
        assert [producer.wait(PATIENCE) for producer in producers] == [0] * 4
        address = url.replace("grpc://", "grpc://:secret@")
        served = ss.data.open_source(f"{address}/table", beside="others")
        n_served = sum(len(block.values) for block in served)

    tables = [make_table(300, 10 * seed + i) for seed in range(4) for i in range(5)]
    expected = ss.sketch_by(pa.concat_tables(tables), "country", SPEC)
    assert n_served == len(expected)
    assert ss.live.Cube.open(tmp_path / "served").table() == expected


PRODUCER = """
import sys
import numpy as np, pyarrow as pa, pyarrow.flight as fl
url, seed = sys.argv[1], int(sys.argv[2])
options = fl.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
with fl.connect(url) as client:
    for i in (0, 1, 2, 2, 3, 4):
        rng = np.random.default_rng(10 * seed + i)
        X = rng.normal(size=(2, 300))
        rows = pa.table({"x": X[0], "y": X[1], "country": rng.choice(["DE", "FR"], 300)})
        path = fl.FlightDescriptor.for_path("rows", f"p{seed}", str(i))
        writer, answers = client.do_put(path, rows.schema, options)
        with writer:
            writer.write_table(rows)
            writer.done_writing()
            answers.read()
"""


# What an unkind client may send.


@pytest.mark.parametrize("number", ["-1", "1.5", "\u0663", "9" * 5000])
def test_a_number_of_a_stream_is_written_in_plain_digits(cube, number):
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        refused = pytest.raises(fl.FlightServerError, match="a producer names itself")
        with refused:
            put(client, ("rows", "a", number), make_table(10))

    assert cube.version == 0


@pytest.mark.parametrize(
    "ticket",
    [b'{"a":' * 5000, b'{"get": "sketch", "by": ["country"]}', b"{" * 10_000],
)
def test_a_ticket_that_cannot_be_meant_is_refused(cube, ticket):
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        refused = pytest.raises(fl.FlightServerError, match="a ticket is")
        with refused:
            client.do_get(fl.Ticket(ticket)).read_all()


def test_errors_tell_clients_no_paths_of_the_server_and_always_arrive(cube):
    """Headers hold few bytes, and a traceback tells where programs lie."""
    asked = json.dumps({"get": "table", "where": "(" * 5000})
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        put(client, ("rows",), make_table(10))
        with pytest.raises(fl.FlightServerError, match="cannot apply the condition") as raised:
            client.do_get(fl.Ticket(asked)).read_all()

    assert "Traceback" not in str(raised.value)


def test_a_producer_that_overtakes_itself_is_told_to_send_again(cube, monkeypatch):
    """Stream 3 is committed while stream 4 is on its way."""
    began, append_rows = threading.Event(), ss.live.Cube.append_rows

    def append_and_tell(self, *rows, **options):
        began.set()
        return append_rows(self, *rows, **options)

    monkeypatch.setattr(ss.live.Cube, "append_rows", append_and_tell)
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        path = fl.FlightDescriptor.for_path("rows", "a", "4")
        writer, _ = client.do_put(path, make_table(1).schema)
        writer.write_table(make_table(10))
        assert began.wait(PATIENCE)
        put(client, ("rows", "a", "3"), make_table(20))
        writer.done_writing()
        with pytest.raises(fl.FlightServerError, match=r"number 3, .*: send this one again"):
            writer.close()

    assert cube.merge().count == 20


def test_a_token_that_headers_cannot_hold_is_refused(cube):
    with pytest.raises(ss.errors.DataError, match="a token must be of ASCII"):
        CubeServer(cube, token="s\u00e9cret")


def test_a_port_that_is_taken_is_told(cube):
    with CubeServer(cube) as server:
        refused = pytest.raises(
            ss.errors.DataError, match=r"cannot listen at 127\.0\.0\.1:\d+: the port is"
        )
        with refused:
            CubeServer(cube, port=server.port)


def serve(tmp_path, *options: str):
    (tmp_path / "plan.json").write_text(SPEC.to_json(), encoding="utf-8")
    program = [sys.executable, "-m", "sketchshift", "serve", str(tmp_path / "served")]
    return running(
        *program, "--plan", str(tmp_path / "plan.json"), "--port", "0", "--json", *options
    )


def test_ctrl_c_ends_a_server_with_an_open_stream(tmp_path):
    """Of which nothing is kept."""
    with serve(tmp_path) as server:
        url = json.loads(server.stdout.readline())["url"]
        with fl.connect(url) as client:
            rows = make_table(10)
            writer, _ = client.do_put(fl.FlightDescriptor.for_path("rows"), rows.schema)
            writer.write_table(rows)
            server.send_signal(signal.SIGINT)
            assert server.wait(PATIENCE) == 130
            with pytest.raises(pa.ArrowException):
                writer.close()

    assert ss.live.Cube.open(tmp_path / "served").version == 0


# TLS.


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """Files of a certificate for this machine, which nobody has signed, and of its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl here, which makes certificates")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([openssl, *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def test_rows_and_sketches_travel_by_tls(cube, pem):
    cert, _ = pem
    with CubeServer(cube, token="secret", tls=pem) as server:
        place, trusted = f"grpc+tls://127.0.0.1:{server.port}", Path(cert).read_bytes()
        known = fl.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])
        with fl.connect(place, tls_root_certs=trusted) as client:
            put(client, ("rows",), make_table(100), known)
            with pytest.raises(fl.FlightUnauthenticatedError):
                client.do_get(fl.Ticket("sketch")).read_all()
        address = f"grpc+tls://:secret@127.0.0.1:{server.port}/table"
        found = ss.data.open_source(f"{address}?ca={cert}", beside="others")
        assert sum(len(block.values) for block in found) == 2
        with pytest.raises(ss.errors.DataError, match="cannot read grpc"):
            list(ss.data.open_source(address, beside="others"))
        with pytest.raises(ss.errors.DataError, match="cannot read grpc"):
            ss.sketch(f"grpc://127.0.0.1:{server.port}/sketch", SPEC)
        with pytest.raises(ss.errors.DataError, match="No such file"):
            ss.sketch(f"{address}?ca=nowhere.pem", SPEC)

    assert cube.merge().count == 100


def test_tls_needs_a_pair_and_elsewhere_the_token_too(cube, pem):
    with pytest.raises(ss.errors.DataError, match="certificate and key are no pair"):
        CubeServer(cube, tls=(pem[0], pem[0]))
    with pytest.raises(ss.errors.DataError, match="can be reached from other machines"):
        CubeServer(cube, host="0.0.0.0", tls=pem)


def test_the_command_serves_by_tls(tmp_path, pem):
    from click.testing import CliRunner

    from sketchshift.cli import main

    (tmp_path / "plan.json").write_text(SPEC.to_json(), encoding="utf-8")
    program = ["serve", str(tmp_path / "served"), "--port", "0", "--check", "--tls-cert", pem[0]]
    plan = ["--plan", str(tmp_path / "plan.json")]

    done = CliRunner().invoke(main, [*program, "--tls-key", pem[1], *plan])
    assert re.search(r"grpc\+tls://127\.0\.0\.1:\d+ was asked .* gave 0 rows", done.output)
    done = CliRunner().invoke(main, program)
    assert done.exit_code == 2
    assert "--tls-cert and --tls-key belong together" in done.output
