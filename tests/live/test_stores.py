"""Files in stores: servers that speak S3 and Google's protocol, behind a proxy with faults."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from threading import Event, Thread
from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from safetensors.numpy import save_file

import sketchshift as ss
from sketchshift._paths import map_ahead, parse_path
from sketchshift.cli import main
from sketchshift.data import open_source
from sketchshift.data import sample as sampling
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.live.stores import MOST_OPEN, Storage
from sketchshift.sketch import checkpoint as checkpoints

ROOT = Path(__file__).parents[2]
SPEC = ss.SketchSpec(4, 64, bandwidth=1.0, columns=("a", "b", "c", "d"))
NAMES = ("x.parquet", "x.csv", "x.csv.gz", "x.arrow", "stream.arrow", "x.npy", "x.safetensors")
SECRET = "wJalrXUtnFEMI"
HELD_BYTES = {"s3": 0, "gs": 500_000}  # an open file of Google takes as much as buffers hold
KINDS = ("slow", "many", "reset", "cut", "short")  # of faults: see faulty_proxy.py


def server_command(scheme, port):
    """The server, in an environment of its own that ``make test-stores`` makes."""
    program, *words = {
        "s3": [".venv-moto/bin/moto_server", "-H", "127.0.0.1", "-p"],
        "gs": [".venv-gcs/bin/gcp-storage-emulator", "start", "-H", "127.0.0.1", "-qM", "--port"],
    }[scheme]
    own = ROOT / program
    if not own.exists():
        pytest.skip(f"{own.name} is not here: `make test-stores`")
    return [str(own), *words, str(port)]


def filesystem_of(scheme, host):
    """What a test puts its files with, past the proxy."""
    if scheme == "gs":
        return pyarrow.fs.GcsFileSystem(
            anonymous=True, scheme="http", endpoint_override=host, project_id="tests"
        )
    return pyarrow.fs.S3FileSystem(
        access_key="id",
        secret_key=SECRET,
        region="us-east-1",
        endpoint_override=f"http://{host}",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )


class Store:
    """A bucket of its own for each test, behind a proxy."""

    def __init__(self, scheme, proxy_port, upstream_port, bucket):
        self.scheme, self.bucket = scheme, bucket
        self.endpoint = f"http://127.0.0.1:{proxy_port}"
        self.direct = f"http://127.0.0.1:{upstream_port}"
        self.behind = filesystem_of(scheme, f"127.0.0.1:{upstream_port}")
        self.behind.create_dir(bucket)

    def __call__(self, key):
        return f"{self.scheme}://{self.bucket}/{key}"

    def put(self, key, data):
        with self.behind.open_output_stream(f"{self.bucket}/{key}", compression=None) as file:
            file.write(data)
        return self(key)

    def remove(self, key):
        self.behind.delete_file(f"{self.bucket}/{key}")

    def remove_bucket(self):
        """It must be empty."""
        if self.scheme == "s3":
            self.behind.delete_dir(self.bucket)
            return
        address = f"{self.endpoint}/storage/v1/b/{self.bucket}"
        with urlopen(Request(address, method="DELETE"), timeout=30):
            pass

    def order(self, **said):
        """Set the faults; what happened since the last order."""
        words = "&".join(f"{name}={value}" for name, value in said.items())
        with urlopen(f"{self.endpoint}/__proxy__?{words}", timeout=30) as answer:
            return json.load(answer)


S3, GOOGLE = (pytest.param(scheme, marks=pytest.mark.stores) for scheme in ("s3", "gs"))


@pytest.fixture(scope="module", params=[S3, GOOGLE])
def servers(request, start_server):
    with start_server(server_command, request.param) as port:
        command = [sys.executable, str(Path(__file__).with_name("faulty_proxy.py"))]
        with subprocess.Popen(
            [*command, f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
        ) as proxy:
            yield request.param, int(proxy.stdout.readline()), port
            proxy.terminate()


only_s3 = pytest.mark.parametrize("servers", [S3], indirect=True)
only_gs = pytest.mark.parametrize("servers", [GOOGLE], indirect=True)


@pytest.fixture
def store(servers, request, monkeypatch):
    """The bucket; what the commands and functions find in the environment points to it."""
    made = Store(*servers, f"bucket-{abs(hash(request.node.name)) % 10**12}")
    if made.scheme == "gs":
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", made.endpoint)
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    made.order()
    yield made
    made.order()


def table_of(n_rows, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, 4))
    return pa.table({name: X[:, i] for i, name in enumerate("abcd")})


def write_file(table, path, rows=5000):
    """Write a table in the format of a name, in parts of some rows where the format has parts."""
    X = np.column_stack([table[name] for name in "abcd"])
    match path.name.partition(".")[2]:
        case "parquet":
            pq.write_table(table, path, row_group_size=rows)
        case "npy":
            np.save(path, X)
        case "safetensors":
            save_file({"x": X}, path)
        case "arrow":
            new = pa.ipc.new_stream if path.stem == "stream" else pa.ipc.new_file
            with new(str(path), table.schema) as writer:
                writer.write_table(table, rows)
        case _:
            with pa.output_stream(path) as file:  # packed, where the name says so
                pyarrow.csv.write_csv(table, file)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows in each format."""
    folder = tmp_path_factory.mktemp("files")
    for name in NAMES:
        write_file(table_of(30_000), folder / name)
    return folder


