"""An adversary who knows all but one row cannot tell more than is promised.

Sketches and releases of two neighbours are made as users make them, with the sampler that users
have; D and D + x0 have rows outside of the ball, x0 among them, which are clipped. The adversary
knows D and x0, and scores what was published by how much it looks like D + x0: on all coordinates
of a release, on the waves, the cells or the count alone. Upper bounds on its two error rates
(Clopper and Pearson, at 5e-10 each) give a lower bound on the mu of Gaussian differential privacy
(Dong, Roth and Su 2022), to be compared with the mu that the ledger claims. Ten scores of honest
releases at most, and two bounds each: a false alarm in 1e-8 of the runs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.features import Cells
from sketchshift.privacy import mechanism
from sketchshift.privacy.release import release_vector

LEVEL = 5e-10
DELTA = 1e-6
D, X0 = np.array([[0.1], [0.7], [-0.4], [-80.0]]), np.array([[1e6]])
SPEC = ss.privacy.plan_declared([0.0], 1.0, 1, radius=10.0, sketch_size=1)
CELLS = Cells.of([[-3.0], [0.0], [0.5], [1.0]])  # x0 is clipped to the ball, then to its cell
WITH_CELLS = SPEC.replaced(cells=CELLS)
ALL, WAVES, INNER, COUNT = slice(None), slice(2), slice(2, -1), slice(-1, None)


@pytest.fixture
def audit(release):
    """The mu that is claimed, and what the adversary is certain of by each set of coordinates."""

    def audit(n, spec):
        raw = [ss.sketch(rows, spec) for rows in (D, np.vstack([D, X0]))]
        many = [[release(side, 10.0, DELTA) for _ in range(n)] for side in raw]
        coordinates = [ALL, WAVES, COUNT, *([INNER] if spec.cells else [])]
        certain = [
            lowest_mu(*(likeness(side, *raw, chosen) for side in many)) for chosen in coordinates
        ]
        return math.sqrt(2.0 * many[0][0].ledger.rho), certain

    return audit


def likeness(many, left, right, chosen):
    """Logarithm of how much likelier each release is for ``right`` than for ``left``."""
    a, b = (release_vector(raw)[chosen].astype(np.float64) for raw in (left, right))
    off = np.array([private._totals.vector[chosen] for private in many]) - (a + b) / 2
    return off @ (b - a) / many[0]._totals.scale ** 2


def lowest_mu(left, right):
    """A bound by the scores of two neighbours, high for the second."""
    errors = np.count_nonzero(left > 0.0), np.count_nonzero(right <= 0.0)
    return sum(stats.norm.isf(stats.beta.isf(LEVEL, n + 1, len(left) - n)) for n in errors)


@pytest.mark.parametrize(
    ("spec", "n", "certain"),
    [
        pytest.param(WITH_CELLS, 1000, 1.0, marks=pytest.mark.rates),
        pytest.param(WITH_CELLS, 30_000, 1.55, marks=pytest.mark.slow),
        pytest.param(SPEC, 30_000, 1.55, marks=pytest.mark.slow),
    ],
)
def test_an_honest_release_raises_no_alarm_and_the_audit_comes_close(audit, spec, n, certain):
    """Epsilon 10 is a mu of 1.75. x0, far away, adds all to its cell that a row can add."""
    claimed, found = audit(n, spec)

    assert claimed == pytest.approx(1.7546, abs=1e-3)
    assert max(found) <= claimed
    assert found[0] > certain
    assert spec is SPEC or found[-1] > certain / 8  # of the cells alone


@pytest.mark.rates
def test_half_the_noise_raises_the_alarm(audit, monkeypatch):
    draw = mechanism._draw

    def spoilt(measurement, vector):
        return vector + (draw(measurement, vector) - vector) // 2

    monkeypatch.setattr(mechanism, "_draw", spoilt)
    claimed, found = audit(1000, SPEC)

    assert max(found) > claimed
