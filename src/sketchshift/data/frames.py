"""Data frames of pandas, Polars and the others that narwhals knows.

Takes an eager frame; hands out blocks cut from slices of it. A slice goes to NumPy
directly where the frame can, else through Arrow, which turns missing values of
nullable columns into NaN. Decimals always go through Arrow, where they become the floats
nearest to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift.data.source import Choice, Field, Request, Source, Take, choose, cut_blocks
from sketchshift.errors import DataError

__all__ = ["is_frame", "open_frame"]


def is_frame(data: Any) -> bool:
    """Whether ``open_frame`` answers for it, with a source or with an error."""
    native, known = nw.to_native(data, pass_through=True), nw.dependencies
    return (
        known.is_into_dataframe(native)
        or known.is_into_series(native)
        or known.is_polars_lazyframe(native)
    )


def open_frame(data: Any, request: Request) -> Source:
    """Read an eager data frame in slices.

    Parameters
    ----------
    data : pandas.DataFrame, polars.DataFrame or other frame known to narwhals
        Column names that are not all text count as no names, as in scikit-learn.
    request : Request
        Columns by name; weights by name or as an array.

    Returns
    -------
    source : Source
        Each block holds one slice as an array of shape (n, d), a copy where the
        columns do not lie side by side in memory.
    """
    frame = _eager(nw.to_native(data, pass_through=True))
    is_named = all(isinstance(name, str) for name in frame.columns)
    if not is_named:
        request.refuse_names("the table (its labels are not all text)")
        request = replace(request, columns=None)
    labels = [str(name) for name in frame.columns]
    position = {label: j for j, label in enumerate(labels)}
    fields = [
        Field(label, str(dtype), _holds_numbers(frame, j, dtype))
        for j, (label, dtype) in enumerate(zip(labels, frame.schema.values(), strict=True))
    ]
    choice = choose(fields, request, "the table")
    given = request.weights_of(len(frame), "the table")
    d = len(choice.columns)
    read = partial(
        cut_blocks,
        _taker(frame, [position[name] for name in choice.columns]),
        len(frame),
        request.rows_for(d),
        weights=_weigher(frame, position, choice, given),
        keys=request.labels_of(len(frame), "the table") or _keyer(frame, position, choice),
        source="table",
    )
    return Source(choice.columns if is_named else None, d, len(frame), read)


def _eager(data: Any) -> nw.DataFrame[Any]:
    if nw.dependencies.is_polars_lazyframe(data):
        msg = (
            "cannot read a LazyFrame, which holds a plan and no rows. Call "
            '.collect(engine="streaming") on it first, or pass its batches one by one.'
        )
        raise DataError(msg)
    if nw.dependencies.is_into_series(data):
        msg = (
            f"cannot read {type(data).__name__} as rows and columns: it is one column. "
            "Make it a table first, with .to_frame()."
        )
        raise DataError(msg)
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
        _ = frame.columns
    except (TypeError, ValueError) as cause:  # narwhals' own errors derive from ValueError
        msg = f"cannot read the table: {cause}"
        raise DataError(msg) from cause
    return frame


def _holds_numbers(frame: nw.DataFrame[Any], j: int, dtype: Any) -> bool:
    if dtype.is_numeric() or isinstance(dtype, nw.Boolean):
        return True
    empty = frame[:0, [j]]
    if isinstance(dtype, nw.Unknown):  # long double, sparse: NumPy knows
        return bool(empty.to_numpy().dtype.kind in "biuf")
    if isinstance(dtype, nw.Categorical | nw.Enum):  # an Enum is one with an order
        from sketchshift.data.arrow import holds_numbers

        return holds_numbers(empty.to_arrow().schema.field(0).type)
    return False


def _taker(frame: nw.DataFrame[Any], positions: list[int]) -> Take:
    kinds = list(frame.schema.values())
    has_decimals = any(isinstance(kinds[j], nw.Decimal) for j in positions)

    def take(span: slice) -> RealArray:
        piece = frame[span, positions]
        if has_decimals:
            return _through_arrow(piece)
        values: RealArray = piece.to_numpy()
        return values if values.dtype.kind in "biuf" else _through_arrow(piece)

    return take


def _through_arrow(piece: nw.DataFrame[Any]) -> RealArray:
    from sketchshift.data.arrow import stack

    width = piece.shape[1]  # pandas adds its index behind the columns
    return stack(piece.to_arrow().columns[:width])


def _keyer(
    frame: nw.DataFrame[Any], position: dict[str, int], choice: Choice
) -> Callable[[slice], Any] | None:
    positions = [position[name] for name in choice.keys]
    if not positions:
        return None

    def take(span: slice) -> Any:
        return frame[span, positions].to_arrow().select(list(choice.keys))

    return take


def _weigher(
    frame: nw.DataFrame[Any], position: dict[str, int], choice: Choice, given: FloatArray | None
) -> Take | None:
    if choice.weights is not None:
        take = _taker(frame, [position[choice.weights]])
        return lambda span: take(span)[:, 0].astype(np.float64, copy=False)
    return None if given is None else given.__getitem__
