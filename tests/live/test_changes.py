"""Data that changes, and what follows it."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.live.changes import Change, FolderSource, open_changes

X = np.random.default_rng(0).normal(size=(900, 2))


@pytest.fixture(scope="module")
def spec():
    return ss.plan(X, 3, seed=0)


class Numbers:
    """Rows 0 .. n that come ten at a time; the change to position 30 takes the first ten away."""

    name = "numbers"

    def __init__(self, n: int) -> None:
        self.n = n

    def changes(self, since):
        for at in range(0 if since is None else since["at"], self.n, 10):
            gone = X[:10] if at == 20 else None
            yield Change(X[at : at + 10], gone, {"at": at + 10})


def test_a_cube_follows_a_source_from_where_it_stands(spec, tmp_path):
    cube = ss.live.follow(Numbers(20), tmp_path / "state", spec=spec)
    assert cube.positions == {"numbers": {"at": 20}}
    assert cube.merge() == ss.sketch(X[:20], spec)

    cube = ss.live.follow(Numbers(100), tmp_path / "state")
    assert cube.merge() == ss.sketch(X[10:100], spec)


def test_following_stops_where_it_is_told(spec, tmp_path):
    cube = ss.live.follow(Numbers(100), tmp_path / "state", spec=spec, until={"at": 50})

    assert cube.positions["numbers"] == {"at": 50}
    with pytest.raises(ss.errors.DataError, match="no position"):
        ss.live.follow(Numbers(100), tmp_path / "state", until={"at": 55})


def test_files_of_a_folder_come_change_and_go(tmp_path):
    folder, state = tmp_path / "data", tmp_path / "state"
    folder.mkdir()
    for i in range(3):
        np.save(folder / f"{i}.npy", X[100 * i : 100 * i + 100])
    cube = ss.live.follow(folder, state, n_clusters=3, seed=0)
    assert cube.merge() == ss.sketch(X[:300], cube.spec)

    (folder / "0.npy").unlink()
    np.save(folder / "1.npy", X[500:650])
    ss.live.follow(str(folder), state)
    left = np.concatenate([X[200:300], X[500:650]])
    assert cube.merge() == ss.sketch(left, cube.spec)
    version = cube.version
    ss.live.follow(f"folder:{folder}", state)
    assert cube.version == version


def test_what_cannot_be_followed_is_said(tmp_path):
    with pytest.raises(ss.errors.DataError, match="no folder"):
        open_changes(str(tmp_path / "nowhere"))
    with pytest.raises(ss.errors.DataError, match="cannot follow ndarray"):
        open_changes(X)


def test_a_folder_that_cannot_be_listed_is_refused_and_nothing_is_subtracted(tmp_path, monkeypatch):
    folder = tmp_path / "in"
    (folder / "day").mkdir(parents=True)
    for name in ("a.npy", "day/b.npy"):
        np.save(folder / name, np.random.default_rng(0).normal(size=(50, 2)))
    cube = ss.live.follow(folder, tmp_path / "state", n_clusters=2)
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "day":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(
        ss.errors.DataError, match=r"cannot list .*day.* Its files would count as gone"
    ):
        ss.live.follow(folder, tmp_path / "state")
    monkeypatch.undo()

    assert ss.live.Cube.open(tmp_path / "state").merge().count == cube.merge().count == 100


def test_a_file_of_the_same_size_and_time_is_another_one(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = np.random.default_rng(0).normal(size=(2, 50, 2))
    np.save(folder / "a.npy", rows[0])
    cube = ss.live.follow(folder, tmp_path / "state", n_clusters=2)
    stamp = (folder / "a.npy").stat()
    np.save(folder / "a.npy", rows[1])
    os.utime(folder / "a.npy", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    ss.live.follow(folder, tmp_path / "state")

    assert ss.live.Cube.open(tmp_path / "state").merge() == ss.sketch(rows[1], cube.spec)


def test_a_file_that_goes_while_it_is_read_ends_no_follower(tmp_path, monkeypatch):
    """Some go after they were listed, before they are opened: the next look knows."""
    folder, state = tmp_path / "in", tmp_path / "state"
    (folder / "day").mkdir(parents=True)
    names = ["0.npy", "1.npy", "day/2.npy", "day/3.npy"]
    for i, name in enumerate(names):
        np.save(folder / name, X[100 * i : 100 * i + 100])
    listed, doomed = FolderSource._list, ["0.npy", "1.npy", "day/2.npy"]

    def list_and_lose(self, known):
        found = listed(self, known)
        if doomed:
            (folder / doomed.pop(0)).unlink()
        return found

    monkeypatch.setattr(FolderSource, "_list", list_and_lose)
    cube = ss.live.follow(folder, state, n_clusters=2)  # one goes while it is planned, two behind

    assert not doomed
    assert cube.merge() == ss.sketch(X[300:400], cube.spec)


def test_a_folder_whose_files_always_go_is_given_up(tmp_path, monkeypatch):
    folder = tmp_path / "in"
    folder.mkdir()
    np.save(folder / "0.npy", X[:100])
    cube = ss.live.follow(folder, tmp_path / "state", n_clusters=2)
    asked = []

    def show_ghost(self, known):
        asked.append(1)
        return {"0.npy": cube.positions[self.name]["files"]["0.npy"], "ghost.npy": [1, 1, 1]}

    monkeypatch.setattr(FolderSource, "_list", show_ghost)
    with pytest.raises(ss.errors.DataError, match=r"ghost\.npy"):
        ss.live.follow(folder, tmp_path / "state")

    assert len(asked) == 10
    assert cube.merge() == ss.sketch(X[:100], cube.spec)


def test_a_state_takes_the_same_plan_again_and_refuses_another(spec, tmp_path):
    state = tmp_path / "state"
    cube = ss.live.follow(Numbers(400), state, n_clusters=3)

    ss.live.follow(Numbers(410), state, n_clusters=3)
    ss.live.follow(Numbers(420), state, n_clusters=3, seed=0)

    assert cube.merge() == ss.sketch(X[10:420], cube.spec)
    with pytest.raises(
        ss.errors.DataError, match=r"has its own n_clusters 3.*Leave n_clusters out"
    ):
        ss.live.follow(Numbers(430), state, n_clusters=4)
    with pytest.raises(ss.errors.DataError, match=r"has its own seed 0.*Leave seed out"):
        ss.live.follow(Numbers(430), state, n_clusters=3, seed=1)
    ss.live.follow(Numbers(100), tmp_path / "other", spec=spec)
    with pytest.raises(ss.errors.DataError, match=r"has its own plan.*Leave n_clusters out"):
        ss.live.follow(Numbers(100), tmp_path / "other", n_clusters=3)


def test_a_folder_around_one_that_is_followed_is_refused_and_nothing_counts_twice(spec, tmp_path):
    days = tmp_path / "lake" / "days"
    days.mkdir(parents=True)
    np.save(days / "first.npy", X[:300])
    ss.live.follow(days, tmp_path / "state", spec=spec)

    for folder in (days.parent, days):
        inner = folder if folder != days else folder / "deeper"
        inner.mkdir(exist_ok=True)
        with pytest.raises(
            ss.errors.DataError, match="files in common with it, which would count twice"
        ):
            ss.live.follow(inner, tmp_path / "state")
    beside = tmp_path / "lake" / "days-of-others"
    beside.mkdir()
    np.save(beside / "first.npy", X[300:500])

    assert ss.live.follow(beside, tmp_path / "state").merge() == ss.sketch(X[:500], spec)


# Folders in stores. What servers and faults add is in test_stores.py.


class Memory:
    """A folder of fsspec's store in memory, and the rows of its files."""

    def __init__(self, name: str, spec: ss.SketchSpec) -> None:
        self.spec = spec
        self.files = pytest.importorskip("fsspec").filesystem("memory")
        self.name, self.address = name, f"memory://{name}"
        self.rows: dict[str, np.ndarray] = {}

    def put(self, name: str, rows: np.ndarray) -> None:
        np.save(file := io.BytesIO(), rows)
        self.files.pipe(f"/{self.name}/{name}", file.getvalue())
        self.rows[name] = rows

    def remove(self, name: str) -> None:
        self.files.rm(f"/{self.name}/{name}")
        del self.rows[name]

    def sketch(self) -> ss.Sketch:
        return ss.sketch(np.concatenate([np.empty((0, 2)), *self.rows.values()]), self.spec)


