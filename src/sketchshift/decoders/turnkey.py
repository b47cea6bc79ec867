"""The turnkey decoder: centroids as good as those of k-means, with nothing to tune.

Gaussians, more than there are clusters, are fitted to the sketch several times; points drawn
from all good fits are weighted back from the tilt and given the exact moments; k-means of
these points gives the centroids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders.base import Problem, one_blas_thread
from sketchshift.decoders.decoding import Decoding, Outcome, Progress, Round
from sketchshift.decoders.fewest_points import fewest_points
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.reconstruction import Reconstruction, reconstruct
from sketchshift.decoders.search import n_rounds, search
from sketchshift.decoders.weighted_kmeans import Cells, weighted_kmeans
from sketchshift.mixtures import Mixture
from sketchshift.sketch import Sketch

__all__ = ["Fitted", "decode", "decode_range", "fit_sketch"]

POINTS, POINTS_PER_CLUSTER = 10_000, 200
STARTS, FEWEST_STARTS, STARTED_CELLS = 15, 3, 150  # of the last k-means
SHRUNK = 1e-4  # share of the variance within atoms below which they may be points
FEW = 12  # up to so many clusters, other starts help and swaps do not


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is known of the data behind a sketch, before it is cut into clusters.

    Attributes
    ----------
    problem : Problem
        The sketch.
    reconstruction : Reconstruction
        Points that stand for the rows.
    trace : tuple of Round
        The fits they come from.
    seed : int
        Of the k-means to come.
    points : Mixture or None
        The distinct rows, when they are fewer than the clusters that were fitted for.
    """

    problem: Problem
    reconstruction: Reconstruction
    trace: tuple[Round, ...]
    seed: int
    points: Mixture | None = None

    def decode(self, k: int) -> Decoding:
        """The clusters; all there are, when the rows have fewer distinct values than k."""
        if self.points is not None and k > self.points.n_components:
            return self.problem.decoding(self.points, Outcome.EMPTY_RESIDUAL, self.trace)
        return self.decoding(self.cells(k))

    def cells(self, k: int) -> Cells:
        """The points cut into k cells: O(n k d) an iteration."""
        starts = min(max(STARTED_CELLS // k, FEWEST_STARTS), STARTS)
        points, weights = self.reconstruction.points, self.reconstruction.weights
        return weighted_kmeans(points, weights, k, self.seed, n_init=starts, swaps=k > FEW)

    def decoding(self, cells: Cells) -> Decoding:
        """Cells as clusters in the units of the data, heaviest first."""
        weights = _shares(self.reconstruction, cells)
        order = np.argsort(-weights, kind="stable")
        scale = self.problem.sketch.spec.scale_vector
        covariances = _covariances(self.reconstruction, cells) * np.outer(scale, scale)
        return Decoding(
            self.problem.in_units(cells.centers[order]),
            weights[order],
            covariances[order],
            min(step.residual_norm for step in self.trace),
            Outcome.COMPLETE,
            self.trace,
        )


@one_blas_thread
def decode(
    sketch: Sketch, n_clusters: int, *, seed: int = 0, progress: Progress | None = None
) -> Decoding:
    """Centroids from a sketch alone, with nothing to tune.

    Works best on sketches taken with a :func:`~sketchshift.plan`, and on any other.

    Parameters
    ----------
    sketch : Sketch
        Of at least one row.
    n_clusters : int
        Number k of clusters; not more than the plan was made for gives the best quality.
    seed : int, default=0
        Of all starts. The same sketch and seed give the same bytes.
    progress : callable or None
        Called with a :class:`Round` after each fit.

    Returns
    -------
    decoding : Decoding
        Centroids, shares and covariances of the clusters. The residual is that of the fit, not
        of the centroids. O(k m d) an iteration, about a thousand of them.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.repeat([[0.0, 0.0], [1.0, 3.0]], [300, 100], axis=0)
    >>> X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    >>> decoding = ss.decode(ss.sketch(X, n_clusters=2), n_clusters=2)
    >>> decoding.centroids.round(2) + 0.0
    array([[0., 0.],
           [1., 3.]])
    >>> decoding.weights.round(3)
    array([0.75, 0.25])
    """
    return decode_range(sketch, [n_clusters], seed=seed, progress=progress)[0]


@one_blas_thread
def decode_range(
    sketch: Sketch,
    n_clusters: Sequence[int],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Decoding, ...]:
    """Centroids for several numbers of clusters, from one fit.

    Parameters
    ----------
    sketch : Sketch
        Of at least one row.
    n_clusters : sequence of int
        The numbers k, in any order; the fit is made for the largest.
    seed : int, default=0
        Of all starts.
    progress : callable or None
        Called with a :class:`Round` after each fit.

    Returns
    -------
    decodings : tuple of Decoding
        In the order asked for. The cost is that of one :func:`decode` for the largest k, and
        of a k-means of 10 000 points for each.
    """
    numbers = list(n_clusters)
    if not numbers:
        raise parameter_error("decode_range", "n_clusters", "at least one integer", n_clusters)
    for k in numbers:
        problem = Problem.of(sketch, k, None, seed, "decode")
    if not np.trace(problem.tilted_moments[1]) > 0.0:
        return tuple(_one_point(problem, k) for k in numbers)
    fitted = fit_sketch(problem, max(numbers), seed, progress)
    return tuple(fitted.decode(k) for k in numbers)


def fit_sketch(problem: Problem, k: int, seed: int, progress: Progress | None) -> Fitted:
    """Fit Gaussians for up to k clusters, and draw points from them."""
    trace: list[Round] = []

    def report(fit: GaussianFit) -> None:
        trace.append(Round(len(trace) + 1, n_rounds(k), fit.n_atoms, math.sqrt(fit.loss)))
        if progress is not None:
            progress(trace[-1])

    fits = search(GaussianFitter(problem), k, seed, report)
    points = _few_points(problem, min(fits, key=lambda fit: fit.loss), k)
    if points is not None:
        weights = problem.untilted(points.means, points.weights)
        return Fitted(problem, Reconstruction(points.means, weights), tuple(trace), seed, points)
    reconstruction = reconstruct(problem, fits, max(POINTS, POINTS_PER_CLUSTER * k), seed)
    return Fitted(problem, reconstruction, tuple(trace), seed)


def _few_points(problem: Problem, fit: GaussianFit, k: int) -> Mixture | None:
    """The distinct rows, when they are fewer than k: atoms have then shrunk to points."""
    within = float((fit.weights @ fit.deviations**2).sum())
    if within > SHRUNK * float(np.trace(problem.tilted_moments[1])):
        return None
    return fewest_points(problem, Mixture(fit.weights, fit.means), k)


def _one_point(problem: Problem, k: int) -> Decoding:
    """What there is to say of rows that are all equal."""
    outcome = Outcome.COMPLETE if k == 1 else Outcome.EMPTY_RESIDUAL
    centroid = problem.in_units(problem.moments[0])[None, :]
    return Decoding(centroid, np.ones(1), None, 0.0, outcome, ())


def _shares(points: Reconstruction, cells: Cells) -> FloatArray:
    """Weights of the cells, shape (k,)."""
    sums = np.bincount(cells.labels, points.weights, minlength=len(cells.centers))
    return sums.astype(np.float64)


def _covariances(points: Reconstruction, cells: Cells) -> FloatArray:
    """Covariances within the cells, shape (k, d, d)."""
    rests = points.points - cells.centers[cells.labels]
    covariances = []
    for i in range(len(cells.centers)):
        inside = cells.labels == i
        weights = points.weights[inside]
        products = (rests[inside].T * weights) @ rests[inside]
        covariances.append(products / (weights.sum() or 1.0))
    return np.array(covariances)
