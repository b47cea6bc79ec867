"""What a mixture found can be asked: components of rows, densities, new rows.

scikit-learn's own mixture answers, with the parameters found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted

from sketchshift._typing import FloatArray, IntArray
from sketchshift.errors import DataError
from sketchshift.estimators.base import SketchedEstimator
from sketchshift.estimators.gaussians import Gaussians
from sketchshift.estimators.rows import rows_in_memory

__all__ = ["SketchedDensity"]


class SketchedDensity(DensityMixin, SketchedEstimator):  # type: ignore[misc]
    """An estimator that decodes its sketch into :class:`Gaussians`."""

    @property
    def weights_(self) -> FloatArray:
        """Shares of the components, shape (k,)."""
        return self._gaussians.weights

    @property
    def means_(self) -> FloatArray:
        """Centers of the components, shape (k, d)."""
        return self._gaussians.means

    @property
    def covariances_(self) -> FloatArray:
        """Covariances, in the shape of their type."""
        return self._gaussians.covariances

    @property
    def precisions_cholesky_(self) -> FloatArray:
        """Cholesky factors of the inverse covariances."""
        covariances = self._gaussians.covariances
        if covariances.ndim < 3:
            return np.asarray(1.0 / np.sqrt(covariances))
        factors = np.linalg.inv(np.linalg.cholesky(covariances))
        return np.ascontiguousarray(factors.swapaxes(1, 2))

    @property
    def converged_(self) -> bool:
        """Whether the fit ended before ``max_iter``."""
        return self._gaussians.converged

    @property
    def n_iter_(self) -> int:
        """Iterations of the fit."""
        return self._gaussians.n_iter

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
    def _gaussians(self) -> Gaussians:
        gaussians: Gaussians = self._result
        return gaussians

    def _model(self) -> Any:
        """scikit-learn's mixture with these parameters: it evaluates and draws."""
        check_is_fitted(self)
        found = self._gaussians
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
