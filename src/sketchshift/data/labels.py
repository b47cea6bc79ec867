"""What says which slice a row belongs to: names of columns, or one label for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sketchshift.errors import DataError

__all__ = ["Labels", "checked_keys"]


class Labels:
    """Labels given as an array, as an Arrow table of one column.

    Parameters
    ----------
    values : array-like of shape (N,)
        Texts, numbers, dates or booleans; also a pandas or Polars series, whose name the
        column takes.
    """

    def __init__(self, values: Any) -> None:
        import pyarrow as pa

        name = getattr(values, "name", None)
        name = name if isinstance(name, str) and name else "key"
        try:
            array = values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values)
            self._table = pa.table({name: array})
        except (pa.ArrowException, TypeError, ValueError) as cause:
            msg = (
                f"by must be the name of a column, a list of names, or an array with one label "
                f"per row. Got {type(values).__name__} instead ({cause})."
            )
            raise DataError(msg) from cause

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def cut(self, span: slice) -> Any:
        """The labels of some rows."""
        return self._table.slice(span.start, span.stop - span.start)


def checked_keys(keys: Any) -> tuple[str, ...] | Labels:
    """Names of columns, or labels; () if there are no keys."""
    if keys is None:
        return ()
    if isinstance(keys, str):
        return (keys,)
    if not (isinstance(keys, Sequence) and all(isinstance(key, str) for key in keys)):
        return Labels(keys)
    if not keys or len(set(keys)) < len(keys):
        msg = f"by must name one or more columns, each once. Got {list(keys)} instead."
        raise DataError(msg)
    return tuple(keys)
