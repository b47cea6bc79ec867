"""The bandwidth of a sketch as the paper has it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.paper.bandwidth import MAX_ROWS
from sketchshift.errors import DataError, SpecError

CENTRES = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])  # of the paper's first figure


@pytest.fixture(scope="module")
def clouds():
    """Three clusters in the plane, of standard deviation 0.05, a little off the origin."""
    rng = np.random.default_rng(0)
    return CENTRES[rng.integers(0, 3, 5000)] + 0.05 * rng.normal(size=(5000, 2)) + [0.3, 7.0]


def test_the_order_of_the_rows_does_not_matter(clouds):
    """Not even where the rows are too many, and some are drawn."""
    X = np.concatenate([clouds, clouds[:, ::-1], clouds + 0.1])
    assert len(X) > MAX_ROWS

    assert ss.decoders.bandwidth(X[::-1]) == ss.decoders.bandwidth(X)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e9])
def test_it_is_a_share_of_a_weighted_radius(clouds, factor):
    """0.9 k^(-1/d) rq, with rq by its definition: second moments less those of the mean."""
    X = clouds - clouds.mean(axis=0)
    squares = (X**2).sum(axis=1)
    t = 0.5 + 0.5 * squares / squares.mean()
    rq = factor * math.sqrt((t @ squares) / t.sum() - (((t @ X) / t.sum()) ** 2).sum())

    found = ss.decoders.bandwidth(factor * clouds, n_clusters=4)
    assert found == pytest.approx(0.45 * rq, rel=1e-12)
    assert ss.decoders.bandwidth(clouds) == ss.decoders.bandwidth(clouds, n_clusters=10)


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (np.ones((1, 3)), "there is one row.*Take a sample across the data"),
        (np.full((50, 2), 0.1), "all 50 rows are equal.*Take a sample across the data"),
        ([[0.0], [np.nan]], "row 1 of array holds NaN or infinity"),
    ],
)
def test_rows_without_distances_are_refused(rows, fact):
    with pytest.raises(DataError, match=fact):
        ss.decoders.bandwidth(np.asarray(rows))


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_data_that_no_spec_reaches_is_refused(clouds, factor):
    """And no square of it overflows on the way: warnings are errors."""
    says = r"a spec takes 1e-20 to 1e\+20. Multiply the data"
    with pytest.raises(DataError, match=says):
        ss.decoders.bandwidth(factor * clouds)


@pytest.mark.parametrize(("option", "value"), [("n_clusters", 0), ("seed", -1)])
def test_parameters_are_checked(clouds, option, value):
    with pytest.raises(SpecError, match=f"'{option}' parameter of bandwidth must be an"):
        ss.decoders.bandwidth(clouds, **{option: value})


def test_files_and_iterators_are_samples_too(clouds, tmp_path):
    np.save(tmp_path / "rows.npy", clouds)

    for given in (tmp_path / "rows.npy", iter([clouds[:10], clouds[10:]])):
        assert ss.decoders.bandwidth(given) == ss.decoders.bandwidth(clouds)
