"""Sums of kernels with landmarks: against plain sums, to the bit, and through the file."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.kernels import select_kernel

PLACES = np.array([[0.5, -0.25], [-1.0, 0.75], [2.0, 2.0], [0.0, 0.0]])
SPEC = ss.SketchSpec(
    2, 0, 0.7, landmarks=ss.features.Landmarks.of(PLACES), scale=2.0, center=(0.1, 0.2)
)
seeds = st.integers(0, 2**32 - 1)


def rows(seed, n=300):
    return np.random.default_rng(seed).standard_t(3, size=(n, 2))


def test_sums_are_those_of_the_kernels():
    """Each row is rounded by half a step of 2**-22; the polynomial is off by 2e-10."""
    X, weights = rows(0), np.random.default_rng(1).uniform(0, 3, size=300)
    places = (X - SPEC.center_vector) / SPEC.scale_vector

    s = ss.sketch(X, SPEC, sample_weight=weights)

    squares = ((places[:, None] - PLACES) ** 2).sum(axis=2)
    expected = weights @ np.exp(-squares / (2 * 0.7**2)) / weights.sum()
    np.testing.assert_allclose(s.kernel_means, expected, rtol=0, atol=2.0**-21)


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
@pytest.mark.parametrize("factors", [None, "some"])
def test_integers_are_those_of_the_format_to_the_bit(name, factors):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3)) * rng.choice([1e-9, 0.1, 1.0, 30.0], size=(200, 1))
    places = rng.normal(size=(7, 3)).astype(np.float32)
    factors = None if factors is None else rng.uniform(size=200)
    rate = 0.5 * 1.4426950408889634 / (0.6 * 0.6)
    totals = np.zeros(7, dtype=np.int64)

    select_kernel(name).landmarks(places, rate)(X, factors, totals)

    expected = [
        sum(
            integer_by_hand(x, place, 0.6, 1.0 if factors is None else factors[i])
            for i, x in enumerate(X.tolist())
        )
        for place in places.astype(np.float64).tolist()
    ]
    assert totals.tolist() == expected


def test_coefficients_are_those_of_a_power_of_two():
    """log(2)^k / k!, and the largest error of the polynomial on |r| <= 1/2."""
    from sketchshift.kernels.contract import POWER_OF_TWO

    exact = [math.log(2.0) ** k / math.factorial(k) for k in range(9)]
    r = np.linspace(-0.5, 0.5, 10_001)

    np.testing.assert_allclose(POWER_OF_TWO, exact, rtol=1e-14)
    assert np.abs(np.polyval(POWER_OF_TWO[::-1], r) / 2.0**r - 1.0).max() < 3e-10


@given(
    seed=seeds,
    cuts=st.lists(st.integers(0, 300), min_size=1, max_size=6),
    n_threads=st.sampled_from([1, 3]),
)
@settings(max_examples=30)
def test_parts_merge_and_subtract_to_the_bit(seed, cuts, n_threads):
    X = rows(seed)
    whole = ss.sketch(X, SPEC)
    first, *others = [part for part in np.split(X, sorted(cuts)) if len(part)]

    rest = sum((ss.sketch(part, SPEC) for part in others), ss.Sketcher(SPEC).sketch())
    assert (ss.sketch(first, SPEC) + rest).to_bytes() == whole.to_bytes()
    assert (whole - ss.sketch(first, SPEC)).to_bytes() == rest.to_bytes()
    assert ss.sketch(iter([first, *others]), SPEC, n_threads=n_threads) == whole
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


@given(seed=seeds, times=st.integers(0, 9), fraction=st.sampled_from([0.25, 0.3]))
@settings(max_examples=20)
def test_a_whole_weight_is_as_many_rows(seed, times, fraction):
    def sums(weight):
        s = ss.sketch(rows(seed, 20), SPEC, sample_weight=np.full(20, weight))
        return s._totals.parts["landmarks"]

    np.testing.assert_array_equal(sums(times + fraction), sums(fraction) + times * sums(1.0))


def test_sums_that_no_rows_have_are_refused():
    s = ss.sketch(rows(7), SPEC)
    for change in (-(2**40), 2**40):
        totals = s._totals.copy()
        totals.parts["landmarks"][1] += change
        assert not totals.is_sound(SPEC)
    assert s._totals.is_sound(SPEC)


def test_sketches_of_other_landmarks_do_not_mix():
    moved = replace(SPEC, landmarks=ss.features.Landmarks.of(PLACES + 0.5))

    with pytest.raises(ss.errors.IncompatibleSketchesError, match="different plans"):
        ss.sketch(rows(8), SPEC) + ss.sketch(rows(8), moved)


def test_landmarks_are_drawn_from_the_rows_each_once():
    X = np.repeat(rows(9, 50), 3, axis=0)

    few, many = (ss.features.Landmarks.draw(X, n, seed=3).table for n in (10, 1000))

    assert many.shape == (50, 2)
    np.testing.assert_array_equal(many[:10], few)
    assert {tuple(x) for x in many} == {tuple(x) for x in X.astype(np.float32)}
    assert ss.features.Landmarks.draw(X, 10, seed=4) != ss.features.Landmarks.draw(X, 10, seed=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bandwidth": (0.5, 2.0)}, r"the kernel of one bandwidth, .* as bandwidth=1\."),
        ({"cells": ss.features.Cells.of(PLACES)}, "a spec with landmarks has no cells"),
        ({"origin": ss.features.Origin("declared", 3.0)}, "a spec with landmarks has no origin"),
        ({"landmarks": PLACES}, "'landmarks' parameter .* must be Landmarks of 2 columns"),
        ({"landmarks": ss.features.Landmarks.of(np.eye(3))}, "must be Landmarks of 2 columns"),
        ({"landmarks": None}, "'sketch_size' parameter .* must be an integer from 1"),
    ],
)
def test_what_does_not_go_with_landmarks_is_refused(change, message):
    with pytest.raises(ss.errors.SpecError, match=message):
        replace(SPEC, **change)


@pytest.mark.parametrize(
    "places",
    [
        [],
        [1.0],
        [[np.nan]],
        np.zeros((2, 0)),
        [[1e39]],
        [["a"]],
        [[1.0], [1.0, 2.0]],
        [[1.0 + 2.0j]],
    ],
)
def test_places_that_are_no_places_are_refused(places):
    with pytest.raises(ss.errors.SpecError, match="'places' parameter"):
        ss.features.Landmarks.of(places)
    with pytest.raises(ss.errors.SpecError, match=r"'(places|rows)' parameter"):
        ss.features.Landmarks.draw(places, 5)
    with pytest.raises(ss.errors.SpecError, match=r"'seed' parameter of Landmarks\.draw"):
        ss.features.Landmarks.draw(rows(9), 5, seed=-1)
