"""Arrow Flight in and out, between real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager

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
    with pytest.raises(ss.DataError, match=words) as raised:
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
    return ss.Cube.create(tmp_path / "state", SPEC, "country")


def test_a_pyarrow_without_flight_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.flight", None)
    monkeypatch.delitem(sys.modules, "sketchshift.data.flight", raising=False)

    with pytest.raises(ss.MissingDependencyError, match=r"built without.*pip install"):
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
        with pytest.raises(pa.ArrowInvalid, match="900 rows came of a stream of 1,000"):
            put(client, ("rows", "a", "1", "1000"), rows.slice(0, 900))
        assert cube.version == 0
        assert not put(client, ("rows", "a", "1", "1000"), rows)["was_there"]

    assert cube.merge() == ss.sketch(rows, SPEC)


def test_a_stream_that_breaks_leaves_nothing(cube):
    bad = make_table(1000).set_column(0, "x", pa.array([np.nan] * 1000))
    with CubeServer(cube) as server, fl.connect(("127.0.0.1", server.port)) as client:
        with pytest.raises(pa.ArrowInvalid, match="missing or infinite values"):
            put(client, ("rows",), bad)
        with pytest.raises(pa.ArrowInvalid, match="knows the paths 'rows', 'removed'"):
            put(client, ("cows",), make_table(10))
        with pytest.raises(pa.ArrowInvalid, match="a ticket is"):
            client.do_get(fl.Ticket(b'{"get": "table", "by": 5}')).read_all()
        with pytest.raises(pa.ArrowInvalid, match="a ticket is"):
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
    with pytest.raises(ss.DataError, match=r"'0\.0\.0\.0' can be reached from other machines"):
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
    assert ss.Cube.open(tmp_path / "served").table() == expected


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
