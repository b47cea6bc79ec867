"""Maps of clusters, the correlation function of many columns, and matrices of pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift._colours import colour_of
from sketchshift.recipe import Log, Number
from sketchshift.view import correlation_image, plot_centroids, plot_correlation


def cloud(d: int, **spec) -> tuple[ss.Sketch, ss.Decoding]:
    """Two clusters far apart in the first two columns, and in the others too, but less."""
    rng = np.random.default_rng(d)
    far = np.full(d, 3.0)
    far[:2] = 9.0
    labels = np.repeat([0, 1], [300, 100])
    X = rng.normal(size=(400, d)) + labels[:, None] * far
    centroids = np.array([X[labels == i].mean(axis=0) for i in (0, 1)])
    covariances = np.array([np.cov(X[labels == i].T, bias=True) for i in (0, 1)])
    options = {"sketch_size": 500, "bandwidth": float(np.sqrt(d))} | spec
    sketch = ss.sketch(X, ss.SketchSpec(n_features=d, **options))
    found = (centroids, np.array([0.75, 0.25]), covariances, 0.0, ss.decoders.Outcome.COMPLETE, ())
    return sketch, ss.Decoding(*found)


def formula(s: ss.Sketch, points: np.ndarray) -> np.ndarray:
    x = (points - s.spec.center_vector) / s.spec.scale_vector
    omega = 2 * np.pi * s.frequencies.turns.astype(np.float64)
    return (np.exp(1j * (x @ omega)) @ np.conj(s.z)).real / np.sqrt(s.spec.sketch_size)


def test_more_frequencies_than_fit_at_once_are_all_summed():
    s, _ = cloud(2, sketch_size=9_000)

    image, _ = correlation_image(s, resolution=1, lower=(0, 0), upper=(2, 4))

    np.testing.assert_allclose(image, formula(s, np.array([[1.0, 2.0]]))[0], atol=1e-5)


def test_in_ten_columns_every_cluster_is_densest_where_its_mark_is():
    """Of clusters without cells the map is their Gaussians: opaque in the middle, none far off."""
    s, decoding = cloud(10)
    ax = plot_centroids(s, decoding, Figure().subplots(), columns=(0, 1), resolution=60)

    image, (x0, x1, y0, y1) = ax.images[0].get_array(), ax.images[0].get_extent()
    x, y = decoding.centroids[:, :2].T
    at = image[((y - y0) / (y1 - y0) * 60).astype(int), ((x - x0) / (x1 - x0) * 60).astype(int)]
    np.testing.assert_allclose(at[:, 3], image[..., 3].max(), rtol=0.05)
    np.testing.assert_allclose(at[:, :3], [to_rgb(colour_of(i)) for i in (0, 1)], atol=0.02)
    assert image[:6, -6:, 3].max() == 0.0  # far from both clusters


def skewed(seed: int = 0) -> pa.Table:
    """Prices are positive, and a few are very high; depth repeats nothing."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, 6_000, p=[0.6, 0.3, 0.1])
    carat = np.array([0.4, 1.0, 2.0])[group] * np.exp(0.2 * rng.normal(size=6_000))
    price = 3_000 * carat**2 * np.exp(0.3 * rng.normal(size=6_000))
    return pa.table({"depth": rng.normal(size=6_000), "price": price, "carat": carat})


def test_nothing_is_drawn_at_values_that_no_row_has():
    """Prices are positive, and Gaussians around them would not be."""
    table = skewed()
    s = ss.sketch(table, n_clusters=6, standardize=True)
    lowest, highest = (getattr(np, f)(table["price"].to_numpy()) for f in ("min", "max"))

    for draw in (
        lambda ax: plot_centroids(s, ss.decode(s, 3), ax, columns=("price", "carat")),
        lambda ax: plot_correlation(s, ax, columns=("price", "carat")),
    ):
        x0, x1, *_ = draw(Figure().subplots()).images[0].get_extent()
        assert x0 >= lowest > 0.0
        assert x1 <= highest


