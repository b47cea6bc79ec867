"""What the paper's decoders have in common: how they are called."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sketchshift.decoders.base import Problem, one_blas_thread
from sketchshift.decoders.decoding import Decoding, Progress
from sketchshift.objective import Box
from sketchshift.sketch import AnySketch

__all__ = ["GreedyDecoder"]


class GreedyDecoder(ABC):
    """Finds clusters in a sketch, one atom after the other."""

    @one_blas_thread
    def __call__(
        self,
        sketch: AnySketch,
        n_clusters: int,
        *,
        domain: Box | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Decoding:
        """Decode k clusters from a sketch.

        Parameters
        ----------
        sketch : Sketch or PrivateSketch
            Best taken with one bandwidth; of several, their geometric mean sets the steps.
        n_clusters : int
            k.
        domain : Box or None
            Where to look, in the units of the data; None is the mean plus or minus three
            standard deviations of the sketch itself.
        seed : int
            Of the starts. The same sketch and seed give the same bytes.
        progress : callable or None
            Called with a :class:`Step` after each atom.

        Returns
        -------
        decoding : Decoding
            Its centroids and shares of the rows; its outcome says how it ended.
        """
        problem = Problem.of(sketch, n_clusters, domain, seed, type(self).__name__)
        return self._decode(problem, n_clusters, seed, progress)

    @abstractmethod
    def _decode(
        self, problem: Problem, k: int, seed: int, progress: Progress | None
    ) -> Decoding: ...
