"""Where the rows lie, as a sketch tells it, or else the clusters decoded from it.

Symbols
-------
d         dimension
"""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.decoding import Decoding
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["moments_of", "spread_of"]


def moments_of(
    sketch: AnySketch, decoding: Decoding | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of the rows.

    A private sketch does not tell them: those of the clusters are taken, or, without clusters,
    those its plan expects.
    """
    if isinstance(sketch, Sketch):
        return sketch.mean, sketch.covariance
    if decoding is None or not len(decoding.weights):
        return sketch.outline
    mean = decoding.weights @ decoding.centroids
    rests = decoding.centroids - mean
    covariance = (rests.T * decoding.weights) @ rests
    if decoding.covariances is not None:
        covariance += np.einsum("i,ijk->jk", decoding.weights, decoding.covariances)
    return mean, covariance


def spread_of(sketch: AnySketch, decoding: Decoding | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each column, as :func:`moments_of` has them: shapes (d,)."""
    if isinstance(sketch, Sketch):
        return sketch.mean, sketch.variance
    mean, covariance = moments_of(sketch, decoding)
    return mean, np.diagonal(covariance)
