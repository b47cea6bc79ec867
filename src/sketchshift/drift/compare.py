r"""Did the data change between two sketches, and where.

Takes two sketches of one spec; hands a :class:`Comparison`. The distance between the sketches is
the maximum mean discrepancy (MMD) of their rows, and its threshold comes from their counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sketchshift._registry import show_card
from sketchshift._text import counted, visible
from sketchshift._threads import one_blas_thread
from sketchshift._typing import Float32Array, FloatArray, RealArray
from sketchshift._validation import check_number, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.problem import Problem, check_decodable, warn_of_mistrust, warn_of_more
from sketchshift.decoders.shares import ClusterCells, ClusterSketches, follow_clusters
from sketchshift.decoders.turnkey import Turnkey, TurnkeyFit
from sketchshift.drift.noise import (
    FREQUENCIES,
    AddedNoise,
    Noise,
    NullLaw,
    PlannedNoise,
    SamplingNoise,
    spectrum_of_cells,
    trace_of,
)
from sketchshift.errors import DataError, PlanWarning, warn
from sketchshift.features import SketchSpec, Spectrum
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.kernels import select_kernel
from sketchshift.metrics import assign
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.sketch.reading import Reading

__all__ = [
    "ClusterChange",
    "Clusters",
    "Comparison",
    "Distance",
    "Population",
    "check_false_alarm",
    "cluster_changes",
    "compare",
    "distance_between",
    "n_rows",
    "name_clusters",
    "percent",
    "score_rows",
]

# What comparisons share: a sketch of all rows, its fit, its clusters, and its noise.

Clusters = int | Literal["auto"] | None

ENOUGH = 10
"""Clusters that a fit is made for when none are asked for: it only serves the noise."""

DIRECTIONS = 10
"""Along which rows of a cluster are taken to spread where their covariance is not known."""

WIDE = 2**20
"""Columns times frequencies from which on fits wait until somebody asks for clusters."""


@dataclass(frozen=True, eq=False)
class Population:
    """The rows of all slices together: what comparisons ask of them, made when they do.

    Attributes
    ----------
    whole : Sketch or PrivateSketch
        Of all rows.
    n_clusters : int, "auto" or None
        Clusters asked for, or None.
    seed : int
        Of the decoder.
    caller : str
        For messages.
    given : Decoding or None
        Clusters of the rows that are there already: they keep their numbers.
    """

    whole: AnySketch
    n_clusters: Clusters
    seed: int
    caller: str
    given: Decoding | None = None

    @classmethod
    def of(cls, whole: AnySketch, n_clusters: Clusters, seed: int, caller: str) -> Population:
        """Check what is asked for; where that takes no time, make it as well."""
        if isinstance(n_clusters, str) and n_clusters != "auto":
            must = f'"auto", None or an integer from 1 to {MAX_CLUSTERS}'
            raise parameter_error(caller, "n_clusters", must, n_clusters)
        if n_clusters == "auto" and whole.spec.noise is not None:
            n_clusters = None  # a plan for drift keeps nothing to decode
        k = 1 if n_clusters is None or isinstance(n_clusters, str) else n_clusters
        check_decodable(whole, k, seed, caller)
        population = cls(whole, n_clusters, seed, caller)
        if not population.is_lazy:
            _ = population.noise, population.decoding  # with their warnings
        return population

    @property
    def is_lazy(self) -> bool:
        """Whether clusters wait until they are asked for: where the noise is known without."""
        return self._is_wide or self._spectrum is not None

    @cached_property
    def noise(self) -> Noise:
        """That of the distance of two sketches of such rows."""
        if self._spectrum is not None:
            return PlannedNoise(self._spectrum)
        if not self._is_wide:
            return self.sampling
        assert isinstance(self.whole, Sketch)
        if self.whole.spec.cells is None:
            first = self.whole.prefix(min(FREQUENCIES, self.whole.spec.sketch_size))
            return Population(first, None, self.seed, self.caller).sampling
        return PlannedNoise(spectrum_of_cells(self.whole, self.seed))

    @cached_property
    def sampling(self) -> SamplingNoise:
        """That of one of the rows, in all that a sketch has of it."""
        return SamplingNoise.of(self.fit.problem, self.fit.points)

    @cached_property
    @one_blas_thread
    def fit(self) -> TurnkeyFit:
        """Points that stand for the rows."""
        problem = Problem.of(self.whole, self._largest_k, None, self.seed, self.caller)
        return Turnkey().fit_problem(problem, self._largest_k, self.seed)

    @cached_property
    @one_blas_thread
    def decoding(self) -> Decoding | None:
        """The clusters, if asked for."""
        if self.n_clusters is None or self.given is not None:
            return self.given
        if isinstance(self.n_clusters, str):
            decoding = self.fit.decode_auto(self._largest_k)
        else:
            warn_of_more(self.whole, self.n_clusters)
            decoding = self.fit.decode(self.n_clusters)
        warn_of_mistrust(decoding)
        return decoding

    def share_variances(self, clusters: ClusterCells | ClusterSketches) -> FloatArray:
        """Variances, of one row, of the shares that are found in a sketch, shape (k,)."""
        if isinstance(clusters, ClusterCells):
            shares = np.minimum(clusters.weights, 1.0)
            return np.asarray(shares * (1.0 - shares))  # rows are counted
        return self.sampling.share_variances(clusters)

    @property
    def _largest_k(self) -> int:
        """The number of clusters that a fit is made for."""
        if isinstance(self.n_clusters, int):
            return self.n_clusters
        most = Turnkey().most_clusters(self.whole.spec, None)
        return min(most, ENOUGH) if self.n_clusters is None else most

    @property
    def _spectrum(self) -> Spectrum | None:
        """What the plan knows of the noise; None with noise that it does not know of."""
        return self.whole.spec.noise if self.whole.noise_std == 0.0 else None

    @property
    def _is_wide(self) -> bool:
        """Whether a fit takes long, and the waves alone tell enough of the noise."""
        spec = self.whole.spec
        is_plain = isinstance(self.whole, Sketch) and not self.whole.is_far
        return is_plain and spec.sketch_size * spec.n_features > WIDE


# Which clusters grew, shrank or moved between two sketches.
#
# Clusters are those of both sketches together. Their shares on either side are told by cells, or
# fitted with places and shapes held fixed; their places are the means of the points that stand for
# the rows of that side, around the common centroids.
#
# Symbols
# -------
# k, d      clusters, dimension

FITTING = 0.03
"""Moves that fits of equal data differ by, as a share of the cluster's width (measured)."""


