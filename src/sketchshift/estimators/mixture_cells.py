r"""The most likely Gaussian mixture, given count, mean and variances of the rows of each cell.

EM with cells instead of rows. What a cell does not tell, its covariances between columns, is
imputed for each component: the part of a Gaussian that lies in a cell has the covariance nearest
to that of the Gaussian among those with the variances of the cell. So components may be thinner
than cells, in any direction. EM from k clusters ends in poor valleys where these are thin; it is
begun with several times as many components, which are then merged.

Symbols
-------
J, d      cells, columns
k, T      components, and those before they are merged
D         variances of cells, shape (J, d)
p         pairs of a cell and a component that may own some of it
Sigma     covariances of components, (k, d, d) for every type of them
V         imputed covariances of cells, (p, d, d)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import logsumexp

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.decoders.cells import CellFit
from sketchshift.decoders.mixture import Mixture, Points
from sketchshift.decoders.points import lloyd_from

__all__ = [
    "FLAT",
    "CellLikelihood",
    "CovarianceType",
    "MixtureFit",
    "fewest_points",
    "impute",
    "merge",
    "move_inside",
]

CovarianceType = Literal["full", "diag", "spherical"]

FINE = 6  # components before they are merged, for each in the end
CELLS_OF_FINE = 3  # but so many cells for each of them
MOST_FINE = 600  # and no more in all, unless k is larger: pairs of them are compared
FINE_STEPS = 15
IMPUTE_EVERY = 2
SWEEPS = 4
NEAR = 12.0  # logarithm of the ratio of two densities beyond which the lesser is none
TOLERANCE = 1e-4  # of the mean logarithm of the density
THIN = 0.1  # spreads apart that cells are for a factor e between their deviations in a column
FLAT = 1e-2  # of the floor, added to variances of cells whose rows are equal
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class MixtureFit(Mixture):
    """A mixture of Gaussians, and how its fit went.

    Attributes
    ----------
    weights : array of shape (k,)
        Positive; they add up to 1 in the end.
    means : array of shape (k, d)
        Centers.
    covariances : array of shape (k, d, d), (k, d) or (k,)
        Full, diagonals, or variances common to all columns.
    n_iter : int
        Iterations of the fit.
    converged : bool
        Whether it came to its end.
    """

    covariances: FloatArray
    n_iter: int = 0
    converged: bool = True


@dataclass(frozen=True, eq=False)
class CellLikelihood:
    r"""A lower bound of the mean log-likelihood of the rows of cells, and the climb to its top.

    .. math::

        \sum_j n_j \log \sum_i \pi_i \mathcal N(m_j; \mu_i, \Sigma_i) \,
            e^{-\frac12 \mathrm{tr}\, \Sigma_i^{-1} V_{ij} + \frac12 \log\det V_{ij}},
        \qquad \mathrm{diag}\, V_{ij} = D_j

    up to a constant. A step of EM raises it for the responsibilities of whole cells, and
    :func:`impute` for the :math:`V_{ij}`. Components of the types "diag" and "spherical" see the
    variances alone, so that nothing is imputed.

    Attributes
    ----------
    cells : Mixture
        Shares, means and variances (J, d) of the rows of cells.
    kind : {"full", "diag", "spherical"}
        Type of the covariances.
    floor : float
        What is added to variances of components.
    """

    cells: Mixture
    kind: CovarianceType
    floor: float

    def find(self, k: int, max_iterations: int, seed: int) -> MixtureFit:
        """The best mixture that is found of k Gaussians, k at most the number of cells.

        O(J k d^2) an iteration, and O(J d^3) to impute; O(T^2 d^3) to merge.

        Parameters
        ----------
        k : int
            Number of components.
        max_iterations : int
            Of EM.
        seed : int
            Of the k-means that it begins with.

        Returns
        -------
        mixture : MixtureFit
            Its covariances have the shape (k, d, d) for every type.
        """
        J = len(self.cells.weights)
        n_fine = max(k, min(FINE * k, J // CELLS_OF_FINE, MOST_FINE))
        fine = self.climb(self._start(n_fine, seed), FINE_STEPS)
        return self.climb(self._restrict(merge(fine, k)), max_iterations)

    def climb(self, mixture: MixtureFit, max_iterations: int) -> MixtureFit:
        """EM from a mixture, until the bound hardly rises."""
        before, parts = -math.inf, _Parts.none(mixture)
        for step in range(max_iterations):
            is_new = step % IMPUTE_EVERY == 0
            parts = self._impute(mixture) if is_new else parts
            shares, value = self._responsibilities(mixture, parts)
            if is_new and abs(value - before) < TOLERANCE:
                return replace(mixture, n_iter=step, converged=True)
            before = value if is_new else before
            mixture = self._most_likely(mixture, shares, parts)
        return replace(mixture, n_iter=max_iterations, converged=False)

    def value(self, mixture: MixtureFit) -> float:
        """The bound, in nats a row."""
        return self._responsibilities(mixture, self._impute(mixture))[1]

    @property
    def _variances(self) -> FloatArray:
        """D, none of them 0."""
        assert self.cells.covariances is not None
        return self.cells.covariances + FLAT * self.floor

    def _start(self, n: int, seed: int) -> MixtureFit:
        """Clusters of the cells, by their means and by how thin they are."""
        cells, D = self.cells, self._variances
        points = Points(cells.means, cells.weights)
        spread = math.sqrt(float(np.trace(Mixture(cells.weights, cells.means).moments[1])))
        thinness = 0.5 * THIN * spread * np.log(D + self.floor)
        places = Points(np.hstack([cells.means, thinness]), cells.weights)
        found = lloyd_from(places, n, 30, seed=int(seed % 2**32))
        found = replace(found, centers=found.centers[:, : D.shape[1]]).around_means(points)
        weights = found.shares(points)
        inside = np.zeros((n, D.shape[1]))
        np.add.at(inside, found.labels, cells.weights[:, None] * D)
        inside /= np.maximum(weights, TINY)[:, None]
        covariances = found.covariances(points) + _diagonals(inside + self.floor)
        return self._restrict(MixtureFit(weights, found.centers, covariances))

    def _restrict(self, mixture: MixtureFit) -> MixtureFit:
        """The same with covariances of the type."""
        if self.kind == "full":
            return mixture
        variances = np.diagonal(mixture.covariances, axis1=1, axis2=2)
        if self.kind == "spherical":
            variances = np.broadcast_to(variances.mean(axis=1, keepdims=True), variances.shape)
        return replace(mixture, covariances=_diagonals(variances))

    def _impute(self, mixture: MixtureFit) -> _Parts:
        """Which components may own some of a cell, and the covariance of their part."""
        assert self.cells.covariances is not None
        if self.kind != "full":
            return _Parts.none(mixture)
        at = np.flatnonzero(self.cells.covariances.any(axis=1))  # others are points
        S, D = mixture.covariances, self._variances[at]
        deviations = np.sqrt(np.diagonal(S, axis1=1, axis2=2))
        correlations = S / (deviations[:, :, None] * deviations[:, None, :])
        logs = _log_densities(mixture, self.cells.means[at])
        roots = np.sqrt(D)
        for i, (P, R) in enumerate(zip(np.linalg.inv(S), correlations, strict=True)):
            logs[:, i] -= 0.5 * np.einsum("ji,ji->j", roots @ (P * R), roots)
        logs += 0.5 * np.linalg.slogdet(correlations)[1]
        is_near = logs > logs.max(axis=1, keepdims=True) - NEAR
        cells, components = np.nonzero(is_near)
        V = impute(S[components], D[cells])
        return _Parts(at[cells], components, V, at, ~is_near)

    def _responsibilities(self, mixture: MixtureFit, parts: _Parts) -> tuple[FloatArray, float]:
        """What each component has of the weight of each cell, shape (J, k); and the bound."""
        j, i, V = parts.cells, parts.components, parts.covariances
        P = np.linalg.inv(mixture.covariances)
        logs = _log_densities(mixture, self.cells.means)
        if self.kind == "full":
            logs[parts.spread] = np.where(parts.is_foreign, -math.inf, logs[parts.spread])
            inside = np.einsum("pab,pab->p", P[i], V)
            logs[j, i] += 0.5 * (np.linalg.slogdet(V)[1] - inside)
        else:
            logs -= 0.5 * self._variances @ np.diagonal(P, axis1=1, axis2=2).T
        totals = logsumexp(logs, axis=1)
        shares = self.cells.shares
        return shares[:, None] * np.exp(logs - totals[:, None]), float(shares @ totals)

    def _most_likely(self, mixture: MixtureFit, shares: FloatArray, parts: _Parts) -> MixtureFit:
        """The mixture that fits best, given what each component has of each cell."""
        k, d = mixture.means.shape
        weights = shares.sum(axis=0) + TINY
        means = (shares.T @ self.cells.means + TINY * mixture.means) / weights[:, None]
        covariances = _diagonals(np.full((k, d), self.floor))
        if self.kind != "full":
            covariances += _diagonals(shares.T @ self._variances / weights[:, None])
        for c in range(k):
            own, some = shares[:, c], parts.components == c
            rests = self.cells.means - means[c]
            inside = np.tensordot(own[parts.cells[some]], parts.covariances[some], 1)
            covariances[c] += ((rests.T * own) @ rests + inside) / weights[c]
        found = replace(mixture, weights=weights, means=means, covariances=covariances)
        return self._restrict(found)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of cells: which cells and components (p,), and their covariances V.

    ``spread`` are the cells that are no points, and ``is_foreign`` (.., k) says which components
    have nothing of them.
    """

    cells: IntArray
    components: IntArray
    covariances: FloatArray
    spread: IntArray
    is_foreign: BoolArray

    @classmethod
    def none(cls, mixture: MixtureFit) -> _Parts:
        """Where nothing is imputed."""
        nothing, (k, d) = np.zeros(0, dtype=np.int64), mixture.means.shape
        return cls(nothing, nothing, np.zeros((0, d, d)), nothing, np.zeros((0, k), dtype=bool))


