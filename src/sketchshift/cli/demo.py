"""``sketchshift demo``: the whole story on real data, in seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._paths import Place
from sketchshift._pictures import draw_picture
from sketchshift.cli.command import command
from sketchshift.cli.output import (
    Output,
    check_output,
    cluster_records,
    cluster_table,
    next_step,
    show_progress,
    sketch_record,
)
from sketchshift.decoders import Decoding, decode
from sketchshift.errors import MissingDependencyError, SketchshiftError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch

if TYPE_CHECKING:
    from sketchshift._typing import RealArray

__all__ = ["demo"]

PICTURE, SKETCH, DATA = "demo.png", "demo.sketch", "demo.parquet"
COLUMNS = ("red", "blue")
CHANNELS = [0, 2]
BANDWIDTH = 40.0  # about the distance between clusters: half of it or less splits the dense ones
N_CLUSTERS = 5
SPEC = SketchSpec(n_features=2, sketch_size=1000, bandwidth=BANDWIDTH, columns=COLUMNS)
BOX = (-0.5, 255.5)  # of both columns

PYTHON = """\
import sketchshift as ss
from sketchshift.data.datasets import china_pixels

X = china_pixels()[:, [0, 2]]  # red and blue
spec = ss.SketchSpec(n_features=2, sketch_size=1000, bandwidth=40, columns=["red", "blue"])
whole, half = ss.sketch(X, spec), len(X) // 2
top, bottom = ss.sketch(X[:half], spec), ss.sketch(X[half:], spec)
assert top + bottom == whole and whole - top == bottom
whole.save("demo.sketch")
decoding = ss.decode(whole, n_clusters=5)
colours, shares = decoding.centroids, decoding.weights"""


@command
def demo(out: Output) -> None:
    """Sketch a real dataset and show what its few kilobytes hold.

    Reads the 273,280 pixels of a photograph that comes with scikit-learn (red and blue)
    once into 16 kB, draws their density and finds their clusters from these alone, and shows
    that sketches add and subtract exactly. Writes the picture demo.png, demo.sketch, and the
    pixels in demo.parquet, to try the other commands on. Needs `pip install "sketchshift[view]"`.

    Examples
    --------
      sketchshift demo
      sketchshift demo --json

    Then: `sketchshift cluster demo.sketch -k 5`, and `sketchshift cluster` with data of yours.
    """
    files = [check_output(path) for path in (PICTURE, SKETCH, DATA)]
    with show_progress("rows", "Sketching, decoding and drawing"):
        from sketchshift.data.datasets import china_pixels

        X = china_pixels()[:, CHANNELS]
        whole, seconds = _timed(X)
        _check_group(X, whole)
        decoding = decode(whole, N_CLUSTERS)
        errors = _errors(X, decoding)
        missing = _draw(X, whole, decoding, files[0])
    whole.save(files[1])
    _write_pixels(files[2])
    size = files[1].stat().st_size
    record = {
        "command": "demo",
        "output": None if missing else PICTURE,
        "sketch": SKETCH,
        "data": DATA,
        "data_bytes": X.nbytes,
        "times_smaller": X.nbytes / size,
        "seconds": seconds,
        "rows_per_second": whole.count / seconds,
        "merged_equals_whole": True,
        "whole_minus_part_equals_rest": True,
        "clusters": cluster_records(decoding),
        "mean_squared_error": errors[0],
        "mean_squared_error_of_k_means": errors[1],
        "python": PYTHON,
    } | sketch_record(whole, size)
    lines = [*_beginning(record), *_clusters(record, decoding), *_ending(record, missing)]
    out.report(record, lines)


def _timed(X: RealArray) -> tuple[Sketch, float]:
    from sketchshift.sketch import sketch

    sketch(X[:1000], SPEC)  # loads the kernels
    start = time.perf_counter()
    whole = sketch(X, SPEC)
    return whole, time.perf_counter() - start


def _check_group(X: RealArray, whole: Sketch) -> None:
    """Addition and subtraction, checked bit for bit on the data itself."""
    from sketchshift.sketch import sketch

    half = len(X) // 2
    top, bottom = sketch(X[:half], SPEC), sketch(X[half:], SPEC)
    if (top + bottom).to_bytes() != whole.to_bytes():
        raise SketchshiftError("the sketches of the two halves do not add up. Report this bug.")
    if (whole - top).to_bytes() != bottom.to_bytes():
        raise SketchshiftError("the whole without its top is not its bottom. Report this bug.")


def _errors(X: RealArray, decoding: Decoding) -> tuple[float, float]:
    """Mean squared error of the centroids, and that of k-means, which reads all rows often."""
    from sketchshift.metrics import lloyd, mse

    return mse(X, decoding.centroids), mse(X, lloyd(X, N_CLUSTERS))


def _write_pixels(path: Place) -> None:
    """All three columns, and a key: which third of the picture a pixel lies in."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    from sketchshift._writing import write_atomically
    from sketchshift.data.datasets import china_pixels

    pixels = china_pixels()
    thirds = [len(part) for part in np.array_split(pixels, 3)]
    part = np.repeat(["top", "middle", "bottom"], thirds)
    columns = dict(zip(("red", "green", "blue"), pixels.T, strict=True))
    written = io.BytesIO()
    pq.write_table(pa.table({**columns, "part": part}), written)
    write_atomically(path, written.getvalue())


