"""What all decoders share: the problem in normalised coordinates, and the way back.

Takes a ``Sketch``; hands a :class:`Problem` to the decoders and makes the ``Decoding`` in the
units of the data out of what they found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from sketchshift._text import counted, listed
from sketchshift._typing import ComplexArray, Float32Array, FloatArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders.decoder import Decoding, Outcome, Round, Step
from sketchshift.decoders.mixture import Mixture, as_shares, wave_of
from sketchshift.decoders.objective import (
    Box,
    Correlation,
    CorrelationFunction,
    Matching,
    MomentMatching,
    Spread,
)
from sketchshift.errors import DataError, PlanWarning, warn
from sketchshift.features import Cells, SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS, planned_clusters, plans_waves_alone
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.sketch.cells import CellSums
from sketchshift.sketch.clipped import NoisyCells

__all__ = [
    "EMPTY",
    "Problem",
    "check_decodable",
    "check_waves_or_cells",
    "moments_of",
    "normalise_domain",
    "pose",
    "spread_of",
    "warn_of_far_rows",
    "warn_of_mistrust",
    "warn_of_more",
]

EMPTY = 1e-5  # share of a sketch that float32 features leave behind at most
_NUMBERS = 2_000_000  # of clusters, columns and frequencies that the residual of a decoding is of


def check_decodable(sketch: AnySketch, n_clusters: int, seed: int, caller: str) -> None:
    """Refuse what no decoder can be given."""
    if not isinstance(sketch, AnySketch):
        raise parameter_error(caller, "sketch", "a Sketch or a PrivateSketch", sketch)
    check_integer(caller, "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    check_integer(caller, "seed", seed, 0, 2**64 - 1)
    if sketch.total_weight <= 0:
        msg = (
            f"there is nothing to decode: the sketch holds {sketch.count} rows, of weight 0 "
            "in all. Add rows of positive weight first."
        )
        raise DataError(msg)


def warn_of_more(sketch: AnySketch, n_clusters: int) -> None:
    """Warn of more clusters than a sketch of this size serves, if that was left to the plan."""
    planned = planned_clusters(sketch.spec)
    if planned is not None and n_clusters > planned:
        msg = (
            f"this sketch is of the size for {counted(planned, 'cluster')}, and {n_clusters:,} may "
            f"be inaccurate. Sketch the data again with n_clusters={n_clusters} (-k {n_clusters}) "
            "and the usual size."
        )
        warn(msg, PlanWarning)


OTHER_VARIANCE = 2.0  # times that of the plan's sample: the rows have others, far out


def warn_of_far_rows(sketch: AnySketch) -> None:
    """Warn of rows unlike those of the plan, where nothing but waves and moments hold them."""
    spread = sketch.spread if isinstance(sketch, Sketch) else None
    if spread is None or not plans_waves_alone(sketch.spec):
        return
    variance = float(spread[1] @ sketch.spec.rows.per_unit**2)
    if variance > OTHER_VARIANCE:
        msg = (
            f"the rows have {variance:.3g} times the variance of those that the plan has seen, and "
            "waves alone lose clusters to a few far rows. Plan anew, with cells, on a sample that "
            "has such rows, or leave them out if they are faults."
        )
        warn(msg, PlanWarning)


def warn_of_mistrust(decoding: Decoding) -> None:
    """Warn of clusters that cannot be trusted, in the words of :class:`Trust`."""
    if decoding.trust is not None and not decoding.trust.is_good:
        warn(str(decoding.trust), PlanWarning)


@dataclass(frozen=True, eq=False)
class Problem:
    """A sketch to decode, in the normalised coordinates of its spec.

    Attributes
    ----------
    sketch : AnySketch
        As given.
    turns : float32 array of shape (d, m)
        Frequencies divided by 2 pi.
    z : complex array of shape (m,)
        The sketch's vector.
    bandwidth : float
        The bandwidth; of a range, its geometric mean.
    domain : Box or None
        Where to look; None leaves it to the sketch.
    has_moments : bool, default=True
        Whether the moments of the rows are to be used, where they are known.
    """

    sketch: AnySketch
    turns: Float32Array
    z: ComplexArray
    bandwidth: float
    domain: Box | None = None
    has_moments: bool = True

    @classmethod
    def of(
        cls, sketch: AnySketch, n_clusters: int, domain: Box | None, seed: int, caller: str
    ) -> Problem:
        """Check what a decoder was given; ``domain`` is in the units of the data."""
        check_decodable(sketch, n_clusters, seed, caller)
        spec = sketch.spec
        check_waves_or_cells(spec, caller)
        low, high = spec.bandwidths
        if domain is not None:
            domain = normalise_domain(domain, sketch, caller)
        is_empty = isinstance(sketch, Sketch) and sketch.is_far  # no row has left a wave
        z = np.zeros(spec.sketch_size, dtype=np.complex128) if is_empty else sketch.z
        return cls(sketch, sketch.frequencies.turns, z, math.sqrt(low * high), domain, not is_empty)

    def along_axes(self, places: FloatArray) -> FloatArray:
        """What waves see of places (n, d): their coordinates along the axes, if there are any."""
        axes = self.sketch.spec.axes
        return places if axes is None else places @ axes.table.T.astype(np.float64)

    def require_columns(self, caller: str) -> Problem:
        """The problem itself; an error where waves are not those of the columns."""
        if self.sketch.spec.axes is not None:
            msg = (
                f"{caller} needs waves of all columns, and this sketch has them along "
                f"{counted(self.sketch.spec.axes.n_axes, 'axis')} alone. Take ss.decode, or plan "
                "with cells=False and sketch the data again."
            )
            raise DataError(msg)
        return self

    def require_waves(self) -> Problem:
        """The problem itself; an error where there are no waves to look at."""
        if not np.any(self.z):
            msg = (
                "this needs waves, and the sketch has none of its rows. Take ss.decode with a "
                "number of clusters, for which cells suffice, or plan anew on rows like these."
            )
            raise DataError(msg)
        return self

    def warn_of_cells(self, caller: str) -> None:
        """Warn where a decoder of waves is given a sketch that holds its rows in cells."""
        if self.sketch.spec.cells is not None:
            msg = (
                f"{caller} reads the {self.sketch.spec.sketch_size} waves of this sketch and not "
                "its cells, which hold most of what is known of the rows. Take ss.decode without "
                "a decoder, or sketch the data with a plan of cells=False."
            )
            warn(msg, PlanWarning)

    @cached_property
    def box(self) -> Box:
        """The domain, or where the sketch itself says that rows are."""
        return Box.of(self.sketch) if self.domain is None else self.domain

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean (d,) and covariance (d, d) of the rows; NaN off the diagonal beyond 64 columns.

        None where they are not known: a private sketch does not tell them.
        """
        moments = self.sketch.moments if self.has_moments else None
        return None if moments is None else self._normalised_moments(*moments)

    @cached_property
    def outline(self) -> tuple[FloatArray, FloatArray]:
        """The same where they are known, or as the plan expects them."""
        sketch = self.sketch
        return self._normalised_moments(
            *(sketch.outline if self.has_moments else sketch.expected_outline)
        )

    @cached_property
    def cells(self) -> tuple[Cells, CellSums] | None:
        """The cells of the plan, and what is known of the rows of each; None without cells."""
        sketch = self.sketch
        sums = sketch.cells if isinstance(sketch, Sketch) else None
        return None if sums is None or sketch.spec.cells is None else (sketch.spec.cells, sums)

    @cached_property
    def noisy_cells(self) -> tuple[Cells, NoisyCells] | None:
        """The cells of the plan, and what a private sketch tells of each; None without cells."""
        sketch = self.sketch
        told = sketch.cells if isinstance(sketch, PrivateSketch) else None
        return None if told is None or sketch.spec.cells is None else (sketch.spec.cells, told)

    @property
    def is_one_point(self) -> bool:
        """Whether all rows are equal, as far as the sketch can tell: no column varies."""
        return not np.trace(self.outline[1]) > 0.0

    @property
    def noise_floor(self) -> float:
        """Mean of |error of sqrt(m) z_j|^2 by noise: the misfit that the truth itself has."""
        return 2.0 * self.sketch.noise_std**2

    def _normalised_moments(
        self, mean: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        spec = self.sketch.spec
        scales = np.outer(spec.rows.per_unit, spec.rows.per_unit)
        return (mean - spec.rows.center_vector) * spec.rows.per_unit, covariance * scales

    def in_units(self, c: FloatArray) -> FloatArray:
        """Points in the units of the data."""
        spec = self.sketch.spec
        return spec.rows.center_vector + c * spec.rows.scale_vector

    def step(self, index: int, total: int, c: FloatArray, value: float, r: ComplexArray) -> Step:
        """A line of the trace."""
        return Step(index, total, self.in_units(c), float(value), self.relative(r))

    @property
    def frequency_weights(self) -> FloatArray | None:
        """What each frequency counts in sums over all, shape (m,); None: 1."""
        return self.sketch.frequencies.weights

    @cached_property
    def _roots(self) -> FloatArray | float:
        """What a residual is multiplied by before its norm is taken."""
        return 1.0 if self.frequency_weights is None else np.sqrt(self.frequency_weights)

    def correlation(self, residual: ComplexArray) -> Correlation:
        """The correlation function of a residual, with the weights of the frequencies."""
        return CorrelationFunction(self.turns, residual, frequency_weights=self.frequency_weights)

    def matching(self, spread: Spread) -> Matching:
        """The objective of a joint descent, with the weights of the frequencies."""
        return MomentMatching(self.turns, self.z, spread, self.frequency_weights)

    def atoms(self, mixture: Mixture) -> ComplexArray:
        """Sketches of the components of a mixture, each of weight 1: shape (k, m)."""
        return mixture.characteristic_functions(self.turns) / math.sqrt(len(self.z))

    def sketch_of(self, mixture: Mixture) -> ComplexArray:
        """The sketch of a mixture, shape (m,)."""
        return mixture.sketch(self.turns)

    @cached_property
    def norm(self) -> float:
        """Norm of the sketch's vector; 1 for one that is zero, so that one can divide by it."""
        return float(np.linalg.norm(self._roots * self.z)) or 1.0

    @cached_property
    def empty(self) -> float:
        """Share of the sketch below which a residual is rounding, of phases above all."""
        phase = max(np.abs(self.box.lower).max(), np.abs(self.box.upper).max()) / self.bandwidth
        return max(EMPTY, 1e-6 * float(phase))

    def relative(self, residual: ComplexArray) -> float:
        """Norm of a residual, as a share of the sketch's."""
        return float(np.linalg.norm(self._roots * residual)) / self.norm

    def residual_norm(self, mixture: Mixture) -> float:
        """Norm of what a mixture leaves of the sketch, as a share of the sketch's."""
        return self.relative(self.z - self.sketch_of(mixture))

    def residual_of_rows(self, rows: Mixture) -> float:
        r"""The residual norm of a decoding: what clusters of the rows leave of the sketch.

        .. math:: \|z - \mathcal A(\textstyle\sum_i \alpha_i \pi_i)\| \,/\, \|z\|

        Parameters
        ----------
        rows : Mixture
            Shares that add up to 1, means, and covariances or None, in normalised coordinates.

        Returns
        -------
        residual_norm : float
            1 for no clusters, 0 for a sketch without waves. Where there are more than two million
            numbers k d m, at the first frequencies. O(k m d), or O(k m d^2) with covariances.
        """
        k, (d, m) = rows.n_components, self.turns.shape
        if k == 0 or m == 0:
            return float(k == 0)
        some = slice(max(1, _NUMBERS // (k * d)))
        zeta = self.z[some] * math.sqrt(m)
        omega = 2.0 * math.pi * self.turns[:, some].astype(np.float64)
        covariances = np.zeros((k, d)) if rows.covariances is None else rows.covariances
        total = np.zeros(len(zeta), dtype=np.complex128)
        for share, c, S in zip(rows.weights, rows.means, covariances, strict=True):
            total += share * wave_of(S, omega, np.exp(1j * (c @ omega)))
        roots = self._roots if isinstance(self._roots, float) else self._roots[some]
        norm = np.linalg.norm(roots * zeta) or 1.0
        return float(np.linalg.norm(roots * (zeta - total)) / norm)

    def decoding(
        self, mixture: Mixture, outcome: Outcome, trace: Sequence[Step] | Sequence[Round]
    ) -> Decoding:
        """The mixture in the units of the data, heaviest first, its weights as shares."""
        spec = self.sketch.spec
        rows = replace(mixture, weights=as_shares(mixture.weights))
        order = np.argsort(-rows.weights, kind="stable")
        covariances = mixture.covariances
        if covariances is not None:
            covariances = covariances[order] * np.outer(
                spec.rows.scale_vector, spec.rows.scale_vector
            )
        return Decoding(
            self.in_units(rows.means[order]),
            rows.weights[order],
            covariances,
            self.residual_of_rows(rows),
            outcome,
            cast("tuple[Step, ...] | tuple[Round, ...]", tuple(trace)),
            sketch=self.sketch,
        )


def check_waves_or_cells(spec: SketchSpec, caller: str) -> None:
    """Refuse a spec that has registered families alone."""
    if spec.waves is None and spec.cells is None:
        names = listed([name for name, _ in spec.families])
        msg = (
            f"{caller} needs waves or cells, and this sketch has {names} alone. Decode it with "
            "ss.SketchAndShift if the module that brings this family can."
        )
        raise DataError(msg)


POSES: dict[str, Callable[..., Problem]] = {}
"""What makes a problem of the integers of a registered family, by its name: as Problem.of."""


def pose(sketch: AnySketch, n_clusters: int, domain: Box | None, seed: int, caller: str) -> Problem:
    """The problem of a sketch: of its waves, or of a registered family where it has none."""
    check_decodable(sketch, n_clusters, seed, caller)
    names = [name for name, _ in sketch.spec.families if name in POSES]
    make = POSES[names[0]] if names and sketch.spec.waves is None else Problem.of
    return make(sketch, n_clusters, domain, seed, caller)


def normalise_domain(domain: Box, sketch: AnySketch, caller: str) -> Box:
    """A domain in normalised coordinates, within reach; an error where no row can lie in it."""
    spec = sketch.spec
    if not isinstance(domain, Box) or len(domain.lower) != spec.n_features:
        raise parameter_error(caller, "domain", f"a Box of {spec.n_features} columns", domain)
    lower, upper = (
        (end - spec.rows.center_vector) * spec.rows.per_unit for end in (domain.lower, domain.upper)
    )
    if (lower > spec.reach).any() or (upper < -spec.reach).any():
        must = "a Box, in the units of the data, that rows of this sketch can lie in"
        raise parameter_error(caller, "domain", must, domain)
    return Box(np.maximum(lower, -spec.reach), np.minimum(upper, spec.reach))


# Where the rows lie, as a sketch tells it, or else the clusters decoded from it.
#
# Symbols
# -------
# d         dimension


def moments_of(
    sketch: AnySketch, decoding: Decoding | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of the rows.

    A private sketch does not tell them: those of the clusters are taken, or, without clusters,
    those its plan expects.
    """
    moments = sketch.moments
    if moments is not None:
        return moments
    is_known = sketch.spec.axes is not None and sketch.spec.cells is not None
    if is_known or decoding is None or not len(decoding.weights):
        return sketch.outline
    return Mixture(decoding.weights, decoding.centroids, decoding.covariances).moments


def spread_of(sketch: AnySketch, decoding: Decoding | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each column, as :func:`moments_of` has them: shapes (d,)."""
    mean, covariance = moments_of(sketch, decoding)
    return mean, np.diagonal(covariance)
