"""The picture of a figure: curves and maps of the runs, and the correlation function itself.

Takes rows of a figure; writes a PNG file. Legible without colour, each series with its own mark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift import DataError, MissingDependencyError, Sketch, SketchSpec, sketch
from sketchshift.cli import opened_atomically
from sketchshift.decoders import CorrelationFunction
from sketchshift_papers.claims import points_of
from sketchshift_papers.contenders import (
    direction_norms,
    grid_points,
    grid_values,
    paths,
    residual_after_one_atom,
)
from sketchshift_papers.datasets import Data, FloatArray, cube, make_data
from sketchshift_papers.definition import Contender, Figure, Grid
from sketchshift_papers.runner import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw"]

STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ("-", "v"), ("--", "x"), (":", "*"))
SHADES = ("black", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#7f7f7f", "#a6761d")
NAMES = {"mse": "mean MSE", "rse": "mean RSE (k-means is 1)", "sigma": r"bandwidth $\sigma$"}
SYMBOLS = {"m": "sketch size $m$", "L": "starts $L$", "d": "dimension $d$"}
PIXELS = 200
BOX = cube(2)
EXTENT = (-1.0, 1.0, -1.0, 1.0)


def draw(figure: Figure, grid: Grid, rows: Sequence[Row], path: Path) -> None:
    """Write the picture of a figure.

    Parameters
    ----------
    figure : Figure
        Its ``picture`` says what is drawn.
    grid : Grid
        Of the runs.
    rows : sequence of rows
        The runs.
    path : Path
        A .png file.
    """
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as cause:
        msg = 'drawing needs matplotlib. Run: pip install "sketchshift[plot]"'
        raise MissingDependencyError(msg) from cause
    kind = figure.picture["kind"]
    if kind not in PICTURES:
        raise DataError(f"a picture cannot be of kind {kind!r}. There are: {', '.join(PICTURES)}.")
    canvas = Canvas(layout="constrained")
    PICTURES[kind](canvas, figure, grid, rows)
    canvas.suptitle(f"{figure.name}: {figure.title}")
    with opened_atomically(path) as file:
        canvas.savefig(file, format="png", dpi=120)


def _curves(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """One panel a sketch size, one line a contender and L; beside them the data, if asked."""
    sizes, measure = grid.sketch_sizes, figure.picture.get("measure", "rse")
    has_data = bool(figure.picture.get("data"))
    n_panels = len(sizes) + has_data
    canvas.set_size_inches(5.2 * n_panels, 5.0)
    panels = list(np.atleast_1d(canvas.subplots(1, n_panels)))
    for ax, m in zip(panels, sizes, strict=False):
        _curve_panel(ax, figure, rows, m, measure)
        ax.sharey(panels[0])
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    if has_data:
        _scatter(panels[-1], figure, grid)


def _curve_panel(ax: Axes, figure: Figure, rows: Sequence[Row], m: int, measure: str) -> None:
    styles, shades = cycle(STYLES), cycle(SHADES)
    for contender in figure.contenders:
        for L in contender.n_initializations:
            found = points_of(rows, {"decoder": contender.name, "m": m, "L": L}, measure)
            line = sorted((point[3], value) for point, value in found.items())
            (dashes, mark), shade = next(styles), next(shades)
            label = _label(contender, L, len(contender.n_initializations) > 1)
            ax.plot(*zip(*line, strict=True), dashes, marker=mark, ms=5, color=shade, label=label)
    for value in points_of(rows, {"decoder": "lloyd"}, measure).values():
        ax.axhline(value, color="black", lw=0.8, dashes=(1, 2), label="Lloyd, best of 5")
    ax.set(xscale="log", yscale="log", title=f"m = {m}", xlabel=NAMES["sigma"])
    ax.set_ylabel(NAMES[measure])
    ax.grid(visible=True, which="both", alpha=0.2)


def _scatter(ax: Axes, figure: Figure, grid: Grid, which: int = 0) -> None:
    data = make_data(figure.datasets[which], grid.n_samples)
    X = data.X[:4000]
    ax.plot(X[:, 0], X[:, 1], ",", color="black", alpha=0.6)
    ax.set(title=figure.datasets[which].label, xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
    ax.set(xticks=(-1, -0.5, 0, 0.5, 1), yticks=(-1, -0.5, 0, 0.5, 1))


def _maps(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """One panel a dataset, contender and L: RSE over two axes, written into the cells."""
    x, y = figure.picture.get("x", "sigma"), figure.picture.get("y", "m")
    panels = _panels(figure, grid, (x, y))
    scatters = list(range(len(figure.datasets))) if figure.picture.get("data") else []
    columns = min(len(panels), figure.picture.get("columns", 3))
    lines = -(-(len(panels) + len(scatters)) // columns)
    wide, high = _lengths(rows, x, y)
    canvas.set_size_inches(columns * (1.6 + 0.55 * wide), lines * (1.1 + 0.42 * high))
    axes = canvas.subplots(lines, columns, squeeze=False).ravel()
    cap = float(figure.picture.get("cap", 2.0))
    image = None
    for ax, which in zip(axes, scatters, strict=False):
        _scatter(ax, figure, grid, which)
    of_maps = axes[len(scatters) :]
    for ax, (title, select) in zip(of_maps, panels, strict=False):
        image = _map_panel(ax, points_of(rows, select, "rse"), x, y, cap)
        ax.set(title=title, xlabel=_axis(x), ylabel=_axis(y))
    for ax in of_maps[len(panels) :]:
        ax.set_axis_off()
    if image is not None:
        canvas.colorbar(image, ax=list(axes), label="mean RSE", shrink=0.8, extend="max")


def _panels(figure: Figure, grid: Grid, axes: tuple[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Titles and selections: what is on no axis makes panels."""
    datasets: list[Any] = [None] if "d" in axes else list(figure.datasets)
    sigmas: list[Any] = [None] if "sigma" in axes else list(grid.bandwidths)
    panels = []
    for contender in figure.contenders:
        starts: Sequence[Any] = [None] if "L" in axes else contender.n_initializations
        for dataset in datasets:
            for sigma in sigmas:
                for L in starts:
                    select: dict[str, Any] = {"decoder": contender.name}
                    select |= {} if "L" in axes else {"L": L}
                    select |= {} if dataset is None else {"dataset": dataset.name}
                    select |= {} if sigma is None else {"sigma": sigma}
                    title = _label(contender, L, with_starts=True)
                    title += f", {dataset.label}" if len(datasets) > 1 else ""
                    title += "" if sigma is None else rf", $\sigma$ = {sigma:g}"
                    panels.append((title, select))
    return panels


