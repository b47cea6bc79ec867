"""From a sketch alone to k Gaussians: EM on cells, moment matching, or EM on points.

Decides which of the three: :class:`CellLikelihood` is the first, :class:`MomentFit` the second, and
scikit-learn has the third, for points that stand for the data.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding, Turnkey
from sketchshift.decoders.cells import CellFit, CellPoints
from sketchshift.decoders.mixture import Mixture, as_shares
from sketchshift.decoders.objective import MomentMatching, Spread
from sketchshift.decoders.points import draw_places
from sketchshift.decoders.problem import Problem, spread_of
from sketchshift.errors import DataError
from sketchshift.estimators.mixture_cells import (
    FLAT,
    CellLikelihood,
    CovarianceType,
    MixtureFit,
    fewest_points,
    move_inside,
)
from sketchshift.features import SketchSpec
from sketchshift.sketch import AnySketch, Sketch

__all__ = [
    "FLOOR",
    "LEAST_WEIGHT",
    "MANY_CELLS",
    "Coordinates",
    "MomentFit",
    "fit_mixture",
    "most_misfit",
    "n_cells",
    "prior",
    "roots",
    "squares",
]

# A mixture of k Gaussians, and the coordinates in which it is fitted.
#
# Knows decoded clusters and what scikit-learn calls a covariance type.
#
# Symbols
# -------
# k, d      components, dimension
# Sigma     covariances in the shape of their type: (k, d, d), (k, d) or (k,)

FLOOR = 1e-6
"""Share of the mean variance of the columns that is added to every covariance."""

LEAST_WEIGHT = 1e-6
"""Share of the mean weight that every component has at least."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where fits take place: x' = (x - center) / widths.

    The widths are the scales of the spec, but one for all columns where covariances are
    spherical, so that these are spheres in the units of the data.

    Attributes
    ----------
    center, widths : arrays of shape (d,)
        In the units of the data.
    variance : float
        Mean variance of the columns of x', positive.
    kind : {"full", "diag", "spherical"}
        Type of the covariances.
    """

    center: FloatArray
    widths: FloatArray
    variance: float
    kind: CovarianceType

    @classmethod
    def of(cls, sketch: AnySketch, decoding: Decoding, kind: CovarianceType) -> Coordinates:
        """Those that suit a sketch and its clusters."""
        widths = sketch.spec.rows.scale_vector
        if kind == "spherical":
            widths = np.full_like(widths, np.exp(np.log(widths).mean()))
        variance = float(np.mean(spread_of(sketch, decoding)[1] / widths**2))
        return cls(sketch.spec.rows.center_vector, widths, variance or 1.0, kind)

    @property
    def floor(self) -> float:
        """What is added to variances, so that none is zero."""
        return FLOOR * self.variance

    def clusters(self, decoding: Decoding) -> MixtureFit:
        """Decoded clusters with full covariances (k, d, d), none of them zero."""
        means = (decoding.centroids - self.center) / self.widths
        d = len(self.widths)
        covariances = np.zeros((len(means), d, d))
        if decoding.covariances is not None:
            covariances = decoding.covariances / np.outer(self.widths, self.widths)
        return MixtureFit(decoding.weights, means, covariances + self.floor * np.eye(d))

    def cells(self, cells: Mixture, spec: SketchSpec) -> Mixture:
        """Cells of a spec, with variances (J, d) in its normalised coordinates, in these."""
        stretch = spec.rows.scale_vector / self.widths
        assert cells.covariances is not None
        variances = cells.covariances * stretch**2
        return Mixture(as_shares(cells.weights), cells.means * stretch, variances)

    def mixture(self, decoding: Decoding) -> MixtureFit:
        """Decoded clusters as a mixture of this type."""
        return self.of_type(self.clusters(decoding))

    def of_type(self, clusters: MixtureFit) -> MixtureFit:
        """The same with full covariances (k, d, d) cut to those of this type."""
        covariances = clusters.covariances
        if self.kind != "full":
            covariances = np.diagonal(covariances, axis1=1, axis2=2)
        if self.kind == "spherical":
            covariances = covariances.mean(axis=1)
        return dataclasses.replace(clusters, covariances=covariances)

    def in_units(self, fit: MixtureFit) -> MixtureFit:
        """A mixture in the units of the data, heaviest component first."""
        weights = np.maximum(fit.weights, LEAST_WEIGHT * fit.weights.mean())
        order = np.argsort(-weights, kind="stable")
        means = self.center + fit.means * self.widths
        covariances = fit.covariances
        if self.kind == "full":
            covariances = covariances + self.floor * np.eye(len(self.widths))
            covariances = covariances * np.outer(self.widths, self.widths)
        else:
            units = self.widths if self.kind == "diag" else self.widths[0]
            covariances = (covariances + self.floor) * units**2
        weights = weights / weights.sum()
        return MixtureFit(
            weights[order], means[order], covariances[order], fit.n_iter, fit.converged
        )


def roots(covariances: FloatArray) -> FloatArray:
    """Spreads whose squares are these: Cholesky factors, or standard deviations."""
    if covariances.ndim < 3:
        return np.sqrt(covariances)
    return np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)


def squares(S: FloatArray) -> FloatArray:
    """Covariances of spreads, in the shape of these."""
    return S @ S.swapaxes(1, 2) if S.ndim == 3 else S**2


# Exactly k Gaussians fitted to a sketch, by moment matching.
#
# Takes a sketch and the clusters decoded from it as a start. As good as a fit to the data where
# that is a mixture of Gaussians, and useless where it is not: the misfit tells.
#
# Symbols
# -------
# k, d, m   components, dimension, frequencies
# N         total weight of the rows; with the noise of a release, of as many as leave all of it
# F         misfit of the sketch, in units in which the true mixture has 1 / N on average
# S         spreads, as ``MomentMatching`` has them: shape (k, d, d), (k, d) or (k,)
# P         covariances of the start, in the shape of S

SPREADS: dict[str, Spread] = {"full": "full", "diag": "diagonal", "spherical": "isotropic"}

STRENGTH = 0.005  # of the prior
LEAST_NOISE = 1e-6
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class MomentFit:
    r"""A joint descent in weights, means and covariances.

    .. math::

        N F(\alpha, C, \Sigma) + \lambda \sum_i \pi_i \big(
            \mathrm{tr}\, \Sigma_i^{-1} P_i + \log\det \Sigma_i \big)
        + N \big( \textstyle\sum_i \alpha_i - 1 \big)^2

    High frequencies die out in wide clusters, so a sketch hardly sees how thin a cluster is
    along its short axes; there the prior, weak as it is, keeps the covariances
    :math:`P_i` of the decoded clusters, whose weights are the :math:`\pi_i`.

    Attributes
    ----------
    objective : MomentMatching
        F.
    n_rows : float
        N.
    added : float
        Share of the noise in the sketch that a release added; 0 if it has none.
    start : MixtureFit
        The decoded clusters.
    length : float
        Root of the mean variance of a column: steps are of this order.
    """

    objective: MomentMatching
    n_rows: float
    added: float
    start: MixtureFit
    length: float

    @classmethod
    def of(cls, sketch: AnySketch, decoding: Decoding, coordinates: Coordinates) -> MomentFit:
        """The fit of a sketch, from its decoded clusters."""
        if sketch.spec.axes is not None:
            msg = (
                "a mixture needs waves of all columns, and this sketch has them along a few axes "
                "alone. Plan with cells=False, or leave out spec."
            )
            raise DataError(msg)
        stretch = (coordinates.widths / sketch.spec.rows.scale_vector)[:, None]
        z, released = sketch.z, _released(sketch)
        squared_norm = float(np.vdot(z, z).real) - released
        noise = max(1.0 - squared_norm, LEAST_NOISE)  # mean variance of a wave
        objective = MomentMatching(
            (sketch.frequencies.turns * stretch).astype(np.float32),
            z,
            SPREADS[coordinates.kind],
            frequency_weights=np.full(len(z), 1.0 / noise),
        )
        start = coordinates.mixture(decoding)
        n_rows = 1.0 / (1.0 / sketch.total_weight + released / noise)
        length = float(np.sqrt(coordinates.variance))
        return cls(objective, n_rows, n_rows * released / noise, start, length)

    def descend(self, max_iterations: int) -> tuple[MixtureFit, float]:
        """The mixture found, and its misfit N F: the true one has 1 on average, and fits have less.

        Parameters
        ----------
        max_iterations : int
            Of L-BFGS-B; O(k m d) each, O(k m d^2) for full covariances.
        """
        from scipy.optimize import minimize

        first, k = self.start, len(self.start.weights)
        x = self.objective.pack(first.weights, first.means, roots(first.covariances)) / self._units
        result = minimize(
            self.value_and_gradient,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=[(LEAST_WEIGHT, None)] * k + [(None, None)] * (len(x) - k),
            options={"maxiter": max_iterations, "ftol": TOLERANCE, "gtol": 0.0},
        )
        alpha, C, S = self._unpack(result.x)
        misfit = self.n_rows * self.objective.value(alpha, C, S)
        return MixtureFit(
            alpha, C, squares(S), int(result.nit), bool(result.nit < max_iterations)
        ), misfit

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its derivatives, at a vector scaled to be of order 1."""
        alpha, C, S = self._unpack(x)
        value, by_alpha, by_C, by_S = self.objective.value_and_gradient(alpha, C, S)
        assert by_S is not None
        mass = float(alpha.sum()) - 1.0
        held, by_prior = prior(S, self.start.covariances)
        columns = C.shape[1] if S.ndim == 1 else 1
        pull = STRENGTH * columns * self.start.weights
        gradient = self.objective.pack(
            self.n_rows * (by_alpha + 2.0 * mass),
            self.n_rows * by_C,
            self.n_rows * by_S + (pull * by_prior.T).T,
        )
        total = self.n_rows * (value + mass * mass) + float(pull @ held)
        return total, gradient * self._units

    @cached_property
    def _units(self) -> FloatArray:
        first = self.start
        k = len(first.weights)
        lengths = (np.full_like(part, self.length) for part in (first.means, first.covariances))
        return self.objective.pack(np.full(k, 1.0 / k), *lengths)

    def _unpack(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        alpha, C, S = self.objective.unpack(x * self._units, len(self.start.weights))
        assert S is not None
        return alpha, C, S


def _released(sketch: AnySketch) -> float:
    """Mean squared norm of what a release added to z: in the waves, and in their divisor."""
    relative = sketch.count_std / sketch.total_weight
    return 2.0 * sketch.noise_std**2 + (relative * float(np.linalg.norm(sketch.z))) ** 2


def prior(S: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""What holds covariances: tr :math:`\Sigma^{-1} P` + log det :math:`\Sigma`, and derivatives.

    Parameters
    ----------
    S : array of shape (k,), (k, d) or (k, d, d)
        Spreads, lower triangular if full; of shape (k,), the values are those of one column.
    P : array of the shape of S
        Covariances, where the values are least.

    Returns
    -------
    values, gradient : arrays of shape (k,) and the shape of S
        O(k d^3) if full.
    """
    if S.ndim < 3:
        values = P / S**2 + 2.0 * np.log(np.abs(S))
        return values.reshape(len(S), -1).sum(axis=1), 2.0 / S - 2.0 * P / S**3
    inverse = np.linalg.inv(S)
    shares = inverse.swapaxes(1, 2) @ inverse @ P
    axes = np.diagonal(S, axis1=1, axis2=2)
    values = np.trace(shares, axis1=1, axis2=2) + 2.0 * np.log(np.abs(axes)).sum(axis=1)
    gradient = np.tril(-2.0 * shares @ inverse.swapaxes(1, 2))
    along = np.arange(S.shape[1])
    gradient[:, along, along] += 2.0 / axes
    return values, gradient


EXPLAINED = 0.5  # misfit N F up to which k Gaussians are what the rows were drawn from
CHANCE = 2.0  # standard deviations by which the noise of a release may exceed its mean
CELLS, MANY_CLUSTERS = 6, 100  # the finer clusters that points are drawn from: for each, and in all
POINTS, POINTS_PER_COMPONENT = 20_000, 400
FEWEST_CELLS = 4  # for each component, without which cells do not tell of components
ROUNDS, ROUND_STEPS = 12, 2  # of EM on points inside cells
POINTS_OVER_FEWEST = 2
EM_FLOOR = 10.0  # floors of the coordinates
EM_TOLERANCE = 1e-4  # of the mean logarithm of the density


MANY_CELLS = 15
"""For each component; so many cells tell as much as rows, and waves need not be asked."""


@one_blas_thread
def fit_mixture(
    sketch: AnySketch, decoding: Decoding, kind: CovarianceType, *, max_iterations: int, seed: int
) -> MixtureFit:
    """The mixture behind a sketch, in the units of the data.

    One Gaussian has the mean and covariance of the rows, where these are exact. Of a sketch with
    several cells for each component, it is the most likely one for the rows of the cells. If k
    Gaussians explain it but for what sampling, and the noise of a release, leave, moment matching
    is the answer. Otherwise the sketch is decoded into many more clusters, and the
    mixture is the most likely one for points drawn from these.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Of any kind.
    decoding : Decoding
        Its k clusters.
    kind : {"full", "diag", "spherical"}
        Type of the covariances.
    max_iterations : int
        Of the descent, or of EM.
    seed : int
        Of the finer decoding and of the points.

    Returns
    -------
    mixture : MixtureFit
        As many as there are clusters.
    """
    coordinates = Coordinates.of(sketch, decoding, kind)
    k = len(decoding.weights)
    moments = sketch.moments if k == 1 and sketch.spec.has_full_covariance else None
    if moments is not None:
        one = coordinates.mixture(_one(moments, decoding))
        return coordinates.in_units(dataclasses.replace(one, n_iter=1))
    cells = _fit_cells(sketch, k, seed)
    n_full = 0 if cells is None else len(cells.components.weights)
    is_fine = n_full >= MANY_CELLS * k
    if not is_fine:
        fit = MomentFit.of(sketch, decoding, coordinates)
        found, misfit = fit.descend(max_iterations)
        if misfit <= most_misfit(fit.added, sketch.spec.sketch_size):
            return coordinates.in_units(found)
    if cells is not None and n_full >= FEWEST_CELLS * k:
        found = _most_likely_for_cells(cells, k, coordinates, max_iterations)
        return coordinates.in_units(coordinates.of_type(found))
    n_fine = n_cells(k, sketch)
    fine = Turnkey().fit(sketch, n_fine, seed=seed).decode(n_fine)
    n_points = max(POINTS, POINTS_PER_COMPONENT * k)
    points = draw_places([coordinates.clusters(fine)], n_points, seed)
    start = coordinates.mixture(decoding)
    return coordinates.in_units(_most_likely(points, start, coordinates, max_iterations))


def _fit_cells(sketch: AnySketch, k: int, seed: int) -> CellFit | None:
    """What cells tell of the rows; None where there are none, or not of all columns."""
    if not isinstance(sketch, Sketch) or sketch.cells is None or sketch.spec.axes is not None:
        return None
    problem = Problem.of(sketch, k, None, seed, "fit_mixture")
    return CellPoints().fit(problem, k, seed, Turnkey().penalty, lambda fit: None)


def _most_likely_for_cells(
    fit: CellFit, k: int, coordinates: Coordinates, max_iterations: int
) -> MixtureFit:
    """Maximum likelihood for whole cells; then for points of the mixture moved inside them.

    Whole cells belong to one component each, or to several in the same way everywhere. Points of
    the mixture itself tell what it has on each side of a cell.
    """
    n, spec, seed = max(POINTS, POINTS_PER_COMPONENT * k), fit.sketch.spec, fit.seed

    def likelihood(cells: Mixture) -> CellLikelihood:
        placed = coordinates.cells(cells, spec)
        return CellLikelihood(placed, coordinates.kind, coordinates.floor)

    found = likelihood(fit.blocks(n)).find(k, max_iterations, seed)
    if fit.is_loose.any():
        return found
    stretch = coordinates.widths / spec.rows.scale_vector
    n = max(n, POINTS_OVER_FEWEST * fewest_points(len(stretch)) * len(fit.sums.weights))
    for i in range(ROUNDS):
        places = draw_places([found], n, seed + i) * stretch
        cells = move_inside(fit, places, FLAT * coordinates.floor)
        moved = likelihood(cells).climb(found, ROUND_STEPS)
        found = dataclasses.replace(moved, n_iter=found.n_iter, converged=found.converged)
    return found


def most_misfit(added: float, m: int) -> float:
    """The misfit up to which k Gaussians explain a sketch.

    A fit takes up most of the noise of sampling, which is smooth, and hardly any of that of a
    release, which is nearly white: of 2 m numbers, so that its square is known to 1 / sqrt(m).
    """
    return EXPLAINED * (1.0 - added) + (1.0 + CHANCE / math.sqrt(m)) * added


def n_cells(k: int, sketch: AnySketch) -> int:
    """Number of finer clusters: as many as help, if the sketch can tell them apart."""
    d, m = sketch.spec.n_features, sketch.spec.sketch_size
    return max(CELLS * k, min(MANY_CLUSTERS, m // d))


def _one(moments: tuple[FloatArray, FloatArray], decoding: Decoding) -> Decoding:
    """All rows as one cluster, with their own mean and covariance."""
    mean, covariance = moments
    return dataclasses.replace(decoding, centroids=mean[None], covariances=covariance[None])


def _most_likely(
    points: FloatArray, start: MixtureFit, coordinates: Coordinates, max_iterations: int
) -> MixtureFit:
    """Maximum likelihood by scikit-learn's EM."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    covariances = start.covariances
    model = GaussianMixture(
        len(start.weights),
        covariance_type=coordinates.kind,
        reg_covar=EM_FLOOR * coordinates.floor,
        tol=EM_TOLERANCE,
        max_iter=max_iterations,
        weights_init=start.weights / start.weights.sum(),
        means_init=start.means,
        precisions_init=np.linalg.inv(covariances) if covariances.ndim == 3 else 1 / covariances,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ``converged`` says so
        model.fit(points)
    return MixtureFit(
        model.weights_, model.means_, model.covariances_, int(model.n_iter_), bool(model.converged_)
    )
