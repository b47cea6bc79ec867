"""Clusters of the slices of a subject for any k, from one fit of each slice.

A fit takes most of the time and serves every number of clusters, so that it is kept: moving k
costs a k-means of its points, and going back costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchshift.decoders import Decoding, KCurve, decode
from sketchshift.decoders.base import Problem, one_blas_thread
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.decoders.fitted import Fitted, fit_sketch
from sketchshift.errors import DataError
from sketchshift.report.kept import Kept
from sketchshift.report.subject import Subject
from sketchshift.sketch import AnySketch

__all__ = ["Fits"]

MOST_BYTES = 2**27
"""Of the fits that are kept, and of the decodings."""

Check = Callable[[], None]


class Fits:
    """Decodings of the slices of a subject.

    The same as ``decode_range(sketch, [k, max_clusters], seed=seed)[0]``, to the bit.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    max_clusters : int or None
        The largest k. None takes what the sketch can serve.
    seed : int, default=0
        Of the decoder.
    """

    def __init__(self, subject: Subject, max_clusters: int | None = None, *, seed: int = 0) -> None:
        self.subject, self.seed = subject, seed
        most = most_clusters(subject.whole.spec, max_clusters)
        self.max_clusters = max(1, min(most, subject.whole.count))
        self._fits, self._decodings, self._curves = (Kept(MOST_BYTES) for _ in range(3))

    def decoding(self, choice: int, k: int, check: Check) -> Decoding:
        """The k clusters of the rows of a choice.

        Parameters
        ----------
        choice : int
            Number of a choice of the subject.
        k : int
            From 1 to ``max_clusters``.
        check : callable
            Called between fits; what it raises ends the computation.

        Returns
        -------
        decoding : Decoding
            Kept for the next time.
        """
        found: Decoding = self._decodings.get((choice, k), lambda: self._decode(choice, k, check))
        return found

    def room(self, choice: int, check: Check) -> int:
        """How many fits of the size of this one are kept at once."""
        fitted = self._fitted(choice, check)
        return 1 if fitted is None else max(1, MOST_BYTES // _size(fitted))

    def curve(self, choice: int, check: Check) -> KCurve | None:
        """Residuals for each number of clusters; of equal rows there is nothing to say."""
        found: KCurve | None = self._curves.get(choice, lambda: self._curve(choice, check))
        return found

    @one_blas_thread
    def _decode(self, choice: int, k: int, check: Check) -> tuple[Decoding, int]:
        sketch = self._sketch(choice)
        if sketch.count < k:
            rows = f"{sketch.about}{sketch.count} rows"
            msg = f"there are {rows}, too few for {k} clusters. Ask for fewer."
            raise DataError(msg)
        fitted = self._fitted(choice, check)
        found = decode(sketch, k) if fitted is None else fitted.decode(k)
        covariances = found.covariances
        return found, found.centroids.nbytes + (0 if covariances is None else covariances.nbytes)

    @one_blas_thread
    def _curve(self, choice: int, check: Check) -> tuple[KCurve | None, int]:
        fitted = self._fitted(choice, check)
        return (None, 0) if fitted is None else (fitted.decode_auto(self.max_clusters).curve, 0)

    def _fitted(self, choice: int, check: Check) -> Fitted | None:
        found: Fitted | None = self._fits.get(choice, lambda: self._fit(choice, check))
        return found

    def _fit(self, choice: int, check: Check) -> tuple[Fitted | None, int]:
        """None for rows that are all equal."""
        problem = Problem.of(self._sketch(choice), self.max_clusters, None, self.seed, "decode")
        if not np.trace(problem.outline[1]) > 0.0:
            return None, 0
        fitted = fit_sketch(problem, self.max_clusters, self.seed, lambda _: check())
        return fitted, _size(fitted)

    def _sketch(self, choice: int) -> AnySketch:
        return self.subject.sketch_of(self.subject.choices[choice])


def _size(fitted: Fitted) -> int:
    """Bytes of the points, which are most of a fit."""
    return fitted.reconstruction.points.nbytes
