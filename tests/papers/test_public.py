"""Public datasets: from the files of their publishers to arrays whose digests are pinned.

The files are served by a server of ours. Small ones are made up in the publishers' formats; where
the datasets are here, the publishers' files are rebuilt from them and the real pins hold.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner

from sketchshift.cli import main
from sketchshift.data import datasets, public
from sketchshift.data.public import PublicSet, RemoteFile, array_digest, fetch, public_sets
from sketchshift.errors import DataError


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words) -> None:
        pass


@pytest.fixture
def site(tmp_path):
    """A folder, and the address it is served at."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def idx(array: np.ndarray) -> bytes:
    """The format of MNIST: a magic number, the shape, the bytes."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.tobytes(), 1)


def text(rows: np.ndarray, comma: str, end: str = "\n", form: str = "{:g}") -> bytes:
    return "".join(comma.join(map(form.format, row)) + end for row in rows.tolist()).encode()


def mnist_files(X: np.ndarray, y: np.ndarray, n_train: int) -> dict[str, bytes]:
    parts = {"train": slice(n_train), "t10k": slice(n_train, None)}
    images = {f"{name}-images-idx3-ubyte.gz": idx(X[rows]) for name, rows in parts.items()}
    return images | {f"{name}-labels-idx1-ubyte.gz": idx(y[rows]) for name, rows in parts.items()}


def skin_files(X: np.ndarray, y: np.ndarray) -> dict[str, bytes]:
    return {"Skin_NonSkin.txt": text(np.column_stack((X, y)), "\t", "\r\n", "{}")}


def covertype_files(X: np.ndarray) -> dict[str, bytes]:
    """The rows of kind 2 among others, and the 44 columns that are not asked for."""
    rows = np.zeros((2 * len(X), 55))
    rows[::2, :10], rows[::2, 54], rows[1::2, 54] = X, np.where(np.arange(len(X)) % 9, 2, 4), 5
    return {"covtype.data.gz": gzip.compress(text(rows.astype(int), ",", form="{}"), 1)}


def uber_files(X: np.ndarray) -> dict[str, bytes]:
    """Places in another order than ours, each with its number of pick-ups."""
    places, times = np.unique(np.round(X.astype(float), 4), axis=0, return_counts=True)
    rows = [[*place, n] for place, n in zip(places.tolist(), times.tolist(), strict=True)]
    return {"uber-pickup-locations.json": json.dumps(rows).encode()}


def cytof_files(X: np.ndarray, y: np.ndarray, sizes: list[int]) -> dict[str, bytes]:
    """The chosen cells at their places among cells of zeros; counts have five digits."""
    n = sum(sizes)
    chosen = np.sort(np.random.default_rng(0).choice(n, len(X), replace=False))
    counts, kinds = np.full((n, 8), "0", dtype="U12"), np.zeros(n, dtype=int)
    raw = 5 * np.sinh(X.astype(float))
    counts[chosen] = [[f"{value:.5g}" for value in row] for row in raw.tolist()]
    kinds[chosen] = y
    ends = np.cumsum(sizes)
    files = {}
    for i, (end, size) in enumerate(zip(ends, sizes, strict=True), 1):
        part = slice(end - size, end)
        lines = (",".join(row) for row in counts[part].tolist())
        files[f"sample{i}.csv"] = "".join(f"{line}\n" for line in lines).encode()
        files[f"labels{i}.csv"] = text(kinds[part, None], ",", form="{}")
    return files


def sipu_files(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    files = {}
    for name, array in arrays.items():
        member, kind = name.rsplit("_", 1)
        suffix = "data" if kind == "X" else "labels0"
        rows = array if kind == "X" else array[:, None]
        files[f"{member}.{suffix}.gz"] = gzip.compress(text(rows, " ", form="{:.8g}"))
    return files


def served(name: str, files: dict[str, bytes], digests: dict[str, str], site) -> PublicSet:
    folder, address = site
    for file, content in files.items():
        (folder / file).write_bytes(content)
    remote = tuple(
        RemoteFile(file, (address + file,), len(content), hashlib.sha256(content).hexdigest())
        for file, content in files.items()
    )
    return PublicSet(name, "about", "licence", remote, digests)


SMALL = np.random.default_rng(0).integers(0, 200, (40, 28, 28)).astype(np.uint8)
LABELS = (np.arange(40) % 5).astype(np.uint8)
FOREST = np.random.default_rng(1).integers(-50, 3000, (40, 10)).astype(np.float32)
COUNTS = np.arcsinh(SMALL[:, 0, :8].astype(np.float32) / np.float32(5))
PLACES = np.array([[-74.1, 40.2], [-74.1, 40.5], [-73.9, 40.1]], dtype=np.float32)
PLACES = PLACES[[0, 1, 1, 2]]
PLANE = {"s1_X": FOREST[:, :2], "s1_y": LABELS.astype(np.int16)}
MADE_UP = {
    "mnist": (mnist_files(SMALL, LABELS, 30), {"X": SMALL, "y": LABELS}),
    "skin": (skin_files(SMALL[:, 0, :3], LABELS), {"X": SMALL[:, 0, :3], "y": LABELS}),
    "covertype": (covertype_files(FOREST), {"X": FOREST}),
    "uber_pickups": (uber_files(PLACES), {"X": PLACES}),
    "cytof": (cytof_files(COUNTS, LABELS, [25, 15]), {"X": COUNTS, "y": LABELS}),
    "sipu": (sipu_files(PLANE), PLANE),
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
    said = json.loads((tmp_path / "data" / "fetched" / f"{name}.json").read_text())
    assert {f: facts["sha256"] for f, facts in said["files"].items()} == {
        file.name: file.sha256 for file in wanted.files
    }
    assert not list((tmp_path / "data" / "downloads").iterdir())


def whole(name: str) -> dict[str, bytes]:
    """A publisher's files, made from the dataset that is here."""
    with np.load(datasets.data_folder() / f"{name}.npz", allow_pickle=False) as arrays:
        data = dict(arrays)
    if name == "mnist":
        return mnist_files(data["X"], data["y"], 60_000)
    if name == "cytof":
        sizes = [f.size // 2 for f in public_sets()[name].files if f.name.startswith("labels")]
        return cytof_files(data["X"], data["y"], sizes)
    if name == "sipu":
        return sipu_files(data)
    makers = {"skin": skin_files, "covertype": covertype_files, "uber_pickups": uber_files}
    return makers[name](*data.values())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.data(name)) for name in MADE_UP]
)
def test_the_arrays_pinned_are_those_that_are_here(name, site, tmp_path):
    """Files of our making, pins of the table; skin's is the publisher's to the byte."""
    wanted = served(name, whole(name), {}, site)
    wanted = replace(wanted, digests=public_sets()[name].digests)
    pinned = public_sets()[name].files if name == "skin" else ()

    path = fetch(wanted, tmp_path / "data")

    assert all(mine.sha256 == file.sha256 for mine, file in zip(wanted.files, pinned, strict=False))
    here = datasets.data_folder() / f"{name}.npz"
    with np.load(path, allow_pickle=False) as new, np.load(here, allow_pickle=False) as old:
        assert sorted(new) == sorted(old)
        for key in old:
            np.testing.assert_allclose(new[key], old[key], rtol=1e-6 if name == "cytof" else 0)


