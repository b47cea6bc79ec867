"""What is measured on one sketch: decoders, and looks at the correlation function.

Takes a :class:`Cell`, one realization of the sketching operator; hands numbers to the runner, and
what is seen of the correlation function to the pictures.

Symbols
-------
f_z       correlation function of the sketch, close to the kernel density of the rows
f_r       that of the residual
c         a point of the plane
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift import Sketch, SketchAndShift, decode
from sketchshift.decoders import (
    DECODERS,
    LOCAL_MAXIMA,
    Box,
    CorrelationFunction,
    Decoder,
    Mixture,
    Step,
    one_blas_thread,
)
from sketchshift.errors import DataError
from sketchshift.metrics import lloyd, mse
from sketchshift_papers.datasets import Data, FloatArray, cube
from sketchshift_papers.definition import Contender, Figure

__all__ = [
    "LOOKS",
    "Cell",
    "direction_norms",
    "grid_points",
    "grid_values",
    "measure",
    "measure_reference",
    "paths",
    "registered_decoders",
    "residual_after_one_atom",
    "without_missing",
]

PIXELS = 400
LEAST = 0.05  # share of the peak below which a maximum is not counted
Measures = dict[str, float]


@dataclass(frozen=True, eq=False)
class Cell:
    """One realization of the sketching operator, applied to one dataset.

    Attributes
    ----------
    data : Data
        The rows, for the errors alone.
    sketch : Sketch
        Theirs.
    seed : int
        Number of the realization; of the starts too.
    reference : float
        MSE of k-means.
    """

    data: Data
    sketch: Sketch
    seed: int
    reference: float


def _decode(contender: Contender, n_initializations: int | None, cell: Cell) -> FloatArray:
    """The centroids that a registered decoder finds."""
    if contender.kind == "pycle":
        return _decode_with_pycle(cell)
    decoder = registered_decoders()[contender.kind]
    constants = dict(contender.options)
    if n_initializations is not None:
        constants["n_initializations"] = n_initializations
    if is_dataclass(decoder) and "domain" in {field.name for field in fields(decoder)}:
        constants["domain"] = cell.data.domain
    k = cell.data.n_clusters
    return decode(cell.sketch, k, seed=cell.seed, decoder=decoder(**constants)).centroids


def _decode_with_pycle(cell: Cell) -> FloatArray:
    """CL-OMPR as pycle has it, the public code: one run, on the very same sketch."""
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")  # pycle 1.2 was written for older Pythons
        from pycle.compressive_learning import CLOMP_CKM
        from pycle.sketching import SimpleFeatureMap

        turns = cell.sketch.frequencies.turns
        features = SimpleFeatureMap("complexExponential", 2.0 * np.pi * turns.astype(np.float64))
        box = cell.data.domain or Box.of(cell.sketch)
        z = cell.sketch.z * math.sqrt(turns.shape[1])
        np.random.seed(cell.seed)  # noqa: NPY002 - pycle draws from the global generator
        solver = CLOMP_CKM(features, cell.data.n_clusters, np.array([box.lower, box.upper]), z)
        solver.fit_once()
        return np.asarray(solver.get_centroids(), dtype=np.float64)


def without_missing(figure: Figure) -> tuple[Figure, list[str]]:
    """A figure less the contenders whose package is not installed, and what to say of them."""
    missing = [c for c in figure.contenders if c.kind == "pycle" and find_spec("pycle") is None]
    kept = tuple(contender for contender in figure.contenders if contender not in missing)
    says = [f"{c.label} was left out. It needs: pip install pycle" for c in missing]
    return replace(figure, contenders=kept), says


def registered_decoders() -> dict[str, Callable[..., Decoder]]:
    """Decoders by their names in the files of figures, which have no hyphens."""
    return {name.replace("-", "_"): make for name, make in DECODERS.items()}


# Looks at the correlation function itself: figures 2, 3 and 4.
#
# Each look turns what the paper shows in a picture into numbers that a claim can be held against.
# Data are in the plane, not normalised, domain given.


def grid_points(box: Box, pixels: int = PIXELS) -> FloatArray:
    """Centres of the pixels of a box in the plane, lowest row first: (pixels^2, 2)."""
    steps = (np.arange(pixels) + 0.5) / pixels
    x, y = (box.lower[i] + (box.upper[i] - box.lower[i]) * steps for i in (0, 1))
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def grid_values(f: CorrelationFunction, box: Box, pixels: int = PIXELS) -> FloatArray:
    """Values at the pixels, lowest row first: shape (pixels, pixels)."""
    return f(grid_points(box, pixels)).reshape(pixels, pixels)


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
) -> dict[str, float]:
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
    places, heights = _maxima(values, box)
    highest = places[np.argsort(-heights)[: data.n_clusters]]
    assert data.means is not None
    gaps = np.linalg.norm(data.means[:, None] - highest, axis=2).min(axis=1)
    density = kernel_density(data.X, box, _bandwidth(sketch))
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
) -> dict[str, float]:
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
    way = paths(f, starts, box, _bandwidth(sketch), local_maximum, looked)
    assert data.means is not None
    gaps = np.linalg.norm(way[-1][:, None] - data.means, axis=2).min(axis=1)
    met = np.array([f(places) for places in way])
    reach = 2.0 * float(np.sqrt(_spread(data)))
    norms = direction_norms(f, grid_points(box, 100), local_maximum) * _bandwidth(sketch)
    at_means = direction_norms(f, data.means, local_maximum) * _bandwidth(sketch)
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
) -> dict[str, float]:
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
    near = 3.0 * max(_bandwidth(sketch), float(np.sqrt(_spread(data))))
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


def _maxima(values: FloatArray, box: Box) -> tuple[FloatArray, FloatArray]:
    """Places and heights of the pixels that are higher than their eight neighbours."""
    from scipy.ndimage import maximum_filter

    is_top: NDArray[np.bool_] = (values == maximum_filter(values, 3)) & (
        values > LEAST * values.max()
    )
    is_top[[0, -1], :] = is_top[:, [0, -1]] = False
    return grid_points(box)[is_top.ravel()], values[is_top]


def _spread(data: Data) -> float:
    """Variance of a cluster on one axis."""
    assert data.means is not None
    gaps = ((data.X[:5000, None] - data.means) ** 2).sum(axis=2).min(axis=1)
    return float(gaps.mean()) / data.n_features


def _box(data: Data) -> Box:
    return data.domain if data.domain is not None else cube(2)


def _bandwidth(sketch: Sketch) -> float:
    bandwidth = sketch.spec.bandwidth
    assert isinstance(bandwidth, float)
    return bandwidth


LOOKS: dict[str, Callable[..., Measures]] = {
    "correlation": look_at_maxima,
    "climb": look_at_climb,
    "residual": look_at_residual,
}


def measure(contender: Contender, n_initializations: int | None, cell: Cell) -> Measures:
    """Run one contender on one sketch.

    Parameters
    ----------
    contender : Contender
        Its kind is a registered decoder or a key of ``LOOKS``.
    n_initializations : int or None
        L.
    cell : Cell
        Data and sketch.

    Returns
    -------
    measures : dict of str to float
        Of a decoder ``mse``, ``rse`` and ``seconds``; of a look what it counts.
    """
    options = dict(contender.options)
    start = time.perf_counter()
    if contender.kind in LOOKS:
        values = LOOKS[contender.kind](
            cell.data, cell.sketch, cell.seed, n_initializations, **options
        )
        if "mse" in values:
            values["rse"] = values["mse"] / cell.reference
        return {"seconds": time.perf_counter() - start} | values
    if contender.kind not in (known_decoders := [*registered_decoders(), "pycle"]):
        known = ", ".join([*known_decoders, *LOOKS])
        raise DataError(f"there is no decoder of kind {contender.kind!r}. There are: {known}.")
    centroids = _decode(contender, n_initializations, cell)
    seconds = time.perf_counter() - start
    error = cell.data.error(centroids)
    return {"mse": error, "rse": error / cell.reference, "seconds": seconds}


@one_blas_thread
def measure_reference(data: Data) -> Measures:
    """K-means with all the rows at hand, best of five: the reference of every RSE."""
    start = time.perf_counter()
    centroids = lloyd(data.X, data.n_clusters, n_init=5, seed=0)
    seconds = time.perf_counter() - start
    error = mse(data.X, centroids)
    k, spread = len(centroids), float(centroids.var(axis=0).sum())
    return {
        "mse": error,
        "rse": 1.0,
        "seconds": seconds,
        "squared_distance": 2.0 * spread * k / (k - 1) if k > 1 else math.nan,
        "variance": error / data.n_features,
    }
