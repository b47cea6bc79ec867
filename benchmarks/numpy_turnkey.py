"""The turnkey decoder in plain NumPy and SciPy: what ``bench_turnkey`` compares ours with.

The same design as one would first write it: float32 NumPy for the atoms, SciPy's L-BFGS-B for
the descents, scikit-learn's k-means for regrouping and the last step.

Symbols
-------
T, d, m   atoms, dimension, frequencies
"""

from __future__ import annotations

import numpy as np
from numpy_misfit import Misfit
from scipy.optimize import minimize
from sklearn.cluster import KMeans

import sketchshift as ss

Fit = tuple[float, np.ndarray, np.ndarray, np.ndarray]  # loss, weights, means, deviations
HARD = 5e-4  # a first loss above: more atoms, more iterations, no regrouping


class NumpyTurnkey:
    """One sketch, in normalised coordinates, and its fits."""

    def __init__(self, sketch: ss.Sketch, k: int, seed: int) -> None:
        spec, self.k, self.rng = sketch.spec, k, np.random.default_rng(seed)
        self.center, self.scale = spec.center_vector, spec.scale_vector
        squares = np.outer(self.scale, self.scale)
        self.mean = (sketch.mean - self.center) / self.scale
        self.covariance = sketch.covariance / squares
        self.omega = 2 * np.pi * spec.frequencies.turns.astype(np.float64)
        self.z = sketch.z * np.sqrt(spec.sketch_size)
        self.norms = np.linalg.norm(self.omega, axis=0)
        high = spec.bandwidth[1] if isinstance(spec.bandwidth, tuple) else spec.bandwidth
        self.importance = 1 / np.maximum(self.norms, np.sqrt(spec.n_features) / high)

    def decode(self) -> np.ndarray:
        """Centroids in the units of the data."""
        n = max(10_000, 200 * self.k)
        points = self.draw(self.search(), n)
        weights = np.full(n, 1 / n)
        points = with_moments(points, weights, self.mean, self.covariance)
        starts = int(np.clip(150 / self.k, 3, 15))
        state = int(self.rng.integers(2**31))
        found = KMeans(self.k, n_init=starts, random_state=state).fit(points, sample_weight=weights)
        centers = swapped(points, weights, found.cluster_centers_, self.rng)
        last = KMeans(self.k, init=centers, n_init=1).fit(points, sample_weight=weights)
        return self.center + self.scale * last.cluster_centers_

    def search(self) -> list[Fit]:
        """Fits from random atoms, coarse to fine, then fits of what they agree upon."""
        k = self.k
        fits = [self.coarse_to_fine(3 * k, 150)]
        if fits[0][0] > HARD:
            return best([self.coarse_to_fine(4 * k, 300) for _ in range(4)])
        for _ in range(2 if k <= 20 else 1):
            fits.append(self.coarse_to_fine(3 * k, 150))
        for share in (2, 3, 4) if k <= 20 else (2, 3):
            fits.append(self.fit(*self.regrouped(best(fits), share * k), 150))
        return best(fits)

    def coarse_to_fine(self, T: int, iterations: int) -> Fit:
        """Equal atoms from the sketch's own moments; low frequencies first."""
        d, mean, covariance = len(self.mean), self.mean, self.covariance
        means = self.rng.multivariate_normal(mean, covariance / 2, T)
        deviations = np.tile(np.sqrt(np.diagonal(covariance) / 2), (T, 1))
        atoms = np.full(T, 1 / T), means, deviations
        cuts, cut = [], np.quantile(self.norms, 0.98) / 2.5
        while np.count_nonzero(self.norms <= cut) >= max(T * (d + 1) / 8, 50, 0.02 * len(self.z)):
            cuts.append(cut)
            cut /= 2.5
        for cut in reversed(cuts):
            atoms = revived(*self.fit(*atoms, 60, cut)[1:])
        return self.fit(*atoms, iterations)

    def fit(
        self, weights: np.ndarray, means: np.ndarray, deviations: np.ndarray, n: int, cut=np.inf
    ) -> Fit:
        """A descent of n iterations at the frequencies up to a cut."""
        below = self.norms <= cut
        moments = self.mean, self.covariance
        misfit = Misfit(self.omega[:, below], self.z[below], self.importance[below], *moments)
        start = misfit.packed(weights, means, deviations)
        bounds = misfit.bounds(len(weights))
        options = {"maxiter": n, "maxcor": 10, "ftol": 1e-12, "gtol": 1e-10}
        done = minimize(misfit, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return float(done.fun), *misfit.unpacked(done.x)

    def regrouped(self, fits: list[Fit], T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Atoms from the cells of a k-means of points drawn from the fits."""
        points = self.draw(fits, max(5_000, 30 * T))
        state = int(self.rng.integers(2**31))
        cells = KMeans(T, n_init=1, random_state=state).fit(points)
        share = np.bincount(cells.labels_, minlength=T) / len(points)
        spread = [points[cells.labels_ == t].std(axis=0) for t in range(T)]
        return share, cells.cluster_centers_, 0.8 * np.array(spread) + 1e-6

    def draw(self, fits: list[Fit], n: int) -> np.ndarray:
        """Points of the pooled fits, every fit alike."""
        shares = np.concatenate([fit[1] / fit[1].sum() for fit in fits]) / len(fits)
        means, deviations = (np.concatenate([fit[i] for fit in fits]) for i in (2, 3))
        atoms = self.rng.choice(len(shares), n, p=shares / shares.sum())
        return means[atoms] + deviations[atoms] * self.rng.normal(size=(n, means.shape[1]))


def best(fits: list[Fit]) -> list[Fit]:
    """Fits within 4 times the least loss."""
    least = min(fit[0] for fit in fits)
    return [fit for fit in fits if fit[0] <= 4 * least]


def revived(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dead atoms moved onto the largest ones, which are split along their widest axis."""
    for i in np.flatnonzero(weights < 0.05 / len(weights)):
        j = int(np.argmax(weights * (deviations**2).sum(axis=1)))
        axis = int(np.argmax(deviations[j]))
        weights[i] = weights[j] = weights[j] / 2
        means[i], deviations[i] = means[j], deviations[j]
        means[i, axis] += 0.8 * deviations[j, axis]
        means[j, axis] -= 0.8 * deviations[j, axis]
        deviations[[i, j], axis] *= 0.6
    return weights, means, deviations


def with_moments(
    points: np.ndarray, weights: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """An affine map of the points onto the exact mean and covariance."""
    rests = points - weights @ points
    present = np.linalg.cholesky((rests.T * weights) @ rests + 1e-12 * np.eye(len(mean)))
    wanted = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(mean)))
    return mean + np.linalg.solve(present, rests.T).T @ wanted.T


def swapped(
    points: np.ndarray, weights: np.ndarray, centers: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Up to 60 swaps: the best of 30 candidates in, the center missed least out."""
    for _ in range(60):
        distances = squared_distances(points, centers)
        labels, (near, second) = distances.argmin(axis=1), np.partition(distances, 1)[:, :2].T
        drawn = points[rng.choice(len(points), 30, p=weights * near / (weights @ near))]
        to_new = squared_distances(points, drawn)
        gains = weights @ np.maximum(near[:, None] - to_new, 0)
        new = int(gains.argmax())
        lost = np.minimum(second, to_new[:, new]) - np.minimum(near, to_new[:, new])
        losses = np.bincount(labels, weights * lost, minlength=len(centers))
        if losses.min() >= gains[new]:
            break
        centers = centers.copy()
        centers[losses.argmin()] = drawn[new]
    return centers


def squared_distances(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Of all points to all centers, shape (n, k)."""
    squares = (points**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    return np.maximum(squares - 2 * points @ centers.T, 0)
