"""Many writers of one cube, some of which are killed: nothing is lost, nothing counts twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sketchshift as ss

X = np.random.default_rng(0).normal(size=(4000, 2))
SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5)

APPENDER = """
import sys, numpy as np, sketchshift as ss
X = np.random.default_rng(0).normal(size=(4000, 2))
cube, first = ss.live.Cube.open(sys.argv[1]), int(sys.argv[2])
for at in range(first, first + 1000, 50):
    rows = slice(at, at + 50)
    cube.append(ss.sketch_by(X[rows], by=np.arange(at, at + 50) % 7, spec=cube.spec))
"""

FOLLOWER = """
import sys, sketchshift as ss
ss.live.follow(sys.argv[1], sys.argv[2])
"""


def start(code: str, *words: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)])


def test_concurrent_appenders_lose_nothing(tmp_path):
    """Four real processes, and a reader that puts parts together meanwhile."""
    cube = ss.live.Cube.create(tmp_path / "cube", SPEC, by="key")

    writers = [start(APPENDER, cube.path, first) for first in range(0, 4000, 1000)]
    while any(writer.poll() is None for writer in writers):
        cube.compact()
        assert cube.merge().count % 50 == 0

    assert [writer.returncode for writer in writers] == [0] * 4
    cube.compact()
    assert cube.table() == ss.sketch_by(X, by=np.arange(4000) % 7, spec=SPEC)
    assert len(list((cube.path / "parts").iterdir())) == 1


def test_only_one_of_two_writers_moves_a_position(tmp_path):
    ss.live.Cube.create(tmp_path / "cube", SPEC)
    a, b = ss.live.Cube.open(tmp_path / "cube"), ss.live.Cube.open(tmp_path / "cube")
    sketch = ss.sketch(X[:10], SPEC)

    a.append(sketch, positions={"s": 1}, expected={"s": None})
    with pytest.raises(ss.errors.ConflictError):
        b.append(sketch, positions={"s": 1}, expected={"s": None})

    assert b.merge().count == 10
    assert len(list((a.path / "parts").iterdir())) == 1


def change(folder, rng: random.Random, at: int) -> int:
    """Two files come, and some go or are written anew."""
    files = sorted(folder.iterdir())
    for file in rng.sample(files, min(len(files), rng.randrange(3))):
        if rng.random() < 0.5:
            file.unlink()
        else:
            np.save(file, X[rng.randrange(3000) :][: rng.randrange(1, 90)])
    for i in range(2):
        np.save(folder / f"{at + i:05d}.npy", X[rng.randrange(3000) :][: rng.randrange(1, 90)])
    return at + 2


def rows_in(folder) -> np.ndarray:
    return np.concatenate([np.load(file) for file in sorted(folder.iterdir())])


@pytest.mark.slow
def test_a_killed_follower_goes_on_and_two_at_once_count_each_row_once(tmp_path):
    """Twenty kills at random moments, each beside a second runner that lives."""
    folder, state, rng = tmp_path / "data", tmp_path / "state", random.Random(0)
    folder.mkdir()
    at = change(folder, rng, 0)
    cube, n_killed = ss.live.follow(folder, state, spec=SPEC), 0
    began = time.monotonic()
    start(FOLLOWER, folder, state).wait()
    usual = time.monotonic() - began
    while n_killed < 20:
        at = change(folder, rng, at)
        victim, other = start(FOLLOWER, folder, state), start(FOLLOWER, folder, state)
        time.sleep(rng.uniform(0.5, 1.0) * usual)
        os.kill(victim.pid, signal.SIGKILL)
        n_killed += victim.wait() == -signal.SIGKILL
        assert other.wait() == 0
        assert cube.merge().to_bytes() == ss.sketch(rows_in(folder), SPEC).to_bytes()
    cube.compact()
    assert cube.merge() == ss.sketch(rows_in(folder), SPEC)


COMMITTER = """
import sys, sketchshift as ss
from sketchshift.live.changes import Change
import numpy as np
X = np.random.default_rng(0).normal(size=(4000, 2))
class Rows:
    name = "rows"
    def changes(self, since):
        for at in range(0 if since is None else since["at"], 4000, 5):
            gone = X[at - 50 : at - 48] if at >= 50 else None
            yield Change(X[at : at + 5], gone, {"at": at + 5})
            print("committed", flush=True)
ss.live.follow(Rows(), sys.argv[1])
"""


def test_sums_and_position_agree_after_every_kill(tmp_path):
    """Kill -9 at 20 random moments within a stream of small commits that add and take away."""
    cube, rng = ss.live.Cube.create(tmp_path / "cube", SPEC), random.Random(1)
    n_killed = 0
    while n_killed < 20:
        runner = subprocess.Popen(
            [sys.executable, "-c", COMMITTER, cube.path], stdout=subprocess.PIPE
        )
        runner.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.2))
        runner.kill()
        n_killed += runner.wait() == -signal.SIGKILL
        runner.stdout.close()
        at = cube.positions["rows"]["at"]
        gone = [row for start in range(50, at, 5) for row in (start - 50, start - 49)]
        left = np.delete(X[:at], gone, axis=0)
        assert cube.merge().to_bytes() == ss.sketch(left, SPEC).to_bytes()
    assert n_killed == 20
    cube.compact()
    assert len(list((cube.path / "parts").iterdir())) == 1
    assert [file.name for file in (cube.path / "drafts").iterdir()] == []
