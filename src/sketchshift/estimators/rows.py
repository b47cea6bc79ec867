"""What an estimator was given: rows in memory, a source to be read in blocks, or a collection.

Rows in memory obey scikit-learn's rules on shapes, dtypes and column names. Whatever else
``sketch`` can read (files, Arrow streams, iterators) goes to ``data`` as it is; a collection that
lies on many machines is left to its engine.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from sketchshift._validation import unmasked
from sketchshift.data import Source, open_source
from sketchshift.data.memory import is_table
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, sketch
from sketchshift.sketch.engine import Engine, engine_of
from sketchshift.sketch.plan import plan_source

__all__ = ["Collection", "Rows", "open_rows", "rows_in_memory", "set_features"]

FEW_ROWS = 2000  # as many as a plan looks at


@dataclass(frozen=True, eq=False)
class Rows:
    """Data for an estimator, read here.

    Attributes
    ----------
    source : Source
        The rows with their weights, to be read once.
    sample_weight : array of shape (n,), str or None
        As given to ``fit``.
    array : array or CSR matrix of shape (n, d), or None
        The rows, where they lie in memory.
    weights : array of shape (n,) or None
        Their weights; of rows in memory only.
    """

    source: Source
    sample_weight: Any = None
    array: Any = None
    weights: Any = None

    @property
    def is_few(self) -> bool:
        """Whether these lie in memory, and are so few that a plan looks at all of them."""
        return self.array is not None and self.array.shape[0] <= FEW_ROWS

    def plan(self, n_clusters: int, **options: Any) -> tuple[SketchSpec, Rows]:
        """A plan with the options of ``ss.plan``, and rows that are all still to be read."""
        few = distinct_rows(self)
        spec, source = plan_source(self.source if few is None else few, n_clusters, **options)
        return spec, self if few is not None else dataclasses.replace(self, source=source)

    def sketch(self, spec: SketchSpec, n_threads: int | None) -> Sketch:
        """The sketch of all rows."""
        return sketch(self.source, spec, sample_weight=self.sample_weight, n_threads=n_threads)


@dataclass(frozen=True, eq=False)
class Collection:
    """Data for an estimator that lies on many machines.

    Attributes
    ----------
    engine : Engine
        Who reads it.
    data : collection
        Of the engine.
    sample_weight : str or collection, or None
        As given to ``fit``.
    """

    engine: Engine
    data: Any
    sample_weight: Any = None
    is_few = False  # nobody here knows

    def plan(self, n_clusters: int, **options: Any) -> tuple[SketchSpec, Collection]:
        """A plan with the options of ``ss.plan``, and this collection."""
        weights = self.sample_weight
        return self.engine.plan(self.data, n_clusters, sample_weight=weights, **options), self

    def sketch(self, spec: SketchSpec, n_threads: int | None) -> Sketch:
        """The sketch of all rows; how many threads there are is the engine's business."""
        return self.engine.sketch(self.data, spec, sample_weight=self.sample_weight)


def open_rows(
    estimator: Any, X: Any, sample_weight: Any, spec: SketchSpec | None, *, reset: bool
) -> Rows | Collection:
    """Check data, and open it.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_`` if ``reset``, else has them.
    X : rows in memory, or any source
        As given to ``fit``.
    sample_weight : array of shape (n,), str or None
        As given to ``fit``.
    spec : SketchSpec or None
        The plan, if there is one already.
    reset : bool
        Whether this is the first data the estimator sees.
    """
    engine = engine_of(X)
    if engine is not None:
        return Collection(engine, X, sample_weight)
    columns = None if spec is None else spec.columns
    if is_source(X):
        source = open_source(X, default_columns=columns, weights=sample_weight)
        if reset:
            set_features(estimator, source.n_features, source.columns)
        return Rows(source, sample_weight)
    if isinstance(sample_weight, str) and hasattr(X, "columns"):
        msg = (
            f"sample_weight={sample_weight!r} names a column, and all columns of a table in memory "
            f"are features. Pass sample_weight=X[{sample_weight!r}], and leave the column out of X."
        )
        raise DataError(msg)
    array = rows_in_memory(estimator, X, reset=reset)
    names = getattr(estimator, "feature_names_in_", None)
    if reset and names is not None and columns is not None and tuple(names) != columns:
        msg = (
            f"the spec is for the columns {list(columns)}, and X has {list(names)}. Pass "
            f"X[{list(columns)}], or a plan made for this data."
        )
        raise DataError(msg)
    source = open_source(array, weights=sample_weight)
    if names is not None:
        source = dataclasses.replace(source, columns=tuple(str(name) for name in names))
    weights = (
        None if sample_weight is None else np.asarray(unmasked(sample_weight), dtype=np.float64)
    )
    if weights is not None and not weights.any():
        msg = "all sample weights are zero, so that no row counts. Give some a positive weight."
        raise DataError(msg)
    return Rows(source, sample_weight, array, weights)


def rows_in_memory(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """X as an array or CSR matrix, checked as scikit-learn does."""
    if is_source(X) or engine_of(X) is not None:
        msg = (
            f"{type(X).__name__} cannot be read here: fit, partial_fit and forget read any source, "
            "all else needs rows in memory. Read it in parts, and pass them one by one."
        )
        raise DataError(msg)
    accept_sparse = "csr" if get_tags(estimator).input_tags.sparse else False
    dtypes = [np.float64, np.float32]
    rows = unmasked(X)  # scikit-learn does not look at masks
    return validate_data(estimator, rows, reset=reset, accept_sparse=accept_sparse, dtype=dtypes)


def is_source(X: Any) -> bool:
    """Whether X is read in blocks, or not at all: paths, Arrow streams, iterators."""
    if isinstance(X, str | PathLike):
        return True
    if isinstance(X, list | tuple):
        return bool(X) and (isinstance(X[0], str | PathLike) or is_table(X[0]))
    return not (hasattr(X, "__array__") or issparse(X))


def set_features(estimator: Any, n_features: int, columns: tuple[str, ...] | None) -> None:
    """Tell an estimator about the columns of data it did not see as a whole."""
    estimator.n_features_in_ = n_features
    if columns is not None:
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def distinct_rows(rows: Rows) -> Source | None:
    """Of few rows in memory, the different ones, each weighing what its equals weigh in all.

    A plan made from these is the same for whole weights and for repeated rows. None for
    many rows, of which a plan sees a sample only.
    """
    if not rows.is_few:
        return None
    array = rows.array.toarray() if issparse(rows.array) else rows.array
    weights = np.ones(len(array)) if rows.weights is None else rows.weights
    different, place = np.unique(array[weights != 0], axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), weights[weights != 0], minlength=len(different))
    source = open_source(different, weights=None if (sums == 1.0).all() else sums)
    return dataclasses.replace(source, columns=rows.source.columns)