def _map_panel(ax: Axes, found: Mapping[Any, float], x: str, y: str, cap: float) -> Any:
    """Cells shaded by RSE on a scale that is monotone in grey, with the number inside."""
    i, j = (("dataset", "d", "m", "sigma", "L").index(axis) for axis in (x, y))
    across = sorted({point[i] for point in found})
    up = sorted({point[j] for point in found}, key=lambda value: value or 0)
    image: FloatArray = np.full((len(up), len(across)), np.nan)
    for point, value in found.items():
        image[up.index(point[j]), across.index(point[i])] = value
    shown = ax.imshow(image, origin="lower", cmap="Greys", vmin=1.0, vmax=cap, aspect="auto")
    for (row, column), value in np.ndenumerate(image):
        if np.isfinite(value):
            colour = "white" if value > 1 + 0.55 * (cap - 1) else "black"
            text = f"{value:.2f}" if value < 9.95 else f"{value:.0f}"
            ax.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
    ax.set_xticks(range(len(across)), [f"{value:g}" for value in across], fontsize=7)
    ax.set_yticks(range(len(up)), ["-" if v is None else f"{v:g}" for v in up], fontsize=7)
    return shown


def _lengths(rows: Sequence[Row], x: str, y: str) -> tuple[int, int]:
    wide, high = ({row[axis] for row in rows if row["decoder"] != "lloyd"} for axis in (x, y))
    return len(wide), len(high)


def _axis(name: str) -> str:
    return NAMES.get(name) or SYMBOLS[name]


def _label(contender: Contender, L: int | None, with_starts: bool) -> str:
    starts = f", L = {L}" if with_starts and L is not None else ""
    return f"{contender.label}{starts}{' (ours)' if contender.is_ours else ''}"


# Pictures of the correlation function: figures 2, 3 and 4, for the first realization.


