"""Centroids from sketches: the turnkey pipeline, and the published decoders in hindsight."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np

import sketchshift as ss
from quality.datasets import Dataset
from quality.found import Found, timed

SHARES = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
"""Bandwidths tried for the published decoders, in roots of the total variance."""
SMALL_SHARES = (0.03, 0.05, 0.07)
"""Tried as well where clusters are known to be small."""

Decode = Callable[[ss.Sketch, int, int], ss.Decoding]


@lru_cache(maxsize=1)
def planned_sketch(data: Dataset, m: int, seed: int) -> ss.Sketch:
    """The turnkey sketch; its size is what the other methods may use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.ScaleHint)  # the columns are as they should be
        return ss.sketch(data.X, n_clusters=data.k, sketch_size=m, seed=seed)


def turnkey(data: Dataset, m: int, seed: int) -> Found:
    """Nothing to choose but the size."""
    sketch = planned_sketch(data, m, seed)
    decoding, seconds = timed(lambda: ss.decode(sketch, data.k, seed=seed))
    return Found(decoding.centroids, seconds, sketch.nbytes)


def at_bandwidth(data: Dataset, m: int, seed: int, share: float, decode: Decode) -> Found:
    """The paper's sketch, of one bandwidth and centred on the mean, and a published decoder."""
    center = tuple(data.mean.tolist())
    spec = ss.SketchSpec(data.d, m, share * data.radius, seed=seed, center=center)
    sketch = ss.sketch(data.X, spec)
    decoding, seconds = timed(lambda: decode(sketch, data.k, seed))
    centroids = decoding.centroids
    if not len(centroids):  # no start felt any data: as good as the mean
        centroids = data.mean[None, :]
    return Found(np.asarray(centroids), seconds, sketch.nbytes)


def sketch_and_shift(n_initializations: int, refine: bool) -> Decode:
    """Algorithm 2 with T = 2 k atoms."""

    def decode(sketch: ss.Sketch, k: int, seed: int) -> ss.Decoding:
        decoder = ss.SketchAndShift(
            n_atoms=2 * k, n_initializations=n_initializations, refine=refine
        )
        return decoder(sketch, k, seed=seed)

    return decode


def cl_ompr(sketch: ss.Sketch, k: int, seed: int) -> ss.Decoding:
    """CL-OMPR, the best residual of three whole runs."""
    return ss.ClOmpr(n_restarts=3)(sketch, k, seed=seed)
