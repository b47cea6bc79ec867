"""A Parquet lake that need not fit in memory.

Forty files with 4 million rows are written one after the other, then read once into a sketch of
19 kB. Printed are the peak of the memory, which hardly grows from one file to forty, and the
error of the centroids on rows from all along it, beside k-means on the one file that would fit.

    python examples/01_parquet_lake.py [folder for the lake]
"""

import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sketchshift as ss

N_FILES, ROWS, D, K = 40, 100_000, 10, 10
COLUMNS = [f"x{i}" for i in range(D)]
MEANS = np.random.default_rng(0).normal(scale=2.0, size=(K, D))


def write_file(path: Path, number: int) -> None:
    """One day of the lake, in row groups; clusters wax and wane over the days."""
    rng = np.random.default_rng([1, number])
    phases = np.arange(K) / K + number / N_FILES
    shares = 1.05 + np.cos(2 * np.pi * phases)
    labels = rng.choice(K, size=ROWS, p=shares / shares.sum())
    X = MEANS[labels] + rng.normal(size=(ROWS, D))
    pq.write_table(
        pa.table(dict(zip(COLUMNS, X.T, strict=True))), path,
        row_group_size=20_000, use_dictionary=False,
    )  # fmt: skip


def rows_of(path: Path) -> np.ndarray:
    """One file in memory."""
    return np.column_stack([column.to_numpy() for column in pq.read_table(path).columns])


def peak_megabytes() -> float:
    """The most memory that this process has had so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as folder:
    files = [Path(folder) / f"day-{number:02}.parquet" for number in range(N_FILES)]
    for number, file in enumerate(files):
        write_file(file, number)
    on_disk = sum(file.stat().st_size for file in files) / 1e6
    print(f"the lake: {N_FILES} files, {N_FILES * ROWS:,} rows x {D} columns, {on_disk:.0f} MB")

    spec = ss.plan(folder, n_clusters=K)  # from a few thousand rows across all files
    first = ss.sketch(files[0], spec)
    after_one = peak_megabytes()
    lake = ss.sketch(folder, spec)
    after_all = peak_megabytes()
    more = on_disk * (1 - 1 / N_FILES)
    print(f"peak memory, one file read:   {after_one:.0f} MB, libraries and compiled code mostly")
    print(f"peak memory, all files read:  {after_all:.0f} MB, for {more:.0f} MB more of rows")
    print(f"the sketch: {lake.count:,} rows in {lake.nbytes:,} bytes")

    parts = (ss.sketch(file, spec) for file in files)  # as if each had its own machine
    print(f"the sum of {N_FILES} sketches is the sketch of the lake: {sum(parts) == lake}")

    decoding = ss.decode(lake, n_clusters=K)
    contenders = {
        "decoded from the sketch": decoding.centroids,
        "k-means on the first file": ss.lloyd(rows_of(files[0]), K),
        "the means the rows were drawn around": MEANS,
    }
    errors = np.zeros(len(contenders))
    for file in files[::4]:  # a second look, only to judge
        X = rows_of(file)
        errors += [ss.mse(X, centroids) for centroids in contenders.values()]
    print("\nmean squared error on every fourth file, as a ratio to that of the last")
    for name, error in zip(contenders, errors, strict=True):
        print(f"  {name:<38}{error / errors[-1]:.4f}")
