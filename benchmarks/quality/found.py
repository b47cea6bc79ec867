"""What a method gives back, and how it is judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist


@dataclass(frozen=True, eq=False)
class Found:
    """Centroids, the seconds they took, and the bytes they were found in.

    Seconds are those of the last step alone: decoding, or k-means of the rows that were kept.
    """

    centroids: np.ndarray
    seconds: float
    n_bytes: int


def timed(compute: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and its seconds."""
    start = time.perf_counter()
    result = compute()
    return result, time.perf_counter() - start


def centroid_index(centroids: np.ndarray, truth: np.ndarray) -> int:
    """Number of clusters missed (Franti, Rezaei and Zhao 2014).

    Each centroid of one set goes to its nearest of the other; those of the other that none
    came to are orphans. The larger number of orphans of the two directions; 0 is right.
    """
    distances = cdist(centroids, truth)
    missed = len(truth) - len(np.unique(distances.argmin(axis=1)))
    superfluous = len(centroids) - len(np.unique(distances.argmin(axis=0)))
    return int(max(missed, superfluous))
