"""What a method is given, what it gives back, and how that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows X to be put into k clusters, from a summary of so many bytes.

    ``seen`` are the rows that a plan may look at before the pass.
    """

    X: np.ndarray
    seen: np.ndarray
    k: int
    sketch_size: int
    n_bytes: int
    seed: int

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.X.shape[1]


@dataclass(frozen=True, eq=False)
class Found:
    """Centroids, the bytes they were found in, and what else is kept of a run."""

    centroids: np.ndarray
    n_bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def centroid_index(centroids: np.ndarray, truth: np.ndarray) -> int:
    """Number of clusters missed (Franti, Rezaei and Zhao 2014).

    Each centroid of one set goes to its nearest of the other; those of the other that none
    came to are orphans. The larger number of orphans of the two directions; 0 is right.
    """
    distances = cdist(centroids, truth)
    missed = len(truth) - len(np.unique(distances.argmin(axis=1)))
    superfluous = len(centroids) - len(np.unique(distances.argmin(axis=0)))
    return int(max(missed, superfluous))
