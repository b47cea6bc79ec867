"""CL-OMPR, the rival: Algorithms 1 and 3 of the paper (Keriven et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_choice, check_flag, check_integer
from sketchshift.decoders.decoder import Decoding, Outcome, Progress, Step
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Correlation, draw_starts
from sketchshift.decoders.paper.refine import (
    GreedyDecoder,
    hard_threshold,
    nonnegative_weights,
    refine,
)
from sketchshift.decoders.points import fewest_points
from sketchshift.decoders.problem import Problem

__all__ = ["ClOmpr"]


@dataclass(frozen=True)
class ClOmpr(GreedyDecoder):
    """Compressive-learning orthogonal matching pursuit with replacement.

    Parameters
    ----------
    n_iterations : int or None
        Atoms tried in all; None is 2 k, as published.
    n_initializations : int
        Random starts of each search for an atom.
    n_restarts : int
        Whole runs; that with the lowest residual is kept.
    starts : {"uniform", "normal"}
        Law of the starts; uniform in the domain, as published.
    fine_tuning : bool
        Step 5, the joint descent over all centroids and weights after every atom. It is part of
        the algorithm; without it one sees what it is worth.
    repairs : bool
        Stop when nothing is left of the sketch, and try whether a few points explain it all;
        without, all iterations are run, as published.
    domain : Box or None
        Where to look, in the units of the data; None is the mean plus or minus three standard
        deviations of the sketch itself.

    Notes
    -----
    2 k joint descents, O(k m d) for each of their iterations; none without fine tuning.
    """

    n_iterations: int | None = None
    n_initializations: int = 1
    n_restarts: int = 1
    starts: str = "uniform"
    fine_tuning: bool = True
    repairs: bool = True

    def _decode(self, problem: Problem, k: int, seed: int, progress: Progress | None) -> Decoding:
        check_integer("ClOmpr", "n_restarts", self.n_restarts, 1, 10**6)
        check_integer("ClOmpr", "n_initializations", self.n_initializations, 1, 10**7)
        check_choice("ClOmpr", "starts", self.starts, ("normal", "uniform"))
        check_flag("ClOmpr", "fine_tuning", self.fine_tuning)
        check_flag("ClOmpr", "repairs", self.repairs)
        runs = [
            self._run(problem, k, seed, restart, progress) for restart in range(self.n_restarts)
        ]
        return min(runs, key=lambda run: cast("Step", run.trace[-1]).residual_norm)

    def _run(
        self, problem: Problem, k: int, seed: int, restart: int, progress: Progress | None
    ) -> Decoding:
        n_iterations = 2 * k if self.n_iterations is None else self.n_iterations
        check_integer("ClOmpr", "n_iterations", n_iterations, k, 10**6)
        residual, trace = problem.z, list[Step]()
        mixture = Mixture(np.empty(0), np.empty((0, len(problem.turns))))
        for t in range(n_iterations):
            f = problem.correlation(residual)
            first = (restart * n_iterations + t) * self.n_initializations
            starts = draw_starts(
                problem.sketch,
                self.n_initializations,
                seed,
                box=problem.box,
                kind=self.starts,
                first=first,
            )
            c, value = _maximise(f, starts, problem)
            mixture = _replace(problem, np.vstack([mixture.means, c]), k)
            if self.fine_tuning:
                mixture = refine(problem, mixture)
            residual = problem.z - problem.sketch_of(mixture)
            trace.append(problem.step(t + 1, n_iterations, c, value, residual))
            if progress is not None:
                progress(trace[-1])
            if self.repairs and trace[-1].residual_norm < problem.empty:
                points = fewest_points(problem, mixture, k)
                if points is not None:
                    return problem.decoding(points, Outcome.EMPTY_RESIDUAL, trace)
                break
        return problem.decoding(mixture, Outcome.COMPLETE, trace)


def _replace(problem: Problem, support: FloatArray, k: int) -> Mixture:
    """Steps 3 and 4: hard thresholding when there are more than k atoms, then the weights."""
    mixture = Mixture(np.ones(len(support)), support, None)
    atoms = problem.atoms(mixture)
    of_frequencies = problem.frequency_weights
    if len(support) > k:  # Fourier atoms all have one norm: normalising them changes nothing
        weights = nonnegative_weights(atoms, problem.z, of_frequencies)
        keep = np.sort(hard_threshold(weights, k))
        support, atoms = support[keep], atoms[keep]
    return Mixture(nonnegative_weights(atoms, problem.z, of_frequencies), support, None)


def _maximise(f: Correlation, starts: FloatArray, problem: Problem) -> tuple[FloatArray, float]:
    """Step 1: the highest place that L-BFGS-B reaches from the starts, within the bounds."""
    from scipy.optimize import minimize

    bandwidth = problem.bandwidth

    def minus(x: FloatArray) -> tuple[float, FloatArray]:
        values, gradients = f.value_and_gradient(x * bandwidth)
        return -float(values[0]), -gradients[0] * bandwidth

    bounds = list(zip(problem.box.lower / bandwidth, problem.box.upper / bandwidth, strict=True))
    results = [
        minimize(minus, start / bandwidth, jac=True, method="L-BFGS-B", bounds=bounds)
        for start in starts
    ]
    best = min(results, key=lambda result: float(result.fun))
    return np.asarray(best.x) * bandwidth, -float(best.fun)
