from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate

import sketchshift as ss
from sketchshift.data.datasets import gaussian_mixture
from sketchshift.features.bandwidth import GRID, MAX_ROWS, N_BINS, RULES, SQUARED_LENGTH

CENTRES = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])  # of the paper's first figure

each_rule = pytest.mark.parametrize("rule", RULES)


@pytest.fixture(scope="module")
def clouds() -> np.ndarray:
    """Three clusters in the plane, of standard deviation 0.05, a little off the origin."""
    rng = np.random.default_rng(0)
    return CENTRES[rng.integers(0, 3, 5000)] + 0.05 * rng.normal(size=(5000, 2)) + [0.3, 7.0]


def cluster_std(X):
    """What the regression estimates, before it is made a bandwidth."""
    return ss.decoders.bandwidth(X, rule="regression") / math.sqrt(X.shape[1] / SQUARED_LENGTH)


def entropy(X, bandwidth, seed):
    """Of the histogram of abs(z_j) over [0, 1], from the frequencies of a spec, in NumPy."""
    turns = ss.SketchSpec(X.shape[1], 500, bandwidth, seed=seed).frequencies.turns
    moduli = np.abs(np.exp(2j * np.pi * ((X - X.mean(axis=0)) @ turns)).mean(axis=0))
    shares = np.bincount((moduli * N_BINS).astype(int).clip(0, N_BINS - 1)) / 500
    return -sum(share * math.log(share) for share in shares if share)


@each_rule
@pytest.mark.parametrize("factor", [1e-6, 3.7, 1e9])
def test_a_bandwidth_grows_with_the_data(clouds, rule, factor):
    """Rules see the rows in units of their own radius: equal but for rounding, here 1e-6."""
    expected = factor * ss.decoders.bandwidth(clouds, rule=rule)

    assert ss.decoders.bandwidth(factor * clouds, rule=rule) == pytest.approx(expected, rel=1e-6)


@each_rule
def test_a_bandwidth_does_not_move_with_the_data(clouds, rule):
    moved = clouds + np.array([100.0, -3.0])

    assert ss.decoders.bandwidth(moved, rule=rule) == pytest.approx(
        ss.decoders.bandwidth(clouds, rule=rule), 1e-6
    )


@each_rule
def test_the_order_of_the_rows_does_not_matter(clouds, rule):
    """Not even where the rows are too many, and some are drawn."""
    X = np.concatenate([clouds, clouds[:, ::-1], clouds + 0.1])
    assert len(X) > MAX_ROWS

    assert ss.decoders.bandwidth(X[::-1], rule=rule) == ss.decoders.bandwidth(X, rule=rule)


@pytest.mark.parametrize("d", [2, 5, 10, 40])
def test_the_regression_recovers_the_width_of_three_clusters(d):
    """Measured over ten seeds and these dimensions: 1.01 to 1.09 times the truth."""
    X, _ = gaussian_mixture(5000, d, 3, cluster_std=0.05, seed=1)

    assert cluster_std(X) == pytest.approx(0.05, rel=0.2)


def test_the_regression_measures_one_gaussian_exactly():
    """All moduli lie on the curve that is fitted, but for noise of 1 / sqrt(n)."""
    X = 3.0 * np.random.default_rng(0).normal(size=(10_000, 4))

    assert cluster_std(X) == pytest.approx(3.0, rel=0.03)


def test_the_regression_is_twice_too_wide_for_ten_clusters():
    """As published: the moduli of many clusters stay below the curve, which begins at 1."""
    X, _ = gaussian_mixture(5000, 10, 10, cluster_std=0.05, seed=1)

    assert 0.05 < cluster_std(X) < 0.05 * 2.5