def test_the_table_names_every_file_once_with_digests_where_they_are_known():
    sets = public_sets()

    assert set(sets) == set(MADE_UP)
    for one in sets.values():
        names = [file.name for file in one.files]
        assert len(set(names)) == len(names)
        assert all(url.startswith("https://") for file in one.files for url in file.urls)
        assert all(len(d) == 64 for d in one.digests.values())
        assert all(file.sha256 is None or len(file.sha256) == 64 for file in one.files)
    assert {name for name, one in sets.items() if all(f.sha256 for f in one.files)} == {
        "mnist",
        "skin",
        "covertype",
    }


def test_an_array_that_is_not_the_one_pinned_is_not_put_in_place(site, tmp_path):
    files, arrays = MADE_UP["skin"]
    wanted = served("skin", files, {"X": array_digest(arrays["X"]), "y": "0" * 64}, site)

    with pytest.raises(DataError, match=r"'y' of 'skin' is not the one pinned: .*Nothing was put"):
        fetch(wanted, tmp_path / "data")
    assert not (tmp_path / "data" / "skin.npz").exists()
    assert not (tmp_path / "data" / "downloads" / "skin").exists()


@pytest.mark.parametrize("name", MADE_UP)
@pytest.mark.parametrize("content", [b"<html>Please sign in</html>", b"", b"\x1f\x8b\x08\x00junk"])
def test_a_page_instead_of_data_is_a_sentence(name, content, site, tmp_path):
    """Files whose digests nobody knows: what cannot be read is thrown away."""
    wanted = served(name, dict.fromkeys(MADE_UP[name][0], content), {"X": "0" * 64}, site)
    wanted = replace(wanted, files=tuple(replace(f, size=None, sha256=None) for f in wanted.files))

    with pytest.raises(DataError, match=r"cannot make|is not the one pinned"):
        fetch(wanted, tmp_path / "data")
    assert not (tmp_path / "data" / f"{name}.npz").exists()


