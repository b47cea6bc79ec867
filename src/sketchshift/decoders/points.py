"""Points that stand for the data, and the k-means on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._kmeans import nearest_two, weighted_kmeans
from sketchshift._typing import FloatArray, IntArray
from sketchshift.decoders.mixture import Mixture, Points, as_shares, means_by
from sketchshift.decoders.noisy_cells import move_to_cells
from sketchshift.decoders.paper.refine import choose, hard_threshold, merge_nearest, refine
from sketchshift.decoders.problem import Problem
from sketchshift.features.stream import Purpose, normal_quantile, uniforms

__all__ = [
    "KMeans",
    "Partition",
    "draw_places",
    "draw_points",
    "exchange_gains",
    "exchange_many",
    "fewest_points",
    "lloyd_from",
    "means_by_label",
    "reduce_columns",
    "squared_distances",
]

# Points that stand for the data: drawn from fits, weighted back, with the exact moments.
#
# Takes fits from ``gaussians``; hands weighted points to the last k-means.

FLAT = 1e-9  # share of the mean variance added to covariances, so that roots exist


def draw_places(mixtures: Sequence[Mixture], n: int, seed: int) -> FloatArray:
    """About n points of several mixtures of Gaussians, every one alike: shape (n, d).

    Numbers of points are rounded from the weights, and points come in opposite pairs, so that
    the means of the Gaussians are exact. O(n d), and O(n d^2) for full covariances.
    """
    d = mixtures[0].n_features
    normals = normal_quantile(uniforms(seed, Purpose.SAMPLE, np.arange(-(-n // 2) + 1), d))
    parts = []
    for mixture in mixtures:
        counts = _round_counts(mixture.shares, n / (2 * len(mixtures)))
        middles = np.repeat(mixture.means, counts, axis=0)
        rests = _stretch(normals[: len(middles)], mixture.covariances, counts)
        parts += [middles + rests, middles - rests]
    return np.concatenate(parts)


def _stretch(normals: FloatArray, covariances: FloatArray | None, counts: IntArray) -> FloatArray:
    """Normal numbers, so many for each Gaussian in turn, with its covariance."""
    assert covariances is not None
    if covariances.ndim < 3:
        return np.repeat(np.sqrt(covariances), counts, axis=0) * normals
    parts = np.split(normals, np.cumsum(counts)[:-1])
    factors = np.linalg.cholesky(covariances)
    return np.concatenate([part @ L.T for part, L in zip(parts, factors, strict=True)])


def _round_counts(shares: FloatArray, n: float) -> IntArray:
    """Whole numbers near n times the shares, whose partial sums are right to one half."""
    ends = np.rint(np.cumsum(shares) * n).astype(np.int64)
    return np.diff(ends, prepend=0)


def draw_points(problem: Problem, fits: Sequence[Mixture], n: int, seed: int) -> Points:
    """Points like the rows, with the exact moments if they are known.

    Parameters
    ----------
    problem : Problem
        The sketch.
    fits : sequence of Mixture
        All count alike.
    n : int
        Number of points.
    seed : int
        Of the points.

    Returns
    -------
    points : Points
        O(n d^2 + d^3).
    """
    places = draw_places(fits, n, seed)
    weights = np.full(len(places), 1.0 / len(places))
    if problem.moments is not None:
        places = _move_to_moments(places, weights, *problem.moments)
    if problem.noisy_cells is not None:
        rows = weights * problem.sketch.total_weight
        places, rows = move_to_cells(places, rows, *problem.noisy_cells)
        weights = as_shares(rows)
    return Points(places, weights)


def _move_to_moments(
    points: FloatArray, weights: FloatArray, mean: FloatArray, covariance: FloatArray
) -> FloatArray:
    """The points moved as little as possible until mean and covariance are as given.

    The optimal transport between Gaussians, A = R^-1 (R Sigma R)^(1/2) R^-1 with R the root
    of the present covariance; axis by axis where only the diagonal is known.
    """
    rests = points - weights @ points
    floor = FLAT * float(np.trace(covariance)) / len(mean)
    if np.isnan(covariance).any():
        present = weights @ rests**2
        factors = np.sqrt((np.diagonal(covariance) + floor) / (present + floor))
        return np.asarray(mean + rests * factors)
    eye = floor * np.eye(len(mean))
    values, vectors = np.linalg.eigh((rests.T * weights) @ rests + eye)
    root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    values, vectors = np.linalg.eigh(root @ (covariance + eye) @ root)
    middle = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(mean + rests @ (inverse @ middle @ inverse))


# The last step: k-means on weighted points, with swaps out of its local minima.

_AXIS_STEPS = 3  # of the power method: halves need no exact axis


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of points around centers.

    Attributes
    ----------
    centers : array of shape (k, d)
        Means of the cells.
    labels : int array of shape (n,)
        Cell of each point.
    inertia : float
        Weighted sum of squared distances.
    """

    centers: FloatArray
    labels: IntArray
    inertia: float

    def around_means(self, points: Points) -> Partition:
        """The same cells around their very means: Lloyd's algorithm stops a little before."""
        return replace(self, centers=means_by_label(points, self.labels, self.centers))

    def shares(self, points: Points) -> FloatArray:
        """Weights of the cells, shape (k,)."""
        sums = np.bincount(self.labels, points.weights, minlength=len(self.centers))
        return sums.astype(np.float64)

    def covariances(self, points: Points) -> FloatArray:
        """Covariances within the cells, shape (k, d, d): O(n d^2)."""
        order = np.argsort(self.labels, kind="stable")
        ends = np.cumsum(np.bincount(self.labels, minlength=len(self.centers)))[:-1]
        rests = np.split((points.places - self.centers[self.labels])[order], ends)
        weights = np.split(points.weights[order], ends)
        return np.array(
            [(x.T * w) @ x / (w.sum() or 1.0) for x, w in zip(rests, weights, strict=True)]
        )


