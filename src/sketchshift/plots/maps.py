"""Centroids on the correlation function: over a plane, over pairs of columns, on a line.

Takes a sketch and what a decoder made of it; hands axes of matplotlib. The data is not
needed. In more than two columns a picture of one plane through the mean may miss all rows, so
the plane is moved through every centroid, and a pixel is the largest value found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from sketchshift._text import column_names, counted, rows_in_words
from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.objective import CorrelationFunction
from sketchshift.decoders.problem import spread_of
from sketchshift.plots.looks import (
    check_decoding,
    positions_of,
    separation,
    wrap_name,
)
from sketchshift.plots.plane import (
    LABEL,
    Extent,
    Plane,
    column_plane,
    count_in_units,
    label_axes,
    main_plane,
    new_axes,
    plane_image,
    require_matplotlib,
)
from sketchshift.sketch import AnySketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from numpy.typing import NDArray

__all__ = ["keep_apart", "mark_centroids", "mark_spreads", "plot_centroids", "plot_pairs", "spread"]

# Where numbers go so that none lies on another.
#
# :func:`spread` moves labels along a line apart. :func:`keep_apart` finds places around marks,
# and looks again whenever the figure is drawn: only then sizes and layout are known.

DIRECTIONS = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
SIDES = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}


def spread(places: FloatArray, gap: float, low: float, high: float) -> FloatArray:
    r"""Places at least a gap apart, in the same order, as near to the given ones as can be.

    With the i-th smallest place minus i gaps, the condition is that the values do not decrease:
    an isotonic regression.

    Parameters
    ----------
    places : array of shape (n,)
        In any order.
    gap : float
        At least this far from one to the next; less where n of them have no room.
    low, high : float
        Ends of the room.

    Returns
    -------
    places : array of shape (n,)
        From low to high.

    Examples
    --------
    >>> spread(np.array([0.0, 5.0, 5.0]), 1.0, 0.0, 9.0)
    array([0. , 4.5, 5.5])
    """
    n = len(places)
    if n == 0:
        return places
    gap = min(gap, (high - low) / max(n - 1, 1))
    order, gaps = np.argsort(places, kind="stable"), gap * np.arange(n)
    nearest = isotonic_regression(places[order] - gaps).x
    result = np.empty(n)
    result[order] = np.clip(nearest, low, high - gaps[-1]) + gaps
    return result


def keep_apart(ax: Axes, notes: Sequence[Annotation], radii: FloatArray) -> None:
    """Let numbers find free places around their marks, the first ones first.

    Parameters
    ----------
    ax : matplotlib Axes
        Where they are.
    notes : sequence of Annotation
        With offsets in points. One that finds no free place inside the axes is not drawn.
    radii : array of shape (n,)
        Of the marks, in points; numbers keep off other marks where they can.
    """
    from matplotlib.artist import Artist

    class Placement(Artist):
        """Draws nothing: comes before the numbers and moves them."""

        def draw(self, renderer: Any) -> None:
            _place(ax, notes, radii, renderer)

    placement = Placement()
    placement.set_in_layout(False)
    placement.set_zorder(min((note.get_zorder() for note in notes), default=0.0) - 0.5)
    ax.add_artist(placement)


def _place(ax: Axes, notes: Sequence[Annotation], radii: FloatArray, renderer: Any) -> None:
    from matplotlib.transforms import Bbox

    frame, point = ax.get_window_extent(renderer), renderer.points_to_pixels(1.0)
    middles = ax.transData.transform([note.xy for note in notes])
    marks = [Bbox([c - r * point, c + r * point]) for c, r in zip(middles, radii, strict=True)]
    occupied: list[Any] = []
    for i, note in enumerate(notes):
        note.set_visible(True)
        size = note.get_window_extent(renderer).size
        others = marks[:i] + marks[i + 1 :]
        free = []
        for way in DIRECTIONS:
            offset = np.array(way) * (radii[i] + 1.5) * (0.75 if all(way) else 1.0)
            corner = middles[i] + offset * point + (np.array(way) - 1) / 2 * size
            box = Bbox([corner, corner + size])
            if _is_inside(box, frame) and not box.count_overlaps(occupied):
                free.append((box.count_overlaps(others), box, way, offset))
        note.set_visible(bool(free))
        if free:
            _, box, way, offset = min(free, key=lambda place: place[0])
            note.set_position(tuple(offset))
            note.set(ha=SIDES[way[0]][0], va=SIDES[way[1]][1])
            occupied.append(box)


def _is_inside(box: Any, frame: Any) -> bool:
    return bool(
        frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    )


# Centroids as marks on a picture: area by weight, legible in greyscale, numbered.

LARGEST, SMALLEST = 260.0, 16.0
"""Areas of marks, in points squared; the smallest can still be seen."""

NUMBERED = 40
"""Marks with numbers, the heaviest ones: more would hide the picture."""


def mark_centroids(ax: Axes, places: FloatArray, weights: FloatArray, *, size: float = 1.0) -> None:
    """Mark centroids on given axes, with numbers where there is room for them.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    places : array of shape (k, 2)
        Heaviest first, in the coordinates of the axes.
    weights : array of shape (k,)
        The area of a mark is proportional to its weight.
    size : float
        Of marks and numbers; 1 for axes as large as a page is wide.
    """
    from matplotlib.patheffects import withStroke

    if not len(weights):
        return
    areas = size**2 * np.maximum(LARGEST * weights / weights.max(), SMALLEST)
    x, y = places.T
    ax.scatter(x, y, s=areas, c="#d62728", edgecolors="white", linewidths=1.5 * size, zorder=3)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    notes = [
        ax.annotate(
            str(i),
            (float(x[i]), float(y[i])),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=max(9 * size, 6),
            fontweight="bold",
            path_effects=halo,
            zorder=4,
            annotation_clip=True,
            in_layout=False,
        )
        for i in range(min(len(places), NUMBERED))
    ]
    keep_apart(ax, notes, np.sqrt(areas[: len(notes)]) / 2)


def mark_spreads(ax: Axes, places: FloatArray, covariances: FloatArray) -> None:
    """Draw an ellipse around each place: where a Gaussian has fallen to 1/sqrt(e).

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    places : array of shape (k, 2)
        Middles.
    covariances : array of shape (k, 2, 2)
        In the coordinates of the axes; zeros draw nothing.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patheffects import withStroke

    angles = np.linspace(0.0, 2.0 * np.pi, 73)
    circle = np.array([np.cos(angles), np.sin(angles)])
    values, vectors = np.linalg.eigh(covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    outlines = places[:, None, :] + np.swapaxes(roots @ circle, 1, 2)
    edge = [withStroke(linewidth=2.2, foreground="black")]
    lines = LineCollection(
        list(outlines), colors="white", linewidths=1.0, path_effects=edge, zorder=2
    )
    ax.add_collection(lines, autolim=False)


# The pictures: one plane, or the planes of all pairs of a few columns.

SECTIONS = 64
"""Centroids that the plane is moved through, the heaviest ones."""

PAIRED = 5
"""Columns of a matrix of pairs where none are named."""


def plot_centroids(
    sketch: AnySketch,
    decoding: Decoding,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw the correlation function of a sketch with the centroids on it.

    Parameters
    ----------
    sketch : Sketch
        Of any number of columns; of one column, the function is a curve.
    decoding : Decoding
        What a decoder made of it.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns : pair of int or str, or None
        The plane to show. None takes the two columns there are, or, of more, the plane of the
        two main axes. Of more than two columns, a pixel is the largest value on the planes
        through the centroids, at most the 64 heaviest, and centroids are projected.
    resolution : int
        Pixels each way.

    Returns
    -------
    ax : matplotlib Axes
        With marks of an area proportional to the weight, numbered as the rows of
        ``decoding.centroids``, and an ellipse of one standard deviation around each where the
        decoding has covariances.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.plots import plot_centroids
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0]], 50, axis=0)
    >>> s = ss.sketch(X, ss.SketchSpec(n_features=2, sketch_size=50, bandwidth=1.0))
    >>> decoding = ss.SketchAndShift(n_initializations=10)(s, 2)
    >>> plot_centroids(s, decoding, Figure().subplots()).get_xlabel()
    'column 0'
    """
    d = sketch.spec.n_features
    n = check_integer("plot_centroids", "resolution", resolution, 1, 2**14)
    check_decoding(sketch, decoding, "plot_centroids")
    ax = new_axes(ax)
    if d == 1 and columns is None:
        _draw_curve(sketch, decoding, ax, n)
    else:
        plane = _plane(sketch, decoding, columns)
        image, extent = _image(sketch, decoding, plane, n)
        shown = ax.imshow(image, extent=extent, **_scale(sketch, decoding, [image]))
        _mark(decoding, ax, plane)
        label_axes(ax, plane)
        ax.figure.colorbar(shown, ax=ax, label=_label(sketch))
    ax.set_title(f"{counted(len(decoding.weights), 'centroid')} on {rows_in_words(sketch)}")
    return ax


def plot_pairs(
    sketch: AnySketch,
    decoding: Decoding,
    figure: Figure | None = None,
    *,
    columns: Sequence[int | str] | None = None,
    resolution: int = 80,
) -> NDArray[Any]:
    """Draw :func:`plot_centroids` for every pair of a few columns, with one scale of colours.

    Parameters
    ----------
    sketch : Sketch
        Of at least two columns.
    decoding : Decoding
        What a decoder made of it.
    figure : matplotlib Figure, SubFigure or None
        Where to draw; None makes a new figure of pyplot.
    columns : sequence of int or str, or None
        Two to eight columns. None takes the five that tell the clusters apart best: those with
        the largest share of their variance between the clusters.
    resolution : int
        Pixels each way, of each panel.

    Returns
    -------
    axes : array of Axes of shape (p - 1, p - 1)
        Of p columns; ``axes[i, j]`` has column j across and column i + 1 upwards. Those above
        the diagonal are empty.
    """
    d, n = sketch.spec.n_features, check_integer("plot_pairs", "resolution", resolution, 1, 2**12)
    check_decoding(sketch, decoding, "plot_pairs")
    if d < 2:
        raise parameter_error("plot_pairs", "sketch", "a Sketch of at least two columns", sketch)
    if columns is None:
        best = np.argsort(-separation(sketch, decoding), kind="stable")[:PAIRED]
        columns = sorted(best.tolist())
    chosen = positions_of(sketch, columns, "plot_pairs", (2, min(d, 8)))
    side = len(chosen) - 1
    axes = _grid(figure, side)
    pairs = {(j - 1, i): (chosen[i], chosen[j]) for i, j in combinations(range(side + 1), 2)}
    planes = {at: column_plane(sketch, pair, "plot_pairs", decoding) for at, pair in pairs.items()}
    images = {at: _image(sketch, decoding, plane, n) for at, plane in planes.items()}
    scale = _scale(sketch, decoding, [image for image, _ in images.values()])
    for at, (image, extent) in images.items():
        shown = axes[at].imshow(image, extent=extent, **scale)
        _mark(decoding, axes[at], planes[at], size=0.7)
        label_axes(axes[at], planes[at], width=22, ticks=3)
        axes[at].label_outer()
    for above in np.argwhere(np.triu(np.ones((side, side)), 1)):
        axes[tuple(above)].set_axis_off()
    axes[0, 0].figure.colorbar(shown, ax=axes, label=_label(sketch), shrink=min(1.0, 1.5 / side))
    return axes


def _plane(sketch: AnySketch, decoding: Decoding, columns: Sequence[int | str] | None) -> Plane:
    if columns is None and sketch.spec.n_features > 2:
        return main_plane(sketch, decoding)
    pair = (0, 1) if columns is None else columns
    return column_plane(sketch, pair, "plot_centroids", decoding)


def _grid(figure: Figure | None, side: int) -> NDArray[Any]:
    require_matplotlib()
    if figure is None:
        from matplotlib import pyplot

        size = 2.4 * side + 1.6
        figure = pyplot.figure(figsize=(size + 1.0, size), layout="constrained")
    return np.asarray(figure.subplots(side, side, sharex="col", sharey="row", squeeze=False))


def _image(
    sketch: AnySketch, decoding: Decoding, plane: Plane, n: int
) -> tuple[FloatArray, Extent]:
    lower, upper = plane.box_around(decoding.centroids)
    through = decoding.centroids[:SECTIONS] if sketch.spec.n_features > 2 else None
    return plane_image(sketch, plane, n, lower, upper, through)


def _scale(sketch: AnySketch, decoding: Decoding, images: Sequence[FloatArray]) -> dict[str, Any]:
    """One scale for all: noise is not bright even on planes that pass far from all rows."""
    at_centroids = _values(sketch, decoding.centroids).max(initial=0.0)
    top = max(float(at_centroids), *(float(image.max()) for image in images))
    low = max(0.0, min(float(image.min()) for image in images))
    return {"vmin": low, "vmax": top, "cmap": "viridis", "origin": "lower", "aspect": "auto"}


def _label(sketch: AnySketch) -> str:
    return LABEL if sketch.spec.n_features == 2 else r"largest $f_z(c)$ on planes through centroids"


def _mark(decoding: Decoding, ax: Axes, plane: Plane, size: float = 1.0) -> None:
    places = plane.coordinates(decoding.centroids)
    if decoding.covariances is not None:
        mark_spreads(ax, places, plane.duals @ decoding.covariances @ plane.duals.T)
    mark_centroids(ax, places, decoding.weights, size=size)


def _values(sketch: AnySketch, points: FloatArray) -> FloatArray:
    normalised = (points - sketch.spec.center_vector) * sketch.spec.per_unit
    return CorrelationFunction.of(sketch)(normalised) if len(points) else np.empty(0)


def _draw_curve(sketch: AnySketch, decoding: Decoding, ax: Axes, n: int) -> None:
    means, variances = spread_of(sketch, decoding)
    spread, mean = 3.0 * float(np.sqrt(variances[0])), float(means[0])
    bandwidth = np.max(sketch.spec.bandwidth) * sketch.spec.scale_vector[0]
    reach = spread if spread > 0 else 3.0 * bandwidth
    low = min(mean - reach, decoding.centroids.min(initial=np.inf))
    high = max(mean + reach, decoding.centroids.max(initial=-np.inf))
    x = np.linspace(low, high, max(4 * n, 2))
    y = _values(sketch, x[:, None])
    ax.plot(x, y, color="#2a788e")
    ax.fill_between(x, y, color="#2a788e", alpha=0.25, linewidth=0)
    tops = _values(sketch, decoding.centroids)
    ax.vlines(decoding.centroids[:, 0], 0, tops, color="black", linestyle=":")
    ax.set(xlabel=wrap_name(column_names(sketch.spec)[0], 40), ylabel=LABEL, xlim=(low, high))
    count_in_units(ax.xaxis)
    ax.margins(y=0.15)
    mark_centroids(ax, np.column_stack([decoding.centroids[:, 0], tops]), decoding.weights)
