"""What the paper's decoders end with: weights, merged atoms, a joint descent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import ComplexArray, FloatArray, IntArray
from sketchshift.decoders.decoder import Decoding, Progress
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Box, Spread
from sketchshift.decoders.problem import Problem, pose
from sketchshift.sketch import AnySketch

__all__ = [
    "GreedyDecoder",
    "GreedyFit",
    "choose",
    "hard_threshold",
    "merge_nearest",
    "nonnegative_weights",
    "penalised_square",
    "reduce_support",
    "refine",
]

# The joint descent over all components: a step that any decoder may end with.

_TOLERANCE = 1e-13  # of the squared relative residual, below the float32 rounding of its square


def refine(
    problem: Problem, mixture: Mixture, *, max_iterations: int = 300, penalty: float = 0.0
) -> Mixture:
    r"""Minimise :math:`\|z - \sum_i \alpha_i \mathcal A \pi_i\|^2` in all parameters at once.

    Parameters
    ----------
    problem : Problem
        The sketch and the domain, which bounds the centroids.
    mixture : Mixture
        Where to start; Diracs stay Diracs, Gaussians keep full covariances.
    max_iterations : int
        Of L-BFGS-B.
    penalty : float
        :math:`\lambda`, where :math:`2 \lambda \sum_i \alpha_i` is added to the square.

    Returns
    -------
    mixture : Mixture
        The square, with the penalty, is not larger. O(k m d) an iteration, O(k m d^2) for
        Gaussians.
    """
    from scipy.optimize import minimize

    k, d = mixture.means.shape
    if k == 0:
        return mixture
    is_dirac = mixture.covariances is None
    kind: Spread = "none" if is_dirac else "full"
    objective = problem.matching(kind)
    S = None if is_dirac else _factors(mixture.covariances, problem.bandwidth)
    # Weights are scaled to be of order 1, lengths to the bandwidth: all steps then matter alike.
    share, length = 1.0 / k, problem.bandwidth
    scales = objective.pack(
        np.full(k, share), np.full((k, d), length), None if S is None else np.full_like(S, length)
    )
    start = objective.pack(mixture.weights, mixture.means, S)

    def f(x: FloatArray) -> tuple[float, FloatArray]:
        alpha, C, spread = objective.unpack(x * scales, k)
        value, of_alpha, of_C, of_spread = objective.value_and_gradient(alpha, C, spread)
        value += 2.0 * penalty * float(alpha.sum())
        gradient = objective.pack(of_alpha + 2.0 * penalty, of_C, of_spread) * scales
        return value / problem.norm**2, gradient / problem.norm**2

    lower, upper = (np.tile(end, (k, 1)) for end in (problem.box.lower, problem.box.upper))
    free = None if S is None else np.full_like(S, np.inf)
    low = objective.pack(np.zeros(k), lower, None if free is None else -free)
    high = objective.pack(np.full(k, np.inf), upper, free)
    result = minimize(
        f,
        np.clip(start, low, high) / scales,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / scales, high / scales, strict=True)),
        options={"maxiter": max_iterations, "ftol": _TOLERANCE, "gtol": _TOLERANCE},
    )
    alpha, C, spread = objective.unpack(result.x * scales, k)
    refined = Mixture(alpha, C, objective.covariances(spread, d))
    before, after = (penalised_square(problem, each, penalty) for each in (mixture, refined))
    return refined if after <= before else mixture


def penalised_square(problem: Problem, mixture: Mixture, penalty: float) -> float:
    """What a joint descent brings down: the squared residual and 2 lambda times the mass."""
    square = (problem.norm * problem.residual_norm(mixture)) ** 2
    return square + 2.0 * penalty * float(mixture.weights.sum())


def _factors(covariances: FloatArray | None, bandwidth: float) -> FloatArray:
    """Cholesky factors, of a hundredth of the bandwidth where a component is a Dirac."""
    assert covariances is not None
    d = covariances.shape[1]
    return np.asarray(np.linalg.cholesky(covariances + (0.01 * bandwidth) ** 2 * np.eye(d)))


# Non-negative weights of atoms, and the choice of the heaviest.


def nonnegative_weights(
    atoms: ComplexArray,
    z: ComplexArray,
    frequency_weights: FloatArray | None = None,
    *,
    penalty: float = 0.0,
) -> FloatArray:
    r"""Weights :math:`\arg\min_{\alpha \ge 0} \|z - \sum_i \alpha_i a_i\|`.

    Parameters
    ----------
    atoms : complex array of shape (k, m)
        Sketches of the components.
    z : complex array of shape (m,)
        The sketch.
    frequency_weights : array of shape (m,) or None
        What the square at each frequency counts; None: 1.
    penalty : float
        :math:`\lambda`, where :math:`2 \lambda \sum_i \alpha_i` is added to the square.

    Returns
    -------
    alpha : array of shape (k,)
        By the active-set method of Lawson and Hanson on the k x k normal equations:
        O(k^2 m + k^4) at worst.
    """
    from scipy.optimize import nnls

    duals = atoms.conj() if frequency_weights is None else atoms.conj() * frequency_weights
    gram = (duals @ atoms.T).real
    target = (duals @ z).real - penalty
    # A ridge far below float32's own errors keeps equal atoms apart; the floor is for atoms so
    # wide that they vanish at all frequencies.
    gram += max(1e-10 * np.trace(gram) / len(gram), 1e-30) * np.eye(len(gram))
    factor = np.linalg.cholesky(gram)
    weights, _ = nnls(factor.T, np.linalg.solve(factor, target), maxiter=30 * len(gram))
    return np.asarray(weights)


def hard_threshold(weights: FloatArray, k: int) -> IntArray:
    """Indices of the k largest weights, largest first; ties go to the earlier."""
    return np.argsort(-weights, kind="stable")[:k]


def choose(mixture: Mixture, keep: IntArray) -> Mixture:
    """The mixture of some of the components, in the order given; Diracs alone need no zeros."""
    covariances = mixture.covariances
    if covariances is not None:
        covariances = covariances[keep] if covariances[keep].any() else None
    return Mixture(mixture.weights[keep], mixture.means[keep], covariances)


# From all atoms to k of them: near ones are merged between two joint descents.

_LIGHTEST = 1e-12  # share of an atom without weight, so that it merges with its nearest


def reduce_support(problem: Problem, mixture: Mixture, k: int) -> Mixture:
    """Refine all components, merge them to k, refine these.

    Both descents start from equal weights: an atom of weight zero feels no gradient, and greedy
    searches with a wide kernel leave most atoms so.

    Parameters
    ----------
    problem : Problem
        The sketch and the domain.
    mixture : Mixture
        All atoms found.
    k : int
        Number of components to keep.

    Returns
    -------
    mixture : Mixture
        At most k components, refined.
    """
    mixture = refine(problem, _even(mixture))
    if mixture.n_components > k:
        mixture = refine(problem, _even(merge_nearest(mixture, k)))
    return mixture


def merge_nearest(mixture: Mixture, k: int) -> Mixture:
    r"""Merge two components, those whose merging costs k-means least, until k remain.

    That cost is Ward's, :math:`\frac{\alpha_i \alpha_j}{\alpha_i + \alpha_j} \|c_i - c_j\|^2`:
    twins cost nothing, however heavy, and a light cluster of its own stays.

    Parameters
    ----------
    mixture : Mixture
        T components.
    k : int
        Number of components to keep.

    Returns
    -------
    merged : Mixture
        Weights are sums, centroids weighted means; Gaussians keep the covariance of what they
        are merged from, Diracs stay Diracs. O(T^2 (T - k + d)).
    """
    n = mixture.n_components
    weights = np.maximum(mixture.weights, _LIGHTEST * (mixture.weights.sum() or 1.0))
    means = mixture.means.copy()
    covariances = None if mixture.covariances is None else mixture.covariances.copy()
    is_left = np.ones(n, dtype=bool)
    costs = np.array([_costs(weights, means, is_left, i) for i in range(n)])
    for _ in range(n - k):
        i, j = sorted(divmod(int(np.argmin(costs)), n))
        share = weights[j] / (weights[i] + weights[j])
        step = means[j] - means[i]
        if covariances is not None:
            between = share * (1.0 - share) * np.outer(step, step)
            covariances[i] += share * (covariances[j] - covariances[i]) + between
        means[i] += share * step
        weights[i] += weights[j]
        is_left[j] = False
        costs[j], costs[:, j] = np.inf, np.inf
        costs[i] = costs[:, i] = _costs(weights, means, is_left, i)
    return Mixture(
        weights[is_left], means[is_left], None if covariances is None else covariances[is_left]
    )


def _costs(weights: FloatArray, means: FloatArray, is_left: np.ndarray, i: int) -> FloatArray:
    """What it costs to merge component i with each other one; infinity with itself."""
    costs = weights * weights[i] / (weights + weights[i]) * ((means - means[i]) ** 2).sum(axis=1)
    costs[~is_left] = np.inf
    costs[i] = np.inf
    return np.asarray(costs)


def _even(mixture: Mixture) -> Mixture:
    k = mixture.n_components
    return Mixture(np.full(k, 1.0 / max(k, 1)), mixture.means, mixture.covariances)


# What the paper's decoders have in common: how they are called.


@dataclass(frozen=True)
class GreedyDecoder(ABC):
    """Finds clusters in a sketch, one atom after the other.

    Parameters
    ----------
    domain : Box or None
        Where to look, in the units of the data; None is the mean plus or minus three standard
        deviations of the sketch itself.
    """

    domain: Box | None = field(default=None, kw_only=True)

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
            Where to look, in the units of the data; None is the decoder's own.
        seed : int
            Of the starts. The same sketch and seed give the same bytes.
        progress : callable or None
            Called with a :class:`Step` after each atom.

        Returns
        -------
        decoding : Decoding
            Its centroids and shares of the rows; its outcome says how it ended.
        """
        decoder = self if domain is None else replace(self, domain=domain)
        return decoder.fit(sketch, n_clusters, seed=seed, progress=progress).decode(n_clusters)

    @one_blas_thread
    def fit(
        self,
        sketch: AnySketch,
        n_clusters: int,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> GreedyFit:
        """Look for the atoms of k clusters.

        Parameters
        ----------
        sketch : Sketch or PrivateSketch
            Of at least one row.
        n_clusters : int
            k.
        seed : int
            Of the starts.
        progress : callable or None
            Called with a :class:`Step` after each atom.

        Returns
        -------
        fit : GreedyFit
            Decodes this k at once; another k is a search of its own.
        """
        name = type(self).__name__
        problem = pose(sketch, n_clusters, self.domain, seed, name).require_columns(name)
        problem.require_waves()
        problem.warn_of_cells(name)
        decoding = self._decode(problem, n_clusters, seed, progress)
        return GreedyFit(self, problem, seed, n_clusters, decoding)

    @abstractmethod
    def _decode(
        self, problem: Problem, k: int, seed: int, progress: Progress | None
    ) -> Decoding: ...


@dataclass(frozen=True, eq=False)
class GreedyFit:
    """The clusters that a greedy decoder found.

    Attributes
    ----------
    decoder : GreedyDecoder
        Which.
    problem : Problem
        The sketch.
    seed : int
        Of the starts.
    n_clusters : int
        What was asked for.
    decoding : Decoding
        What was found.
    """

    decoder: GreedyDecoder
    problem: Problem
    seed: int
    n_clusters: int
    decoding: Decoding

    @one_blas_thread
    def decode(self, k: int) -> Decoding:
        """The k clusters: found already, or by another search, as atoms depend on k."""
        if k == self.n_clusters:
            return self.decoding
        return self.decoder._decode(self.problem, k, self.seed, None)
