"""The paper's decoder: Algorithm 2, all starts in one batch.

Takes a ``Sketch``; hands a ``Decoding`` to everybody. How to climb is ``local_maximum``'s
business, what an atom is ``fitted_model``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_choice, check_flag, check_integer, parameter_error
from sketchshift.decoders.decoder import Decoding, Outcome, Progress, Step
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Correlation, draw_starts
from sketchshift.decoders.paper.climb import LOCAL_MAXIMA, GetLocalMaximum
from sketchshift.decoders.paper.refine import (
    GreedyDecoder,
    choose,
    hard_threshold,
    nonnegative_weights,
    reduce_support,
)
from sketchshift.decoders.points import fewest_points
from sketchshift.decoders.problem import Problem
from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec

__all__ = [
    "FITTED_MODELS",
    "DiracModel",
    "FittedModel",
    "GaussianModel",
    "SketchAndShift",
    "estimate_sigma",
]

# The covariance of a cluster from the curvature of the correlation function (Appendix B).

_FLATTEST = 1e-6  # curvature, in inverse squared bandwidths, that float32 still tells from none


def estimate_sigma(
    correlation: Correlation, c: FloatArray, *, bandwidth: float
) -> FloatArray | None:
    r"""Covariance of the cluster around ``c``, or ``None`` where a Dirac must do.

    Close to a well-separated centroid the kernel mean embedding is a Gaussian bump widened by
    the kernel, so the curvature of its logarithm gives the covariance:

    .. math::

        \hat H = -\nabla^2 \log f_{z_{\mathcal X}}(c) \approx (\Sigma + \sigma^2 I_d)^{-1},
        \qquad \hat\Sigma = \hat H^{-1} - \sigma^2 I_d .

    Parameters
    ----------
    correlation : Correlation
        Of the sketch itself, not of a residual.
    c : array of shape (d,)
        A centroid, usually a local maximum.
    bandwidth : float
        :math:`\sigma`, in the units of ``c``.

    Returns
    -------
    covariance : array of shape (d, d) or None
        ``None`` when :math:`\hat\Sigma` is not positive definite, the correlation at ``c``
        not positive, or its logarithm flat.

    Notes
    -----
    One Hessian and two eigendecompositions: O(m d^2 + d^3). The estimate degrades as d grows;
    the paper reports worse results than Diracs at d = 10.
    """
    values, gradients = correlation.value_and_gradient(c)
    f, gradient = values[0], gradients[0]
    if not f > 0:
        return None
    H = (np.outer(gradient, gradient) - f * correlation.hessian(c)[0]) / f**2
    curvatures, axes = np.linalg.eigh((H + H.T) / 2)
    if not curvatures[0] > _FLATTEST / bandwidth**2:
        return None
    variances = 1.0 / curvatures - bandwidth**2
    if variances.min() <= 0:
        return None
    return np.asarray((axes * variances) @ axes.T)


# The fitted model: a new atom is a Dirac, or a Gaussian whose covariance is estimated.


class FittedModel(Protocol):
    """Gives the covariance of a new component."""

    def __call__(
        self, correlation: Correlation, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """Covariance of the component at c, or None for a Dirac."""
        ...


@dataclass(frozen=True)
class DiracModel:
    """Every component is a point."""

    def __call__(
        self, correlation: Correlation, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """See :class:`FittedModel`."""
        return None


@dataclass(frozen=True)
class GaussianModel:
    """A component is a Gaussian where :func:`estimate_sigma` finds a covariance, else a point.

    Needs a Gaussian kernel: frequencies of the Gaussian law, or by leverage scores, with one
    bandwidth.
    """

    @staticmethod
    def check(spec: SketchSpec) -> None:
        """Refuse a sketch whose kernel is not Gaussian: its curvature means something else."""
        facts = []
        low, high = spec.bandwidths
        if low < high:
            facts.append(f"this sketch has bandwidths from {low:g} to {high:g}")
        if spec.waves is None:
            facts.append("this sketch has no frequencies")
        elif spec.waves.law != "gaussian" and spec.frequencies.weights is None:
            facts.append(f"this sketch has the law {spec.waves.law!r}")
        if facts:
            msg = (
                "fitted_model='gaussian' estimates covariances from the curvature of a Gaussian "
                "kernel, which needs one bandwidth and frequencies of law='gaussian', or "
                f"weights that make up for another; {' and '.join(facts)}. "
                "Take fitted_model='dirac', which works with any frequencies, or sketch the data "
                "with one bandwidth."
            )
            raise SpecError(msg)

    def __call__(
        self, correlation: Correlation, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """See :class:`FittedModel`."""
        return estimate_sigma(correlation, c, bandwidth=bandwidth)


FITTED_MODELS: dict[str, type[DiracModel] | type[GaussianModel]] = {
    "dirac": DiracModel,
    "gaussian": GaussianModel,
}

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
    local_maximum : str or GetLocalMaximum
        How to climb: "sketched_mean_shift", "plain_mean_shift" (the paper's iteration, without
        backtracking), "discretized" or "gradient_ascent".
    starts : {"normal", "uniform"}
        Law of the starts: normal with the sketch's own mean and covariance, or uniform in the
        domain as in the paper.
    reuse_starts : bool
        Go on from where the starts of the last atom arrived, new ones only in place of those
        that reached it: several times faster than the paper's fresh starts.
    threshold : {"contribution", "weight"}
        Which k atoms are kept: those that add most to the sketch, or the heaviest, as in the
        paper. Of Diracs these are the same.
    repairs : bool
        Stop when nothing is left of the sketch, and try whether a few points explain it all;
        without, all T atoms are looked for, and the k best kept, as in the paper.
    refine : bool
        A joint descent over all atoms, which are then merged to k, and one over these, instead
        of hard thresholding; not in the paper.
    domain : Box or None
        Where to look, in the units of the data; None is the mean plus or minus three standard
        deviations of the sketch itself.

    Notes
    -----
    O(T L m d) time for each step of the climb, less for starts that have arrived; a joint
    descent takes O(T m d) an iteration, O(T m d^2) for Gaussians.

    To the letter the algorithm of the paper is ``SketchAndShift(starts="uniform",
    reuse_starts=False, local_maximum="plain_mean_shift", threshold="weight", repairs=False)``.
    """

    n_atoms: int | None = None
    n_initializations: int = 1000
    fitted_model: str | FittedModel = "dirac"
    local_maximum: str | GetLocalMaximum = "sketched_mean_shift"
    starts: str = "normal"
    reuse_starts: bool = True
    threshold: str = "contribution"
    repairs: bool = True
    refine: bool = False

    def _decode(self, problem: Problem, k: int, seed: int, progress: Progress | None) -> Decoding:
        n_atoms = 2 * k if self.n_atoms is None else self.n_atoms
        check_integer(_CALLER, "n_atoms", n_atoms, k, 10**6)
        is_refined = check_flag(_CALLER, "refine", self.refine)
        check_choice(_CALLER, "threshold", self.threshold, ("contribution", "weight"))
        check_flag(_CALLER, "repairs", self.repairs)
        search = _Search(self, problem, n_atoms, seed)
        outcome = search.run(progress)
        if self.repairs and search.trace and search.trace[-1].residual_norm < _EXPLAINED:
            points = fewest_points(problem, search.mixture(), k)
            if points is not None:
                return problem.decoding(points, Outcome.EMPTY_RESIDUAL, search.trace)
        mixture = search.mixture()
        if is_refined:
            mixture = reduce_support(problem, mixture, k)
        else:
            by = search.weights if self.threshold == "weight" else search.contributions()
            mixture = choose(mixture, hard_threshold(by, k))
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
        of_sketch = problem.correlation(problem.z)
        residual, pool = problem.z, self._draw(0)
        for i in range(self._n_atoms):
            f = problem.correlation(residual)
            places, values = self._climb(f, pool, problem.box, problem.bandwidth)
            best = int(np.argmax(values))
            if self._decoder.repairs and not values[best] > 0:
                return Outcome.FLAT_CORRELATION
            self._expand(places[best], self._model(of_sketch, places[best], problem.bandwidth))
            self.weights = nonnegative_weights(self._atoms, problem.z, problem.frequency_weights)
            residual = problem.z - self.weights @ self._atoms
            step = problem.step(i + 1, self._n_atoms, places[best], values[best], residual)
            self.trace.append(step)
            if progress is not None:
                progress(step)
            if self._decoder.repairs and step.residual_norm < problem.empty:
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

    def contributions(self) -> FloatArray:
        """Weights times the norms of the atoms: what each adds to the sketch.

        A Dirac's is its weight. A Gaussian far wider than the kernel hardly shows in the sketch,
        whatever its weight; Algorithm 3, too, normalises atoms before it thresholds.
        """
        return np.asarray(self.weights * np.linalg.norm(self._atoms, axis=1))

    def _expand(self, c: FloatArray, covariance: FloatArray | None) -> None:
        component = Mixture(np.ones(1), c[None], None if covariance is None else covariance[None])
        self._support.append(c)
        self._covariances.append(covariance)
        self._atoms = np.concatenate([self._atoms, self._problem.atoms(component)])

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
