"""What is measured on one sketch: decoders, and looks at the correlation function.

Takes a :class:`Cell`, one realization of the sketching operator; hands numbers to the runner.

The grid gives the law's m, sigma and seed. A contender's ``sketch`` may have instead:

``planned``    ``"waves"`` or ``"cells"``: what ``ss.plan`` says, with the grid's m unless
               ``own_size``
``spread``     bandwidths from sigma / spread to sigma * spread
``landmarks``  Nyström features at rows of the data, so many that they take the bytes of the waves,
               with this number counted for each coordinate of a row
others         as ``ss.SketchSpec`` has them: ``law``, ``structured``
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from sketchshift import Sketch, decode, plan, sketch
from sketchshift.decoders import DECODERS, Box, Decoder, one_blas_thread
from sketchshift.errors import DataError
from sketchshift.metrics import lloyd, mse
from sketchshift_papers import landmarks as of_landmarks
from sketchshift_papers import leverage as leverage
from sketchshift_papers.beyond import BEYOND
from sketchshift_papers.datasets import Data, FloatArray
from sketchshift_papers.definition import Contender, Figure
from sketchshift_papers.looks import FIGURES, Measures, bandwidth_of

__all__ = [
    "LOOKS",
    "Cell",
    "measure",
    "measure_reference",
    "registered_decoders",
    "without_missing",
]

LOOKS: dict[str, Callable[..., Measures]] = FIGURES | BEYOND
MANY = 500  # clusters, from which on a reference begins at the true means


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


def other_sketch(
    cell: Cell,
    *,
    planned: str | None = None,
    own_size: bool = False,
    spread: float = 1.0,
    landmarks: int | None = None,
    **changes: Any,
) -> Sketch:
    """The sketch of the same rows that a contender asks for; see the module's text."""
    X, spec, k = cell.data.X, cell.sketch.spec, cell.data.n_clusters
    if planned is not None:
        size, has_cells = None if own_size else spec.sketch_size, planned == "cells"
        spec = plan(X, k, sketch_size=size, cells=has_cells, seed=cell.seed)
    if spread > 1.0:
        sigma = bandwidth_of(cell.sketch)
        changes["bandwidth"] = (sigma / spread, sigma * spread)
    if landmarks is not None and spec.waves is not None:
        n = 16 * spec.sketch_size // (8 + landmarks * spec.n_features)  # an integer has 8 bytes
        drawn = of_landmarks.draw(X, n, bandwidth=bandwidth_of(cell.sketch), seed=spec.waves.seed)
        spec = spec.replaced(waves=None, families={"landmarks": drawn})
    elif changes and spec.waves is not None:
        spec = spec.replaced(waves=replace(spec.waves, **changes))
    return sketch(X, spec, n_threads=1)


def without_missing(figure: Figure) -> tuple[Figure, list[str]]:
    """A figure less the contenders whose package is not installed, and what to say of them."""
    missing = [c for c in figure.contenders if c.kind == "pycle" and find_spec("pycle") is None]
    kept = tuple(contender for contender in figure.contenders if contender not in missing)
    says = [f"{c.label} was left out. It needs: pip install pycle" for c in missing]
    return replace(figure, contenders=kept), says


def registered_decoders() -> dict[str, Callable[..., Decoder]]:
    """Decoders by their names in the files of figures, which have no hyphens."""
    return {name.replace("-", "_"): make for name, make in DECODERS.items()}


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
    if contender.sketch:
        cell = replace(cell, sketch=other_sketch(cell, **contender.sketch))
    known = [*registered_decoders(), "pycle", *LOOKS]
    if contender.kind not in known:
        words = f"there is no decoder of kind {contender.kind!r}. There are: {', '.join(known)}."
        raise DataError(words)
    start = time.perf_counter()
    if look := LOOKS.get(contender.kind):
        found = look(cell.data, cell.sketch, cell.seed, n_initializations, **contender.options)
        seconds = time.perf_counter() - start
    else:
        centroids = _decode(contender, n_initializations, cell)
        seconds = time.perf_counter() - start
        found = {"mse": cell.data.error(centroids)}
    errors = {"rse": found["mse"] / cell.reference} if "mse" in found else {}
    return {"seconds": seconds} | found | errors


@one_blas_thread
def measure_reference(data: Data) -> Measures:
    """K-means with all the rows at hand, best of five: the reference of every RSE.

    Of very many clusters, one step of k-means from the true means: starts of its own would miss
    some of them, and take hours.
    """
    start = time.perf_counter()
    if data.n_clusters > MANY and data.means is not None:
        from scipy.spatial import cKDTree

        labels = cKDTree(data.means).query(data.X)[1]
        centroids = np.array([data.X[labels == i].mean(axis=0) for i in np.unique(labels)])
    else:
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