@pytest.fixture
def command(site, tmp_path, monkeypatch):
    """``sketchshift data`` with a table of two sets that our server has."""
    entries = {name: served(name, MADE_UP[name][0], {}, site) for name in ("mnist", "skin")}
    monkeypatch.setattr(public, "public_sets", lambda: entries)
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "data"))

    def run(*words: str, status: int = 0):
        result = CliRunner().invoke(main, ["data", *words])
        assert result.exit_code == status, result.output
        return result

    return run


def test_the_command_fetches_what_is_missing_and_lists_what_is_there(command, tmp_path):
    assert command("skin").stdout.startswith("skin            fetched in ")
    assert command("skin").stdout.startswith("skin            is here: ")
    listed = json.loads(command("--list", "--json").stdout)["datasets"]

    assert {one["name"]: one["here"] for one in listed} == {
        "mnist": False,
        "skin": True,
        "spectral_mnist": False,
    }
    np.testing.assert_array_equal(datasets.load("skin"), MADE_UP["skin"][1]["X"])


def test_the_command_goes_on_after_a_failure_and_ends_with_it(command, site):
    (site[0] / "train-images-idx3-ubyte.gz").unlink()

    result = command("mnist", "skin", status=1)

    assert result.stdout.startswith("skin            fetched in ")
    assert "Error: 1 of 2 datasets are not here:\n  mnist: cannot fetch" in result.stderr
    assert "answers 404" in result.stderr


def test_features_are_computed_from_what_was_fetched(command):
    pytest.importorskip("cv2", reason='OpenCV is not installed: pip install "sketchshift[paper]"')

    command("spectral_mnist")

    assert datasets.load("spectral_mnist").shape == (40, 10)
    np.testing.assert_array_equal(datasets.load_labels("spectral_mnist"), LABELS)


def test_ctrl_c_is_a_sentence(command, monkeypatch):
    def interrupted(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(public, "fetch", interrupted)

    assert "Error: interrupted. What was fetched is kept" in command(status=130).stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cifar10_features", "'cifar10_features' cannot be fetched: the features are those of a"),
        ("mnits", "there is no dataset 'mnits'. There are mnist, skin, spectral_mnist."),
    ],
)
def test_what_cannot_be_fetched_is_said(command, name, sentence):
    assert sentence in command(name, status=1).stderr
