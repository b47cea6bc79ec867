"""Pictures of the correlation function: figures 2, 3 and 4, for the first realization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.objective import CorrelationFunction
from sketchshift.experiments.datasets import Data, cube, make_data
from sketchshift.experiments.definition import Figure, Grid
from sketchshift.experiments.looks import (
    direction_norms,
    grid_points,
    grid_values,
    paths,
    residual_after_one_atom,
)
from sketchshift.experiments.store import Row
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, sketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["LANDSCAPES"]

PIXELS = 200
BOX = cube(2)
EXTENT = (-1.0, 1.0, -1.0, 1.0)


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


LANDSCAPES: dict[str, Callable[[Canvas, Figure, Grid, Sequence[Row]], None]] = {
    "correlations": _correlations,
    "climb": _climb,
    "residual": _residual,
}
