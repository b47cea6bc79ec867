"""Ten ways to go wrong, each tried as a person would: a process of its own in a shell.

Every one must end with one sentence, a status other than 0, no traceback, and without a new
file, whole or half-written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

PROGRAM = Path(sys.executable).with_name("sketchshift")


class Attempt:
    """Runs a command that must fail, and looks at what it leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def __call__(self, *words: str) -> str:
        before = self.files()
        result = subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode in (1, 2), result.stderr
        assert result.stdout == ""
        assert self.files() == before
        return self.sentence(result.stderr)

    @staticmethod
    def sentence(text: str) -> str:
        """The one paragraph behind ``Error:``; for misuse click puts the usage before it."""
        assert "Traceback" not in text
        usage, _, message = text.rpartition("Error: ")
        assert usage == "" or usage.startswith("Usage: ")
        assert message.strip().endswith(".")
        return " ".join(message.split())


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    (tmp_path / "points.csv").write_text(
        "x,y\n" + "".join(f"{i % 7},{i % 11}\n" for i in range(100))
    )
    return Attempt(tmp_path)


def test_a_missing_file(attempt: Attempt) -> None:
    said = attempt("cluster", "ponits.csv", "-k", "3", "-o", "out.csv")
    assert said == "there is no file 'ponits.csv'. Check the name and the folder."


def test_a_column_of_text(attempt: Attempt) -> None:
    (attempt.folder / "people.csv").write_text("name,age\nAda,36\nEmmy,53\n")
    said = attempt("cluster", "people.csv", "-k", "2", "-o", "out.csv", "--columns", "name,age")
    assert "column 'name' (text) cannot be read as numbers" in said
    assert "Choose numeric ones with --columns age." in said


def test_more_clusters_than_rows(attempt: Attempt) -> None:
    (attempt.folder / "few.csv").write_text("x,y\n1,2\n3,4\n5,6\n")
    said = attempt("cluster", "few.csv", "-k", "5", "-o", "out.csv")
    assert "3 rows" in said
    assert "5 clusters" in said


def test_an_unreadable_sketch(attempt: Attempt) -> None:
    (attempt.folder / "week.sketch").write_bytes(b"\x00" * 500)
    said = attempt("cluster", "week.sketch", "-k", "3", "-o", "out.csv")
    assert said.startswith("week.sketch: the first bytes are not those of a sketch file")


def test_sketches_of_different_plans(attempt: Attempt) -> None:
    for seed in (0, 1):
        spec = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0, seed=seed)
        ss.sketch(attempt.folder / "points.csv", spec).save(attempt.folder / f"{seed}.sketch")
    said = attempt("merge", "0.sketch", "1.sketch", "-o", "out.sketch")
    assert "cannot merge sketches that were made with different plans" in said
    assert "Make one plan, `sketchshift plan DATA" in said


def test_a_condition_on_an_unknown_column(attempt: Attempt) -> None:
    table = ss.sketch_by(np.eye(2), by=np.array(["a", "b"]), n_clusters=1)
    table.to_parquet(attempt.folder / "sketches.parquet")
    said = attempt("merge", "sketches.parquet", "--where", "kye = 'a'", "-o", "out.sketch")
    assert "there is no column 'kye'. Did you mean 'key'? It may name 'key', 'count'." in said


@pytest.mark.skipif(sys.platform != "linux", reason="permissions are those of Linux")
def test_an_output_folder_that_cannot_be_written(attempt: Attempt) -> None:
    locked = attempt.folder / "locked"
    locked.mkdir(mode=0o555)
    if os.geteuid() == 0:  # who may write everywhere but among the files of the kernel
        locked = Path("/sys")
    said = attempt("cluster", "points.csv", "-k", "3", "-o", f"{locked}/out.csv")
    assert said.startswith(f"cannot write '{locked}/out.csv': Permission denied. Choose another")


def test_an_interrupted_run(attempt: Attempt, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ctrl-C while the rows are read: the old output stays, and no part of a new one is there."""
    path = tmp_path_factory.mktemp("many") / "rows.npy"
    # rows for many seconds, in a file of holes
    rows = np.lib.format.open_memmap(path, "w+", "f8", (10**8, 2))
    rows[:1000] = np.random.default_rng(0).normal(size=(1000, 2))
    (attempt.folder / "out.sketch").write_bytes(b"old")
    before = attempt.files()
    words = ["sketch", str(path), "-k", "3", "-o", "out.sketch"]
    terminal, stderr = pytest.importorskip("pty").openpty()
    process = subprocess.Popen([PROGRAM, *words], cwd=attempt.folder, stderr=stderr)
    os.close(stderr)
    heard = ""
    while "Reading" not in heard:
        heard += os.read(terminal, 1024).decode()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # how Linux ends a terminal
        while more := os.read(terminal, 1024):
            heard += more.decode()
    os.close(terminal)
    process.wait(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in heard
    assert "Aborted!" in heard
    assert attempt.files() == before


def test_a_missing_number_far_down(attempt: Attempt) -> None:
    x = np.zeros(20_000)
    x[12345] = np.nan
    pq.write_table(pa.table({"x": x, "y": np.arange(20_000.0)}), attempt.folder / "gap.parquet")
    words = ["--columns", "x,y", "--on-invalid", "raise"]
    said = attempt("cluster", "gap.parquet", "-k", "3", "-o", "out.csv", *words)
    assert "row 12345 of gap.parquet has nan in column 'x'" in said
    assert "--on-invalid skip" in said


def test_a_broken_line_of_csv(attempt: Attempt) -> None:
    lines = [f"{i % 7},{i % 11}\n" for i in range(5000)]
    lines[4321] = "1,2,3\n"
    (attempt.folder / "broken.csv").write_text("x,y\n" + "".join(lines))
    said = attempt("cluster", "broken.csv", "-k", "3", "-o", "out.csv")
    assert "broken.csv: row 4321 (data rows count from 0) has 3 cells" in said
    assert "Correct the line, or say what separates the cells: --csv separator=" in said
