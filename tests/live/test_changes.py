"""Data that changes, and what follows it."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import fsspec
import numpy as np
import pytest

import sketchshift as ss
from sketchshift.errors import DataError
from sketchshift.live.changes import Change, FolderSource, open_changes

X = np.random.default_rng(0).normal(size=(900, 2))


@pytest.fixture(scope="module")
def spec():
    return ss.plan(X, 3, seed=0)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


class Numbers:
    """Rows 0 .. n that come ten at a time; the change to position 30 takes the first ten away."""

    name = "numbers"

    def __init__(self, n):
        self.n = n

    def changes(self, since):
        for at in range(0 if since is None else since["at"], self.n, 10):
            gone = X[:10] if at == 20 else None
            yield Change(X[at : at + 10], gone, {"at": at + 10})


def test_a_cube_follows_a_source_from_where_it_stands(spec, state):
    cube = ss.live.follow(Numbers(20), state, spec=spec)
    assert cube.positions == {"numbers": {"at": 20}}
    assert cube.merge() == ss.sketch(X[:20], spec)

    cube = ss.live.follow(Numbers(100), state)
    assert cube.merge() == ss.sketch(X[10:100], spec)


def test_following_stops_where_it_is_told(spec, state):
    cube = ss.live.follow(Numbers(100), state, spec=spec, until={"at": 50})

    assert cube.positions["numbers"] == {"at": 50}
    with pytest.raises(DataError, match="no position"):
        ss.live.follow(Numbers(100), state, until={"at": 55})


def test_a_state_takes_the_same_plan_again_and_refuses_another(state):
    """What else it refuses is in the tests of the command."""
    ss.live.follow(Numbers(400), state, n_clusters=3)
    cube = ss.live.follow(Numbers(410), state, n_clusters=3, seed=0)

    with pytest.raises(DataError, match=r"has its own seed 0.*Leave seed out"):
        ss.live.follow(Numbers(430), state, n_clusters=3, seed=1)
    assert cube.merge() == ss.sketch(X[10:410], cube.spec)


def test_what_cannot_be_followed_is_refused_without_its_password(spec, state):
    for source, words in (
        (state.with_name("nowhere"), "it is no folder, and does not begin with one of"),
        (X, "cannot follow ndarray"),
        ("https://me:hunter2@host/in", "the web has no folders that can be listed"),
        ("xyz://me:hunter2@host/in", "xyz:// is no protocol"),
    ):
        with pytest.raises(DataError, match=words) as error:
            ss.live.follow(source, state, spec=spec)
        assert "hunter2" not in str(error.value)


# Folders, here and in stores. What servers and faults add is in test_stores.py.


class Folder:
    """A folder of this machine, or of fsspec's store in memory, and the rows of its files."""

    def __init__(self, kind, path):
        self.kind, self.path, self.files = kind, path, fsspec.filesystem(kind)
        self.address = str(path) if kind == "file" else f"{kind}://{path}"
        self.rows = {}

    def put(self, name, rows):
        """Write a file whose time tells nothing."""
        np.save(file := io.BytesIO(), rows)
        path = self.path / name
        self.files.makedirs(str(path.parent), exist_ok=True)
        self.files.pipe(str(path), file.getvalue())
        self.rows[name] = rows
        if self.kind == "file":
            os.utime(path, (0, 0))

    def remove(self, name):
        self.files.rm(f"{self.path}/{name}")
        del self.rows[name]

    def sketch(self, spec):
        return ss.sketch(np.concatenate([np.empty((0, 2)), *self.rows.values()]), spec)


@pytest.fixture(params=["file", "memory"])
def folder(request, tmp_path):
    made = Folder(request.param, tmp_path / "in")
    made.put("stays.npy", X[:7])
    return made


only_here = pytest.mark.parametrize("folder", ["file"], indirect=True)
only_in_a_store = pytest.mark.parametrize("folder", ["memory"], indirect=True)


def test_a_folder_is_followed_through_any_changes(folder, state):
    """Also where a reader of another package gets copies of the files of a store."""
    ss.data.register_format(".rows", lambda path, request: np.load(path))
    rng = random.Random(0)
    cube = ss.live.follow(folder.address, state, n_clusters=3)
    for _ in range(25):
        for _ in range(rng.randrange(4)):
            name = f"day={rng.randrange(3)}/{rng.choice('ab')}.{rng.choice(['npy', 'rows'])}"
            if name in folder.rows and rng.random() < 0.4:
                folder.remove(name)
            else:
                folder.put(name, X[rng.randrange(800) :][: rng.choice([10, 11])])
        ss.live.follow(folder.address + "/", state)
        assert cube.merge().to_bytes() == folder.sketch(cube.spec).to_bytes()
    version = cube.version
    ss.live.follow(f"folder:{folder.address}", state)

    assert cube.version == version
    assert list(cube.positions) == [f"folder:{folder.address}"]


