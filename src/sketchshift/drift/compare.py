r"""Did the data change between two sketches, and where.

Takes two sketches of one spec; hands a :class:`Comparison`. The distance between the sketches is
the maximum mean discrepancy (MMD) of their rows, and its threshold comes from their counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import FloatArray
from sketchshift._validation import check_number, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.problem import Problem, warn_of_mistrust, warn_of_more
from sketchshift.decoders.shares import follow_clusters
from sketchshift.decoders.turnkey import Turnkey, TurnkeyFit
from sketchshift.drift.noise import AddedNoise, SamplingNoise, quantile, tail
from sketchshift.errors import DataError, PlanWarning, warn
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.metrics import assign
from sketchshift.sketch import AnySketch, Sketch

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
]

# What comparisons share: a sketch of all rows, its fit, its clusters, and its noise.

Clusters = int | Literal["auto"] | None

ENOUGH = 10
"""Clusters that a fit is made for when none are asked for: it only serves the noise."""


@dataclass(frozen=True, eq=False)
class Population:
    """The rows of all slices together.

    Attributes
    ----------
    fit : TurnkeyFit
        Points that stand for the rows.
    noise : SamplingNoise
        That of one of the rows.
    decoding : Decoding or None
        The clusters, if asked for.
    """

    fit: TurnkeyFit
    noise: SamplingNoise
    decoding: Decoding | None

    @classmethod
    def of(cls, whole: AnySketch, n_clusters: Clusters, seed: int, caller: str) -> Population:
        """Fit a sketch, and decode the clusters asked for: no more than one fit."""
        if isinstance(n_clusters, str) and n_clusters != "auto":
            must = f'"auto", None or an integer from 1 to {MAX_CLUSTERS}'
            raise parameter_error(caller, "n_clusters", must, n_clusters)
        decoder = Turnkey()
        k = _largest_k(decoder, n_clusters, whole.spec)
        problem = Problem.of(whole, k, None, seed, caller)
        fit = decoder.fit_problem(problem, k, seed)
        noise = SamplingNoise.of(problem, fit.points)
        if n_clusters is None:
            return cls(fit, noise, None)
        if not isinstance(n_clusters, str):
            warn_of_more(whole, n_clusters)
        decoding = fit.decode_auto(k) if n_clusters == "auto" else fit.decode(k)
        warn_of_mistrust(decoding)
        return cls(fit, noise, decoding)


def _largest_k(decoder: Turnkey, n_clusters: Clusters, spec: SketchSpec) -> int:
    """The number of clusters that a fit is made for."""
    most = decoder.most_clusters(spec, None)
    if n_clusters is None:
        return min(most, ENOUGH)
    return most if isinstance(n_clusters, str) else n_clusters


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

    def __repr__(self) -> str:
        return (
            f"<ClusterChange {self.share_a:.3f} -> {self.share_b:.3f}, moved by "
            f"{self.relative_move:.2g} widths: {self.verdict}>"
        )


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
    decoding, fit = population.decoding, population.fit
    assert decoding is not None
    whole = fit.problem.sketch
    clusters = follow_clusters(decoding, whole.spec, whole)
    scale = sum(1.0 / n for n in counts)
    added = AddedNoise.of(*sides).share_variances(clusters)
    errors = np.sqrt(scale * population.noise.share_variances(clusters) + added)
    parts = np.array([clusters.shares_of(side) for side in sides])
    share_p = _normal_tails(parts[1] - parts[0], errors)
    means = [_means(fit, side, decoding) for side in sides]
    rows = np.maximum(parts * np.array(counts)[:, None], 1.0)
    move_p = _move_tails(means[1] - means[0], decoding, (1.0 / rows).sum(axis=0))
    level = false_alarm / (2 * len(errors))
    return tuple(
        ClusterChange(
            decoding.centroids[i],
            float(parts[0, i]),
            float(parts[1, i]),
            float(errors[i]),
            float(share_p[i]),
            means[0][i],
            means[1][i],
            math.sqrt(float(_covariances(decoding)[i].trace())),
            float(move_p[i]),
            _verdict(parts[1, i] - parts[0, i], share_p[i] < level, move_p[i] < level),
        )
        for i in range(len(errors))
    )


def _normal_tails(changes: FloatArray, errors: FloatArray) -> FloatArray:
    """Two-sided; 1 where nothing can change, as the share of a single cluster."""
    from scipy.special import ndtr

    ratios = np.divide(np.abs(changes), errors, out=np.zeros_like(errors), where=errors > 1e-12)
    return np.asarray(2.0 * ndtr(-ratios))


def _means(fit: TurnkeyFit, side: AnySketch, decoding: Decoding) -> FloatArray:
    """Means of the points of one side in the cells of the centroids, shape (k, d)."""
    if side.noise_std > 0.0:  # what its noise does to a mean has no law here
        return np.full_like(decoding.centroids, np.nan)
    points, spec = fit.refit(side), side.spec
    places = spec.center_vector + points.places * spec.scale_vector
    k = len(decoding.weights)
    normalised = (decoding.centroids - spec.center_vector) * spec.per_unit
    labels = assign(points.places, normalised)
    mass = np.bincount(labels, points.weights, minlength=k)
    sums = [np.bincount(labels, points.weights * column, minlength=k) for column in places.T]
    mass = np.where(mass > 0.0, mass, np.nan)
    return np.asarray(np.column_stack(sums) / mass[:, None])


def _move_tails(moves: FloatArray, decoding: Decoding, scales: FloatArray) -> FloatArray:
    """Of the squared move of a mean of rows, with what fits add; 1 where there is no mean."""
    tails = []
    for move, covariance, scale in zip(moves, _covariances(decoding), scales, strict=True):
        variances = np.maximum(np.linalg.eigvalsh(covariance), 0.0) * (scale + FITTING**2)
        squared = float(move @ move)
        tails.append(tail(squared, variances) if math.isfinite(squared) else 1.0)
    return np.array(tails)


def _covariances(decoding: Decoding) -> FloatArray:
    k, d = decoding.centroids.shape
    return np.zeros((k, d, d)) if decoding.covariances is None else decoding.covariances


def _verdict(change: float, is_share: bool, is_move: bool) -> str:
    words = ["grew" if change > 0 else "shrank"] * bool(is_share) + ["moved"] * bool(is_move)
    return " and ".join(words) or "same"


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
        A larger threshold, which holds for every distribution and any count; None with a tilt,
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
        A larger threshold, which holds for every distribution; None with a tilt, weights or
        added noise.
    counts : pair of float
        Numbers of independent rows that were reckoned with.
    clusters : tuple of ClusterChange
        One for each cluster of both sketches together, heaviest first; none if not asked for.
    decoding : Decoding or None
        The clusters of both sketches together.
    """

    counts: tuple[float, float]
    clusters: tuple[ClusterChange, ...]
    decoding: Decoding | None

    def __repr__(self) -> str:
        verdict = "drift" if self.drifted else "no drift"
        return (
            f"<Comparison: {verdict}, distance {self.distance:.3g}, threshold "
            f"{self.threshold:.3g} at {self.false_alarm:g}, {len(self.clusters)} clusters>"
        )


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
    of the covariance of :math:`\frac{t(x)}{E t} (\phi(x) - z)`. They are taken over points
    decoded from both sketches together, and scaled to what the sketch knows exactly; the quantile
    is that of the saddlepoint approximation. Simulated rates are in ``docs/drift.md``.

    Parameters
    ----------
    a, b : Sketch or PrivateSketch
        Before and after, of one spec, both raw or both private. Their rows must be independent
        draws: a sketch and a part of it are not, so compare ``whole - part`` with ``part``. Of
        private ones the noise is part of the threshold, and moves are not told.
    n_clusters : int, "auto" or None
        Clusters of both together to report on; None leaves them out.
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
        Costs one decoding of ``a + b``, O(1000^2 m) for the threshold, and a refit of either
        sketch for the moves.

    Notes
    -----
    Without a tilt the trace of the covariance is exact, and ``bound`` is the threshold of
    Gretton et al. (2012), :math:`\sqrt{1/n_a + 1/n_b}\,(1 + \sqrt{2 \log(1/\alpha)})`. With a
    tilt, rows with heavy tails (an infinite fourth moment) make the approximation worse.

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
    for name, sketch in (("a", a), ("b", b)):
        if not isinstance(sketch, AnySketch):
            raise parameter_error("compare", name, "a Sketch or a PrivateSketch", sketch)
    a.check_addable(b, "compare")
    whole = a + b
    counts = _counts((a, b), effective_counts)
    population = Population.of(whole, n_clusters, seed, "compare")
    clusters: tuple[ClusterChange, ...] = ()
    if population.decoding is not None:
        clusters = cluster_changes((a, b), counts, population, false_alarm)
    found = distance_between(a, b, counts, population.noise, false_alarm)
    return Comparison(
        **asdict(found), counts=counts, clusters=clusters, decoding=population.decoding
    )


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


