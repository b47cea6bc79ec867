"""Parts of a cube: files of slices that never change.

A part has a head with the keys of its slices, an index, and the digits of the slices
(:mod:`sketchshift.sketch.totals`), each slice with a digest: so some of them can be read and
checked without the others. ``docs/format.md`` has the bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from sketchshift._typing import BoolArray, IntArray
from sketchshift.errors import SketchFormatError
from sketchshift.live.cube_log import PartRecord
from sketchshift.sketch.digits import Digits
from sketchshift.sketch.family import Family
from sketchshift.sketch.file import name_file, pack, read_header, unpack
from sketchshift.sketch.keys import as_type, encode_keys, to_stream
from sketchshift.sketch.totals import Entries, Layout, Totals

__all__ = ["PartIndex", "write_part"]

MAGIC = b"\x89SKB\r\n\x1a\n"

_KINDS = {
    "digits": dict,
    "entries": dict,
    "fingerprint": str,
    "index": str,
    "n_keys": int,
    "n_slices": int,
}
_DIGEST = 16
_READ_BYTES = 2**26  # of slices that are in memory at a time


def write_part(file: IO[bytes], keys: Any, totals: Totals) -> tuple[int, int]:
    """Write slices.

    Parameters
    ----------
    file : file
        Empty.
    keys : Arrow table of n rows
        Their keys; without columns for a cube of one slice.
    totals : Totals
        Of n slices. Digits that are 0 in all of them are left out.

    Returns
    -------
    n_head, n_bytes : int
        Bytes of the head of the file, and of all of it.
    """
    layout, n = totals.layout, len(totals)
    needed = {f.name: _digits_needed(totals.dense[f.name], f) for f in layout.dense}
    dense = np.hstack(
        [totals.dense[f.name][:, _places_of(f, needed[f.name])] for f in layout.dense]
    )
    tables, ends = [], []
    for family in layout.sparse:
        own = totals.entries[family.name]
        needed[family.name] = _digits_needed(own.digits, family)
        digits = own.digits[:, _places_of(family, needed[family.name])]
        tables.append(np.hstack([own.names[:, 1:], digits]).astype("<i4"))
        ends.append(np.searchsorted(own.names[:, 0], np.arange(n + 1)))
    index = _index_of(totals.counts, dense, tables, ends)
    head = pack(
        MAGIC,
        {
            "digits": {name: _shorten(numbers) for name, numbers in needed.items()},
            "entries": {f.name: len(own) for f, own in zip(layout.sparse, tables, strict=True)},
            "fingerprint": layout.spec.fingerprint,
            "index": _digest_of(index).hex(),
            "n_keys": keys.num_columns,
            "n_slices": n,
        },
        to_stream(pa.table(encode_keys(keys)), "lz4"),
    )
    n_bytes = file.write(head)
    n_bytes += sum(file.write(_bytes_of(each)) for each in (index, dense, *tables))
    return len(head), n_bytes


# Digits in a file: how many each integer of a family has, and where they stand among all.


def _digits_needed(digits: Digits, family: Family) -> IntArray:
    """How many digits each integer takes in the file, shape (integers,); 0 where all are 0."""
    some = digits.any(axis=0).reshape(family.n_integers, family.n_digits)
    return np.asarray((some * np.arange(1, family.n_digits + 1)).max(axis=1))


def _places_of(family: Family, needed: IntArray) -> IntArray:
    """Where the digits in the file stand among all of a family."""
    return np.flatnonzero((np.arange(family.n_digits) < needed[:, None]).ravel())


def _shorten(numbers: IntArray) -> list[list[int]]:
    """Runs of equal numbers, as pairs of the number and how often it stands there."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    lengths = np.diff(np.append(starts, len(numbers)))
    return [[int(numbers[at]), int(n)] for at, n in zip(starts, lengths, strict=True)]


@lru_cache(maxsize=256)
def _places_in(layout: Layout, digits: str) -> dict[str, IntArray]:
    """Where the digits of a file stand among all of each family."""
    content = json.loads(digits)
    return {f.name: _places_of(f, _lengthen(content[f.name], f)) for f in layout.families}


