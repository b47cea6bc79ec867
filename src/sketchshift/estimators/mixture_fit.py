"""From a sketch alone to k Gaussians: moment matching, or EM on points that stand for the data.

Decides which of the two; ``moment_fit`` has the first, scikit-learn the second.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding, decode
from sketchshift.decoders.base import one_blas_thread
from sketchshift.estimators.gaussians import Coordinates, CovarianceType, Gaussians
from sketchshift.estimators.moment_fit import MomentFit
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.sketch import Sketch

__all__ = ["draw_points", "fit_mixture", "n_cells"]

EXPLAINED = 0.5  # misfit N F up to which k Gaussians are what the rows were drawn from
CELLS, MANY_CELLS = 6, 100  # the finer clusters that points are drawn from: for each, and in all
POINTS, POINTS_PER_COMPONENT = 20_000, 400
EM_FLOOR = 10.0  # floors of the coordinates
EM_TOLERANCE = 1e-4  # of the mean logarithm of the density


@one_blas_thread
def fit_mixture(
    sketch: Sketch, decoding: Decoding, kind: CovarianceType, *, max_iterations: int, seed: int
) -> Gaussians:
    """The mixture behind a sketch, in the units of the data.

    One Gaussian has the mean and covariance of the rows, which are exact. If the sketch has no
    tilt and k Gaussians explain it but for what sampling leaves, moment matching is the answer.
    Otherwise the sketch is decoded into many more clusters, and the mixture is the most
    likely one for points drawn from these.

    Parameters
    ----------
    sketch : Sketch
        Of any kind.
    decoding : Decoding
        Its k clusters.
    kind : {"full", "diag", "spherical"}
        Type of the covariances.
    max_iterations : int
        Of the descent, or of EM.
    seed : int
        Of the finer decoding and of the points.

    Returns
    -------
    gaussians : Gaussians
        As many as there are clusters.
    """
    coordinates = Coordinates.of(sketch, kind)
    if len(decoding.weights) == 1 and sketch.spec.has_full_covariance:
        one = coordinates.gaussians(_one(sketch, decoding))
        return coordinates.in_units(dataclasses.replace(one, n_iter=1))
    if sketch.spec.tilt is None:
        fit, misfit = MomentFit.of(sketch, decoding, coordinates).descend(max_iterations)
        if misfit <= EXPLAINED:
            return coordinates.in_units(fit)
    k = len(decoding.weights)
    fine = decode(sketch, n_cells(k, sketch), seed=seed)
    points = draw_points(coordinates, fine, max(POINTS, POINTS_PER_COMPONENT * k), seed)
    start = coordinates.gaussians(decoding)
    return coordinates.in_units(_most_likely(points, start, coordinates, max_iterations))


def n_cells(k: int, sketch: Sketch) -> int:
    """Number of finer clusters: as many as help, if the sketch can tell them apart."""
    d, m = sketch.spec.n_features, sketch.spec.sketch_size
    return max(CELLS * k, min(MANY_CELLS, m // d))


def _one(sketch: Sketch, decoding: Decoding) -> Decoding:
    """All rows as one cluster, with their own mean and covariance."""
    return dataclasses.replace(
        decoding, centroids=sketch.mean[None], covariances=sketch.covariance[None]
    )


def draw_points(coordinates: Coordinates, fine: Decoding, n: int, seed: int) -> FloatArray:
    """About n points of Gaussians at the clusters, in opposite pairs: their means are exact."""
    means, covariances = coordinates.clusters(fine)
    ends = np.rint(np.cumsum(fine.weights / fine.weights.sum()) * n / 2).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    normals = normal_quantile(uniforms(seed, Purpose.SAMPLE, np.arange(ends[-1]), means.shape[1]))
    factors = np.linalg.cholesky(covariances)
    parts = np.split(normals, ends[:-1])
    rests = np.concatenate([part @ L.T for part, L in zip(parts, factors, strict=True)])
    middles = np.repeat(means, counts, axis=0)
    return np.concatenate([middles + rests, middles - rests])


def _most_likely(
    points: FloatArray, start: Gaussians, coordinates: Coordinates, max_iterations: int
) -> Gaussians:
    """Maximum likelihood by scikit-learn's EM."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    covariances = start.covariances
    model = GaussianMixture(
        len(start.weights),
        covariance_type=coordinates.kind,
        reg_covar=EM_FLOOR * coordinates.floor,
        tol=EM_TOLERANCE,
        max_iter=max_iterations,
        weights_init=start.weights / start.weights.sum(),
        means_init=start.means,
        precisions_init=np.linalg.inv(covariances) if covariances.ndim == 3 else 1 / covariances,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ``converged`` says so
        model.fit(points)
    return Gaussians(
        model.weights_, model.means_, model.covariances_, int(model.n_iter_), bool(model.converged_)
    )
