"""The turnkey decoder: centroids as good as those of k-means, with nothing to tune.

Three steps: Gaussians, more than there are clusters, are fitted to the sketch several times; points
drawn from all good fits are given the exact moments; k-means of these points gives the centroids.
Three exceptions, each in a place of its own: equal rows (:class:`EqualRows`), few distinct ones
(:class:`DistinctRows`) and many clusters (:class:`~sketchshift.decoders.gaussians.Stochastic`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import parameter_error, told_progress
from sketchshift.decoders.cells import CellFit, CellPoints, Exchange, WideFit
from sketchshift.decoders.certificate import bound_cost, certify
from sketchshift.decoders.choose_k import ChoiceOfK, curve_of_one_point
from sketchshift.decoders.decoder import (
    DECODERS,
    Decoder,
    Decoding,
    Outcome,
    Progress,
    Round,
    Trust,
)
from sketchshift.decoders.gaussians import (
    CoarseToFine,
    GaussianFit,
    GaussianFitter,
    Search,
    Stochastic,
)
from sketchshift.decoders.mixture import Mixture, Points, as_shares
from sketchshift.decoders.paper.refine import nonnegative_weights
from sketchshift.decoders.points import (
    KMeans,
    Partition,
    draw_points,
    fewest_points,
    means_by_label,
    reduce_columns,
)
from sketchshift.decoders.problem import (
    Problem,
    check_decodable,
    warn_of_far_rows,
    warn_of_mistrust,
    warn_of_more,
)
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.kernels import select_kernel
from sketchshift.metrics import assign
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.sketch.cells import CellSums

__all__ = [
    "DistinctRows",
    "EqualRows",
    "GaussianRows",
    "Turnkey",
    "TurnkeyFit",
    "decode",
    "decode_range",
    "decoder_named",
]


@dataclass(frozen=True)
class Turnkey:
    """Centroids as good as those of k-means, with nothing to tune.

    Parameters
    ----------
    search : CoarseToFine
        How Gaussians are fitted.
    stochastic : Stochastic
        How, where clusters and frequencies are many.
    cell_points : CellPoints
        What is drawn instead, of sketches with cells.
    exchange : Exchange
        And how these are cut.
    kmeans : KMeans
        The last step.
    choice : ChoiceOfK
        How the number of clusters is chosen.
    penalty : float
        Strength of the exact moments beside the misfit, in the fits.
    point_share : float
        Share of the variance within Gaussians below which they may be points.
    refit_iterations : int
        Of the descents that carry a fit over to another sketch.
    search_columns : int
        Of many columns, centers are searched for along so many principal axes of the points.

    Notes
    -----
    O(k m d) an iteration, about a thousand of them; where that takes long, 3000 of O(k d).
    """

    uses_cells: ClassVar[bool] = True

    search: CoarseToFine = field(default_factory=CoarseToFine)
    stochastic: Stochastic = field(default_factory=Stochastic)
    cell_points: CellPoints = field(default_factory=CellPoints)
    exchange: Exchange = field(default_factory=Exchange)
    kmeans: KMeans = field(default_factory=KMeans)
    choice: ChoiceOfK = field(default_factory=ChoiceOfK)
    penalty: float = 1e-2
    point_share: float = 1e-4
    refit_iterations: int = 100
    search_columns: int = 48

    @one_blas_thread
    def fit(
        self,
        sketch: AnySketch,
        n_clusters: int,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> TurnkeyFit:
        """Fit Gaussians for up to ``n_clusters`` clusters, and draw points from them.

        Parameters
        ----------
        sketch : Sketch or PrivateSketch
            Of at least one row.
        n_clusters : int
            The largest number of clusters that will be asked for.
        seed : int
            Of every random start.
        progress : callable or None
            Called with a :class:`Round` after each fit.

        Returns
        -------
        fit : TurnkeyFit
            Decodes any k up to that.
        """
        problem = Problem.of(sketch, n_clusters, None, seed, "Turnkey")
        return self.fit_problem(problem, n_clusters, seed, progress)

    def most_clusters(self, spec: SketchSpec, max_clusters: int | None) -> int:
        """The largest k that "auto" looks at, given what was asked for or None."""
        return self.choice.most_clusters(spec, max_clusters)

    def fit_problem(
        self, problem: Problem, k: int, seed: int, progress: Progress | None = None
    ) -> TurnkeyFit:
        """The same for a problem that is checked already."""
        if problem.cells is not None:
            return self._fit_cells(problem, k, seed, progress)
        problem.require_columns("Turnkey")
        if problem.is_one_point:
            return EqualRows.of(self, problem, seed)
        d, m = problem.turns.shape
        search: Search = self.stochastic if self.stochastic.is_for(k, m) else self.search
        fits, trace = self._fit_gaussians(search, problem, k, seed, progress)
        rows = self._find_distinct_rows(problem, fits, k) if search.finds_points else None
        if rows is not None:
            points = Points(rows.means, as_shares(rows.weights))
            return DistinctRows(self, problem, seed, points, trace, rows)
        points = draw_points(problem, fits, search.n_points(k, d), seed)
        centers = search.centers(fits, k)
        return GaussianRows(self, problem, seed, points, trace, tuple(fits), centers)

    def _fit_cells(
        self, problem: Problem, k: int, seed: int, progress: Progress | None
    ) -> TurnkeyFit:
        """What cells and waves tell together."""
        trace: list[Round] = []

        def report(fit: GaussianFit) -> None:
            total = self.cell_points.fits
            trace.append(Round(len(trace) + 1, total, fit.n_components, math.sqrt(fit.loss)))
            if progress is not None:
                progress(trace[-1])

        fit = self.cell_points.fit(problem, k, seed, self.penalty, report)
        found = fit.components
        if not found.variances.any():
            rows = Mixture(as_shares(found.weights), found.means)
            points = Points(rows.means, rows.weights)
            return DistinctCells(self, problem, seed, points, (), rows, fit)
        points, few = (fit.draw(rule.n_points(k)) for rule in (self.cell_points, self.exchange))
        if isinstance(fit, WideFit):
            if len(found.weights) < 2 * k:  # too few to be cut as they are
                fit = replace(fit, is_loose=np.ones_like(fit.is_loose))
                points, few = (fit.draw(r.n_points(k)) for r in (self.cell_points, self.exchange))
            return WideRows(self, problem, seed, points, (), fit, few)
        return CellRows(self, problem, seed, points, tuple(trace), fit, few)

    def _fit_gaussians(
        self, search: Search, problem: Problem, k: int, seed: int, progress: Progress | None
    ) -> tuple[list[GaussianFit], tuple[Round, ...]]:
        """The good fits, and how it went."""
        total = search.n_fits(k)
        trace: list[Round] = []

        def report(fit: GaussianFit) -> None:
            trace.append(Round(len(trace) + 1, total, fit.n_components, math.sqrt(fit.loss)))
            if progress is not None:
                progress(trace[-1])

        fits = search.find(GaussianFitter(problem, self.penalty), k, seed, report)
        return fits, tuple(trace)

    def _find_distinct_rows(
        self, problem: Problem, fits: list[GaussianFit], k: int
    ) -> Mixture | None:
        """The distinct rows, when they are fewer than k: Gaussians have then shrunk to points."""
        if problem.noise_floor > 0.0:  # then nothing is explained up to rounding
            return None
        fit = min(fits, key=lambda fit: fit.loss)
        within = float((fit.weights @ fit.covariances).sum())
        if within > self.point_share * float(np.trace(problem.outline[1])):
            return None
        return fewest_points(problem, fit, k)


# What the decoder knows of the data, before it is cut into clusters.


@dataclass(frozen=True, eq=False)
class TurnkeyFit(ABC):
    """What is known of the data behind a sketch, before it is cut into clusters.

    Attributes
    ----------
    decoder : Turnkey
        Whose fit it is.
    problem : Problem
        The sketch.
    seed : int
        Of the k-means to come.
    points : Points
        They stand for the rows.
    trace : tuple of Round
        The fits they come from.
    """

    decoder: Turnkey
    problem: Problem
    seed: int
    points: Points
    trace: tuple[Round, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the points, which are most of a fit."""
        return self.points.places.nbytes

    @abstractmethod
    def decode(self, k: int) -> Decoding:
        """The k clusters; all there are, when the rows have fewer distinct values than k."""

    @abstractmethod
    def decode_auto(self, max_clusters: int) -> Decoding:
        """The clusters, as many as explain the sketch best."""

    @abstractmethod
    def refit(self, sketch: AnySketch) -> Points:
        """Points that stand for the rows of another sketch of the same spec.

        Both sets of points err alike, so that their difference is that of the sketches.

        Parameters
        ----------
        sketch : Sketch
            With at least one row.

        Returns
        -------
        points : Points
            O(k m d) for each of 100 iterations of each fit.
        """

    def _cut(self, k: int) -> Decoding:
        """The points cut into k cells, in the units of the data, heaviest first.

        O(n k d) an iteration.
        """
        points, cells = self.points, self._partition(k).around_means(self.points)
        weights = cells.shares(points)
        order = np.argsort(-weights, kind="stable")
        scale = self.problem.sketch.spec.rows.scale_vector
        inside, labels = self._inside(cells)
        seen = replace(inside, places=self.problem.along_axes(inside.places))
        middles = self.problem.along_axes(cells.centers)
        covariances = replace(cells, centers=middles, labels=labels).covariances(seen)
        has_columns = self.problem.sketch.spec.axes is None
        decoding = Decoding(
            self.problem.in_units(cells.centers[order]),
            weights[order],
            covariances[order] * np.outer(scale, scale) if has_columns else None,
            self.problem.residual_of_rows(Mixture(weights, middles, covariances)),
            Outcome.COMPLETE,
            self.trace,
            sketch=self.problem.sketch,
        )
        return self._with_costs(decoding, cells)

    def _inside(self, cells: Partition) -> tuple[Points, IntArray]:
        """Points that have the spread of the rows, and the cells (n,) that they are in."""
        return self.points, cells.labels

    def _with_costs(self, decoding: Decoding, cells: Partition) -> Decoding:
        return decoding

    def _partition(self, k: int) -> Partition:
        return self.decoder.kmeans.cut(self.points, k, self.seed)

    def _decode_auto(
        self, max_clusters: int, *, exact: bool, points: Points | None = None
    ) -> Decoding:
        points, kmeans = self.points if points is None else points, self.decoder.kmeans
        k = min(max_clusters, len(points.places))
        choice = self.decoder.choice
        curve = choice.choose(self.problem, points, k, self.seed, kmeans, exact=exact)
        return replace(self.decode(curve.chosen), curve=curve)


