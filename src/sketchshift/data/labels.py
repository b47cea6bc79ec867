"""What says which slice a row belongs to: names of columns, or one label for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sketchshift.errors import DataError

__all__ = ["Labels", "as_written", "checked_keys", "is_as_written"]

MARK = {b"sketchshift": b"as written"}


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


def as_written(batch: Any, names: Sequence[str]) -> Any:
    """Columns of a text file marked as text that may mean numbers; empty cells are missing.

    Which of them do can be told only when all have been read, in whatever blocks and files.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        texts = batch.column(name)
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, pa.field(name, texts.type, metadata=MARK), texts)
    return batch


def is_as_written(field: Any) -> bool:
    """Whether a column is marked so."""
    return field.metadata is not None and MARK.items() <= field.metadata.items()


def checked_keys(keys: Any) -> tuple[str, ...] | Labels:
    """Names of columns, or labels; () if there are no keys."""
    if keys is None:
        return ()
    if isinstance(keys, str):
        return (keys,)
    if not (isinstance(keys, Sequence) and all(isinstance(key, str) for key in keys)):
        return Labels(keys)
    return tuple(keys)
