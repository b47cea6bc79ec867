"""The nouns of this room: a block of rows, a source that yields blocks, a piece of a source.

Every other module here builds a :class:`Source` by giving it a function that
reads. Knows no kind of data.

Symbols
-------
n, d      rows of a block, columns delivered
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from functools import partial
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sketchshift._paths import Place, RemotePath, folder_values, mark_of
from sketchshift._text import NAMES_SHOWN, column_in_words, listed
from sketchshift._typing import BoolArray, FloatArray, IntArray, RealArray
from sketchshift._validation import check_choice, unmasked
from sketchshift.errors import ChooseColumns, DataError, InvalidRowsError
from sketchshift.recipe import Recipe

__all__ = [
    "DIALECT",
    "Access",
    "Across",
    "Block",
    "Choice",
    "Field",
    "Labels",
    "Piece",
    "Request",
    "Source",
    "Take",
    "check_keys",
    "choose",
    "cut_blocks",
    "decimal_of",
    "is_as_written",
    "join_blocks",
    "make_request",
    "mark_as_written",
    "not_finite",
    "read_once",
    "report_damage",
    "spans",
]

Take: TypeAlias = Callable[[slice], RealArray]

HASHED_BYTES = 2**20  # read at a time for a digest


class Access(Enum):
    """What another look at the rows costs."""

    MEMORY = "a pass over them is cheap"
    DISK = "a pass may take long"
    ONCE = "there is no second pass"


@dataclass(frozen=True)
class Block:
    """Some rows, consecutive unless drawn, with what a message needs to say where they came from.

    Parameters
    ----------
    values : array of shape (n, d)
        Real numbers of any native dtype (bool, integers, floats) in any memory order;
        often a view of the caller's data, so it must not be written to.
    weights : array of shape (n,), optional
        One weight per row, float64, as found.
    source : str
        Where the rows lie: a file name, ``"array"``, ``"table"``, ``"block 3"``.
    first_row : int
        Position of ``values[0]`` within ``source``, counting data rows from 0.
    done : float, optional
        Share in [0, 1] of the whole input read once this block is consumed; ``None``
        when the end is not known.
    keys : Arrow table or record batch of n rows, optional
        The columns that say which slice a row belongs to, where they were asked for.
    rows : array of shape (n,), optional
        Positions of the rows within ``source``, where they do not follow each other.
    """

    values: RealArray
    weights: FloatArray | None = None
    source: str = "array"
    first_row: int = 0
    done: float | None = None
    keys: Any = None
    rows: IntArray | None = None

    def cut(self, span: slice) -> Block:
        """Return some rows that follow each other."""
        return replace(
            self,
            values=self.values[span],
            weights=None if self.weights is None else self.weights[span],
            first_row=self.first_row + span.start,
            keys=None if self.keys is None else self.keys.slice(span.start, span.stop - span.start),
            rows=None if self.rows is None else self.rows[span],
        )


SHOWN = 5  # rows that a message names


def not_finite(
    block: Block, is_finite: BoolArray, columns: tuple[str, ...] | None
) -> InvalidRowsError:
    """The exception that names the rows of a block that are not finite."""
    bad = np.flatnonzero(~is_finite)
    numbers = bad + block.first_row if block.rows is None else block.rows[bad]
    named = ", ".join(map(str, numbers[:SHOWN].tolist()))
    more = (
        f" and {len(bad) - SHOWN} more of the {len(is_finite)} rows around it"
        if len(bad) > SHOWN
        else ""
    )
    msg = (
        f"rows with missing or infinite values cannot be sketched: row {numbers[0]} of "
        f"{block.source} has {_fault(block, bad[0], columns)} (such rows: {named}{more}; the first "
        'row is 0). Clean the data, or leave such rows out with on_invalid="skip" '
        "(--on-invalid skip)."
    )
    return InvalidRowsError(msg)


def _fault(block: Block, row: int, columns: tuple[str, ...] | None) -> str:
    is_bad = ~np.isfinite(block.values[row])
    if not is_bad.any() and block.weights is not None and not np.isfinite(block.weights[row]):
        return f"weight {block.weights[row]}"
    if not is_bad.any():
        return "no direction, since its length is 0 or no number can hold the square of it"
    k = int(np.argmax(is_bad))
    return f"{block.values[row, k]} in {column_in_words(k, columns)}"


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file that can be read without those before them.

    Parameters
    ----------
    path : Path or RemotePath
        The file.
    ranges : tuple of pairs of int
        Bytes of it that the rows lie in: starts and ends.
    read : callable
        ``read(first_row)`` gives its blocks; ``first_row`` is the number of the file's rows
        before them, for messages.
    """

    path: Place
    ranges: tuple[tuple[int, int], ...]
    read: Callable[[int], Iterator[Block]] = field(repr=False)

    def digest(self) -> bytes:
        """A hash of the bytes that the rows lie in, as they are now.

        Of a file in a store, which would have to be read again, the mark stands for the bytes.
        """
        digest = hashlib.blake2b(digest_size=32)
        if isinstance(self.path, RemotePath):
            digest.update(repr((*mark_of(self.path), self.ranges)).encode())
            return digest.digest()
        with report_damage(str(self.path)), self.path.open("rb") as file:
            for start, stop in self.ranges:
                file.seek(start)
                for span in spans(stop - start, HASHED_BYTES):
                    digest.update(file.read(span.stop - span.start))
        return digest.digest()


