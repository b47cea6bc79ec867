r"""How much of another sketch each cluster of a decoding explains.

Clusters stay where they are, with the shapes they have; shares alone are fitted, so that the
clusters of a year can be followed from day to day. Takes a :class:`Decoding` and a sketch of the
same spec.

Symbols
-------
k, m      clusters, frequencies
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import ComplexArray, FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders.decoder import Decoding
from sketchshift.decoders.mixture import Mixture, as_shares, tilted_wave
from sketchshift.decoders.paper.refine import nonnegative_weights
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.sketch import AnySketch
from sketchshift.sketch.sketch import check_same_spec

__all__ = ["ClusterSketches", "shares"]


@one_blas_thread
def shares(
    decoding: Decoding, sketch: AnySketch, *, reference: AnySketch | None = None
) -> FloatArray:
    r"""Shares of the rows of a sketch that belong to the clusters of a decoding.

    .. math:: \hat\beta = \arg\min_{\beta \ge 0} \Big\| z - \sum_i \beta_i a_i \Big\|, \qquad
              \alpha_i \propto \beta_i / t_i

    with :math:`a_i` the sketch of cluster i as a Gaussian with its centroid and covariance
    (a point, without covariances) and :math:`t_i` its mean tilt.

    Parameters
    ----------
    decoding : Decoding
        The clusters, usually of many slices together.
    sketch : Sketch
        Of at least one row; of the spec that the decoding's sketch had.
    reference : Sketch or None
        The sketch that was decoded. With it only what differs is fitted, z minus that of the
        reference, so that clusters of other than Gaussian shape do less harm: the shares of
        the reference itself are then ``decoding.weights``.

    Returns
    -------
    alpha : array of shape (k,)
        Not negative, adding up to 1, in the order of the decoding. O(k m d^2 + k^2 m).

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
    >>> sorted(ss.shares(decoding, part).round(2).tolist())
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
    clusters = ClusterSketches.of(decoding, sketch.spec)
    z = sketch.z if reference is None else clusters.z + difference(sketch, reference)
    return clusters.shares(z)


def difference(a: AnySketch, b: AnySketch) -> ComplexArray:
    """The z of a minus that of b; sketches of different specs are refused."""
    check_same_spec(a, b, "compare")
    return np.asarray(a.z - b.z)


@dataclass(frozen=True, eq=False)
class ClusterSketches:
    """Sketches of the clusters of a decoding, one by one.

    Attributes
    ----------
    mixture : Mixture
        The clusters, in normalised coordinates; weights are shares of the rows.
    sketches : complex array of shape (k, m)
        Theirs, each of mass 1 after the tilt.
    masses : array of shape (k,)
        Mean tilts of the clusters.
    """

    mixture: Mixture
    sketches: ComplexArray
    masses: FloatArray

    @classmethod
    def of(cls, decoding: Decoding, spec: SketchSpec) -> ClusterSketches:
        """Those of a decoding of a sketch of this spec."""
        turns = spec.frequencies.turns
        omega = 2.0 * math.pi * turns.astype(np.float64)
        means = (decoding.centroids - spec.center_vector) * spec.per_unit
        if decoding.covariances is None:
            covariances = np.zeros_like(means)
        else:
            covariances = decoding.covariances * np.outer(spec.per_unit, spec.per_unit)
        waves = select_kernel().features(means, turns)
        found = [
            tilted_wave(c, S, omega, wave, spec.tilt)
            for c, S, wave in zip(means, covariances, waves, strict=True)
        ]
        masses = np.array([mass for _, mass in found])
        sketches = np.array([psi for psi, _ in found]) / masses[:, None]
        return cls(Mixture(decoding.weights, means, covariances), sketches, masses)

    @property
    def weights(self) -> FloatArray:
        """Shares of the rows in the decoding, shape (k,)."""
        return self.mixture.weights

    @property
    def z(self) -> ComplexArray:
        """The sketch of the clusters with the shares of the decoding, shape (m,)."""
        tilted = self.weights * self.masses
        return np.asarray(tilted @ self.sketches / (tilted.sum() or 1.0))

    def shares(self, z: ComplexArray) -> FloatArray:
        """Shares of the rows behind a vector; all alike, if no cluster correlates with it."""
        return as_shares(nonnegative_weights(self.sketches, z) / self.masses)

    def response(self, correlations: FloatArray) -> FloatArray:
        r"""How shares change when z does, to first order and away from zero.

        The least squares :math:`\mathrm d\beta = G^{-1} \mathrm{Re}(\bar A\, \mathrm dz)`,
        divided by the mean tilts and normalised as the shares are.

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
        rows = correlations @ inverse / self.masses * (self.weights @ self.masses)
        return np.asarray(rows - np.outer(rows.sum(axis=1), self.weights))
