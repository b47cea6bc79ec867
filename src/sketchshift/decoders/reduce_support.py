"""From all atoms to k of them, each time by a joint descent over those that remain."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.decoders.refine import refine
from sketchshift.decoders.weights import choose
from sketchshift.mixtures import Mixture

__all__ = ["reduce_support"]

_ON_THE_WAY = 200  # iterations of a descent that another one follows


def reduce_support(problem: Problem, mixture: Mixture, k: int) -> Mixture:
    r"""Refine a mixture, leaving out one by one the component that is missed least.

    To first order, leaving out atom i and fitting the other weights again raises the squared
    residual by :math:`\alpha_i^2 / (G^{-1})_{ii}`, with G the Gram matrix of the atoms: twins
    cost nothing, however heavy, and a light cluster of its own stays.

    Parameters
    ----------
    problem : Problem
        The sketch and the domain.
    mixture : Mixture
        All atoms found.
    k : int
        Number of components to keep.

    Returns
    -------
    mixture : Mixture
        At most k components, refined. T - k joint descents for T atoms.
    """
    mixture = refine(problem, mixture, max_iterations=_ON_THE_WAY)
    while mixture.n_components > k:
        order = np.argsort(-_losses(problem, mixture), kind="stable")
        needed = max(k, min(mixture.n_components - 1, np.count_nonzero(mixture.weights)))
        mixture = choose(mixture, np.sort(order[:needed]))
        mixture = refine(problem, mixture, max_iterations=_ON_THE_WAY)
    return refine(problem, mixture)


def _losses(problem: Problem, mixture: Mixture) -> FloatArray:
    atoms = mixture.characteristic_functions(problem.turns)
    gram = (atoms.conj() @ atoms.T).real / atoms.shape[1]
    ridge = 1e-9 * np.eye(len(gram))  # twins
    losses: FloatArray = mixture.weights**2 / np.diag(np.linalg.inv(gram + ridge))
    return losses
