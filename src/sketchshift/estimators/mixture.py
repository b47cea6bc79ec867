"""A Gaussian mixture from a sketch, as a scikit-learn estimator."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted

from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import check_choice, check_integer
from sketchshift.decoders import Outcome, decode
from sketchshift.errors import DataError, warn
from sketchshift.estimators.base import SketchedEstimator, rows_in_memory
from sketchshift.estimators.mixture_cells import CovarianceType, MixtureFit
from sketchshift.estimators.mixture_fit import MANY_CELLS, fit_mixture
from sketchshift.features import SketchSpec, Waves
from sketchshift.features.cells import MAX_CELLS
from sketchshift.features.plan import FEWEST_FREQUENCIES, MAX_CLUSTERS, sketch_size_for
from sketchshift.sketch.reading import Planning

__all__ = ["CompressiveGaussianMixture", "SketchedDensity"]

# What a mixture found can be asked: components of rows, densities, new rows.
#
# scikit-learn's own mixture answers, with the parameters found.


class SketchedDensity(DensityMixin, SketchedEstimator):  # type: ignore[misc]
    """An estimator that decodes its sketch into a :class:`MixtureFit`."""

    @property
    def weights_(self) -> FloatArray:
        """Shares of the components, shape (k,)."""
        return self._mixture.weights

    @property
    def means_(self) -> FloatArray:
        """Centers of the components, shape (k, d)."""
        return self._mixture.means

    @property
    def covariances_(self) -> FloatArray:
        """Covariances, in the shape of their type."""
        return self._mixture.covariances

    @property
    def precisions_cholesky_(self) -> FloatArray:
        """Cholesky factors of the inverse covariances."""
        covariances = self._mixture.covariances
        if covariances.ndim < 3:
            return np.asarray(1.0 / np.sqrt(covariances))
        factors = np.linalg.inv(np.linalg.cholesky(covariances))
        return np.ascontiguousarray(factors.swapaxes(1, 2))

    @property
    def converged_(self) -> bool:
        """Whether the fit ended before ``max_iter``."""
        return self._mixture.converged

    @property
    def n_iter_(self) -> int:
        """Iterations of the fit."""
        return self._mixture.n_iter

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit to rows in memory, and give the component of each.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory.
        y : None
            Not used.
        sample_weight : array of shape (n,) or None
            Weights of the rows.

        Returns
        -------
        labels : int64 array of shape (n,)
            As from :meth:`predict`.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict(self, X: Any) -> IntArray:
        """Number of the most probable component of each row.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory.

        Returns
        -------
        labels : int64 array of shape (n,)
            From 0 to k - 1.
        """
        return np.asarray(self._model().predict(rows_in_memory(self, X)), dtype=np.int64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each component, given a row.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory.

        Returns
        -------
        probabilities : array of shape (n, k)
            Rows add up to 1.
        """
        return np.asarray(self._model().predict_proba(rows_in_memory(self, X)))

    def score_samples(self, X: Any) -> FloatArray:
        """Logarithm of the density at each row.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory.

        Returns
        -------
        log_densities : array of shape (n,)
            In the units of the data.
        """
        return np.asarray(self._model().score_samples(rows_in_memory(self, X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean logarithm of the density.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory.
        y : None
            Not used.

        Returns
        -------
        score : float
            The larger, the better.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[FloatArray, IntArray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : array of shape (n_samples, d)
            The rows, sorted by component.
        labels : array of shape (n_samples,)
            Their components.
        """
        X, labels = self._model().sample(n_samples)
        return X, labels

    def bic(self, X: Any = None) -> float:
        """Bayesian information criterion on rows, which a sketch cannot replace.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory: the likelihood is a mean over them. None is refused.

        Returns
        -------
        bic : float
            The lower, the better.
        """
        return float(self._model().bic(self._rows_of_criterion(X, "bic")))

    def aic(self, X: Any = None) -> float:
        """Akaike information criterion on rows, which a sketch cannot replace.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in memory: the likelihood is a mean over them. None is refused.

        Returns
        -------
        aic : float
            The lower, the better.
        """
        return float(self._model().aic(self._rows_of_criterion(X, "aic")))

    @property
    def _mixture(self) -> MixtureFit:
        mixture: MixtureFit = self._result
        return mixture

    def _model(self) -> Any:
        """scikit-learn's mixture with these parameters: it evaluates and draws."""
        check_is_fitted(self)
        found = self._mixture
        kind = ("spherical", "diag", "full")[found.covariances.ndim - 1]
        model = GaussianMixture(
            len(found.weights), covariance_type=kind, random_state=self.random_state
        )
        model.weights_, model.means_, model.covariances_ = (
            found.weights,
            found.means,
            found.covariances,
        )
        model.precisions_cholesky_ = self.precisions_cholesky_
        return model

    def _rows_of_criterion(self, X: Any, name: str) -> Any:
        check_is_fitted(self)
        if X is None:
            msg = (
                f"{name} needs the likelihood of the rows, and no sketch holds it: it is not a sum "
                f"that could be kept. Pass rows, as in {name}(X)."
            )
            raise DataError(msg)
        return rows_in_memory(self, X)


CALLER = "CompressiveGaussianMixture"
CELLS = {"full": 100, "diag": 30, "spherical": 30}  # for each component
COLUMNS = 10  # of more columns, as many times more
WAVES = 3  # beside them, for each component and column
FEW_COLUMNS = 30  # beyond, plans have waves alone
PER_NUMBER = 5  # frequencies for each number of a mixture with full covariances, without cells
MOST = 50  # but no more than so many for each component and column


@dataclass(frozen=True)
class MixturePlanning(Planning):
    """A plan with many cells and few waves; where columns are many, with waves alone.

    Rows with a value that is frequent in a column, zero say, have cells of their own: EM with the
    rows makes thin components of them, and otherwise cells and waves could not tell.
    """

    has_axes: bool = False
    splits_values: bool = True

    def for_columns(self, n_features: int) -> Planning:
        """As many numbers as the cells take, unless somebody said how many there are."""
        if n_features > FEW_COLUMNS:
            return dataclasses.replace(self, cells=False)
        if self.sketch_size is not None:
            return dataclasses.replace(self, cells=True)
        cells = min(self.cells * max(n_features, COLUMNS) // COLUMNS, MAX_CELLS)
        size = -(-cells * (1 + 2 * n_features) // 2) + WAVES * self.n_clusters * n_features
        return dataclasses.replace(self, cells=cells, sketch_size=size)


class CompressiveGaussianMixture(SketchedDensity):
    """A Gaussian mixture of data that is read once, and need not be kept.

    The sketch counts rows in many cells and keeps their means and variances; EM finds the most
    likely mixture for these, also of clusters that are thinner than cells. Of few rows or many
    columns, the sketch has waves instead: if k Gaussians explain it but for the noise of sampling,
    they are the answer; otherwise EM is run on points that stand for the data, and clusters
    thinner than its bandwidth come out wider.

    Parameters
    ----------
    n_components : int, default=1
        Number k of Gaussians.
    covariance_type : {"full", "diag", "spherical"}
        Covariances of any kind, with axes along the columns, or the same in all directions.
    sketch_size : int or None
        Half of the numbers of the sketch. None takes what 100 cells for each component need (30
        if covariances are not full; of d > 10 columns d / 10 times as many), and 3 k d waves.
        Without cells it is the number of frequencies, 10 k d, and for full covariances 5 for each
        number of the mixture, up to 50 k d.
    standardize : bool, default=False
        Give every column a scale of its own, where units differ.
    spec : SketchSpec or None
        A plan to use instead. Cells should be 15 for each component at least.
    max_iter : int, default=500
        Most iterations of the fit.
    n_threads : int or None
        Of the sketch; None takes the processors this process may use. It changes no result.
    random_state : int, RandomState or None
        An integer is the seed of the plan and of the decoder. :meth:`sample` draws with it.

    Attributes
    ----------
    weights_ : array of shape (k,)
        Shares of the components, heaviest first. After ``partial_fit`` and ``forget`` all of the
        mixture is fitted on first use.
    means_ : array of shape (k, d)
        Their centers.
    covariances_ : array of shape (k, d, d), (k, d) or (k,)
        By the type: full, diag or spherical, as in scikit-learn.
    precisions_cholesky_ : array of shape (k, d, d), (k, d) or (k,)
        Cholesky factors of the inverse covariances, as in scikit-learn.
    converged_ : bool
        Whether the fit ended before ``max_iter``.
    n_iter_ : int
        Its iterations.
    sketch_ : Sketch or PrivateSketch
        Of all rows that are in.
    n_features_in_ : int
        Number d of columns.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if the data or the sketch has names.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.repeat([[0.0], [9.0]], 500, axis=0)
    >>> X += 0.5 * np.random.default_rng(0).normal(size=X.shape)
    >>> mixture = ss.CompressiveGaussianMixture(2, random_state=0).fit(X)
    >>> np.sort(mixture.means_.ravel()).round(1) + 0.0
    array([0., 9.])
    >>> np.sqrt(mixture.covariances_).ravel().round(1)
    array([0.5, 0.5])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        sketch_size: int | None = None,
        standardize: bool = False,
        spec: Any = None,
        max_iter: int = 500,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.sketch_size = sketch_size
        self.standardize = standardize
        self.spec = spec
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.random_state = random_state

    def _n_planned(self) -> int:
        check_choice(CALLER, "covariance_type", self.covariance_type, get_args(CovarianceType))
        check_integer(CALLER, "max_iter", self.max_iter, 1, 2**31 - 1)
        return check_integer(CALLER, "n_components", self.n_components, 1, MAX_CLUSTERS)

    def _planning(self, n_clusters: int, seed: int) -> Planning:
        cells = min(CELLS[self.covariance_type] * n_clusters, MAX_CELLS)
        return MixturePlanning(n_clusters, self.sketch_size, seed, self.standardize, cells)

    def _planned(self, spec: SketchSpec, *, is_few: bool) -> SketchSpec:
        """With cells, if there are enough of them; else with more waves."""
        k, d = self.n_components, spec.n_features
        if spec.cells is not None and spec.cells.n_cells >= MANY_CELLS * k:
            return spec
        size = self.sketch_size or max(sketch_size_for(k, d), FEWEST_FREQUENCIES)
        if self.sketch_size is None and self.covariance_type == "full":
            n_numbers = (d + 1) * (d + 2) // 2
            size = max(size, k * min(PER_NUMBER * n_numbers, MOST * d))
        waves = spec.waves or Waves(size, spec.bandwidths[0])
        return spec.replaced(cells=None, waves=dataclasses.replace(waves, size=size))

    def _decode(self) -> MixtureFit:
        k = self._n_planned()
        self._check_enough(k, "n_components")
        decoding = decode(self.sketch_, k, seed=self._seed)
        if decoding.outcome is not Outcome.COMPLETE:
            msg = f"{len(decoding.weights)} of {k} components were found. {decoding.outcome}"
            warn(msg, ConvergenceWarning)
        return fit_mixture(
            self.sketch_,
            decoding,
            cast(CovarianceType, self.covariance_type),
            max_iterations=self.max_iter,
            seed=self._seed,
        )
