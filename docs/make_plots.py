"""Draw the pictures of docs/plots.md from real data: ``python docs/make_plots.py``.

Reads a photograph that comes with scikit-learn, and datasets that ``make data`` fetches; writes
docs/images.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from PIL import Image

import sketchshift as ss
from sketchshift import view
from sketchshift.data.datasets import china_pixels
from sketchshift_papers.data import load

IMAGES = Path(__file__).parent / "images"
FOREST = (
    "elevation (m)",
    "aspect (°)",
    "slope (°)",
    "distance to water (m)",
    "height above water (m)",
    "distance to roads (m)",
    "hillshade at 9",
    "hillshade at noon",
    "hillshade at 15",
    "distance to fire points (m)",
)


def of_pixels() -> Iterator[tuple[str, Figure]]:
    """273 280 pixels of a photograph: three columns."""
    X = china_pixels()
    table = pa.table(dict(zip(("red", "green", "blue"), X.T, strict=True)))
    s = ss.sketch(table, n_clusters=8)
    decoding = ss.decode(s, 6)
    yield "decoding_figure", view.decoding_figure(s, ss.decode(s, "auto"))
    yield "plot_means", on_axes(view.plot_means, s, decoding)


def forest() -> pa.Table:
    """286 048 patches of forest, 10 columns of very different units."""
    X = load("covertype").astype(np.float64)
    return pa.table(dict(zip(FOREST, X.T, strict=True)))


def on_axes(plot, *arguments, width: float = 6.4, height: float = 4.4, **options) -> Figure:
    """A figure of one plot."""
    figure = Figure(figsize=(width, height), layout="constrained")
    plot(*arguments, figure.subplots(), **options)
    return figure


def of_pickups() -> Iterator[tuple[str, Figure]]:
    """315 055 places in New York: two columns."""
    X = load("uber_pickups").astype(np.float64)
    s = ss.sketch(pa.table({"longitude": X[:, 0], "latitude": X[:, 1]}), n_clusters=20)
    decoding = ss.decode(s, "auto")
    yield "plot_correlation", on_axes(view.plot_correlation, s)
    yield "plot_centroids", on_axes(view.plot_centroids, s, decoding)
    yield "k_curve", on_axes(view.k_curve, decoding)
    yield "plot_weights", on_axes(view.plot_weights, decoding)


def of_forest() -> Iterator[tuple[str, Figure]]:
    """Ten columns, of which two make a map."""
    table = forest()
    s = ss.sketch(table, n_clusters=10, standardize=True)
    decoding = ss.decode(s, 6)
    pair = ("aspect (°)", "hillshade at 15")
    yield "plot_columns", on_axes(view.plot_centroids, s, decoding, columns=pair)


def of_bands() -> Iterator[tuple[str, Figure]]:
    """Slices by elevation: in the order of the key, as days would be."""
    table = forest()
    bands = pa.array(table["elevation (m)"].to_numpy() // 100 * 100).cast(pa.int32())
    sliced = table.append_column("from elevation (m)", bands)
    parts = ss.sketch_by(
        sliced, by="from elevation (m)", columns=FOREST[1:], n_clusters=10, standardize=True
    )
    whole = parts.merge()
    decoding = ss.decode(whole, 6)
    yield "plot_slices", on_axes(view.plot_slices, parts, decoding, reference=whole)


def pictures() -> Iterator[tuple[str, Figure]]:
    """All of them, with the names of their files."""
    yield from of_pixels()
    yield from of_pickups()
    yield from of_forest()
    yield from of_bands()


def main() -> None:
    """Write all pictures."""
    for name, figure in pictures():
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=80)
        picture = Image.open(drawn).convert("RGB")
        small = picture.quantize(256, kmeans=4)  # a palette: a third in size
        small.save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