def _draw(X: RealArray, whole: Sketch, decoding: Decoding, path: Place) -> str | None:
    """Write the picture; the sentence that says what to install where it cannot be."""
    from sketchshift._writing import opened_atomically

    try:
        figure = draw_picture("demo", X, whole, decoding, BOX)
    except MissingDependencyError as error:
        return str(error)
    with opened_atomically(path) as file:
        figure.savefig(file, format="png", dpi=150)
    return None


def _beginning(record: dict[str, Any]) -> list[str]:
    return [
        f"Data      {record['rows']:,} pixels of scikit-learn's picture china.jpg, columns red and "
        "blue.",
        f"Read      once, in {record['seconds']:.2f} s: {record['rows_per_second']:,.0f} rows/s.",
        f"Size      {record['data_bytes']:,} bytes of data -> {record['bytes']:,} bytes of sketch, "
        f"{record['times_smaller']:.0f} times smaller;",
        "          for a billion rows the sketch would be no larger.",
    ]


def _clusters(record: dict[str, Any], decoding: Decoding) -> list[str]:
    error, best = record["mean_squared_error"], record["mean_squared_error_of_k_means"]
    return [
        "",
        "Clusters  found in the sketch, without the rows:",
        "",
        *("          " + line for line in cluster_table(decoding)),
        "",
        f"Error     {error:.0f}, the mean squared distance of a row; k-means on all the rows has "
        f"{best:.0f}: ratio {error / best:.2f}.",
    ]


def _ending(record: dict[str, Any], missing: str | None) -> list[str]:
    picture = f"No PNG    {missing}" if missing else f"Wrote     {record['output']}"
    return [
        "Add       sketch(top half) + sketch(bottom half) == sketch(whole): checked bit for bit.",
        "Subtract  sketch(whole) - sketch(top half) == sketch(bottom half): checked bit for bit.",
        picture,
        f"Wrote     {record['sketch']}",
        f"Wrote     {record['data']}: the pixels, red, green and blue, and in which part they lie",
        "",
        "The same in Python:",
        "",
        *("    " + line if line else "" for line in record["python"].splitlines()),
        "",
        next_step("cluster", record["sketch"], "-k", str(N_CLUSTERS)),
        next_step(
            *("cluster", record["data"], "--columns", "red,green,blue"),
            *("-k", "auto", "-o", "centroids.csv"),
        ),
    ]
