"""What a sketch with cells proves of any centroids, without the rows.

Sending all rows of a cell to one centroid is no better than sending each to its nearest. So exact
counts, sums and squares of cells bound the mean squared distance of the very rows.

Symbols
-------
J, k, d   cells, centroids, columns
n, m, v   weight, mean and variances of the rows of a cell
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._kmeans import nearest
from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import check_flag, check_number, parameter_error
from sketchshift.decoders.mixture import as_shares
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.sketch.cells import CellSums
from sketchshift.sketch.clipped import NoisyCells

__all__ = ["Certificate", "bound_cost", "certify"]

MANY = 2**24  # products of numbers
_SLACK = 2.0**-40  # of sums and products of float64, many times over


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proved bound on the cost of centroids, for the rows of one sketch.

    Attributes
    ----------
    cost_bound : float
        The mean squared distance of the rows to their nearest centroids is not larger, in the
        units of the data.
    weights : array of shape (k,)
        Share of the rows whose cells were sent to each centroid.
    bounds : array of shape (k,)
        What they contribute to ``cost_bound``, each.
    confidence : float
        With which probability it holds: 1 for a sketch without noise. That of a private sketch is
        over the noise, for rows as the release saw them.
    """

    cost_bound: float
    weights: FloatArray
    bounds: FloatArray
    confidence: float = 1.0

    def __repr__(self) -> str:
        sure = "" if self.confidence == 1.0 else f" with confidence {self.confidence:g}"
        k = len(self.weights)
        return f"<Certificate of {k} centroids: cost <= {self.cost_bound:.6g}{sure}>"


def certify(
    sketch: AnySketch, centroids: Any, *, confidence: float = 0.95, independent: bool = False
) -> Certificate:
    r"""Bound the cost of any centroids on the rows of a sketch, from its integers alone.

    .. math::

        \frac1N \sum_i \min_c |x_i - c|^2 \le
        \frac1N \sum_j n_j \min_c \big(|m_j - c|^2 + \operatorname{tr} v_j\big)

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        With cells, as plans of :func:`sketchshift.plan` and :func:`sketchshift.privacy.plan_public`
        have them, and with rows.
    centroids : array of shape (k, d)
        Anybody's, in the units of the data.
    confidence : float, default=0.95
        Of a private sketch: with this probability over its noise the bound holds for all centroids
        at once, also for those that were decoded from it. Its rows are those that the release saw,
        moved to the radii of their cells. Sketches without noise need none.
    independent : bool, default=False
        Of a private sketch: whether the centroids were chosen without looking at it. The bound is
        then much lower, and holds for these centroids alone.

    Returns
    -------
    certificate : Certificate
        Rounding is included. O(J k d).
    """
    if isinstance(sketch, PrivateSketch) and sketch.cells is not None:
        points = _checked(centroids, sketch.spec.n_features)
        sure = check_number("certify", "confidence", confidence, low=0.5, high=1.0 - 1e-9)
        check_flag("certify", "independent", independent)
        return _NoisyBound(sketch, sketch.cells, 1.0 - sure, independent).certificate(points)
    if not isinstance(sketch, Sketch) or sketch.cells is None:
        msg = (
            "only sketches with cells prove anything, and this one has none. Plan anew without "
            "cells=False, on 20 rows or more, and sketch the data with that plan; of "
            "private plans, those from a public sample have cells."
        )
        raise DataError(msg)
    points = _checked(centroids, sketch.spec.n_features)
    if not sketch.total_weight > 0.0:
        raise DataError("there is nothing to prove: the sketch holds no rows of positive weight.")
    return bound_cost(sketch, points, [sketch.cells, sketch.outer, sketch.far])


def _checked(centroids: Any, d: int) -> FloatArray:
    try:
        points = np.array(centroids, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError):
        must = f"numbers, in an array of shape (k, {d})"
        raise parameter_error("certify", "centroids", must, centroids) from None
    if points.ndim != 2 or points.shape[1] != d or not len(points):
        must = f"an array of shape (k, {d})"
        raise parameter_error("certify", "centroids", must, centroids)
    if not np.isfinite(points).all():
        raise parameter_error("certify", "centroids", "finite numbers", centroids)
    return points