@dataclass(frozen=True, eq=False)
class ClusterChange:
    """A cluster of two sketches together, and what became of it between them.

    Attributes
    ----------
    centroid : array of shape (d,)
        Of both sketches together, in the units of the data.
    share_a, share_b : float
        Shares of the rows of either sketch.
    standard_error : float
        Of ``share_b - share_a``, from sampling and from the noise of releases.
    share_p_value : float
        The probability of a change of the share at least as large without drift.
    centroid_a, centroid_b : array of shape (d,)
        Means of the cluster on either side; NaN where it has no rows, and of private sketches.
    width : float
        Root of the trace of its covariance.
    move_p_value : float
        The probability of a move at least as large without drift.
    verdict : str
        "same", or "grew" or "shrank", and "moved": what is significant at the false-alarm rate
        divided by the number of such tests, 2 k.
    """

    centroid: FloatArray
    share_a: float
    share_b: float
    standard_error: float
    share_p_value: float
    centroid_a: FloatArray
    centroid_b: FloatArray
    width: float
    move_p_value: float
    verdict: str

    @property
    def change(self) -> float:
        """What the share grew by."""
        return self.share_b - self.share_a

    @property
    def move(self) -> float:
        """Distance from where it was to where it is, in the units of the data."""
        return float(np.linalg.norm(self.centroid_b - self.centroid_a))

    @property
    def relative_move(self) -> float:
        """The move as a share of the width; infinity for points that moved."""
        if self.move > 0.0 and self.width == 0.0:
            return math.inf
        return self.move / (self.width or 1.0)

    def tell(self, name: str) -> str:
        """What became of the cluster, in words, under a name."""
        words = []
        for word in self.verdict.split(" and "):
            if word == "moved":
                words.append(f"moved by {self.relative_move:.2g} of its width")
            elif word != "same":
                words.append(f"{word} from {percent(self.share_a)} to {percent(self.share_b)}")
        return f"{name} {' and '.join(words) or 'is the same'}"

    def __repr__(self) -> str:
        return (
            f"<ClusterChange {self.share_a:.3f} -> {self.share_b:.3f}, moved by "
            f"{self.relative_move:.2g} widths: {self.verdict}>"
        )


