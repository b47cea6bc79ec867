"""Fits of Gaussians to a sketch, and the search for good ones: coarse to fine, or stochastic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import Lock

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray
from sketchshift.decoders.points import (
    Cells,
    Reconstruction,
    draw_points,
    lloyd_from,
    weighted_kmeans,
)
from sketchshift.decoders.problem import Problem
from sketchshift.errors import DataError
from sketchshift.features import Tilt
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.kernels import Matcher, processors, select_kernel

__all__ = [
    "FITS",
    "GaussianFit",
    "GaussianFitter",
    "atoms_of",
    "best",
    "cells_from_atoms",
    "in_threads",
    "is_large",
    "n_points",
    "n_rounds",
    "search",
    "search_large",
    "tilted_wave",
]

# Over-complete fits of Gaussians to a sketch: what the turnkey decoder is made of.
#
# Takes a :class:`Problem`; hands fits to ``search``. The atoms of a fit have diagonal covariances
# and are more than there are clusters: they stand for the whole distribution, not for centroids.
#
# Symbols
# -------
# T, d, m   atoms, dimension, frequencies

PENALTY = 1e-2  # strength of the exact moments beside the misfit
TINY = 1e-12  # share of the total variance below which an axis is flat


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """Weighted Gaussians with diagonal covariances, in normalised coordinates.

    Attributes
    ----------
    weights : array of shape (T,)
        Not negative; they add up to about 1.
    means, deviations : arrays of shape (T, d)
        Centers, and standard deviations along the axes.
    loss : float
        Weighted misfit and penalty that were reached.
    """

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    loss: float = math.inf

    @property
    def n_atoms(self) -> int:
        """Number T of atoms."""
        return len(self.weights)

    @property
    def shares(self) -> FloatArray:
        """The weights, adding up to 1; all alike where no atom explains anything."""
        weights = self.weights if self.weights.any() else np.ones(self.n_atoms)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class GaussianFitter:
    r"""Lowers the misfit of Gaussians at the frequencies up to a cut, moments kept right.

    .. math::

        \sum_{|\omega_j| \le \mathrm{cut}} w_j \Big| \zeta_j - \sum_t \alpha_t
            e^{\mathrm i \langle \omega_j, c_t \rangle - \frac12 \sum_l \omega_{jl}^2 s_{tl}^2}
            \Big|^2 + 10^{-2} P(\alpha, c, s),
        \qquad w_j \propto 1 / \max(|\omega_j|, \sqrt d / \mathrm{high})

    with P the penalty of mass, mean and covariance that differ from those of the sketch.

    Parameters
    ----------
    problem : Problem
        The sketch to fit.
    """

    problem: Problem
    _lock: Lock = field(default_factory=Lock, init=False)  # fits run in threads

    @cached_property
    def norms(self) -> FloatArray:
        """Lengths of the frequencies, shape (m,)."""
        norms: FloatArray = (
            2.0 * math.pi * np.linalg.norm(self.problem.turns.astype(np.float64), axis=0)
        )
        return norms

    @cached_property
    def weights(self) -> FloatArray:
        """High frequencies are many and noisy; below the range of bandwidths all are alike."""
        bandwidth = self.problem.sketch.spec.bandwidth
        high = bandwidth[1] if isinstance(bandwidth, tuple) else bandwidth
        weights: FloatArray = 1.0 / np.maximum(
            self.norms, math.sqrt(len(self.problem.turns)) / high
        )
        return weights

    @cached_property
    def _matchers(self) -> dict[float, Matcher]:
        return {}

    def _matcher(self, cut: float) -> Matcher:
        """The misfit at the frequencies up to ``cut``; made once for all fits."""
        with self._lock:
            if cut not in self._matchers:
                below = self.norms <= cut
                z = self.problem.z[below] * math.sqrt(len(self.norms))
                weights = self.weights[below] / self.weights[below].sum()
                turns = np.ascontiguousarray(self.problem.turns[:, below])
                self._matchers[cut] = select_kernel().matcher(turns, z, weights)
            return self._matchers[cut]

    def fit(self, start: GaussianFit, iterations: int, cut: float = math.inf) -> GaussianFit:
        """Descend from a start: O(T m d) an iteration."""
        mean, covariance = self.problem.outline
        loss, weights, means, deviations = self._matcher(cut).descend(
            start.weights,
            start.means,
            start.deviations,
            mean=mean,
            covariance=covariance,
            strength=PENALTY if self.problem.moments is not None else 0.0,
            iterations=iterations,
            floor=self.problem.noise_floor,
        )
        return GaussianFit(weights, means, deviations, loss)

    def start(self, n_atoms: int, seed: int, first: int) -> GaussianFit:
        """Equal atoms drawn from the sketch's own mean and half of its covariance.

        Parameters
        ----------
        n_atoms : int
            T.
        seed : int
            Of the decoder.
        first : int
            How many places of the seed's stream to leave out: other starts than the first.
        """
        mean, covariance = self.problem.outline
        d = len(mean)
        j = np.arange(first, first + n_atoms)
        normals = normal_quantile(uniforms(seed, Purpose.START, j, d))
        variances = np.diagonal(covariance)
        deviations = np.sqrt(0.5 * np.maximum(variances, TINY * variances.sum()))
        places = mean + normals @ _square_root(covariance) * math.sqrt(0.5)
        weights = np.full(n_atoms, 1.0 / n_atoms)
        return GaussianFit(weights, places, np.tile(deviations, (n_atoms, 1)))


def _square_root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root; of what is known, where only the diagonal is."""
    known = np.where(np.isnan(covariance), 0.0, covariance)
    values, vectors = np.linalg.eigh(known)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