@pytest.fixture
def memory(tmp_path, spec):
    made = Memory(tmp_path.name, spec)
    made.put("stays.npy", X[:7])
    yield made
    made.files.rm(f"/{made.name}", recursive=True)


def test_a_folder_in_a_store_is_followed_through_any_changes(spec, memory, tmp_path):
    rng = random.Random(0)
    cube = ss.live.follow(memory.address, tmp_path / "state", spec=spec)
    for _ in range(25):
        for _ in range(rng.randrange(4)):
            name = f"day={rng.randrange(3)}/{rng.randrange(4)}.npy"
            if name in memory.rows and rng.random() < 0.4:
                memory.remove(name)
            else:
                memory.put(name, X[rng.randrange(800) :][: rng.choice([10, 11])])
        ss.live.follow(memory.address + "/", tmp_path / "state")
        assert cube.merge().to_bytes() == memory.sketch().to_bytes()
    version = cube.version
    ss.live.follow(f"folder:{memory.address}", tmp_path / "state")

    assert cube.version == version
    assert list(cube.positions) == [f"folder:{memory.address}"]


def test_what_a_listing_leaves_out_is_looked_at_before_it_counts_as_gone(
    spec, memory, tmp_path, monkeypatch
):
    """As fsspec leaves folders out that it cannot list."""
    memory.put("day/b.npy", X[100:200])
    memory.put("day/c.npy", X[200:300])
    cube = ss.live.follow(memory.address, tmp_path / "state", spec=spec)
    find = type(memory.files).find

    def leave_out(self, *words, **options):
        found = find(self, *words, **options)
        return {name: info for name, info in found.items() if "/day/" not in name}

    monkeypatch.setattr(type(memory.files), "find", leave_out)
    memory.remove("day/b.npy")
    ss.live.follow(memory.address, tmp_path / "state")

    assert cube.merge() == memory.sketch()
    assert cube.merge().count == 107


