"""The bandwidth for a spec made by hand: draw a sample of any data, and apply a rule to it.

Takes a source from ``data``; the rules are those of ``features.bandwidth``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchshift._validation import check_choice, check_integer
from sketchshift.data import Access, Block, open_source
from sketchshift.data.sampling import draw_head, draw_rows
from sketchshift.errors import InvalidRowsError
from sketchshift.features.bandwidth import MAX_ROWS, choose_bandwidth
from sketchshift.features.bandwidth_rules import BLOCKS, RULES

__all__ = ["bandwidth"]

NUMBERS = 2**24  # held of a sample of wide rows
FEWEST_ROWS = 100


def bandwidth(
    sample: Any,
    *,
    rule: str = "sketchshift",
    n_clusters: int | None = None,
    sketch_size: int = 500,
    seed: int = 0,
) -> float:
    r"""A bandwidth for ``SketchSpec``, from at most 10 000 rows of the data.

    - "sketchshift": :math:`0.9\, k^{-1/d}\, r_q`, with :math:`r_q^2` the total variance of the
      rows weighted by :math:`t(x) = \min(64, 1/2 + |x - \mu|^2 / 2 r_0^2)`, and :math:`r_0^2`
      that of the rows as they are. Best in our trials.
    - "regression": :math:`s \sqrt{d / 2.3}`, with s the width of a cluster, from the decay of
      small sketches with frequency (Keriven et al. 2018).
    - "entropy": where the moduli of a small sketch are spread most evenly over [0, 1] (Giffon
      & Gribonval 2022).

    Parameters
    ----------
    sample : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        The data itself, from all along which rows are drawn, or a sample across it. Of an
        iterator the first rows are used up.
    rule : {"sketchshift", "regression", "entropy"}
        How to choose.
    n_clusters : int or None
        Number k of clusters, for "sketchshift"; None takes 10. It matters in few dimensions.
    sketch_size : int, default=500
        Number of frequencies of the small sketches of "regression" and "entropy", at least 30.
    seed : int, default=0
        Of the rows drawn and of these frequencies.

    Returns
    -------
    bandwidth : float
        In the units of the data, for a spec with the law "gaussian". If all rows are drawn,
        a X + b has a times the bandwidth of X. Small sketches of n rows cost O(n m d) each.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> spec = ss.SketchSpec(2, sketch_size=100, bandwidth=ss.bandwidth(X, n_clusters=5))
    >>> round(spec.bandwidth, 1)
    0.7
    """
    check_choice("bandwidth", "rule", rule, RULES)
    if n_clusters is not None:
        n_clusters = check_integer("bandwidth", "n_clusters", n_clusters, 1, 2**31)
    sketch_size = check_integer("bandwidth", "sketch_size", sketch_size, BLOCKS, 10**6)
    seed = check_integer("bandwidth", "seed", seed, 0, 2**64 - 1)
    source = open_source(sample)
    n_rows = min(MAX_ROWS, max(FEWEST_ROWS, NUMBERS // source.n_features))
    if source.access is Access.ONCE:
        drawn, _, _ = draw_head(source, n_rows, seed=seed, keep=_all_finite)
    else:
        drawn = draw_rows(source, n_rows, seed=seed, keep=_all_finite)
    return choose_bandwidth(
        drawn.values, rule=rule, n_clusters=n_clusters, sketch_size=sketch_size, seed=seed
    )


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
