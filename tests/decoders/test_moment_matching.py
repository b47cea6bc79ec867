"""Moment matching: gradients against finite differences, atoms against drawn points."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import MomentMatching

K, D, M = 4, 3, 150


def draw_spreads(spread: str, rng: np.random.Generator) -> np.ndarray | None:
    if spread == "none":
        return None
    values = rng.uniform(0.1, 0.6, size=(K, D, D))
    return {"isotropic": values[:, 0, 0], "diagonal": values[:, 0], "full": np.tril(values)}[spread]


@pytest.fixture(params=["none", "isotropic", "diagonal", "full"])
def problem(request):
    rng = np.random.default_rng(0)
    turns = (rng.normal(size=(D, M)) / (2 * np.pi * 0.8)).astype(np.float32)
    z = (rng.normal(size=M) + 1j * rng.normal(size=M)) / np.sqrt(M)
    alpha, C = rng.uniform(0.1, 1.0, size=K), rng.normal(size=(K, D))
    weights = rng.uniform(0.0, 2.0, size=M) if request.param != "isotropic" else None
    objective = MomentMatching(turns, z, request.param, frequency_weights=weights)
    return objective, alpha, C, draw_spreads(request.param, rng)


def covariances(S: np.ndarray | None) -> np.ndarray:
    """Sigma_i, written component by component."""
    if S is None:
        return np.zeros((K, D, D))
    if S.ndim == 3:
        return np.array([L @ L.T for L in S])
    return np.array([np.diag(np.broadcast_to(s, D) ** 2) for s in S])


def F(objective, alpha, C, S):
    """The definition of the objective, in float64."""
    omega = 2 * np.pi * objective.turns.astype(float)
    q = np.einsum("am,kab,bm->km", omega, covariances(S), omega)
    psi = np.exp(1j * (C @ omega) - q / 2)
    w = 1.0 if objective.frequency_weights is None else objective.frequency_weights
    return np.sum(w * np.abs(objective.z - alpha @ psi / np.sqrt(M)) ** 2)


def central_difference(g, x, h=1e-5):
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        gradient[place] = (g(x + step) - g(x - step)) / (2 * h)
    return gradient


def test_values_and_gradients_are_those_of_the_definition(problem):
    objective, alpha, C, S = problem

    value, *gradients = objective.value_and_gradient(alpha, C, S)

    np.testing.assert_allclose(value, F(objective, alpha, C, S), rtol=1e-6)
    assert objective.value(alpha, C, S) == value
    for i, (found, at) in enumerate(zip(gradients, (alpha, C, S), strict=True)):
        if at is None:
            assert found is None
            continue

        def along(x, i=i):
            return F(objective, *(x if i == j else y for j, y in enumerate((alpha, C, S))))

        expected = central_difference(along, at)
        expected = np.tril(expected) if at.ndim == 3 else expected
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)  # float32 sines


def test_the_residual_is_the_sketch_without_the_mixture(problem):
    objective, alpha, C, S = problem

    mixture = Mixture(alpha, C, objective.covariances(S, D))

    expected = objective.z - mixture.sketch(objective.turns)
    np.testing.assert_allclose(objective.residual(alpha, C, S), expected, atol=1e-7)
    if S is not None:
        np.testing.assert_allclose(mixture.covariances, covariances(S), rtol=1e-14)


def test_packing_and_unpacking_change_nothing(problem):
    objective, alpha, C, S = problem

    vector = objective.pack(alpha, C, S)

    n_spreads = {"none": 0, "isotropic": 1, "diagonal": D, "full": D * (D + 1) // 2}
    assert vector.shape == (K * (1 + D + n_spreads[objective.spread]),)
    for left, right in zip(objective.unpack(vector, K), (alpha, C, S), strict=True):
        assert (left is None and right is None) or np.array_equal(left, right)


def test_what_does_not_fit_together_is_refused(problem):
    objective, alpha, C, S = problem
    turns, z = objective.turns, objective.z

    for make, message in (
        (lambda: MomentMatching(turns, z, "spherical"), "'spread' .* must be one of"),
        (lambda: MomentMatching(turns, z[1:]), r"Got \(3, 150\) and \(149,\)"),
        (
            lambda: MomentMatching(turns, z, frequency_weights=np.ones(1)),
            r"150 finite numbers .* Got shape \(1,\)",
        ),
        (lambda: MomentMatching(turns, z, frequency_weights=-np.ones(M)), "least -1"),
        (lambda: objective.value(alpha, C[:, :2], S), r"takes C of shape \(k, 3\)"),
        (lambda: objective.value(alpha, C, np.ones(9)), r"S of shape .* Got \(4, 3\) and \(9,\)"),
    ):
        with pytest.raises(ss.errors.SpecError, match=message):
            make()