@one_blas_thread
def cluster_changes(
    sides: tuple[AnySketch, AnySketch],
    counts: tuple[float, float],
    population: Population,
    false_alarm: float,
) -> tuple[ClusterChange, ...]:
    """One record a cluster, in the order of the decoding.

    Parameters
    ----------
    sides : pair of sketches
        Before and after.
    counts : pair of float
        Numbers of independent rows.
    population : Population
        Both together, decoded.
    false_alarm : float
        For all clusters together.

    Returns
    -------
    changes : tuple of ClusterChange
        Costs two refits of the sketch.
    """
    from scipy.special import ndtr

    decoding, fit = population.decoding, population.fit
    assert decoding is not None
    whole, spreads = fit.problem.sketch, _spreads(decoding)
    clusters = follow_clusters(decoding, whole.spec, whole)
    scale = sum(1.0 / n for n in counts)
    added = AddedNoise.of(*sides).share_variances(clusters)
    errors = np.sqrt(scale * population.share_variances(clusters) + added)
    parts = np.array([clusters.shares_of(side) for side in sides])
    means = [_means(fit, side, decoding) for side in sides]
    scales = sum(1.0 / np.maximum(n * part, 1.0) for n, part in zip(counts, parts, strict=True))
    level, changes = false_alarm / (2 * len(errors)), []
    for i, (share_a, share_b) in enumerate(parts.T.tolist()):
        # a single cluster has an error of 0, and nothing that can change
        ratio = abs(share_b - share_a) / errors[i] if errors[i] > 1e-12 else 0.0
        share_p = float(2.0 * ndtr(-ratio))
        squared = float(np.square(means[1][i] - means[0][i]).sum())
        law = NullLaw.of(spreads[i] * (scales[i] + FITTING**2))
        move_p = law.tail(squared) if math.isfinite(squared) else 1.0
        words = ["grew" if share_b > share_a else "shrank"] * (share_p < level)
        words += ["moved"] * (move_p < level)
        changes.append(
            ClusterChange(
                decoding.centroids[i],
                share_a,
                share_b,
                float(errors[i]),
                share_p,
                means[0][i],
                means[1][i],
                math.sqrt(float(spreads[i].sum())),
                move_p,
                " and ".join(words) or "same",
            )
        )
    return tuple(changes)


def _means(fit: TurnkeyFit, side: AnySketch, decoding: Decoding) -> FloatArray:
    """Means of the points of one side in the cells of the centroids, shape (k, d)."""
    if side.noise_std > 0.0:  # what its noise does to a mean has no law here
        return np.full_like(decoding.centroids, np.nan)
    points, spec = fit.refit(side), side.spec
    labels = assign(
        points.places, (decoding.centroids - spec.rows.center_vector) * spec.rows.per_unit
    )
    places = spec.rows.center_vector + points.places * spec.rows.scale_vector
    columns = [points.weights, *(points.weights * column for column in places.T)]
    mass, *sums = (np.bincount(labels, each, minlength=len(decoding.weights)) for each in columns)
    means: FloatArray = np.column_stack(sums) / np.where(mass > 0.0, mass, np.nan)[:, None]
    return means


