"""Memory stays flat however many rows are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MILLION = 1_000_000

SKETCH = """
import resource, sys
import sketchshift as ss
spec = ss.SketchSpec(4, 64, bandwidth=1.0, columns=("a", "b", "c", "d"))
assert ss.sketch(sys.argv[1], spec, n_threads=2).count == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write_parquet(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in "abcd"])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(n_rows // MILLION):
            columns = [rng.normal(size=MILLION).astype(np.float32) for _ in "abcd"]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=MILLION)


def peak_kilobytes(path: Path, n_rows: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", SKETCH, str(path), str(n_rows)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


@pytest.mark.slow
def test_twenty_million_rows_need_the_memory_of_two(tmp_path):
    """Peak resident memory of a process of its own, within 10 %; least of two runs each."""
    peaks = {}
    for millions in (2, 20):
        path = tmp_path / f"{millions}.parquet"
        write_parquet(path, millions * MILLION)
        peaks[millions] = min(peak_kilobytes(path, millions * MILLION) for _ in range(2))

    assert peaks[20] < 1.1 * peaks[2], peaks


SLICES = """
import resource, sys
import numpy as np
import sketchshift as ss
n, rng = int(sys.argv[1]), np.random.default_rng(0)
X, labels = rng.normal(size=(2_000_000, 10)), rng.integers(n, size=2_000_000)
spec = ss.plan(X, n_clusters=10)
ss.sketch_by(X[:1000], labels[:1000] % 3, spec)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
held = ss.sketch_by(X, labels, spec, n_threads=2).n_bytes
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), held)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 1000, 9000, 100_000])
def test_a_pass_by_key_needs_twice_the_memory_of_its_slices_and_a_block(n):
    words = [sys.executable, "-c", SLICES, str(n)]

    done = subprocess.run(words, check=True, capture_output=True, text=True)

    peak, held = map(int, done.stdout.split())
    assert peak < 2.0 * held + 100e6