def impute(S: FloatArray, D: FloatArray, sweeps: int = SWEEPS) -> FloatArray:
    r"""Covariances with variances D that are nearest to Gaussians with covariances S.

    Of all Gaussians with such variances, that of the least divergence
    :math:`\mathrm{KL}(\mathcal N(0, V) \| \mathcal N(0, S))` has :math:`V^{-1} = S^{-1} +
    \mathrm{diag}(b)`. It is found by setting one variance after the other right.

    Parameters
    ----------
    S : array of shape (p, d, d)
        Positive definite.
    D : array of shape (p, d)
        Positive.
    sweeps : int
        Over all columns.

    Returns
    -------
    V : array of shape (p, d, d)
        Its diagonals are D. O(p d^3) a sweep.
    """
    V = S.copy()
    for _ in range(sweeps):
        for a in range(D.shape[1]):
            column = V[:, :, a].copy()
            own = column[:, a]
            V -= (column * ((1.0 - D[:, a] / own) / own)[:, None])[:, :, None] * column[:, None, :]
    factors = np.sqrt(D / np.diagonal(V, axis1=1, axis2=2))
    V *= factors[:, :, None] * factors[:, None, :]
    return np.asarray(V)


def fewest_points(d: int) -> int:
    """So many points in a cell may stand for its rows: they tell a covariance of d columns."""
    return 10 + 2 * d