# The sketch of a Gaussian whose rows were weighted by the tilt, in closed form.


def tilted_wave(
    c: FloatArray, S: FloatArray, omega: FloatArray, wave: ComplexArray, tilt: Tilt | None
) -> tuple[ComplexArray, float]:
    r"""Characteristic function of a Gaussian after the tilt, and its mass.

    Below its cap the tilt is :math:`\frac12 + b |x|^2`, and :math:`|x|^2` under a Gaussian has
    the transform :math:`(\mathrm{tr} \Sigma + (c + \mathrm i \Sigma \omega)^T (c + \mathrm i
    \Sigma \omega))\, \psi(\omega)`. A Gaussian with a mean beyond the cap is just weighted.

    Parameters
    ----------
    c : array of shape (d,)
        Mean.
    S : array of shape (d, d) or (d,)
        Covariance, or variances.
    omega : array of shape (d, m)
        Frequencies.
    wave : complex array of shape (m,)
        Characteristic function of the mean alone.
    tilt : Tilt or None
        The weight; None is 1.

    Returns
    -------
    psi : complex array of shape (m,)
        Not divided by the mass. O(m d^2), or O(m d) for variances.
    mass : float
        Mean tilt of the Gaussian.
    """
    spread = S @ omega if S.ndim == 2 else S[:, None] * omega
    psi = wave * np.exp(-0.5 * np.einsum("ij,ij->j", spread, omega))
    mass = 1.0 if tilt is None else float(tilt(c @ c))
    if tilt is None or mass == tilt.cap:
        return mass * psi, mass
    b = 0.5 / tilt.radius**2
    mass += b * float(S.trace() if S.ndim == 2 else S.sum())
    squares = np.einsum("ij,ij->j", spread, spread)
    return (mass - b * squares + (2j * b) * (c @ spread)) * psi, mass


# The search for good fits: coarse to fine, dead atoms moved, fits regrouped.
#
# A descent from random atoms ends in one of many valleys. Three things help: low frequencies
# first, so that atoms find their region before they see detail; atoms without weight put to use
# where one wide atom does the work of two; and new starts made of what the fits agree upon.

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


# Fits for many clusters: a stochastic descent over blocks of frequencies.
#
# Takes the place of ``search`` where one look at all frequencies is dear. A thousand looks at a
# block of them cost O(k d) each, whatever the sketch size m: time is linear in k, where that of
# ``search`` is quadratic at m = 10 k d. Atoms share one spread in the first half of a descent, so
# that none becomes a cloud that covers many clusters; then each finds its own.
#
# Symbols
# -------
# T, d, m   atoms, dimension, frequencies

# Pairs of 3 k atoms and m frequencies: about here L-BFGS on all takes as long, some 5 to 10 s.
LARGE = 3_000_000
STOCHASTIC_ATOMS, FITS = 3, 3  # atoms for each cluster; descents that are pooled
BLOCK, STEPS = 1024, 1000
# Steps of Adam: of means in units of the distance between clusters, of weights in units of
# their mean, of logarithms of deviations. For means, 0.03 to 0.12 were alike.
MEANS, WEIGHTS, SPREADS, LEAST = 0.1, 0.1, 0.02, 0.05
MEMORY = (0.9, 0.99)  # of gradients, and of their squares
POINTS_PER_CLUSTER, NUMBERS = 200, 4_000_000  # points drawn; numbers in an array, at most
ON_ATOMS, ON_POINTS = 20, 10  # iterations of k-means


def is_large(k: int, m: int) -> bool:
    """Whether k clusters from m frequencies are for this file rather than for ``search``."""
    return STOCHASTIC_ATOMS * k * m > LARGE


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
    covariance, n_atoms = fitter.problem.outline[1], STOCHASTIC_ATOMS * k
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
    n_fits = max(1, NUMBERS // (STOCHASTIC_ATOMS * k * k))
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