@dataclass(frozen=True)
class Source:
    """Data whose shape is known and whose rows are still to be read.

    Iterating reads it from the start. Streams and iterators can be iterated once; a
    second time raises :class:`~sketchshift.errors.DataError`.

    Parameters
    ----------
    columns : tuple of str, optional
        Names of the columns delivered, in order; ``None`` when the data has no names.
    n_features : int
        Number d of columns delivered; 0 for vectors of a length that no row has shown.
    n_rows : int, optional
        Number of rows in all, where that is cheap to know.
    read : callable
        Starts a new pass and returns its blocks.
    access : Access
        What another pass costs.
    n_bytes : int, optional
        Size on disk, where that is known.
    across : callable, optional
        ``across(n_rows, n_places, seed)`` gives about so many rows from all along the data
        without reading all of it: blocks of a few rows each, from no more than so many places
        where a place is costly to reach.
    pieces : callable, optional
        Gives the rows in pieces, in order, for data in files: all rows, each once.
    vector : str, optional
        Name of the column that the rows come from, where it is one column of vectors. Their
        numbers have no names: 1536 of them would only make a plan larger.
    place_bytes : int, optional
        What one of the places of ``across`` costs, where all of it has to be fetched from a store.
    """

    columns: tuple[str, ...] | None
    n_features: int
    n_rows: int | None
    read: Callable[[], Iterator[Block]] = field(repr=False)
    access: Access = Access.MEMORY
    n_bytes: int | None = None
    across: Across | None = field(default=None, repr=False)
    pieces: Callable[[], Iterator[Piece]] | None = field(default=None, repr=False)
    vector: str | None = None
    place_bytes: int | None = None

    def __iter__(self) -> Iterator[Block]:
        return self.read()

    def map_blocks(self, change: Callable[[Iterator[Block]], Iterator[Block]]) -> Source:
        """The same source, whose blocks another function changes, however they are read.

        Parameters
        ----------
        change : callable
            From blocks to blocks. One that leaves rows out also has to replace ``n_rows``.
        """
        across, cut = self.across, self.pieces

        def read_piece(piece: Piece, first_row: int) -> Iterator[Block]:
            return change(piece.read(first_row))

        def pieces(cut: Callable[[], Iterator[Piece]]) -> Iterator[Piece]:
            for piece in cut():
                yield replace(piece, read=partial(read_piece, piece))

        return replace(
            self,
            read=lambda: change(self.read()),
            across=None if across is None else lambda *asked: change(across(*asked)),
            pieces=None if cut is None else partial(pieces, cut),
        )


Across: TypeAlias = Callable[[int, int, int], Iterator[Block]]


def spans(n: int, rows: int) -> Iterator[slice]:
    """Slices of at most ``rows`` rows that cover 0 to ``n`` in order."""
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def cut_blocks(
    take: Take,
    n: int,
    rows: int,
    *,
    weights: Take | None = None,
    keys: Callable[[slice], Any] | None = None,
    source: str,
    ahead: Callable[[Take, Iterable[slice]], Iterable[RealArray]] = map,
) -> Iterator[Block]:
    """Blocks of something of known length that can be cut anywhere.

    Parameters
    ----------
    take : callable
        Gives the values of a slice of rows; ``array.__getitem__`` is one.
    n, rows : int
        Number of rows in all, and per block.
    weights, keys : callable, optional
        Give the weights and the keys of a slice of rows.
    source : str
        Name for messages.
    ahead : callable
        As ``map``, where it pays to take some slices before they are asked for.

    Yields
    ------
    block : Block
        Holds what ``take`` returned: no other copy is made.
    """
    taken = iter(ahead(take, spans(n, rows)))
    for span in spans(n, rows):
        w = weights(span) if weights else None
        key = keys(span) if keys else None
        yield Block(next(taken), w, source, span.start, span.stop / n, key)