def _spreads(decoding: Decoding) -> FloatArray:
    """Variances of each cluster along its principal axes, shape (k, d)."""
    if decoding.covariances is not None:
        return np.asarray(np.maximum(np.linalg.eigvalsh(decoding.covariances), 0.0))
    # of many columns the size alone is known: as if rows spread along a few directions
    k, d = decoding.centroids.shape
    few = min(d, DIRECTIONS)
    return np.full((k, few), (decoding.cost or 0.0) / few)


ROUNDING = 1e-7
"""Distances up to this are the rounding of integers and of features."""

LEAST, MOST = 1e-12, 0.5  # false-alarm rates


@dataclass(frozen=True)
class Distance:
    r"""The distance between two sketches, and what it would be without drift.

    Attributes
    ----------
    distance : float
        :math:`\|z_a - z_b\|`, from 0 to 2: the MMD between the rows of the two.
    excess : float
        Squared distance minus its mean without drift: an estimate of the squared MMD between
        the populations. Negative values are chance.
    threshold : float
        What the distance exceeds with the probability ``false_alarm`` without drift.
    false_alarm : float
        As asked for.
    p_value : float
        The probability, without drift, of a distance at least as large.
    bound : float or None
        A larger threshold, which holds for every distribution and any count; None
        with sample weights or with the noise of a release, where there is none.
    """

    distance: float
    excess: float
    threshold: float
    false_alarm: float
    p_value: float
    bound: float | None

    @property
    def drifted(self) -> bool:
        """Whether the distance is beyond the threshold."""
        return self.distance > self.threshold


@dataclass(frozen=True, eq=False)
class Comparison(Distance):
    r"""What two sketches say about drift between them.

    Attributes
    ----------
    distance : float
        :math:`\|z_a - z_b\|`, from 0 to 2: the MMD between the rows of the two.
    excess : float
        Squared distance minus its mean without drift.
    threshold : float
        What the distance exceeds with the probability ``false_alarm`` without drift.
    false_alarm : float
        As asked for.
    p_value : float
        The probability, without drift, of a distance at least as large.
    bound : float or None
        A larger threshold, which holds for every distribution; None with weights or
        added noise.
    counts : pair of float
        Numbers of independent rows that were reckoned with.
    """

    counts: tuple[float, float]
    _sides: tuple[AnySketch, AnySketch] = field(init=False)
    _population: Population = field(init=False)

    @property
    def decoding(self) -> Decoding | None:
        """The clusters of both sketches together; None if not asked for."""
        return self._population.decoding

    @cached_property
    def clusters(self) -> tuple[ClusterChange, ...]:
        """One for each cluster of both sketches together, heaviest first; none if not asked for.

        Of wide sketches they are decoded when first asked for.
        """
        if self.decoding is None:
            return ()
        return cluster_changes(self._sides, self.counts, self._population, self.false_alarm)

    @property
    def sentence(self) -> str:
        """What changed, in one sentence: the clusters that changed most, at most three."""
        changed = [i for i, cluster in enumerate(self.clusters) if cluster.verdict != "same"]
        changed = sorted(changed, key=lambda i: -round(abs(self.clusters[i].change), 6))
        names = name_clusters(self.decoding)
        told = "; ".join(self.clusters[i].tell(names[i]) for i in changed[:TOLD])
        more = len(changed) - TOLD
        told += f"; and {counted(more, 'more cluster')}" if more > 0 else ""
        if not self.drifted:
            but = f", but {told}" if told else ""
            return f"The second has not changed by more than chance{but}."
        if not self.clusters:
            return "The second has changed: its rows lie elsewhere than those of the first."
        return f"The second has changed: {told or 'a little in several clusters, none by much'}."

    def __repr__(self) -> str:
        verdict = "drift" if self.drifted else "no drift"
        clusters = f", {len(self.clusters)} clusters" if self.is_decoded else ""
        return (
            f"<Comparison: {verdict}, distance {self.distance:.3g}, threshold "
            f"{self.threshold:.3g} at {self.false_alarm:g}{clusters}>"
        )

    @property
    def is_decoded(self) -> bool:
        """Whether clusters are there: for a word they are not made, where that takes long."""
        return "decoding" in vars(self._population)

    def _repr_html_(self) -> str | None:
        return show_card(self)


