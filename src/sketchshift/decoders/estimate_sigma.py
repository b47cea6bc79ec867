"""The covariance of a cluster from the curvature of the correlation function (Appendix B)."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.objective import CorrelationFunction

__all__ = ["estimate_sigma"]

_FLATTEST = 1e-6  # curvature, in inverse squared bandwidths, that float32 still tells from none


def estimate_sigma(
    correlation: CorrelationFunction, c: FloatArray, *, bandwidth: float
) -> FloatArray | None:
    r"""Covariance of the cluster around ``c``, or ``None`` where a Dirac must do.

    Close to a well-separated centroid the kernel mean embedding is a Gaussian bump widened by
    the kernel, so the curvature of its logarithm gives the covariance:

    .. math::

        \hat H = -\nabla^2 \log f_{z_{\mathcal X}}(c) \approx (\Sigma + \sigma^2 I_d)^{-1},
        \qquad \hat\Sigma = \hat H^{-1} - \sigma^2 I_d .

    Parameters
    ----------
    correlation : CorrelationFunction
        Of the sketch itself, not of a residual.
    c : array of shape (d,)
        A centroid, usually a local maximum.
    bandwidth : float
        :math:`\sigma`, in the units of ``c``.

    Returns
    -------
    covariance : array of shape (d, d) or None
        ``None`` when :math:`\hat\Sigma` is not positive definite, the correlation at ``c``
        not positive, or its logarithm flat.

    Notes
    -----
    One Hessian and two eigendecompositions: O(m d^2 + d^3). The estimate degrades as d grows;
    the paper reports worse results than Diracs at d = 10.
    """
    values, gradients = correlation.value_and_gradient(c)
    f, gradient = values[0], gradients[0]
    if not f > 0:
        return None
    H = (np.outer(gradient, gradient) - f * correlation.hessian(c)[0]) / f**2
    curvatures, axes = np.linalg.eigh((H + H.T) / 2)
    if not curvatures[0] > _FLATTEST / bandwidth**2:
        return None
    variances = 1.0 / curvatures - bandwidth**2
    if variances.min() <= 0:
        return None
    return np.asarray((axes * variances) @ axes.T)