def _lengthen(runs: Any, family: Family) -> IntArray:
    try:
        numbers, lengths = np.array(runs, dtype=np.int64).reshape(-1, 2).T
    except (TypeError, ValueError, OverflowError):
        numbers = lengths = np.full(1, -1)
    is_sound = ((numbers >= 0) & (numbers <= family.n_digits)).all()
    is_sound &= ((lengths >= 0) & (lengths <= family.n_integers)).all()
    if not is_sound or lengths.sum() != family.n_integers:
        raise SketchFormatError(f"the digits of {family.name} are not those of the spec.")
    return np.repeat(numbers, lengths)


def _bytes_of(array: Any) -> memoryview:
    """The bytes of an array, which writing to them changes if it lies in one piece."""
    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")


def _index_of(
    counts: IntArray, dense: Digits, tables: Sequence[Digits], ends: Sequence[IntArray]
) -> IntArray:
    """What is known of each slice: a row of the index.

    Rows, rows left out, where its entries of each family begin, and how many there are; then the
    digest in two numbers.
    """
    begins = [end[:-1] for end in ends]
    lengths = [np.diff(end) for end in ends]
    facts = np.column_stack([counts, *begins, *lengths]).astype("<i8")
    digests = np.frombuffer(b"".join(_digests(facts, dense, tables, ends)), "<i8").reshape(-1, 2)
    return np.hstack([facts, digests])


def _digests(
    facts: IntArray, dense: Digits, tables: Sequence[Digits], ends: Sequence[IntArray]
) -> Iterator[bytes]:
    """Of each slice: its row of the index, its row of digits, then its entries of each family."""
    rows = [(_bytes_of(each), each.itemsize * each.shape[1]) for each in (facts, dense)]
    others = [
        (_bytes_of(table), (4 * table.shape[1] * end).tolist())
        for table, end in zip(tables, ends, strict=True)
        if table.size
    ]
    for i in range(len(facts)):
        digest = hashlib.blake2b(digest_size=_DIGEST)
        for data, width in rows:
            digest.update(data[i * width : i * width + width])
        for data, places in others:
            digest.update(data[places[i] : places[i + 1]])
        yield digest.digest()


def _digest_of(array: IntArray) -> bytes:
    return hashlib.blake2b(_bytes_of(array), digest_size=_DIGEST).digest()


