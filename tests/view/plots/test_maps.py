"""Maps of clusters, the correlation function of many columns, and matrices of pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift._colours import colour_of
from sketchshift.recipe import Log, Number
from sketchshift.view import plot_centroids, plot_correlation


def test_without_cells_the_map_is_the_gaussians_of_the_clusters_with_ellipses_of_one_deviation(ax):
    """Opaque in the middle, none far off; ellipses have Mahalanobis distance 1 from there."""
    rng = np.random.default_rng(10)
    C, factors = np.outer([0.0, 1.0], [9.0, 9.0, *[3.0] * 8]), rng.normal(size=(2, 10, 10)) / 6
    covariances = np.eye(10) + factors @ factors.transpose(0, 2, 1)
    complete = ss.decoders.Outcome.COMPLETE
    decoding = ss.Decoding(C, np.array([0.75, 0.25]), covariances, 0.0, complete, ())
    X = np.repeat(C, [300, 100], axis=0) + rng.normal(size=(400, 10))

    s = ss.sketch(X, ss.SketchSpec(10, 500, np.sqrt(10)))
    plot_centroids(s, decoding, ax, columns=(1, 0), resolution=60)

    image, (x0, x1, y0, y1) = ax.images[0].get_array(), ax.images[0].get_extent()
    places = (C[:, :2] - [y0, x0]) / [y1 - y0, x1 - x0] * 60
    at = image[tuple(places.T.astype(int))]
    assert_allclose(at[:, 3], image[..., 3].max(), rtol=0.05)
    assert_allclose(at[:, :3], [to_rgb(colour_of(i)) for i in (0, 1)], atol=0.02)
    assert image[:6, -6:, 3].max() == 0.0  # far from both clusters
    for outline, c, S in zip(ax.collections[0].get_segments(), C, covariances, strict=True):
        rests = outline[:, ::-1] - c[:2]
        assert_allclose(np.sum(rests @ np.linalg.inv(S[:2, :2]) * rests, axis=1), 1.0)


def test_the_axes_end_where_rows_do_and_the_legend_names_the_clusters():
    """Prices are positive, and Gaussians around them would not be; carats tell most."""
    rng = np.random.default_rng(0)
    group, noise = rng.choice(3, 6_000, p=[0.6, 0.3, 0.1]), rng.normal(size=(3, 6_000))
    carat = np.array([0.4, 1.0, 2.0])[group] * np.exp(0.2 * noise[0])
    price = 3_000 * carat**2 * np.exp(0.3 * noise[1])
    table = pa.table({"depth": noise[2], "price": price, "carat": carat})
    s = ss.sketch(table, n_clusters=6, standardize=True)
    found = ss.decode(s, 3)

    ax = plot_centroids(s, found, Figure().subplots(), resolution=5)
    other = plot_correlation(s, Figure().subplots(), columns=("price", "carat"))

    assert "carat" in (ax.get_xlabel(), ax.get_ylabel())
    for image, name in ((ax.images[0], ax.get_xlabel()), (other.images[0], "price")):
        x0, x1, *_ = image.get_extent()
        values = table[name].to_numpy()
        assert values.min() <= x0 < x1 <= values.max()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    for i, (text, cluster) in enumerate(zip(texts, found.profile.clusters, strict=True)):
        assert text.startswith(f"{i}  {cluster.name[:20]}")
        assert text.endswith(f"{100 * cluster.share:.2g} %")


def test_the_map_of_a_sketch_with_cells_is_the_density_of_its_rows(ax):
    """Against a histogram of the rows of the one cluster there is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    s = ss.sketch(X, n_clusters=20)
    one = ss.decode(s, 1)

    plot_centroids(s, one, ax, resolution=40)

    x0, x1, *ends = ax.images[0].get_extent()
    counts, *_ = np.histogram2d(X[:, 1], X[:, 0], bins=40, range=[ends, [x0, x1]])
    density = np.square(ax.images[0].get_array()[..., 3])
    assert np.corrcoef(density.ravel(), counts.ravel())[0, 1] > 0.97


def test_sixteen_clusters_have_looks_of_their_own(faults):
    rng = np.random.default_rng(0)
    corners = 12.0 * np.indices((4, 4)).reshape(2, 16).T
    X = corners[rng.integers(16, size=8_000)] + rng.normal(size=(8_000, 2))
    s = ss.sketch(X, n_clusters=16)
    figure = Figure(figsize=(9, 5), layout="constrained")

    ax = plot_centroids(s, ss.decode(s, 16), figure.subplots(), resolution=50)

    handles = ax.get_legend().legend_handles
    assert len({(h.get_color(), h.get_marker()) for h in handles}) == 16
    assert len(ax.texts) == 16
    assert faults(figure) == []


def test_an_axis_of_logarithms_has_the_numbers_of_the_table(ax):
    """Against the definition, ln(1 + x / u)."""
    rng = np.random.default_rng(0)
    table = pa.table({"votes": np.exp(rng.normal(6, 2, 500)), "rating": rng.normal(6, 1, 500)})
    recipe = ss.profiling.Recipe([Log("votes", unit=2.0), Number("rating")])
    s = ss.sketch(table, n_clusters=2, columns=recipe)

    plot_centroids(s, ss.decode(s, 2), ax)

    told = [float(label.get_text().replace(",", "")) for label in ax.get_xticklabels()]
    assert len(told) >= 3
    assert_allclose(ax.get_xticks(), np.log1p(np.array(told) / 2.0))
