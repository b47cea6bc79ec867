"""Curves and maps of the runs: legible without colour, each series with its own mark.

Takes rows of a figure; hands a matplotlib figure. Pictures of the correlation function are in
``landscapes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._writing import opened_atomically
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.experiments.checks import points_of
from sketchshift.experiments.datasets import make_data
from sketchshift.experiments.definition import Contender, Figure, Grid
from sketchshift.experiments.landscapes import LANDSCAPES
from sketchshift.experiments.store import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw"]

STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ("-", "v"), ("--", "x"), (":", "*"))
SHADES = ("black", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#7f7f7f", "#a6761d")
NAMES = {"mse": "mean MSE", "rse": "mean RSE (k-means is 1)", "sigma": r"bandwidth $\sigma$"}
SYMBOLS = {"m": "sketch size $m$", "L": "starts $L$", "d": "dimension $d$"}


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
    known = {"curves": _curves, "maps": _maps} | LANDSCAPES
    if kind not in known:
        raise DataError(f"a picture cannot be of kind {kind!r}. There are: {', '.join(known)}.")
    canvas = Canvas(layout="constrained")
    known[kind](canvas, figure, grid, rows)
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