def move_inside(fit: CellFit, places: FloatArray, floor: float) -> Mixture:
    """Places moved until those of each cell have its mean and variances, and about their shape.

    Parameters
    ----------
    fit : CellFit
        What cells tell of the rows.
    places : array of shape (n, d)
        In the normalised coordinates of the spec.
    floor : float
        Added to variances.

    Returns
    -------
    blocks : Mixture
        Points with the weights of their cells; and the cells in which there are too few of them.
        O(n d^2 + J d^3).
    """
    sums, (J, d) = fit.sums, fit.sums.means.shape
    labels = fit.sketch.find_cells(places)
    counts = np.bincount(labels, minlength=J)
    is_drawn = (counts >= fewest_points(d)) & (sums.weights > 0.0)
    order = np.argsort(labels, kind="stable")
    order = order[is_drawn[labels[order]]]
    places, labels = places[order], labels[order]
    at = np.flatnonzero(is_drawn)
    parts = np.split(places, np.cumsum(counts[at])[:-1]) if len(at) else []
    rests = [part - part.mean(axis=0) for part in parts]
    flat = floor * np.eye(d)
    shapes = np.array([rest.T @ rest / len(rest) + flat for rest in rests]).reshape(-1, d, d)
    V = impute(shapes, sums.variances[at] + floor)
    maps = np.linalg.cholesky(V) @ np.linalg.inv(np.linalg.cholesky(shapes))
    moved = [rest @ A.T for rest, A in zip(rests, maps, strict=True)]
    around = sums.means[labels] + np.concatenate([np.zeros((0, d)), *moved])
    return fit.around(around, (sums.weights / np.maximum(counts, 1))[labels], is_drawn)