# Reading.


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_a_store_gives_the_bytes_of_the_local_file_also_where_requests_fail(
    store, files, name
):
    """Without faults, with all kinds in a fifth of the requests, with each kind in half of them."""
    address = store.put(f"day=1/{name}", (files / name).read_bytes())
    whole = ss.sketch(files / name, SPEC).to_bytes()

    def read_with_faults(**said):
        store.order(**said)
        assert ss.sketch(address, SPEC).to_bytes() == whole
        return store.order()

    read_with_faults(rate=0)
    counts = [read_with_faults(rate=0.2, seed=seed) for seed in range(6)]
    assert any(count[kind] for count in counts for kind in KINDS)
    with ss.live.storage(tries=40):
        for kind in KINDS if name in ("x.parquet", "x.csv", "x.npy") else ():
            assert read_with_faults(rate=0.5, seed=1, kinds=kind)[kind] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_body_that_is_always_short_is_refused(store, files, name):
    """Its Content-Length agrees with it, so that HTTP alone sees nothing wrong."""
    address = store.put(name, (files / name).read_bytes())
    store.order(rate=1.0, kinds="short")

    with ss.live.storage(tries=2), pytest.raises(DataError, match="the store failed 2 times"):
        ss.sketch(address, SPEC)


# Tables of lakes; their packages write them past the proxy.

LAKES = Path(__file__).with_name("follow_lakes.py")
OF_LAKE = ss.SketchSpec(2, 20, bandwidth=1.0, columns=("x", "y"))


@pytest.fixture(params=["delta", "iceberg"])
def lake(request, store, tmp_path, monkeypatch):
    """A writer of a table of a lake, which has one version."""
    pytest.importorskip("deltalake", reason="needs the extra lakes")
    config = pytest.importorskip("pyiceberg.utils.config", reason="needs the extra lakes")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    if request.param == "delta":
        return run_path(str(LAKES))["DeltaWriter"](tmp_path, 0, feed=False, store=store("lake"))
    for name in ("URI", "TYPE"):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__FIRE__{name}", "")
    writer = run_path(str(LAKES))["IcebergWriter"](tmp_path, 0, store=store("lake"))
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config.Config())
    return writer


@only_s3
def test_a_table_of_a_lake_is_read_by_its_log_and_never_as_a_folder(store, lake):
    """Files that were removed from the table are still in the store."""
    lake.delete()

    expected = ss.sketch(lake.read(), OF_LAKE)
    assert 0 < expected.count < 50
    assert ss.sketch(lake.address, OF_LAKE) == expected
    assert ss.sketch(lake.table, OF_LAKE) == expected
    kind = lake.address.partition(":")[0].partition("+")[0]
    assert ss.sketch(f"{kind}+{lake.place}", OF_LAKE) == expected
    hint = rf"delta\+{lake.place}\." if kind == "delta" else r", as iceberg://catalog/"
    with pytest.raises(DataError, match=f"itself:? ?{hint}"):
        ss.sketch(lake.place, OF_LAKE)


@only_s3
def test_a_state_follows_a_table_of_a_store_of_which_a_fifth_of_the_requests_fail(
    store, lake, tmp_path, monkeypatch
):
    """An answer that is cut short, and says so of itself, only our own requests can tell."""
    kinds = "slow,many,reset,cut" + ",short" * lake.address.startswith("iceberg")
    state, n_faults = tmp_path / "state", 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.direct)  # what is said comes before it
    with ss.live.storage(endpoint=store.endpoint, key="id", secret=SECRET):
        cube = ss.live.follow(lake.address, state, spec=OF_LAKE)
        for seed, step in enumerate([lake.append, lake.delete, lake.compact, lake.restore]):
            step()
            store.order(rate=0.2, seed=seed, kinds=kinds)
            ss.live.follow(lake.address, state)
            n_faults += sum(store.order()[kind] for kind in KINDS)
            assert cube.merge() == ss.sketch(lake.read(), OF_LAKE)

    assert n_faults > 0
    assert SECRET not in json.dumps(cube.positions)