@one_blas_thread
def compare(
    a: AnySketch,
    b: AnySketch,
    *,
    n_clusters: Clusters = "auto",
    false_alarm: float = 0.01,
    effective_counts: tuple[float, float] | None = None,
    seed: int = 0,
) -> Comparison:
    r"""Whether, and where, the data of two sketches differ.

    Without drift the squared distance :math:`\|z_a - z_b\|^2` follows, for many rows, the law of
    :math:`(1/n_a + 1/n_b) \sum_i \lambda_i \chi^2_1`, with :math:`\lambda_i` the eigenvalues
    of the covariance of :math:`\frac{t(x)}{E t} (\phi(x) - z)`. A plan of :func:`plan_drift` has
    their shape; otherwise they are taken over points that stand for the rows of both sketches.
    Their sum is what the sketches know exactly; the quantile is that of the saddlepoint
    approximation. Simulated rates are in ``docs/drift.md``.

    Parameters
    ----------
    a, b : Sketch or PrivateSketch
        Before and after, of one spec, both raw or both private. Their rows must be independent
        draws: a sketch and a part of it are not, so compare ``whole - part`` with ``part``. Of
        private ones the noise is part of the threshold, and moves are not told.
    n_clusters : int, "auto" or None
        Clusters of both together to report on; None leaves them out, and so does "auto" for a
        plan of :func:`plan_drift`.
    false_alarm : float, default=0.01
        The rate, from 1e-12 to 0.5, at which sketches without drift exceed the threshold; for
        the clusters, that of any wrong verdict.
    effective_counts : pair of float or None
        Numbers of independent rows. None takes the counts. Give fewer where rows depend on each
        other, and Kish's :math:`(\sum w)^2 / \sum w^2` where they have unequal sample weights,
        whose squares a sketch does not hold.
    seed : int, default=0
        Of the decoder. The same sketches and seed give the same bytes.

    Returns
    -------
    comparison : Comparison
        O(m) with a plan of :func:`plan_drift`: a millisecond. Otherwise one decoding of ``a + b``,
        O(1000^2 m) for the threshold, and a refit of either sketch for the moves. Where d m is
        more than a million, the threshold comes from 2048 frequencies and 1000 points, and
        clusters are decoded when ``clusters`` is first asked for.

    Notes
    -----
    The trace of the covariance is exact, and ``bound`` is the threshold of Gretton et al. (2012),
    :math:`\sqrt{1/n_a + 1/n_b}\,(1 + \sqrt{2 \log(1/\alpha)})`.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> monday = rng.normal(size=(4000, 2)) + np.where(rng.random(4000) < 0.5, 0, 9)[:, None]
    >>> tuesday = rng.normal(size=(4000, 2)) + np.where(rng.random(4000) < 0.6, 0, 9)[:, None]
    >>> spec = ss.plan(monday, n_clusters=2)
    >>> found = ss.compare(ss.sketch(monday, spec), ss.sketch(tuesday, spec), n_clusters=2)
    >>> found.drifted
    True
    >>> [cluster.verdict for cluster in found.clusters]
    ['grew', 'shrank']
    """
    false_alarm = check_false_alarm("compare", false_alarm)
    _check_pair("compare", a=a, b=b)
    counts = _counts((a, b), effective_counts)
    population = Population.of(a + b, n_clusters, seed, "compare")
    found = distance_between(a, b, population.noise, false_alarm, counts)
    comparison = Comparison(**vars(found), counts=counts)
    vars(comparison).update(_sides=(a, b), _population=population)
    if not population.is_lazy:
        _ = comparison.clusters
    return comparison


def _check_pair(caller: str, **sketches: AnySketch) -> None:
    """Refuse what is not a pair of sketches of one spec."""
    for name, sketch in sketches.items():
        if not isinstance(sketch, AnySketch):
            raise parameter_error(caller, name, "a Sketch or a PrivateSketch", sketch)
    first, second = sketches.values()
    first.check_addable(second, "compare")


