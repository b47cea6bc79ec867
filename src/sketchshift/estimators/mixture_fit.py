"""From a sketch alone to k Gaussians: moment matching, or EM on points that stand for the data.

Decides which of the two; ``moment_fit`` has the first, scikit-learn the second.
"""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding, decode
from sketchshift.decoders.base import one_blas_thread
from sketchshift.estimators.gaussians import Coordinates, CovarianceType, Gaussians
from sketchshift.estimators.moment_fit import MomentFit
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["draw_points", "fit_mixture", "most_misfit", "n_cells"]

EXPLAINED = 0.5  # misfit N F up to which k Gaussians are what the rows were drawn from
CHANCE = 2.0  # standard deviations by which the noise of a release may exceed its mean
CELLS, MANY_CELLS = 6, 100  # the finer clusters that points are drawn from: for each, and in all
POINTS, POINTS_PER_COMPONENT = 20_000, 400
EM_FLOOR = 10.0  # floors of the coordinates
EM_TOLERANCE = 1e-4  # of the mean logarithm of the density


@one_blas_thread
def fit_mixture(
    sketch: AnySketch, decoding: Decoding, kind: CovarianceType, *, max_iterations: int, seed: int
) -> Gaussians:
    """The mixture behind a sketch, in the units of the data.

    One Gaussian has the mean and covariance of the rows, where these are exact. If the sketch has
    no tilt and k Gaussians explain it but for what sampling, and the noise of a release, leave,
    moment matching is the answer. Otherwise the sketch is decoded into many more clusters, and the
    mixture is the most likely one for points drawn from these.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
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
    coordinates = Coordinates.of(sketch, decoding, kind)
    k = len(decoding.weights)
    if k == 1 and isinstance(sketch, Sketch) and sketch.spec.has_full_covariance:
        one = coordinates.gaussians(_one(sketch, decoding))
        return coordinates.in_units(dataclasses.replace(one, n_iter=1))
    if sketch.spec.tilt is None:
        fit = MomentFit.of(sketch, decoding, coordinates)
        found, misfit = fit.descend(max_iterations)
        if misfit <= most_misfit(fit.added, sketch.spec.sketch_size):
            return coordinates.in_units(found)
    fine = decode(sketch, n_cells(k, sketch), seed=seed)
    points = draw_points(coordinates, fine, max(POINTS, POINTS_PER_COMPONENT * k), seed)
    start = coordinates.gaussians(decoding)
    return coordinates.in_units(_most_likely(points, start, coordinates, max_iterations))


def most_misfit(added: float, m: int) -> float:
    """The misfit up to which k Gaussians explain a sketch.

    A fit takes up most of the noise of sampling, which is smooth, and hardly any of that of a
    release, which is nearly white: of 2 m numbers, so that its square is known to 1 / sqrt(m).
    """
    return EXPLAINED * (1.0 - added) + (1.0 + CHANCE / math.sqrt(m)) * added


def n_cells(k: int, sketch: AnySketch) -> int:
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