@dataclass(frozen=True)
class KMeans:
    """k-means of weighted points: starts by greedy k-means++, and swaps out of local minima.

    Parameters
    ----------
    most_starts, fewest_starts, started_cells : int
        So many starts that they have about ``started_cells`` cells together, within these limits.
    swaps_above : int
        From more cells on, swaps are tried: up to so many, other starts help and swaps do not.
    subset, subset_per_cell : int
        Starts are run on some of the points, at least so many.
    finalists : int
        The best starts, which go on with all points.
    max_iterations : int
        Of Lloyd's algorithm.
    swaps, candidates, failures : int
        Rounds of swaps at most, points that each tries, and rounds without gain that end it.
    lloyd_steps : int
        Between swaps.
    """

    most_starts: int = 15
    fewest_starts: int = 3
    started_cells: int = 150
    swaps_above: int = 12
    subset: int = 3_000
    subset_per_cell: int = 40
    finalists: int = 3
    max_iterations: int = 100
    swaps: int = 60
    candidates: int = 30
    failures: int = 3
    lloyd_steps: int = 2

    def n_starts(self, k: int) -> int:
        """Number of starts for k cells."""
        return min(max(self.started_cells // k, self.fewest_starts), self.most_starts)

    def cut(
        self,
        points: Points,
        k: int,
        seed: int,
        *,
        n_starts: int | None = None,
        has_swaps: bool | None = None,
    ) -> Partition:
        """The best of several starts.

        Parameters
        ----------
        points : Points
            At least k, in an order of which every part is like the whole.
        k : int
            Number of cells.
        seed : int
            Of the starts.
        n_starts : int or None
            None is :meth:`n_starts`.
        has_swaps : bool or None
            Whether to try to exchange centers afterwards; None leaves it to ``swaps_above``.

        Returns
        -------
        cells : Partition
            O(n k d) an iteration.
        """
        n_starts = self.n_starts(k) if n_starts is None else n_starts
        has_swaps = k > self.swaps_above if has_swaps is None else has_swaps
        state, n = int(seed % 2**32), len(points.places)
        step = max(1, n // max(self.subset, self.subset_per_cell * k)) if n_starts > 1 else 1
        some = Points(points.places[::step], points.weights[::step])
        starts = [
            lloyd_from(some, k, self.max_iterations, seed=(state + i) % 2**32)
            for i in range(n_starts)
        ]
        starts = sorted(starts, key=lambda cells: cells.inertia)[: self.finalists]
        if step > 1:
            starts = [lloyd_from(points, k, self.max_iterations, s.centers) for s in starts]
        found = min(starts, key=lambda cells: cells.inertia)
        if has_swaps and k > 1:
            centers = self._swap(points, found.centers.copy(), state)
            again = lloyd_from(points, k, self.max_iterations, centers)
            found = min(found, again, key=lambda cells: cells.inertia)
        return found

    def _swap(self, points: Points, centers: FloatArray, seed: int) -> FloatArray:
        """Exchange a center for a point as long as one of the candidates makes that worth while.

        Candidates are drawn by their share of the inertia (Lattanzi and Sohler 2019). A round is
        O(n (k + candidates) d), and exact for every pair of a candidate and a center.
        """
        places, weights = points.places, points.weights
        rng = np.random.Generator(np.random.Philox(seed))
        distances = squared_distances(places, centers)
        failures = 0
        for _ in range(self.swaps):
            shares = weights * distances.min(axis=1)
            if failures == self.failures or shares.sum() <= 0.0:
                break
            new_ones = rng.choice(len(places), self.candidates, p=shares / shares.sum())
            to_new = squared_distances(places, places[new_ones])
            net = exchange_gains(weights, distances, to_new)
            out, new = np.unravel_index(int(net.argmax()), net.shape)
            if net[out, new] <= 1e-6 * shares.sum():
                failures += 1
                continue
            failures = 0
            distances[:, out] = to_new[:, new]
            for _ in range(self.lloyd_steps):
                centers = means_by_label(points, distances.argmin(axis=1), centers)
                distances = squared_distances(places, centers)
        return centers


def exchange_gains(weights: FloatArray, distances: FloatArray, to_new: FloatArray) -> FloatArray:
    """What the inertia loses if a center goes and a point comes, for every pair of both.

    Parameters
    ----------
    weights : array of shape (n,)
        Of the points.
    distances, to_new : arrays of shapes (n, k) and (n, candidates)
        Squared distances of the points to the k > 1 centers, and to the points that may come.

    Returns
    -------
    gains : array of shape (k, candidates)
        Exact as long as nothing else moves. O(n (k + candidates)).
    """
    k, owners = distances.shape[1], distances.argmin(axis=1)
    own = (np.arange(len(distances)), owners)
    nearest = distances[own]
    distances[own] = np.inf  # for a moment: a copy of all would take longer than all else
    second = distances.min(axis=1)
    distances[own] = nearest
    closest = np.minimum(nearest[:, None], to_new)
    losses = weights[:, None] * (np.minimum(second[:, None], to_new) - closest)
    lost = [np.bincount(owners, column, minlength=k) for column in losses.T]
    return np.asarray(weights @ (nearest[:, None] - closest) - np.column_stack(lost))


def exchange_many(points: Points, centers: FloatArray) -> tuple[FloatArray, float]:
    """Centers that are missed least, exchanged at once for the halves of cells that gain most.

    No cell is halved, and no center goes, that has to take in points of one that goes, so that
    gains and losses add up (one at a time: LBG-U, Fritzke 1997).

    Parameters
    ----------
    points : Points
        At least as many as centers.
    centers : array of shape (k, d)
        At least two.

    Returns
    -------
    centers : array of shape (k, d)
        The others stay where they are.
    gain : float
        The inertia falls by so much at least. O(n d) beside the search for the two nearest.
    """
    places, weights, k = points.places, points.weights, len(centers)
    owners, heirs = nearest_two(places, centers)
    rests = places - centers[owners]
    nearest = np.square(rests).sum(axis=1)
    second = np.square(places - centers[heirs]).sum(axis=1)
    losses = np.bincount(owners, weights * (second - nearest), minlength=k).astype(np.float64)
    halves = 2 * owners + _sides(rests, weights, owners, nearest, k)
    wholes = np.repeat(centers, 2, axis=0)
    middles = means_by_label(points, halves, wholes)
    mass = np.bincount(halves, weights, minlength=2 * k)
    gains = (mass * np.square(middles - wholes).sum(axis=1)).reshape(k, 2).sum(axis=1)
    out, cut = _pair(gains, losses, owners, heirs)
    moved = centers.copy()
    moved[out], moved[cut] = middles[2 * cut], middles[2 * cut + 1]
    return moved, float(gains[cut].sum() - losses[out].sum())


def _sides(
    rests: FloatArray, weights: FloatArray, owners: IntArray, squares: FloatArray, k: int
) -> IntArray:
    """On which side of its center (0 or 1) a point lies, along the widest axis of the cell."""
    order, farthest = np.argsort(squares, kind="stable"), np.zeros(k, dtype=np.int64)
    farthest[owners[order]] = order  # of several, the last counts
    axes = rests[farthest]
    for _ in range(_AXIS_STEPS):
        pulls = weights * np.einsum("ij,ij->i", rests, axes[owners])
        axes = np.column_stack([np.bincount(owners, pulls * x, minlength=k) for x in rests.T])
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        axes /= np.where(lengths > 0.0, lengths, 1.0)
    return np.asarray(np.einsum("ij,ij->i", rests, axes[owners]) > 0.0, dtype=np.int64)


def _pair(
    gains: FloatArray, losses: FloatArray, owners: IntArray, heirs: IntArray
) -> tuple[IntArray, IntArray]:
    """Centers that go, and as many that are halved instead: pair by pair, as long as it pays."""
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(len(gains) + 1))
    is_moved, is_heir = np.zeros((2, len(gains)), dtype=bool)
    widest, i, pairs = np.argsort(-gains, kind="stable"), 0, []
    for out in np.argsort(losses, kind="stable"):
        while i < len(widest) and (is_moved[widest[i]] or is_heir[widest[i]]):
            i += 1
        if i == len(widest) or gains[widest[i]] <= losses[out]:
            break
        own = heirs[order[ends[out] : ends[out + 1]]]
        cut = widest[i]
        if is_moved[out] or is_heir[out] or is_moved[own].any() or cut == out or cut in own:
            continue
        pairs.append((out, cut))
        is_moved[[out, cut]] = is_heir[own] = True
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def lloyd_from(
    points: Points, k: int, max_iterations: int, starts: FloatArray | None = None, seed: int = 0
) -> Partition:
    """One run of Lloyd's algorithm, from centers or from k-means++."""
    places, weights = points.places, points.weights
    found = weighted_kmeans(
        places, weights, k, seed=seed, starts=starts, max_iterations=max_iterations
    )
    return Partition(*found)


def means_by_label(points: Points, labels: IntArray, centers: FloatArray) -> FloatArray:
    """Means of the cells; a cell without weight keeps its center."""
    mass = np.bincount(labels, points.weights, minlength=len(centers)).astype(np.float64)
    means = means_by(labels, points.weights, points.places, mass)
    return np.where(mass[:, None] > 0.0, means, centers)


def reduce_columns(points: Points, most: int) -> Points:
    """The points along their principal axes, where they have more columns than ``most``."""
    places, weights = points.places, points.weights
    if places.shape[1] <= most:
        return points
    rests = places - weights @ places
    _, vectors = np.linalg.eigh((rests.T * weights) @ rests)
    return Points(rests @ vectors[:, -most:], weights)


def squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Of all points to all centers, shape (n, k)."""
    distances = points @ (-2.0 * centers.T)
    distances += (points**2).sum(axis=1)[:, None]
    distances += (centers**2).sum(axis=1)
    return np.asarray(np.maximum(distances, 0.0, out=distances))


# Whether a sketch is that of fewer distinct points than centroids were asked for.


def fewest_points(problem: Problem, mixture: Mixture, k: int) -> Mixture | None:
    """The fewest points, less than k, whose sketch is the given one up to rounding.

    A greedy search surrounds a point with light components that correct its place, so that their
    number says nothing. The heaviest of them, or all merged to a few, descend jointly to the
    points, if points there are.

    Parameters
    ----------
    problem : Problem
        The sketch.
    mixture : Mixture
        What a decoder found, as many components as it has; their covariances are left aside.
    k : int
        Number of centroids asked for.

    Returns
    -------
    points : Mixture or None
        None when k - 1 of them are not enough: joint descents from 1, 2, 4, ..., k - 1
        components tell. Too many at once are slow to fall together.
    """
    diracs = Mixture(mixture.weights, mixture.means)
    for n in _sizes(min(k - 1, diracs.n_components)):
        points = _explain(problem, diracs, n)
        if points is not None:
            return _shrink(problem, points)
    return None


def _sizes(largest: int) -> list[int]:
    """1, 2, 4, ... and the largest itself."""
    powers = [2**i for i in range(largest.bit_length()) if 2**i < largest]
    return [*powers, largest] if largest else []


def _shrink(problem: Problem, points: Mixture) -> Mixture:
    """Merge points as long as the others explain the sketch."""
    while points.n_components > 1:
        fewer = _explain(problem, points, points.n_components - 1)
        if fewer is None:
            break
        points = fewer
    return points


def _explain(problem: Problem, diracs: Mixture, n: int) -> Mixture | None:
    """The n points that explain the sketch, from two places to start."""
    for start in (choose(diracs, hard_threshold(diracs.weights, n)), merge_nearest(diracs, n)):
        points = refine(problem, start)
        if problem.residual_norm(points) < problem.empty:
            return points
    return None
