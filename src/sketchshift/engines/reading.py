"""What a pass reads of a collection, checked here before any partition is read there.

One :class:`Reading` travels to all workers. Knows no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.data import Source, open_source
from sketchshift.data.request import make_request
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.sketch.keys import Key, columns_of, parse
from sketchshift.sketch.sketcher import open_for

__all__ = ["Reading", "cannot_read", "check_spec", "key_and_spec", "keys_of"]


@dataclass(frozen=True)
class Reading:
    """What is read of each row, and how.

    Parameters
    ----------
    spec : SketchSpec or None
        What is summed; None for a plan.
    columns : sequence of str or None
        Columns to read; None takes the spec's, or all.
    sample_weight : str, array or None
        Name of the column that holds the weights; beside an array, the weights.
    on_invalid, kernel : str
        As in :func:`sketchshift.sketch`. Whether there is such a kernel is for the workers to say.
    keys : sequence of Key
        The key, where sketches are made by key.
    max_slices : int
        As in :func:`sketchshift.sketch_by`.
    """

    spec: SketchSpec | None = None
    columns: Sequence[str] | None = None
    sample_weight: Any = None
    on_invalid: str = "raise"
    kernel: str = "auto"
    keys: Sequence[Key] = ()
    max_slices: int = 1

    def __post_init__(self) -> None:
        caller = "plan" if self.spec is None else "sketch"
        check_choice(caller, "on_invalid", self.on_invalid, ("raise", "skip"))
        make_request(self.columns, None, None)  # refuses what is no list of names
        check_integer("sketch_by", "max_slices", self.max_slices, 1, 2**30)

    @property
    def key_names(self) -> list[str]:
        """Names of the columns of the key, as a table of sketches has them."""
        return [key.name for key in self.keys]

    def open(self, data: Any, **opening: Any) -> Source:
        """The rows of a partition; ``opening`` is more for ``data.open_source``."""
        opening |= {"weights": self.sample_weight, "keys": columns_of(self.keys) or None}
        if self.spec is None:
            return open_source(data, columns=self.columns, **opening)
        return open_for(self.spec, data, self.columns, names=self.spec.columns, **opening)

    def names(self, empty: Any) -> list[str] | None:
        """The columns that are read, each once.

        Parameters
        ----------
        empty : array, frame or Arrow table of no rows
            With the columns of the collection. What is wrong with them is an error.

        Returns
        -------
        names : list of str or None
            None for data without names.
        """
        columns = self.open(empty).columns
        if columns is None:
            return None
        weights = [] if self.sample_weight is None else [self.sample_weight]
        return list(dict.fromkeys([*columns_of(self.keys), *columns, *weights]))

    def by_name(self, empty: Any) -> Reading:
        """The same reading with its columns named, for partitions that have them in other orders.

        Parameters
        ----------
        empty : array, frame or Arrow table of no rows
            As in :meth:`names`.
        """
        return replace(self, columns=self.open(empty).columns)

    def check_weight_name(self, collection: str) -> None:
        """Refuse weights that are not a column, for a collection that has no place for them."""
        if self.sample_weight is None or isinstance(self.sample_weight, str):
            return
        msg = (
            f"sample_weight must be the name of a column for a {collection}. Got "
            f"{type(self.sample_weight).__name__} instead: add it as a column."
        )
        raise DataError(msg)


def check_spec(spec: Any) -> SketchSpec:
    """The spec of a pass that needs one."""
    if not isinstance(spec, SketchSpec):
        raise parameter_error("sketch", "spec", "a SketchSpec", spec)
    return spec


def key_and_spec(by: Any, spec: Any) -> tuple[Any, Any]:
    """Both of them, in whichever order they were given."""
    return (spec, by) if isinstance(by, SketchSpec) else (by, spec)


def keys_of(by: Any) -> list[Key]:
    """The columns of a key, of which there must be one at least."""
    keys = parse(by)
    if not keys:
        msg = (
            "by must be the name of a column, or a list of names: labels from here do not reach "
            f"rows on other machines. Got {type(by).__name__} instead."
        )
        raise DataError(msg)
    return keys


def cannot_read(collection: Any, engine: str, wanted: str) -> DataError:
    """The exception for what is no collection of the engine's."""
    msg = (
        f"cannot read a {type(collection).__name__} with {engine}. Pass a {wanted}; for other data "
        "there is sketchshift.sketch."
    )
    return DataError(msg)