def check_false_alarm(caller: str, value: float) -> float:
    """A rate that a threshold can be given for."""
    return check_number(caller, "false_alarm", value, low=LEAST, high=MOST)


def _warn_of_far_rows(*sketches: AnySketch) -> None:
    """Tell of rows that only cells of their own hold: no wave has seen them."""
    weight = sum(float(s.far.weights.sum()) for s in sketches if isinstance(s, Sketch))
    if weight > 0.0:
        msg = (
            f"rows of weight {weight:,.6g} lie beyond the reach of the plan and are not compared. "
            "Plan anew on a sample that has such rows."
        )
        warn(msg, PlanWarning)


OTHER, ENOUGH_ROWS = 0.1, 500
"""Relative change of the variance of features that is no chance from so many rows on."""


def _warn_of_other_data(a: AnySketch, b: AnySketch) -> None:
    """Tell that a plan has measured the noise of other data than these two samples are of."""
    spectrum = a.spec.noise
    if spectrum is None or not spectrum.trace or min(a.count, b.count) < ENOUGH_ROWS:
        return
    traces = [trace_of(side.z, side.count) for side in (a, b)]
    ratios = [trace / spectrum.trace for trace in traces]
    if min(ratios) > 1.0 + OTHER or max(ratios) < 1.0 - OTHER:
        msg = (
            f"both sketches vary otherwise than the rows of the plan: by {traces[0]:.3g} and "
            f"{traces[1]:.3g}, and not {spectrum.trace:.3g}. The rate of false alarms may be far "
            "from the one asked for. Plan anew on recent rows."
        )
        warn(msg, PlanWarning)


def distance_between(
    a: AnySketch,
    b: AnySketch,
    noise: Noise,
    false_alarm: float,
    counts: tuple[float, float] | None = None,
) -> Distance:
    """The distance of two sketches beside that of samples of one population.

    Parameters
    ----------
    a, b : Sketch
        Of one spec, with rows.
    noise : Noise
        Of the population.
    false_alarm : float
        The rate of the threshold.
    counts : pair of float or None
        Numbers of independent rows; None takes those of the sketches.

    Returns
    -------
    distance : Distance
        O(m), and some dozens of sums of up to 1000 terms; for private sketches also their law.
    """
    counts = counts or (n_rows(a), n_rows(b))
    law = noise.null(a, b, counts)
    _warn_of_far_rows(a, b)
    _warn_of_other_data(a, b)
    distance = float(np.linalg.norm(a.z - b.z))
    squared = distance**2
    is_plain = all(s.noise_std == 0.0 and s.total_weight == s.count for s in (a, b))
    factor = 1.0 + math.sqrt(2.0 * math.log(1.0 / false_alarm))
    return Distance(
        distance=distance,
        excess=squared - law.mean,
        threshold=max(ROUNDING, math.sqrt(law.quantile(false_alarm))),
        false_alarm=false_alarm,
        p_value=law.tail(squared) if distance > ROUNDING else 1.0,
        bound=factor * math.sqrt(1.0 / counts[0] + 1.0 / counts[1]) if is_plain else None,
    )


def n_rows(sketch: AnySketch) -> float:
    """Number of rows; at least 1, as noise may leave less of a few."""
    return max(1.0, float(sketch.count))


def _counts(
    sides: tuple[AnySketch, AnySketch], effective: tuple[float, float] | None
) -> tuple[float, float]:
    for word, sketch in zip(("first", "second"), sides, strict=True):
        if sketch.total_weight <= 0:
            msg = (
                f"there is nothing to compare: the {word} sketch holds {sketch.count} rows, of "
                "weight 0 in all. Compare sketches with rows."
            )
            raise DataError(msg)
    first, second = (n_rows(sketch) for sketch in sides)
    if effective is None:
        return first, second
    if not isinstance(effective, Sequence) or len(effective) != 2:
        raise parameter_error("compare", "effective_counts", "a pair of numbers", effective)
    return (
        check_number("compare", "effective_counts", effective[0], low=1.0, high=first),
        check_number("compare", "effective_counts", effective[1], low=1.0, high=second),
    )


