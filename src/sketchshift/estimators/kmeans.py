"""K-means from a sketch, as a scikit-learn estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.decoders import Decoder, Decoding, Outcome, decode
from sketchshift.decoders.decoder import DECODERS, uses_cells
from sketchshift.errors import InvalidRowsError, warn
from sketchshift.estimators.base import Collection, Rows, SketchedEstimator, rows_in_memory
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.features.rows import METRICS, directions_of
from sketchshift.metrics import as_weights, assign, mse
from sketchshift.sketch import AnySketch

__all__ = ["CompressiveKMeans"]

AUTO_CLUSTERS = 20
"""With ``n_clusters="auto"`` the plan serves so many."""

MORE, ENOUGH = 4, 2000  # times the frequencies of a plan, and at most, where rows are few


class CompressiveKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    SketchedEstimator,
):
    """K-means of data that is read once, and need not be kept.

    The data goes into a sketch of a few kilobytes; centroids are decoded from it. Rows can be
    added and forgotten, exactly. Centroids do not depend on the order of the rows.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number k of clusters; "auto" leaves it to the decoder, up to 20 unless ``spec`` was
        planned for more.
    sketch_size : int or None
        Number m of frequencies; None takes 10 k d, at least 50; where ``fit`` gets at most 2000
        rows in memory, up to four times that, to 2000.
    standardize : bool, default=False
        Give every column a scale of its own, where units differ.
    metric : {"euclidean", "cosine"}
        "cosine" divides every row by its length first; centroids are means of such rows.
    spec : SketchSpec or None
        A plan to use instead, from :func:`sketchshift.plan`. Needed if sketches are to add up.
    decoder : Decoder, str, callable or None
        As in :func:`sketchshift.decode`, or called as ``decoder(sketch, n_clusters, seed=seed)``,
        as a :class:`~sketchshift.SketchAndShift` can be.
    n_threads : int or None
        Of the sketch; None takes the processors this process may use. It changes no result.
    random_state : int, RandomState or None
        An integer is the seed of the plan and of the decoder.

    Attributes
    ----------
    cluster_centers_ : array of shape (k, d)
        The centroids, heaviest first; fewer than asked for, with a ``ConvergenceWarning``, where
        the decoder finds no more. After ``partial_fit`` and ``forget``, decoded on first use.
    weights_ : array of shape (k,)
        Shares of the rows in the clusters, as decoded.
    n_clusters_ : int
        Number of centroids.
    labels_ : array of shape (n,)
        Cluster of each row, after ``fit`` on rows in memory only: a second look at them, cheap
        beside the sketch.
    inertia_ : float
        Sum of squared distances to the nearest centroids; there when ``labels_`` are.
    decoding_ : Decoding
        All that the decoder found, covariances too.
    n_iter_ : int
        Fits, or atoms, that the decoder went through.
    sketch_ : Sketch or PrivateSketch
        Of all rows that are in.
    n_features_in_ : int
        Number d of columns.
    feature_names_in_ : array of shape (d,)
        Names of the columns, if the data or the sketch has names.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.repeat([[0.0, 0.0], [1.0, 3.0]], [300, 100], axis=0)
    >>> X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    >>> km = ss.CompressiveKMeans(n_clusters=2, random_state=0).fit(X)
    >>> km.cluster_centers_.round(1) + 0.0
    array([[0., 0.],
           [1., 3.]])
    >>> km.predict([[1.0, 2.0]])
    array([1])
    >>> km.forget(X[:250]).weights_.round(2)
    array([0.67, 0.33])
    """

    _labels: tuple[IntArray, float] | None  # and the inertia

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        sketch_size: int | None = None,
        standardize: bool = False,
        metric: str = "euclidean",
        spec: Any = None,
        decoder: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.sketch_size = sketch_size
        self.standardize = standardize
        self.metric = metric
        self.spec = spec
        self.decoder = decoder
        self.n_threads = n_threads
        self.random_state = random_state

    def predict(self, X: Any) -> IntArray:
        """Number of the nearest centroid of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
            Rows in memory.

        Returns
        -------
        labels : int64 array of shape (n,)
            From 0 to k - 1. O(n k d).
        """
        check_is_fitted(self)
        return _nearest(*self._scaled(rows_in_memory(self, X)))

    def transform(self, X: Any) -> RealArray:
        """Distances of each row to all centroids.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
            Rows in memory.

        Returns
        -------
        distances : array of shape (n, k)
            In the dtype of X, float32 or float64; in units of the spec's scales where columns
            have scales of their own.
        """
        from scipy.spatial.distance import cdist
        from sklearn.metrics.pairwise import euclidean_distances

        check_is_fitted(self)
        rows = rows_in_memory(self, X)
        between = euclidean_distances if issparse(rows) else cdist
        distances: RealArray = between(*self._scaled(rows)).astype(rows.dtype)
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centroids.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
            Rows in memory.
        y : None
            Not used.
        sample_weight : array of shape (n,) or None
            Weights of the rows.

        Returns
        -------
        score : float
            The larger, the better; distances are those of :meth:`transform`.
        """
        check_is_fitted(self)
        return -_inertia(*self._scaled(rows_in_memory(self, X)), sample_weight)

    @property
    def decoding_(self) -> Decoding:
        """All that the decoder found."""
        decoding: Decoding = self._result
        return decoding

    @property
    def cluster_centers_(self) -> FloatArray:
        """The centroids, shape (k, d)."""
        return self.decoding_.centroids

    @property
    def weights_(self) -> FloatArray:
        """Shares of the rows in the clusters, shape (k,)."""
        return self.decoding_.weights

    @property
    def n_clusters_(self) -> int:
        """Number of centroids."""
        return len(self.cluster_centers_)

    @property
    def n_iter_(self) -> int:
        """Fits, or atoms, that the decoder went through."""
        return len(self.decoding_.trace)

    @property
    def labels_(self) -> IntArray:
        """Cluster of each row given to ``fit``, shape (n,)."""
        labels: IntArray = self._seen("labels_")[0]
        return labels

    @property
    def inertia_(self) -> float:
        """Sum of squared distances, as of ``transform``, of the rows given to ``fit``."""
        return float(self._seen("inertia_")[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def _seen(self, name: str) -> tuple[IntArray, float]:
        check_is_fitted(self)
        if self._labels is None:
            msg = (
                f"there is no {name}: a sketch keeps no rows, and only fit(X) with rows in memory "
                "looks at them again. Use predict(X) and score(X), for parts of the data."
            )
            raise AttributeError(msg)
        return self._labels

    def _look_at(self, rows: Rows | Collection) -> None:
        if isinstance(rows, Rows) and rows.array is not None:
            scaled = self._scaled(rows.array)
            self._labels = _nearest(*scaled), _inertia(*scaled, rows.weights)

    def _scaled(self, rows: Any) -> tuple[Any, FloatArray]:
        """Rows and centroids where distances are those that clusters were found by."""
        spec, centroids = self.sketch_.spec, self.cluster_centers_
        if spec.rows.metric == "cosine":
            rows = _directions(rows)
        if not spec.rows.is_standardised:  # one for all columns changes no order
            return rows, centroids
        if issparse(rows):
            return rows.multiply(
                1.0 / spec.rows.scale_vector
            ).tocsr(), centroids / spec.rows.scale_vector
        return rows / spec.rows.scale_vector, centroids / spec.rows.scale_vector

    def _set_sketch(self, sketch: AnySketch) -> None:
        super()._set_sketch(sketch)
        self._labels = None

    def _check_plan(self) -> None:
        super()._check_plan()
        self._checked_decoder()

    def _checked_decoder(self) -> Callable[..., Decoding]:
        decoder: Any = self.decoder
        is_name = isinstance(decoder, str) and decoder in DECODERS
        if decoder is None or is_name or isinstance(decoder, Decoder):
            return partial(decode, decoder=decoder)
        if not callable(decoder):
            must = "None or a decoder to call, such as ss.SketchAndShift()"
            raise parameter_error("CompressiveKMeans", "decoder", must, self.decoder)
        call: Callable[..., Decoding] = decoder
        return call

    def _n_planned(self) -> int:
        if isinstance(self.n_clusters, str):
            if self.n_clusters == "auto":
                return AUTO_CLUSTERS
            must = f'"auto" or an integer from 1 to {MAX_CLUSTERS}'
            raise parameter_error("CompressiveKMeans", "n_clusters", must, self.n_clusters)
        return check_integer("CompressiveKMeans", "n_clusters", self.n_clusters, 1, MAX_CLUSTERS)

    def _uses_cells(self) -> bool:
        return uses_cells(self.decoder)

    def _chosen_metric(self) -> str:
        return check_choice("CompressiveKMeans", "metric", self.metric, METRICS)

    def _planned(self, spec: SketchSpec, *, is_few: bool) -> SketchSpec:
        """With more frequencies for few rows, where they cost nothing."""
        is_fixed = self.sketch_size is not None or isinstance(self.n_clusters, str)
        if not is_few or is_fixed or spec.waves is None:
            return spec
        size = max(spec.sketch_size, min(MORE * spec.sketch_size, ENOUGH))
        return spec.replaced(waves=dataclasses.replace(spec.waves, size=size))

    def _decode(self) -> Decoding:
        self._n_planned()
        if not isinstance(self.n_clusters, str):
            self._check_enough(self.n_clusters, "n_clusters")
        decoding = self._checked_decoder()(self.sketch_, self.n_clusters, seed=self._seed)
        if decoding.outcome is not Outcome.COMPLETE:
            found = len(decoding.centroids)
            msg = f"{found} of {self.n_clusters} clusters were found. {decoding.outcome}"
            warn(msg, ConvergenceWarning)
        return decoding


def _directions(rows: Any) -> FloatArray:
    """Rows of length 1; those without a direction are refused."""
    found = directions_of(rows.toarray() if issparse(rows) else np.asarray(rows))
    lost = np.flatnonzero(~np.isfinite(found[:, 0]))
    if len(lost):
        msg = f"row {lost[0]} has no direction, since its length is 0 or too large. Leave it out."
        raise InvalidRowsError(msg)
    return found


def _nearest(rows: Any, centroids: FloatArray) -> IntArray:
    """Number of the nearest centroid of each row."""
    if not issparse(rows):
        return assign(rows, centroids)
    from sklearn.metrics import pairwise_distances_argmin

    return np.asarray(pairwise_distances_argmin(rows, centroids), dtype=np.int64)


def _inertia(rows: Any, centroids: FloatArray, weights: Any) -> float:
    """Weighted sum of the squared distances to the nearest centroids."""
    weights = None if weights is None else as_weights(weights, rows.shape[0])
    total = rows.shape[0] if weights is None else float(weights.sum())
    if not issparse(rows):
        return mse(rows, centroids, sample_weight=weights) * total
    from sklearn.metrics import pairwise_distances_argmin_min

    _, distances = pairwise_distances_argmin_min(rows, centroids)
    return float(np.average(distances**2, weights=weights)) * total
