r"""Fits for many clusters: a stochastic descent over blocks of frequencies.

Takes the place of ``search`` where one look at all frequencies is dear. A thousand looks at a
block of them cost O(k d) each, whatever the sketch size m: time is linear in k, where that of
``search`` is quadratic at m = 10 k d. Atoms share one spread in the first half of a descent, so
that none becomes a cloud that covers many clusters; then each finds its own.

Symbols
-------
T, d, m   atoms, dimension, frequencies
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.reconstruction import Reconstruction
from sketchshift.decoders.search import Report, best, in_threads
from sketchshift.decoders.weighted_kmeans import Cells, lloyd_from, weighted_kmeans
from sketchshift.kernels import Matcher, select_kernel

__all__ = ["FITS", "atoms_of", "cells_from_atoms", "is_large", "n_points", "search_large"]

# Pairs of 3 k atoms and m frequencies: about here L-BFGS on all takes as long, some 5 to 10 s.
LARGE = 3_000_000
ATOMS, FITS = 3, 3  # atoms for each cluster; descents that are pooled
BLOCK, STEPS = 1024, 1000
# Steps of Adam: of means in units of the distance between clusters, of weights in units of
# their mean, of logarithms of deviations. For means, 0.03 to 0.12 were alike.
MEANS, WEIGHTS, SPREADS, LEAST = 0.1, 0.1, 0.02, 0.05
MEMORY = (0.9, 0.99)  # of gradients, and of their squares
POINTS_PER_CLUSTER, NUMBERS = 200, 4_000_000  # points drawn; numbers in an array, at most
ON_ATOMS, ON_POINTS = 20, 10  # iterations of k-means


def is_large(k: int, m: int) -> bool:
    """Whether k clusters from m frequencies are for this file rather than for ``search``."""
    return ATOMS * k * m > LARGE


def n_points(k: int, d: int) -> int:
    """Number of points to draw: 200 a cluster, fewer where they would take much memory."""
    return max(min(POINTS_PER_CLUSTER * k, NUMBERS // d), 20 * k)


def search_large(fitter: GaussianFitter, k: int, seed: int, report: Report) -> list[GaussianFit]:
    """Fits of comparable loss, to be pooled, as those of ``search``.

    Parameters
    ----------
    fitter : GaussianFitter
        Of the sketch.
    k : int
        Number of clusters that will be asked for.
    seed : int
        Of all starts.
    report : callable
        Called with each fit when it is done.

    Returns
    -------
    fits : list of GaussianFit
        Those with a loss within 4 times the least; the loss is the misfit, averaged over the
        last blocks. O(k d) a step, 3000 steps in all.
    """
    covariance, n_atoms = fitter.problem.outline[1], ATOMS * k
    d = len(covariance)
    apart = k ** (-1.0 / d)  # distance between clusters, as a share of the deviation of all
    length = apart * math.sqrt(float(np.trace(covariance)) / d)

    def descent(i: int) -> GaussianFit:
        start = fitter.start(n_atoms, seed, i * n_atoms)
        narrow = math.sqrt(2.0) * apart * start.deviations
        return _descend(fitter, GaussianFit(start.weights, start.means, narrow), length)

    fits = []
    for fit in in_threads(descent, FITS):
        fits.append(fit)
        report(fit)
    return best(fits)


@dataclass
class _Direction:
    """Where Adam goes: a mean of past gradients, over their root mean square in each row."""

    first: FloatArray | float = 0.0
    second: FloatArray | float = 0.0
    count: int = 0

    def after(self, gradient: FloatArray) -> FloatArray:
        """The direction, shape (rows, columns), when one more gradient of that shape is known."""
        (keep, keep_squares), self.count = MEMORY, self.count + 1
        squares = (gradient**2).mean(axis=1, keepdims=True)
        self.first = keep * self.first + (1.0 - keep) * gradient
        self.second = keep_squares * self.second + (1.0 - keep_squares) * squares
        size = np.sqrt(self.second / (1.0 - keep_squares**self.count))
        direction: FloatArray = self.first / (1.0 - keep**self.count) / (size + 1e-100)
        return direction


def _descend(fitter: GaussianFitter, start: GaussianFit, length: float) -> GaussianFit:
    """Adam over the blocks in turn, with steps that shrink along a cosine."""
    weights, means, deviations = start.weights, start.means, start.deviations
    of_weights, of_means, of_shared, of_each = (_Direction() for _ in range(4))
    blocks, floor = _blocks(len(fitter.norms)), fitter.problem.noise_floor
    recent = min(len(blocks), STEPS // 10)
    values: list[float] = []
    for step in range(STEPS):
        rate = LEAST + (1.0 - LEAST) * (1.0 + math.cos(math.pi * step / STEPS)) / 2.0
        matcher = _matcher(fitter, blocks[step % len(blocks)])
        value, by_weight, by_mean, by_spread = _gradients(matcher, weights, means, deviations)
        if step < STEPS // 2:
            turn = of_shared.after(by_spread.sum(axis=0, keepdims=True))
        else:
            turn = of_each.after(by_spread)
        shift = (rate * WEIGHTS / len(weights)) * of_weights.after(by_weight)[:, 0]
        weights = np.maximum(weights - shift, 0.0)
        means = means - rate * MEANS * length * of_means.after(by_mean)
        deviations = deviations * np.exp(-rate * SPREADS * turn)
        values.append(value)
        if len(values) >= recent and np.mean(values[-recent:]) <= floor:
            break
    loss = float(np.mean(values[-recent:]))
    return GaussianFit(weights, means, deviations, loss)


def _blocks(m: int) -> list[slice]:
    """The frequencies in parts of about 1024; they are independent, so any part is random."""
    ends = np.linspace(0, m, max(1, round(m / BLOCK)) + 1).astype(int)
    return [slice(first, end) for first, end in pairwise(ends.tolist())]


def _matcher(fitter: GaussianFitter, block: slice) -> Matcher:
    """The misfit at a block; made anew each time, as hundreds of them would fill memory."""
    problem, weights = fitter.problem, fitter.weights[block]
    z = problem.z[block] * math.sqrt(len(problem.z))
    turns = np.ascontiguousarray(problem.turns[:, block])
    return select_kernel().matcher(turns, z, weights / weights.sum())


def _gradients(
    matcher: Matcher, weights: FloatArray, means: FloatArray, deviations: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Misfit, and its derivatives but for a factor: by weights (T, 1), means, log deviations."""
    variances = deviations**2
    value, sums = matcher(weights, means, variances)
    of_weight, of_mean, of_variance = np.split(sums, [1, 1 + means.shape[1]], axis=1)
    by_mean = weights[:, None] * of_mean
    return value, -of_weight, by_mean, weights[:, None] * of_variance * variances