@dataclass
class PartIndex:
    """The head of a part: what slices it has, and where.

    Attributes
    ----------
    keys : dict of str to Arrow dictionaries of n values
        Of the slices, by name.
    """

    path: Path
    layout: Layout
    keys: dict[str, Any]
    _n: int
    _digest: str
    _places: dict[str, IntArray]
    _width: int
    _tables: list[tuple[Family, int, IntArray]]
    _firsts: list[int]

    @classmethod
    def read(cls, path: Path, record: PartRecord, layout: Layout) -> PartIndex:
        """Read the head of a part; anything but an intact one is a :class:`SketchFormatError`."""
        with path.open("rb", buffering=0) as file, name_file(path):
            if os.fstat(file.fileno()).st_size != record.n_bytes:
                msg = f"it has not the {record.n_bytes:,} bytes that were written. Was it cut off?"
                raise SketchFormatError(msg)
            header, payload = unpack(file.read(record.n_head), MAGIC)
            content = read_header(header, _KINDS)
            if content["fingerprint"] != layout.spec.fingerprint:
                raise SketchFormatError("it was made with another plan than the cube.")
            options = pa.ipc.IpcReadOptions(use_threads=False)  # a few kilobytes
            try:
                table = pa.ipc.open_stream(pa.py_buffer(payload), options=options).read_all()
                table.validate()
                keys = encode_keys(table)
                for own in keys.values():
                    _validate(own)
            except pa.ArrowException as cause:
                raise SketchFormatError(f"its keys cannot be read ({cause}).") from None
            return cls._of(path, record, layout, content, keys)

    @classmethod
    def _of(
        cls,
        path: Path,
        record: PartRecord,
        layout: Layout,
        content: dict[str, Any],
        keys: dict[str, Any],
    ) -> PartIndex:
        n, digits, entries = content["n_slices"], content["digits"], content["entries"]
        has_all = all(len(own) == n and not own.indices.null_count for own in keys.values())
        if n != record.n_slices or len(keys) != content["n_keys"] or not has_all:
            raise SketchFormatError("its keys are not those of its slices.")
        names = set(layout.by_name), {family.name for family in layout.sparse}
        are_counts = all(type(length) is int and length >= 0 for length in entries.values())
        if (set(digits), set(entries)) != names or not are_counts:
            raise SketchFormatError("its digits are not those of the spec.")
        places = _places_in(layout, json.dumps(digits, sort_keys=True))
        tables = [(f, entries[f.name], places[f.name]) for f in layout.sparse]
        width = sum(len(places[f.name]) for f in layout.dense)
        sizes = [8 * (4 + 2 * len(tables)) * n, 4 * width * n]
        sizes += [4 * length * (family.id_width + len(own)) for family, length, own in tables]
        firsts = list(accumulate([record.n_head, *sizes]))
        if firsts[-1] != record.n_bytes:
            raise SketchFormatError("its length is not that of its slices. Was it cut off?")
        return cls(path, layout, keys, n, content["index"], places, width, tables, firsts)

    def __len__(self) -> int:
        return self._n

    def keys_of(self, rows: IntArray, schema: Any) -> Any:
        """The keys of some slices, as an Arrow table of a schema."""
        some = pa.array(rows)
        columns = [self.values_of(f).take(self.keys[f.name].indices.take(some)) for f in schema]
        return pa.table(columns, schema)

    def values_of(self, field: Any) -> Any:
        """The different values of a key, in the type of a field that holds them."""
        return as_type(self.keys[field.name].dictionary, field.type)

    def find(self, names: Sequence[str], is_found: BoolArray) -> IntArray:
        """The slices with some values of the keys of these names, an axis for each; ascending."""
        if not is_found.any():
            return np.zeros(0, np.int64)
        first, *others = (self.keys[name].indices.to_numpy() for name in names)
        may_be = is_found.reshape(len(is_found), -1).any(axis=1)
        rows = np.flatnonzero(may_be.take(first))  # few are looked at further
        places = first[rows].astype(np.int64)
        for numbers, length in zip(others, is_found.shape[1:], strict=True):
            places = places * length + numbers[rows]
        found: IntArray = rows[is_found.take(places)]
        return found

    @cached_property
    def counts(self) -> IntArray:
        """Rows, and rows left out, shape (n, 2)."""
        with self.path.open("rb", buffering=0) as file, name_file(self.path):
            index = self._read_index(file.fileno(), np.array([0]), np.array([len(self)]))
            if _digest_of(index).hex() != self._digest:
                raise SketchFormatError("the digest of its index does not match: it was damaged.")
            return index[:, :2].copy()

    def _read_index(self, file: int, firsts: IntArray, lasts: IntArray) -> IntArray:
        width = 4 + 2 * len(self._tables)
        index: IntArray = _read_spans(file, self._firsts[0], firsts, lasts, width, "<i8")
        return index

    def read_rows(self, rows: IntArray) -> Iterator[tuple[slice, Totals]]:
        """Some slices, with those of some megabytes in memory at a time.

        Parameters
        ----------
        rows : int array, ascending
            Which slices.

        Yields
        ------
        span : slice
            Of the rows.
        totals : Totals
            Each slice compared with its digest.
        """
        if not len(rows):
            return
        with self.path.open("rb", buffering=0) as file, name_file(self.path):
            spans = _spans_of(rows)
            index = self._read_index(file.fileno(), spans.firsts, spans.lasts)
            pieces = np.cumsum(self._sizes(index)) // _READ_BYTES
            if not pieces[-1]:
                yield slice(0, len(rows)), self._read(file.fileno(), rows, index, spans)
                return
            cuts = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(rows)]
            for first, last in pairwise(cuts):
                some = slice(first, last)
                own = rows[some]
                yield some, self._read(file.fileno(), own, index[some], _spans_of(own))

    def _sizes(self, index: IntArray) -> IntArray:
        """Bytes of slices, by their rows of the index, of which entries are in the file."""
        begins, lengths = self._entries(index)
        n_entries = [n for _, n, _ in self._tables]
        if ((begins < 0) | (lengths < 0) | (lengths > n_entries - begins)).any():
            raise SketchFormatError("there are no such entries.")
        widths = [4 * (family.id_width + len(places)) for family, _, places in self._tables]
        sizes: IntArray = lengths @ np.array(widths, dtype=np.int64) + 4 * self._width
        return sizes

    def _entries(self, index: IntArray) -> tuple[IntArray, IntArray]:
        """Where entries begin, and how many there are: one column for each family."""
        n = len(self._tables)
        return index[:, 2 : 2 + n], index[:, 2 + n : 2 + 2 * n]

    def _read(self, file: int, rows: IntArray, index: IntArray, spans: _Spans) -> Totals:
        dense = _read_spans(file, self._firsts[1], spans.firsts, spans.lasts, self._width)
        entries, tables, ends = {}, [], []
        begins, lengths = self._entries(index)
        froms, tos = begins[spans.starts], (begins + lengths)[spans.stops - 1]
        if ((tos - froms).sum(axis=0) != lengths.sum(axis=0)).any() or (tos < froms).any():
            raise SketchFormatError("the entries of slices do not follow each other.")
        for i, (family, n, places) in enumerate(self._tables):
            width = family.id_width + len(places)
            table, owners = np.empty((0, width), "<i4"), np.zeros(0, np.int64)
            if n:
                table = _read_spans(file, self._firsts[2 + i], froms[:, i], tos[:, i], width)
                self._check_names(family, table)
                owners = np.repeat(np.arange(len(rows)), lengths[:, i])
            names = np.column_stack([owners, table[:, : family.id_width]])
            digits = _spread(table[:, family.id_width :], places, family.width)
            entries[family.name] = Entries(names, digits)
            tables.append(table)
            ends.append(np.append(0, np.cumsum(lengths[:, i])))
        digests, wanted = _digests(index[:, :-2].copy(), dense, tables, ends), index[:, -2:].copy()
        found = np.frombuffer(b"".join(digests), "<i8").reshape(-1, 2)
        is_wrong = (found != wanted).any(axis=1)
        if is_wrong.any():
            row = rows[np.argmax(is_wrong)]
            msg = f"the digest of slice {row} does not match: the file was damaged."
            raise SketchFormatError(msg)
        of_family, first = {}, 0
        for family in self.layout.dense:
            places = self._places[family.name]
            last = first + len(places)
            of_family[family.name] = _spread(dense[:, first:last], places, family.width)
            first = last
        return Totals(self.layout, index[:, :2], of_family, entries)

    @staticmethod
    def _check_names(family: Family, table: Digits) -> None:
        if family.id_width == 1 and len(table):
            numbers = table[:, 0]
            if numbers.min() < 0 or numbers.max() >= family.full_shape[0]:
                raise SketchFormatError(f"there is no such entry of {family.name}.")


