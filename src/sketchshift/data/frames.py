"""Data frames of pandas, Polars and the others that narwhals knows.

Takes an eager frame; hands out blocks cut from slices of it. A slice goes to NumPy
directly where the frame can, else through Arrow, which turns missing values of
nullable columns into NaN. Decimals always go through Arrow, where they become the floats
nearest to them, and so do columns of vectors: lists, arrays, and in pandas objects that are arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift.data.memory import native
from sketchshift.data.source import (
    Choice,
    Field,
    Request,
    Source,
    Take,
    choose,
    cut_blocks,
    spans,
)
from sketchshift.errors import DataError
from sketchshift.recipe import Recipe

__all__ = ["is_frame", "open_frame"]

ROWS_SHOWN = 1024  # of a column of vectors, whose type or length is looked at


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
        _field(frame, j, label, dtype)
        for j, (label, dtype) in enumerate(zip(labels, frame.schema.values(), strict=True))
    ]
    choice = choose(fields, request, "the table")
    given = request.weights_of(len(frame), "the table")
    positions = [position[name] for name in choice.columns]
    if choice.recipe is not None:
        take = _recipe_taker(frame, position, choice.recipe)
    elif choice.width is None:
        take = _taker(frame, positions)
    else:
        choice, take = _vector_taker(frame, positions[0], choice, request)
    d = choice.n_features
    read = partial(
        cut_blocks,
        take,
        len(frame),
        request.rows_for(d),
        weights=_weigher(frame, position, choice, given),
        keys=request.labels_of(len(frame), "the table") or _keyer(frame, position, choice),
        source="table",
    )
    return Source(choice.labels if is_named else None, d, len(frame), read, vector=choice.vector)


def _eager(data: Any) -> nw.DataFrame[Any]:
    if nw.dependencies.is_polars_lazyframe(data):
        msg = (
            "cannot read a LazyFrame, which holds a plan and no rows. Call "
            '.collect(engine="streaming") on it first, or pass its batches one by one.'
        )
        raise DataError(msg)
    frame: nw.DataFrame[Any]
    if nw.dependencies.is_into_series(data):
        frame = nw.from_native(data, series_only=True).rename("vectors").to_frame()
        (dtype,) = frame.schema.values()
        if _field(frame, 0, "vectors", dtype).width is not None:
            return frame
        msg = (
            f"cannot read {type(data).__name__} as rows and columns: it is one column. "
            "Make it a table first, with .to_frame()."
        )
        raise DataError(msg)
    try:
        frame = nw.from_native(data, eager_only=True)
        _ = frame.columns
    except (TypeError, ValueError) as cause:  # narwhals' own errors derive from ValueError
        msg = f"cannot read the table: {cause}"
        raise DataError(msg) from cause
    return frame


def _field(frame: nw.DataFrame[Any], j: int, label: str, dtype: Any) -> Field:
    if isinstance(dtype, nw.Array | nw.List) or _holds_arrays(frame, j, dtype):
        from sketchshift.data.arrow import fields_of

        (field,) = fields_of(_lists(frame, j, dtype, slice(0, ROWS_SHOWN)).schema)
        return replace(field, name=label)
    return Field(label, str(dtype), _holds_numbers(frame, j, dtype))


def _holds_arrays(frame: nw.DataFrame[Any], j: int, dtype: Any) -> bool:
    """Whether the objects of a column of pandas are arrays or lists, as its first one is."""
    if not isinstance(dtype, nw.Object):
        return False
    cells = frame[:ROWS_SHOWN, j].drop_nulls().to_numpy()
    return len(cells) > 0 and isinstance(cells[0], np.ndarray | list | tuple)


def _lists(frame: nw.DataFrame[Any], j: int, dtype: Any, span: slice) -> Any:
    """Some rows of a column as an Arrow table of this column."""
    import pyarrow as pa

    column = frame[span, [j]]
    if not isinstance(dtype, nw.Object):
        return column.to_arrow().select([0])  # pandas adds its index behind it
    cells = column.to_numpy()[:, 0]
    try:
        array = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as cause:
        array = _join_arrays(cells, span, cause)
    if pa.types.is_null(array.type):  # all are missing, which says nothing of what they are
        array = array.cast(pa.list_(pa.float64()))
    return pa.table({str(column.columns[0]): array})


def _join_arrays(cells: Any, span: slice, cause: Exception) -> Any:
    """Arrays of floats that Arrow does not know, such as bfloat16, as Arrow's lists of float32."""
    import pyarrow as pa

    arrays = [np.empty(0, np.float32) if cell is None else cell for cell in cells]
    are_known = [isinstance(array, np.ndarray) and array.ndim == 1 for array in arrays]
    if not all(are_known):
        row = span.start + are_known.index(False)
        msg = f"row {row} of the table (the first is 0) is no vector of numbers: {cause}"
        raise DataError(msg) from cause
    numbers = np.concatenate([native(array) for array in arrays])
    ends = np.cumsum([0, *map(len, arrays)])
    is_missing = np.array([cell is None for cell in cells])
    try:
        return pa.LargeListArray.from_arrays(ends, numbers, mask=pa.array(is_missing))
    except pa.ArrowException as again:
        raise DataError(f"rows {span.start} to {span.stop - 1} of the table: {again}") from again


def _vector_taker(
    frame: nw.DataFrame[Any], j: int, choice: Choice, request: Request
) -> tuple[Choice, Take]:
    """The choice with the length of its vectors, and what gives some of them as rows."""
    from sketchshift.data.arrow import give_width, values_of

    name, dtype = choice.columns[0], list(frame.schema.values())[j]

    def lists(span: slice) -> Any:
        return _lists(frame, j, dtype, span).rename_columns([name])

    choice = give_width(choice, map(lists, spans(len(frame), ROWS_SHOWN)), request)

    def take(span: slice) -> RealArray:
        column = lists(span)
        (batch,) = column.combine_chunks().to_batches() or [column]
        return values_of(batch, choice, "table", range(span.start, span.stop))

    return choice, take


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


def _recipe_taker(frame: nw.DataFrame[Any], position: dict[str, int], recipe: Recipe) -> Take:
    numbers = _taker(frame, [position[name] for name in recipe.numbers])
    texts = _arrow_taker(frame, position, recipe.texts)
    return lambda span: recipe.encode(numbers(span), texts(span))


def _through_arrow(piece: nw.DataFrame[Any]) -> RealArray:
    from sketchshift.data.arrow import stack

    width = piece.shape[1]  # pandas adds its index behind the columns
    return stack(piece.to_arrow().columns[:width])


def _keyer(
    frame: nw.DataFrame[Any], position: dict[str, int], choice: Choice
) -> Callable[[slice], Any] | None:
    return _arrow_taker(frame, position, choice.keys) if choice.keys else None


def _arrow_taker(
    frame: nw.DataFrame[Any], position: dict[str, int], names: Sequence[str]
) -> Callable[[slice], Any]:
    """Some rows of these columns as an Arrow table; pandas adds its index behind them."""
    positions = [position[name] for name in names]
    return lambda span: frame[span, positions].to_arrow().select(list(names))


def _weigher(
    frame: nw.DataFrame[Any], position: dict[str, int], choice: Choice, given: FloatArray | None
) -> Take | None:
    if choice.weights is not None:
        take = _taker(frame, [position[choice.weights]])
        return lambda span: take(span)[:, 0].astype(np.float64, copy=False)
    return None if given is None else given.__getitem__
