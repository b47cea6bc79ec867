r"""Did the data change between two sketches, and where.

Takes two sketches of one spec; hands a :class:`Comparison`. The distance between the sketches is
the maximum mean discrepancy (MMD) of their rows, and its threshold comes from their counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from sketchshift._validation import check_number, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.base import one_blas_thread
from sketchshift.drift.clusters import ClusterChange, cluster_changes
from sketchshift.drift.model import Clusters, Population
from sketchshift.drift.noise import AddedNoise, SamplingNoise
from sketchshift.drift.quadratic import quantile, tail
from sketchshift.errors import DataError, IncompatibleSketchesError
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["Comparison", "Distance", "check_false_alarm", "compare", "distance_between", "n_rows"]

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
    whole = _merged(a, b)
    counts = _counts((a, b), effective_counts)
    population = Population.of(whole, n_clusters, seed, "compare")
    clusters: tuple[ClusterChange, ...] = ()
    if population.decoding is not None:
        clusters = cluster_changes((a, b), counts, population, false_alarm)
    found = distance_between(a, b, counts, population.noise, false_alarm)
    return Comparison(
        **asdict(found), counts=counts, clusters=clusters, decoding=population.decoding
    )


def _merged(a: AnySketch, b: AnySketch) -> AnySketch:
    """Both together; sketches of different specs are refused in the words of the caller."""
    try:
        return a + b
    except IncompatibleSketchesError as error:
        msg = str(error).replace("cannot merge", "cannot compare", 1)
        raise IncompatibleSketchesError(msg) from None


def check_false_alarm(caller: str, value: float) -> float:
    """A rate that a threshold can be given for."""
    return check_number(caller, "false_alarm", value, low=LEAST, high=MOST)


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
    distance = float(np.linalg.norm(a.z - b.z))
    squared = distance**2
    is_plain = a.spec.tilt is None and all(
        isinstance(s, Sketch) and s.total_weight == s.count for s in (a, b)
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
