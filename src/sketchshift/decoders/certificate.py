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

from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import parameter_error
from sketchshift.errors import DataError
from sketchshift.kernels import CELL_WEIGHT_BITS
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.sketch.cells import CellSums

__all__ = ["Certificate", "bound_cost", "certify"]

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
    """

    cost_bound: float
    weights: FloatArray
    bounds: FloatArray

    def __repr__(self) -> str:
        return f"<Certificate of {len(self.weights)} centroids: cost <= {self.cost_bound:.6g}>"


def certify(sketch: AnySketch, centroids: Any) -> Certificate:
    r"""Bound the cost of any centroids on the rows of a sketch, from its exact integers alone.

    .. math::

        \frac1N \sum_i \min_c |x_i - c|^2 \le
        \frac1N \sum_j n_j \min_c \big(|m_j - c|^2 + \operatorname{tr} v_j\big)

    Parameters
    ----------
    sketch : Sketch
        With cells, as plans of :func:`sketchshift.plan` have them, and with rows.
    centroids : array of shape (k, d)
        Anybody's, in the units of the data.

    Returns
    -------
    certificate : Certificate
        Rounding is included. O(J k d).
    """
    if not isinstance(sketch, Sketch) or sketch.cells is None:
        msg = (
            "only sketches with cells prove anything, and this one has none. Plan anew with "
            "ss.plan(..., cells=True) on more rows, and sketch the data with that plan."
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
    places = (points - spec.center_vector) * spec.per_unit
    scale = spec.scale_vector if scale is None else scale
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
    n_partial = sketch.n_partial
    hidden = sum(part.rounding_of_weights(n_partial) for part in parts) / total
    least = total - n_partial * 2.0**-CELL_WEIGHT_BITS  # of what the weights really are
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
        distances = _squared_distances(sums.means * scale, places * scale)
        owners, rows = distances.argmin(axis=1), np.arange(len(distances))
        variances = (sums.variances * scale**2).sum(axis=1)
        costs = sums.weights * (distances[rows, owners] + variances)
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

    def rounding_of_weights(self, n_rows: int) -> float:
        """What partial weights may hide: n, S and Q are rounded, for each row that has one.

        The cost of a cell is Q - 2 <S, c - g> + n |c - g|^2 around its origin g. A row is off by
        half a step in the root of Q and in each column of S, and by 2**-33 in n.
        """
        if n_rows == 0:
            return 0.0
        root = 0.5 * self.step * math.sqrt(n_rows)
        of_squares = root * (2.0 * self.spread + root)
        of_sums, of_weights = self.step * self.farthest, 2.0**-CELL_WEIGHT_BITS * self.farthest**2
        return of_squares + n_rows * (of_sums + of_weights)


def _squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """By differences: a product of matrices would cancel, and a proof cannot have that."""
    result = np.zeros((len(points), len(centers)))
    for x, y in zip(points.T, centers.T, strict=True):
        result += np.square(x[:, None] - y)
    return result