def bound_cost(
    sketch: Sketch,
    points: FloatArray,
    cells: Sequence[CellSums],
    scale: FloatArray | None = None,
) -> Certificate:
    """The same for the rows of some cells of a sketch: all, or those that belong to clusters.

    Distances are those of the data, or of normalised coordinates times another ``scale`` (d,).
    """
    spec = sketch.spec
    places = (points - spec.rows.center_vector) * spec.rows.per_unit
    scale = spec.rows.scale_vector if scale is None else scale
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e154 the bound is infinite
        parts = [_Sent.of(sums, places, scale) for sums in cells]
    weights, costs, owners = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("weights", "costs", "owners")
    )
    total, k = math.fsum(weights), len(points)
    if not total > 0.0:
        raise DataError("there is nothing to prove: these cells have no rows.")
    cost, root = math.fsum(costs) / total, math.sqrt(sum(part.rounding for part in parts) / total)
    n_partial, unit = sketch.n_partial, sketch.weight_step
    hidden = sum(part.rounding_of_weights(n_partial, unit) for part in parts) / total
    least = total - n_partial * unit  # of what the weights really are
    if not least > 0.0:
        raise DataError("there is nothing to prove: the rows have no weight to speak of.")
    proved = ((math.sqrt(cost) + root) ** 2 + hidden) * (total / least) * (1.0 + _SLACK)
    factor = proved / cost / total if 0.0 < cost < math.inf else 1.0 / total
    shares, bounds = (
        np.bincount(owners, numbers, minlength=k).astype(np.float64) for numbers in (weights, costs)
    )
    return Certificate(proved, shares / total, bounds * factor)


@dataclass(frozen=True, eq=False)
class _Sent:
    """Cells, each sent to its best centroid; all in the units of the data.

    A row is off by half a step in each column, and by a few roundings of float64: ``rounding`` sums
    up the squares of these distances, which add to the root of the mean cost by Minkowski.
    """

    weights: FloatArray
    costs: FloatArray
    owners: IntArray
    rounding: float
    step: float
    farthest: float  # centroid from the origin of a cell that has rows
    spread: float  # root of the sum of all squares around the origins

    @classmethod
    def of(cls, sums: CellSums, places: FloatArray, scale: FloatArray) -> _Sent:
        owners, distances = _nearest(sums.means * scale, places * scale)
        variances = (sums.variances * scale**2).sum(axis=1)
        costs = sums.weights * (distances + variances)
        costs[np.isnan(costs)] = math.inf  # too large to tell
        places = places[owners]
        is_weightless = sums.weights == 0.0  # but rows of tiny weights may be there
        lost = np.square(scale) * (sums.squares + 2.0 * np.abs(sums.sums * (places - sums.origins)))
        costs[is_weightless] = lost.sum(axis=1)[is_weightless]
        width = math.sqrt(math.fsum(scale**2))
        around = (np.square(sums.means * scale) + sums.variances * scale**2).sum(axis=1)
        off = 0.5 * sums.steps * width + 2.0**-45 * np.sqrt(around)
        rounding = np.where(is_weightless, 0.0, sums.weights * off**2)
        has_rows = sums.squares.any(axis=1) | ~is_weightless
        away = np.sqrt(np.square((places - sums.origins) * scale).sum(axis=1))[has_rows]
        return cls(
            sums.weights,
            costs,
            owners,
            math.fsum(np.where(np.isnan(rounding), math.inf, rounding)),
            float(sums.steps.max(initial=0.0)) * width,
            float(away.max(initial=0.0)),
            math.sqrt(float((sums.squares * scale**2).sum())),
        )

    def rounding_of_weights(self, n_rows: int, unit: float) -> float:
        """What partial weights may hide: n, S and Q are rounded, for each row that has one.

        The cost of a cell is Q - 2 <S, c - g> + n |c - g|^2 around its origin g. A row is off by
        half a step in the root of Q and in each column of S, and by half a unit in n.
        """
        if n_rows == 0:
            return 0.0
        root = 0.5 * self.step * math.sqrt(n_rows)
        of_squares = root * (2.0 * self.spread + root)
        of_sums, of_weights = self.step * self.farthest, unit * self.farthest**2
        return of_squares + n_rows * (of_sums + of_weights)


