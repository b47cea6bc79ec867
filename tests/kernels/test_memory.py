"""How much memory a process may still take, of a made-up machine."""

from __future__ import annotations

import math
import os
import resource

import pytest

from sketchshift.kernels.memory import free_memory

V2 = {"memory.max": "900\n", "memory.current": "500\n", "memory.stat": "anon 1\ninactive_file 30\n"}
V1 = {"memory.limit_in_bytes": "800", "memory.usage_in_bytes": "600"}


@pytest.fixture
def write(tmp_path):
    """Writes files of a machine with a megabyte of free memory."""

    def write(folder: str, files: dict[str, str]):
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    write("proc", {"meminfo": "MemTotal: 2048 kB\nMemAvailable:    1024 kB\n"})
    return write


def test_without_limits_it_is_what_the_machine_has_left(write):
    assert free_memory(write("proc", {"self/cgroup": "0::/\n"})) == 2**20


@pytest.mark.parametrize(
    ("group", "folder", "files", "free"),
    [
        ("0::/a/b\n", "sys/fs/cgroup/a", V2, 430),  # files that can be dropped are free
        ("0::/of/the/host\n", "sys/fs/cgroup", V2, 430),  # within a container
        ("0::/a\n", "sys/fs/cgroup/a", V2 | {"memory.max": "max"}, 2**20),
        ("5:cpu:/\n4:memory:/a\n", "sys/fs/cgroup/memory/a", V1, 200),
        ("4:memory:/a\n", "sys/fs/cgroup/memory", V1 | {"memory.usage_in_bytes": "900"}, 0),
    ],
)
def test_the_limit_of_a_container_counts(write, group, folder, files, free):
    write("proc", {"self/cgroup": group})

    assert free_memory(write(folder, files)) == free


@pytest.mark.parametrize(("kind", "used"), [("RLIMIT_AS", 100), ("RLIMIT_DATA", 40)])
def test_the_limit_of_the_process_counts(write, monkeypatch, kind, used):
    limits = {getattr(resource, kind): 150 * resource.getpagesize()}
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, unlimited), 0))

    root = write("proc", {"self/statm": "100 30 9 5 0 40 0\n"})

    assert free_memory(root) == (150 - used) * resource.getpagesize()


def test_where_nothing_is_known_there_is_no_limit(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf")

    assert free_memory(tmp_path) == math.inf
