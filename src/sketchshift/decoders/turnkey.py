"""The turnkey decoder: centroids as good as those of k-means, with nothing to tune.

Gaussians, more than there are clusters, are fitted to the sketch several times; points drawn
from all good fits are weighted back from the tilt and given the exact moments; k-means of
these points gives the centroids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from sketchshift._validation import parameter_error
from sketchshift.decoders.base import MAX_CLUSTERS, Problem, one_blas_thread
from sketchshift.decoders.choose_k import curve_of_one_point, most_clusters
from sketchshift.decoders.decoding import Decoding, Outcome, Progress
from sketchshift.decoders.fitted import fit_sketch
from sketchshift.sketch import AnySketch

__all__ = ["decode", "decode_range"]


@one_blas_thread
def decode(
    sketch: AnySketch,
    n_clusters: int | Literal["auto"],
    *,
    max_clusters: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Decoding:
    """Centroids from a sketch alone, with nothing to tune.

    Works best on sketches taken with a :func:`~sketchshift.plan`, and on any other.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Of at least one row. Fits of a private sketch stop at its noise.
    n_clusters : int or "auto"
        Number k of clusters; not more than the plan was made for gives the best quality.
        "auto" chooses it, and tells how in ``decoding.curve``.
    max_clusters : int or None
        The largest k that "auto" looks at; None takes what the sketch can serve, m / (10 d),
        from 2 to 100.
    seed : int, default=0
        Of all starts. The same sketch and seed give the same bytes.
    progress : callable or None
        Called with a :class:`Round` after each fit.

    Returns
    -------
    decoding : Decoding
        Centroids, shares and covariances of the clusters. The residual is that of the fit, not
        of the centroids. O(k m d) an iteration, about a thousand of them; where that takes
        long (3 k m over 3 million), 3000 iterations of O(k d).

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.repeat([[0.0, 0.0], [1.0, 3.0]], [300, 100], axis=0)
    >>> X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    >>> decoding = ss.decode(ss.sketch(X, n_clusters=2), n_clusters=2)
    >>> decoding.centroids.round(2) + 0.0
    array([[0., 0.],
           [1., 3.]])
    >>> decoding.weights.round(3)
    array([0.75, 0.25])
    """
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            must = f'"auto" or an integer from 1 to {MAX_CLUSTERS}'
            raise parameter_error("decode", "n_clusters", must, n_clusters)
        return _decode_auto(sketch, max_clusters, seed, progress)
    if max_clusters is not None:
        must = "None unless n_clusters is 'auto'"
        raise parameter_error("decode", "max_clusters", must, max_clusters)
    return decode_range(sketch, [n_clusters], seed=seed, progress=progress)[0]


def _decode_auto(
    sketch: AnySketch, max_clusters: int | None, seed: int, progress: Progress | None
) -> Decoding:
    """Clusters whose number is chosen from the same fit that they are cut from."""
    problem = Problem.of(sketch, 1, None, seed, "decode")
    k = most_clusters(sketch.spec, max_clusters)
    if not np.trace(problem.outline[1]) > 0.0:
        return replace(_one_point(problem, 1), curve=curve_of_one_point())
    return fit_sketch(problem, k, seed, progress).decode_auto(k)


@one_blas_thread
def decode_range(
    sketch: AnySketch,
    n_clusters: Sequence[int],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Decoding, ...]:
    """Centroids for several numbers of clusters, from one fit.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Of at least one row.
    n_clusters : sequence of int
        The numbers k, in any order; the fit is made for the largest.
    seed : int, default=0
        Of all starts.
    progress : callable or None
        Called with a :class:`Round` after each fit.

    Returns
    -------
    decodings : tuple of Decoding
        In the order asked for. The cost is that of one :func:`decode` for the largest k, and
        of a k-means of 10 000 points for each.
    """
    numbers = list(n_clusters)
    if not numbers:
        raise parameter_error("decode_range", "n_clusters", "at least one integer", n_clusters)
    for k in numbers:
        problem = Problem.of(sketch, k, None, seed, "decode")
    if not np.trace(problem.outline[1]) > 0.0:
        return tuple(_one_point(problem, k) for k in numbers)
    fitted = fit_sketch(problem, max(numbers), seed, progress)
    return tuple(fitted.decode(k) for k in numbers)


def _one_point(problem: Problem, k: int) -> Decoding:
    """What there is to say of rows that are all equal."""
    outcome = Outcome.COMPLETE if k == 1 else Outcome.EMPTY_RESIDUAL
    centroid = problem.in_units(problem.outline[0])[None, :]
    return Decoding(centroid, np.ones(1), None, 0.0, outcome, ())
