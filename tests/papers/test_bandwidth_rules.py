"""Published rules for a bandwidth: what they measure, on clusters whose width is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate

import sketchshift as ss
from sketchshift.data.datasets import gaussian_mixture
from sketchshift_papers.bandwidth_rules import (
    GRID,
    N_BINS,
    SQUARED_LENGTH,
    entropy_rule,
    regression_rule,
)

CENTRES = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])  # of the paper's first figure

each_rule = pytest.mark.parametrize("rule", [entropy_rule, regression_rule])


@pytest.fixture(scope="module")
def clouds():
    """Three clusters in the plane, of standard deviation 0.05, a little off the origin."""
    rng = np.random.default_rng(0)
    return CENTRES[rng.integers(0, 3, 5000)] + 0.05 * rng.normal(size=(5000, 2)) + [0.3, 7.0]


def cluster_std(X):
    """What the regression estimates, before it is made a bandwidth."""
    return regression_rule(X) / math.sqrt(X.shape[1] / SQUARED_LENGTH)


def entropy(X, bandwidth, seed):
    """Of the histogram of abs(z_j) over [0, 1], from the frequencies of a spec, in NumPy."""
    turns = ss.SketchSpec(X.shape[1], 500, bandwidth, seed=seed).frequencies.turns
    moduli = np.abs(np.exp(2j * np.pi * ((X - X.mean(axis=0)) @ turns)).mean(axis=0))
    shares = np.bincount((moduli * N_BINS).astype(int).clip(0, N_BINS - 1)) / 500
    return -sum(share * math.log(share) for share in shares if share)


@each_rule
def test_a_bandwidth_grows_with_the_data_and_does_not_move_with_it(clouds, rule):
    assert rule(3.7 * clouds + [100.0, -3.0]) == pytest.approx(3.7 * rule(clouds), rel=1e-6)


@pytest.mark.parametrize("d", [2, 5, 10, 40])
def test_the_regression_recovers_the_width_of_three_clusters(d):
    """Measured over ten seeds and these dimensions: 1.01 to 1.09 times the truth."""
    X, _ = gaussian_mixture(5000, d, 3, cluster_std=0.05, seed=1)

    assert cluster_std(X) == pytest.approx(0.05, rel=0.2)


def test_the_regression_measures_one_gaussian_exactly():
    """All moduli lie on the curve that is fitted, but for noise of 1 / sqrt(n)."""
    X = 3.0 * np.random.default_rng(0).normal(size=(10_000, 4))

    assert cluster_std(X) == pytest.approx(3.0, rel=0.03)


def test_lengths_of_the_adapted_radius_have_the_mean_square_the_regression_assumes():
    def moment(power):
        return scipy.integrate.quad(
            lambda R: R**power * math.sqrt(R**2 + R**4 / 4) * math.exp(-(R**2) / 2), 0, 40
        )[0]

    assert moment(2) / moment(0) == pytest.approx(SQUARED_LENGTH, rel=1e-7)


def test_no_other_bandwidth_of_the_grid_has_a_larger_entropy(clouds):
    """By NumPy in float64; a modulus that rounding moves to the next bin is worth below 0.02."""
    X = clouds[:1000]
    r0 = math.sqrt(X.var(axis=0).sum())
    chosen = entropy_rule(X, seed=1)

    entropies = [entropy(X, r0 * width, 1) for width in GRID]

    assert min(abs(chosen / r0 - GRID)) < 1e-9
    assert entropy(X, chosen, 1) >= max(entropies) - 0.02


def rse_of(decoder, X, rule, seed):
    s = ss.sketch(X, ss.SketchSpec(2, 500, rule(X, seed=seed), seed=seed, center=(0.3, 7.0)))
    return ss.metrics.rse(X, decoder(s, 3, seed=seed).centroids, ss.metrics.lloyd(X, 3))


@each_rule
def test_each_rule_serves_sketch_and_shift_on_the_first_figure(clouds, rule):
    refined = ss.SketchAndShift(n_initializations=200, refine=True)

    assert rse_of(refined, clouds, rule, 0) < 1.1


def test_the_regression_is_too_narrow_for_one_start_of_cl_ompr(clouds):
    """It answers 0.05, the clusters' width, where the paper's figure 1 has CL-OMPR fail."""
    assert regression_rule(clouds) == pytest.approx(0.05, rel=0.2)
    assert rse_of(ss.ClOmpr(), clouds, regression_rule, seed=0) > 5
    assert rse_of(ss.ClOmpr(), clouds, entropy_rule, seed=0) < 1.1


@each_rule
def test_a_few_points_repeated_still_have_a_bandwidth(rule):
    """Clusters of no width: the regression stops at a thousandth of the data's radius."""
    assert 1e-4 < rule(np.repeat(CENTRES, 100, axis=0)) < 1.0
    assert 0.0 < rule(np.array([[0.0], [1.0]])) <= 1.0
