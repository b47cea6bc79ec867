r"""Sliding Frank-Wolfe, for comparison (Denoyelle, Duval, Peyre and Soubies 2020).

Takes a ``Sketch``; hands a ``Decoding`` to everybody. The clusters are those of the BLASSO, a
convex problem over all positive measures on the domain:

.. math::

    \min_{\mu \ge 0} \tfrac12 \|z - \mathcal A \mu\|^2 + \lambda\, \mu(\Theta)

Its solution is known by its certificate, :math:`\eta = f_r / \lambda` with r the residual: at most
1 on the domain, and 1 on the support.

Symbols
-------
lambda    penalty of the total mass
mu        a positive measure: a mixture of Diracs
eta       the certificate, a correlation function
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sketchshift import Decoding
from sketchshift.decoders import (
    Correlation,
    Mixture,
    Outcome,
    Problem,
    Step,
    draw_starts,
    fewest_points,
)
from sketchshift.decoders.paper.climb import SketchedMeanShift
from sketchshift.decoders.paper.refine import (
    GreedyDecoder,
    choose,
    merge_nearest,
    nonnegative_weights,
    penalised_square,
    reduce_support,
    refine,
)
from sketchshift.errors import SpecError

__all__ = ["Blasso", "Slide", "SlidingFrankWolfe"]

FloatArray: TypeAlias = NDArray[np.float64]
Progress: TypeAlias = Callable[[Any], None]
_FALL = 0.5  # ratio of a penalty to the one before
_LAST = 1e-3  # share of the largest penalty at which a path ends: below, eta would be rounding
_LIGHT = 1e-6  # share of the mass below which an atom is pruned
_PER_CLUSTER = 2  # atoms at which a path ends, as T = 2 k of Algorithm 2
_EXPLAINED = 0.4  # relative residual from which on the data may be a few points


@dataclass(frozen=True, eq=False)
class Slide(Step):
    """One atom of the trace, after all atoms have slid.

    Attributes
    ----------
    index, total, centroid, correlation, residual_norm
        See :class:`Step`; the centroid is where the atom was put, before it slid.
    penalty : float
        Lambda.
    certificate : float
        The maximum of eta that the atom was put at; above 1, or the search would have ended.
    objective : float
        Of the BLASSO, with this atom: it falls from step to step.
    n_atoms : int
        Atoms that have a weight.
    """

    penalty: float
    certificate: float
    objective: float
    n_atoms: int


@dataclass(frozen=True, eq=False)
class Blasso:
    """The convex problem with one penalty.

    Parameters
    ----------
    problem : Problem
        The sketch and the domain.
    penalty : float
        Lambda, positive.
    """

    problem: Problem
    penalty: float

    def objective(self, mixture: Mixture) -> float:
        """Half of the squared residual, and the penalty: O(k m d)."""
        return penalised_square(self.problem, mixture, self.penalty) / 2.0

    def certificate(self, mixture: Mixture) -> Correlation:
        """Eta: the mixture is a solution if that is at most 1, and 1 where its atoms are."""
        problem = self.problem
        return problem.correlation((problem.z - problem.sketch_of(mixture)) / self.penalty)

    def weigh(self, support: FloatArray) -> Mixture:
        """The best weights of atoms that stay in place: a non-negative LASSO."""
        problem = self.problem
        weights = nonnegative_weights(
            problem.atoms(Mixture(np.ones(len(support)), support)),
            problem.z,
            problem.frequency_weights,
            penalty=self.penalty,
        )
        return _prune(Mixture(weights, support))

    def slide(self, mixture: Mixture) -> Mixture:
        """The joint descent in weights and places, then the best weights at these places."""
        return self.weigh(refine(self.problem, mixture, penalty=self.penalty).means)


def _prune(mixture: Mixture) -> Mixture:
    heavy = mixture.weights > _LIGHT * (mixture.weights.sum() or 1.0)
    return choose(mixture, np.flatnonzero(heavy))


@dataclass(frozen=True)
class SlidingFrankWolfe(GreedyDecoder):
    r"""Sliding Frank-Wolfe on the BLASSO: a convex problem whose solution is certified.

    Looks for the highest place of the certificate :math:`\eta`, adds an atom there, fits the
    weights (LASSO), and lets all atoms slide, weights and places at once; ends when
    :math:`\max \eta \le 1` but for the tolerance. The k clusters are merged from the atoms of a
    solution by Ward's rule: atoms share a cluster evenly, and one may have none of the k
    heaviest.

    Parameters
    ----------
    penalty : float or None
        :math:`\lambda`, as a share of the least one that leaves no atom at all,
        :math:`\max f_z`. None starts at a half and goes on halving it, from each solution to the
        next, until one has 2 k atoms. A single penalty may leave fewer than k; one below 0.001,
        where paths end as well, is refused: atoms would be added to the last, and none certified.
    tolerance : float
        How far above 1 the certificate may be.
    n_iterations : int or None
        Atoms tried in all, at most; None is 8 k.
    n_initializations : int
        L, the number of starts of each climb.
    starts : {"normal", "uniform"}
        Law of the starts: normal with the sketch's own mean and covariance, or uniform in the
        domain.
    refine : bool
        Joint descents without penalty, before and after the atoms are merged: places are then free
        of the pull of the penalty.
    domain : Box or None
        Where to look, in the units of the data; None is the mean plus or minus three standard
        deviations of the sketch itself.

    Notes
    -----
    A climb, O(L m d) a step, and a joint descent, O(T m d) an iteration, for each atom tried. The
    maximum of the certificate is that of L climbs: a narrow peak that no start finds is missed.

    References
    ----------
    Denoyelle, Duval, Peyre and Soubies, *The sliding Frank-Wolfe algorithm and its application to
    super-resolution microscopy*, Inverse Problems 36, 2020.
    """

    penalty: float | None = None
    tolerance: float = 0.01
    n_iterations: int | None = None
    n_initializations: int = 1000
    starts: str = "normal"
    refine: bool = False

    def _decode(self, problem: Problem, k: int, seed: int, progress: Progress | None) -> Decoding:
        search = _Search(self, problem, k, seed)
        mixture = search.run(k, progress)
        n = mixture.n_components
        if n < _PER_CLUSTER * k and problem.residual_norm(mixture) < _EXPLAINED:
            points = fewest_points(problem, mixture, k)
            if points is not None:
                return problem.decoding(points, Outcome.EMPTY_RESIDUAL, search.trace)
        if self.refine:
            mixture = reduce_support(problem, mixture, k)
        elif n > k:
            mixture = merge_nearest(mixture, k)
        outcome = Outcome.COMPLETE if n >= k else Outcome.FLAT_CORRELATION
        return problem.decoding(mixture, outcome, search.trace)


class _Search:
    """The measure while its atoms are found."""

    def __init__(self, decoder: SlidingFrankWolfe, problem: Problem, k: int, seed: int) -> None:
        if decoder.penalty is not None and not _LAST <= decoder.penalty <= 1.0:
            msg = (
                "the 'penalty' of SlidingFrankWolfe is a share of the largest, "
                f"{decoder.penalty!r}. Give a number from {_LAST:g} to 1."
            )
            raise SpecError(msg)
        self._most = 8 * k if decoder.n_iterations is None else decoder.n_iterations
        self._decoder, self._problem, self._seed = decoder, problem, seed
        self._n_climbs = 0
        self._pool = np.empty((0, len(problem.turns)))
        self.trace: list[Slide] = []

    def run(self, k: int, progress: Progress | None) -> Mixture:
        """The solution for the penalty asked for, or the first with 2 k atoms."""
        problem, share = self._problem, self._decoder.penalty
        mixture = Mixture(np.empty(0), np.empty((0, len(problem.turns))))
        _, largest = self._maximise(problem.correlation(problem.z))
        if not largest > 0:
            return mixture
        if share is not None:
            return self._solve(Blasso(problem, share * largest), mixture, progress)
        share = _FALL
        while share >= _LAST and len(self.trace) < self._most:
            mixture = self._solve(Blasso(problem, share * largest), mixture, progress)
            if mixture.n_components >= _PER_CLUSTER * k:
                break
            share *= _FALL
        return mixture

    def _solve(self, blasso: Blasso, mixture: Mixture, progress: Progress | None) -> Mixture:
        """The solution for one penalty, from that of another."""
        mixture = blasso.slide(mixture) if mixture.n_components else mixture
        while len(self.trace) < self._most:
            c, height = self._maximise(blasso.certificate(mixture))
            if height <= 1.0 + self._decoder.tolerance:
                break
            mixture = blasso.slide(blasso.weigh(np.vstack([mixture.means, c])))
            self.trace.append(self._step(blasso, mixture, c, height))
            if progress is not None:
                progress(self.trace[-1])
        return mixture

    def _maximise(self, eta: Correlation) -> tuple[FloatArray, float]:
        """The highest place reached, and its height.

        Places of the climb before that are still above 1 are climbed on from, so that none of them
        is lost; all others are drawn anew.
        """
        decoder, problem = self._decoder, self._problem
        fresh = draw_starts(
            problem.sketch,
            decoder.n_initializations,
            self._seed,
            box=problem.box,
            kind=decoder.starts,
            first=self._n_climbs * decoder.n_initializations,
        )
        if self._n_climbs:
            fresh = np.where(eta(self._pool)[:, None] > 1.0, self._pool, fresh)
        self._n_climbs += 1
        self._pool, heights = SketchedMeanShift()(eta, fresh, problem.box, problem.bandwidth)
        best = int(np.argmax(heights))
        return self._pool[best], float(heights[best])

    def _step(self, blasso: Blasso, mixture: Mixture, c: FloatArray, height: float) -> Slide:
        problem = self._problem
        return Slide(
            len(self.trace) + 1,
            self._most,
            problem.in_units(c),
            height * blasso.penalty,
            problem.residual_norm(mixture),
            blasso.penalty,
            height,
            blasso.objective(mixture),
            mixture.n_components,
        )
