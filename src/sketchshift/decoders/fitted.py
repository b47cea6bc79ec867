"""What the turnkey decoder knows of the data, before it is cut into clusters.

Takes a :class:`Problem`; hands :class:`Fitted`, which any number of clusters is cut from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders import large
from sketchshift.decoders.base import Problem
from sketchshift.decoders.choose_k import choose_k
from sketchshift.decoders.decoding import Decoding, Outcome, Progress, Round
from sketchshift.decoders.far_rows import explained_by_far_rows, is_suspicious
from sketchshift.decoders.fewest_points import fewest_points
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.reconstruction import Reconstruction, reconstruct
from sketchshift.decoders.search import n_rounds, search
from sketchshift.decoders.weighted_kmeans import Cells, weighted_kmeans, with_means
from sketchshift.mixtures import Mixture

__all__ = ["Fitted", "fit_sketch"]

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
    atoms : Reconstruction or None
        Atoms of the fits, when clusters are so many that k-means starts from these.
    fits : tuple of GaussianFit
        The good ones, that points are drawn from.
    """

    problem: Problem
    reconstruction: Reconstruction
    trace: tuple[Round, ...]
    seed: int
    points: Mixture | None = None
    atoms: Reconstruction | None = None
    fits: tuple[GaussianFit, ...] = ()

    def decode(self, k: int) -> Decoding:
        """The clusters; all there are, when the rows have fewer distinct values than k."""
        if self.points is not None and k > self.points.n_components:
            return self.problem.decoding(self.points, Outcome.EMPTY_RESIDUAL, self.trace)
        return self.decoding(self.cells(k))

    def decode_auto(self, max_clusters: int) -> Decoding:
        """The clusters, as many as explain the sketch best."""
        points, is_exact = self.reconstruction, self.points is not None
        k = min(max_clusters, len(points.points))
        curve = choose_k(self.problem, points, k, self.seed, exact=is_exact)
        return replace(self.decode(curve.chosen), curve=curve)

    def cells(self, k: int) -> Cells:
        """The points cut into k cells: O(n k d) an iteration."""
        starts = min(max(STARTED_CELLS // k, FEWEST_STARTS), STARTS)
        all_points, seed = self.reconstruction, self.seed
        points, weights = all_points.points, all_points.weights
        if self.atoms is not None:
            cells = large.cells_from_atoms(self.atoms, all_points, k, seed, starts)
        else:
            cells = weighted_kmeans(points, weights, k, seed, n_init=starts, swaps=k > FEW)
        return with_means(cells, points, weights)

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


def fit_sketch(problem: Problem, k: int, seed: int, progress: Progress | None) -> Fitted:
    """Fit Gaussians for up to k clusters, and draw points from them."""
    trace: list[Round] = []
    d, m = problem.turns.shape
    is_large = large.is_large(k, m)
    total = (large.FITS if is_large else n_rounds(k)) * (1 + is_suspicious(problem))

    def report(fit: GaussianFit) -> None:
        trace.append(Round(len(trace) + 1, total, fit.n_atoms, math.sqrt(fit.loss)))
        if progress is not None:
            progress(trace[-1])

    def run(problem: Problem) -> list[GaussianFit]:
        method = large.search_large if is_large else search
        return method(GaussianFitter(problem), k, seed, report)

    fits = run(problem)
    far = explained_by_far_rows(problem, fits, run)
    if far is not None:
        problem, fits = far.problem, far.fits
    lowest = min(fits, key=lambda fit: fit.loss)
    is_noisy = problem.noise_floor > 0.0  # then nothing is explained up to rounding
    points = None if is_large or is_noisy else _few_points(problem, lowest, k)
    if points is not None:
        weights = problem.untilted(points.means, points.weights)
        exact = Reconstruction(points.means, weights)
        return Fitted(problem, exact, tuple(trace), seed, points, fits=tuple(fits))
    n = large.n_points(k, d) if is_large else max(POINTS, POINTS_PER_CLUSTER * k)
    atoms = large.atoms_of(problem, fits, k) if is_large else None
    reconstruction = reconstruct(problem, fits, n, seed)
    if far is not None:
        far.warn(reconstruction)
        reconstruction = far.added_to(reconstruction)
        atoms = None if atoms is None else far.added_to(atoms)
    return Fitted(problem, reconstruction, tuple(trace), seed, atoms=atoms, fits=tuple(fits))


def _few_points(problem: Problem, fit: GaussianFit, k: int) -> Mixture | None:
    """The distinct rows, when they are fewer than k: atoms have then shrunk to points."""
    within = float((fit.weights @ fit.deviations**2).sum())
    if within > SHRUNK * float(np.trace(problem.outline[1])):
        return None
    return fewest_points(problem, Mixture(fit.weights, fit.means), k)


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
