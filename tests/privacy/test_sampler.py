"""The noise is what it should be.

OpenDP cannot be seeded: the test has new draws, and a threshold of p < 1e-9, so that a false
alarm is once in a thousand million runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.privacy.mechanism import Budget

NEVER = 1e-9


def test_noise_is_gaussian_to_its_last_digits_and_new_at_each_place():
    """Kolmogorov and Smirnov for the shape; remainders by 8 for digits that floats lose."""
    look = Budget(1.0, 1e-8).look(1e10, "release")

    x = look.draw(np.zeros(20_000, dtype=np.int64))

    assert stats.kstest(x / look.charge.scale, "norm").pvalue > NEVER
    assert stats.chisquare(np.bincount(x % 8, minlength=8)).pvalue > NEVER
    assert abs(stats.pearsonr(x[:-1], x[1:])[0]) < 6.2 / np.sqrt(len(x))


def test_an_epsilon_above_ten_is_warned_of(raw):
    with pytest.warns(ss.errors.PrivacyWarning, match="epsilon=20 promises little"):
        ss.privacy.release(raw, 20.0, 1e-8)
