"""Data that changes, and what follows it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.data.changes import Change, open_changes

X = np.random.default_rng(0).normal(size=(900, 2))
SPEC = ss.plan(X, 3, seed=0)


class Numbers:
    """Rows 0 .. n that come ten at a time; the change to position 30 takes the first ten away."""

    name = "numbers"

    def __init__(self, n: int) -> None:
        self.n = n

    def changes(self, since):
        for at in range(0 if since is None else since["at"], self.n, 10):
            gone = X[:10] if at == 20 else None
            yield Change(X[at : at + 10], gone, {"at": at + 10})


def test_a_cube_follows_a_source_from_where_it_stands(tmp_path):
    cube = ss.follow(Numbers(20), tmp_path / "state", spec=SPEC)
    assert cube.positions == {"numbers": {"at": 20}}
    assert cube.merge() == ss.sketch(X[:20], SPEC)

    cube = ss.follow(Numbers(100), tmp_path / "state")
    assert cube.merge() == ss.sketch(X[10:100], SPEC)


def test_following_stops_where_it_is_told(tmp_path):
    cube = ss.follow(Numbers(100), tmp_path / "state", spec=SPEC, until={"at": 50})

    assert cube.positions["numbers"] == {"at": 50}
    with pytest.raises(ss.DataError, match="no position"):
        ss.follow(Numbers(100), tmp_path / "state", until={"at": 55})


def test_files_of_a_folder_come_change_and_go(tmp_path):
    folder, state = tmp_path / "data", tmp_path / "state"
    folder.mkdir()
    for i in range(3):
        np.save(folder / f"{i}.npy", X[100 * i : 100 * i + 100])
    cube = ss.follow(folder, state, n_clusters=3, seed=0)
    assert cube.merge() == ss.sketch(X[:300], cube.spec)

    (folder / "0.npy").unlink()
    np.save(folder / "1.npy", X[500:650])
    ss.follow(str(folder), state)
    left = np.concatenate([X[200:300], X[500:650]])
    assert cube.merge() == ss.sketch(left, cube.spec)
    version = cube.version
    ss.follow(f"folder:{folder}", state)
    assert cube.version == version


def test_what_cannot_be_followed_is_said(tmp_path):
    with pytest.raises(ss.DataError, match="no folder"):
        open_changes(str(tmp_path / "nowhere"))
    with pytest.raises(ss.DataError, match="cannot follow ndarray"):
        open_changes(X)


def test_a_folder_that_cannot_be_listed_is_refused_and_nothing_is_subtracted(tmp_path, monkeypatch):
    folder = tmp_path / "in"
    (folder / "day").mkdir(parents=True)
    for name in ("a.npy", "day/b.npy"):
        np.save(folder / name, np.random.default_rng(0).normal(size=(50, 2)))
    cube = ss.follow(folder, tmp_path / "state", n_clusters=2)
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "day":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ss.DataError, match=r"cannot list .*day.* Its files would count as gone"):
        ss.follow(folder, tmp_path / "state")
    monkeypatch.undo()

    assert ss.Cube.open(tmp_path / "state").merge().count == cube.merge().count == 100


def test_a_file_of_the_same_size_and_time_is_another_one(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = np.random.default_rng(0).normal(size=(2, 50, 2))
    np.save(folder / "a.npy", rows[0])
    cube = ss.follow(folder, tmp_path / "state", n_clusters=2)
    stamp = (folder / "a.npy").stat()
    np.save(folder / "a.npy", rows[1])
    os.utime(folder / "a.npy", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    ss.follow(folder, tmp_path / "state")

    assert ss.Cube.open(tmp_path / "state").merge() == ss.sketch(rows[1], cube.spec)