def atoms_of(problem: Problem, fits: list[GaussianFit], k: int) -> Reconstruction:
    """The atoms as points, weighted back from the tilt; beyond 800 clusters, of the best fit."""
    n_fits = max(1, NUMBERS // (ATOMS * k * k))
    pooled = sorted(fits, key=lambda fit: fit.loss)[:n_fits]
    means = np.concatenate([fit.means for fit in pooled])
    weights = np.concatenate([fit.shares for fit in pooled])
    return Reconstruction(means, problem.untilted(means, weights))


def cells_from_atoms(
    atoms: Reconstruction, points: Reconstruction, k: int, seed: int, n_init: int
) -> Cells:
    """Cells of many points, from a k-means of the few atoms they were drawn around.

    Starts and swaps are run on the atoms, a few for each cluster: on all points they would
    take minutes and hold n k distances. Beyond 1150 clusters those of the atoms are too many
    as well, and there are no swaps. O(n k d) for each of the ten iterations on those.
    """
    rough = weighted_kmeans(
        atoms.points,
        atoms.weights,
        k,
        seed,
        n_init=n_init,
        max_iterations=ON_ATOMS,
        swaps=len(atoms.points) * k <= NUMBERS,
    )
    return lloyd_from(points.points, points.weights, k, ON_POINTS, rough.centers)