def _correlations(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """Figure 2: f_z for every sketch size (rows) and bandwidth (columns)."""
    data = make_data(figure.datasets[0], grid.n_samples)
    sizes, sigmas = grid.sketch_sizes, grid.bandwidths
    canvas.set_size_inches(2.5 * len(sigmas), 2.7 * len(sizes) + 0.4)
    axes = canvas.subplots(len(sizes), len(sigmas), squeeze=False, sharex=True, sharey=True)
    for i, m in enumerate(sizes):
        for j, sigma in enumerate(sigmas):
            f = CorrelationFunction.of(_sketch(data, m, sigma))
            _show(axes[i, j], grid_values(f, BOX, PIXELS))
            axes[i, j].set_title(rf"m = {m}, $\sigma$ = {sigma:g}", fontsize=9)


def _climb(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """Figure 3: ways from the same starts, and norms of what drives them."""
    data = make_data(figure.datasets[0], grid.n_samples)
    m, sigma = grid.sketch_sizes[-1], float(figure.picture["sigma"])
    f = CorrelationFunction.of(_sketch(data, m, sigma))
    canvas.set_size_inches(15, 5)
    axes = canvas.subplots(1, 3)
    _ways(axes[0], f, sigma, rf"m = {m}, $\sigma$ = {sigma:g}")
    points = grid_points(BOX, PIXELS)
    for ax, name in zip(axes[1:], ("gradient_ascent", "sketched_mean_shift"), strict=True):
        norms = np.maximum(sigma * direction_norms(f, points, name), 1e-12)
        image = _show(ax, np.log10(norms).reshape(PIXELS, PIXELS), vmin=-4.0, vmax=1.0)
    axes[1].set_title(r"$\log_{10} \sigma \|\nabla f_z\|$")
    axes[2].set_title(r"$\log_{10} \sigma \|\nabla f_z / f_z\|$")
    canvas.colorbar(image, ax=list(axes[1:]), shrink=0.8, extend="both")


def _ways(ax: Axes, f: CorrelationFunction, sigma: float, title: str) -> None:
    _show(ax, grid_values(f, BOX, PIXELS), alpha=0.4)
    starts: FloatArray = np.array([(-0.7, -0.2), (0.3, -0.57), (0.2, 0.7), (-0.1, 0.0)])
    marks = {
        "gradient_ascent": ("s", "-", "gradient ascent"),
        "sketched_mean_shift": (".", ":", "sketched mean shift"),
    }
    for name, (mark, line, label) in marks.items():
        way = np.array(paths(f, starts, BOX, sigma, name, range(11)))
        for i in range(len(starts)):
            once = label if i == 0 else None
            ax.plot(way[:, i, 0], way[:, i, 1], line, marker=mark, ms=4, color="black", label=once)
    ax.plot(*starts.T, "o", ms=12, mfc="none", mec="black", label="starts")
    ax.set(title=f"10 steps; {title}", xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
    ax.legend(fontsize=8, loc="upper left")


def _residual(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """Figure 4: f_z, and f_r after the first atom, for both fitted models."""
    data = make_data(figure.datasets[0], grid.n_samples)
    m, sigma = grid.sketch_sizes[-1], float(figure.picture["sigma"])
    z = _sketch(data, m, sigma)
    canvas.set_size_inches(13.5, 4.6)
    axes = canvas.subplots(1, 3, sharex=True, sharey=True)
    first = grid_values(CorrelationFunction.of(z), BOX, PIXELS)
    scale: dict[str, Any] = {"vmin": 0.0, "vmax": float(first.max())}
    image = _show(axes[0], first, **scale)
    axes[0].set_title(rf"$f_z$: m = {m}, $\sigma$ = {sigma:g}")
    for ax, model in zip(axes[1:], ("dirac", "gaussian"), strict=True):
        f_r, c = residual_after_one_atom(data, z, 0, 1000, model)
        _show(ax, grid_values(f_r, BOX, PIXELS), **scale)
        ax.plot(*c, "x", ms=9, mew=2, color="white")
        ax.plot(*c, "x", ms=8, color="red")
        ax.set_title(f"$f_r$ once a {model.capitalize()} at the cross is removed")
    canvas.colorbar(image, ax=list(axes), shrink=0.8)


def _show(ax: Axes, values: FloatArray, **options: Any) -> Any:
    ax.set(xticks=(-1, -0.5, 0, 0.5, 1), yticks=(-1, -0.5, 0, 0.5, 1))
    return ax.imshow(values, origin="lower", extent=EXTENT, cmap="viridis", **options)


def _sketch(data: Data, m: int, sigma: float) -> Sketch:
    return sketch(data.X, SketchSpec(data.n_features, m, sigma, seed=0), n_threads=1)


PICTURES: dict[str, Callable[[Canvas, Figure, Grid, Sequence[Row]], None]] = {
    "curves": _curves,
    "maps": _maps,
    "correlations": _correlations,
    "climb": _climb,
    "residual": _residual,
}