def test_a_folder_of_a_store_that_is_gone_is_refused_and_an_empty_one_is_an_answer(
    spec, memory, tmp_path
):
    memory.files.mkdir(f"/{memory.name}")
    cube = ss.live.follow(memory.address, tmp_path / "state", spec=spec)
    memory.remove("stays.npy")
    memory.files.rmdir(f"/{memory.name}")
    with pytest.raises(ss.errors.DataError, match=rf"there is no '{memory.address}' to list"):
        ss.live.follow(memory.address, tmp_path / "state")
    assert cube.merge().count == 7

    memory.files.mkdir(f"/{memory.name}")
    assert ss.live.follow(memory.address, tmp_path / "state").merge().count == 0


def test_a_file_of_a_store_that_is_replaced_while_it_is_read_counts_as_the_new_one(
    spec, memory, tmp_path, monkeypatch
):
    listed, doomed = FolderSource._list, ["a.npy", "b.npy"]
    for name in doomed:
        memory.put(name, X[100:200])

    def list_and_replace(self, known):
        found = listed(self, known)
        if doomed:
            memory.put(doomed.pop(0), X[300 : 400 + len(doomed)])
        return found

    monkeypatch.setattr(FolderSource, "_list", list_and_replace)
    cube = ss.live.follow(memory.address, tmp_path / "state", spec=spec)

    assert not doomed
    assert cube.merge() == memory.sketch()


def test_folders_of_stores_that_overlap_are_refused(spec, memory, tmp_path):
    memory.put("day/b.npy", X[100:200])
    ss.live.follow(memory.address, tmp_path / "state", spec=spec)

    with pytest.raises(
        ss.errors.DataError, match="files in common with it, which would count twice"
    ):
        ss.live.follow(f"{memory.address}/day", tmp_path / "state")
    for name, alias in (("gs://b/x", "gcs://b/x/"), ("az://c/x", "abfs://c@a.dfs.example/x")):
        assert open_changes(name).name == open_changes(alias).name == f"folder:{name}"


def test_an_address_that_cannot_be_followed_is_refused_without_its_password(spec, tmp_path):
    for address, words in (
        ("https://me:hunter2@host/in", "the web has no folders that can be listed"),
        ("xyz://me:hunter2@host/in", "xyz:// is no protocol"),
    ):
        with pytest.raises(ss.errors.DataError, match=words) as error:
            ss.live.follow(address, tmp_path / "state", spec=spec)
        assert "hunter2" not in str(error.value)


def test_a_format_of_another_package_is_read_anew_when_its_file_is(
    spec, memory, tmp_path, monkeypatch
):
    """Such readers get copies of files in stores."""
    from sketchshift.data import open as door

    monkeypatch.setattr(door, "_formats", dict(door._formats))
    ss.data.register_format(".rows", lambda path, request: np.load(path))
    memory.put("a.rows", X[:100])
    cube = ss.live.follow(memory.address, tmp_path / "state", spec=spec)
    memory.put("a.rows", X[300:450])
    ss.live.follow(memory.address, tmp_path / "state")

    assert cube.merge() == memory.sketch()
