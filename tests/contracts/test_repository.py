"""The repository speaks of the project alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked_files():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_index_addresses_and_no_paths_of_a_machine():
    pattern = re.compile(r"(?<![\w.])/(?:work|root|home/\w+)/|--(?:extra-)?index-url|\.whl\b")

    for path in tracked_files():
        if path.suffix in {".npz", ".png", ".sketch"} or path == Path(__file__):
            continue
        assert not pattern.search(path.read_text(encoding="utf-8")), path


def test_no_pickle_is_read():
    """No read path unpickles: `__reduce__` is built on the format."""
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (pickle|cloudpickle|marshal)\b", text, re.M), path
        assert "allow_pickle=True" not in text, path