@pytest.mark.parametrize("scheme", ["s3", "delta+s3", "iceberg+s3"])
def test_an_address_with_a_secret_is_refused_and_does_not_show_it(scheme):
    with pytest.raises(DataError, match=r"holds no key.*ss\.live\.storage\(key=") as caught:
        ss.sketch(f"{scheme}://id:{SECRET}@bucket/t", SPEC)

    assert SECRET not in str(caught.value)


def test_a_pass_that_is_given_up_waits_for_no_answer():
    """The collector may close its iterator amid the start of a thread, and would wait for ever."""
    may_end, ended = Event(), []

    def read(i):
        if i > 0:
            may_end.wait(30)
            ended.append(i)
        return i

    results = map_ahead(read, range(100), parse_path("s3://bucket/x"))
    assert next(results) == 0
    results.close()

    assert not ended
    may_end.set()


def test_folders_and_globs_mean_what_they_mean_on_this_machine(store, tmp_path):
    keys = ["day=1/a.csv", "day=1/_b.csv", "day=2/c.csv", "day=2/.d.csv", "day=2/e/f.csv", "g.txt"]
    for i, key in enumerate(keys):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        pyarrow.csv.write_csv(table_of(10 + i, seed=i), tmp_path / key)
        store.put(key, (tmp_path / key).read_bytes())

    patterns = (
        "",
        "day=1",
        "day=*",
        "day=*/*.csv",
        "day=?/[a-c].csv",
        "**/*.csv",
        "*/e",
        "day=1/_*",
    )
    for pattern in patterns:
        here = ss.sketch(f"{tmp_path}/{pattern}", SPEC)
        assert ss.sketch(store(pattern), SPEC) == here, pattern


def test_what_is_not_there_is_said(store):
    store.put("a/x.csv", b"a,b,c,d\n1,2,3,4\n")

    with pytest.raises(DataError, match=rf"no file or folder '{store('b/x')}\.csv'"):
        open_source(store("b/x.csv"))
    with pytest.raises(DataError, match=rf"no file matches '{store('a/')}\*\.parquet'"):
        open_source(store("a/*.parquet"))
    with pytest.raises(DataError, match="the name of a bucket cannot hold"):
        open_source(f"{store.scheme}://*/x.csv")
    with pytest.raises(DataError, match="xyz:// is no protocol that is known here"):
        open_source("xyz://bucket/x.csv")


def test_only_the_columns_asked_for_are_fetched(store, tmp_path):
    """Counted by the proxy, against what the footer says the columns take."""
    table, path = table_of(400_000), tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=100_000, compression="none", use_dictionary=False)
    address, footer = store.put("x.parquet", path.read_bytes()), pq.read_metadata(path)
    needed = sum(
        footer.row_group(i).column(1).total_compressed_size for i in range(footer.num_row_groups)
    )
    store.order()

    fetched = []
    for _ in range(2):  # on a busy machine a request may be repeated
        found = ss.sketch(address, ss.SketchSpec(1, 16, bandwidth=1.0, columns=("b",)))
        fetched.append(store.order()["body_bytes"])
        assert found.count == 400_000

    held = HELD_BYTES[store.scheme]
    assert needed < min(fetched) < 1.05 * needed + held


@pytest.mark.parametrize("name", ["x.csv", "x.npy", "x.parquet", "x.arrow"])
def test_a_plan_looks_at_some_places_only(store, tmp_path, monkeypatch, name):
    """Of files that are large against the sample, which is made small here."""
    path = write_file(table_of(600_000), tmp_path / name, 10_000)
    address = store.put(name, path.read_bytes())
    monkeypatch.setattr(sampling, "FETCHED_BYTES", 2**20)
    monkeypatch.setattr(sampling, "FEW_BYTES", 2**20)
    monkeypatch.setattr("sketchshift.data.text_files.SEEKS", 50)
    monkeypatch.setattr(sampling, "SEEKS", 50)
    source = open_source(address)
    store.order()

    rows = sampling.draw_rows(source, 500, seed=0, keep=lambda block: None)

    assert 400 <= len(rows.values) <= 600
    assert store.order()["body_bytes"] < path.stat().st_size / 2


