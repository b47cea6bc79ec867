"""scikit-learn's own contract, without a single expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import sketchshift as ss

SMALL = {"sketch_size": 50, "n_threads": 1}
"""The smallest sketch that a plan makes: the contract is not about quality."""

pytestmark = pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")  # of so few rows


@parametrize_with_checks(
    [ss.CompressiveKMeans(2, **SMALL), ss.CompressiveGaussianMixture(2, **SMALL)]
)
def test_scikit_learn_accepts_the_estimators(estimator, check):
    check(estimator)
