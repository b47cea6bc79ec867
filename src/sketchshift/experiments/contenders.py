"""What is measured on one sketch: decoders, and looks at the correlation function.

Takes a :class:`Cell`, one realization of the sketching operator; hands numbers to the runner.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sketchshift import decoders
from sketchshift._typing import FloatArray
from sketchshift.decoders.problem import one_blas_thread
from sketchshift.errors import DataError
from sketchshift.experiments import looks
from sketchshift.experiments.datasets import Data
from sketchshift.experiments.definition import Contender
from sketchshift.metrics import lloyd, mse
from sketchshift.sketch import Sketch

__all__ = ["DECODERS", "LOOKS", "Cell", "measure", "measure_reference"]

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


def _turnkey(cell: Cell, n_initializations: int | None, options: dict[str, Any]) -> FloatArray:
    return decoders.decode(cell.sketch, cell.data.n_clusters, seed=cell.seed, **options).centroids


def _cl_ompr(cell: Cell, n_initializations: int | None, options: dict[str, Any]) -> FloatArray:
    decoder = decoders.ClOmpr(**options)
    return _call(decoder, cell)


def _sketch_and_shift(
    cell: Cell, n_initializations: int | None, options: dict[str, Any]
) -> FloatArray:
    decoder = decoders.SketchAndShift(n_initializations=n_initializations or 1000, **options)
    return _call(decoder, cell)


def _call(decoder: Any, cell: Cell) -> FloatArray:
    found = decoder(cell.sketch, cell.data.n_clusters, domain=cell.data.domain, seed=cell.seed)
    centroids: FloatArray = found.centroids
    return centroids


DECODERS: dict[str, Callable[[Cell, int | None, dict[str, Any]], FloatArray]] = {
    "cl_ompr": _cl_ompr,
    "sketch_and_shift": _sketch_and_shift,
    "turnkey": _turnkey,
}
LOOKS: dict[str, Callable[..., Measures]] = {
    "correlation": looks.look_at_maxima,
    "climb": looks.look_at_climb,
    "residual": looks.look_at_residual,
}


def measure(contender: Contender, n_initializations: int | None, cell: Cell) -> Measures:
    """Run one contender on one sketch.

    Parameters
    ----------
    contender : Contender
        Its kind is a key of ``DECODERS`` or ``LOOKS``.
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
        return values | {"seconds": time.perf_counter() - start}
    if contender.kind not in DECODERS:
        known = ", ".join([*DECODERS, *LOOKS])
        raise DataError(f"there is no decoder of kind {contender.kind!r}. There are: {known}.")
    centroids = DECODERS[contender.kind](cell, n_initializations, options)
    seconds = time.perf_counter() - start
    error = _error(cell.data, centroids)
    return {"mse": error, "rse": error / cell.reference, "seconds": seconds}


def _error(data: Data, centroids: FloatArray) -> float:
    """MSE; that of the overall mean where a decoder found nothing at all."""
    return mse(data.X, centroids if len(centroids) else data.X.mean(axis=0, keepdims=True))


@one_blas_thread
def measure_reference(data: Data) -> Measures:
    """K-means with all the rows at hand, best of five: the reference of every RSE."""
    start = time.perf_counter()
    centroids = lloyd(data.X, data.n_clusters, n_init=5, seed=0)
    seconds = time.perf_counter() - start
    error = mse(data.X, centroids)
    k = len(centroids)
    gaps = ((centroids[:, None] - centroids) ** 2).sum(axis=2)
    return {
        "mse": error,
        "rse": 1.0,
        "seconds": seconds,
        "squared_distance": float(gaps.sum()) / (k * (k - 1)) if k > 1 else math.nan,
        "variance": error / data.n_features,
    }
