"""Iterators, generators and lists whose items are blocks of rows.

Items are arrays, frames, tables or batches, and are taken one at a time. Arrays are copied, so
that an iterator may fill the same one again. Every item must have the columns of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np

from sketchshift.data.blocks import Access, Block, Source, once
from sketchshift.data.memory import open_in_memory
from sketchshift.data.request import Request, listed
from sketchshift.errors import DataError

__all__ = ["open_iterator"]


def open_iterator(items: Iterable[Any], request: Request) -> Source:
    """Read an iterable of blocks; its first item is taken at once to know the columns.

    Parameters
    ----------
    items : iterable of arrays, frames, tables or record batches
        A list or tuple can be read again, anything else once.
    request : Request
        Applies to every item; weights must be a column name.

    Returns
    -------
    source : Source
        At most one item is held at a time. Items larger than a block are cut.
    """
    request.refuse_weight_array("an iterator of blocks")
    iterator = iter(items)
    try:
        first = next(iterator)
    except StopIteration:
        msg = "there are no rows: the iterator of blocks yielded nothing."
        raise DataError(msg) from None
    opened = replace(_open_item(first, 0, request), n_rows=None, n_bytes=None, across=None)

    if isinstance(items, Sequence):
        return replace(opened, read=lambda: _read(iter(items), opened, request))
    blocks = _read(chain([first], iterator), opened, request)
    return replace(opened, read=once(blocks, "an iterator of blocks"), access=Access.ONCE)


def _read(items: Iterator[Any], first: Source, request: Request) -> Iterator[Block]:
    for number, item in enumerate(items):
        opened = _open_item(item, number, request)
        _check_alike(first, opened, number)
        if opened.columns != first.columns:  # same names, other order
            opened = _open_item(item, number, replace(request, columns=first.columns))
        for block in opened:
            values = block.values.copy() if isinstance(item, np.ndarray) else block.values
            yield replace(block, values=values, source=f"block {number}", done=None)


def _open_item(item: Any, number: int, request: Request) -> Source:
    where = f"block {number} (counting from 0)"
    if isinstance(item, str | PathLike):
        msg = f"{where} is a path. To read files, pass a list of paths instead of an iterator."
        raise DataError(msg)
    try:
        opened = open_in_memory(item, request)
    except DataError as cause:
        msg = f"{where}: {cause}"
        raise DataError(msg) from cause
    if opened is None:
        msg = (
            f"{where} is of type {type(item).__name__}. Every block must be an array of "
            "shape (rows, columns), a data frame, or an Arrow table or batch."
        )
        raise DataError(msg)
    return opened


def _check_alike(first: Source, other: Source, number: int) -> None:
    if other.n_features != first.n_features:
        facts = f"has {other.n_features} columns, but block 0 has {first.n_features}"
    elif set(other.columns or ()) != set(first.columns or ()):
        facts = f"has {_names(other)}, but block 0 has {_names(first)}"
    else:
        return
    msg = f"ragged blocks: block {number} (counting from 0) {facts}. Give all the same columns."
    raise DataError(msg)


def _names(source: Source) -> str:
    return "no column names" if source.columns is None else f"columns {listed(source.columns)}"
