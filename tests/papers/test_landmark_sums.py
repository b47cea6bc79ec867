"""Sums of kernels with landmarks: against plain sums, to the bit, and through the file."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Rows, SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.sketch.family import WeightedRows, Zone
from sketchshift_papers.landmarks import _POWER_OF_TWO as POWER_OF_TWO
from sketchshift_papers.landmarks import LandmarkFamily, draw, kernel_means, parameters

PLACES = np.array([[0.5, -0.25], [-1.0, 0.75], [2.0, 2.0], [0.0, 0.0]])
SPEC = SketchSpec.of(
    Rows(2, None, (0.1, 0.2), 2.0, 0.25),
    families={"landmarks": parameters(PLACES, 0.7)},
)


def rows(seed, n=300):
    return np.random.default_rng(seed).standard_t(3, size=(n, 2))


def test_sums_are_those_of_the_kernels():
    """Each row is rounded by half a step of 2**-22; the polynomial is off by 2e-10."""
    X, weights = rows(0), np.random.default_rng(1).uniform(0, 3, size=300)
    places = (X - SPEC.rows.center_vector) / SPEC.rows.scale_vector

    s = ss.sketch(X, SPEC, sample_weight=weights)

    squares = ((places[:, None] - PLACES) ** 2).sum(axis=2)
    expected = weights @ np.exp(-squares / (2 * 0.7**2)) / weights.sum()
    np.testing.assert_allclose(kernel_means(s), expected, rtol=0, atol=2.0**-21)


def family(landmarks):
    return LandmarkFamily(SPEC, **landmarks)


def integer_by_hand(x, place, bandwidth, factor):
    """What docs/format.md says, in Python's floats, one operation after the other."""
    s = 0.0
    for a, b in zip(x, place, strict=True):
        s = s + (a - b) * (a - b)
    t = max(-(s * (0.5 * 1.4426950408889634 / (bandwidth * bandwidth))), -64.0)
    n = round(t)
    r, p = t - n, 1.3215486790144309e-06
    for c in (
        1.525273380405984e-05,
        0.0001540353039338161,
        0.0013333558146428443,
        0.009618129107628477,
        0.05550410866482158,
        0.2402265069591007,
        0.6931471805599453,
        1.0,
    ):
        p = p * r + c
    return round(factor * math.ldexp(p, n + 22))


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_integers_are_those_of_the_format_to_the_bit(name):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3)) * rng.choice([1e-9, 0.1, 1.0, 30.0], size=(200, 1))
    places = rng.normal(size=(7, 3)).astype(np.float32)
    factors = np.maximum(rng.uniform(size=200), rng.integers(2, size=200))
    family = LandmarkFamily(SketchSpec(3, 1, 1.0), **parameters(places, 0.6))
    adder = family.adders(select_kernel(name))()

    adder.add(WeightedRows(X, X, np.zeros(200, dtype=np.int64), factors, 0, Zone.NEAR))

    totals = adder.take_sums(1)[0]

    rows = list(zip(X.tolist(), factors.tolist(), strict=True))
    for total, place in zip(totals, places.tolist(), strict=True):
        assert total == sum(integer_by_hand(x, place, 0.6, factor) for x, factor in rows)


def test_coefficients_are_those_of_a_power_of_two():
    """log(2)^k / k!, and the largest error of the polynomial on |r| <= 1/2."""
    exact = [math.log(2.0) ** k / math.factorial(k) for k in range(9)]
    r = np.linspace(-0.5, 0.5, 10_001)

    np.testing.assert_allclose(POWER_OF_TWO, exact, rtol=1e-14)
    assert np.abs(np.polyval(POWER_OF_TWO[::-1], r) / 2.0**r - 1.0).max() < 3e-10


def test_sums_that_no_rows_have_are_refused():
    s = ss.sketch(rows(7), SPEC)
    for change in (-(2**40), 2**40):
        totals = s._totals.take(np.arange(1))
        totals.dense["landmarks"][0, 3] += change >> 32
        assert not totals.is_sound()
    assert s._totals.is_sound()


def test_landmarks_are_drawn_from_the_rows_each_once():
    X = np.repeat(rows(9, 50), 3, axis=0)

    few, many = (family(draw(X, n, bandwidth=1.0, seed=3)).places for n in (10, 1000))

    assert many.shape == (50, 2)
    np.testing.assert_array_equal(many[:10], few)
    assert {tuple(x) for x in many} == {tuple(x) for x in X.astype(np.float32)}
    assert draw(X, 10, bandwidth=1.0, seed=4) != draw(X, 10, bandwidth=1.0, seed=3)


def test_parameters_that_do_not_fit_the_rows_are_refused():
    good = parameters(PLACES, 0.7)
    for change, message in (
        (parameters(np.eye(3), 0.7), "8 bytes for each of 1 to"),
        (good | {"bandwidth": 0.0}, "'bandwidth' parameter of LandmarkFamily"),
        (good | {"more": 1}, "does not take the parameters"),
    ):
        spec = SPEC.replaced(families={"landmarks": change})
        with pytest.raises(ss.errors.SpecError, match=message):
            ss.sketch(PLACES, spec)


def test_places_that_are_no_places_are_refused():
    ragged = [[1.0], [1.0, 2.0]]
    for places in ([], [1.0], [[np.nan]], np.zeros((2, 0)), [[1e39]], [["a"]], ragged, [[1j]]):
        with pytest.raises(ss.errors.SpecError, match="'places' parameter"):
            parameters(places, 1.0)
    with pytest.raises(ss.errors.SpecError, match="'rows' parameter"):
        draw([1.0], 5, bandwidth=1.0)
    with pytest.raises(ss.errors.SpecError, match=r"'seed' parameter of draw"):
        draw(rows(9), 5, bandwidth=1.0, seed=-1)
