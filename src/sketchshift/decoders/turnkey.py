"""The turnkey decoder: centroids as good as those of k-means, with nothing to tune.

Gaussians, more than there are clusters, are fitted to the sketch several times; points drawn
from all good fits are weighted back from the tilt and given the exact moments; k-means of
these points gives the centroids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sketchshift._text import column_names
from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders.choose_k import choose_k, curve_of_one_point, most_clusters
from sketchshift.decoders.decoder import Decoding, Outcome, Progress, Round
from sketchshift.decoders.gaussians import (
    FITS,
    GaussianFit,
    GaussianFitter,
    atoms_of,
    cells_from_atoms,
    n_points,
    n_rounds,
    search,
    search_large,
)
from sketchshift.decoders.gaussians import is_large as needs_stochastic
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.paper.refine import nonnegative_weights
from sketchshift.decoders.points import (
    Cells,
    Reconstruction,
    fewest_points,
    reconstruct,
    weighted_kmeans,
    with_means,
)
from sketchshift.decoders.problem import Problem, one_blas_thread
from sketchshift.errors import PlanWarning, warn
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.kernels import select_kernel
from sketchshift.sketch import AnySketch, Sketch

__all__ = [
    "FarRows",
    "Fitted",
    "decode",
    "decode_range",
    "explained_by_far_rows",
    "fit_sketch",
    "is_suspicious",
    "refit",
]

# A few rows far beyond all that the plan has seen: sentinels, broken values.
#
# They hold most of the variance and next to none of the mass. Fits that keep the moments then
# stretch every atom to explain them, and miss the clusters. So the sketch is fitted once more
# without its moments; if that explains it much better, these are the clusters, and the moments tell
# where the far rows are, if it is one place.
#
# Symbols
# -------
# T, d      atoms, dimension

OUTSIDE = 3.0  # total variance under the tilt, in units of the sample's
LESS, MORE = 0.5, 1.15  # that of the rows: beyond these the sample was not like the rest
BETTER = 3.0  # times the misfit, before moments are given up
ONE_PLACE = 0.9  # share of the variance of far rows on one axis
NOTABLE = 0.05  # share of all variance, to be told
SHOWN = 3  # columns in a message


@dataclass(frozen=True, eq=False)
class FarRows:
    """Fits of all rows but a few, and where these are.

    Attributes
    ----------
    problem : Problem
        The sketch, without its moments.
    fits : list of GaussianFit
        Of the tilted measure.
    variance : float
        Total variance of all rows.
    place : array of shape (d,) or None
        Of the far rows; None if they are not at one place.
    share : float
        Of the far rows among all; 0 without a place.
    """

    problem: Problem
    fits: list[GaussianFit]
    variance: float
    place: FloatArray | None = None
    share: float = 0.0

    @classmethod
    def of(cls, problem: Problem, fits: list[GaussianFit]) -> FarRows:
        r"""Find the place that the exact moments tell of, and fits do not.

        With w the share of far rows and v their place, from the mean of a fit, the moments
        exceed those of the fit by :math:`w v` and :math:`w v v^T`. The axis of the latter gives
        both; if there is more than one place, it is not known. O(T d^2).
        """
        assert problem.moments is not None  # else there is no suspicion
        total = float(np.trace(problem.moments[1]))
        unknown = cls(replace(problem, has_moments=False), fits, total)
        mean, covariance = problem.outline
        if np.isnan(covariance).any():
            return unknown
        middle, second = _moments(min(fits, key=lambda fit: fit.loss))
        shift = mean - middle
        values, axes = np.linalg.eigh(covariance + np.outer(shift, shift) - second)
        slope = float(axes[:, -1] @ shift)
        if values[-1] < ONE_PLACE * np.abs(values).sum() or slope == 0.0:
            return unknown
        place = middle + values[-1] / slope * axes[:, -1]
        share = _untilted(slope**2 / float(values[-1]), place, problem)
        is_there = share < 1.0 and share * problem.sketch.total_weight >= 0.5
        is_there &= bool(np.linalg.norm(place) <= problem.sketch.spec.reach)
        return replace(unknown, place=place, share=share) if is_there else unknown

    def added_to(self, points: Reconstruction) -> Reconstruction:
        """Points of the other rows, and one of the far ones, if their place is known.

        It comes first, so that no part of the points is without it.
        """
        if self.place is None:
            return points
        weights = np.append(self.share, points.weights * (1.0 - self.share))
        return Reconstruction(np.vstack([self.place, points.points]), weights)

    def warn(self, points: Reconstruction) -> None:
        """Tell of the far rows, if they hold a part of the variance; points are of the others."""
        rests = points.points - points.weights @ points.points
        held = 1.0 - float(points.weights @ (rests**2).sum(axis=1)) / self.variance
        if held < NOTABLE:
            return
        where = "Clusters are those of the others"
        if self.place is not None:
            n = max(1, round(self.share * self.problem.sketch.total_weight))
            where = f"They are about {n}, near {_named(self.problem, self.place)}"
        msg = (
            f"a few rows lie far from all others, and hold {held:.0%} of the variance. {where}. "
            "If they are faults, leave them out; if not, plan on a sample that has such rows."
        )
        warn(msg, PlanWarning)


def explained_by_far_rows(
    problem: Problem, fits: list[GaussianFit], run: Callable[[Problem], list[GaussianFit]]
) -> FarRows | None:
    """Other fits, if a few far rows explain the sketch much better than these do.

    Parameters
    ----------
    problem : Problem
        The sketch.
    fits : list of GaussianFit
        With the moments of the rows.
    run : callable
        Gives fits of a problem.

    Returns
    -------
    far : FarRows or None
        None if the moments are to be kept. Takes as long as the fits, if there is a suspicion.
    """
    if not is_suspicious(problem):
        return None
    far = FarRows.of(problem, run(replace(problem, has_moments=False)))
    misfit, without = (_misfit(far.problem, both) for both in (fits, far.fits))
    return far if misfit > BETTER * without else None


def is_suspicious(problem: Problem) -> bool:
    """Whether rows may lie where the plan expects none; its units make the total variance 1."""
    if problem.sketch.spec.tilt is None or problem.moments is None:
        return False
    total, tilted = np.trace(problem.moments[1]), np.trace(problem.outline[1])
    return bool(tilted > OUTSIDE and total > 0.0 and not LESS < total < MORE)


def _misfit(bare: Problem, fits: list[GaussianFit]) -> float:
    fitter = GaussianFitter(bare)
    return min(fitter.fit(fit, 0).loss for fit in fits)


def _untilted(share: float, place: FloatArray, problem: Problem) -> float:
    """The share of rows at a place, from theirs in the tilted measure."""
    sketch, tilt = problem.sketch, problem.sketch.spec.tilt
    assert isinstance(sketch, Sketch)  # else there is no suspicion
    assert tilt is not None
    return share * sketch.mean_tilt / float(tilt(place @ place))


def _moments(fit: GaussianFit) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of the Gaussians together."""
    shares = fit.shares
    mean = shares @ fit.means
    rests = fit.means - mean
    return mean, (rests.T * shares) @ rests + np.diag(shares @ fit.deviations**2)


