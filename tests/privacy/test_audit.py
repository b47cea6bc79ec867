"""An adversary who knows all but one row cannot tell more than is promised.

Two neighbours D and D + x0 at one frequency; an adversary projects releases on what x0 adds, on
all coordinates, on the waves or on the count alone, and cuts in the middle. Upper bounds on its
two error rates (Clopper and Pearson, at 1e-9 each) give a lower bound on the mu of Gaussian
differential privacy (Dong, Roth and Su 2022), to be compared with the mu that is claimed. Three
projections and two bounds each: a false alarm in 6e-9 of the runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.features import Origin
from sketchshift.privacy.mechanism import Budget
from sketchshift.privacy.release import release_vector, sensitivity

SPEC = ss.SketchSpec(1, 1, 0.3, origin=Origin("declared", 100.0))
N = 30_000
CLAIM = Budget(3.0, 1e-6)


def vector_of(rows) -> np.ndarray:
    return release_vector(ss.sketch(np.array(rows, dtype=np.float64)[:, None], SPEC))


@dataclass
class Pair:
    """Many releases of two neighbours, and what tells them apart."""

    without: np.ndarray
    with_: np.ndarray
    shift: np.ndarray
    middle: np.ndarray

    def mu(self, chosen: slice) -> float:
        """Lower bound on mu from the coordinates chosen."""
        direction = np.zeros_like(self.shift, dtype=np.float64)
        direction[chosen] = self.shift[chosen]
        cut = direction @ self.middle
        errors = (
            np.count_nonzero(self.without @ direction > cut),
            np.count_nonzero(self.with_ @ direction <= cut),
        )
        highest = [stats.beta.isf(1e-9, n + 1, N - n) for n in errors]
        return float(sum(stats.norm.isf(p) for p in highest))

    def alarms(self, budget: Budget) -> bool:
        """Whether any projection tells more than the budget allows."""
        _, charge = budget.spend(np.zeros(1, dtype=np.int64), sensitivity(1), "release")
        claimed = charge.sensitivity / charge.scale
        found = [self.mu(c) for c in (slice(None), slice(2), slice(2, 3)) if self.shift[c].any()]
        return max(found) > claimed


def released(rows, budget: Budget, row_sensitivity: float) -> np.ndarray:
    """N releases of the same rows: the noise of a tiled vector is independent."""
    vector = vector_of(rows)
    noisy, _ = budget.spend(np.tile(vector, N), row_sensitivity, "release")
    return noisy.reshape(N, 3)


def pair(left, right, budget: Budget, row_sensitivity: float) -> Pair:
    a, b = vector_of(left), vector_of(right)
    return Pair(
        released(left, budget, row_sensitivity),
        released(right, budget, row_sensitivity),
        b - a,
        (a + b) / 2,
    )


D, X0 = [0.1, 0.7, -0.4], 0.25


@pytest.fixture(scope="module")
def honest() -> Pair:
    return pair(D, [*D, X0], CLAIM, sensitivity(1))


def test_an_honest_release_raises_no_alarm_and_the_audit_comes_close(honest):
    """The claim is a mu of 0.61; 30 000 draws show more than 0.45 for certain."""
    assert not honest.alarms(CLAIM)
    assert honest.mu(slice(None)) > 0.45


def test_half_the_noise_raises_the_alarm():
    assert pair(D, [*D, X0], CLAIM, sensitivity(1) / 2).alarms(CLAIM)


def test_a_count_without_noise_raises_the_alarm(honest):
    without, with_ = honest.without.copy(), honest.with_.copy()
    without[:, 2], with_[:, 2] = vector_of(D)[2], vector_of([*D, X0])[2]

    assert Pair(without, with_, honest.shift, honest.middle).alarms(CLAIM)


def test_replacing_a_row_at_the_noise_of_adding_one_raises_the_alarm():
    """The claim is that of replace_one; x0 and its opposite are as far apart as rows can be."""
    turn = 1.0 / float(SPEC.frequencies.turns[0, 0])
    claim = Budget(CLAIM.epsilon, CLAIM.delta, adjacency="replace_one")
    left, right = [*D, X0], [*D, X0 + turn / 2]

    assert pair(left, right, CLAIM, sensitivity(1)).alarms(claim)
    assert not pair(left, right, claim, sensitivity(1)).alarms(claim)
