"""What the caller asked for, checked once before any data is looked at.

Takes the arguments of ``open_source``; hands a :class:`Request` to every opener.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sketchshift._typing import FloatArray
from sketchshift._validation import unmasked
from sketchshift.data.labels import Labels, checked_keys
from sketchshift.errors import DataError

__all__ = ["NAMES_SHOWN", "Request", "listed", "make_request"]

BLOCK_BYTES = 2**21
FEWEST_ROWS, MOST_ROWS = 256, 65536
NAMES_SHOWN = 20


@dataclass(frozen=True)
class Request:
    """The arguments of ``open_source``, checked once."""

    columns: tuple[str, ...] | None = None
    weights: str | FloatArray | None = None
    block_rows: int | None = None
    names_needed: bool = True
    keys: tuple[str, ...] | Labels = ()

    @property
    def key_names(self) -> tuple[str, ...]:
        """Columns of the data that are keys."""
        return self.keys if isinstance(self.keys, tuple) else ()

    def rows_for(self, n_features: int) -> int:
        """Rows per block: as asked, or about 2 MiB of float64."""
        if self.block_rows is not None:
            return self.block_rows
        return min(max(BLOCK_BYTES // (8 * n_features), FEWEST_ROWS), MOST_ROWS)

    def refuse_names(self, what: str) -> None:
        """Names were asked of data that has none."""
        if self.columns is not None and self.names_needed:
            msg = (
                f"cannot choose columns={list(self.columns)} by name: {what} has no column "
                "names. Select columns by slicing, as in X[:, [0, 3]]."
            )
            raise DataError(msg)
        if isinstance(self.weights, str):
            msg = (
                f"sample_weight={self.weights!r} names a column, but {what} has no column names. "
                "Pass the weights as an array with one number per row."
            )
            raise DataError(msg)
        if self.key_names:
            msg = (
                f"by={self.key_names[0]!r} names a column, but {what} has no column names. "
                "Pass the labels as an array with one of them per row."
            )
            raise DataError(msg)

    def refuse_weight_array(self, what: str) -> None:
        """Weights or labels came as an array for data whose length is not known ahead."""
        if isinstance(self.keys, Labels):
            msg = (
                f"by cannot be an array of labels for {what}, which is read as a stream. "
                "Store the labels as a column and pass its name: by='day'."
            )
            raise DataError(msg)
        if isinstance(self.weights, np.ndarray):
            msg = (
                f"sample_weight cannot be an array for {what}, which is read as a stream. "
                "Store the weights as a column and pass its name: sample_weight='w'."
            )
            raise DataError(msg)

    def weights_of(self, n_rows: int, what: str) -> FloatArray | None:
        """The array of weights, if one was given, with as many entries as there are rows."""
        if not isinstance(self.weights, np.ndarray):
            return None
        if len(self.weights) != n_rows:
            msg = (
                f"sample_weight has {len(self.weights)} entries but {what} has {n_rows} rows. "
                "Pass one weight per row."
            )
            raise DataError(msg)
        return self.weights

    def labels_of(self, n_rows: int, what: str) -> Callable[[slice], Any] | None:
        """The labels of a slice of rows, if they were given, one for each of the rows."""
        if not isinstance(self.keys, Labels):
            return None
        if len(self.keys) != n_rows:
            msg = (
                f"by has {len(self.keys)} labels but {what} has {n_rows} rows. Pass one label "
                "per row."
            )
            raise DataError(msg)
        return self.keys.cut


def make_request(
    columns: Sequence[str] | None,
    weights: str | ArrayLike | None,
    block_rows: int | None,
    default_columns: Sequence[str] | None = None,
    keys: Any = None,
) -> Request:
    """Check the arguments that do not depend on the data."""
    return Request(
        _checked_columns(default_columns if columns is None else columns),
        _checked_weights(weights),
        _checked_rows(block_rows),
        names_needed=columns is not None,
        keys=checked_keys(keys),
    )


def listed(names: Sequence[str]) -> str:
    """Names quoted and joined, the first twenty of them."""
    text = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{text} and {more} more" if more > 0 else text


def _checked_columns(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str):
        msg = f"columns must be a list of names, not one text: columns=[{columns!r}]."
        raise DataError(msg)
    names = tuple(columns) if isinstance(columns, Iterable) else (columns,)
    strangers = [name for name in names if not isinstance(name, str)]
    if strangers or not names:
        found = f"{strangers[0]!r}" if strangers else "an empty list"
        msg = f"columns must be a list of column names. Got {found} instead."
        raise DataError(msg)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        msg = f"columns= names {listed(repeated)} more than once. Name each column once."
        raise DataError(msg)
    return names


def _checked_weights(weights: str | ArrayLike | None) -> str | FloatArray | None:
    if weights is None or isinstance(weights, str):
        return weights
    try:
        array = np.asarray(unmasked(weights))
        found = f"an array of shape {array.shape} and dtype {array.dtype}"
    except ValueError as cause:  # nested lists of unequal length
        array, found = np.empty((0, 0)), f"{type(weights).__name__} ({cause})"
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        msg = f"sample_weight must be a column name or a 1-d array of numbers. Got {found} instead."
        raise DataError(msg)
    return array.astype(np.float64, copy=False)


def _checked_rows(block_rows: int | None) -> int | None:
    if block_rows is None:
        return None
    try:
        rows = index(block_rows)
    except TypeError:
        rows = 0
    if rows < 1:
        msg = f"block_rows must be a positive integer. Got {block_rows!r} instead."
        raise DataError(msg)
    return rows
