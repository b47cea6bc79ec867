"""The one bandwidth that the paper's sketch needs, from a few rows.

The rows are moved and scaled to mean 0 and total variance 1 first, so that the bandwidth grows with
the data and does not move with it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer
from sketchshift.data import Access, Block, open_source
from sketchshift.data.sample import draw_head, draw_rows
from sketchshift.errors import DataError, InvalidRowsError
from sketchshift.sketch.plan import refuse_no_vectors

__all__ = ["MAX_ROWS", "bandwidth"]

MAX_ROWS = 10_000
"""More rows are not needed."""

_NUMBERS = 2**24  # held of a sample of wide rows
_FEWEST = 100
_CLUSTERS = 10  # where their number is not given
_SHARE = 0.9  # of the radius, for one cluster: docs/bandwidth.md has the measurements
_CAP = 64.0  # of the weight of a far row
_CONSTANT = 1e-13  # a deviation below this share of the largest number is rounding
_LOWEST, _HIGHEST = 1e-20, 1e20  # what a spec takes


def bandwidth(sample: Any, *, n_clusters: int | None = None, seed: int = 0) -> float:
    r"""A bandwidth for ``SketchSpec``, from at most 10 000 rows of the data.

    It is :math:`0.9\, k^{-1/d}\, r_q`, with :math:`r_q^2` the total variance of the rows weighted
    by :math:`\min(64, 1/2 + |x - \mu|^2 / 2 r_0^2)`, and :math:`r_0^2` that of the rows as they
    are.

    Parameters
    ----------
    sample : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        The data itself, from all along which rows are drawn, or a sample across it. Of an
        iterator the first rows are used up.
    n_clusters : int or None
        Number k of clusters; None takes 10. It matters in few dimensions.
    seed : int, default=0
        Of the rows drawn.

    Returns
    -------
    bandwidth : float
        In the units of the data, for a spec with the law "gaussian". If all rows are drawn,
        a X + b has a times the bandwidth of X. O(n d).

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> spec = ss.SketchSpec(2, sketch_size=100, bandwidth=ss.decoders.bandwidth(X, n_clusters=5))
    >>> round(spec.waves.bandwidth, 1)
    0.7
    """
    k = _CLUSTERS
    if n_clusters is not None:
        k = check_integer("bandwidth", "n_clusters", n_clusters, 1, 2**31)
    seed = check_integer("bandwidth", "seed", seed, 0, 2**64 - 1)
    source = open_source(sample)
    refuse_no_vectors(source)
    n_rows = min(MAX_ROWS, max(_FEWEST, _NUMBERS // source.n_features))
    if source.access is Access.ONCE:
        drawn, _, _ = draw_head(source, n_rows, seed=seed, keep=_all_finite)
    else:
        drawn = draw_rows(source, n_rows, seed=seed, keep=_all_finite)
    rows, r0 = _normalised(drawn.values)
    weights = np.minimum(_CAP, 0.5 + 0.5 * np.einsum("ij,ij->i", rows, rows))
    shares = weights / weights.sum()
    rq = math.sqrt(shares @ np.square(rows - shares @ rows).sum(axis=1))
    chosen = r0 * _SHARE * float(k ** (-1.0 / source.n_features)) * rq
    if not _LOWEST <= chosen <= _HIGHEST:
        msg = (
            f"the rows vary by {r0:.3g}, which makes a bandwidth of {chosen:.3g}, and a spec "
            f"takes {_LOWEST:g} to {_HIGHEST:g}. Multiply the data by a constant."
        )
        raise DataError(msg)
    return chosen


def _all_finite(block: Block) -> None:
    """All rows may be drawn, or an exception names the first that may not."""
    is_finite = np.isfinite(block.values).all(axis=1)
    if not is_finite.all():
        row = block.first_row + int(np.argmin(is_finite))
        msg = (
            f"row {row} of {block.source} holds NaN or infinity (the first row is 0), and a "
            "bandwidth is chosen by distances. Leave such rows out of the sample."
        )
        raise InvalidRowsError(msg)


def _normalised(rows: FloatArray) -> tuple[FloatArray, float]:
    """Rows with mean 0 and total variance 1, and the root of their own."""
    n, largest = len(rows), float(np.abs(rows).max(initial=0.0))
    spread = 0.0
    if largest > 0.0:
        rows = rows / largest  # their squares do not overflow
        rows = rows - rows.mean(axis=0)
        spread = math.sqrt(np.square(rows).sum() / n)
    if spread <= _CONSTANT:
        fact = {0: "there are no rows", 1: "there is one row"}.get(n, f"all {n} rows are equal")
        msg = (
            f"{fact}, so there are no distances to choose a bandwidth by. Take a sample across "
            "the data, or give the bandwidth yourself."
        )
        raise DataError(msg)
    return rows / spread, spread * largest
