"""The search for good fits: coarse to fine, dead atoms moved, fits regrouped.

A descent from random atoms ends in one of many valleys. Three things help: low frequencies
first, so that atoms find their region before they see detail; atoms without weight put to use
where one wide atom does the work of two; and new starts made of what the fits agree upon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.reconstruction import draw_points
from sketchshift.decoders.weighted_kmeans import weighted_kmeans
from sketchshift.errors import DataError
from sketchshift.sketch.threads import processors

__all__ = ["best", "in_threads", "n_rounds", "search"]

ATOMS = 4  # for each cluster
STEP = 2.5  # ratio of the cuts of the frequencies
PER_CUT, AT_LAST = 60, 150  # iterations
DEAD = 0.05  # atoms below this share of the mean weight are moved
NARROWED = 0.8  # deviations of regrouped atoms: cells cut tails off, descents widen again
KEPT = 4.0  # fits within this factor of the least loss are kept

Report = Callable[[GaussianFit], None]


def search(fitter: GaussianFitter, k: int, seed: int, report: Report) -> list[GaussianFit]:
    """Fits of comparable loss, to be pooled.

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
        Those with a loss within 4 times the least.
    """
    fits: list[GaussianFit] = []

    def add(fit: GaussianFit) -> None:
        fits.append(fit)
        report(fit)

    def first(i: int) -> GaussianFit:
        return _coarse_to_fine(fitter, fitter.start(ATOMS * k, seed, i * ATOMS * k))

    for fit in in_threads(first, _n_first(k)):
        add(fit)
    for share in _shares(k):
        add(fitter.fit(_regroup(best(fits), share * k, seed), AT_LAST))
    return best(fits)


def in_threads(fit: Callable[[int], GaussianFit], n: int) -> Iterator[GaussianFit]:
    """Fits number 0 to n - 1, in this order and with the same bytes on any number of threads."""
    with ThreadPoolExecutor(min(n, processors())) as pool:
        yield from pool.map(fit, range(n))


def n_rounds(k: int) -> int:
    """Number of fits that a search for k clusters makes."""
    return _n_first(k) + len(_shares(k))


def _n_first(k: int) -> int:
    return 6 if k <= 20 else 2


def _shares(k: int) -> tuple[int, ...]:
    """Atoms of the regrouped fits, in multiples of k."""
    return (2, 3, 4) if k <= 20 else (2, 3)


def best(fits: list[GaussianFit]) -> list[GaussianFit]:
    """Fits whose loss is within 4 times the least, of those that have any weight."""
    weighty = [fit for fit in fits if fit.weights.any()]
    if not weighty:
        msg = (
            "there is nothing to decode: no cluster of any weight is like this sketch, whose "
            "numbers are not those of rows, or all noise. Take it anew, or release it with less."
        )
        raise DataError(msg)
    least = min(fit.loss for fit in weighty)
    return [fit for fit in weighty if fit.loss <= KEPT * least]


def _coarse_to_fine(fitter: GaussianFitter, fit: GaussianFit) -> GaussianFit:
    for cut in _cuts(fitter.norms, fit):
        fit = _revive(fitter.fit(fit, PER_CUT, cut))
    return fitter.fit(fit, AT_LAST)


def _cuts(norms: FloatArray, fit: GaussianFit) -> list[float]:
    """Lengths of frequencies, ascending, below each of which there are enough of them."""
    T, d = fit.means.shape
    enough = max(T * (d + 1) / 8, 50, 0.02 * len(norms))
    cuts, cut = [], float(np.quantile(norms, 0.98)) / STEP
    while np.count_nonzero(norms <= cut) >= enough:
        cuts.append(cut)
        cut /= STEP
    return cuts[::-1]


def _revive(fit: GaussianFit) -> GaussianFit:
    """Move atoms without weight onto the largest ones, which are split along their widest axis."""
    weights, means, deviations = fit.weights.copy(), fit.means.copy(), fit.deviations.copy()
    for i in np.flatnonzero(weights < DEAD / len(weights)):
        j = int(np.argmax(weights * (deviations**2).sum(axis=1)))
        axis = int(np.argmax(deviations[j]))
        width = deviations[j, axis]
        # halves at +-0.8 width with 0.6 of it: the same mean and variance as the whole
        weights[i] = weights[j] = weights[j] / 2
        means[i], deviations[i] = means[j], deviations[j]
        means[i, axis] += 0.8 * width
        means[j, axis] -= 0.8 * width
        deviations[i, axis] = deviations[j, axis] = 0.6 * width
    return GaussianFit(weights, means, deviations)


def _regroup(fits: list[GaussianFit], n_atoms: int, seed: int) -> GaussianFit:
    """A start from what the fits agree upon: cells of a k-means of points drawn from all."""
    points = draw_points(fits, max(5_000, 30 * n_atoms), seed)
    weights = np.full(len(points), 1.0 / len(points))
    cells = weighted_kmeans(points, weights, n_atoms, seed, n_init=1, max_iterations=10)
    labels, d = cells.labels, points.shape[1]
    share = np.bincount(labels, minlength=n_atoms) / len(points)
    rests = (points - cells.centers[labels]) ** 2
    sums = [np.bincount(labels, column, minlength=n_atoms) for column in rests.T]
    variances = np.column_stack(sums) / len(points) / np.maximum(share, 1e-12)[:, None]
    floor = 1e-6 * math.sqrt(float(rests.mean()) * d) + 1e-12
    return GaussianFit(share, cells.centers, NARROWED * np.sqrt(variances) + floor)
