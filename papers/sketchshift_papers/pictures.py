"""The picture of a figure: curves and maps of the runs, and the correlation function itself.

Takes rows of a figure; writes a PNG file. Legible without colour, each series with its own mark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sketchshift import Sketch, SketchSpec, sketch
from sketchshift.cli import opened_atomically
from sketchshift.decoders import CorrelationFunction
from sketchshift.errors import DataError
from sketchshift_papers.claims import AXES, ERRORS, LIMIT, points_of, values_of
from sketchshift_papers.datasets import Data, FloatArray, cube, make_data
from sketchshift_papers.definition import Contender, Figure, Grid
from sketchshift_papers.looks import (
    direction_norms,
    grid_points,
    grid_values,
    paths,
    residual_after_one_atom,
)
from sketchshift_papers.runner import Row

__all__ = ["PICTURES", "draw"]

STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ("-", "v"), ("--", "x"), (":", "*"))
SHADES = ("black", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#7f7f7f", "#a6761d")
NAMES = {"mse": "MSE", "rse": "RSE (k-means is 1)", "sigma": r"bandwidth $\sigma$"}
MISSED = f"share of runs with RSE > {LIMIT:g}"
SYMBOLS = {"m": "sketch size $m$", "L": "starts $L$", "d": "dimension $d$"}
SYMBOLS |= {"dataset": "", "decoder": ""}
PIXELS = 200
Realizations = Sequence[Sequence[float]]
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
    kind = figure.picture["kind"]
    if kind not in PICTURES:
        raise DataError(f"a picture cannot be of kind {kind!r}. There are: {', '.join(PICTURES)}.")
    canvas = Canvas(layout="constrained")
    PICTURES[kind](canvas, figure, grid, rows)
    canvas.suptitle(f"{figure.name}: {figure.title}")
    with opened_atomically(path) as file:
        canvas.savefig(file, format="png", dpi=120)


def _curves(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """One column a dataset and sketch size: means, medians with quartiles, missed clusters.

    One line a contender and L. One missed cluster decides a mean, so that the three differ.
    """
    measure = figure.picture.get("measure", "rse")
    columns = [
        (d, m) for d in figure.datasets_on(grid) for m in d.sketch_sizes or grid.sketch_sizes
    ]
    has_data, has_missed = bool(figure.picture.get("data")), measure in ERRORS
    high, wide = 2 + has_missed, len(columns) + has_data
    canvas.set_size_inches((5.2 if wide <= 3 else 4.2) * wide, 1.0 + 3.5 * high)
    panels = canvas.subplots(high, wide, squeeze=False)
    for (dataset, m), column in zip(columns, panels.T, strict=False):
        of, title = {"dataset": dataset.name, "m": m}, f"m = {m}"
        title += f", {dataset.label}" if len(figure.datasets) > 1 else ""
        _curve_panel(column[0], figure, rows, of, measure, _means)
        _curve_panel(column[1], figure, rows, of, measure, _medians)
        if has_missed:
            _curve_panel(column[2], figure, rows, of, "missed", _means)
        for ax, first in zip(column, panels[:, 0], strict=True):
            ax.set_title(title)
            ax.sharey(first)
    name = NAMES.get(measure, measure)
    labels = (f"mean {name}", f"median and quartiles of {name}", MISSED)
    for ax, label in zip(panels[:, 0], labels, strict=False):
        ax.set_ylabel(label)
    canvas.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    if has_data:
        for i, ax in enumerate(panels[:, -1]):
            if i < len(figure.datasets):
                _scatter(ax, figure, grid, i)
            else:
                ax.set_axis_off()


def _curve_panel(
    ax: Axes,
    figure: Figure,
    rows: Sequence[Row],
    of: Mapping[str, Any],
    measure: str,
    plot: Callable[[Axes, FloatArray, Realizations, float, dict[str, Any]], None],
) -> None:
    """Lines over the bandwidths at one dataset and m."""
    lines = [(c, L) for c in figure.contenders for L in c.n_initializations]
    looks = zip(cycle(STYLES), cycle(SHADES), strict=False)
    for i, ((contender, L), ((dashes, mark), shade)) in enumerate(zip(lines, looks, strict=False)):
        found = values_of(rows, {**of, "decoder": contender.name, "L": L}, measure)
        if not found:
            continue
        points = sorted(found, key=lambda point: point[3])
        label = _label(contender, L, len(contender.n_initializations) > 1)
        style = {"ls": dashes, "marker": mark, "ms": 5, "color": shade, "label": label}
        x = np.array([point[3] for point in points], dtype=np.float64)
        plot(ax, x, [found[point] for point in points], i - (len(lines) - 1) / 2, style)
    if measure == "missed":
        ax.set_ylim(-0.05, 1.05)
    else:
        ax.set_yscale("log")
        lloyd = {"decoder": "lloyd", "dataset": of["dataset"]}
        for value in points_of(rows, lloyd, measure).values():
            ax.axhline(value, color="black", lw=0.8, dashes=(1, 2), label="Lloyd, best of 5")
    ax.set(xscale="log", xlabel=NAMES["sigma"])
    ax.grid(visible=True, which="both", alpha=0.2)


def _means(
    ax: Axes, x: FloatArray, found: Realizations, place: float, style: dict[str, Any]
) -> None:
    ax.plot(x, [np.mean(values) for values in found], **style)


def _medians(
    ax: Axes, x: FloatArray, found: Realizations, place: float, style: dict[str, Any]
) -> None:
    """Medians, with thin bars between the quartiles; the marks of several lines stand apart."""
    low, middle, high = np.array([np.percentile(values, (25, 50, 75)) for values in found]).T
    x = x * 1.025**place
    ax.plot(x, middle, **style)
    ax.vlines(x, low, high, color=style["color"], lw=0.8)
    ax.plot(np.tile(x, 2), np.hstack([low, high]), "_", ms=4, color=style["color"])


def _scatter(ax: Axes, figure: Figure, grid: Grid, which: int = 0) -> None:
    data = make_data(figure.datasets[which], grid.n_samples)
    X = data.X[:4000]
    ax.plot(X[:, 0], X[:, 1], ",", color="black", alpha=0.6)
    ax.set(title=figure.datasets[which].label, xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
    ax.set(xticks=(-1, -0.5, 0, 0.5, 1), yticks=(-1, -0.5, 0, 0.5, 1))


def _maps(canvas: Canvas, figure: Figure, grid: Grid, rows: Sequence[Row]) -> None:
    """One panel a dataset, contender and L: RSE over two axes, written into the cells."""
    x, y = figure.picture.get("x", "sigma"), figure.picture.get("y", "m")
    measure = figure.picture.get("measure", "rse")
    panels = _panels(figure, grid, (x, y))
    panels = [panel for panel in panels if values_of(rows, panel[1], measure)]
    scatters = list(range(len(figure.datasets))) if figure.picture.get("data") else []
    columns = min(len(panels), figure.picture.get("columns", 3))
    lines = -(-(len(panels) + len(scatters)) // columns)
    runs = [row for row in rows if row["decoder"] != "lloyd"]
    wide, high = (len({row[axis] for row in runs}) for axis in (x, y))
    canvas.set_size_inches(columns * (2.2 + 0.55 * wide), lines * (1.1 + 0.42 * high))
    axes = canvas.subplots(lines, columns, squeeze=False).ravel()
    cap = float(figure.picture.get("cap", 2.0))
    is_error = measure in ERRORS
    image = None
    for ax, which in zip(axes, scatters, strict=False):
        _scatter(ax, figure, grid, which)
    of_maps = axes[len(scatters) :]
    for ax, (title, select) in zip(of_maps, panels, strict=False):
        image = _map_panel(ax, values_of(rows, select, measure), x, y, is_error, cap)
        ax.set(xlabel=_axis(x), ylabel=_axis(y))
        ax.set_title(fill(title, 20 + 5 * wide), fontsize=9)
    for ax in of_maps[len(panels) :]:
        ax.set_axis_off()
    if image is not None:
        label = f"mean {NAMES.get(measure, measure)}"
        label += "; in brackets the median, where it is another" if is_error else ""
        canvas.colorbar(image, ax=list(axes), label=label, shrink=0.8, extend="max")


def _panels(figure: Figure, grid: Grid, axes: tuple[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Titles and selections: what is on no axis makes panels."""
    taken = {*axes, "dataset"} if "d" in axes else {*axes}
    fixed = [axis for axis in ("dataset", "sigma", "L") if axis not in taken]
    labels = {dataset.name: dataset.label for dataset in figure.datasets}
    panels = []
    for contender in figure.contenders:
        values: dict[str, Sequence[Any]] = {"dataset": list(labels), "sigma": grid.bandwidths}
        values["L"] = contender.n_initializations
        for point in product(*(values[axis] for axis in fixed)):
            select = dict(zip(fixed, point, strict=True))
            title = _label(contender, select.get("L"), with_starts=True)
            if len(labels) > 1 and "dataset" in select:
                title += f", {labels[select['dataset']]}"
            if "sigma" in select:
                title += rf", $\sigma$ = {select['sigma']:g}"
            panels.append((title, {"decoder": contender.name} | select))
    return panels


