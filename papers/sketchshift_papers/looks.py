"""Looks at the correlation function itself: figures 2, 3 and 4.

Each look turns what the paper shows in a picture into numbers that a claim can be held against.
Data are in the plane, not normalised, domain given.

Symbols
-------
f_z       correlation function of the sketch, close to the kernel density of the rows
f_r       that of the residual
c         a point of the plane
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sketchshift import Sketch, SketchAndShift
from sketchshift.decoders import (
    LOCAL_MAXIMA,
    Box,
    CorrelationFunction,
    Mixture,
    Step,
    one_blas_thread,
)
from sketchshift_papers.datasets import Data, FloatArray, cube

__all__ = [
    "FIGURES",
    "Measures",
    "bandwidth_of",
    "direction_norms",
    "grid_points",
    "grid_values",
    "maxima",
    "paths",
    "residual_after_one_atom",
]

PIXELS = 400
LEAST = 0.05  # share of the peak below which a maximum is not counted
Measures: TypeAlias = dict[str, float]


def grid_points(box: Box, pixels: int = PIXELS) -> FloatArray:
    """Centres of the pixels of a box, the first axis fastest: (pixels^d, d)."""
    steps = (np.arange(pixels) + 0.5) / pixels
    axes = [low + (high - low) * steps for low, high in zip(box.lower, box.upper, strict=True)]
    places = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
    return np.stack(places, axis=-1).reshape(-1, len(axes))


def grid_values(f: CorrelationFunction, box: Box, pixels: int = PIXELS) -> FloatArray:
    """Values at the pixels, the first axis last: shape (pixels,) * d."""
    return f(grid_points(box, pixels)).reshape((pixels,) * len(box.lower))


def maxima(values: FloatArray, box: Box, least: float = -np.inf) -> tuple[FloatArray, FloatArray]:
    """Places and heights of the inner pixels above a value that no neighbour exceeds."""
    from scipy.ndimage import maximum_filter

    is_top: NDArray[np.bool_] = np.zeros(values.shape, dtype=bool)
    inner = (slice(1, -1),) * values.ndim
    is_top[inner] = ((values == maximum_filter(values, 3)) & (values > least))[inner]
    return grid_points(box, len(values))[is_top.ravel()], values[is_top]


def kernel_density(X: FloatArray, box: Box, bandwidth: float) -> FloatArray:
    """Mean over the rows of the Gaussian kernel, from a histogram of as many pixels."""
    from scipy.ndimage import gaussian_filter

    ends = [[box.lower[i], box.upper[i]] for i in (1, 0)]
    counts, *_ = np.histogram2d(X[:, 1], X[:, 0], bins=PIXELS, range=ends)
    width = (box.upper[0] - box.lower[0]) / PIXELS
    blurred = gaussian_filter(counts / len(X), bandwidth / width, mode="constant", truncate=6)
    return np.asarray(blurred * (2 * np.pi * (bandwidth / width) ** 2))


def look_at_maxima(
    data: Data, sketch: Sketch, seed: int, n_initializations: int | None
) -> Measures:
    """Figure 2: local maxima of f_z, and its distance to the kernel density.

    Returns
    -------
    measures : dict
        ``n_maxima`` higher than a twentieth of the peak; ``peak_distance``, the largest distance
        of a true mean to the nearest of the k highest; ``noise``, the root mean square of
        f_z minus the kernel density, in peaks of the latter.
    """
    box = _box(data)
    values = grid_values(CorrelationFunction.of(sketch), box)
    places, heights = maxima(values, box, LEAST * values.max())
    highest = places[np.argsort(-heights)[: data.n_clusters]]
    assert data.means is not None
    gaps = np.linalg.norm(data.means[:, None] - highest, axis=2).min(axis=1)
    density = kernel_density(data.X, box, bandwidth_of(sketch))
    return {
        "n_maxima": float(len(places)),
        "peak_distance": float(gaps.max()),
        "noise": float(np.sqrt(np.mean((values - density) ** 2)) / density.max()),
    }


@one_blas_thread
def look_at_climb(
    data: Data,
    sketch: Sketch,
    seed: int,
    n_initializations: int | None,
    *,
    local_maximum: str,
    steps: int = 50,
) -> Measures:
    """Figure 3: how far starts get, and how large what drives them is.

    Returns
    -------
    measures : dict
        ``moved``, the median way of a start; ``arrived``, the share that ends within two
        standard deviations of a true mean; ``positive``, the share on whose way f_z was
        positive wherever we looked; ``least``, the least magnitude of f_z met on any way;
        ``median_norm``, of the direction over the domain, times the bandwidth;
        ``norm_at_means``, the same at the true means.
    """
    f, box = CorrelationFunction.of(sketch), _box(data)
    starts = box.sample(n_initializations or 1, seed)
    looked = sorted({0, *(steps // 2**i for i in range(8))})
    way = paths(f, starts, box, bandwidth_of(sketch), local_maximum, looked)
    assert data.means is not None
    gaps = np.linalg.norm(way[-1][:, None] - data.means, axis=2).min(axis=1)
    met = np.array([f(places) for places in way])
    reach = 2.0 * float(np.sqrt(data.variance))
    norms = direction_norms(f, grid_points(box, 100), local_maximum) * bandwidth_of(sketch)
    at_means = direction_norms(f, data.means, local_maximum) * bandwidth_of(sketch)
    return {
        "moved": float(np.median(np.linalg.norm(way[-1] - way[0], axis=1))),
        "arrived": float(np.mean(gaps < reach)),
        "positive": float(np.mean((met > 0.0).all(axis=0))),
        "least": float(np.abs(met).min()),
        "median_norm": float(np.median(norms)),
        "norm_at_means": float(np.max(at_means)),
    }


def paths(
    f: CorrelationFunction,
    starts: FloatArray,
    box: Box,
    bandwidth: float,
    local_maximum: str,
    steps: Sequence[int],
) -> list[FloatArray]:
    """Places of all starts after so many steps each: arrays of shape (L, 2)."""
    climb: Any = LOCAL_MAXIMA[local_maximum]
    way = []
    for n in steps:
        places = climb(max_iterations=n)(f, starts, box, bandwidth)[0] if n else starts
        way.append(places)
    return way


def direction_norms(f: CorrelationFunction, C: FloatArray, local_maximum: str) -> FloatArray:
    """Norms of the gradient, or of gradient over value for sketched mean shift."""
    values, gradients = f.value_and_gradient(C)
    norms = np.linalg.norm(gradients, axis=1)
    is_shift = local_maximum != "gradient_ascent"
    return np.asarray(norms / np.maximum(np.abs(values), 1e-12) if is_shift else norms)


def look_at_residual(
    data: Data, sketch: Sketch, seed: int, n_initializations: int | None, *, fitted_model: str
) -> Measures:
    """Figure 4: what is left around the first centroid once it has been removed.

    Returns
    -------
    measures : dict
        ``second_distance``, of the second centroid from the first; ``left_over``, the highest
        value of f_r within three bandwidths or standard deviations of the first centroid, as a
        share of f_z there.
    """
    decoder = _published(2, n_initializations, fitted_model)
    trace = decoder(sketch, 2, domain=_box(data), seed=seed).trace
    centroids = [step.centroid for step in trace if isinstance(step, Step)]
    apart = np.linalg.norm(centroids[1] - centroids[0]) if len(centroids) > 1 else np.nan
    f_r, c = residual_after_one_atom(data, sketch, seed, n_initializations, fitted_model)
    near = 3.0 * max(bandwidth_of(sketch), float(np.sqrt(data.variance)))
    around = c[None, :] + near * grid_points(cube(2), 60)
    return {
        "second_distance": float(apart),
        "left_over": float(f_r(around).max() / CorrelationFunction.of(sketch)(c)[0]),
    }


def residual_after_one_atom(
    data: Data, sketch: Sketch, seed: int, n_initializations: int | None, fitted_model: str
) -> tuple[CorrelationFunction, FloatArray]:
    """The correlation function of the residual after the first atom, and its centroid."""
    decoder = _published(1, n_initializations, fitted_model)
    found = decoder(sketch, 1, domain=_box(data), seed=seed)
    turns = sketch.frequencies.turns
    atom = Mixture(np.ones(1), found.centroids, found.covariances).sketch(turns)
    weight = max(0.0, float(np.vdot(atom, sketch.z).real / np.vdot(atom, atom).real))
    return CorrelationFunction(turns, sketch.z - weight * atom), found.centroids[0]


def _published(n_atoms: int, n_initializations: int | None, fitted_model: str) -> SketchAndShift:
    """Algorithm 2 to the letter."""
    return SketchAndShift(
        n_atoms=n_atoms,
        n_initializations=n_initializations or 1000,
        fitted_model=fitted_model,
        local_maximum="plain_mean_shift",
        starts="uniform",
        reuse_starts=False,
        threshold="weight",
        repairs=False,
    )


def _box(data: Data) -> Box:
    return data.domain if data.domain is not None else cube(2)


def bandwidth_of(sketch: Sketch) -> float:
    """Sigma, of a sketch that has one."""
    low, high = sketch.spec.bandwidths
    assert low == high
    return low


FIGURES: dict[str, Callable[..., Measures]] = {
    "correlation": look_at_maxima,
    "climb": look_at_climb,
    "residual": look_at_residual,
}
