"""Slices as bytes, many at once: what sketch files, tables, checkpoints and engines all hold.

A slice is a head, whose length follows from the spec; then, group by group, integers of as few
bytes as hold all of the group; then a digest (``docs/format.md``). Equal slices have equal bytes.

Symbols
-------
n, R      slices, rows of a group: one a slice, or one an entry
c, w      columns of a group, bytes of its integers in one slice
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import IntArray
from sketchshift.data.source import spans
from sketchshift.errors import DataError, SketchFormatError
from sketchshift.sketch.family import Family
from sketchshift.sketch.totals import Entries, Layout, Totals

__all__ = ["pack_slices", "unpack_slices"]

Octets = NDArray[np.uint8]

_DIGEST = 16  # bytes
_COUNTS = 16  # bytes of the numbers of rows
_WORD, _HALF = 64, 2**31  # bits; the least word of 32 bits that is a digit below 0
_NEARLY = 2**63 - _HALF  # words from here on have no two digits
_POWERS = 2 ** (8 * np.arange(1, 8) - 1)  # the least numbers that need 2, 3, ... bytes
_AT_ONCE = 2**22  # bytes of slices at a time: they stay in cache
NOT_CANONICAL = "the integers are not written in the canonical way."
UNSOUND = "the integers are not those of any rows."


@dataclass(frozen=True)
class _Group:
    """Columns of a family whose integers take the same number of bytes in a slice.

    Attributes
    ----------
    family : Family
        Whose integers they are.
    first, n_columns : int
        Which columns; ``first`` is -1 for the names of entries.
    """

    family: Family
    first: int
    n_columns: int

    @property
    def most_bytes(self) -> int:
        """Bytes of an integer, at most."""
        return 8 if self.first < 0 else 4 * self.family.n_digits

    def _digits(self, totals: Totals) -> IntArray:
        """The digits of these columns two by two, in the memory of totals: (R, c, 1 or 2)."""
        name, n = self.family.name, self.family.n_digits
        digits = totals.entries[name].digits if self.family.id_width else totals.dense[name]
        pairs = digits.view("<i8").reshape(len(digits), self.family.n_integers, n // 2)
        return pairs[:, self.first : self.first + self.n_columns]

    def words(self, totals: Totals) -> IntArray:
        """The integers as words of 64 bits, the lowest first: shape (R, c, 1) or (R, c, 2)."""
        if self.first < 0:
            return totals.entries[self.family.name].names[:, 1:, None]
        digits = self._digits(totals)
        low = digits[:, :, 0] - ((digits[:, :, 0] & _HALF) << 1)  # a digit below 0 borrows
        if digits.shape[2] == 1 or not (digits[:, :, 1].any() or (low >= _NEARLY).any()):
            return low[:, :, None]
        high = digits[:, :, 1] - ((digits[:, :, 1] & _HALF) << 1)
        return np.stack([low, high - ((low < 0) | (low >= _NEARLY))], axis=2)

    def put(self, totals: Totals, rows: Any, words: IntArray, width: int) -> None:
        """Write integers of a width, as :meth:`words` gives them, to rows that are all 0."""
        if self.first < 0:
            totals.entries[self.family.name].names[rows, 1:] = words[:, :, 0]
            return
        digits = self._digits(totals)
        if digits.shape[2] == 2 and width >= 8:
            high = words[:, :, 1] if words.shape[2] == 2 else words[:, :, 0] >> 63
            high = high + ((words[:, :, 0] < 0) | (words[:, :, 0] >= _NEARLY))
            digits[rows, :, 1] = high + ((high & _HALF) << 1)
        digits[rows, :, 0] = words[:, :, 0] + ((words[:, :, 0] & _HALF) << 1)


class _Form:
    """What slices of a layout look like: a head, groups, a digest."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.groups = []
        for family in layout.families:
            if family.id_width:
                self.groups.append(_Group(family, -1, family.id_width))
            firsts = np.cumsum([0, *family.groups]).tolist()
            pairs = zip(firsts, family.groups, strict=False)
            self.groups += [_Group(family, first, size) for first, size in pairs if size]
        self.columns = np.array([group.n_columns for group in self.groups], dtype=np.int64)
        self.n_head = _COUNTS + 4 * len(layout.sparse) + len(self.groups)

    def n_rows(self, n_entries: IntArray) -> IntArray:
        """Rows of each group in slices with so many entries (n, families of them)."""
        order = [family.name for family in self.layout.sparse]
        ones = np.ones(len(n_entries), dtype=np.int64)
        each = [group.family for group in self.groups]
        own = [n_entries[:, order.index(f.name)] if f.id_width else ones for f in each]
        return np.stack(own, axis=1)

    def firsts(self, n_rows: IntArray, widths: IntArray, starts: IntArray) -> IntArray:
        """Where groups of slices begin, and their digests: shape (n, groups + 1)."""
        found = np.empty((len(starts), len(self.groups) + 1), dtype=np.int64)
        found[:, 0] = starts + self.n_head
        np.cumsum(n_rows * widths * self.columns, axis=1, out=found[:, 1:])
        found[:, 1:] += found[:, :1]
        return found


