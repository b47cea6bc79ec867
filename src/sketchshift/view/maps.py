"""Maps of clusters: where the rows of each lie, over a plane or on a line.

Takes a sketch and what a decoder made of it; hands axes of matplotlib. The data is not needed.
Where the sketch has cells, a map is the density of the rows of the cells, with their exact means
and variances; else that of the clusters as Gaussians. Where there are neither, as with the paper's
decoders, it is the correlation function of two columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from sketchshift._colours import colour_of, mark_of
from sketchshift._text import counted, rows_in_words
from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import check_integer
from sketchshift.decoders import Decoding
from sketchshift.metrics import assign
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.view.looks import (
    INK,
    MAPPED,
    SHAPES,
    best_columns,
    check_decoding,
    known_decoding,
    legend_of_clusters,
    names_in_words,
    wrap_name,
)
from sketchshift.view.plane import (
    Plane,
    column_plane,
    correlation_image,
    count_in_units,
    label_axes,
    main_plane,
    new_axes,
    range_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["keep_apart", "mark_centroids", "mark_spreads", "plot_centroids", "spread"]

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


def mark_centroids(ax: Axes, places: FloatArray, weights: FloatArray) -> None:
    """Mark centroids on given axes, with numbers where there is room for them.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    places : array of shape (k, 2)
        Heaviest first, in the coordinates of the axes.
    weights : array of shape (k,)
        The area of a mark is proportional to its weight.
    """
    from matplotlib.patheffects import withStroke

    if not len(weights):
        return
    areas = np.maximum(LARGEST * weights / weights.max(), SMALLEST)
    x, y = places.T
    for mark, i in _by_mark(len(weights)).items():
        ax.scatter(
            x[i], y[i], s=areas[i], c=[colour_of(j) for j in i], marker=SHAPES[mark],
            edgecolors="white", linewidths=1.5, zorder=3,
        )  # fmt: skip
    halo = [withStroke(linewidth=2.5, foreground="white")]
    notes = [
        ax.annotate(
            str(i),
            (float(x[i]), float(y[i])),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            path_effects=halo,
            zorder=4,
            annotation_clip=True,
            in_layout=False,
        )
        for i in range(min(len(places), NUMBERED))
    ]
    keep_apart(ax, notes, np.sqrt(areas[: len(notes)]) / 2)


def _by_mark(k: int) -> dict[str, list[int]]:
    """Clusters with the same mark."""
    found: dict[str, list[int]] = {}
    for i in range(k):
        found.setdefault(mark_of(i), []).append(i)
    return found


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
    edge = [withStroke(linewidth=2.6, foreground="white", alpha=0.8)]
    colours = [colour_of(i) for i in range(len(places))]
    lines = LineCollection(
        list(outlines), colors=colours, linewidths=1.3, path_effects=edge, zorder=2
    )
    ax.add_collection(lines, autolim=False)


# The picture of one plane.

OUTLINED = 40
"""Clusters up to which ellipses are drawn: more of them hide the map."""


def plot_centroids(
    sketch: AnySketch,
    decoding: Decoding,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw a map of the clusters: where the rows of each lie.

    Every cluster has its colour, darker where its rows are denser. Nothing is drawn at values that
    no row of the plan reached.

    Parameters
    ----------
    sketch : Sketch
        Of any number of columns; of one column, the map is a curve for each cluster.
    decoding : Decoding
        What a decoder made of it.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns : pair of int or str, or None
        The axes of the map. None takes the two columns over which the clusters lie apart most; of
        more than 30 columns, the two main axes of all rows.
    resolution : int
        Pixels each way.

    Returns
    -------
    ax : matplotlib Axes
        With marks of an area proportional to the weight, numbered as the rows of
        ``decoding.centroids``, an ellipse of one standard deviation around each where the
        decoding has covariances, and a legend that says what each cluster is.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.view import plot_centroids
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
        _draw_map(sketch, decoding, ax, _plane(sketch, decoding, columns), n)
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    legend_of_clusters(ax, names_in_words(sketch, decoding), decoding.weights, **place)
    ax.set_title(f"{counted(len(decoding.weights), 'cluster')} of {rows_in_words(sketch)}")
    return ax


def _plane(sketch: AnySketch, decoding: Decoding, columns: Sequence[int | str] | None) -> Plane:
    d = sketch.spec.n_features
    decoding = known_decoding(sketch, decoding)
    if columns is None and d > MAPPED:
        return main_plane(sketch, decoding)
    if columns is None:
        columns = (0, 1) if d == 2 else best_columns(decoding)[1]
    return column_plane(sketch, columns, "plot_centroids", decoding)


# What a map shows: the rows of cells, each with its cluster, or the clusters as Gaussians.


@dataclass(frozen=True, eq=False)
class _Rows:
    """Gaussians in a plane, or on a line, that stand for the rows.

    Attributes
    ----------
    places : array of shape (J, p)
        Their middles; p is 2, or 1 for a line.
    covariances : array of shape (J, p, p)
        Theirs.
    weights : array of shape (J,)
        Rows of each.
    owners : int array of shape (J,)
        Which cluster each belongs to.
    """

    places: FloatArray
    covariances: FloatArray
    weights: FloatArray
    owners: IntArray

    @classmethod
    def of(cls, sketch: AnySketch, decoding: Decoding, plane: Plane | None) -> _Rows | None:
        """Those of cells where there are any, or of clusters; None where neither has a width."""
        spec = sketch.spec
        origin = np.zeros(spec.n_features) if plane is None else plane.origin
        duals = np.eye(1) if plane is None else plane.duals
        if not len(decoding.weights):
            return None
        if isinstance(sketch, Sketch) and sketch.cells is not None and sketch.count:
            sums = sketch.cells + sketch.outer
            sums = sums[sums.weights > 0.0]
            normalised = (decoding.centroids - spec.rows.center_vector) * spec.rows.per_unit
            owners = assign(sums.means, normalised)
            means = spec.rows.center_vector + spec.rows.scale_vector * sums.means
            along, variances = duals * spec.rows.scale_vector, sums.variances
            if spec.axes is not None and sums.along is not None:
                along, variances = along @ spec.axes.table.astype(np.float64).T, sums.along
            places, variances = (means - origin) @ duals.T, variances @ np.square(along).T
            rows = cls(places, _diagonals(variances), sums.weights, owners)
            return rows if plane is None else rows._lean(_correlation(sketch, plane, rows))
        if decoding.covariances is None:
            return None
        places = (decoding.centroids - origin) @ duals.T
        covariances = duals @ decoding.covariances @ duals.T
        return cls(places, covariances, decoding.weights, np.arange(len(places)))

    def _lean(self, correlation: float) -> _Rows:
        """Cells that are as wide, and slanted: each a row of narrower ones along a diagonal.

        With t a standard normal number of a few values and r the correlation, the places are
        sqrt(|r|) t deviations along both axes, and the variances 1 - |r| of what they were. Mean
        and covariance are those of the slanted cells, and the axes stay independent.
        """
        if abs(correlation) < UPRIGHT:
            return self
        share = abs(correlation)
        steps = np.linspace(-2.8, 2.8, SLANTED)
        parts = np.exp(-0.5 * np.square(steps))
        steps /= math.sqrt(float(np.square(steps) @ parts / parts.sum()))
        ways = np.array([1.0, math.copysign(1.0, correlation)]) * math.sqrt(share)
        offsets = self.deviations[:, None, :] * (steps[:, None] * ways)
        return _Rows(
            (self.places[:, None, :] + offsets).reshape(-1, 2),
            np.repeat((1.0 - share) * self.covariances, SLANTED, axis=0),
            np.outer(self.weights, parts / parts.sum()).ravel(),
            np.repeat(self.owners, SLANTED),
        )

    @property
    def deviations(self) -> FloatArray:
        """Along each axis, shape (J, p)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariances, axis1=1, axis2=2), 0.0))

    def box(self, centroids: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Corners around nearly all rows and all centroids (k, p); the farthest rows are left out.

        Of few places with large weights, all rows are shown.
        """
        reach = 2.5 * self.deviations
        low, high = (
            np.array([_quantile(side[:, a], self.weights, share) for a in range(side.shape[1])])
            for side, share in ((self.places - reach, OUT), (self.places + reach, 1.0 - OUT))
        )
        margin = 0.03 * (high - low)
        low = np.minimum(low, centroids.min(axis=0)) - margin
        return low, np.maximum(high, centroids.max(axis=0)) + margin

    def densities(self, k: int, axes: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """Of each cluster on a grid, up to a factor: shape (n,) or (ny, nx)."""
        smooth = np.square([SMOOTH * (axis[-1] - axis[0]) for axis in axes])
        covariances = self.covariances + np.diag(smooth)
        for i in range(k):
            own = self.owners == i
            yield _density(self.places[own], covariances[own], self.weights[own], axes)


UPRIGHT, STEEPEST, SLANTED = 0.2, 0.9, 15
"""Correlations within cells that are not drawn, the largest drawn, and parts of a slanted cell."""


def _correlation(sketch: AnySketch, plane: Plane, rows: _Rows) -> float:
    """Of the two axes within cells: what cells leave of the covariance of all rows."""
    if not sketch.spec.has_full_covariance or sketch.moments is None:
        return 0.0
    whole = plane.duals @ sketch.moments[1] @ plane.duals.T
    shares = rows.weights / rows.weights.sum()
    rests = rows.places - shares @ rows.places
    within = whole - (rests.T * shares) @ rests
    size = math.sqrt(max(within[0, 0], 0.0) * max(within[1, 1], 0.0))
    return float(np.clip(within[0, 1] / size, -STEEPEST, STEEPEST)) if size > 0.0 else 0.0


def _diagonals(variances: FloatArray) -> FloatArray:
    """Diagonal matrices (J, p, p) of variances (J, p)."""
    return np.asarray(variances[:, :, None] * np.eye(variances.shape[1]))


OUT = 0.005
"""Share of the rows that may lie beyond either end of an axis: one far row hides no other."""

SMOOTH = 0.012
"""Standard deviation that maps are smoothed by, as a share of an axis."""


def _quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(passed, share)), len(values) - 1)])


def _density(
    places: FloatArray, covariances: FloatArray, weights: FloatArray, axes: Sequence[FloatArray]
) -> FloatArray:
    """Of weighted Gaussians on a grid: a product of matrices where axes do not depend."""
    if len(axes) == 1 or not covariances[:, 0, 1].any():
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        bells = [
            np.exp(-0.5 * np.square(axis[:, None] - places[:, a]) / variances[:, a])
            / np.sqrt(variances[:, a])
            for a, axis in enumerate(axes)
        ]
        return bells[0] @ weights if len(axes) == 1 else (bells[1] * weights) @ bells[0].T
    u, v = np.meshgrid(*axes)
    points, total = np.stack([u, v], axis=-1), np.zeros(u.shape)
    for place, covariance, weight in zip(places, covariances, weights, strict=True):
        rests = points - place
        squares = np.einsum("yxi,ij,yxj->yx", rests, np.linalg.inv(covariance), rests)
        total += weight * np.exp(-0.5 * squares) / math.sqrt(float(np.linalg.det(covariance)))
    return total


def _draw_map(sketch: AnySketch, decoding: Decoding, ax: Axes, plane: Plane, n: int) -> None:
    rows = _Rows.of(sketch, decoding, plane)
    if rows is None:
        _draw_correlation(sketch, decoding, ax, plane, n)
    else:
        low, high = plane.keep_possible(*rows.box(plane.coordinates(decoding.centroids)))
        steps = (np.arange(n) + 0.5) / n
        axes = [low[a] + (high[a] - low[a]) * steps for a in (0, 1)]
        image = _paint(rows.densities(len(decoding.weights), axes), n)
        extent = (low[0], high[0], low[1], high[1])
        ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="bilinear")
    _mark(decoding, ax, plane)
    label_axes(ax, plane)


def _paint(densities: Iterator[FloatArray], n: int) -> FloatArray:
    """Pixels (n, n, 4): colours of the clusters, each opaque where it is densest."""
    from matplotlib.colors import to_rgb

    colours, weights, opacity = np.zeros((n, n, 3)), np.zeros((n, n)), np.zeros((n, n))
    for i, density in enumerate(densities):
        peak = float(density.max(initial=0.0))
        if peak > 0.0:
            own = np.sqrt(density / peak)
            own = np.maximum(own - FAINT, 0.0) / (1.0 - FAINT)
            colours += np.square(own)[..., None] * to_rgb(colour_of(i))
            weights += np.square(own)
            opacity = np.maximum(opacity, OPACITY * own)
    colours /= np.where(weights > 0.0, weights, 1.0)[..., None]
    return np.dstack([colours, opacity])


FAINT, OPACITY = 0.06, 0.75
"""Roots of densities, as shares of a cluster's largest, that are not drawn; and the darkest ink."""


def _draw_correlation(
    sketch: AnySketch, decoding: Decoding, ax: Axes, plane: Plane, n: int
) -> None:
    """The correlation function in grey: where there are neither cells nor widths of clusters."""
    (x0, y0), (x1, y1) = plane.box_around(decoding.centroids)
    ax.set(xlim=(x0, x1), ylim=(y0, y1))
    if sketch.spec.n_features == 2 and sketch.spec.sketch_size:  # of more, a cut misses clusters
        image, extent = correlation_image(sketch, resolution=n, lower=(x0, y0), upper=(x1, y1))
        top = 1.6 * float(image.max())
        ax.imshow(
            image, extent=extent, origin="lower", aspect="auto", cmap="Greys", vmin=0, vmax=top
        )


def _mark(decoding: Decoding, ax: Axes, plane: Plane) -> None:
    places = plane.coordinates(decoding.centroids)
    if decoding.covariances is not None and len(places) <= OUTLINED:
        mark_spreads(ax, places, plane.duals @ decoding.covariances @ plane.duals.T)
    mark_centroids(ax, places, decoding.weights)


def _draw_curve(sketch: AnySketch, decoding: Decoding, ax: Axes, n: int) -> None:
    """One column: the density of each cluster, with its centroid."""
    rows, C, tops = _Rows.of(sketch, decoding, None), decoding.centroids, decoding.weights
    if rows is not None:
        (low,), (high,) = rows.box(C)
        lowest, highest = range_of(sketch)
        x = np.linspace(max(low, lowest[0]), min(high, highest[0]), max(4 * n, 2))
        tops = np.zeros(len(C))
        for i, density in enumerate(rows.densities(len(C), [x])):
            ax.plot(x, density, color=colour_of(i), linewidth=1.2)
            ax.fill_between(x, density, color=colour_of(i), alpha=0.35, linewidth=0)
            tops[i] = np.interp(C[i, 0], x, density)
        ax.set(yticks=[], xlim=(x[0], x[-1]))
    ax.vlines(C[:, 0], 0, tops, color=INK, linestyle=":")
    label = "share of the rows" if rows is None else "density of the rows"
    ax.set(xlabel=wrap_name(sketch.spec.rows.labels[0], 40), ylabel=label)
    count_in_units(ax.xaxis)
    ax.margins(y=0.15)
    ax.set_ylim(bottom=0.0)
    mark_centroids(ax, np.column_stack([C[:, 0], tops]), decoding.weights)
