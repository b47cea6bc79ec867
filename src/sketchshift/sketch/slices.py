"""One pass over data that makes a sketch for each value of a key.

Rows of a block are sorted by key, and each run of them goes through the adder that a plain
sketch uses. Equal rows with equal keys give equal bytes, however they were cut or ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._typing import IntArray
from sketchshift._validation import check_integer
from sketchshift.data import Block, Source
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.sketch.keys import Key, columns_of, numbered, parse, taken, written
from sketchshift.sketch.one_pass import check_result, open_planned
from sketchshift.sketch.rows import RowAdder
from sketchshift.sketch.sketch import Sketch
from sketchshift.sketch.sketcher import Progress, Sketcher, reporting
from sketchshift.sketch.table import SketchTable, from_parts
from sketchshift.sketch.threads import add_blocks
from sketchshift.sketch.totals import Totals

__all__ = ["rows_of_block", "sketch_by", "slices_of"]

Value = tuple[Any, ...]
"""Arrow scalars, one for each column of the key: they keep their type, and can be hashed."""

BLOCK_BYTES, MOST_ROWS = 2**25, 2**18  # larger blocks than usual: a key has more rows in each


def sketch_by(
    data: Any,
    by: Any,
    spec: SketchSpec | None = None,
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    seed: int | None = None,
    standardize: bool | None = None,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    max_slices: int = 10_000,
    n_threads: int | None = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
    progress: Progress | None = None,
) -> SketchTable:
    """Read data once and give a sketch for each value of a key.

    Parameters
    ----------
    data : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        See :func:`sketchshift.sketch`.
    by : str, sequence of str or array of shape (n,)
        Columns of the key, of any type (texts, numbers, dates), or times cut down to a unit:
        ``"day(date)"``, also year, quarter, month, week, hour and minute; or one label for
        each row, where the data lies in memory. Missing keys make a slice of their own. Keys in
        text files are whole numbers if all are written as such, else text: 01234 is not 1234.
    spec, n_clusters, sketch_size, seed, standardize, columns, sample_weight
        As in :func:`sketchshift.sketch`. A column of the key is sketched only if the spec or
        ``columns`` names it.
    max_slices : int, default=10_000
        More values than that are an error: a key such as a time to the second would fill the
        memory with sketches of a few rows.
    n_threads, on_invalid, kernel, progress
        As in :func:`sketchshift.sketch`.

    Returns
    -------
    table : SketchTable
        Its slices merge into ``ss.sketch(data, spec)``, bit for bit. O(N m d) time, O(m + d^2)
        memory for each slice and thread.

    Examples
    --------
    >>> import pyarrow as pa, sketchshift as ss
    >>> data = pa.table({"day": [1, 1, 2], "x": [0.0, 0.1, 5.0], "y": [1.0, 1.1, 0.0]})
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=50, bandwidth=1.0, columns=["x", "y"])
    >>> table = ss.sketch_by(data, by="day", spec=spec)
    >>> table.counts.tolist()
    [2, 1]
    """
    if by is None:
        raise DataError("sketch_by needs by: the name of a column, or a label for each row.")
    check_integer("sketch_by", "max_slices", max_slices, 1, 2**32)
    planning = {"sketch_size": sketch_size, "seed": seed, "standardize": standardize}
    keys = parse(by)
    spec, source = open_planned(
        data,
        spec,
        n_clusters,
        planning,
        columns,
        on_invalid=on_invalid,
        weights=sample_weight,
        keys=columns_of(keys) or by,
        block_rows=rows_of_block(spec),
    )
    sketcher = Sketcher(spec, n_threads=n_threads, on_invalid=on_invalid, kernel=kernel)
    table = slices_of(source, sketcher, keys, max_slices=max_slices, progress=progress)
    whole = table.merge() if len(table) else sketcher.sketch()
    check_result(whole, is_weighted=sample_weight is not None)
    return table


def rows_of_block(spec: SketchSpec | None) -> int:
    """Rows that are sorted by key at a time."""
    width = spec.n_features if spec is not None else 16
    return max(1, min(MOST_ROWS, BLOCK_BYTES // (8 * width)))


def slices_of(
    source: Source,
    sketcher: Sketcher,
    keys: Sequence[Key],
    *,
    max_slices: int,
    progress: Progress | None = None,
) -> SketchTable:
    """The slices of data that is open already; there may be none.

    Parameters
    ----------
    source : Source
        Opened with keys.
    sketcher : Sketcher
        Of no rows: says how rows are added.
    keys : sequence of Key
        What to make of the columns of the key; none where they are labels.
    max_slices, progress
        As in :func:`sketch_by`.

    Returns
    -------
    table : SketchTable
        A slice may have no rows but invalid ones.
    """
    is_private = sketcher.spec.origin is not None
    new_adder = partial(_SliceAdder, sketcher.adders(source), keys, max_slices, is_private)
    adders = add_blocks(reporting(source, progress), new_adder, sketcher.n_threads)
    parts = [(value, totals) for adder in adders for value, totals in adder.totals.items()]
    spec, fingerprint = sketcher.spec, sketcher.spec.fingerprint
    table = from_parts(
        _key_table([value for value, _ in parts], adders),
        [Sketch(spec, fingerprint, totals) for _, totals in parts],
    )
    if len(table) > max_slices:  # of all threads together
        adders[0].refuse_many(parts[-1][0])
    return table


class _SliceAdder:
    """Adds the rows of a block to the totals of their keys; one for each thread."""

    def __init__(
        self,
        new_adder: Callable[[], RowAdder],
        keys: Sequence[Key],
        max_slices: int,
        is_private: bool,
    ) -> None:
        self._adder, self._keys, self._max_slices = new_adder(), keys, max_slices
        self._is_private = is_private
        self.totals: dict[Value, Totals] = {}
        self.names: tuple[str, ...] = ()
        self.written = {key.name for key in keys}  # those that came so in every block

    def add(self, block: Block) -> None:
        """Add the rows of a block; a bad row is named by its place in the block."""
        columns = taken(block.keys, self._keys)
        self.names = tuple(columns)
        self.written &= written(block.keys, self._keys)
        for value, part in _split(block, list(columns.values())):
            try:
                self._adder.add(part)
            except DataError:
                self._adder.add(block)  # raises again, and counts rows as they lie there
                raise
            totals = self._adder.take()
            self.totals[value] = self.totals[value] + totals if value in self.totals else totals
            if len(self.totals) > self._max_slices:
                self.refuse_many(value)

    def refuse_many(self, value: Value) -> None:
        """Raise, with the value of a key as an example."""
        names, example = ", ".join(self.names), ", ".join(str(part) for part in value)
        such_as = "" if self._is_private else f" (such as {example})"
        msg = (
            f"there are more than {self._max_slices:,} slices by {names}{such_as}, and "
            "each is a sketch. Take a coarser key, such as day(time), or allow more with "
            "max_slices."
        )
        raise DataError(msg)


def _split(block: Block, columns: Sequence[Any]) -> Iterator[tuple[Value, Block]]:
    """The rows of a block by the value of their key."""
    codes, values = _coded(columns)
    if len(values) == 1:
        yield values[0], block
        return
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(values)))
    for value, rows in zip(values, np.split(order, ends[:-1]), strict=True):
        weights = None if block.weights is None else block.weights[rows]
        yield value, Block(block.values[rows], weights, block.source, block.first_row)


def _coded(columns: Sequence[Any]) -> tuple[IntArray, list[Value]]:
    """A number for each row, and the value that each number means."""
    encoded = [column.dictionary_encode("encode") for column in columns]
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in encoded:  # one after the other: products of many sizes would overflow
        codes = numbers * len(column.dictionary) + column.indices.to_numpy()
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    present = [
        column.dictionary.take(pa.array(column.indices.to_numpy()[first])) for column in encoded
    ]
    return numbers, list(zip(*present, strict=True))


def _key_table(values: Sequence[Value], adders: Sequence[_SliceAdder]) -> Any:
    names = next((adder.names for adder in adders if adder.names), ())
    columns = zip(*values, strict=True) if values else ([] for _ in names)
    may_be_numbers = set(names).intersection(*(adder.written for adder in adders))
    try:
        return pa.table(
            {
                name: _key_array(scalars, name in may_be_numbers)
                for name, scalars in zip(names, columns, strict=True)
            }
        )
    except pa.ArrowException as cause:
        msg = (
            f"the keys {list(names)} have another type in some blocks or files ({cause}). Convert "
            "them to one type."
        )
        raise DataError(msg) from cause


def _key_array(scalars: Sequence[Any], may_be_numbers: bool) -> Any:
    """Values of one key, in one type.

    Where all of a file's keys are missing, they have no type of their own. Where numbers of one
    file stand beside the texts of another, all are texts, unless all of these are numbers, too.
    """
    typed = [None if pa.types.is_null(scalar.type) else scalar for scalar in scalars]
    if not may_be_numbers:
        return pa.array(typed)
    texts = [None if scalar is None else scalar.cast(pa.string()) for scalar in typed]
    return numbered(pa.array(texts, pa.string()))