def test_lengths_of_the_adapted_radius_have_the_mean_square_the_regression_assumes():
    def moment(power):
        return scipy.integrate.quad(
            lambda R: R**power * math.sqrt(R**2 + R**4 / 4) * math.exp(-(R**2) / 2), 0, 40
        )[0]

    assert moment(2) / moment(0) == pytest.approx(SQUARED_LENGTH, rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_no_other_bandwidth_of_the_grid_has_a_larger_entropy(clouds, seed):
    """By NumPy in float64; a modulus that rounding moves to the next bin is worth below 0.02."""
    X = clouds[:1000]
    r0 = math.sqrt(X.var(axis=0).sum())
    chosen = ss.decoders.bandwidth(X, rule="entropy", seed=seed)

    entropies = [entropy(X, r0 * width, seed) for width in GRID]

    assert min(abs(chosen / r0 - GRID)) < 1e-9
    assert entropy(X, chosen, seed) >= max(entropies) - 0.02


def test_our_rule_is_a_share_of_the_radius_where_far_rows_count_more(clouds):
    """0.9 k^(-1/d) rq, with rq by its definition: second moments less those of the mean."""
    X = clouds - clouds.mean(axis=0)
    squares = (X**2).sum(axis=1)
    t = 0.5 + 0.5 * squares / squares.mean()
    rq = math.sqrt((t @ squares) / t.sum() - (((t @ X) / t.sum()) ** 2).sum())

    assert ss.decoders.bandwidth(clouds, n_clusters=4) == pytest.approx(0.45 * rq, rel=1e-12)
    assert ss.decoders.bandwidth(clouds) == ss.decoders.bandwidth(clouds, n_clusters=10)


def rse_of(decoder, X, rule, seed):
    width = ss.decoders.bandwidth(X, rule=rule, n_clusters=3, seed=seed)
    s = ss.sketch(X, ss.SketchSpec(2, 500, width, seed=seed, center=(0.3, 7.0)))
    return ss.metrics.rse(X, decoder(s, 3, seed=seed).centroids, ss.metrics.lloyd(X, 3))


@pytest.mark.parametrize("seed", range(2))
@each_rule
def test_each_rule_serves_sketch_and_shift_on_the_first_figure(clouds, rule, seed):
    refined = ss.SketchAndShift(n_initializations=200, refine=True)

    assert rse_of(refined, clouds, rule, seed) < 1.1


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rule", ["sketchshift", "entropy"])
def test_two_rules_serve_cl_ompr_on_the_first_figure(clouds, rule, seed):
    assert rse_of(ss.ClOmpr(), clouds, rule, seed) < 1.1


def test_the_regression_is_too_narrow_for_one_start_of_cl_ompr(clouds):
    """It answers 0.05, the clusters' width, where the paper's figure 1 has CL-OMPR fail."""
    assert ss.decoders.bandwidth(clouds, rule="regression") == pytest.approx(0.05, rel=0.2)
    assert rse_of(ss.ClOmpr(), clouds, "regression", seed=0) > 5


@each_rule
@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (np.ones((1, 3)), "there is one row"),
        (np.full((50, 2), 0.1), "all 50 rows are equal"),
        (np.zeros((7, 2)), "all 7 rows are equal"),
    ],
)
def test_rows_without_distances_are_refused(rows, fact, rule):
    with pytest.raises(ss.errors.DataError, match=rf"{fact}.*Take a sample across the data"):
        ss.decoders.bandwidth(rows, rule=rule)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_named(clouds, value):
    X = clouds.copy()
    X[17, 1] = value

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 17 of array holds NaN or infinity"):
        ss.decoders.bandwidth(X)


@pytest.mark.parametrize("factor", [1e-300, 1e-25, 1e25, 1e300])
def test_data_that_no_spec_reaches_is_refused(clouds, factor):
    """And no square of it overflows on the way: warnings are errors."""
    with pytest.raises(
        ss.errors.DataError, match=r"a spec takes 1e-20 to 1e\+20. Multiply the data"
    ):
        ss.decoders.bandwidth(factor * clouds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "silverman"}, "'rule' .* one of 'sketchshift', 'regression', 'entropy'"),
        ({"n_clusters": 0}, "'n_clusters' parameter of bandwidth must be an integer from 1"),
        ({"sketch_size": 29}, "'sketch_size' parameter of bandwidth must be an integer from 30"),
        ({"seed": -1}, "'seed' parameter of bandwidth must be an integer from 0"),
    ],
)
def test_parameters_are_checked(clouds, options, message):
    with pytest.raises(ss.errors.SpecError, match=message):
        ss.decoders.bandwidth(clouds, **options)


@each_rule
def test_a_few_points_repeated_still_have_a_bandwidth(rule):
    """Clusters of no width: the regression stops at a thousandth of the data's radius."""
    X = np.repeat(CENTRES, 100, axis=0)

    assert 1e-4 < ss.decoders.bandwidth(X, rule=rule) < 1.0


@each_rule
def test_two_rows_and_one_column_are_enough(rule):
    assert 0.0 < ss.decoders.bandwidth([[0.0], [1.0]], rule=rule) <= 1.0


def test_files_frames_and_iterators_are_samples_too(clouds, tmp_path):
    pandas = pytest.importorskip("pandas")
    np.save(tmp_path / "rows.npy", clouds)
    expected = ss.decoders.bandwidth(clouds)

    assert ss.decoders.bandwidth(tmp_path / "rows.npy") == expected
    assert ss.decoders.bandwidth(pandas.DataFrame(clouds, columns=["a", "b"])) == expected
    assert ss.decoders.bandwidth(iter([clouds[:10], clouds[10:]])) == expected
