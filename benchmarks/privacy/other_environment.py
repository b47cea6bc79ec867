"""diffprivlib's k-means, in an interpreter of its own: it needs an older scikit-learn."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privacy.data import K, Rows

NAME = "diffprivlib"
WORKER = Path(__file__).with_name("worker.py")


def is_usable(python: str | None) -> bool:
    """Whether that interpreter has the package."""
    if python is None:
        return False
    check = [python, "-c", "import diffprivlib.models"]
    return subprocess.run(check, capture_output=True).returncode == 0


def centroids(
    python: str, data: Rows, asked: Sequence[tuple[float, int]]
) -> dict[tuple[float, int], np.ndarray]:
    """Centroids for each (epsilon, seed), from one start of the interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, data.X)
        line = [python, "-W", "ignore", str(WORKER), str(path), str(K), json.dumps(list(asked))]
        done = subprocess.run(line, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return {key: np.array(value) for key, value in zip(asked, found, strict=True)}