TOLD = 3
"""Clusters named in a sentence."""


def name_clusters(decoding: Decoding | None) -> list[str]:
    """What clusters are called in a sentence: by what sets them apart, in quotes."""
    clusters = () if decoding is None else decoding.profile.clusters
    return [f"'{visible(each.name)}'" for each in clusters]


def percent(share: float) -> str:
    """A share with the digits that mean something in a sentence: 12 %, 3.4 %, 0.05 %."""
    value = 100.0 * share
    return f"{value:.0f} %" if value >= 10.0 or value == 0.0 else f"{value:.2g} %"


# Which rows are typical of the change: the witness function of the two sketches.

SCORED = 2**22  # real and imaginary parts that are held at a time


def score_rows(
    before: AnySketch, after: AnySketch, rows: Any, *, columns: Sequence[str] | None = None
) -> FloatArray:
    r"""How typical rows are of what changed from one sketch to another.

    .. math::

        f(x) = \mathrm{Re} \langle z_b - z_a, \phi(x) \rangle
        = \frac{1}{\sqrt m} \sum_j \mathrm{Re}\left((z_b - z_a)_j\,
        e^{-\mathrm{i} \langle \omega_j, x' \rangle}\right)

    the witness function of the MMD: the density of ``after`` minus that of ``before``, as the
    kernel of the spec sees them. Large values are more typical of ``after``, negative ones of
    ``before``; rows in a cluster that is new have the largest.

    Parameters
    ----------
    before, after : Sketch or PrivateSketch
        Of one spec. Their rows are not needed.
    rows : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        Any rows, n of them: those that were sketched, or others.
    columns : sequence of str or None
        Columns to read, by name; None takes those of the spec, or all.

    Returns
    -------
    scores : array of shape (n,)
        In the order of the rows; NaN for rows that hold NaN or infinity, or lie beyond the reach of
        the spec. O(n m d).

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> spec = ss.drift.plan_drift(rng.normal(size=(1000, 80)), sketch_size=200)
    >>> before, after = rng.normal(size=(2, 1000, 80))
    >>> after[:50] += 2.0
    >>> scores = ss.drift.score_rows(ss.sketch(before, spec), ss.sketch(after, spec), after)
    >>> bool((np.argsort(-scores)[:50] < 50).all())
    True
    """
    _check_pair("score_rows", before=before, after=after)
    spec, turns = before.spec, before.frequencies.turns
    change = (after.z - before.z).view(np.float64)
    scores = [np.zeros(0)]
    for block in Reading(spec=spec, columns=columns).open(rows):
        if block.values.shape[1] != spec.n_features:
            msg = (
                f"{block.source} has {block.values.shape[1]} columns, and the sketches have "
                f"{spec.n_features}. Select the columns."
            )
            raise DataError(msg)
        scores.append(_witness(block.values, change, turns, spec))
    return np.concatenate(scores)


def _witness(
    values: RealArray, change: FloatArray, turns: Float32Array, spec: SketchSpec
) -> FloatArray:
    """Scores of rows, shape (n,); some rows at a time."""
    rows, squares = np.empty(values.shape), np.empty(len(values))
    exact = np.ascontiguousarray(values, dtype=np.float64)
    spec.rows.normalise(exact, select_kernel("cpu"), rows, squares)
    is_near = squares < spec.reach**2  # False for NaN, too
    scores, near = np.full(len(rows), np.nan), np.flatnonzero(is_near)
    for some in np.array_split(near, max(1, -(-len(near) * len(change) // SCORED))):
        points = rows[some]
        if spec.axes is not None:
            points = select_kernel("cpu").project(points, spec.axes.table)
        scores[some] = select_kernel().features(points, turns).view(np.float64) @ change
    return scores