def test_a_file_that_changes_or_goes_while_it_is_read_is_refused(store, files):
    content = (files / "x.npy").read_bytes()
    for change, message in (
        (lambda: store.put("x.npy", content[::-1]), r"x\.npy changed while it was read"),
        (lambda: store.remove("x.npy"), r"x\.npy"),
    ):
        blocks = iter(open_source(store.put("x.npy", content), block_rows=1000))
        next(blocks)
        change()
        with pytest.raises((DataError, FileNotFoundError), match=message):
            list(blocks)
    where = parse_path(store.put("y.npy", content))
    where.stat()
    store.remove("y.npy")
    with pytest.raises(DataError, match=r"y\.npy changed while it was read"):
        where.read_range(0, 6)


# Writing.


def test_sketches_and_tables_are_written_and_read_where_a_fifth_of_the_requests_fail(store):
    table = table_of(1000).append_column("day", pa.array(["mo", "tu"] * 500))
    whole, slices = ss.sketch(table.select("abcd"), SPEC), ss.sketch_by(table, "day", SPEC)
    for seed in range(5):
        store.order(rate=0.2, seed=seed)
        whole.save(store("out/x.sketch"))
        slices.save(store("out/x.parquet"))
        assert ss.load(store("out/x.sketch")).to_bytes() == whole.to_bytes()
        assert ss.load(store("out/x.parquet")).merge() == whole
        assert len(ss.load(store("out/x.parquet"), where="day = 'mo'")) == 1


def test_a_write_that_fails_leaves_the_old_object(store):
    old, new = ss.sketch(table_of(100), SPEC), ss.sketch(table_of(200), SPEC)
    old.save(store("x.sketch"))
    for kind in ("slow", "many", "reset"):
        store.order(rate=1.0, kinds=kind)
        with ss.live.storage(tries=1), pytest.raises(DataError, match="the store failed 1 times"):
            new.save(store("x.sketch"))
        store.order()

        assert ss.load(store("x.sketch")) == old


def test_an_object_of_many_parts_is_written_whole(store):
    """S3 takes parts of 5 MiB or more."""
    data = np.random.default_rng(0).bytes(23_000_000)
    parse_path(store("large.bin")).write(data)

    assert parse_path(store("large.bin")).read_bytes() == data


@pytest.mark.slow
def test_a_large_write_that_fails_on_its_way_leaves_the_old_object(store):
    """Of some parts, or of the last word of the upload."""
    old, new = (np.random.default_rng(seed).bytes(23_000_000) for seed in (0, 1))
    where, n_refused = parse_path(store("large.bin")), 0
    where.write(old)
    for seed in range(12):
        store.order(rate=0.5, seed=seed)
        is_refused = False
        with ss.live.storage(tries=1):
            try:
                parse_path(store("large.bin")).write(new)
            except DataError:
                is_refused, n_refused = True, n_refused + 1
        store.order()
        found = parse_path(store("large.bin")).read_bytes()
        assert found == new or (is_refused and found == old)
        where.write(old)

    assert n_refused > 0


def test_commands_take_addresses(store, files, tmp_path, run):
    address = store.put("x.parquet", (files / "x.parquet").read_bytes())
    run("plan", address, "-k", 3, "-o", store("plan.json"))
    for name in ("1", "2"):
        run("sketch", address, "--plan", store("plan.json"), "-o", store(f"{name}.sketch"))
    run("merge", store("*.sketch"), "-o", store("both.sketch"))
    assert ss.load(store("both.sketch")).count == 60_000
    assert store("both.sketch") in run("inspect", store("both.sketch"))
    run("cluster", store("both.sketch"), "-k", 3, "-o", store("centroids.csv"))
    run("cluster", address, "-k", 3)
    run("assign", address, "--centroids", store("centroids.csv"), "-o", store("labels.parquet"))
    run("report", store("both.sketch"), "-k", 3, "-o", tmp_path / "report.html")
    labels = pq.read_table(pa.BufferReader(parse_path(store("labels.parquet")).read_bytes()))
    assert labels.num_rows == 30_000


def test_an_output_that_cannot_be_written_is_refused_before_the_pass(store, files, run):
    address = store.put("x.csv", (files / "x.csv").read_bytes())
    for output, words in (
        (f"{store.scheme}://no-such-bucket-here/x.sketch", "there is no bucket"),
        (f"{store.scheme}://{store.bucket}", "it is a folder"),
        ("https://example.org/x.sketch", "the web is only read"),
    ):
        assert words in run("sketch", address, "-k", 3, "-o", output, status=1)


# Google's store.


