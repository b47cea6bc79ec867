"""The joint descent over all components: a step that any decoder may end with."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.mixtures import Mixture
from sketchshift.objective import MomentMatching

__all__ = ["refine"]

_TOLERANCE = 1e-13  # of the squared relative residual, below the float32 rounding of its square


def refine(problem: Problem, mixture: Mixture, *, max_iterations: int = 300) -> Mixture:
    r"""Minimise :math:`\|z - \sum_i \alpha_i \mathcal A \pi_i\|^2` in all parameters at once.

    Parameters
    ----------
    problem : Problem
        The sketch and the domain, which bounds the centroids.
    mixture : Mixture
        Where to start; Diracs stay Diracs, Gaussians keep full covariances.
    max_iterations : int
        Of L-BFGS-B.

    Returns
    -------
    mixture : Mixture
        Its residual is not larger. O(k m d) an iteration, O(k m d^2) for Gaussians.
    """
    from scipy.optimize import minimize

    k, d = mixture.means.shape
    if k == 0:
        return mixture
    is_dirac = mixture.covariances is None
    objective = MomentMatching(problem.turns, problem.z, "none" if is_dirac else "full")
    S = None if is_dirac else _factors(mixture.covariances, problem.bandwidth)
    # Weights are scaled to be of order 1, lengths to the bandwidth: all steps then matter alike.
    share, length = 1.0 / k, problem.bandwidth
    scales = objective.pack(
        np.full(k, share), np.full((k, d), length), None if S is None else np.full_like(S, length)
    )
    start = objective.pack(mixture.weights, mixture.means, S)

    def f(x: FloatArray) -> tuple[float, FloatArray]:
        alpha, C, spread = objective.unpack(x * scales, k)
        value, of_alpha, of_C, of_spread = objective.value_and_gradient(alpha, C, spread)
        gradient = objective.pack(of_alpha, of_C, of_spread) * scales
        return value / problem.norm**2, gradient / problem.norm**2

    lower, upper = (np.tile(end, (k, 1)) for end in (problem.box.lower, problem.box.upper))
    free = None if S is None else np.full_like(S, np.inf)
    low = objective.pack(np.zeros(k), lower, None if free is None else -free)
    high = objective.pack(np.full(k, np.inf), upper, free)
    result = minimize(
        f,
        np.clip(start, low, high) / scales,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / scales, high / scales, strict=True)),
        options={"maxiter": max_iterations, "ftol": _TOLERANCE, "gtol": _TOLERANCE},
    )
    alpha, C, spread = objective.unpack(result.x * scales, k)
    refined = Mixture(alpha, C, objective.covariances(spread, d))
    is_better = problem.residual_norm(refined) <= problem.residual_norm(mixture)
    return refined if is_better else mixture


def _factors(covariances: FloatArray | None, bandwidth: float) -> FloatArray:
    """Cholesky factors, of a hundredth of the bandwidth where a component is a Dirac."""
    assert covariances is not None
    d = covariances.shape[1]
    return np.asarray(np.linalg.cholesky(covariances + (0.01 * bandwidth) ** 2 * np.eye(d)))
