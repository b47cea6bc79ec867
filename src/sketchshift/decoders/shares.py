r"""How much of another sketch each cluster of a decoding explains.

Clusters stay where they are, so that those of a year can be followed from day to day. Cells tell
how many rows are nearest to each centroid; where there are none, the waves of the clusters, with
the shapes they have, are fitted. Takes a :class:`Decoding` and a sketch of the same spec.

Symbols
-------
k, m, J   clusters, frequencies, cells
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import ComplexArray, FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders.cells import draw_inside
from sketchshift.decoders.decoder import Decoding
from sketchshift.decoders.mixture import Mixture, as_shares, wave_of
from sketchshift.decoders.paper.refine import nonnegative_weights
from sketchshift.decoders.problem import check_waves_or_cells
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.metrics import assign
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.sketch.sketch import check_same_spec

__all__ = ["ClusterCells", "ClusterSketches", "follow_clusters", "shares"]


@one_blas_thread
def shares(
    decoding: Decoding, sketch: AnySketch, *, reference: AnySketch | None = None
) -> FloatArray:
    r"""Shares of the rows of a sketch that belong to the clusters of a decoding.

    With cells, shares of the rows nearest to each centroid, where a cell on a border is cut as
    points with its mean and variances are. Without,

    .. math:: \hat\beta = \arg\min_{\beta \ge 0} \Big\| z - \sum_i \beta_i a_i \Big\|, \qquad
              \alpha_i \propto \beta_i

    with :math:`a_i` the sketch of cluster i as a Gaussian with its centroid and covariance
    (a point, without covariances).

    Parameters
    ----------
    decoding : Decoding
        The clusters, usually of many slices together.
    sketch : Sketch
        Of at least one row; of the spec that the decoding's sketch had.
    reference : Sketch or None
        The sketch that was decoded. With it only what differs from it is found, so that clusters
        of other than Gaussian shape do less harm: the shares of the reference itself are then
        ``decoding.weights``.

    Returns
    -------
    alpha : array of shape (k,)
        Not negative, adding up to 1, in the order of the decoding. O(k m d^2 + k^2 m), or
        O(20,000 k d) with cells.

    Notes
    -----
    Ten clusters of real data and slices of 20 000 rows: half the sum of the errors was 0.01 to
    0.06 of the rows; of 200 rows, 0.03 to 0.07 (``docs/drift.md``).

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0]], 50, axis=0)
    >>> X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    >>> whole = ss.sketch(X, n_clusters=2)
    >>> decoding = ss.decode(whole, n_clusters=2)
    >>> part = ss.sketch(X[25:], whole.spec)  # 25 and 50 rows of the two
    >>> sorted(ss.decoders.shares(decoding, part).round(2).tolist())
    [0.33, 0.67]
    """
    d = sketch.spec.n_features
    if decoding.centroids.shape[1] != d:
        must = f"a Decoding of the sketch's {d} columns"
        raise parameter_error("shares", "decoding", must, decoding)
    if sketch.total_weight <= 0:
        msg = (
            f"there are no shares in a sketch of {sketch.count} rows, of weight 0 in all. Leave "
            "slices without rows out."
        )
        raise DataError(msg)
    if not len(decoding.weights):
        return np.zeros(0)
    if reference is None:
        return follow_clusters(decoding, sketch.spec).shares_of(sketch)
    check_same_spec(sketch, reference, "compare")
    return follow_clusters(decoding, sketch.spec, reference).shares_of(sketch)


def follow_clusters(
    decoding: Decoding, spec: SketchSpec, reference: AnySketch | None = None
) -> ClusterCells | ClusterSketches:
    """What tells the shares of the clusters of a decoding in sketches of a spec.

    ``reference`` is as in :func:`shares`. Releases are read by their waves.
    """
    if spec.cells is not None and spec.rows.ball is None:
        return ClusterCells.of(decoding, spec, reference)
    check_waves_or_cells(spec, "shares")
    return ClusterSketches.of(decoding, spec, reference)


N_POINTS, MOST_IN_A_CELL, FEWEST_IN_A_CELL = 20_000, 64, 4  # that cells on borders are cut by


@dataclass(frozen=True, eq=False)
class ClusterCells:
    """Centroids among cells.

    Attributes
    ----------
    centroids : array of shape (k, d)
        In normalised coordinates, as far as distances go.
    weights : array of shape (k,)
        Shares of the rows in the decoding.
    rest : array of shape (k,)
        To be added to shares that cells tell.
    """

    centroids: FloatArray
    weights: FloatArray
    rest: FloatArray

    @classmethod
    def of(
        cls, decoding: Decoding, spec: SketchSpec, reference: AnySketch | None = None
    ) -> ClusterCells:
        """Those of a decoding of a sketch of this spec, perhaps of the reference."""
        weights = decoding.weights
        places = (decoding.centroids - spec.rows.center_vector) * spec.rows.per_unit
        found = cls(places, weights, np.zeros_like(weights))
        return found if reference is None else replace(found, rest=weights - found._cut(reference))

    def shares_of(self, sketch: AnySketch) -> FloatArray:
        """Shares of the rows of a sketch."""
        return as_shares(np.maximum(self._cut(sketch) + self.rest, 0.0))

    def _cut(self, sketch: AnySketch) -> FloatArray:
        """Shares of rows nearest to each centroid, cells on borders cut by points inside them."""
        assert isinstance(sketch, Sketch)
        assert sketch.cells is not None
        sums = sketch.cells + sketch.outer + sketch.far
        sums = sums[sums.weights > 0.0]
        J, k = len(sums.weights), len(self.weights)
        pairs = max(FEWEST_IN_A_CELL, min(MOST_IN_A_CELL, N_POINTS // J)) // 2
        alike = replace(sums, weights=np.ones(J))
        places, _ = draw_inside(alike, sketch.spec.axes, 2 * J * pairs, seed=0)
        owners = assign(places, self.centroids)
        cells = np.tile(np.repeat(np.arange(J), pairs), 2)
        return as_shares(np.bincount(owners, sums.weights[cells], minlength=k).astype(np.float64))


@dataclass(frozen=True, eq=False)
class ClusterSketches:
    """Sketches of the clusters of a decoding, one by one.

    Attributes
    ----------
    mixture : Mixture
        The clusters, in normalised coordinates; weights are shares of the rows.
    sketches : complex array of shape (k, m)
        Theirs, each of mass 1.
    rest : complex array of shape (m,)
        What the clusters leave of the reference, with the sign turned: it is taken to stay.
    """

    mixture: Mixture
    sketches: ComplexArray
    rest: ComplexArray

    @classmethod
    def of(
        cls, decoding: Decoding, spec: SketchSpec, reference: AnySketch | None = None
    ) -> ClusterSketches:
        """Those of a decoding of a sketch of this spec, perhaps of the reference."""
        turns = spec.frequencies.turns
        omega = 2.0 * math.pi * turns.astype(np.float64)
        means = (decoding.centroids - spec.rows.center_vector) * spec.rows.per_unit
        if decoding.covariances is None:
            covariances = np.zeros_like(means)
        else:
            covariances = decoding.covariances * np.outer(spec.rows.per_unit, spec.rows.per_unit)
        waves = select_kernel().features(means, turns)
        pairs = zip(covariances, waves, strict=True)
        sketches = np.array([wave_of(S, omega, wave) for S, wave in pairs])
        none = np.zeros(turns.shape[1], dtype=np.complex128)
        own = cls(Mixture(decoding.weights, means, covariances), sketches, none)
        return own if reference is None else replace(own, rest=own.z - reference.z)

    @property
    def weights(self) -> FloatArray:
        """Shares of the rows in the decoding, shape (k,)."""
        return self.mixture.weights

    @property
    def z(self) -> ComplexArray:
        """The sketch of the clusters with the shares of the decoding, shape (m,)."""
        return np.asarray(self.weights @ self.sketches / (self.weights.sum() or 1.0))

    def shares_of(self, sketch: AnySketch) -> FloatArray:
        """Shares of the rows of a sketch."""
        return self.shares(sketch.z + self.rest)

    def shares(self, z: ComplexArray) -> FloatArray:
        """Shares of the rows behind a vector; all alike, if no cluster correlates with it."""
        return as_shares(nonnegative_weights(self.sketches, z))

    def response(self, correlations: FloatArray) -> FloatArray:
        r"""How shares change when z does, to first order and away from zero.

        The least squares :math:`\mathrm d\beta = G^{-1} \mathrm{Re}(\bar A\, \mathrm dz)`,
        normalised as the shares are.

        Parameters
        ----------
        correlations : array of shape (n, k)
            The :math:`\mathrm{Re}(\bar A\, \mathrm dz)` of n changes of z.

        Returns
        -------
        changes : array of shape (n, k)
            Of the shares; each row adds up to 0.
        """
        gram = (self.sketches.conj() @ self.sketches.T).real
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        rows = correlations @ inverse * self.weights.sum()
        return np.asarray(rows - np.outer(rows.sum(axis=1), self.weights))