def test_files_that_go_or_are_written_anew_while_they_are_read_end_no_follower(
    folder, state, monkeypatch
):
    """They change after they were listed, before they are opened: the next look knows."""
    listed, changing = FolderSource._list, ["day/a.npy", "b.npy", "day/c.npy", "d.npy"]
    for name in changing:
        folder.put(name, X[100:200])

    def list_and_change(self, known):
        found = listed(self, known)
        if changing:
            name = changing.pop(0)
            if name.startswith("day/"):
                folder.remove(name)
            else:
                folder.put(name, X[300 : 400 + len(changing)])
        return found

    monkeypatch.setattr(FolderSource, "_list", list_and_change)
    cube = ss.live.follow(folder.address, state, n_clusters=2)  # the first ones go while it plans
    ss.live.follow(folder.address, state)

    assert not changing
    assert cube.merge() == folder.sketch(cube.spec)


@only_here
def test_a_folder_whose_files_always_go_is_given_up(folder, state, monkeypatch):
    cube = ss.live.follow(folder.address, state, n_clusters=2)
    listed, asked = FolderSource._list, []

    def show_ghost(self, known):
        asked.append(1)
        return {**listed(self, known), "ghost.npy": [1, 1, 1]}

    monkeypatch.setattr(FolderSource, "_list", show_ghost)
    with pytest.raises(DataError, match=r"ghost\.npy"):
        ss.live.follow(folder.address, state)

    assert len(asked) == 10
    assert cube.merge() == folder.sketch(cube.spec)


@only_here
def test_a_folder_that_cannot_be_listed_is_refused_and_nothing_is_subtracted(
    folder, spec, state, monkeypatch
):
    folder.put("day/b.npy", X[100:200])
    cube = ss.live.follow(folder.address, state, spec=spec)
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "day":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        with pytest.raises(DataError, match=r"cannot list .*day.* Its files would count as gone"):
            ss.live.follow(folder.address, state)

    assert cube.merge() == folder.sketch(spec)


@only_in_a_store
def test_what_a_listing_leaves_out_is_looked_at_before_it_counts_as_gone(
    folder, spec, state, monkeypatch
):
    """As fsspec leaves folders out that it cannot list."""
    folder.put("day/b.npy", X[100:200])
    folder.put("day/c.npy", X[200:300])
    cube = ss.live.follow(folder.address, state, spec=spec)
    find = type(folder.files).find

    def leave_out(self, *words, **options):
        found = find(self, *words, **options)
        return {name: info for name, info in found.items() if "/day/" not in name}

    monkeypatch.setattr(type(folder.files), "find", leave_out)
    folder.remove("day/b.npy")
    ss.live.follow(folder.address, state)

    assert cube.merge() == folder.sketch(spec)
    assert cube.merge().count == 107


def test_a_folder_that_is_gone_is_refused_and_an_empty_one_is_an_answer(folder, spec, state):
    path = str(folder.path)
    cube = ss.live.follow(folder.address, state, spec=spec)
    folder.remove("stays.npy")
    folder.files.rmdir(path)
    with pytest.raises(DataError, match=rf"there is no (folder )?'{folder.address}' to "):
        ss.live.follow(f"folder:{folder.address}", state)
    assert cube.merge().count == 7

    folder.files.mkdir(path)
    assert ss.live.follow(folder.address, state).merge().count == 0


def test_folders_that_overlap_are_refused_and_nothing_counts_twice(folder, spec, state):
    folder.put("day/b.npy", X[100:200])
    beside = Folder(folder.kind, folder.path.with_name("in-of-others"))
    beside.put("b.npy", X[300:500])
    ss.live.follow(folder.address, state, spec=spec)

    for address in (f"{folder.address}/day", folder.address.removesuffix("/in")):
        with pytest.raises(DataError, match="files in common with it, which would count twice"):
            ss.live.follow(address, state)

    cube = ss.live.follow(beside.address, state)
    assert cube.merge() == folder.sketch(spec) + beside.sketch(spec)


def test_a_folder_of_a_store_has_one_name_under_all_its_addresses():
    for name, alias in (("gs://b/x", "gcs://b/x/"), ("az://c/x", "abfs://c@a.dfs.example/x")):
        assert open_changes(name).name == open_changes(alias).name == f"folder:{name}"
