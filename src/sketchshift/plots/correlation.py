r"""The correlation function of a sketch over the plane of two columns.

Takes a sketch; hands an image, or axes of matplotlib. The data is not needed: with one
bandwidth, f_z is the kernel density of the rows, up to a constant and to the error of m
random features.

Symbols
-------
d, m      dimension of a row, sketch size
c         a point of the plane, in the units of the data
f_z(c)    Re<z, A delta_c>, the correlation of the sketch with that of a Dirac at c
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.errors import MissingDependencyError
from sketchshift.plots.columns import in_units, rows_in_words, wrapped
from sketchshift.plots.plane import Plane, column_plane, plane_image
from sketchshift.sketch import AnySketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = [
    "LABEL",
    "correlation_image",
    "count_in_units",
    "label_axes",
    "new_axes",
    "plot_correlation",
    "require_matplotlib",
]

LABEL = r"correlation $f_z(c) = \mathrm{Re}\,\langle z, \mathcal{A}\,\delta_c\rangle$"


def correlation_image(
    sketch: AnySketch,
    *,
    columns: Sequence[int | str] = (0, 1),
    resolution: int = 200,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    through: RealArray | None = None,
) -> tuple[FloatArray, tuple[float, float, float, float]]:
    r"""The correlation function on a grid of the plane of two columns.

    .. math:: f_z(c) = \mathrm{Re}\,\langle z, \mathcal A \delta_c\rangle
              = \frac{1}{\sqrt m} \sum_j \mathrm{Re}\,
              \bar z_j e^{\mathrm{i}\langle\omega_j, c'\rangle}

    with c' the point c, normalised as the rows were. With more than two columns this is a
    cut, not a marginal: the other coordinates of c are those of the sketch's mean, where there
    may be no rows at all. With points to go ``through``, a pixel is the largest value on the
    cuts through them: those through the centroids show every cluster. A marginal would need
    frequencies without a part along the other columns, and a sketch has none.

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
        standard deviations, from the sketch itself.
    through : array of shape (L, d) or None
        Points in the units of the data, as ``decoding.centroids``; None takes the mean.

    Returns
    -------
    image : array of shape (resolution, resolution)
        Values at the centers of the pixels; ``image[0]`` is the lowest row.
    extent : tuple of float
        Edges (xmin, xmax, ymin, ymax) in the units of the data, as ``imshow`` takes them.

    Notes
    -----
    O(L resolution^2 m) time, a product of matrices in float32.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from sketchshift.plots import correlation_image
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> s = ss.sketch(X, ss.SketchSpec(n_features=2, sketch_size=100, bandwidth=0.5))
    >>> image, extent = correlation_image(s, resolution=50)
    >>> image.shape
    (50, 50)
    """
    plane = column_plane(sketch, columns, "correlation_image")
    n = check_integer("correlation_image", "resolution", resolution, 1, 2**14)
    low, high = _box(plane, lower, upper)
    points = None if through is None else np.atleast_2d(np.asarray(through, dtype=np.float64))
    if points is not None and points.shape[1:] != (sketch.spec.n_features,):
        must = f"points of the sketch's {sketch.spec.n_features} columns"
        raise parameter_error("correlation_image", "through", must, through)
    return plane_image(sketch, plane, n, low, high, points)


def plot_correlation(
    sketch: AnySketch,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] = (0, 1),
    resolution: int = 200,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    through: RealArray | None = None,
) -> Axes:
    """Draw the correlation function of a sketch: bright where the rows lie.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns and one row.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns, resolution, lower, upper, through
        As in :func:`correlation_image`.

    Returns
    -------
    ax : matplotlib Axes
        Labelled with the names of the columns, with a colour bar.
    """
    ax = new_axes(ax)
    image, extent = correlation_image(
        sketch, columns=columns, resolution=resolution, lower=lower, upper=upper, through=through
    )
    shown = ax.imshow(image, origin="lower", extent=extent, aspect="auto", cmap="viridis")
    label_axes(ax, column_plane(sketch, columns, "correlation_image"))
    ax.set_title(f"{rows_in_words(sketch)} in {sketch.spec.sketch_size:,} frequencies")
    ax.figure.colorbar(shown, ax=ax, label=LABEL)
    return ax


def label_axes(ax: Axes, plane: Plane, width: int = 40, ticks: int = 5) -> None:
    """Write what the coordinates of a plane are, on lines of at most so many characters."""
    ax.set(xlabel=wrapped(plane.labels[0], width), ylabel=wrapped(plane.labels[1], width))
    for axis in (ax.xaxis, ax.yaxis):
        count_in_units(axis, ticks)


def count_in_units(axis: Axis, ticks: int = 5) -> None:
    """A few numbers along an axis, each complete: no power of ten or offset in a corner."""
    from matplotlib.ticker import Formatter, MaxNLocator

    class InUnits(Formatter):
        """Numbers as short as they can be told apart."""

        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:.6g}"

        def format_ticks(self, values: Sequence[float]) -> list[str]:
            return in_units(np.asarray(values))

    axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(InUnits())


def new_axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure of pyplot."""
    require_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def require_matplotlib() -> None:
    """Say which extra to install where matplotlib is not there."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as cause:
        msg = 'plots need matplotlib. Run: pip install "sketchshift[plot]"'
        raise MissingDependencyError(msg) from cause


def _box(plane: Plane, lower: Any, upper: Any) -> tuple[FloatArray, FloatArray]:
    low = np.asarray(plane.middle - plane.reach if lower is None else lower, dtype=np.float64)
    high = np.asarray(plane.middle + plane.reach if upper is None else upper, dtype=np.float64)
    if low.shape != (2,) or high.shape != (2,) or not (low < high).all():
        must = "pairs of numbers with lower < upper"
        got = (low.tolist(), high.tolist())
        raise parameter_error("correlation_image", "lower, upper", must, got)
    return low, high