def _named(problem: Problem, place: FloatArray) -> str:
    """A place in the units of the data, its first columns by name."""
    spec = problem.sketch.spec
    names = column_names(spec)
    numbers = problem.in_units(place).tolist()[:SHOWN]
    said = [f"{name} = {x:.3g}" for name, x in zip(names, numbers, strict=False)]
    return ", ".join(said) + (", ..." if spec.n_features > SHOWN else "")


# What the turnkey decoder knows of the data, before it is cut into clusters.
#
# Takes a :class:`Problem`; hands :class:`Fitted`, which any number of clusters is cut from.

POINTS, POINTS_PER_CLUSTER = 10_000, 200
STARTS, FEWEST_STARTS, STARTED_CELLS = 15, 3, 150  # of the last k-means
SHRUNK = 1e-4  # share of the variance within atoms below which they may be points
FEW = 12  # up to so many clusters, other starts help and swaps do not


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is known of the data behind a sketch, before it is cut into clusters.

    Attributes
    ----------
    problem : Problem
        The sketch.
    reconstruction : Reconstruction
        Points that stand for the rows.
    trace : tuple of Round
        The fits they come from.
    seed : int
        Of the k-means to come.
    points : Mixture or None
        The distinct rows, when they are fewer than the clusters that were fitted for.
    atoms : Reconstruction or None
        Atoms of the fits, when clusters are so many that k-means starts from these.
    fits : tuple of GaussianFit
        The good ones, that points are drawn from.
    """

    problem: Problem
    reconstruction: Reconstruction
    trace: tuple[Round, ...]
    seed: int
    points: Mixture | None = None
    atoms: Reconstruction | None = None
    fits: tuple[GaussianFit, ...] = ()

    def decode(self, k: int) -> Decoding:
        """The clusters; all there are, when the rows have fewer distinct values than k."""
        if self.points is not None and k > self.points.n_components:
            return self.problem.decoding(self.points, Outcome.EMPTY_RESIDUAL, self.trace)
        return self.decoding(self.cells(k))

    def decode_auto(self, max_clusters: int) -> Decoding:
        """The clusters, as many as explain the sketch best."""
        points, is_exact = self.reconstruction, self.points is not None
        k = min(max_clusters, len(points.points))
        curve = choose_k(self.problem, points, k, self.seed, exact=is_exact)
        return replace(self.decode(curve.chosen), curve=curve)

    def cells(self, k: int) -> Cells:
        """The points cut into k cells: O(n k d) an iteration."""
        starts = min(max(STARTED_CELLS // k, FEWEST_STARTS), STARTS)
        all_points, seed = self.reconstruction, self.seed
        points, weights = all_points.points, all_points.weights
        if self.atoms is not None:
            cells = cells_from_atoms(self.atoms, all_points, k, seed, starts)
        else:
            cells = weighted_kmeans(points, weights, k, seed, n_init=starts, swaps=k > FEW)
        return with_means(cells, points, weights)

    def decoding(self, cells: Cells) -> Decoding:
        """Cells as clusters in the units of the data, heaviest first."""
        weights = _shares(self.reconstruction, cells)
        order = np.argsort(-weights, kind="stable")
        scale = self.problem.sketch.spec.scale_vector
        covariances = _covariances(self.reconstruction, cells) * np.outer(scale, scale)
        return Decoding(
            self.problem.in_units(cells.centers[order]),
            weights[order],
            covariances[order],
            min(step.residual_norm for step in self.trace),
            Outcome.COMPLETE,
            self.trace,
        )


def fit_sketch(problem: Problem, k: int, seed: int, progress: Progress | None) -> Fitted:
    """Fit Gaussians for up to k clusters, and draw points from them."""
    trace: list[Round] = []
    d, m = problem.turns.shape
    is_large = needs_stochastic(k, m)
    total = (FITS if is_large else n_rounds(k)) * (1 + is_suspicious(problem))

    def report(fit: GaussianFit) -> None:
        trace.append(Round(len(trace) + 1, total, fit.n_atoms, math.sqrt(fit.loss)))
        if progress is not None:
            progress(trace[-1])

    def run(problem: Problem) -> list[GaussianFit]:
        method = search_large if is_large else search
        return method(GaussianFitter(problem), k, seed, report)

    fits = run(problem)
    far = explained_by_far_rows(problem, fits, run)
    if far is not None:
        problem, fits = far.problem, far.fits
    lowest = min(fits, key=lambda fit: fit.loss)
    is_noisy = problem.noise_floor > 0.0  # then nothing is explained up to rounding
    points = None if is_large or is_noisy else _few_points(problem, lowest, k)
    if points is not None:
        weights = problem.untilted(points.means, points.weights)
        exact = Reconstruction(points.means, weights)
        return Fitted(problem, exact, tuple(trace), seed, points, fits=tuple(fits))
    n = n_points(k, d) if is_large else max(POINTS, POINTS_PER_CLUSTER * k)
    atoms = atoms_of(problem, fits, k) if is_large else None
    reconstruction = reconstruct(problem, fits, n, seed)
    if far is not None:
        far.warn(reconstruction)
        reconstruction = far.added_to(reconstruction)
        atoms = None if atoms is None else far.added_to(atoms)
    return Fitted(problem, reconstruction, tuple(trace), seed, atoms=atoms, fits=tuple(fits))


def _few_points(problem: Problem, fit: GaussianFit, k: int) -> Mixture | None:
    """The distinct rows, when they are fewer than k: atoms have then shrunk to points."""
    within = float((fit.weights @ fit.deviations**2).sum())
    if within > SHRUNK * float(np.trace(problem.outline[1])):
        return None
    return fewest_points(problem, Mixture(fit.weights, fit.means), k)


def _shares(points: Reconstruction, cells: Cells) -> FloatArray:
    """Weights of the cells, shape (k,)."""
    sums = np.bincount(cells.labels, points.weights, minlength=len(cells.centers))
    return sums.astype(np.float64)


def _covariances(points: Reconstruction, cells: Cells) -> FloatArray:
    """Covariances within the cells, shape (k, d, d)."""
    rests = points.points - cells.centers[cells.labels]
    covariances = []
    for i in range(len(cells.centers)):
        inside = cells.labels == i
        weights = points.weights[inside]
        products = (rests[inside].T * weights) @ rests[inside]
        covariances.append(products / (weights.sum() or 1.0))
    return np.array(covariances)


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


# What is known of one sketch, carried over to another of the same spec.
#
# Takes the fits of the first; hands points that stand for the rows of the second. Descents start
# where the first ones ended, so that both sets of points err alike, and their difference is that
# of the sketches.

ITERATIONS = 100


def refit(fitted: Fitted, sketch: AnySketch) -> Reconstruction:
    """Points that stand for the rows of another sketch, from the fits of a first one.

    Parameters
    ----------
    fitted : Fitted
        Of the first sketch.
    sketch : Sketch
        Of the same spec, with at least one row.

    Returns
    -------
    reconstruction : Reconstruction
        O(k m d) for each of 100 iterations of each fit.
    """
    problem = Problem.of(sketch, 1, None, fitted.seed, "refit")
    if fitted.points is not None:
        places = fitted.points.means
        atoms = select_kernel().features(places, problem.turns)
        weights = nonnegative_weights(atoms, problem.z)
        return Reconstruction(places, problem.untilted(places, weights))
    if not np.trace(problem.outline[1]) > 0.0:
        return Reconstruction(problem.outline[0][None, :], np.ones(1))
    fitter = GaussianFitter(problem)
    fits = [fitter.fit(fit, ITERATIONS) for fit in fitted.fits]
    return reconstruct(problem, fits, len(fitted.reconstruction.points), fitted.seed)