def _spread(digits: Digits, places: IntArray, width: int) -> Digits:
    """Digits of a file (n, places) among all (n, width), of which the others are 0."""
    found = np.zeros((len(digits), width), dtype=np.int32)
    found[:, places] = digits
    return found


def _validate(keys: Any) -> None:
    """Refuse a dictionary of keys with numbers of no value; Arrow takes thrice the time for it."""
    keys.dictionary.validate(full=True)
    numbers = keys.indices.to_numpy(zero_copy_only=False)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(keys.dictionary):
        raise pa.ArrowInvalid("a number is that of no key")


class _Spans(NamedTuple):
    """Runs of ascending rows that follow each other.

    Attributes
    ----------
    starts, stops : int array
        Where a run begins and ends among the rows.
    firsts, lasts : int array
        Its first row, and the one after its last.
    """

    starts: IntArray
    stops: IntArray
    firsts: IntArray
    lasts: IntArray


def _spans_of(rows: IntArray) -> _Spans:
    cuts = np.flatnonzero(rows[1:] != rows[:-1] + 1) + 1
    starts, stops = np.append(0, cuts), np.append(cuts, len(rows))
    return _Spans(starts, stops, rows[starts], rows[stops - 1] + 1)


def _read_spans(
    file: int, at: int, firsts: IntArray, lasts: IntArray, width: int, kind: str = "<i4"
) -> Any:
    """Rows of a matrix that begins at a place of a file: those from firsts to lasts."""
    lengths = lasts - firsts
    found = np.empty((int(lengths.sum()), width), dtype=kind)
    if not found.size:
        return found
    data, done, a_row = _bytes_of(found), 0, found.itemsize * width
    for first, length in zip(firsts.tolist(), lengths.tolist(), strict=True):
        n = a_row * length
        if n and os.preadv(file, [data[done : done + n]], at + a_row * first) != n:
            raise SketchFormatError("it ends within a slice. Was it cut off?")
        done += n
    return found
