"""Public datasets: from the files of their publishers to arrays whose digests are pinned.

The files are served by a server of ours: small ones, made up in the publishers' formats.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from sketchshift.errors import DataError
from sketchshift_papers import data as datasets
from sketchshift_papers.data import NAMES, NOT_PUBLIC
from sketchshift_papers.data import __main__ as command
from sketchshift_papers.data.fetch import (
    PublicSet,
    RemoteFile,
    array_digest,
    download,
    fetch,
    public_sets,
)


def test_a_dataset_is_read_from_the_folder_named(tmp_path, monkeypatch):
    np.savez(tmp_path / "mnist.npz", X=np.arange(24).reshape(2, 3, 4))
    np.savez(tmp_path / "sipu.npz", s1_X=np.eye(2), s1_y=[3, 4])
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path))

    np.testing.assert_array_equal(datasets.load("mnist"), np.arange(24).reshape(2, 12))
    np.testing.assert_array_equal(datasets.load("sipu/s1"), np.eye(2))
    np.testing.assert_array_equal(datasets.load_labels("sipu/s1"), [3, 4])
    assert datasets.load_labels("mnist") is None
    assert datasets.is_here("sipu/s1")
    assert not datasets.is_here("skin")


def test_without_a_folder_named_it_is_the_users_cache(tmp_path, monkeypatch):
    """An empty variable is one that is not set: make exports such."""
    monkeypatch.setenv("SKETCHSHIFT_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder() == tmp_path / "sketchshift"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert datasets.data_folder() == Path.home() / ".cache" / "sketchshift"


def test_a_missing_dataset_is_named_with_the_command_that_fetches_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "gone"))

    with pytest.raises(DataError, match=r"no 'sipu\.npz' in .*gone'\. .* make data DATA=sipu"):
        datasets.load("sipu/s1")
    with pytest.raises(DataError, match="It cannot be fetched: the features are those of a"):
        datasets.load("cifar10_features")
    with pytest.raises(DataError, match=r"no dataset 'sipu/s9'\. There are cifar10_features"):
        datasets.load("sipu/s9")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.data(n)) for n in NAMES])
def test_a_dataset_is_rows_of_numbers_whose_digests_are_pinned(name):
    """Those of cytof are the digests of another way of rounding."""
    X, y = datasets.load(name), datasets.load_labels(name)

    assert X.dtype.kind in "fiu"
    assert y is None or y.shape == (len(X),)
    pinned = public_sets().get(name.partition("/")[0])
    if pinned is not None and name != "cytof":
        with np.load(datasets.data_folder() / f"{pinned.name}.npz", allow_pickle=False) as here:
            assert {key: array_digest(here[key]) for key in here} == pinned.digests


def test_what_the_message_proposes_is_what_the_command_knows():
    archives = {name.partition("/")[0] for name in NAMES} - set(NOT_PUBLIC)

    assert archives == {*public_sets(), *command.DERIVED}
    assert set(public_sets()) == set(MADE_UP)


class Site(ThreadingHTTPServer):
    """Serves files by name; what goes wrong is a list, one fault a request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.faults = []
        self.address = f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self):
        fault = self.server.faults.pop(0) if self.server.faults else None
        content = self.server.files.get(self.path[1:])
        if content is None or isinstance(fault, int):
            self.send_error(fault or 404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write({"truncated": content[:9], "other": bytes(30_000)}.get(fault, content))

    def log_message(self, *words):
        pass


@pytest.fixture
def site():
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


BYTES = np.random.default_rng(0).bytes(30_000)


@pytest.fixture
def file(site):
    site.files["file.bin"] = BYTES
    url, digest = site.address + "file.bin", hashlib.sha256(BYTES).hexdigest()
    return RemoteFile("file.bin", (url,), len(BYTES), digest)


@pytest.mark.parametrize("faults", [[], [503], ["truncated", "other"]])
def test_a_file_comes_whole_however_often_it_failed_before(site, file, faults, tmp_path):
    site.faults, waited = list(faults), []

    path = download(file, tmp_path / "new", wait=waited.append)

    assert path.read_bytes() == BYTES
    assert waited == [1.0, 3.0][: len(faults)]
    there = replace(file, urls=(site.address + "elsewhere.bin", *file.urls))
    assert download(there, tmp_path).read_bytes() == BYTES
    site.files.clear()
    assert download(file, tmp_path / "new") == path  # it is there: nothing is asked for


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        ([404], "HTTP Error 404"),
        ([503] * 3, "HTTP Error 503"),
        (["truncated"] * 3, "IncompleteRead"),
        (["other"] * 3, "other bytes came than those pinned: SHA-256"),
    ],
)
def test_what_cannot_be_had_is_a_sentence_and_leaves_no_file(
    site, file, faults, sentence, tmp_path
):
    site.faults = list(faults)

    with pytest.raises(DataError, match=f"cannot fetch 'file.bin' from 127.*{sentence}"):
        download(file, tmp_path, wait=lambda seconds: None)
    assert list(tmp_path.iterdir()) == []
    assert site.faults == []


