"""Mixtures of alpha-stable laws: known laws, given exactly or as samples of SciPy's, come back."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import levy_stable, norm

import sketchshift as ss
from sketchshift.decoders import Problem
from sketchshift.errors import DataError, SpecError
from sketchshift.features import Rows, Waves
from sketchshift_papers.decoders import decode_stable
from sketchshift_papers.decoders.stable import _Fitter

N = 20_000
WEIGHTS = np.array([0.5, 0.3, 0.2])
LOCATIONS = {1: np.array([[-6.0], [0.0], [5.0]]), 2: np.array([[-3.0, 0], [3, 1], [0, 4]])}
SCALES = {1: np.array([[0.5], [0.7], [0.4]]), 2: np.array([[0.4, 0.6], [0.5, 0.5], [0.3, 0.2]])}


def draw(alpha, n, d, rng):
    """Rows of an elliptic law of scale 1: a Gaussian times the root of a positive stable number."""
    if alpha == 2.0:
        return np.sqrt(2.0) * rng.normal(size=(n, d))
    scale = np.cos(np.pi * alpha / 4) ** (2 / alpha)
    mixing = levy_stable.rvs(alpha / 2, 1, scale=scale, size=(n, 1), random_state=rng)
    return np.sqrt(2.0 * mixing) * rng.normal(size=(n, d))


def mixture_rows(alphas, d, seed):
    rng = np.random.default_rng(seed)
    parts = [
        c + s * draw(alpha, int(w * N), d, rng)
        for alpha, w, c, s in zip(alphas, WEIGHTS, LOCATIONS[d], SCALES[d], strict=True)
    ]
    return np.concatenate(parts)


def plain_spec(X, m=400, seed=0):
    """Center and scale that far rows do not move."""
    low, median, high = np.percentile(X, (25, 50, 75), axis=0)
    scale = float(np.max(high - low))
    return ss.SketchSpec(X.shape[1], m, (0.05, 5.0), center=median, scale=scale, seed=seed)


def characteristic_function(omega, weights, locations, scales, alphas):
    """The definition, one component and one column after the other."""
    total = np.zeros(omega.shape[1], dtype=complex)
    for w, c, s, alpha in zip(weights, locations, scales, alphas, strict=True):
        q = sum((s[i] * omega[i]) ** 2 for i in range(len(omega)))
        total += w * np.exp(1j * (c @ omega)) * np.exp(-(q ** (alpha / 2)))
    return total


@pytest.mark.parametrize(
    ("d", "alphas"),
    [
        (1, (2.0, 2.0, 2.0)),
        (2, (1.2, 1.5, 1.9)),
        pytest.param(1, (0.7, 1.8, 1.2), marks=pytest.mark.thorough),
        pytest.param(2, (1.0, 1.0, 1.0), marks=pytest.mark.thorough),
    ],
)
def test_the_parameters_of_an_exact_characteristic_function_are_found(d, alphas):
    X = np.random.default_rng(0).normal(size=(50, d)) * 4  # for mean and covariance alone
    problem = Problem.of(ss.sketch(X, ss.SketchSpec(d, 300, (0.2, 5.0))), 3, None, 0, "test")
    omega = 2 * np.pi * problem.turns.astype(np.float64)
    zeta = characteristic_function(omega, WEIGHTS, LOCATIONS[d], SCALES[d], alphas)

    found = _Fitter(dataclasses.replace(problem, z=zeta / np.sqrt(300)), 0).fit(3)

    expected = {"weights": WEIGHTS, "locations": LOCATIONS[d], "scales": SCALES[d]}
    for name, values in (expected | {"alphas": alphas}).items():
        ordered = getattr(found, name)[np.argsort(-found.weights)]
        np.testing.assert_allclose(ordered, values, atol=1e-3)


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 1.8, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_one_law_is_found_from_its_samples(alpha, seed):
    x = levy_stable.rvs(alpha, 0, loc=3, scale=0.5, size=(N, 1), random_state=seed)

    found = decode_stable(ss.sketch(x, plain_spec(x, 200, seed)))

    assert found.weights.tolist() == [1.0]
    assert found.alphas == pytest.approx([alpha], abs=0.04)
    assert found.locations[0] == pytest.approx([3.0], abs=0.03)
    assert found.scales[0] == pytest.approx([0.5], rel=0.04)
    assert found.residual_norm < 0.02


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "alphas", [(1.2, 1.2, 1.2), (1.5, 1.5, 1.5), (1.8, 1.8, 1.8), (2.0, 2.0, 2.0), (1.2, 1.5, 1.9)]
)
def test_three_laws_are_found_from_their_samples(d, alphas):
    X = mixture_rows(alphas, d, seed=0)

    found = decode_stable(ss.sketch(X, plain_spec(X)), 3)

    np.testing.assert_allclose(found.weights, WEIGHTS, atol=0.02)
    np.testing.assert_allclose(found.locations, LOCATIONS[d], atol=0.05)
    np.testing.assert_allclose(found.scales, SCALES[d], rtol=0.06)
    np.testing.assert_allclose(found.alphas, alphas, atol=0.15)
    assert abs(found.alphas[0] - alphas[0]) < 0.06  # half of the rows are its


def test_the_characteristic_function_is_in_the_units_of_the_data():
    """That of the rows, up to the noise of sampling; at 0 it is 1."""
    X = 1000.0 + 50.0 * mixture_rows((1.5, 1.5, 1.5), 1, seed=0)
    found = decode_stable(ss.sketch(X, plain_spec(X)), 3)
    omega = np.linspace(0, 0.05, 20)[None]

    values = found.characteristic_function(omega)

    np.testing.assert_allclose(values, np.exp(1j * X @ omega).mean(axis=0), atol=0.02)
    assert values[0] == pytest.approx(1.0)
    with pytest.raises(SpecError, match=r"has 1 columns, .* shape \(1, n\)\. Got \(3,\)"):
        found.characteristic_function(np.zeros(3))


def test_rows_that_are_equal_have_hardly_any_scale():
    found = decode_stable(ss.sketch(np.full((50, 2), 3.0), ss.SketchSpec(2, 60, (0.1, 5.0))))

    np.testing.assert_allclose(found.locations, [[3.0, 3.0]], atol=1e-3)
    assert found.scales.max() < 1e-2


def test_the_same_seed_gives_the_same_bytes_and_a_domain_is_kept_to():
    X = mixture_rows((1.5, 1.5, 1.5), 1, seed=0)
    sketch = ss.sketch(X, plain_spec(X))

    first, second = (decode_stable(sketch, 3, seed=5) for _ in range(2))
    inside = decode_stable(sketch, 1, domain=ss.decoders.Box([2.0], [20.0]))

    np.testing.assert_array_equal(first.alphas, second.alphas)
    assert inside.locations[0, 0] >= 2.0


def test_directions_rows_out_of_reach_and_half_a_component_are_refused():
    X = np.random.default_rng(0).normal(size=(300, 2)) + 5
    directions = ss.sketch(X, ss.SketchSpec.of(Rows(2, onto="sphere"), Waves(50, 1.0)))
    beyond = ss.sketch(np.vstack([X, [[1e30, 1e30]]]), ss.plan(X, 3, seed=0))

    with pytest.raises(DataError, match="directions"):
        decode_stable(directions)
    with pytest.raises(DataError, match="out of its reach"):
        decode_stable(beyond)
    with pytest.raises(SpecError, match="'n_clusters' parameter of decode_stable"):
        decode_stable(directions, 1.5)


def test_the_page_on_heavy_tails_shows_code_that_runs():
    page = (Path(__file__).parents[2] / "docs" / "stable.md").read_text(encoding="utf-8")
    names = {}

    for block in re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        exec(block, names)

    assert names["mixture"].alphas == pytest.approx([1.5, 2.0], abs=0.1)
    assert names["mixture"].weights == pytest.approx([0.6, 0.4], abs=0.02)


def test_what_is_found_of_gaussian_rows_is_as_good_as_their_own_moments():
    """The efficiency of the estimate: within a factor of 2 of the maximum likelihood."""
    errors, best = [], []
    for seed in range(10):
        x = norm.rvs(size=(2000, 1), random_state=seed)
        found = decode_stable(ss.sketch(x, plain_spec(x, 200, seed)))
        errors.append(found.locations[0, 0])
        best.append(x.mean())

    assert np.std(errors) < 2 * np.std(best)
