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
    if S is None or S.ndim < 3:
        return np.array(
            [np.diag(np.broadcast_to(s, D) ** 2) for s in (np.zeros(K) if S is None else S)]
        )
    return S @ S.swapaxes(1, 2)


def F(objective, alpha, C, S):
    """The definition of the objective, in float64, with Sigma_i written component by component."""
    omega = 2 * np.pi * objective.turns.astype(float)
    q = np.einsum("am,kab,bm->km", omega, covariances(S), omega)
    rests = objective.z - alpha @ np.exp(1j * (C @ omega) - q / 2) / np.sqrt(M)
    w = 1.0 if objective.frequency_weights is None else objective.frequency_weights
    return np.sum(w * np.abs(rests) ** 2)


def test_values_and_gradients_are_those_of_the_definition(problem):
    objective, *variables = problem

    value, *gradients = objective.value_and_gradient(*variables)

    np.testing.assert_allclose(value, F(objective, *variables), rtol=1e-6)
    assert objective.value(*variables) == value
    vector, found = objective.pack(*variables), objective.pack(*gradients)
    for i, step in enumerate(1e-5 * np.eye(len(vector))):
        above, below = (
            F(objective, *objective.unpack(x, K)) for x in (vector + step, vector - step)
        )
        assert found[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=2e-6)  # sines
    for left, right in zip(objective.unpack(vector, K), variables, strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_residual_is_the_sketch_without_the_mixture(problem):
    objective, alpha, C, S = problem

    mixture = Mixture(alpha, C, objective.covariances(S, D))

    expected = objective.z - mixture.sketch(objective.turns)
    np.testing.assert_allclose(objective.residual(alpha, C, S), expected, atol=1e-7)
    if S is not None:
        np.testing.assert_allclose(mixture.covariances, covariances(S), rtol=1e-14)


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
