r"""A plane through the data's space, and the correlation function of a sketch on it.

The data is not needed: with one bandwidth, f_z is the kernel density of the rows, up to a
constant and to the error of m random features.

Symbols
-------
d, m      dimension of a point, sketch size
u, v      coordinates in the plane
c         origin + u directions[0] + v directions[1], in the units of the data
f_z(c)    Re<z, A delta_c>, the correlation of the sketch with that of a Dirac at c
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._pictures import require_matplotlib
from sketchshift._text import rows_in_words
from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.problem import spread_of
from sketchshift.errors import DataError
from sketchshift.recipe import log_ticks
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.view.looks import main_axes, positions_of, wrap_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = [
    "LABEL",
    "Extent",
    "Plane",
    "column_plane",
    "correlation_image",
    "count_in_units",
    "label_axes",
    "main_plane",
    "new_axes",
    "plot_correlation",
    "range_of",
]

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
    duals : array of shape (2, d)
        Rows whose products with c - origin are its coordinates u and v.
    middle, reach : array of shape (2,)
        Where the rows lie in the plane: coordinates of their mean, and three standard
        deviations; where these are zero, three bandwidths.
    labels : pair of str
        Of the axes.
    lowest, highest : array of shape (2,) or None
        Coordinates that no row is beyond; None where that is not known.
    ticks : pair
        Of an axis of logarithms, where round numbers of the table lie on it; None of others.
    """

    origin: FloatArray
    duals: FloatArray
    middle: FloatArray
    reach: FloatArray
    labels: tuple[str, str]
    lowest: FloatArray | None = None
    highest: FloatArray | None = None
    ticks: Sequence[list[tuple[float, str]] | None] = (None, None)

    def keep_possible(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A box without what no row is in."""
        if self.lowest is None or self.highest is None:
            return low, high
        first, last = np.maximum(low, self.lowest), np.minimum(high, self.highest)
        is_wide = last > first  # one value of all rows: show what is around it
        return np.where(is_wide, first, low), np.where(is_wide, last, high)

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
    lowest, highest = (ends[chosen] for ends in range_of(sketch))
    unit = np.eye(sketch.spec.n_features)[chosen]
    (mean, variance), names = spread_of(sketch, decoding), sketch.spec.rows.labels
    origin, middle = mean.copy(), mean[chosen]
    origin[chosen] = 0.0
    reach = 3.0 * np.sqrt(variance[chosen])
    around = 3.0 * _bandwidth(sketch) * sketch.spec.rows.scale_vector[chosen]
    reach = np.where(reach > 0, reach, around)  # equal rows: show the kernel around them
    labels = (names[chosen[0]], names[chosen[1]])
    low, high = mean.copy(), mean.copy()
    low[chosen] = np.maximum(lowest, middle - 2 * reach)
    high[chosen] = np.minimum(highest, middle + 2 * reach)
    told = log_ticks(sketch.spec.rows.recipe, low, high)
    ticks = (told[chosen[0]], told[chosen[1]])
    return Plane(origin, unit, middle, reach, labels, lowest, highest, ticks)


def range_of(sketch: AnySketch) -> tuple[FloatArray, FloatArray]:
    """Least and largest values of the columns, shapes (d,): infinite if they are not known.

    The plan has those of its rows. If the mean of a cell lies beyond them, later rows do, and the
    range ends three standard deviations beyond the outermost cells.
    """
    spec, d = sketch.spec, sketch.spec.n_features
    if spec.cells is None or not spec.cells.lower:
        return np.full(d, -np.inf), np.full(d, np.inf)
    lower, upper = np.array(spec.cells.lower), np.array(spec.cells.upper)
    sums = sketch.cells if isinstance(sketch, Sketch) else None
    if sums is None or not sums.weights.any():
        return lower, upper
    sums = sums[sums.weights > 0.0]
    means, off = (spec.rows.scale_vector * part for part in (sums.means, sums.steps.max()))
    means, reach = (
        means + spec.rows.center_vector,
        3 * spec.rows.scale_vector * np.sqrt(sums.variances),
    )
    lower = np.where(means.min(axis=0) < lower - off, (means - reach).min(axis=0), lower)
    upper = np.where(means.max(axis=0) > upper + off, (means + reach).max(axis=0), upper)
    return lower, upper


def main_plane(sketch: AnySketch, decoding: Decoding) -> Plane:
    """The plane through the mean along which the clusters lie farthest apart.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    decoding : Decoding
        What a decoder made of it.

    Returns
    -------
    plane : Plane
        Its coordinates are in standard deviations of the columns. O(k^2 d).
    """
    mean, variance = spread_of(sketch, decoding)
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    names, axes = main_axes(decoding, unit)
    return Plane(mean, axes / unit, np.zeros(2), np.full(2, 3.0), names)


def _cut(sketch: AnySketch, chosen: Sequence[int], axes: Sequence[FloatArray]) -> FloatArray:
    r"""The correlation function where two columns have these values, the others their means.

    The phases of the two columns are factors of their own, so that the image is a product of
    matrices:

    .. math:: f_z(p + u a + v b) = \frac{1}{\sqrt m} \mathrm{Re} \sum_j
              e^{\mathrm i v \langle\omega_j, b\rangle}\,
              \bar z_j e^{\mathrm i \langle\omega_j, p\rangle}\,
              e^{\mathrm i u \langle\omega_j, a\rangle}
    """
    spec = sketch.spec
    if not spec.sketch_size:
        msg = "where rows lie is drawn from waves, and this sketch has none. Plan anew."
        raise DataError(msg)
    mean = (spread_of(sketch)[0] - spec.rows.center_vector) * spec.rows.per_unit
    mean[chosen] = 0.0
    center, per_unit = spec.rows.center_vector[chosen], spec.rows.per_unit[chosen]
    u, v = ((axis - center[i]) * per_unit[i] for i, axis in enumerate(axes))
    omega = 2.0 * np.pi * sketch.turns
    weights = np.conj(sketch.z) / np.sqrt(spec.sketch_size)
    image = np.zeros((len(v), len(u)))
    for start in range(0, spec.sketch_size, FREQUENCIES):
        part = slice(start, start + FREQUENCIES)
        right, up = (
            _waves(np.outer(x, omega[c, part])) for x, c in zip((u, v), chosen, strict=True)
        )
        left = up * (weights[part] * _waves(mean @ omega[:, part])).astype(np.complex64)
        # of the product, the real part is needed
        image += np.hstack([left.real, left.imag]) @ np.hstack([right.real, -right.imag]).T
    return image


def _waves(phases: FloatArray) -> NDArray[np.complex64]:
    waves: NDArray[np.complex64] = np.exp(1j * phases).astype(np.complex64)
    return waves


def _bandwidth(sketch: AnySketch) -> float:
    return sketch.spec.bandwidths[1]


# The plane of two columns, as an image and as a picture.

LABEL = r"correlation $f_z(c) = \mathrm{Re}\,\langle z, \mathcal{A}\,\delta_c\rangle$"


def correlation_image(
    sketch: AnySketch,
    *,
    columns: Sequence[int | str] = (0, 1),
    resolution: int = 200,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
) -> tuple[FloatArray, tuple[float, float, float, float]]:
    r"""The correlation function on a grid of the plane of two columns.

    .. math:: f_z(c) = \mathrm{Re}\,\langle z, \mathcal A \delta_c\rangle
              = \frac{1}{\sqrt m} \sum_j \mathrm{Re}\,
              \bar z_j e^{\mathrm{i}\langle\omega_j, c'\rangle}

    with c' the point c, normalised as the rows were. With more than two columns this is a
    cut, not a marginal: the other coordinates of c are those of the sketch's mean, where there
    may be no rows at all. A marginal would need frequencies without a part along the other
    columns, and a sketch has none.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    columns : pair of int or str
        Horizontal and vertical column, by position, or by name where the spec has names.
    resolution : int
        Pixels each way.
    lower, upper : pair of float or None
        Corners of the box in the units of the data; None takes the mean minus or plus three
        standard deviations, from the sketch itself, and nothing that no row of the plan reached.

    Returns
    -------
    image : array of shape (resolution, resolution)
        Values at the centers of the pixels; ``image[0]`` is the lowest row.
    extent : tuple of float
        Edges (xmin, xmax, ymin, ymax) in the units of the data, as ``imshow`` takes them.

    Notes
    -----
    O(resolution^2 m) time, a product of matrices in float32.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from sketchshift.view import correlation_image
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> s = ss.sketch(X, ss.SketchSpec(n_features=2, sketch_size=100, bandwidth=0.5))
    >>> image, extent = correlation_image(s, resolution=50)
    >>> image.shape
    (50, 50)
    """
    plane = column_plane(sketch, columns, "correlation_image")
    n = check_integer("correlation_image", "resolution", resolution, 1, 2**14)
    low, high = _box(plane, lower, upper)
    steps = (np.arange(n) + 0.5) / n
    axes = [low[a] + (high[a] - low[a]) * steps for a in (0, 1)]
    chosen = positions_of(sketch, columns, "correlation_image")
    extent = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    return _cut(sketch, chosen, axes), extent


def plot_correlation(
    sketch: AnySketch,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] = (0, 1),
    resolution: int = 200,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
) -> Axes:
    """Draw the correlation function of a sketch: bright where the rows lie.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns, resolution, lower, upper
        As in :func:`correlation_image`.

    Returns
    -------
    ax : matplotlib Axes
        Labelled with the names of the columns, with a colour bar.
    """
    ax = new_axes(ax)
    image, extent = correlation_image(
        sketch, columns=columns, resolution=resolution, lower=lower, upper=upper
    )
    shown = ax.imshow(image, origin="lower", extent=extent, aspect="auto", cmap="viridis")
    label_axes(ax, column_plane(sketch, columns, "correlation_image"))
    ax.set_title(f"{rows_in_words(sketch)} in {sketch.spec.sketch_size:,} frequencies")
    ax.figure.colorbar(shown, ax=ax, label=LABEL)
    return ax


def _box(plane: Plane, lower: Any, upper: Any) -> tuple[FloatArray, FloatArray]:
    first, last = plane.keep_possible(plane.middle - plane.reach, plane.middle + plane.reach)
    low = np.asarray(first if lower is None else lower, dtype=np.float64)
    high = np.asarray(last if upper is None else upper, dtype=np.float64)
    if low.shape != (2,) or high.shape != (2,) or not (low < high).all():
        must = "pairs of numbers with lower < upper"
        got = (low.tolist(), high.tolist())
        raise parameter_error("correlation_image", "lower, upper", must, got)
    return low, high


# Axes of matplotlib, and what is written along them.


def label_axes(ax: Axes, plane: Plane) -> None:
    """Write what the coordinates of a plane are."""
    ax.set(xlabel=wrap_name(plane.labels[0], 40), ylabel=wrap_name(plane.labels[1], 40))
    for axis, known in zip((ax.xaxis, ax.yaxis), plane.ticks, strict=True):
        if known is None:
            count_in_units(axis)
        else:
            shown = known[:: -(-len(known) // 10)]
            axis.set_ticks([at for at, _ in shown], [text for _, text in shown])


def count_in_units(axis: Axis) -> None:
    """Write a few numbers along an axis, without an offset."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(ScalarFormatter(useOffset=False))


def new_axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure of pyplot."""
    require_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]
