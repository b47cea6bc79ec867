"""Non-negative weights of atoms, and the choice of the heaviest."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray, IntArray
from sketchshift.mixtures import Mixture

__all__ = ["choose", "hard_threshold", "nonnegative_weights"]


def nonnegative_weights(atoms: ComplexArray, z: ComplexArray) -> FloatArray:
    r"""Weights :math:`\arg\min_{\alpha \ge 0} \|z - \sum_i \alpha_i a_i\|`.

    Parameters
    ----------
    atoms : complex array of shape (k, m)
        Sketches of the components.
    z : complex array of shape (m,)
        The sketch.

    Returns
    -------
    alpha : array of shape (k,)
        By the active-set method of Lawson and Hanson on the k x k normal equations:
        O(k^2 m + k^4) at worst.
    """
    from scipy.optimize import nnls

    gram = (atoms.conj() @ atoms.T).real
    target = (atoms.conj() @ z).real
    # A ridge far below float32's own errors keeps equal atoms apart; the floor is for atoms so
    # wide that they vanish at all frequencies.
    gram += max(1e-10 * np.trace(gram) / len(gram), 1e-30) * np.eye(len(gram))
    factor = np.linalg.cholesky(gram)
    weights, _ = nnls(factor.T, np.linalg.solve(factor, target), maxiter=30 * len(gram))
    return np.asarray(weights)


def hard_threshold(weights: FloatArray, k: int) -> IntArray:
    """Indices of the k largest weights, largest first; ties go to the earlier."""
    return np.argsort(-weights, kind="stable")[:k]


def choose(mixture: Mixture, keep: IntArray) -> Mixture:
    """The mixture of some of the components, in the order given; Diracs alone need no zeros."""
    covariances = mixture.covariances
    if covariances is not None:
        covariances = covariances[keep] if covariances[keep].any() else None
    return Mixture(mixture.weights[keep], mixture.means[keep], covariances)
