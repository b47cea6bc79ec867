"""What both estimators do: plan, sketch, add, forget, and decode when asked.

Subclasses say how many clusters the plan is for, and what to make of a sketch. Decoding
takes much longer than adding a few rows, so it waits until somebody looks at the result.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sketchshift._validation import check_flag, parameter_error
from sketchshift.errors import DataError, IncompatibleSketchesError, SpecError
from sketchshift.estimators.rows import Collection, Rows, open_rows, set_features
from sketchshift.features import SketchSpec
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["SketchedEstimator"]


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
        set_features(self, sketch.spec.n_features, sketch.spec.columns)
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
            options = {"sketch_size": self.sketch_size, "standardize": self.standardize}
            spec, rows = rows.plan(n_clusters, seed=seed, **options)
            spec = self._planned(spec, is_few=is_all and rows.is_few)
        first = rows.sketch(spec, self.n_threads)
        if isinstance(rows, Collection):  # nobody here has seen its columns
            set_features(self, spec.n_features, spec.columns)
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