def join_blocks(blocks: Iterable[Block], n_rows: int) -> Iterator[Block]:
    """Blocks that follow each other in one source, joined until they have ``n_rows``."""
    held: list[Block] = []
    for block in blocks:
        if held and not (sum(len(b.values) for b in held) < n_rows and _follows(block, held[-1])):
            yield _join(held)
            held = []
        held.append(block)
    if held:
        yield _join(held)


def _follows(block: Block, before: Block) -> bool:
    return (
        block.source == before.source
        and block.first_row == before.first_row + len(before.values)
        and block.values.dtype == before.values.dtype
        and (block.weights is None) == (before.weights is None)
        and block.keys is before.keys is None
        and block.rows is before.rows is None
    )


def _join(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    first, weights = blocks[0], None
    if first.weights is not None:
        weights = np.concatenate([block.weights for block in blocks])
    values = np.concatenate([block.values for block in blocks])
    return Block(values, weights, first.source, first.first_row, blocks[-1].done)


@contextmanager
def report_damage(where: str, *faults: type[Exception]) -> Iterator[None]:
    """Name the file or stream whenever it cannot be read on.

    Parameters
    ----------
    where : str
        Name for messages.
    *faults : exception types
        What the library that reads raises on damaged data, beside ``OSError``.
    """
    damage: tuple[type[Exception], ...] = (OSError, *faults)
    try:
        yield
    except DataError:  # says it all already
        raise
    except (FileNotFoundError, PermissionError) as cause:
        msg = f"cannot read {where}: {cause.strerror or cause}."
        raise DataError(msg) from cause
    except damage as cause:
        msg = f"cannot read {where}: it seems damaged or incomplete ({cause})."
        raise DataError(msg) from cause


def read_once(blocks: Iterator[Block], what: str) -> Callable[[], Iterator[Block]]:
    """Let ``blocks`` be read a first time, and say why there is no second one."""
    unread = [blocks]

    def read() -> Iterator[Block]:
        if not unread:
            msg = (
                f"{what} can be read only once, and was read already. "
                "Make a new one for another pass, or pass files or an array."
            )
            raise DataError(msg)
        return unread.pop()

    return read


# What says which slice a row belongs to: names of columns, or one label for each row.

MARK, DECIMAL = {b"sketchshift": b"as written"}, b"decimal"


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


def mark_as_written(batch: Any, names: Sequence[str], decimal: str = ".") -> Any:
    """Columns of a text file marked as text that may mean numbers; empty cells are missing.

    Which of them do can be told only when all have been read, in whatever blocks and files. The
    mark says which decimal sign such numbers have.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        texts = batch.column(name)
        texts = pc.if_else(pc.equal(texts, ""), pa.nulls(len(texts), texts.type), texts)
        place = batch.schema.get_field_index(name)
        mark = MARK | {DECIMAL: decimal.encode()}
        batch = batch.set_column(place, pa.field(name, texts.type, metadata=mark), texts)
    return batch


def is_as_written(field: Any) -> bool:
    """Whether a column is marked so."""
    return field.metadata is not None and MARK.items() <= field.metadata.items()


def decimal_of(field: Any) -> str:
    """The decimal sign of a column that is marked as written."""
    return str(field.metadata.get(DECIMAL, b".").decode())


def check_keys(keys: Any) -> tuple[str, ...] | Labels:
    """Names of columns, or labels; () if there are no keys."""
    if keys is None:
        return ()
    if isinstance(keys, str):
        return (keys,)
    if not (isinstance(keys, Sequence) and all(isinstance(key, str) for key in keys)):
        return Labels(keys)
    return tuple(keys)


# What the caller asked for, checked once before any data is looked at.
#
# Takes the arguments of ``open_source``; hands a :class:`Request` to every opener.

DIALECT: ContextVar[Any] = ContextVar("DIALECT", default=None)
"""How text files are written, where that is said for all that are read."""

BESIDE = ("nothing", "others", "all")
BLOCK_BYTES, LARGEST_BLOCK_BYTES = 2**21, 2**25
FEWEST_ROWS, MOST_ROWS = 256, 65536


@dataclass(frozen=True)
class Request:
    """The arguments of ``open_source``, checked once.

    ``n_features`` is the length of vectors where the data has none to show. ``dialect`` is how text
    files are written (:class:`sketchshift.data.dialect.Dialect`); None: that is found out.
    ``beyond`` are values of keys that the data may lack, the same in all rows, which whoever opens
    it adds. ``may_count`` says of a row of keys whether rows that have these may count; others need
    not be read.
    """

    columns: tuple[str, ...] | None = None
    weights: str | FloatArray | None = None
    block_rows: int | None = None
    names_needed: bool = True
    keys: tuple[str, ...] | Labels = ()
    n_features: int | None = None
    skip_invalid: bool = False
    recipe: Recipe | None = None
    beside: str = "nothing"
    dialect: Any = None
    beyond: Mapping[str, str | None] = field(default_factory=dict)
    may_count: Callable[[Any], bool] | None = None

    @property
    def key_names(self) -> tuple[str, ...]:
        """Columns of the data that are keys."""
        return self.keys if isinstance(self.keys, tuple) else ()

    def of_file(self, path: Place) -> Request:
        """What is asked of one file, the names of whose folders may hold values."""
        return replace(self, beyond=folder_values(path))

    def rows_for(self, n_features: int) -> int:
        """Rows per block: as asked up to 32 MiB of float64, or about 2 MiB."""
        width = 8 * max(n_features, 1)
        if self.block_rows is not None:
            return min(self.block_rows, max(LARGEST_BLOCK_BYTES // width, FEWEST_ROWS))
        return min(max(BLOCK_BYTES // width, FEWEST_ROWS), MOST_ROWS)

    def refuse_names(self, what: str) -> None:
        """Names were asked of data that has none."""
        if self.columns is not None and self.names_needed:
            msg = (
                f" by name: {what} has no column names. Select columns by slicing, as in "
                "X[:, [0, 3]]."
            )
            raise DataError("cannot choose ", ChooseColumns(self.columns), msg)
        if isinstance(self.weights, str):
            msg = (
                f"sample_weight={self.weights!r} names a column, but {what} has no column names. "
                "Pass the weights as an array with one number per row."
            )
            raise DataError(msg)
        keys = [name for name in self.key_names if name not in self.beyond]
        if keys:
            msg = (
                f"by={keys[0]!r} names a column, but {what} has no column names. "
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
    columns: Sequence[str] | Recipe | None,
    weights: str | ArrayLike | None,
    block_rows: int | None,
    default_columns: Sequence[str] | Recipe | None = None,
    keys: Any = None,
    n_features: int | None = None,
    *,
    skip_invalid: bool = False,
    beside: str = "nothing",
    dialect: Any = None,
    may_count: Callable[[Any], bool] | None = None,
) -> Request:
    """Check the arguments that do not depend on the data."""
    meant = default_columns if columns is None else columns
    recipe = meant if isinstance(meant, Recipe) else None
    return Request(
        meant.columns if isinstance(meant, Recipe) else _check_columns(meant),
        _check_weights(weights),
        _check_rows(block_rows),
        names_needed=columns is not None or recipe is not None,
        keys=check_keys(keys),
        n_features=n_features,
        skip_invalid=skip_invalid,
        recipe=recipe,
        beside=check_choice("open_source", "beside", beside, BESIDE),
        dialect=DIALECT.get() if dialect is None else dialect,
        may_count=may_count,
    )


def _check_columns(columns: Sequence[str] | None) -> tuple[str, ...] | None:
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


def _check_weights(weights: str | ArrayLike | None) -> str | FloatArray | None:
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


def _check_rows(block_rows: int | None) -> int | None:
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


# The choice of columns that every source with names makes.
#
# A source describes its columns as :class:`Field` and gets a :class:`Choice`, or an
# error that names the missing, repeated or non-numeric ones. Knows no library of tables.


@dataclass(frozen=True)
class Field:
    """A column that exists.

    Parameters
    ----------
    name, type : str
        Its type in words.
    is_number : bool
        Whether it holds numbers, one in each row.
    width : int or None
        Numbers in each row of a column of vectors, 0 if its type leaves that open; None for any
        other column.
    """

    name: str
    type: str
    is_number: bool
    width: int | None = None


@dataclass(frozen=True)
class Choice:
    """The columns to deliver, in order, that of weights if there is one, and those of keys.

    Parameters
    ----------
    columns : tuple of str
        One or more of numbers, or one of vectors.
    weights : str or None
        A column of numbers.
    keys : tuple of str
        Columns of any type.
    texts : tuple of str
        Columns of any type that numbers are made of, or that a condition on rows needs.
    width : int or None
        As :class:`Field` has it, of the only column.
    skip_invalid : bool
        Whether missing vectors, and those of another length, are delivered as NaN; else they are
        an error.
    recipe : Recipe or None
        How the columns become the numbers that are delivered; None: they are these.
    """

    columns: tuple[str, ...]
    weights: str | None
    keys: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    width: int | None = None
    skip_invalid: bool = False
    recipe: Recipe | None = None

    @property
    def as_written(self) -> tuple[str, ...]:
        """Columns to be read as they are, each once, without those read as numbers."""
        both = dict.fromkeys((*self.texts, *self.keys))
        return tuple(name for name in both if name not in self.numeric)

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the columns delivered; those of a vector have none."""
        if self.recipe is not None:
            return self.recipe.names
        return self.columns if self.width is None else None

    @property
    def vector(self) -> str | None:
        """Name of the column of vectors, if it is one that was chosen."""
        return None if self.width is None else self.columns[0]

    @property
    def n_features(self) -> int:
        """Number of columns delivered."""
        if self.recipe is not None:
            return self.recipe.n_features
        return len(self.columns) if self.width is None else self.width

    @property
    def names(self) -> list[str]:
        """Every column that has to be read, each once."""
        return [*self.numeric, *self.as_written]

    @property
    def numeric(self) -> list[str]:
        """Those that have to be read as numbers."""
        return [*self.columns, *([self.weights] if self.weights is not None else [])]


def choose(fields: Sequence[Field], request: Request, where: str) -> Choice:
    """Columns and weights to read from ``where``, or an error naming what is wrong.

    Parameters
    ----------
    fields : sequence of Field
        Every column there is.
    request : Request
        Without columns, all but the columns of weights and of keys are taken.
    where : str
        Name of the data for messages.

    Returns
    -------
    choice : Choice
        Names that exist exactly once and hold numbers. A column of vectors is read by itself: it
        is chosen by name wherever there are other columns.
    """
    weights = request.weights if isinstance(request.weights, str) else None
    choice = _meant(fields, request, weights)
    if weights in choice.columns:
        msg = f"column {weights!r} cannot be both in columns= and the weights. Leave one out."
        raise DataError(msg)
    _refuse_missing(choice, fields, where, request.beyond)
    if not choice.columns and not choice.texts and request.beside == "nothing":
        others = " beside the weights or the keys." if weights or choice.keys else "."
        raise DataError(f"{where} has no columns to read{others}")
    _refuse_repeated(choice, fields, where)
    vectors = [f for f in fields if f.width is not None and f.name in choice.columns]
    if vectors and len(choice.columns) > 1:
        raise _not_alone(vectors, choice.columns, fields, where)
    if vectors:
        choice = replace(choice, width=vectors[0].width)
    is_given_by_spec = request.columns is not None and not request.names_needed
    apart = (weights, *request.key_names)
    _refuse_not_numbers(choice, fields, where, apart, is_given_by_spec=is_given_by_spec)
    return choice


def _meant(fields: Sequence[Field], request: Request, weights: str | None) -> Choice:
    """The choice as it was asked for, before its names are looked for."""
    columns, there = request.columns, {f.name for f in fields}
    keys = tuple(k for k in request.key_names if k in there or k not in request.beyond)
    texts: tuple[str, ...] = ()
    others = [f for f in fields if f.name != weights and f.name not in keys]
    if request.recipe is not None:
        columns, texts = request.recipe.numbers, request.recipe.texts
    elif request.beside == "others" and columns is None:
        columns = _numbers_or_vectors(others)
    elif columns is None:
        columns = tuple(f.name for f in others)
    if request.beside == "all":
        keys = tuple(f.name for f in fields)
    elif request.beside == "others":
        times = Counter(field.name for field in fields)
        unread = [f for f in others if f.name not in columns and f.width is None]
        keys = (*keys, *(f.name for f in unread if times[f.name] == 1))
    skip, recipe = request.skip_invalid, request.recipe
    return Choice(columns, weights, keys, texts, skip_invalid=skip, recipe=recipe)


def _numbers_or_vectors(fields: Sequence[Field]) -> tuple[str, ...]:
    """Columns to look at where none were named: the one of vectors, if there is one, or numbers."""
    vectors = [f.name for f in fields if f.width is not None]
    numbers = [f.name for f in fields if f.is_number]
    return tuple(vectors if len(vectors) == 1 else numbers)


def _refuse_missing(
    choice: Choice, fields: Sequence[Field], where: str, beyond: Iterable[str]
) -> None:
    there = [field.name for field in fields]
    known = set(there)
    missing = [name for name in choice.names if name not in known]
    if not missing:
        return
    of_folders = [name for name in missing if name in set(beyond)]
    if of_folders:
        msg = (
            f"{where} has no column {of_folders[0]!r}: it stands in the names of folders alone. "
            "Such a value is the same in all rows of a file. It can be a key (by, --by) or stand "
            "in a condition (where, --where), and is no column to sketch or to weigh with."
        )
        raise DataError(msg)
    there = list(dict.fromkeys((*there, *beyond)))
    close = [match for name in missing for match in get_close_matches(name, there, n=1)]
    hint = f" Did you mean {listed(close)}?" if close else ""
    noun = "column" if len(missing) == 1 else "columns"
    msg = f"{where} has no {noun} {listed(missing)}.{hint} It has {listed(there)}."
    raise DataError(msg)


def _refuse_repeated(choice: Choice, fields: Sequence[Field], where: str) -> None:
    times = Counter(field.name for field in fields)
    repeated = [name for name in dict.fromkeys(choice.names) if times[name] > 1]
    if repeated:
        msg = (
            f"{where} has more than one column named {listed(repeated)}. Rename them, "
            "or choose other columns with "
        )
        others = tuple(f.name for f in fields if f.is_number and times[f.name] == 1)
        raise DataError(msg, ChooseColumns(others), ".")


def _not_alone(
    vectors: Sequence[Field], columns: Sequence[str], fields: Sequence[Field], where: str
) -> DataError:
    """The exception for a column of vectors among other columns; it names one choice, or two."""
    names = [field.name for field in vectors]
    noun = "a column of vectors" if len(names) == 1 else "columns of vectors"
    others = [name for name in columns if name not in names]
    beside = f", beside {listed(others)}" if others else ""
    fact = f"{where} has {noun}, {listed(names)}{beside}. Read vectors by themselves with "
    numbers = tuple(field.name for field in fields if field.is_number and field.name in others)
    instead = (", or numbers with ", ChooseColumns(numbers)) if numbers else ()
    return DataError(fact, ChooseColumns((names[0],)), *instead, ".")


def _refuse_not_numbers(
    choice: Choice,
    fields: Sequence[Field],
    where: str,
    apart: Sequence[str | None],
    *,
    is_given_by_spec: bool,
) -> None:
    by_name = {field.name: field for field in fields}
    numeric = choice.numeric if choice.width is None else choice.numeric[1:]
    others = [by_name[name] for name in numeric if not by_name[name].is_number]
    if not others:
        return
    if others[-1].name == choice.weights:  # they come last
        msg = (
            f"{where}: column {choice.weights!r} ({others[-1].type}) cannot be read as weights. "
            "Name a column of numbers in sample_weight."
        )
        raise DataError(msg)
    found = ", ".join(f"{f.name!r} ({f.type})" for f in others[:NAMES_SHOWN])
    noun = "column" if len(others) == 1 else "columns"
    numeric = [f.name for f in fields if f.is_number and f.name not in apart]
    fact = f"{where}: {noun} {found} cannot be read as numbers. "
    if is_given_by_spec:
        advice = "The spec needs it: convert it to numbers, or make a spec of other columns."
        raise DataError(fact, advice)
    if choice.recipe is not None:
        raise DataError(fact, "The plan needs numbers there: convert the column, or plan again.")
    if not numeric:
        raise DataError(fact, "It has no numeric column.")
    raise DataError(fact, "Choose numeric ones with ", ChooseColumns(tuple(numeric)), ".")
