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
from numpy.typing import NDArray

from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding
from sketchshift.decoders.moments import moments_of, spread_of
from sketchshift.plots.columns import names_of, positions_of
from sketchshift.sketch import AnySketch

__all__ = ["Extent", "Plane", "column_plane", "main_plane", "plane_image"]

Extent = tuple[float, float, float, float]

FREQUENCIES = 4_096
"""Frequencies whose waves are in memory at once."""


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


def column_plane(
    sketch: AnySketch,
    columns: Sequence[int | str],
    caller: str,
    decoding: Decoding | None = None,
) -> Plane:
    """The plane of two columns through the mean.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    columns : pair of int or str
        By position, or by name where the spec has names.
    caller : str
        Named in the error.
    decoding : Decoding or None
        Where the mean of a private sketch is taken from.

    Returns
    -------
    plane : Plane
        Its coordinates are the two columns' own values.
    """
    chosen = positions_of(sketch, columns, caller)
    unit = np.eye(sketch.spec.n_features)[chosen]
    (mean, variance), names = spread_of(sketch, decoding), names_of(sketch)
    origin, middle = mean.copy(), mean[chosen]
    origin[chosen] = 0.0
    reach = 3.0 * np.sqrt(variance[chosen])
    around = 3.0 * _bandwidth(sketch) * sketch.spec.scale_vector[chosen]
    reach = np.where(reach > 0, reach, around)  # equal rows: show the kernel around them
    return Plane(origin, unit, unit, middle, reach, (names[chosen[0]], names[chosen[1]]))


def main_plane(sketch: AnySketch, decoding: Decoding | None = None) -> Plane:
    """The plane through the mean in which the rows vary most.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    decoding : Decoding or None
        Where the moments of a private sketch are taken from.

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
    mean, variances = spread_of(sketch, decoding)
    variances = variances * spec.per_unit**2
    if spec.has_full_covariance:
        covariance = moments_of(sketch, decoding)[1]
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
    sketch: AnySketch,
    plane: Plane,
    resolution: int,
    lower: FloatArray,
    upper: FloatArray,
    through: FloatArray | None = None,
) -> tuple[FloatArray, Extent]:
    r"""The correlation function on a grid of a plane, or the brightest of parallel ones.

    On a plane through p, the phases along u and along v are factors of their own, so that the
    image is a product of matrices:

    .. math:: f_z(p + u a + v b) = \frac{1}{\sqrt m} \mathrm{Re} \sum_j
              e^{\mathrm i v \langle\omega_j, b\rangle}\,
              \bar z_j e^{\mathrm i \langle\omega_j, p\rangle}\,
              e^{\mathrm i u \langle\omega_j, a\rangle}

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
    through : array of shape (L, d) or None
        Points: the plane is moved through each of them, and a pixel is the largest value there
        is at its coordinates. None keeps the plane where it is.

    Returns
    -------
    image : array of shape (resolution, resolution)
        Values at the centers of the pixels; ``image[0]`` is the lowest row.
    extent : tuple of float
        Edges, as ``imshow`` takes them.

    Notes
    -----
    O(L resolution^2 m) multiplications in float32, and L images of memory.
    """
    spec = sketch.spec
    points = plane.origin[None] if through is None or not len(through) else through
    points = points + (plane.middle - plane.coordinates(points)) @ plane.directions
    points = (points - spec.center_vector) * spec.per_unit
    steps = (np.arange(resolution) + 0.5) / resolution
    u, v = (upper - lower)[:, None] * steps + (lower - plane.middle)[:, None]
    omega = 2.0 * np.pi * sketch.frequencies.turns.astype(np.float64)
    weights = np.conj(sketch.z) / np.sqrt(spec.sketch_size)
    images = np.zeros((len(points), resolution, resolution))
    for start in range(0, spec.sketch_size, FREQUENCIES):
        part = slice(start, start + FREQUENCIES)
        along = (plane.directions * spec.per_unit) @ omega[:, part]
        right, up = _waves(np.outer(u, along[0])), _waves(np.outer(v, along[1]))
        parts = np.hstack([right.real, -right.imag])  # of the product, the real part is needed
        factors = weights[part] * _waves(points @ omega[:, part])
        for image, factor in zip(images, factors, strict=True):
            left = up * factor.astype(np.complex64)
            image += np.hstack([left.real, left.imag]) @ parts.T
    extent = (float(lower[0]), float(upper[0]), float(lower[1]), float(upper[1]))
    return images.max(axis=0), extent


def _waves(phases: FloatArray) -> NDArray[np.complex64]:
    waves: NDArray[np.complex64] = np.exp(1j * phases).astype(np.complex64)
    return waves


def _bandwidth(sketch: AnySketch) -> float:
    bandwidth = sketch.spec.bandwidth
    return bandwidth[1] if isinstance(bandwidth, tuple) else bandwidth
