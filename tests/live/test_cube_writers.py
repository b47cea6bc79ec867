"""Many writers of one cube, some of which are killed: nothing is lost, nothing counts twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import sketchshift as ss

X = np.random.default_rng(0).normal(size=(4000, 2))
SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5)

# A program loads the package once, as far as a write does. The writers are forked from it.
FORKING = """
import os, sys, numpy as np, sketchshift as ss
from sketchshift.live.changes import Change
X = np.random.default_rng(0).normal(size=(4000, 2))
class Rows:
    name = "rows"
    def __init__(self, n):
        self.n = n
    def changes(self, since):
        for at in range(0 if since is None else since["at"], self.n, 5):
            gone = X[at - 50 : at - 48] if at >= 50 else None
            yield Change(X[at : at + 5], gone, {"at": at + 5})
            print("committed", flush=True)
ss.live.follow(Rows(5), sys.argv[1] + "-loaded", n_clusters=1, n_threads=1)
def fork(function, *arguments):
    if (child := os.fork()) == 0:
        function(*arguments)
        os._exit(0)
    return child
def wait_for(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
APPENDERS = """
def append(first):
    cube = ss.live.Cube.open(sys.argv[1])
    for at in range(first, first + 1000, 50):
        rows = slice(at, at + 50)
        cube.append(ss.sketch_by(X[rows], by=np.arange(at, at + 50) % 7, spec=cube.spec))
children = [fork(append, first) for first in range(0, 4000, 1000)]
sys.exit(any([wait_for(child) for child in children]))
"""
FOLLOWERS = """
state, source = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else Rows(4000)
for n in map(int, sys.stdin):
    children = [fork(ss.live.follow, source, state) for _ in range(n)]
    print("forked", children[0], flush=True)
    print("ended", *[wait_for(child) for child in children], flush=True)
"""


def start(code, *words):
    command = [sys.executable, "-c", FORKING + code, *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=1, text=True)


def read_after(word, process):
    """Wait for a line that begins with a word, and return the numbers behind it."""
    line = next(line for line in process.stdout if line.startswith(word))
    return [int(number) for number in line.split()[1:]]


def test_concurrent_appenders_lose_nothing(tmp_path):
    """Four processes, and a reader that puts parts together meanwhile."""
    cube = ss.live.Cube.create(tmp_path / "cube", SPEC, by="key")

    with start(APPENDERS, cube.path) as writers:
        while writers.poll() is None:
            cube.compact()
            assert cube.merge().count % 50 == 0

    assert writers.returncode == 0
    cube.compact()
    assert cube.table() == ss.sketch_by(X, by=np.arange(4000) % 7, spec=SPEC)
    assert len(list((cube.path / "parts").iterdir())) == 1


def test_sums_and_position_agree_after_every_kill(tmp_path):
    """Kill -9 at 20 random moments within a stream of small commits that add and take away."""
    cube, rng = ss.live.Cube.create(tmp_path / "cube", SPEC), random.Random(1)
    with start(FOLLOWERS, cube.path) as followers:
        for _ in range(20):
            followers.stdin.write("1\n")
            (child,) = read_after("forked", followers)
            read_after("committed", followers)
            time.sleep(rng.uniform(0.0, 0.1))
            os.kill(child, signal.SIGKILL)
            assert read_after("ended", followers) == [-signal.SIGKILL]
            at = cube.positions["rows"]["at"]
            gone = np.arange(0, at - 50, 5)
            left = np.delete(X[:at], [*gone, *gone + 1], axis=0)
            assert cube.merge().to_bytes() == ss.sketch(left, SPEC).to_bytes()
    cube.compact()
    assert len(list((cube.path / "parts").iterdir())) == 1
    assert not list((cube.path / "drafts").iterdir())


def change(folder, rng, at):
    """Two files come, and some go or are written anew."""
    files = sorted(folder.iterdir())
    for file in rng.sample(files, min(len(files), rng.randrange(3))):
        if rng.random() < 0.5:
            file.unlink()
        else:
            np.save(file, X[rng.randrange(3000) :][: rng.randrange(1, 90)])
    for i in range(2):
        np.save(folder / f"{at + i:05d}.npy", X[rng.randrange(3000) :][: rng.randrange(1, 90)])


@pytest.mark.slow
def test_a_killed_follower_goes_on_and_two_at_once_count_each_row_once(tmp_path):
    """Twenty kills at random moments, each beside a second follower that lives."""
    folder, state, rng = tmp_path / "data", tmp_path / "state", random.Random(0)
    folder.mkdir()
    change(folder, rng, 0)
    cube, n_killed, at = ss.live.follow(folder, state, spec=SPEC), 0, 2
    with start(FOLLOWERS, state, folder) as followers:
        while n_killed < 20:
            change(folder, rng, at)
            at += 2
            followers.stdin.write("2\n")
            (victim,) = read_after("forked", followers)
            time.sleep(rng.uniform(0.0, 0.1))
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            ended, other = read_after("ended", followers)
            assert other == 0
            n_killed += ended == -signal.SIGKILL
            rows = np.concatenate([np.load(file) for file in sorted(folder.iterdir())])
            assert cube.merge().to_bytes() == ss.sketch(rows, SPEC).to_bytes()
