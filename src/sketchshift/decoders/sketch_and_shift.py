"""The paper's decoder: Algorithm 2, all starts in one batch.

Takes a ``Sketch``; hands a ``Decoding`` to everybody. How to climb is ``local_maximum``'s
business, what an atom is ``fitted_model``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_choice, check_flag, check_integer, parameter_error
from sketchshift.decoders.base import Problem
from sketchshift.decoders.decoding import Decoding, Outcome, Progress, Step
from sketchshift.decoders.fewest_points import fewest_points
from sketchshift.decoders.fitted_model import FITTED_MODELS, FittedModel, GaussianModel
from sketchshift.decoders.greedy import GreedyDecoder
from sketchshift.decoders.local_maximum import LOCAL_MAXIMA, GetLocalMaximum
from sketchshift.decoders.reduce_support import reduce_support
from sketchshift.decoders.weights import choose, hard_threshold, nonnegative_weights
from sketchshift.mixtures import Mixture
from sketchshift.objective import CorrelationFunction, draw_starts

__all__ = ["SketchAndShift"]

_CALLER = "SketchAndShift"
_EXPLAINED = 0.4  # relative residual from which on the data may be a few points


@dataclass(frozen=True)
class SketchAndShift(GreedyDecoder):
    """Algorithm 2 of the paper: climb the residual's correlation, T times; keep the k heaviest.

    Parameters
    ----------
    n_atoms : int or None
        T, the number of atoms looked for; None is 2 k.
    n_initializations : int
        L, the number of starts of each climb.
    fitted_model : {"dirac", "gaussian"} or FittedModel
        What an atom is; "gaussian" needs a sketch with one bandwidth.
    local_maximum : {"sketched_mean_shift", "discretized", "gradient_ascent"} or GetLocalMaximum
        How to climb.
    starts : {"normal", "uniform"}
        Law of the starts: normal with the sketch's own mean and covariance, or uniform in the
        domain as in the paper.
    reuse_starts : bool
        Go on from where the starts of the last atom arrived, new ones only in place of those
        that reached it: several times faster than the paper's fresh starts.
    refine : bool
        A joint descent over all atoms, which are then merged to k, and one over these, instead
        of hard thresholding; not in the paper.

    Notes
    -----
    O(T L m d) time for each step of the climb, less for starts that have arrived; a joint
    descent takes O(T m d) an iteration, O(T m d^2) for Gaussians.
    """

    n_atoms: int | None = None
    n_initializations: int = 1000
    fitted_model: str | FittedModel = "dirac"
    local_maximum: str | GetLocalMaximum = "sketched_mean_shift"
    starts: str = "normal"
    reuse_starts: bool = True
    refine: bool = False

    def _decode(self, problem: Problem, k: int, seed: int, progress: Progress | None) -> Decoding:
        n_atoms = 2 * k if self.n_atoms is None else self.n_atoms
        check_integer(_CALLER, "n_atoms", n_atoms, k, 10**6)
        is_refined = check_flag(_CALLER, "refine", self.refine)
        search = _Search(self, problem, n_atoms, seed)
        outcome = search.run(progress)
        if search.trace and search.trace[-1].residual_norm < _EXPLAINED:
            points = fewest_points(problem, search.mixture(), k)
            if points is not None:
                return problem.decoding(points, Outcome.EMPTY_RESIDUAL, search.trace)
        mixture = search.mixture()
        if is_refined:
            mixture = reduce_support(problem, mixture, k)
        else:
            mixture = choose(mixture, hard_threshold(search.shares(), k))
        if mixture.n_components == k:
            outcome = Outcome.COMPLETE
        return problem.decoding(mixture, outcome, search.trace)


class _Search:
    """The support while it grows: step 1 of the algorithm."""

    def __init__(self, decoder: SketchAndShift, problem: Problem, n_atoms: int, seed: int) -> None:
        check_integer(_CALLER, "n_initializations", decoder.n_initializations, 1, 10**7)
        check_choice(_CALLER, "starts", decoder.starts, ("normal", "uniform"))
        check_flag(_CALLER, "reuse_starts", decoder.reuse_starts)
        self._climb: Any = _named("local_maximum", decoder.local_maximum, LOCAL_MAXIMA)
        self._model: Any = _named("fitted_model", decoder.fitted_model, FITTED_MODELS)
        if isinstance(self._model, GaussianModel):
            self._model.check(problem.sketch.spec)
        self._decoder, self._problem, self._n_atoms, self._seed = decoder, problem, n_atoms, seed
        self._support: list[FloatArray] = []
        self._covariances: list[FloatArray | None] = []
        self._atoms = np.empty((0, len(problem.z)), dtype=complex)
        self.weights: FloatArray = np.empty(0)
        self.trace: list[Step] = []

    def run(self, progress: Progress | None) -> Outcome:
        """Look for the atoms one after the other; say how it ended."""
        problem = self._problem
        of_sketch = CorrelationFunction(problem.turns, problem.z)
        residual, pool = problem.z, self._draw(0)
        for i in range(self._n_atoms):
            f = CorrelationFunction(problem.turns, residual)
            places, values = self._climb(f, pool, problem.box, problem.bandwidth)
            best = int(np.argmax(values))
            if not values[best] > 0:
                return Outcome.FLAT_CORRELATION
            self._expand(places[best], self._model(of_sketch, places[best], problem.bandwidth))
            self.weights = nonnegative_weights(self._atoms, problem.z)
            residual = problem.z - self.weights @ self._atoms
            step = problem.step(i + 1, self._n_atoms, places[best], values[best], residual)
            self.trace.append(step)
            if progress is not None:
                progress(step)
            if step.residual_norm < problem.empty:
                return Outcome.EMPTY_RESIDUAL
            pool = self._next_pool(i + 1, places, places[best])
        return Outcome.COMPLETE

    def mixture(self) -> Mixture:
        """All components found so far."""
        d = len(self._problem.turns)
        covariances = None
        if any(covariance is not None for covariance in self._covariances):
            zero = np.zeros((d, d))
            covariances = np.array([zero if c is None else c for c in self._covariances])
        return Mixture(self.weights, np.array(self._support).reshape(-1, d), covariances)

    def shares(self) -> FloatArray:
        """Weights times the norms of the atoms: what each adds to the sketch.

        A Dirac's is its weight. A Gaussian far wider than the kernel hardly shows in the sketch,
        whatever its weight; Algorithm 3, too, normalises atoms before it thresholds.
        """
        return np.asarray(self.weights * np.linalg.norm(self._atoms, axis=1))

    def _expand(self, c: FloatArray, covariance: FloatArray | None) -> None:
        component = Mixture(np.ones(1), c[None], None if covariance is None else covariance[None])
        self._support.append(c)
        self._covariances.append(covariance)
        self._atoms = np.concatenate([self._atoms, component.sketch(self._problem.turns)[None]])

    def _draw(self, i: int) -> FloatArray:
        decoder, problem = self._decoder, self._problem
        n, kind = decoder.n_initializations, decoder.starts
        return draw_starts(problem.sketch, n, self._seed, box=problem.box, kind=kind, first=i * n)

    def _next_pool(self, i: int, places: FloatArray, c: FloatArray) -> FloatArray:
        """Starts of the next climb: new ones, or the old ones but for those that arrived at c."""
        fresh = self._draw(i)
        if not self._decoder.reuse_starts:
            return fresh
        arrived = ((places - c) ** 2).sum(axis=1) < self._problem.bandwidth**2
        return np.where(arrived[:, None], fresh, places)


def _named(parameter: str, value: Any, choices: dict[str, Any]) -> Any:
    """An object, or the one of that name."""
    if isinstance(value, str):
        return choices[check_choice(_CALLER, parameter, value, choices)]()
    if isinstance(value, type) or not callable(value):
        must = f"one of {', '.join(map(repr, choices))}, or an object that does the same"
        raise parameter_error(_CALLER, parameter, must, value)
    return value