def merge(mixture: MixtureFit, k: int) -> MixtureFit:
    """Merge pairs of Gaussians until k are left, each time that which costs least.

    The cost is a bound of the divergence from the mixture before (Runnalls 2007); weight, mean and
    covariance of a pair are kept.

    Parameters
    ----------
    mixture : MixtureFit
        Of T Gaussians with full covariances.
    k : int
        From 1 to T.

    Returns
    -------
    mixture : MixtureFit
        Of k Gaussians. O(T^2 d^3).
    """
    weights, means = mixture.weights.copy(), mixture.means.copy()
    S, T = mixture.covariances.copy(), len(mixture.weights)
    volumes, left = np.linalg.slogdet(S)[1], np.ones(T, dtype=bool)

    def pair(i: int, j: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        total = weights[i] + weights[j]
        a, b = weights[i] / total, weights[j] / total
        apart = means[j] - means[i]
        between = (a * b)[:, None, None] * apart[:, :, None] * apart[:, None, :]
        inside = a[:, None, None] * S[i] + b[:, None, None] * S[j]
        return total, means[i] + b[:, None] * apart, inside + between

    def cost(i: int, j: IntArray) -> FloatArray:
        total, _, covariances = pair(i, j)
        own = weights[i] * volumes[i] + weights[j] * volumes[j]
        return np.asarray(total * np.linalg.slogdet(covariances)[1] - own)

    costs = np.full((T, T), math.inf)
    for i in range(T - 1):
        costs[i, i + 1 :] = cost(i, np.arange(i + 1, T))
    for _ in range(T - k):
        i, j = (int(index) for index in np.unravel_index(int(costs.argmin()), costs.shape))
        total, mean, covariance = pair(i, np.array([j]))
        weights[i], means[i], S[i] = total[0], mean[0], covariance[0]
        volumes[i], left[j] = np.linalg.slogdet(S[i])[1], False
        costs[j], costs[:, j] = math.inf, math.inf
        others = np.flatnonzero(left)
        below, above = others[others < i], others[others > i]
        costs[below, i], costs[i, above] = cost(i, below), cost(i, above)
    return replace(mixture, weights=weights[left], means=means[left], covariances=S[left])


def _log_densities(mixture: MixtureFit, places: FloatArray) -> FloatArray:
    """Logarithms of weight times density of each component at places (J, d): shape (J, k)."""
    factors = np.linalg.inv(np.linalg.cholesky(mixture.covariances))
    d = places.shape[1]
    logs = np.empty((len(places), len(factors)))
    for i, (L, mean) in enumerate(zip(factors, mixture.means, strict=True)):
        squares = np.square((places - mean) @ L.T).sum(axis=1)
        logs[:, i] = np.log(np.diagonal(L)).sum() - 0.5 * squares
    return np.asarray(logs + np.log(mixture.weights) - 0.5 * d * math.log(2.0 * math.pi))


def _diagonals(values: FloatArray) -> FloatArray:
    """Diagonal matrices (k, d, d) of values (k, d)."""
    return np.asarray(values[:, :, None] * np.eye(values.shape[1]))