@dataclass(frozen=True, eq=False)
class GaussianRows(TurnkeyFit):
    """Rows like those that Gaussians give: the rule.

    Attributes
    ----------
    decoder, problem, seed, points, trace
        See :class:`TurnkeyFit`.
    fits : tuple of GaussianFit
        The good ones, that points are drawn from.
    centers : Points or None
        Those of the Gaussians, when clusters are so many that k-means starts from these.
    """

    fits: tuple[GaussianFit, ...]
    centers: Points | None

    def _partition(self, k: int) -> Partition:
        if self.centers is None:
            return super()._partition(k)
        decoder = self.decoder
        return decoder.stochastic.cut(self.centers, self.points, k, self.seed, decoder.kmeans)

    @one_blas_thread
    def decode(self, k: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        return self._cut(k)

    @one_blas_thread
    def decode_auto(self, max_clusters: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        return self._decode_auto(max_clusters, exact=False)

    @one_blas_thread
    def refit(self, sketch: AnySketch) -> Points:
        """See :class:`TurnkeyFit`; descents start where the first ones ended."""
        problem = Problem.of(sketch, 1, None, self.seed, "refit")
        if problem.is_one_point:
            return EqualRows.of(self.decoder, problem, self.seed).points
        fitter = GaussianFitter(problem, self.decoder.penalty)
        fits = [fitter.fit(fit, self.decoder.refit_iterations) for fit in self.fits]
        return draw_points(problem, fits, len(self.points.places), self.seed)


@dataclass(frozen=True, eq=False)
class DistinctRows(TurnkeyFit):
    """Rows of fewer distinct values than clusters were asked for.

    Attributes
    ----------
    decoder, problem, seed, points, trace
        See :class:`TurnkeyFit`.
    rows : Mixture
        The distinct rows.
    """

    rows: Mixture

    @one_blas_thread
    def decode(self, k: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        if k > self.rows.n_components:
            return self.problem.decoding(self.rows, Outcome.EMPTY_RESIDUAL, self.trace)
        return self._cut(k)

    @one_blas_thread
    def decode_auto(self, max_clusters: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        return self._decode_auto(max_clusters, exact=True)

    @one_blas_thread
    def refit(self, sketch: AnySketch) -> Points:
        """See :class:`TurnkeyFit`; the values stay, and their shares are fitted."""
        problem = Problem.of(sketch, 1, None, self.seed, "refit")
        places = self.rows.means
        weights = nonnegative_weights(select_kernel().features(places, problem.turns), problem.z)
        return Points(places, as_shares(weights))


class _OfCells(TurnkeyFit):
    """What fits of sketches with cells have in common."""

    fit: CellFit

    def _with_costs(self, decoding: Decoding, cells: Partition) -> Decoding:
        sketch, centroids = self.problem.sketch, decoding.centroids
        assert isinstance(sketch, Sketch)
        centroids = self.fit.keep_possible(centroids)
        bound = certify(sketch, centroids).cost_bound
        cost = sum(self.fit.costs(self.points, cells, sketch.spec.rows.scale_vector))
        trust = self._judge(sketch, centroids, cells, bound)
        return replace(
            decoding, centroids=centroids, cost=min(cost, bound), cost_bound=bound, trust=trust
        )

    def _judge(
        self, sketch: Sketch, centroids: FloatArray, cells: Partition, bound: float
    ) -> Trust:
        """How far the clusters can be trusted, by the distances that they were found by."""
        spec, fit = sketch.spec, self.fit
        is_scaled = spec.rows.is_standardised
        scale = np.ones(spec.n_features) if is_scaled else spec.rows.scale_vector
        rows = ([fit.sums, fit.far], [fit.sums, sketch.outer, sketch.far])
        inside = bound_cost(sketch, centroids, rows[0], scale).cost_bound
        of_all = bound_cost(sketch, centroids, rows[1], scale).cost_bound if is_scaled else bound
        cost, of_light = fit.costs(self.points, cells, scale)
        is_exact = fit.is_exact and cost <= FLOAT_ROUNDING * float(fit.variances @ scale**2)
        return Trust.of(
            inside if is_exact else min(cost, inside),
            inside,
            of_all,
            variances=(_variance(rows[0], scale), _variance(rows[1], scale)),
            of_light=of_light,
            left_out=fit.left_out,
            is_exact=is_exact,
        )

    @one_blas_thread
    def refit(self, sketch: AnySketch) -> Points:
        """See :class:`TurnkeyFit`; cells are exact, and what is drawn in them is drawn alike."""
        problem = Problem.of(sketch, 1, None, self.seed, "refit")
        decoder, n = self.decoder, len(self.points.places)
        k = max(1, n // decoder.cell_points.points_per_cluster)
        return decoder.fit_problem(problem, k, self.seed).points


@dataclass(frozen=True, eq=False)
class CellRows(_OfCells):
    """Rows that cells and waves tell of together.

    Attributes
    ----------
    decoder, problem, seed, points, trace
        See :class:`TurnkeyFit`.
    fit : CellFit
        What points are drawn from.
    few : Points
        Fewer of the same kind, on which k-means looks for its start.
    """

    fit: CellFit
    few: Points

    def _partition(self, k: int) -> Partition:
        if k >= len(self.few.places):
            return super()._partition(k)
        return self.decoder.exchange.cut(self.few, self.points, k, self.seed)

    @one_blas_thread
    def decode(self, k: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        return self._cut(k)

    @one_blas_thread
    def decode_auto(self, max_clusters: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        self.problem.require_waves()
        return self._decode_auto(max_clusters, exact=False)


def _variance(cells: Sequence[CellSums], scale: FloatArray) -> float:
    """Mean squared distance of the rows of cells to their mean; infinite beyond 1e154."""
    weights, means, variances = (
        np.concatenate([getattr(sums, name) for sums in cells])
        for name in ("weights", "means", "variances")
    )
    shares = as_shares(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        return float((shares @ (variances + np.square(means - shares @ means))) @ scale**2)


@dataclass(frozen=True, eq=False)
class WideRows(CellRows):
    """The same of many columns: each group of cells is a cluster of the plan, and a start."""

    fit: WideFit

    def _partition(self, k: int) -> Partition:
        if k >= len(self.few.places):
            return super()._partition(k)
        exchange, few, groups = self.decoder.exchange, self.few, self.fit.group_means
        found = exchange.search(reduce_columns(few, self.decoder.search_columns), k, self.seed)
        starts = [means_by_label(few, part.labels, few.places[:k]) for part in found]
        return exchange.settle(self.points, [*starts, groups] if len(groups) == k else starts)

    def _judge(
        self, sketch: Sketch, centroids: FloatArray, cells: Partition, bound: float
    ) -> Trust:
        """As of few columns; but rows unlike those of the plan hide more than the axes show."""
        trust = super()._judge(sketch, centroids, cells, bound)
        doubt = self.fit.doubt(len(centroids))
        if not trust.is_good or not doubt:
            return trust
        return replace(trust, is_good=False, sentence=f"{trust.sentence} {doubt}")

    def _inside(self, cells: Partition) -> tuple[Points, IntArray]:
        return self.fit.inside, assign(self.fit.inside.places, cells.centers)

    @one_blas_thread
    def decode_auto(self, max_clusters: int) -> Decoding:
        """See :class:`TurnkeyFit`; k is chosen by what waves see along the axes."""
        self.problem.require_waves()
        points = self.fit.inside
        seen = replace(points, places=self.problem.along_axes(points.places))
        return self._decode_auto(max_clusters, exact=False, points=seen)


@dataclass(frozen=True, eq=False)
class DistinctCells(_OfCells, DistinctRows):
    """Rows of few distinct values, each in a cell of its own.

    Attributes
    ----------
    decoder, problem, seed, points, trace, rows
        See :class:`DistinctRows`.
    fit : CellFit
        The cells.
    """

    fit: CellFit

    @one_blas_thread
    def decode(self, k: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        n = self.rows.n_components
        if k <= n:
            return self._cut(k)
        return replace(self._cut(n), outcome=Outcome.EMPTY_RESIDUAL)

    @one_blas_thread
    def decode_auto(self, max_clusters: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        self.problem.require_waves()
        seen = replace(self.points, places=self.problem.along_axes(self.points.places))
        return self._decode_auto(max_clusters, exact=True, points=seen)


@dataclass(frozen=True, eq=False)
class EqualRows(DistinctRows):
    """Rows that are all equal: there is nothing to fit, and one cluster."""

    @classmethod
    def of(cls, decoder: Turnkey, problem: Problem, seed: int) -> EqualRows:
        """The one place is the mean."""
        place, whole = problem.outline[0][None, :], np.ones(1)
        return cls(decoder, problem, seed, Points(place, whole), (), Mixture(whole, place))

    @property
    def nbytes(self) -> int:
        """No points were drawn."""
        return 0

    def decode(self, k: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        outcome = Outcome.COMPLETE if k == 1 else Outcome.EMPTY_RESIDUAL
        return self.problem.decoding(self.rows, outcome, ())

    def decode_auto(self, max_clusters: int) -> Decoding:
        """See :class:`TurnkeyFit`."""
        return replace(self.decode(1), curve=curve_of_one_point())


FLOAT_ROUNDING = 1e-18  # share of the variance that sums of squares are off by, at most


# From a sketch to clusters, by any decoder.


def decoder_named(decoder: Decoder | str | None, caller: str) -> Decoder:
    """A decoder as given, the registered one of that name, or the turnkey decoder."""
    if decoder is None:
        return Turnkey()
    if isinstance(decoder, str) and decoder in DECODERS:
        return DECODERS[decoder]()
    if isinstance(decoder, type) or not isinstance(decoder, Decoder):
        must = f"None, a Decoder, or one of {', '.join(map(repr, DECODERS))}"
        raise parameter_error(caller, "decoder", must, decoder)
    return decoder


@one_blas_thread
def decode(
    sketch: AnySketch,
    n_clusters: int | Literal["auto"],
    *,
    max_clusters: int | None = None,
    seed: int = 0,
    progress: Progress | bool | None = None,
    decoder: Decoder | str | None = None,
) -> Decoding:
    """Centroids from a sketch alone, with nothing to tune.

    Works on any sketch, and best on one taken with a :func:`~sketchshift.plan`. A
    :class:`~sketchshift.errors.PlanWarning` tells of clusters that cannot be trusted, and of more
    than the plan was made for.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Of at least one row. Fits of a private sketch stop at its noise.
    n_clusters : int or "auto"
        Number k of clusters. Quality is best up to the number that the plan was made for.
        "auto" chooses it, and tells how in ``decoding.curve``.
    max_clusters : int or None
        The largest k that "auto" looks at; None takes what the sketch can serve, m / (10 d),
        from 2 to 100.
    seed : int, default=0
        Of every random start. The same sketch and seed give the same bytes.
    progress : callable, bool or None
        Called with a :class:`Round` after each fit. True shows a bar, in terminals and notebooks,
        where it takes more than two seconds.
    decoder : Decoder, str or None
        Another decoder, or the name of one, as ``sketchshift cluster --decoder`` takes it. None
        is "turnkey".

    Returns
    -------
    decoding : Decoding
        Centroids, shares and covariances of the clusters. O(k m d) an iteration, about a thousand
        of them; where that takes long (3 k m over 3 million), 3000 iterations of O(k d).

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
    decoder = decoder_named(decoder, "decode")
    if isinstance(n_clusters, str):
        if n_clusters != "auto":
            must = f'"auto" or an integer from 1 to {MAX_CLUSTERS}'
            raise parameter_error("decode", "n_clusters", must, n_clusters)
        check_decodable(sketch, 1, seed, "decode")
        with told_progress("decode", progress, "fits", "Finding clusters") as advance:
            return _decode_auto(sketch, max_clusters, seed, advance, decoder)
    if max_clusters is not None:
        must = "None unless n_clusters is 'auto'"
        raise parameter_error("decode", "max_clusters", must, max_clusters)
    return decode_range(sketch, [n_clusters], seed=seed, progress=progress, decoder=decoder)[0]


def _decode_auto(
    sketch: AnySketch,
    max_clusters: int | None,
    seed: int,
    progress: Progress | None,
    decoder: Any,
) -> Decoding:
    """Clusters whose number is chosen from the same fit that they are cut from."""
    if not hasattr(decoder, "most_clusters"):
        must = "an integer: this decoder does not choose it"
        raise parameter_error("decode", "n_clusters", must, "auto")
    warn_of_far_rows(sketch)
    k = decoder.most_clusters(sketch.spec, max_clusters)
    fit = decoder.fit(sketch, k, seed=seed, progress=progress)
    found = _checked_decoding(fit.decode_auto(k), decoder, sketch)
    warn_of_mistrust(found)
    return found


@one_blas_thread
def decode_range(
    sketch: AnySketch,
    n_clusters: Sequence[int],
    *,
    seed: int = 0,
    progress: Progress | bool | None = None,
    decoder: Decoder | str | None = None,
) -> tuple[Decoding, ...]:
    """Centroids for several numbers of clusters, from one fit.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Of at least one row.
    n_clusters : sequence of int
        The numbers k, in any order; the fit is made for the largest.
    seed : int, default=0
        Of every random start.
    progress : callable, bool or None
        Called with a :class:`Round` after each fit. True shows a bar, in terminals and notebooks,
        where it takes more than two seconds.
    decoder : Decoder, str or None
        As in :func:`decode`.

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
        check_decodable(sketch, k, seed, "decode")
    decoder = decoder_named(decoder, "decode_range")
    warn_of_far_rows(sketch)
    warn_of_more(sketch, max(numbers))
    with told_progress("decode", progress, "fits", "Finding clusters") as advance:
        fit = decoder.fit(sketch, max(numbers), seed=seed, progress=advance)
        found = tuple(_checked_decoding(fit.decode(k), decoder, sketch) for k in numbers)
    for worst in [decoding for decoding in found if not decoding.is_good][:1]:
        warn_of_mistrust(worst)
    return found


def _checked_decoding(found: Any, decoder: Any, sketch: AnySketch) -> Decoding:
    """What a decoder of any origin gave, if it is what a decoder has to give, with its sketch."""
    if not isinstance(found, Decoding):
        msg = (
            f"the fit of {type(decoder).__name__} must decode to a Decoding. It gave "
            f"{type(found).__name__} instead."
        )
        raise TypeError(msg)
    return found if found.sketch is not None else replace(found, sketch=sketch)
