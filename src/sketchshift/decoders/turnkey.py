"""The turnkey decoder: centroids as good as those of k-means, with nothing to tune.

Gaussians, more than there are clusters, are fitted to the sketch several times; points drawn
from all good fits are weighted back from the tilt and given the exact moments; k-means of
these points gives the centroids.
"""

from __future__ import annotations

import math

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem, one_blas_thread
from sketchshift.decoders.decoding import Decoding, Outcome, Progress, Round
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.reconstruction import Reconstruction, reconstruct
from sketchshift.decoders.search import n_rounds, search
from sketchshift.decoders.weighted_kmeans import Cells, weighted_kmeans
from sketchshift.sketch import Sketch

__all__ = ["decode"]

POINTS, POINTS_PER_CLUSTER = 10_000, 200
STARTS = (3, 15)  # of the last k-means: fewest and most


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
    problem = Problem.of(sketch, n_clusters, None, seed, "decode")
    if not np.trace(problem.tilted_moments[1]) > 0.0:
        return _one_point(problem, n_clusters)
    fits, trace = _fit(problem, n_clusters, seed, progress)
    n = max(POINTS, POINTS_PER_CLUSTER * n_clusters)
    cells_of = reconstruct(problem, fits, n, seed)
    starts = min(max(150 // n_clusters, STARTS[0]), STARTS[1])
    cells = weighted_kmeans(
        cells_of.points, cells_of.weights, n_clusters, seed, n_init=starts, swaps=True
    )
    return _decoding(problem, cells_of, cells, trace)


def _fit(
    problem: Problem, k: int, seed: int, progress: Progress | None
) -> tuple[list[GaussianFit], list[Round]]:
    trace: list[Round] = []

    def report(fit: GaussianFit) -> None:
        residual_norm = math.sqrt(fit.loss)
        trace.append(Round(len(trace) + 1, n_rounds(k), fit.n_atoms, residual_norm))
        if progress is not None:
            progress(trace[-1])

    return search(GaussianFitter(problem), k, seed, report), trace


def _one_point(problem: Problem, k: int) -> Decoding:
    """What there is to say of rows that are all equal."""
    outcome = Outcome.COMPLETE if k == 1 else Outcome.EMPTY_RESIDUAL
    centroid = problem.in_units(problem.moments[0])[None, :]
    return Decoding(centroid, np.ones(1), None, 0.0, outcome, ())


def _decoding(
    problem: Problem, cells_of: Reconstruction, cells: Cells, trace: list[Round]
) -> Decoding:
    """Cells in the units of the data, heaviest first."""
    k = len(cells.centers)
    weights = np.bincount(cells.labels, cells_of.weights, minlength=k).astype(np.float64)
    order = np.argsort(-weights, kind="stable")
    scale = problem.sketch.spec.scale_vector
    covariances = _covariances(cells_of, cells) * np.outer(scale, scale)
    return Decoding(
        problem.in_units(cells.centers[order]),
        weights[order],
        covariances[order],
        trace[-1].residual_norm,
        Outcome.COMPLETE,
        tuple(trace),
    )


def _covariances(cells_of: Reconstruction, cells: Cells) -> FloatArray:
    """Covariances within the cells, shape (k, d, d)."""
    rests = cells_of.points - cells.centers[cells.labels]
    covariances = []
    for i in range(len(cells.centers)):
        inside = cells.labels == i
        weights = cells_of.weights[inside]
        products = (rests[inside].T * weights) @ rests[inside]
        covariances.append(products / (weights.sum() or 1.0))
    return np.array(covariances)