def _map_panel(
    ax: Axes, found: Mapping[Any, list[float]], x: str, y: str, is_error: bool, cap: float
) -> Any:
    """Cells shaded by means on a scale that is monotone in grey, with the numbers inside."""
    i, j = (AXES.index(axis) for axis in (x, y))
    across, up = (list(dict.fromkeys(point[axis] for point in found)) for axis in (i, j))
    cells = {(up.index(p[j]), across.index(p[i])): values for p, values in found.items()}
    least = 1.0 if is_error else 0.0
    image: FloatArray = np.full((len(up), len(across)), np.nan)
    for (row, column), values in cells.items():
        mean, middle = float(np.mean(values)), float(np.median(values))
        image[row, column] = mean
        is_other = is_error and abs(middle / mean - 1) > 0.05
        text = _number(mean) + (f"\n({_number(middle)})" if is_other else "")
        colour = "white" if mean > least + 0.55 * (cap - least) else "black"
        ax.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
    shown = ax.imshow(image, origin="lower", cmap="Greys", vmin=least, vmax=cap, aspect="auto")
    ax.set_xticks(range(len(across)), map(_tick, across), fontsize=7)
    ax.set_yticks(range(len(up)), map(_tick, up), fontsize=7)
    return shown


def _tick(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value or "-")


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 9.95 else f"{value:.0f}"


def _axis(name: str) -> str:
    return NAMES.get(name) or SYMBOLS.get(name, name)


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