def distance_between(
    a: AnySketch,
    b: AnySketch,
    counts: tuple[float, float],
    noise: SamplingNoise,
    false_alarm: float,
) -> Distance:
    """The distance of two sketches beside that of samples of one population.

    Parameters
    ----------
    a, b : Sketch
        Of one spec, with rows.
    counts : pair of float
        Numbers of independent rows.
    noise : SamplingNoise
        Of the population.
    false_alarm : float
        The rate of the threshold.

    Returns
    -------
    distance : Distance
        O(m), and some dozens of sums of 1000 terms; for private sketches also O(1000^2 m).
    """
    scale = 1.0 / counts[0] + 1.0 / counts[1]
    weights = noise.law(scale, AddedNoise.of(a, b))
    _warn_of_far_rows(a, b)
    distance = float(np.linalg.norm(a.z - b.z))
    squared = distance**2
    is_plain = a.spec.tilt is None and all(
        s.noise_std == 0.0 and s.total_weight == s.count for s in (a, b)
    )
    factor = 1.0 + math.sqrt(2.0 * math.log(1.0 / false_alarm))
    return Distance(
        distance=distance,
        excess=squared - float(weights.sum()),
        threshold=max(ROUNDING, math.sqrt(quantile(false_alarm, weights))),
        false_alarm=false_alarm,
        p_value=tail(squared, weights) if distance > ROUNDING else 1.0,
        bound=factor * math.sqrt(scale) if is_plain else None,
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
    if effective is None:
        return n_rows(sides[0]), n_rows(sides[1])
    if not isinstance(effective, Sequence) or len(effective) != 2:
        raise parameter_error("compare", "effective_counts", "a pair of numbers", effective)
    first, second = (
        check_number("compare", "effective_counts", n, low=1.0, high=n_rows(sketch))
        for n, sketch in zip(effective, sides, strict=True)
    )
    return first, second
