r"""A plane through the data's space, and the correlation function on it.

Takes a sketch; hands a :class:`Plane` and images to the other modules of this room, which
draw them. Knows no matplotlib.

Symbols
-------
d         dimension of a point
u, v      coordinates in the plane
c         origin + u directions[0] + v directions[1], in the units of the data
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.objective import CorrelationFunction
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["Plane", "column_plane", "main_plane", "moments_of", "names_of", "plane_image"]

Extent = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Plane:
    """Two directions from an origin, with what a picture needs to know about them.

    Attributes
    ----------
    origin : array of shape (d,)
        The point u = v = 0.
    directions : array of shape (2, d)
        One step along each axis, in the units of the data.
    duals : array of shape (2, d)
        Rows whose products with c - origin are its coordinates u and v.
    middle, reach : array of shape (2,)
        Where the rows lie in the plane: coordinates of their mean, and three standard
        deviations; where these are zero, three bandwidths.
    labels : pair of str
        Of the axes.
    """

    origin: FloatArray
    directions: FloatArray
    duals: FloatArray
    middle: FloatArray
    reach: FloatArray
    labels: tuple[str, str]

    def coordinates(self, C: FloatArray) -> FloatArray:
        """Where points (L, d) fall in the plane when projected to it: shape (L, 2)."""
        return np.asarray((C - self.origin) @ self.duals.T)

    def box_around(self, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Corners of a box that shows the rows and all the points C, with a margin."""
        uv = self.coordinates(C)
        low = np.minimum(self.middle - self.reach, uv.min(axis=0, initial=np.inf))
        high = np.maximum(self.middle + self.reach, uv.max(axis=0, initial=-np.inf))
        margin = 0.04 * (high - low)
        shown_low = np.where(low < self.middle - self.reach, low - margin, low)
        shown_high = np.where(high > self.middle + self.reach, high + margin, high)
        return shown_low, shown_high


def names_of(sketch: AnySketch) -> Sequence[str]:
    """Names of the columns, or their positions in words."""
    return sketch.spec.columns or [f"column {k}" for k in range(sketch.spec.n_features)]


def moments_of(sketch: AnySketch) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the rows; of a private sketch, those its plan expects."""
    return (sketch.mean, sketch.covariance) if isinstance(sketch, Sketch) else sketch.outline


def column_plane(sketch: AnySketch, columns: Sequence[int | str], caller: str) -> Plane:
    """The plane of two columns through the mean.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    columns : pair of int or str
        By position, or by name where the spec has names.
    caller : str
        Named in the error.

    Returns
    -------
    plane : Plane
        Its coordinates are the two columns' own values.
    """
    chosen = _positions(sketch, columns, caller)
    unit = np.eye(sketch.spec.n_features)[chosen]
    (mean, covariance), names = moments_of(sketch), names_of(sketch)
    origin, middle = mean.copy(), mean[chosen]
    origin[chosen] = 0.0
    reach = 3.0 * np.sqrt(np.diagonal(covariance)[chosen])
    around = 3.0 * _bandwidth(sketch) * sketch.spec.scale_vector[chosen]
    reach = np.where(reach > 0, reach, around)  # equal rows: show the kernel around them
    return Plane(origin, unit, unit, middle, reach, (names[chosen[0]], names[chosen[1]]))


def main_plane(sketch: AnySketch, moments: tuple[FloatArray, FloatArray] | None = None) -> Plane:
    """The plane through the mean in which the rows vary most.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    moments : pair of arrays or None
        Mean and covariance; None takes the sketch's own.

    Returns
    -------
    plane : Plane
        Spanned by the first two eigenvectors of the sketch's covariance, both normalised as
        the distances of its spec are. Coordinates are in the units of the data where all
        columns have one scale. Beyond 64 columns there are no covariances: the plane is that
        of the two columns of largest variance. O(d^3).
    """
    spec = sketch.spec
    unit = float(spec.scale_vector[0]) if np.ptp(spec.scale_vector) == 0 else 1.0
    mean, covariance = moments_of(sketch) if moments is None else moments
    variances = np.diagonal(covariance) * spec.per_unit**2
    if spec.has_full_covariance:
        values, vectors = np.linalg.eigh(covariance * np.outer(spec.per_unit, spec.per_unit))
        values, axes = np.maximum(values[:-3:-1], 0.0), vectors.T[:-3:-1]
        labels = [f"main axis {i + 1}" for i in range(2)]
    else:
        largest = np.argsort(-variances, kind="stable")[:2]
        values, axes = variances[largest], np.eye(spec.n_features)[largest]
        labels = [names_of(sketch)[i] + ", from the mean" for i in largest]
    # an eigenvector has no sign of its own: let its largest entry be positive
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])
    axes = axes * signs[:, None]
    total = variances.sum()
    shares = values / total if total > 0 else values
    reach = unit * 3.0 * np.where(values > 0, np.sqrt(values), _bandwidth(sketch))
    texts = [f"{text} ({s:.0%} of the variance)" for text, s in zip(labels, shares, strict=True)]
    directions, duals = axes * spec.scale_vector / unit, axes * spec.per_unit * unit
    return Plane(mean, directions, duals, np.zeros(2), reach, (texts[0], texts[1]))


def plane_image(
    sketch: AnySketch, plane: Plane, resolution: int, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, Extent]:
    """The correlation function on a grid of a plane.

    Parameters
    ----------
    sketch : Sketch
        Of at least one row.
    plane : Plane
        Where to look.
    resolution : int
        Pixels each way.
    lower, upper : array of shape (2,)
        Corners, in the coordinates of the plane.

    Returns
    -------
    image : array of shape (resolution, resolution)
        Values at the centers of the pixels; ``image[0]`` is the lowest row.
    extent : tuple of float
        Edges, as ``imshow`` takes them.

    Notes
    -----
    O(resolution^2 m d) time, a row of pixels at a time.
    """
    spec, f = sketch.spec, CorrelationFunction.of(sketch)
    steps = (np.arange(resolution) + 0.5) / resolution
    u, v = (lower[i] + (upper[i] - lower[i]) * steps for i in (0, 1))
    across = plane.origin + u[:, None] * plane.directions[0]
    image = np.empty((resolution, resolution))
    for row in range(resolution):
        points = across + v[row] * plane.directions[1]
        image[row] = f((points - spec.center_vector) * spec.per_unit)
    return image, (float(lower[0]), float(upper[0]), float(lower[1]), float(upper[1]))


def _positions(sketch: AnySketch, columns: Sequence[int | str], caller: str) -> list[int]:
    d, names = sketch.spec.n_features, list(sketch.spec.columns or ())
    found = [names.index(c) if isinstance(c, str) and c in names else c for c in columns]
    is_sound = len(found) == 2 and all(isinstance(c, int) and 0 <= c < d for c in found)
    if not is_sound or found[0] == found[1]:
        must = f"two different columns, positions from 0 to {d - 1}"
        must += f" or names among {', '.join(map(repr, names[:8]))}" if names else ""
        raise parameter_error(caller, "columns", must, columns)
    return [int(c) for c in found]


def _bandwidth(sketch: AnySketch) -> float:
    bandwidth = sketch.spec.bandwidth
    return bandwidth[1] if isinstance(bandwidth, tuple) else bandwidth
