"""The bandwidth of a sketch as the paper has it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.paper.bandwidth import MAX_ROWS

CENTRES = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])  # of the paper's first figure


@pytest.fixture(scope="module")
def clouds() -> np.ndarray:
    """Three clusters in the plane, of standard deviation 0.05, a little off the origin."""
    rng = np.random.default_rng(0)
    return CENTRES[rng.integers(0, 3, 5000)] + 0.05 * rng.normal(size=(5000, 2)) + [0.3, 7.0]


@pytest.mark.parametrize("factor", [1e-6, 3.7, 1e9])
def test_a_bandwidth_grows_with_the_data_and_does_not_move_with_it(clouds, factor):
    expected = factor * ss.decoders.bandwidth(clouds)

    assert ss.decoders.bandwidth(factor * clouds) == pytest.approx(expected, rel=1e-6)
    moved = factor * (clouds + np.array([100.0, -3.0]))
    assert ss.decoders.bandwidth(moved) == pytest.approx(expected, rel=1e-6)


def test_the_order_of_the_rows_does_not_matter(clouds):
    """Not even where the rows are too many, and some are drawn."""
    X = np.concatenate([clouds, clouds[:, ::-1], clouds + 0.1])
    assert len(X) > MAX_ROWS

    assert ss.decoders.bandwidth(X[::-1]) == ss.decoders.bandwidth(X)


def test_it_is_a_share_of_a_weighted_radius(clouds):
    """0.9 k^(-1/d) rq, with rq by its definition: second moments less those of the mean."""
    X = clouds - clouds.mean(axis=0)
    squares = (X**2).sum(axis=1)
    t = 0.5 + 0.5 * squares / squares.mean()
    rq = math.sqrt((t @ squares) / t.sum() - (((t @ X) / t.sum()) ** 2).sum())

    assert ss.decoders.bandwidth(clouds, n_clusters=4) == pytest.approx(0.45 * rq, rel=1e-12)
    assert ss.decoders.bandwidth(clouds) == ss.decoders.bandwidth(clouds, n_clusters=10)


@pytest.mark.parametrize("seed", range(2))
def test_it_serves_both_decoders_on_the_first_figure(clouds, seed):
    width = ss.decoders.bandwidth(clouds, n_clusters=3, seed=seed)
    s = ss.sketch(clouds, ss.SketchSpec(2, 500, width, seed=seed, center=(0.3, 7.0)))
    best = ss.metrics.lloyd(clouds, 3)

    for decoder in (ss.SketchAndShift(n_initializations=200, refine=True), ss.ClOmpr()):
        assert ss.metrics.rse(clouds, decoder(s, 3, seed=seed).centroids, best) < 1.1


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (np.ones((1, 3)), "there is one row"),
        (np.full((50, 2), 0.1), "all 50 rows are equal"),
        (np.zeros((7, 2)), "all 7 rows are equal"),
    ],
)
def test_rows_without_distances_are_refused(rows, fact):
    with pytest.raises(ss.errors.DataError, match=rf"{fact}.*Take a sample across the data"):
        ss.decoders.bandwidth(rows)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_named(clouds, value):
    X = clouds.copy()
    X[17, 1] = value

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 17 of array holds NaN or infinity"):
        ss.decoders.bandwidth(X)


@pytest.mark.parametrize("factor", [1e-300, 1e-25, 1e25, 1e300])
def test_data_that_no_spec_reaches_is_refused(clouds, factor):
    """And no square of it overflows on the way: warnings are errors."""
    says = r"a spec takes 1e-20 to 1e\+20. Multiply the data"
    with pytest.raises(ss.errors.DataError, match=says):
        ss.decoders.bandwidth(factor * clouds)


@pytest.mark.parametrize(("option", "value"), [("n_clusters", 0), ("seed", -1)])
def test_parameters_are_checked(clouds, option, value):
    with pytest.raises(ss.errors.SpecError, match=f"'{option}' parameter of bandwidth must be an"):
        ss.decoders.bandwidth(clouds, **{option: value})


def test_files_frames_and_iterators_are_samples_too(clouds, tmp_path):
    pandas = pytest.importorskip("pandas")
    np.save(tmp_path / "rows.npy", clouds)
    expected = ss.decoders.bandwidth(clouds)

    assert ss.decoders.bandwidth(tmp_path / "rows.npy") == expected
    assert ss.decoders.bandwidth(pandas.DataFrame(clouds, columns=["a", "b"])) == expected
    assert ss.decoders.bandwidth(iter([clouds[:10], clouds[10:]])) == expected
