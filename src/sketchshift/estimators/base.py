"""What both estimators do: plan, sketch, add, forget, and decode when asked.

Subclasses say how many clusters the plan is for, and what to make of a sketch. Decoding
takes much longer than adding a few rows, so it waits until somebody looks at the result.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchshift._validation import check_flag, parameter_error, unmasked
from sketchshift.data import Source, open_source
from sketchshift.data.open import gather_vectors, is_collection, is_table
from sketchshift.errors import DataError, IncompatibleSketchesError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.sketch import AnySketch, Sketch, sketch
from sketchshift.sketch.plan import plan_collection_or_rows, plan_source
from sketchshift.sketch.reading import Planning, Reading

__all__ = ["Collection", "Rows", "SketchedEstimator", "open_rows", "rows_in_memory", "set_features"]

# What an estimator was given: rows in memory, a source to be read in blocks, or a collection.
#
# Rows in memory obey scikit-learn's rules on shapes, dtypes and column names. Whatever else
# ``sketch`` can read (files, Arrow streams, iterators) goes to ``data`` as it is; a collection that
# lies on many machines is left to its engine.

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

    def plan(self, planning: Planning) -> tuple[SketchSpec, Rows]:
        """A plan with the options of ``ss.plan``, and rows that are all still to be read."""
        few = distinct_rows(self)
        spec, source = plan_source(self.source if few is None else few, planning)
        return spec, self if few is not None else dataclasses.replace(self, source=source)

    def sketch(self, spec: SketchSpec, n_threads: int | None) -> Sketch:
        """The sketch of all rows."""
        return sketch(self.source, spec, sample_weight=self.sample_weight, n_threads=n_threads)


@dataclass(frozen=True, eq=False)
class Collection:
    """Data for an estimator that lies on many machines, where an engine reads it.

    Attributes
    ----------
    data : collection
        Of an engine.
    sample_weight : str or collection, or None
        As given to ``fit``.
    """

    data: Any
    sample_weight: Any = None
    is_few = False  # nobody here knows

    def plan(self, planning: Planning) -> tuple[SketchSpec, Collection]:
        """A plan with the options of ``ss.plan``, and this collection."""
        reading = Reading(sample_weight=self.sample_weight)
        return plan_collection_or_rows(self.data, reading, planning), self

    def sketch(self, spec: SketchSpec, n_threads: int | None) -> Sketch:
        """The sketch of all rows."""
        return sketch(self.data, spec, sample_weight=self.sample_weight, n_threads=n_threads)


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
    if is_collection(X):
        return Collection(X, sample_weight)
    columns = None if spec is None else spec.rows.names
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
    if is_source(X) or is_collection(X):
        msg = (
            f"{type(X).__name__} cannot be read here: fit, partial_fit and forget read any source, "
            "all else needs rows in memory. Read it in parts, and pass them one by one."
        )
        raise DataError(msg)
    accept_sparse = "csr" if get_tags(estimator).input_tags.sparse else False
    dtypes = [np.float64, np.float32]
    vectors = gather_vectors(X)
    rows = unmasked(X) if vectors is None else vectors  # scikit-learn does not look at masks
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


class SketchedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that keeps a sketch of the data and decodes it.

    Subclasses have the parameters ``sketch_size``, ``standardize``, ``spec``, ``n_threads`` and
    ``random_state``.

    Attributes
    ----------
    sketch_ : Sketch or PrivateSketch
        Of all rows that are in.
    """

    sketch_: AnySketch

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Read the data once, and decode its sketch.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d), or any source
            Whatever :func:`sketchshift.sketch` reads: also paths, folders and globs, Arrow data,
            iterators of blocks. And collections of Dask, Spark and Ray, which are planned and
            sketched where they lie (:mod:`sketchshift.engines`).
        y : None
            Not used.
        sample_weight : array of shape (n,), str or None
            Weights of the rows; of files, the name of the column that holds them.

        Returns
        -------
        self : estimator
            What was fitted before is forgotten.
        """
        rows = self._start(X, sample_weight, is_all=True)
        self._found = self._decode()
        self._look_at(rows)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those that are in; decode when the result is asked for.

        Without a ``spec``, the first call makes the plan from its rows: they should be like the
        rest. Pass ``spec=ss.plan(sample, k)`` where the first rows are few or not typical.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d), or any source
            As in :meth:`fit`.
        y : None
            Not used.
        sample_weight : array of shape (n,), str or None
            As in :meth:`fit`.

        Returns
        -------
        self : estimator
            The same for rows in any order and in any number of calls, given the plan.
        """
        if not hasattr(self, "sketch_"):
            self._start(X, sample_weight, is_all=False)
        else:
            self._set_sketch(self._raw() + self._sketch(X, sample_weight))
        return self

    def forget(self, X: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, exactly: as if they had never been there, given the plan.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d), or any source
            Rows that are in. As in :meth:`fit`.
        sample_weight : array of shape (n,), str or None
            The weights they had.

        Returns
        -------
        self : estimator
            Decoded again when the result is asked for. If more is taken out than is in, an
            exception is raised and nothing changes.
        """
        check_is_fitted(self)
        self._set_sketch(self._raw() - self._sketch(X, sample_weight))
        return self

    def fit_sketch(self, sketch: AnySketch) -> Self:
        """Decode a sketch: no data is needed.

        Parameters
        ----------
        sketch : Sketch or PrivateSketch
            From anywhere. Names of the columns come from its spec; the parameters of this
            estimator that plan are not used.

        Returns
        -------
        self : estimator
            Rows can be added with :meth:`partial_fit`, unless the sketch is private.
        """
        if not isinstance(sketch, AnySketch):
            must = "a Sketch or a PrivateSketch"
            raise parameter_error(f"{_name(self)}.fit_sketch", "sketch", must, sketch)
        self._seed = self._draw_seed()
        set_features(self, sketch.spec.n_features, sketch.spec.rows.names)
        self._set_sketch(sketch)
        self._found = self._decode()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sketch_")

    @property
    def _result(self) -> Any:
        """What was decoded from the sketch, or is now."""
        check_is_fitted(self)
        if self._found is None:
            self._found = self._decode()
        return self._found

    def _decode(self) -> Any:
        """Make something of ``sketch_``."""
        raise NotImplementedError

    def _look_at(self, rows: Rows | Collection) -> None:
        """After ``fit``: what needs the rows themselves, where they lie in memory."""

    def _n_planned(self) -> int:
        """Number of clusters that the plan is for, checked."""
        raise NotImplementedError

    def _planning(self, n_clusters: int, seed: int) -> Planning:
        """What plans are made with."""
        size, cells, metric = self.sketch_size, self._uses_cells(), self._chosen_metric()
        return Planning(n_clusters, size, seed, self.standardize, cells, metric)

    def _uses_cells(self) -> bool:
        """Whether plans have cells."""
        return True

    def _chosen_metric(self) -> str:
        """That of plans."""
        return "euclidean"

    def _planned(self, spec: SketchSpec, *, is_few: bool) -> SketchSpec:
        """What this estimator makes of the usual plan; few rows are all there are."""
        return spec

    def _start(self, X: Any, sample_weight: Any, *, is_all: bool) -> Rows | Collection:
        """Plan, and sketch the first rows."""
        self._check_plan()
        n_clusters, seed = self._n_planned(), self._draw_seed()
        rows = open_rows(self, X, sample_weight, self.spec, reset=True)
        spec = self.spec
        if spec is None:
            spec, rows = rows.plan(self._planning(n_clusters, seed))
            spec = self._planned(spec, is_few=is_all and rows.is_few)
        first = rows.sketch(spec, self.n_threads)
        if isinstance(rows, Collection):  # nobody here has seen its columns
            set_features(self, spec.n_features, spec.rows.names)
        self._seed = seed
        self._set_sketch(first)
        return rows

    def _sketch(self, X: Any, sample_weight: Any) -> Sketch:
        """The sketch of more rows, by the plan there is."""
        spec = self.sketch_.spec
        rows = open_rows(self, X, sample_weight, spec, reset=False)
        return rows.sketch(spec, self.n_threads)

    def _raw(self) -> Sketch:
        """The sketch, to which rows can be added."""
        if not isinstance(self.sketch_, Sketch):
            msg = (
                "a private sketch takes no rows and gives none back: they would go without noise. "
                "Release a sketch of the new rows, and fit_sketch the sum of both."
            )
            raise IncompatibleSketchesError(msg)
        return self.sketch_

    def _set_sketch(self, sketch: AnySketch) -> None:
        """Take a sketch, and drop what was decoded from another."""
        self.sketch_ = sketch
        self._found = None

    def _check_plan(self) -> None:
        check_flag(_name(self), "standardize", self.standardize)
        if self.spec is None:
            return
        if not isinstance(self.spec, SketchSpec):
            raise parameter_error(_name(self), "spec", "a SketchSpec or None", self.spec)
        if self.sketch_size is not None or self.standardize:
            msg = (
                f"{_name(self)} takes spec or sketch_size and standardize, not both: they cannot "
                "change what the spec says. Leave them out, or pass them to ss.plan instead."
            )
            raise SpecError(msg)

    def _check_enough(self, n_clusters: int, name: str) -> None:
        """Refuse to look for more clusters than there are rows."""
        if self.sketch_.count < n_clusters:
            msg = (
                f"{self.sketch_.about}n_samples={self.sketch_.count} rows are in, and "
                f"{name}={n_clusters} is more than that. Add rows, or ask for a smaller {name}."
            )
            raise DataError(msg)

    def _draw_seed(self) -> int:
        """An integer is the seed itself; None and a RandomState draw one."""
        if isinstance(self.random_state, Integral) and not isinstance(self.random_state, bool):
            check_random_state(self.random_state)  # refuses what is out of range
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _name(estimator: object) -> str:
    return type(estimator).__name__