def test_the_map_of_a_sketch_with_cells_is_the_density_of_its_rows():
    """Against a histogram of the rows of the one cluster there is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    s = ss.sketch(X, n_clusters=20)
    one = ss.decode(s, 1)

    ax = plot_centroids(s, one, Figure().subplots(), resolution=40)

    image, extent = ax.images[0].get_array(), ax.images[0].get_extent()
    ends = [[extent[2], extent[3]], [extent[0], extent[1]]]
    counts, *_ = np.histogram2d(X[:, 1], X[:, 0], bins=40, range=ends)
    density = np.square(image[..., 3])
    assert np.corrcoef(density.ravel(), counts.ravel())[0, 1] > 0.97


def test_without_columns_the_axes_are_those_that_separate_the_clusters():
    """The first two columns are noise, and the last repeats the third."""
    rng = np.random.default_rng(0)
    group = rng.integers(4, size=4_000)
    x, y = 6.0 * (group % 2) + rng.normal(size=4_000), 6.0 * (group // 2) + rng.normal(size=4_000)
    columns = {"a": rng.normal(size=4_000), "b": rng.normal(size=4_000), "x": x, "y": y}
    table = pa.table(columns | {"x again": x + 0.01 * rng.normal(size=4_000)})
    s = ss.sketch(table, n_clusters=4)

    ax = plot_centroids(s, ss.decode(s, 4), Figure().subplots(), resolution=5)

    assert {ax.get_xlabel()[0], ax.get_ylabel()[0]} == {"x", "y"}


def test_the_legend_says_what_each_cluster_is_and_how_large():
    s = ss.sketch(skewed(), n_clusters=6, standardize=True)
    found = ss.decode(s, 3)

    ax = plot_centroids(s, found, Figure().subplots(), resolution=5)

    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    names = [cluster.name for cluster in found.profile.clusters]
    assert len(texts) == 3
    for i, text in enumerate(texts):
        assert text.startswith(f"{i}  {names[i][:20]}")
        assert text.endswith(f"{100 * found.weights[i]:.2g} %")


def test_sixteen_clusters_have_looks_of_their_own(faults):
    rng = np.random.default_rng(0)
    corners = 12.0 * np.array([[i, j] for i in range(4) for j in range(4)])
    X = corners[rng.integers(16, size=8_000)] + rng.normal(size=(8_000, 2))
    s = ss.sketch(X, n_clusters=16)
    figure = Figure(figsize=(9, 5), layout="constrained")

    ax = plot_centroids(s, ss.decode(s, 16), figure.subplots(), resolution=50)

    handles = ax.get_legend().legend_handles
    assert len({(h.get_color(), h.get_marker()) for h in handles}) == 16
    assert len(ax.texts) == 16
    assert faults(figure) == []


def test_ellipses_are_one_standard_deviation_of_the_clusters():
    """Points of an ellipse have Mahalanobis distance 1 from its middle."""
    s, decoding = cloud(5)
    ax = plot_centroids(s, decoding, Figure().subplots(), columns=(3, 1), resolution=5)

    outlines = ax.collections[0].get_segments()

    for outline, c, S in zip(outlines, decoding.centroids, decoding.covariances, strict=True):
        rests = np.asarray(outline) - c[[3, 1]]
        inverse = np.linalg.inv(S[np.ix_([3, 1], [3, 1])])
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", rests, inverse, rests), 1.0)


def test_an_axis_of_logarithms_has_the_numbers_of_the_table():
    """Against the definition, ln(1 + x / u)."""
    rng = np.random.default_rng(0)
    table = pa.table({"votes": np.exp(rng.normal(6, 2, 500)), "rating": rng.normal(6, 1, 500)})
    recipe = ss.profiling.Recipe([Log("votes", unit=2.0), Number("rating")])
    s = ss.sketch(table, n_clusters=2, columns=recipe)

    ax = plot_centroids(s, ss.decode(s, 2), Figure(layout="constrained").subplots())

    told = [float(label.get_text().replace(",", "")) for label in ax.get_xticklabels()]
    assert len(told) >= 3
    np.testing.assert_allclose(ax.get_xticks(), np.log1p(np.array(told) / 2.0))
