"""A picture of how the number of clusters was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.choose_k import TOLERANCE
from sketchshift.plots.columns import counted
from sketchshift.plots.correlation import new_axes
from sketchshift.plots.looks import legend_above, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["k_curve"]

RULE = f"first within {100 * (TOLERANCE - 1):.2g} % of the best"
"""How the legend says which k is chosen."""

DEEPEST = 1e-6
"""Residuals below this share of the largest are drawn there: a logarithmic axis has no zero."""


def k_curve(decoding: Decoding, ax: Axes | None = None) -> Axes:
    """Draw score and residual against the number of clusters, with the chosen one marked.

    Parameters
    ----------
    decoding : Decoding
        Of ``decode(sketch, n_clusters="auto")``.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
        With a logarithmic axis of residuals.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.plots import k_curve
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0], [0.0, 3.0]], 50, axis=0)
    >>> decoding = ss.decode(ss.sketch(X, n_clusters=5), n_clusters="auto")
    >>> k_curve(decoding, Figure().subplots()).get_title()
    '3 clusters, of 1 to 3 tried'
    """
    curve = decoding.curve
    if curve is None:
        must = 'a Decoding with a curve, that of decode(sketch, n_clusters="auto")'
        raise parameter_error("k_curve", "decoding", must, decoding)
    ax = new_axes(ax)
    from matplotlib.ticker import MaxNLocator

    k, score, residual = curve.n_clusters, _shown(curve.score), _shown(curve.residual)
    size = 4 if len(k) <= 40 else 2
    ax.plot(
        k, residual, "s--", color="#c05a1a", markersize=size, markerfacecolor="white",
        linewidth=1, label="residual norm",
    )  # fmt: skip
    ax.plot(k, score, "o-", color="black", markersize=size, label="score")
    at = curve.chosen - 1
    ax.axvline(curve.chosen, color="black", linestyle=":", linewidth=1)
    ax.plot(
        k[at], score[at], "o", color="black", markersize=13, markerfacecolor="none",
        markeredgewidth=2, label=f"chosen: {curve.chosen}, {RULE}",
    )  # fmt: skip
    logarithmic(ax, [*score, *residual])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(
        xlabel="number of clusters",
        ylabel="residual norm, of the sketch's",
        title=f"{counted(curve.chosen, 'cluster')}, of 1 to {len(k)} tried",
    )
    legend_above(ax, ax.get_legend_handles_labels()[0])
    return ax


def _shown(values: FloatArray) -> FloatArray:
    return np.maximum(values, DEEPEST * (float(values.max()) or 1.0))