def served(name, files, digests, site):
    site.files |= files
    remote = tuple(
        RemoteFile(file, (site.address + file,), len(content), hashlib.sha256(content).hexdigest())
        for file, content in files.items()
    )
    return PublicSet(name, "about", "licence", remote, digests)


SMALL = np.random.default_rng(0).integers(0, 200, (40, 28, 28)).astype(np.uint8)
LABELS = (np.arange(40) % 5).astype(np.uint8)
FOREST = np.random.default_rng(1).integers(-50, 3000, (40, 10)).astype(np.float32)
PLACES = np.array([[-74.1, 40.2], [-74.1, 40.5], [-73.9, 40.1]], dtype=np.float32)


def idx(array):
    """The format of MNIST: a magic number, the shape, the bytes."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.tobytes(), 1)


def text(*columns, comma, end="\n"):
    rows = np.column_stack(columns).tolist()
    return "".join(comma.join(map(str, row)) + end for row in rows).encode()


def covertype():
    """The rows of kind 2 among others, and the 44 columns that are not asked for."""
    rows = np.zeros((80, 55), dtype=int)
    rows[::2, :10], rows[::2, 54], rows[1::2, 54] = FOREST, np.where(np.arange(40) % 9, 2, 4), 5
    return gzip.compress(text(rows, comma=","))


# Files of publishers, and the arrays that are to come of them.
MADE_UP = {
    "mnist": (
        {
            "train-images-idx3-ubyte.gz": idx(SMALL[:30]),
            "t10k-images-idx3-ubyte.gz": idx(SMALL[30:]),
            "train-labels-idx1-ubyte.gz": idx(LABELS[:30]),
            "t10k-labels-idx1-ubyte.gz": idx(LABELS[30:]),
        },
        {"X": SMALL, "y": LABELS},
    ),
    "skin": (
        {"Skin_NonSkin.txt": text(SMALL[:, 0, :3], LABELS, comma="\t", end="\r\n")},
        {"X": SMALL[:, 0, :3], "y": LABELS},
    ),
    "covertype": ({"covtype.data.gz": covertype()}, {"X": FOREST}),
    "uber_pickups": (
        {"uber-pickup-locations.json": b"[[-74.1, 40.2, 1], [-74.1, 40.5, 2], [-73.9, 40.1, 1]]"},
        {"X": PLACES[[0, 1, 1, 2]]},
    ),
    "cytof": (
        {
            f"{name}{i}.csv": text(table[part], comma=",")
            for i, part in ((1, slice(25)), (2, slice(25, None)))
            for name, table in (("sample", SMALL[:, 0, :8]), ("labels", LABELS))
        },
        {"X": np.arcsinh(SMALL[:, 0, :8].astype(np.float32) / np.float32(5)), "y": LABELS},
    ),
    "sipu": (
        {
            "s1.data.gz": gzip.compress(text(FOREST[:, :2], comma=" ")),
            "s1.labels0.gz": gzip.compress(text(LABELS, comma=" ")),
        },
        {"s1_X": FOREST[:, :2], "s1_y": LABELS.astype(np.int16)},
    ),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_files_in_the_publishers_format_become_arrays(name, site, tmp_path):
    files, expected = MADE_UP[name]
    wanted = served(name, files, {}, site)

    path = fetch(wanted, tmp_path / "data")

    with np.load(path, allow_pickle=False) as arrays:
        assert sorted(arrays) == sorted(expected)
        for key, array in expected.items():
            np.testing.assert_array_equal(arrays[key], array)
            assert arrays[key].dtype == array.dtype
    assert not list((tmp_path / "data" / "downloads").iterdir())


def test_an_array_that_is_not_the_one_pinned_is_not_put_in_place(site, tmp_path):
    files, arrays = MADE_UP["skin"]
    wanted = served("skin", files, {"X": array_digest(arrays["X"]), "y": "0" * 64}, site)

    with pytest.raises(DataError, match=r"'y' of 'skin' is not the one pinned: .*Nothing was put"):
        fetch(wanted, tmp_path / "data")
    assert not (tmp_path / "data" / "skin.npz").exists()
    assert not (tmp_path / "data" / "downloads" / "skin").exists()


@pytest.mark.parametrize("name", MADE_UP)
@pytest.mark.parametrize("content", [b"<html>Please sign in</html>", b"\x1f\x8b\x08\x00junk"])
def test_a_page_instead_of_data_is_a_sentence(name, content, site, tmp_path):
    """Files whose digests nobody knows: what cannot be read is thrown away."""
    wanted = served(name, dict.fromkeys(MADE_UP[name][0], content), {"X": "0" * 64}, site)
    wanted = replace(wanted, files=tuple(replace(f, size=None, sha256=None) for f in wanted.files))

    with pytest.raises(DataError, match=r"cannot make|is not the one pinned"):
        fetch(wanted, tmp_path / "data")
    assert not (tmp_path / "data" / f"{name}.npz").exists()


@pytest.fixture
def run(site, tmp_path, monkeypatch, capsys):
    """The program, with a table of two sets that our server has."""
    entries = {name: served(name, MADE_UP[name][0], {}, site) for name in ("mnist", "skin")}
    monkeypatch.setattr(command, "public_sets", lambda: entries)
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "data"))

    def run(*words, status=0):
        assert command.main(words) == status
        return capsys.readouterr()

    return run


def test_the_command_fetches_what_is_missing_and_lists_what_is_there(run):
    assert run("skin").out.startswith("skin             fetched: ")
    assert run("skin").out.startswith("skin             is here: ")
    listed = [line.split()[:2] for line in run("--list").out.splitlines()]

    assert listed == [["mnist", "not"], ["skin", "here"], ["spectral_mnist", "not"]]
    np.testing.assert_array_equal(datasets.load("skin"), MADE_UP["skin"][1]["X"])


def test_the_command_goes_on_after_a_failure_and_ends_with_it(run, site):
    del site.files["train-images-idx3-ubyte.gz"]

    result = run("mnist", "cifar10_features", "mnits", "skin", status=1)

    assert result.out.startswith("skin             fetched: ")
    for sentence in (
        "Error: cannot fetch 'train-images-idx3-ubyte.gz' from 127.0.0.1:",
        "Error: 'cifar10_features' cannot be fetched: the features are those of a",
        "Error: there is no dataset 'mnits'. There are mnist, skin, spectral_mnist.",
    ):
        assert sentence in result.err


def test_features_are_computed_from_what_was_fetched(run):
    run("spectral_mnist")

    assert datasets.load("spectral_mnist").shape == (40, 10)
    np.testing.assert_array_equal(datasets.load_labels("spectral_mnist"), LABELS)