def _nearest(points: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """A center for each point (J,), the nearest but for rounding, and the squared distance to it.

    The bound holds whichever it is. Of many, a product of matrices or a tree finds it.
    """
    if len(points) * centers.size <= MANY:
        distances = _squared_distances(points, centers)
        owners = distances.argmin(axis=1)
        return owners, distances[np.arange(len(points)), owners]
    owners = nearest(points, centers)
    return owners, np.square(points - centers[owners]).sum(axis=1)


def _squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """By differences: a product of matrices would cancel, and a proof cannot have that."""
    result = np.zeros((len(points), len(centers)))
    for x, y in zip(points.T, centers.T, strict=True):
        result += np.square(x[:, None] - y)
    return result


# The same of a private sketch. With n, S, Q the numbers, sums and squares of a cell, and u its
# centroid less its center, its rows cost Q - 2 <S, u> + n |u|^2. Noise falls on all three. If u
# does not depend on the noise, it adds one normal number. Otherwise that of the squares does,
# before which no u stands; and the length of all noise of the sums, and of the numbers, is bounded.


@dataclass(frozen=True, eq=False)
class _NoisyBound:
    """What a release proves at a risk that its numbers, sums, squares and count share alike."""

    sketch: PrivateSketch
    told: NoisyCells
    risk: float
    is_independent: bool

    def certificate(self, points: FloatArray) -> Certificate:
        """For centroids (k, d) in the units of the data."""
        spec, told, k = self.sketch.spec, self.told, len(points)
        least = self.sketch.total_weight - self._quantile(0.25) * self.sketch.count_std
        if not least > 0.0:
            msg = (
                "there is nothing to prove: with the noise in their number, there may be no rows. "
                "Release more rows, at a larger epsilon, or ask for less confidence."
            )
            raise DataError(msg)
        owners, ways = self._send((points - spec.rows.center_vector) * spec.rows.per_unit)
        away = np.square(ways).sum(axis=1)
        costs = told.squares - 2.0 * (told.sums * ways).sum(axis=1) + told.weights * away
        total = math.fsum(costs) + self._noise(away) + self._rounding(away)
        proved = max(0.0, total) / least * float(spec.rows.scale_vector.max()) ** 2 * (1.0 + _SLACK)
        rows, parts = (
            np.bincount(owners, np.maximum(numbers, 0.0), minlength=k).astype(np.float64)
            for numbers in (told.weights, costs)
        )
        return Certificate(proved, as_shares(rows), as_shares(parts) * proved, 1.0 - self.risk)

    def _send(self, places: FloatArray) -> tuple[IntArray, FloatArray]:
        """The centroid of each cell (J,), and the way from its center to there (J, d)."""
        told, middles = self.told, self.told.centers
        if not self.is_independent:  # the mean is a better guess, and may depend on the noise
            is_sure = told.weights > 4.0 * told.weight_std
            middles = middles + told.sums / np.where(is_sure, told.weights, np.inf)[:, None]
        owners = _squared_distances(middles, places).argmin(axis=1)
        return owners, places[owners] - told.centers

    def _noise(self, away: FloatArray) -> float:
        """What noise may have taken off the sum of the costs; ``away`` is |u|^2, shape (J,)."""
        told, (J, d) = self.told, self.told.sums.shape
        of_squares, of_sums, of_numbers = (
            math.sqrt(math.fsum(std**2))
            for std in (
                told.square_std,
                2.0 * told.sum_std * np.sqrt(away),
                told.weight_std * away,
            )
        )
        if self.is_independent:
            return self._quantile(0.75) * math.hypot(of_squares, of_sums, of_numbers)
        return (
            self._quantile(0.25) * of_squares
            + self._length(J * d) * of_sums
            + self._length(J) * of_numbers
        )

    def _quantile(self, share: float) -> float:
        """What a standard normal number is at most, at a share of the risk."""
        from scipy.special import ndtri

        return float(-ndtri(share * self.risk))

    def _length(self, n: int) -> float:
        """What the length of n such numbers is at most, at a quarter of the risk."""
        from scipy.special import chdtri

        return math.sqrt(float(chdtri(n, 0.25 * self.risk)))

    def _rounding(self, away: FloatArray) -> float:
        """Offsets and squares are whole numbers of steps: half a step a row in each of them."""
        d, step = self.told.sums.shape[1], self.told.steps
        most = self.sketch.total_weight + 8.0 * self.sketch.count_std
        per_row = step * np.sqrt(d * away) + step * self.told.radii
        return most * float(per_row.max())
