"""Moment matching: gradients against finite differences, atoms against drawn points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.decoders.objective import MomentMatching

K, D, M = 4, 3, 150
SPREADS = {  # the shape of each kind, and the covariance that the spread of a component stands for
    "none": ((K, 0), lambda s: np.zeros((D, D))),
    "isotropic": ((K,), lambda s: s**2 * np.eye(D)),
    "diagonal": ((K, D), lambda s: np.diag(s**2)),
    "full": ((K, D, D), lambda L: L @ L.T),
}


@pytest.fixture(params=SPREADS)
def problem(request, rng):
    turns = (rng.normal(size=(D, M)) / (2 * np.pi * 0.8)).astype(np.float32)
    z = (rng.normal(size=M) + 1j * rng.normal(size=M)) / np.sqrt(M)
    S = rng.uniform(0.1, 0.6, size=SPREADS[request.param][0])
    S = {"none": None, "full": np.tril(S)}.get(request.param, S)
    objective = MomentMatching(turns, z, request.param, rng.uniform(0.0, 2.0, size=M))
    return objective, rng.uniform(0.1, 1.0, size=K), rng.normal(size=(K, D)), S


def residual(objective, alpha, C, S):
    """What is left of the sketch by the definition, in float64, and the covariances."""
    omega = 2 * np.pi * objective.turns.astype(float)
    covariance = SPREADS[objective.spread][1]
    covariances = np.array([covariance(s) for s in (np.zeros(K) if S is None else S)])
    q = np.einsum("am,kab,bm->km", omega, covariances, omega)
    return objective.z - alpha @ np.exp(1j * (C @ omega) - q / 2) / np.sqrt(M), covariances


def test_values_and_gradients_are_those_of_the_definition(problem, central_differences):
    objective, *variables = problem
    vector = objective.pack(*variables)

    def values(vectors):
        left = [residual(objective, *objective.unpack(vector, K))[0] for vector in vectors]
        return np.square(np.abs(left)) @ objective.frequency_weights

    value, *gradients = objective.value_and_gradient(*variables)

    assert_allclose(value, values([vector]), rtol=1e-6)
    assert objective.value(*variables) == value
    expected = central_differences(values, vector[None], 1e-5)[0]
    assert objective.pack(*gradients) == pytest.approx(expected, rel=1e-5, abs=2e-6)  # sines
    left, covariances = residual(objective, *variables)
    assert_allclose(objective.residual(*variables), left, atol=1e-7)
    if objective.spread != "none":
        found = objective.covariances(variables[2], D)
        assert_allclose(found, covariances, rtol=1e-14)


def test_what_does_not_fit_together_is_refused(problem):
    objective, alpha, C, S = problem
    turns, z = objective.turns, objective.z

    for make, message in (
        (lambda: MomentMatching(turns, z, "spherical"), "'spread' .* must be one of"),
        (lambda: MomentMatching(turns, z[1:]), r"Got \(3, 150\) and \(149,\)"),
        (lambda: MomentMatching(turns, z, "none", np.ones(1)), r"150 finite .* Got shape \(1,\)"),
        (lambda: MomentMatching(turns, z, "none", -np.ones(M)), "least -1"),
        (lambda: objective.value(alpha, C[:, :2], S), r"takes C of shape \(k, 3\)"),
        (lambda: objective.value(alpha, C, np.ones(9)), r"S of shape .* Got \(4, 3\) and \(9,\)"),
    ):
        with pytest.raises(ss.errors.SpecError, match=message):
            make()
