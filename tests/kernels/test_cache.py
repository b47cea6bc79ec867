"""Machine code kept on disk: never stale, and never needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sketchshift as ss

SRC = Path(ss.__file__).parent
SKETCH = """
import numpy as np, sketchshift as ss
X = np.linspace(0, 1, 40).reshape(20, 2)
spec = ss.SketchSpec(2, 8, 0.3)
for kernel in ("cpu", "reference"):
    print(ss.sketch(X, spec, kernel=kernel).to_bytes().hex())
"""


def run(folder: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SKETCH],
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_code_compiled_from_other_sources_is_not_used_again(tmp_path):
    """Numba looks at the file of the function alone; a constant may stand in another."""
    shutil.copytree(SRC, tmp_path / "sketchshift", ignore=shutil.ignore_patterns("__pycache__"))
    before, _ = run(tmp_path)
    contract = tmp_path / "sketchshift" / "kernels" / "contract.py"
    text = contract.read_text(encoding="utf-8")
    assert "-19.739208221435547" in text
    contract.write_text(text.replace("-19.739208221435547", "-19.74"), encoding="utf-8")

    after, reference = run(tmp_path)

    assert after == reference
    assert after != before


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a path that is no folder")
def test_without_a_folder_for_machine_code_it_is_compiled_in_memory(tmp_path):
    """Read-only containers: no writable package, home or temporary cache."""
    cpu, reference = run(SRC.parent, NUMBA_CACHE_DIR="/dev/null/nowhere")

    assert cpu == reference
