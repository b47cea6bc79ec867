"""The nouns of this room: a block of rows, a source that yields blocks, a piece of a source.

Every other module here builds a :class:`Source` by giving it a function that
reads. Knows no kind of data.

Symbols
-------
n, d      rows of a block, columns delivered
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift.errors import DataError

__all__ = [
    "Access",
    "Across",
    "Block",
    "Piece",
    "Source",
    "Take",
    "joined",
    "once",
    "reading",
    "sliced",
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
    """Some consecutive rows, with what a message needs to say where they came from.

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
    """

    values: RealArray
    weights: FloatArray | None = None
    source: str = "array"
    first_row: int = 0
    done: float | None = None
    keys: Any = None


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file that can be read without those before them.

    Parameters
    ----------
    path : Path
        The file.
    ranges : tuple of pairs of int
        Bytes of it that the rows lie in: starts and ends.
    read : callable
        ``read(first_row)`` gives its blocks; ``first_row`` is the number of the file's rows
        before them, for messages.
    """

    path: Path
    ranges: tuple[tuple[int, int], ...]
    read: Callable[[int], Iterator[Block]] = field(repr=False)

    def digest(self) -> bytes:
        """A hash of the bytes that the rows lie in, as they are now."""
        digest = hashlib.blake2b(digest_size=32)
        with reading(str(self.path)), self.path.open("rb") as file:
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
        Number d of columns delivered.
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
    """

    columns: tuple[str, ...] | None
    n_features: int
    n_rows: int | None
    read: Callable[[], Iterator[Block]] = field(repr=False)
    access: Access = Access.MEMORY
    n_bytes: int | None = None
    across: Across | None = field(default=None, repr=False)
    pieces: Callable[[], Iterator[Piece]] | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Block]:
        return self.read()


Across: TypeAlias = Callable[[int, int, int], Iterator[Block]]


def spans(n: int, rows: int) -> Iterator[slice]:
    """Slices of at most ``rows`` rows that cover 0 to ``n`` in order."""
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def sliced(
    take: Take,
    n: int,
    rows: int,
    *,
    weights: Take | None = None,
    keys: Callable[[slice], Any] | None = None,
    source: str,
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

    Yields
    ------
    block : Block
        Holds what ``take`` returned: no other copy is made.
    """
    for span in spans(n, rows):
        w = weights(span) if weights else None
        key = keys(span) if keys else None
        yield Block(take(span), w, source, span.start, span.stop / n, key)


def joined(blocks: Iterable[Block], n_rows: int) -> Iterator[Block]:
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
def reading(where: str, *faults: type[Exception]) -> Iterator[None]:
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
    except (FileNotFoundError, PermissionError) as cause:
        msg = f"cannot read {where}: {cause.strerror or cause}."
        raise DataError(msg) from cause
    except damage as cause:
        msg = f"cannot read {where}: it seems damaged or incomplete ({cause})."
        raise DataError(msg) from cause


def once(blocks: Iterator[Block], what: str) -> Callable[[], Iterator[Block]]:
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
