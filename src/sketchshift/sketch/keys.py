"""Keys in one form, whichever library or file they come from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sketchshift.errors import DataError

__all__ = ["plain"]


def plain(column: Any) -> Any:
    """One array, in which equal keys look equal: no dictionaries, one missing value."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_nested(kind):
        raise DataError(f"a key cannot hold {kind}. Take a column of texts, numbers or dates.")
    return column
