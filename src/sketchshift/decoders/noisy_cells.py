"""Points moved to what the cells of a release tell, as far as that is more than noise.

Symbols
-------
J, d, n   cells, columns, points
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.decoders.mixture import means_by
from sketchshift.features import Cells
from sketchshift.kernels import select_kernel
from sketchshift.sketch.clipped import NoisyCells

__all__ = ["move_to_cells"]

SURE = 4.0  # cells with fewer rows than so many deviations of the noise tell of their number alone
FEWEST_POINTS = 4  # that are moved
STRETCH = (0.2, 3.0)  # of the points of a cell around their mean, at least and at most


def move_to_cells(
    places: FloatArray, weights: FloatArray, cells: Cells, told: NoisyCells
) -> tuple[FloatArray, FloatArray]:
    r"""Points whose number, mean and spread in each cell are blended with what was told.

    A guess g with an error of variance :math:`\tau^2`, and what was told, t, with noise of variance
    :math:`\sigma_j^2`, make :math:`g_j + (t_j - g_j)\, \tau^2 / (\tau^2 + \sigma_j^2)`. How large
    :math:`\tau` is, the differences of all cells tell: for means and spreads the same for all; for
    numbers in proportion to the guess, so that noise puts no rows where none are.

    Parameters
    ----------
    places : array of shape (n, d)
        Points that stand for the rows, in normalised coordinates.
    weights : array of shape (n,)
        How many rows each stands for.
    cells : Cells
        Of the plan.
    told : NoisyCells
        By a release.

    Returns
    -------
    places, weights : arrays
        Of the same points, and of one for each cell that has rows and had no point. O(n (J + d)).
    """
    labels, _ = select_kernel().cells(cells.groups).nearest(places.astype(np.float32))
    guess = _Summary.of_points(places, weights, labels, told)
    stated = _Summary.of_release(told)
    n_points = np.bincount(labels, minlength=len(told.weights))
    is_sure = (told.weights > SURE * told.weight_std) & (n_points >= FEWEST_POINTS)
    per_row = np.maximum(told.weights, 1.0)
    ones, anywhere = np.ones(len(per_row)), np.ones(len(per_row), dtype=bool)
    squares = guess.weights[:, 0] ** 2
    masses = _blend(guess.weights, stated.weights, told.weight_std**2, squares, anywhere)
    means = _blend(guess.means, stated.means, (told.sum_std / per_row) ** 2, ones, is_sure)
    spreads = _blend(guess.spreads, stated.spreads, (told.square_std / per_row) ** 2, ones, is_sure)
    ratio = np.maximum(spreads, 0.0) / np.maximum(guess.spreads, 1e-300)
    stretch = np.where(is_sure[:, None], np.clip(np.sqrt(ratio), *STRETCH), 1.0)
    middles = means_by(labels, weights, places, guess.weights[:, 0])
    moved = (middles + means - guess.means)[labels] + (places - middles[labels]) * stretch[labels]
    shares = np.maximum(masses, 0.0) / np.maximum(guess.weights, 1e-300)
    is_new = (n_points == 0) & (told.weights > SURE * told.weight_std)
    return (
        np.vstack([moved, (told.centers + stated.means)[is_new]]),
        np.append(weights * shares[labels, 0], told.weights[is_new]),
    )


@dataclass(frozen=True, eq=False)
class _Summary:
    """Numbers (J, 1), means (J, d) and spreads (J, 1) of offsets that were clipped to the radii."""

    weights: FloatArray
    means: FloatArray
    spreads: FloatArray

    @classmethod
    def of_release(cls, told: NoisyCells) -> _Summary:
        """As told; noise in the means is taken off the spreads."""
        rows = np.maximum(told.weights, 1.0)[:, None]
        means = told.sums / rows
        noise = means.shape[1] * (told.sum_std[:, None] / rows) ** 2
        squares = np.square(means).sum(axis=1, keepdims=True) - noise
        return cls(told.weights[:, None], means, told.squares[:, None] / rows - squares)

    @classmethod
    def of_points(
        cls, places: FloatArray, weights: FloatArray, labels: IntArray, told: NoisyCells
    ) -> _Summary:
        """The same of points: clipped alike, so that both err alike."""
        J, offsets = len(told.weights), places - told.centers[labels]
        lengths, radii = np.linalg.norm(offsets, axis=1), told.radii[labels]
        offsets *= np.minimum(1.0, radii / np.maximum(lengths, 1e-300))[:, None]
        squares = np.minimum(lengths, radii)[:, None] ** 2
        mass = np.bincount(labels, weights, minlength=J).astype(np.float64)
        means = means_by(labels, weights, offsets, mass)
        spreads = means_by(labels, weights, squares, mass)
        spreads -= np.square(means).sum(axis=1, keepdims=True)
        return cls(mass[:, None], means, np.maximum(spreads, 0.0))


def _blend(
    guess: FloatArray,
    told: FloatArray,
    noise: FloatArray,
    sizes: FloatArray,
    is_sure: BoolArray,
) -> FloatArray:
    """Guesses (J, c) moved to what was told with noise of these variances (J,), where sure.

    Variances of the errors of guesses are as the sizes (J,) to each other. What noise alone leaves
    of the differences by chance, two deviations of it, does not count.
    """
    off = told - guess
    excess = np.where(is_sure, np.square(off).mean(axis=1) / noise - 1.0, 0.0).sum()
    chance = 2.0 * math.sqrt(2.0 * np.count_nonzero(is_sure) / off.shape[1])
    unit = np.where(is_sure, sizes / noise, 0.0).sum()
    errors = sizes * max(0.0, (excess - chance) / max(unit, 1e-300))
    return guess + off * np.where(is_sure, errors / (errors + noise), 0.0)[:, None]