@lru_cache(maxsize=32)
def _form_of(layout: Layout) -> _Form:
    return _Form(layout)


def pack_slices(totals: Totals, fingerprint: str) -> Iterator[tuple[Octets, IntArray]]:
    """Turn slices into bytes.

    Parameters
    ----------
    totals : Totals
        Of n slices.
    fingerprint : str
        Of their spec; the key of the digests.

    Yields
    ------
    data : uint8 array
        Of some slices, one after the other: some megabytes. Time is linear in the digits.
    ends : int64 array
        0, and where each of them ends.
    """
    form, n = _form_of(totals.layout), len(totals)
    for some in spans(n, max(1, _AT_ONCE * n // (totals.n_bytes + 1))):
        yield _pack(totals.span(some.start, min(some.stop, n)), form, fingerprint)


def _pack(totals: Totals, form: _Form, fingerprint: str) -> tuple[Octets, IntArray]:
    n = len(totals)
    own = [totals.entries[family.name].names[:, 0] for family in form.layout.sparse]
    n_entries = np.array([np.bincount(each, minlength=n) for each in own], dtype=np.int64)
    n_entries = n_entries.reshape(len(own), n).T
    words = [group.words(totals) for group in form.groups]
    n_rows = form.n_rows(n_entries)
    widths = np.stack([_fewest(w, r) for w, r in zip(words, n_rows.T, strict=True)], axis=1)
    sizes = (n_rows * widths * form.columns).sum(axis=1) + (form.n_head + _DIGEST)
    ends = np.append(0, np.cumsum(sizes))
    firsts = form.firsts(n_rows, widths, ends[:-1])
    data = np.empty(ends[-1], dtype=np.uint8)
    heads = totals.counts.astype("<i8"), n_entries.astype("<u4"), widths.astype(np.uint8)
    octets = [np.ascontiguousarray(head).view(np.uint8).reshape(n, -1) for head in heads]
    _windows(data, form.n_head)[ends[:-1]] = _joined(np.concatenate(octets, axis=1))
    for i, group in enumerate(form.groups):
        for width, _, rows, places in _alike(n_rows[:, i], widths[:, i], firsts[:, i], group):
            own_words = words[i][rows]
            raw = np.ascontiguousarray(own_words).view(np.uint8)
            raw = raw.reshape(len(own_words), group.n_columns, 8 * own_words.shape[2])
            _windows(data, group.n_columns * width)[places] = _joined(raw[:, :, :width])
    digests = b"".join(_digests(data, ends[:-1], firsts[:, -1], fingerprint))
    _windows(data, _DIGEST)[firsts[:, -1]] = np.frombuffer(digests, f"V{_DIGEST}")
    return data, ends


def _joined(octets: Octets) -> Any:
    """Each row of octets as one item."""
    size = math.prod(octets.shape[1:])
    return np.ascontiguousarray(octets).reshape(-1, size).view(f"V{size}")[:, 0]


def _windows(data: Octets, size: int) -> Any:
    """The items of a size that begin at each byte."""
    return np.ndarray(max(0, len(data) - size + 1), f"V{size}", data, 0, (1,))


def _alike(
    n_rows: IntArray, widths: IntArray, firsts: IntArray, group: _Group
) -> Iterator[tuple[int, Any, Any, IntArray]]:
    """Slices that have a width in common, their rows, and where these lie, width by width."""
    ends = np.append(0, np.cumsum(n_rows))
    for width in np.flatnonzero(np.bincount(widths)).tolist():
        slices = np.flatnonzero(widths == width)
        if group.family.id_width:
            lengths = n_rows[slices]
            within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            rows = np.repeat(ends[slices], lengths) + within
            places = np.repeat(firsts[slices], lengths) + within * (group.n_columns * width)
        else:
            rows, places = slices, firsts[slices]
        is_all = len(rows) == ends[-1]
        yield width, slices, slice(None) if is_all else rows, places


def _fewest(words: IntArray, n_rows: IntArray) -> IntArray:
    """Bytes that hold all integers (R, c, words) of each of n slices: shape (n,)."""
    found = np.ones(len(n_rows), dtype=np.int64)
    some = np.flatnonzero(n_rows)
    starts = (np.cumsum(n_rows)[some] - n_rows[some]) * words.shape[1]
    if not len(some):
        return found
    *more, last = np.moveaxis(words, 2, 0)
    if more:
        is_wide = more[0] >> 63 != last
        more = [np.where(is_wide, 0, more[0])]
        last = np.where(is_wide, last ^ (last >> 63), -1)
    for numbers, n_before in zip([*more, last], (0, 8) if more else (0,), strict=True):
        flat = np.ascontiguousarray(numbers).reshape(-1)
        most = np.maximum.reduceat(flat, starts)
        if n_before:
            own = np.where(most < 0, 0, np.searchsorted(_POWERS, most, "right") + 9)
        else:
            most = np.maximum(most, ~np.minimum.reduceat(flat, starts))
            own = np.searchsorted(_POWERS, most, "right") + 1
        found[some] = np.maximum(found[some], own)
    return found


def _digests(data: Octets, starts: IntArray, ends: IntArray, fingerprint: str) -> Iterator[bytes]:
    """Digests of slices without theirs, keyed by the fingerprint of the spec."""
    view, key = data.data, bytes.fromhex(fingerprint)
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield hashlib.blake2b(view[first:end], digest_size=_DIGEST, key=key).digest()


def unpack_slices(
    data: Octets,
    starts: IntArray,
    ends: IntArray,
    layout: Layout,
    fingerprint: str,
    name: Callable[[int], str] = lambda i: "",
) -> Totals:
    """Read slices; refuse whatever :func:`pack_slices` did not write of sums of rows.

    Parameters
    ----------
    data : uint8 array
        Holds the slices.
    starts, ends : int64 arrays of shape (n,)
        Where each begins and ends; within the data.
    layout : Layout
        Of the spec.
    fingerprint : str
        Of the spec.
    name : callable
        What an error begins with, of slice i.

    Returns
    -------
    totals : Totals
        Of n slices. Memory is at most 16 times that of the bytes, whatever they say.
    """
    form, n = _form_of(layout), len(starts)

    def refuse(is_right: Any, problem: str) -> None:
        if not np.all(is_right):
            raise SketchFormatError(name(int(np.argmin(is_right))) + problem)

    refuse(ends - starts >= form.n_head + _DIGEST, "there are too few bytes. Were they cut off?")
    found = b"".join(_digests(data, starts, ends - _DIGEST, fingerprint))
    digests = np.frombuffer(found, np.uint8).reshape(n, -1)
    written = _windows(data, _DIGEST)[ends - _DIGEST].view(np.uint8).reshape(n, -1)
    msg = "the digest does not match: the bytes were damaged or cut off, or are of another plan."
    refuse((digests == written).all(axis=1), msg)
    heads = _windows(data, form.n_head)[starts].view(np.uint8).reshape(n, -1)
    n_sparse = 4 * len(layout.sparse)
    counts, numbers, widths = np.split(heads, [_COUNTS, _COUNTS + n_sparse], axis=1)
    n_entries = np.ascontiguousarray(numbers).view("<u4").astype(np.int64).reshape(n, -1)
    widths, n_rows = widths.astype(np.int64), form.n_rows(n_entries)
    most = np.array([group.most_bytes for group in form.groups])
    refuse(((widths >= 1) & (widths <= most)).all(axis=1), NOT_CANONICAL)
    firsts = form.firsts(n_rows, widths, starts)
    refuse(firsts[:, -1] == ends - _DIGEST, "the head announces integers of another length.")
    totals = Totals.zero(layout, n)
    totals.counts[:] = np.ascontiguousarray(counts).view("<i8")
    for family, own in zip(layout.sparse, n_entries.T, strict=True):
        names = np.zeros((own.sum(), 1 + family.id_width), dtype=np.int64)
        names[:, 0] = np.repeat(np.arange(n), own)
        digits = np.zeros((len(names), family.width), dtype=np.int32)
        totals.entries[family.name] = Entries(names, digits)
    for some in spans(n, max(1, _AT_ONCE * n // (int((ends - starts).sum()) + 1))):
        for i, group in enumerate(form.groups):
            own = n_rows[some, i]
            first_row = int(n_rows[: some.start, i].sum())
            for width, slices, rows, places in _alike(own, widths[some, i], firsts[some, i], group):
                words = _read_words(data, places, group.n_columns, width)
                is_fewest = np.ones(len(own), dtype=bool)
                is_fewest[slices] = _fewest(words, own[slices]) == width
                refuse(np.append(np.ones(some.start, dtype=bool), is_fewest), NOT_CANONICAL)
                if isinstance(rows, slice):
                    rows = slice(first_row, first_row + int(own.sum()))
                else:
                    rows = first_row + rows
                group.put(totals, rows, words, width)
    for family in layout.sparse:
        entries = totals.entries[family.name]
        is_right = family.are_names(entries.names) & entries.digits.any(axis=1)
        is_right &= _follow_each_other(entries.names)
        wrong = np.ones(n, dtype=bool)
        wrong[entries.names[~is_right, 0]] = False
        refuse(wrong, NOT_CANONICAL)
    for some in spans(n, max(1, _AT_ONCE * n // (totals.n_bytes + 1))):
        is_sound = _are_sound(totals.span(some.start, some.stop))
        refuse(np.append(np.ones(some.start, dtype=bool), is_sound), UNSOUND)
    return totals


def _read_words(data: Octets, places: IntArray, c: int, w: int) -> IntArray:
    """Integers of w bytes, c of them from each place on, as words: shape (R, c, 1 or 2)."""
    n = len(places)
    buffer = np.zeros(8 + n * c * w, dtype=np.uint8)  # the first word begins before its integer
    np.ndarray(n, f"V{c * w}", buffer, 8)[:] = _windows(data, c * w)[places]
    last: IntArray = np.ndarray((n, c), "<i8", buffer, w, (c * w, w))
    if w <= 8:
        return np.asarray(last[:, :, None] >> (_WORD - 8 * w))
    first: IntArray = np.ndarray((n, c), "<i8", buffer, 8, (c * w, w))
    return np.stack([first, last >> (2 * _WORD - 8 * w)], axis=2)


def _follow_each_other(names: IntArray) -> Any:
    """Whether each name (E, k) is above the one before."""
    found = np.ones(len(names), dtype=bool)
    steps = np.diff(names, axis=0)
    which = (steps != 0).argmax(axis=1)
    found[1:] = np.take_along_axis(steps, which[:, None], axis=1)[:, 0] > 0
    return found


def _are_sound(totals: Totals) -> Any:
    """Whether rows could have left the integers of each slice; too large ones are not."""
    try:
        return totals.are_sound()
    except DataError:
        if len(totals) == 1:
            return np.zeros(1, dtype=bool)
        return np.concatenate([_are_sound(totals[i]) for i in range(len(totals))])
