"""Maps of clusters, the correlation function of many columns, and matrices of pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift._colours import colour_of
from sketchshift.recipe import Log, Number
from sketchshift.view import plot_centroids, plot_correlation


def test_without_cells_the_map_is_the_gaussians_of_the_clusters_with_ellipses_of_one_deviation(ax):
    """Opaque in the middle, none far off; ellipses have Mahalanobis distance 1 from there."""
    rng, labels = np.random.default_rng(10), np.repeat([0, 1], [300, 100])
    X = rng.normal(size=(400, 10)) + labels[:, None] * [9.0, 9.0, *[3.0] * 8]
    C = np.array([X[labels == i].mean(axis=0) for i in (0, 1)])
    covariances = np.array([np.cov(X[labels == i].T, bias=True) for i in (0, 1)])
    shares, complete = np.array([0.75, 0.25]), ss.decoders.Outcome.COMPLETE
    decoding = ss.Decoding(C, shares, covariances, 0.0, complete, ())
    s = ss.sketch(X, ss.SketchSpec(10, 500, np.sqrt(10)))

    plot_centroids(s, decoding, ax, columns=(1, 0), resolution=60)

    image, (x0, x1, y0, y1) = ax.images[0].get_array(), ax.images[0].get_extent()
    x, y = C[:, [1, 0]].T
    at = image[((y - y0) / (y1 - y0) * 60).astype(int), ((x - x0) / (x1 - x0) * 60).astype(int)]
    np.testing.assert_allclose(at[:, 3], image[..., 3].max(), rtol=0.05)
    np.testing.assert_allclose(at[:, :3], [to_rgb(colour_of(i)) for i in (0, 1)], atol=0.02)
    assert image[:6, -6:, 3].max() == 0.0  # far from both clusters
    for outline, c, S in zip(ax.collections[0].get_segments(), C, covariances, strict=True):
        rests, inverse = outline - c[[1, 0]], np.linalg.inv(S[np.ix_([1, 0], [1, 0])])
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", rests, inverse, rests), 1.0)


def test_the_axes_end_where_rows_do_and_the_legend_names_the_clusters():
    """Prices are positive, and Gaussians around them would not be; carats tell most."""
    rng = np.random.default_rng(0)
    group = rng.choice(3, 6_000, p=[0.6, 0.3, 0.1])
    carat = np.array([0.4, 1.0, 2.0])[group] * np.exp(0.2 * rng.normal(size=6_000))
    price = 3_000 * carat**2 * np.exp(0.3 * rng.normal(size=6_000))
    table = pa.table({"depth": rng.normal(size=6_000), "price": price, "carat": carat})
    s = ss.sketch(table, n_clusters=6, standardize=True)
    found = ss.decode(s, 3)

    ax = plot_centroids(s, found, Figure().subplots(), resolution=5)
    other = plot_correlation(s, Figure().subplots(), columns=("price", "carat"))

    names = [ax.get_xlabel(), ax.get_ylabel()]
    assert "carat" in names
    for image, name in ((ax.images[0], names[0]), (other.images[0], "price")):
        x0, x1, *_ = image.get_extent()
        lowest, *_, highest = np.sort(table[name].to_numpy())
        assert lowest <= x0 < x1 <= highest
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
    np.testing.assert_allclose(ax.get_xticks(), np.log1p(np.array(told) / 2.0))
