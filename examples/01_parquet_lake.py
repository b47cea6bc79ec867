"""A Parquet lake that need not fit in memory
==========================================

4 million rows in 40 Parquet files are read once into 19 kB, and memory stays flat.

Printed are the peak of the memory, and the error of the centroids on rows from all along the
lake, beside k-means on the one file that would fit. Saves a picture of the memory and the clusters.

Run it::

    python examples/01_parquet_lake.py [folder]
"""

import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
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


with tempfile.TemporaryDirectory(dir=folder) as lake_folder:
    files = [Path(lake_folder) / f"day-{number:02}.parquet" for number in range(N_FILES)]
    for number, file in enumerate(files):
        write_file(file, number)
    on_disk = sum(file.stat().st_size for file in files) / 1e6
    print(f"the lake: {N_FILES} files, {N_FILES * ROWS:,} rows x {D} columns, {on_disk:.0f} MB")

    spec = ss.plan(lake_folder, n_clusters=K)  # from a few thousand rows across all files
    parts, peaks = [], []
    for file in files:  # as if each had its own machine
        parts.append(ss.sketch(file, spec))
        peaks.append(peak_megabytes())
    lake = ss.sketch(lake_folder, spec)
    peaks[-1] = peak_megabytes()
    more = on_disk * (1 - 1 / N_FILES)
    print(f"peak memory, one file read:   {peaks[0]:.0f} MB, libraries and compiled code mostly")
    print(f"peak memory, all files read:  {peaks[-1]:.0f} MB, for {more:.0f} MB more of rows")
    print(f"the sketch: {lake.count:,} rows in {lake.nbytes:,} bytes")
    print(f"the sum of {N_FILES} sketches is the sketch of the lake: {sum(parts) == lake}")

    decoding = ss.decode(lake, n_clusters=K)
    contenders = {
        "decoded from the sketch": decoding.centroids,
        "k-means on the first file": ss.metrics.lloyd(rows_of(files[0]), K),
        "the means the rows were drawn around": MEANS,
    }
    errors = np.zeros(len(contenders))
    for file in files[::4]:  # a second look, only to judge
        X = rows_of(file)
        errors += [ss.metrics.mse(X, centroids) for centroids in contenders.values()]
    print("\nmean squared error on every fourth file, as a ratio to that of the last")
    for name, error in zip(contenders, errors, strict=True):
        print(f"  {name:<38}{error / errors[-1]:.4f}")

figure = Figure(figsize=(11, 4.5), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=(2, 3))
left.plot(np.linspace(0, more, N_FILES), label="rows read, MB on disk")
left.plot(np.subtract(peaks, peaks[0]), label="growth of the peak of memory, MB")
left.set(xlabel="files read after the first", title="Reading the lake")
left.legend()
view.plot_centroids(lake, decoding, right)
figure.savefig(folder / "parquet_lake.png", dpi=120)
print(f"\nthe picture: {folder / 'parquet_lake.png'}")
