"""False alarms and power, by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from drift_rates import DATASETS, LEVELS, FeatureTable, rejections, spec_of
from scipy.stats import binom

from sketchshift_papers import data as datasets

ROUGH = 1.3
"""The rate of an asymptotic threshold may be so many times the one asked for."""


@pytest.mark.rates
@pytest.mark.parametrize("kind", ["planned", "plain"])
def test_a_small_shift_of_shares_is_found(kind):
    """The half of the rows on one side become 60 %."""
    X = DATASETS["6 Gaussians, d = 2"]()
    odds = np.where(X[:, 0] > np.median(X[:, 0]), 0.6, 0.4)
    table = FeatureTable.of(X, spec_of(X, kind))

    assert rejections(table, (5_000, 5_000), laws=1, each=50, odds=odds)[-1] > 0.9


@pytest.mark.filterwarnings("ignore::sketchshift.errors.ScaleHint")  # covertype's units differ
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["planned", "plain"])
@pytest.mark.parametrize("counts", [(100, 1_000), (5_000, 2_000)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.data(name) if name in datasets.NAMES else ())
        for name in sorted(set(DATASETS) - {"t with 2.5 degrees, d = 3"})
    ],
)
def test_false_alarms_are_as_many_as_asked_for_on_all_data(name, counts, kind):
    """The table of docs/drift.md, whose exception is the heavy tail of 2.5 degrees.

    It fails without cause once in ten thousand times, at each level and side.
    """
    if name.startswith("t with") and kind == "planned" and min(counts) < 1_000:
        pytest.skip("a few rows of a heavy tail decide: 0.04 for 0.01, docs/drift.md")
    X = DATASETS[name]()
    table = FeatureTable.of(X, spec_of(X, kind))

    rates = rejections(table, counts, laws=10, each=100)

    for rate, level in zip(rates, LEVELS, strict=True):
        assert rate * 1_000 <= binom.isf(1e-4, 1_000, ROUGH * level)
        assert rate * 1_000 >= binom.ppf(1e-4, 1_000, level / 2)