@only_gs
def test_google_is_reached_by_the_environment_or_by_options(store, files, monkeypatch):
    address = store.put("x.npy", (files / "x.npy").read_bytes())
    host = store.endpoint.removeprefix("http://")
    for endpoint in (store.endpoint, host, f"{store.endpoint}/"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        assert parse_path(address).stat().st_size == (files / "x.npy").stat().st_size
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    for said in ({"anonymous": True}, {"token": "abc"}):
        with ss.live.storage(endpoint=store.endpoint, **said):
            assert parse_path(address).read_range(1, 6) == b"NUMPY"
    monkeypatch.setenv("SKETCHSHIFT_STORAGE", f"endpoint={store.endpoint},anonymous=true")
    assert parse_path(address.replace("gs://", "gcs://")).read_range(1, 6) == b"NUMPY"


@only_gs
def test_google_says_in_one_sentence_what_fails(store, files):
    address = store.put("x.npy", (files / "x.npy").read_bytes())
    store.order(deny="x.npy")

    with pytest.raises(DataError, match=r"PERMISSION_DENIED: .*403\. Check the address") as error:
        ss.sketch(address, SPEC)
    assert "google::" not in str(error.value)
    assert store.order()["requests"] == 1  # one more would be refused as well
    with (
        ss.live.storage(endpoint="http://127.0.0.1:9", anonymous=True, tries=1),
        pytest.raises(DataError, match=r"failed 1 times, at last with: UNAVAILABLE: .*connect"),
    ):
        ss.sketch(address, SPEC)


@only_gs
def test_a_bucket_that_only_shows_its_objects_is_read_and_written(store, files, run):
    """Roles for objects do not include those to look at the bucket."""
    store.put("day=1/x.npy", (files / "x.npy").read_bytes())
    store.order(deny=f"/{store.bucket}")
    run("sketch", store("day=*/*.npy"), "-k", 3, "-o", store("x.sketch"))

    assert ss.load(store("x.sketch")).count == 30_000


@only_gs
def test_few_files_of_google_are_kept_open(store):
    """Each holds a connection, and Arrow has begun to fetch all of it."""
    data = np.random.default_rng(0).bytes(1000)
    paths = [parse_path(store.put(f"{i}.bin", data)) for i in range(2 * MOST_OPEN)]

    assert {path.read_bytes() for path in paths} == {data}
    assert sum(path._open()._file is not None for path in paths) <= MOST_OPEN
    assert {path.read_range(1, 4) for path in paths} == {data[1:4]}


# Following.


FOLLOWER = """
import sys, sketchshift as ss
with ss.live.storage(tries=20):
    ss.live.follow(sys.argv[1], sys.argv[2])
"""


class Folder:
    """Files of a store that come and go at random, and what a fresh sketch of them is."""

    def __init__(self, store, seed=0):
        self.store, self.rng, self.rows = store, np.random.default_rng(seed), {}

    def change(self, n_changes):
        """Some files come, are written anew, often with the same size, or go."""
        for _ in range(n_changes):
            key = f"in/day={self.rng.integers(3)}/{self.rng.integers(4)}.npy"
            if key in self.rows and self.rng.random() < 0.4:
                self.store.remove(key)
                del self.rows[key]
            else:
                self.rows[key] = self.rng.normal(size=(self.rng.choice([20, 21]), 4))
                np.save(file := io.BytesIO(), self.rows[key])
                self.store.put(key, file.getvalue())

    def sketch(self):
        return ss.sketch(np.concatenate([np.empty((0, 4)), *self.rows.values()]), SPEC).to_bytes()


def test_a_folder_is_followed_where_a_fifth_of_the_requests_fail(store, tmp_path):
    folder, n_faults = Folder(store), 0
    folder.change(6)
    cube = ss.live.follow(store("in"), tmp_path / "state", spec=SPEC)
    for seed in range(8):
        store.order(rate=0.2, seed=seed)
        with ss.live.storage(tries=20):
            ss.live.follow(store("in"), tmp_path / "state")
        assert cube.merge().to_bytes() == folder.sketch()
        counts = store.order()
        n_faults += sum(counts[kind] for kind in KINDS)
        folder.change(3)

    assert n_faults > 0


@pytest.mark.slow
def test_followers_of_a_store_that_are_killed_count_each_file_once(store, tmp_path):
    folder, n_killed = Folder(store), 0
    folder.change(8)
    cube = ss.live.follow(store("in"), tmp_path / "state", spec=SPEC)
    command = [sys.executable, "-c", FOLLOWER, store("in"), str(tmp_path / "state")]
    began = time.monotonic()
    subprocess.run(command, check=True)
    usual = time.monotonic() - began
    for seed in range(6):
        folder.change(6)
        store.order(rate=0.2, seed=seed)
        with subprocess.Popen(command) as victim, subprocess.Popen(command) as other:
            time.sleep(folder.rng.uniform(0.6, 1.2) * usual)
            victim.kill()
            n_killed += victim.wait() != 0
            assert other.wait() == 0
        assert cube.merge().to_bytes() == folder.sketch()

    assert n_killed > 0


def test_files_that_have_settled_are_not_asked_for_again(store, tmp_path, monkeypatch):
    """A listing tells them, but for those written within the last 15 minutes."""
    folder = Folder(store)
    folder.change(12)
    cube = ss.live.follow(store("in"), tmp_path / "state", spec=SPEC)
    store.order()
    ss.live.follow(store("in"), tmp_path / "state")
    assert store.order()["requests"] == 1 + len(folder.rows)

    monkeypatch.setattr("sketchshift.live.stores.SETTLED_NS", -3600 * 10**9)
    folder.change(1)
    ss.live.follow(store("in"), tmp_path / "state")  # notes what listings say of each
    store.order()
    ss.live.follow(store("in"), tmp_path / "state")
    assert store.order()["requests"] == 1
    assert cube.merge().to_bytes() == folder.sketch()


def test_a_bucket_that_cannot_be_listed_is_refused_and_nothing_is_subtracted(store, tmp_path):
    folder = Folder(store)
    folder.change(5)
    cube = ss.live.follow(store("in"), tmp_path / "state", spec=SPEC)
    whole = folder.sketch()
    for kind in KINDS:
        store.order(rate=1.0, kinds=kind)
        with ss.live.storage(tries=1), pytest.raises(DataError, match="cannot reach"):
            ss.live.follow(store("in"), tmp_path / "state")
    store.order()
    for key in folder.rows:
        store.remove(key)
    store.put("elsewhere/x.npy", b"")
    with pytest.raises(DataError, match=r"is a file\. Name the folder"):
        ss.live.follow(store("elsewhere/x.npy"), tmp_path / "other", spec=SPEC)
    store.remove("elsewhere/x.npy")
    for left in store.behind.get_file_info(pyarrow.fs.FileSelector(store.bucket)):
        store.behind.delete_dir(left.path)
    store.remove_bucket()
    with pytest.raises(DataError, match=rf"there is no '{store('')[:-1]}' to list"):
        ss.live.follow(store("in"), tmp_path / "state")
    assert cube.merge().to_bytes() == whole

    store.behind.create_dir(store.bucket)
    assert ss.live.follow(store("in"), tmp_path / "state").merge().count == 0


# Checkpoints.


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.npy", "x.arrow"])
def test_a_checkpoint_goes_on_and_leaves_whole_pieces_unread(
    store, files, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", float("inf"))  # also where writing one takes long
    address = [store.put(f"{i}-{name}", (files / name).read_bytes()) for i in (1, 2)]
    whole, path = ss.sketch(address, SPEC), tmp_path / "pass.checkpoint"

    def stop(n_rows, share):
        if share is not None and share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ss.sketch(address, SPEC, checkpoint=path, progress=stop)
    store.order()
    assert ss.sketch(address, SPEC, checkpoint=path).to_bytes() == whole.to_bytes()
    if name == "x.parquet":  # whose pieces are smaller than this file
        held = 2 * HELD_BYTES[store.scheme]
        assert store.order()["body_bytes"] < 1.6 * (files / name).stat().st_size + held


def test_a_checkpoint_on_a_file_that_is_another_one_now_is_refused(
    store, files, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    address, path = store.put("x.npy", (files / "x.npy").read_bytes()), tmp_path / "checkpoint"
    ss.sketch(address, SPEC, checkpoint=path)
    data = bytearray((files / "x.npy").read_bytes())
    data[-1] ^= 1
    store.put("x.npy", bytes(data))

    with pytest.raises(DataError, match=r"x\.npy has changed since the checkpoint"):
        ss.sketch(address, SPEC, checkpoint=path)


def test_a_checkpoint_may_lie_in_a_store(store, files):
    address = store.put("x.npy", (files / "x.npy").read_bytes())

    found = ss.sketch(address, SPEC, checkpoint=store("pass.checkpoint"))

    assert ss.load(store("pass.checkpoint")) == found


# The web.


class Plain(SimpleHTTPRequestHandler):
    """Without ranges; without a length where the name says so."""

    def log_message(self, *_):
        pass

    def send_header(self, keyword, value):
        if not (keyword == "Content-Length" and "nolength" in self.path):
            super().send_header(keyword, value)


@pytest.fixture
def web(files, tmp_path):
    shutil.copytree(files, tmp_path / "web")
    shutil.copy(files / "x.csv", tmp_path / "web" / "nolength.csv")
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Plain, directory=tmp_path / "web")
    ) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@only_s3
@pytest.mark.parametrize("name", NAMES)
def test_the_web_is_read_with_ranges_or_without(store, web, files, name):
    here = ss.sketch(files / name, SPEC).to_bytes()
    store.put(name, (files / name).read_bytes())
    store.order(rate=0.2, seed=3)

    assert ss.sketch(f"{store.endpoint}/{store.bucket}/{name}", SPEC).to_bytes() == here
    assert ss.sketch(f"{web}/{name}", SPEC).to_bytes() == here


def test_a_server_that_cannot_be_checked_is_refused(web):
    with pytest.raises(DataError, match="neither ranges nor the length"):
        ss.sketch(f"{web}/nolength.csv", SPEC)
    with pytest.raises(DataError, match="no file or folder"):
        ss.sketch(f"{web}/nothing.csv", SPEC)
    with pytest.raises(DataError, match="the web has no folders"):
        ss.sketch(f"{web}/*.csv", SPEC)


# Secrets, processes, other protocols.


def test_no_secret_is_shown():
    password = "hunter2hunter2"
    addresses = [
        f"http://me:{password}@127.0.0.1:9/x.csv",
        f"http://127.0.0.1:9/x.csv?X-Amz-Signature={password}",
        f"ftp://me:{password}@127.0.0.1:9/x.csv",
        f"sftp://me:{password}@127.0.0.1:9/x.csv",
        f"xyz://me:{password}@127.0.0.1:9/x.csv",
        "s3://bucket/x.csv",
        "gs://bucket/x.csv",
    ]
    texts = []
    for address in addresses:
        settings = {"key": password, "secret": password, "token": password, "tries": 1}
        with ss.live.storage(endpoint="http://127.0.0.1:9", **settings):
            where = parse_path(address)
            texts += [str(where), repr(where), os.fspath(where), repr(where._settings)]
            asked = partial(ss.sketch, spec=SPEC, query="SELECT 1")
            planned = partial(ss.plan, n_clusters=3)
            for act in (ss.load, partial(ss.sketch, spec=SPEC), planned, asked):
                with pytest.raises((DataError, OSError, MissingDependencyError)) as error:
                    act(address)
                texts += [str(error.value), repr(error.value), repr(error.value.__cause__)]
        for command in ("inspect", "cluster"):
            words = [command, address] + (["-k", "3"] if command == "cluster" else [])
            done = CliRunner().invoke(main, words, env={"SKETCHSHIFT_STORAGE": "tries=1"})
            texts.append(done.output)

    assert not any(password in text for text in texts)


def test_a_path_travels_to_other_processes_as_the_file_it_was(store, files):
    address = store.put("x.npy", (files / "x.npy").read_bytes())
    where = parse_path(address)
    where.stat()
    copy = pickle.loads(pickle.dumps(where))
    assert copy == where
    assert copy.read_range(0, 6) == b"\x93NUMPY"
    store.put("x.npy", b"something else")

    with pytest.raises(DataError, match="changed"):
        pickle.loads(pickle.dumps(where)).read_range(0, 6)


def test_settings_come_from_the_environment_too(monkeypatch):
    monkeypatch.setenv("SKETCHSHIFT_STORAGE", "endpoint=http://h:1,anonymous=true,tries=3")
    assert parse_path("s3://b/x.csv")._settings == Storage("http://h:1", anonymous=True, tries=3)

    monkeypatch.setenv("SKETCHSHIFT_STORAGE", "secret_key=abc")
    with pytest.raises(DataError, match="Got a part 'secret_key' instead") as error:
        parse_path("s3://b/x.csv")
    assert "abc" not in str(error.value)


@pytest.mark.parametrize(("scheme", "sign"), [("https", "/"), ("https", "?"), ("sftp", "/")])
def test_a_password_that_would_be_taken_for_a_port_is_refused(scheme, sign):
    with pytest.raises(DataError, match="Write them as %2F and %3F") as error:
        parse_path(f"{scheme}://me:hun{sign}ter@host/x.csv")
    assert "hun" not in str(error.value)
    for host in ("host", "host:80", "[::1]:80"):
        assert (
            str(parse_path(f"{scheme}://{host}/@scope/x.csv")) == f"{scheme}://{host}/@scope/x.csv"
        )


@pytest.fixture
def ftp(tmp_path, start_server):
    """A folder, and its address at a server that asks for a password with a sign to be written."""
    pytest.importorskip("fsspec")
    if find_spec("pyftpdlib") is None:
        pytest.skip("pyftpdlib is not here: pip install pyftpdlib")
    (folder := tmp_path / "ftp").mkdir()
    command = [sys.executable, "-m", "pyftpdlib", "-i", "127.0.0.1", "-u", "me", "-P", "p/w@9!"]
    command += ["-d", str(folder), "-w", "-p"]
    with start_server(lambda port: [*command, str(port)]) as port:
        yield folder, f"ftp://me:p%2Fw%409!@127.0.0.1:{port}"


def test_servers_of_fsspec_are_read_and_written_and_show_no_password(files, ftp, run):
    folder, address = ftp
    shutil.copytree(files, folder / "day=1")
    for name in NAMES:
        here = ss.sketch(files / name, SPEC).to_bytes()
        assert ss.sketch(f"{address}/day=1/{name}", SPEC).to_bytes() == here
    whole = ss.sketch(files / "x.npy", SPEC)
    assert ss.sketch(f"{address}/day=*/*.npy", SPEC) == whole
    texts = [str(path) for path in parse_path(address).rglob("*.npy")]
    assert texts == [f"ftp://{address.rpartition('@')[2]}/day=1/x.npy"]

    whole.save(f"{address}/day=1/x.sketch")
    assert ss.load(f"{address}/day=1/x.sketch") == ss.load(folder / "day=1" / "x.sketch") == whole
    words = ["sketch", f"{address}/day=1/x.npy", "-k", 3, "-o", f"{address}/y.sketch"]
    texts += [run(*words), run(*words, "--json")]
    texts += [run("inspect", words[-1]), run("cluster", words[-1], "-k", 3)]
    texts.append((folder / "y.sketch").read_bytes().decode("latin-1"))
    wrong = address.replace("p%2Fw%409!", "p%2Fw%408!")
    with pytest.raises(DataError, match="530") as error:
        ss.sketch(f"{wrong}/day=1/x.npy", SPEC)
    texts += [str(error.value), repr(error.value)]

    secrets = ("p/w@9", "p%2Fw", "p/w@8")
    assert not [(secret, text) for text in texts for secret in secrets if secret in text]


def test_azure_is_read_and_written(files, tmp_path, monkeypatch, start_server):
    """Against Azurite, with the account and the key that every Azurite has."""
    azurite = os.environ.get("SKETCHSHIFT_AZURITE") or shutil.which("azurite-blob")
    if azurite is None:
        pytest.skip("Azurite is not here: npm install azurite; SKETCHSHIFT_AZURITE names it")
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    words = [azurite, "--silent", "--location", str(tmp_path), "--skipApiVersionCheck"]
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "devstoreaccount1")
    monkeypatch.setenv("AZURE_STORAGE_KEY", key)
    with (
        start_server(lambda port: [*words, "--blobPort", str(port)]) as port,
        ss.live.storage(endpoint=f"http://127.0.0.1:{port}"),
    ):
        parse_path("az://data/x")._store.filesystem.create_dir("data")
        for name in NAMES:
            parse_path(f"az://data/day=1/{name}").write((files / name).read_bytes())
            found = ss.sketch(f"abfs://data/day=1/{name}", SPEC)
            assert found.to_bytes() == ss.sketch(files / name, SPEC).to_bytes()
        assert ss.sketch("az://data/day=*/*.parquet", SPEC).count == 30_000
        found.save("az://data/x.sketch")
        assert ss.load("az://data/x.sketch") == found


# Memory.

SKETCH = """
import sys
import time
from pathlib import Path
from runpy import run_path
import sketchshift as ss
spec = ss.SketchSpec(4, 64, bandwidth=1.0, columns=("a", "b", "c", "d"))
assert ss.sketch(sys.argv[1], spec, n_threads=2).count == int(sys.argv[2])
status = Path("/proc/self/status").read_text()  # ru_maxrss would be that of the parent as well
print(status.partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_memory_does_not_grow_with_a_file_of_a_store_whose_requests_fail(store, tmp_path, suffix):
    """Peak resident memory of a process of its own; ten times the rows, a tenth more at most."""
    peaks = {}
    for n_rows in (300_000, 3_000_000):
        path = write_file(table_of(n_rows), tmp_path / f"{n_rows}{suffix}", 100_000)
        address = store.put(path.name, path.read_bytes())
        store.order(rate=0.2, seed=5)
        done = subprocess.run(
            [sys.executable, "-c", SKETCH, address, str(n_rows)],
            check=True,
            capture_output=True,
            text=True,
        )
        assert store.order()["requests"] > 10
        peaks[n_rows] = int(done.stdout)

    assert peaks[3_000_000] < 1.1 * peaks[300_000] + 30_000, peaks
