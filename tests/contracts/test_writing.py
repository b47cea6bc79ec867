"""Files are written whole or not at all, and killed writers leave nothing that stays."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import threading
import time

import pytest

from sketchshift._writing import opened_atomically, write_atomically

OLD, NEW = b"old" * 1000, b"new" * 1_000_000

WRITER = """
import sys
from pathlib import Path
from sketchshift._writing import write_atomically
print("ready", flush=True)
while True:
    write_atomically(Path(sys.argv[1]), b"new" * 1_000_000)
"""

HOLDER = """
import sys, time
from pathlib import Path
from sketchshift._writing import opened_atomically
with opened_atomically(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


def start(script, path):
    """A process that says when it has begun to write."""
    words = [sys.executable, "-c", script, str(path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process):
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("n_kills", [2, pytest.param(12, marks=pytest.mark.thorough)])
def test_writers_killed_at_any_moment_leave_a_whole_file_and_nothing_beside_it_in_the_end(
    tmp_path, n_kills
):
    path, moments = tmp_path / "a.sketch", random.Random(0)
    path.write_bytes(OLD)

    for _ in range(n_kills):
        process = start(WRITER, path)
        time.sleep(moments.uniform(0.0, 0.05))
        kill(process)
        assert path.read_bytes() in (OLD, NEW)
    holder = start(HOLDER, path)
    kill(holder)
    assert len(list(tmp_path.iterdir())) > 1  # so that there is something to sweep
    write_atomically(path, OLD)

    assert [file.name for file in tmp_path.iterdir()] == ["a.sketch"]
    assert path.read_bytes() == OLD


def test_a_living_writer_is_not_swept_and_neither_are_other_targets_or_strangers(tmp_path):
    path = tmp_path / "a.sketch"
    holder, other = start(HOLDER, path), start(HOLDER, tmp_path / "b.sketch")
    kill(other)
    (tmp_path / ".mine.tmp").write_bytes(b"")
    before = set(tmp_path.iterdir())
    assert len(before) == 3

    write_atomically(path, NEW)

    assert set(tmp_path.iterdir()) == before | {path}
    kill(holder)
    write_atomically(path, NEW)
    write_atomically(tmp_path / "b.sketch", NEW)
    assert {file.name for file in tmp_path.iterdir()} == {".mine.tmp", "a.sketch", "b.sketch"}


def test_many_writers_of_one_file_at_once_do_not_disturb_one_another(tmp_path):
    path, failures = tmp_path / "a.sketch", []

    def write(i):
        try:
            for _ in range(50):
                write_atomically(path, bytes([i]) * 1000)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert [file.name for file in tmp_path.iterdir()] == ["a.sketch"]
    assert len(set(path.read_bytes())) == 1


def test_a_body_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "a.sketch"
    path.write_bytes(OLD)

    def fail():
        with opened_atomically(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed_and_who_may_read_stays(tmp_path):
    path, link = tmp_path / "real.sketch", tmp_path / "link.sketch"
    path.write_bytes(OLD)
    path.chmod(0o640)
    link.symlink_to(path)

    write_atomically(link, NEW)

    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_nobody_else_can_read_a_draft_of_a_private_file(tmp_path):
    path = tmp_path / "a.sketch"
    path.write_bytes(OLD)
    path.chmod(0o600)

    with opened_atomically(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


def test_a_new_file_may_be_read_as_the_mask_says(tmp_path):
    mask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a.sketch", NEW)
    finally:
        os.umask(mask)

    assert stat.S_IMODE((tmp_path / "a.sketch").stat().st_mode) == 0o640


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("a" * 248 + ".sketch")

    write_atomically(path, NEW)

    assert path.read_bytes() == NEW
