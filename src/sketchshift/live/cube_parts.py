"""Parts of a cube: files of slices that never change.

A part has a head with the keys of its slices and an index of them, then the integers of one slice
after the other. Each slice has a digest in the index, so that some slices can be read and checked
without the others.

Symbols
-------
n, T      slices, tables: what every slice has is one, and the entries of each family are one
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from sketchshift._typing import BoolArray, IntArray
from sketchshift.data.source import spans
from sketchshift.errors import SketchFormatError
from sketchshift.live.cube_log import PartRecord
from sketchshift.sketch.digits import Digits
from sketchshift.sketch.file import name_file, pack, read_header, unpack
from sketchshift.sketch.keys import as_type, encode_keys, to_stream
from sketchshift.sketch.totals import Entries, Layout, Totals

__all__ = ["PartIndex", "write_part"]

MAGIC = b"\x89SKB\r\n\x1a\n"

_KINDS = {"fingerprint": str, "kept": list, "n_index": int}
_READ_BYTES = 2**26  # of slices that are in memory at a time
_WRITTEN_SLICES = 1024  # that are laid out at a time


def write_part(file: IO[bytes], keys: Any, totals: Totals) -> tuple[int, int]:
    """Write slices.

    Parameters
    ----------
    file : file
        Empty.
    keys : Arrow table of n rows
        Their keys; without columns for a cube of one slice.
    totals : Totals
        Of n slices. Columns of digits that are 0 in all of them are left out.

    Returns
    -------
    n_head, n_bytes : int
        Bytes of the head of the file, and of all of it.
    """
    pieces = [totals.span(some.start, some.stop) for some in spans(len(totals), _WRITTEN_SLICES)]
    filled = ([table.any(axis=0) for table in _tables_of(piece)] for piece in pieces)
    kept = [reduce(np.logical_or, of_table) for of_table in zip(*filled, strict=True)]
    index, body = zip(*(_lay_out(piece, kept) for piece in pieces), strict=True)
    columns = pa.compress(np.concatenate(index).T.tobytes(), "lz4", asbytes=True)
    header = {
        "fingerprint": totals.layout.spec.fingerprint,
        "kept": [np.packbits(some).tobytes().hex() for some in kept],
        "n_index": len(columns),
    }
    head = pack(MAGIC, header, columns + to_stream(pa.table(encode_keys(keys)), "lz4"))
    return len(head), sum(file.write(data) for data in (head, *body))


# Tables of a part. Those of a slice follow each other, row by row, without the columns left out.


def _tables_of(totals: Totals) -> Iterator[Digits]:
    """Rows of each table, those of one slice after the other: names of entries, then digits."""
    yield np.hstack([totals.dense[family.name] for family in totals.layout.dense])
    for family in totals.layout.sparse:
        own = totals.entries[family.name]
        yield np.hstack([own.names[:, 1:].astype(np.int32), own.digits])


def _lay_out(totals: Totals, kept: Sequence[BoolArray]) -> tuple[IntArray, memoryview]:
    """The index of slices, shape (n, 3 + T), and their bytes.

    The index has the rows, the rows left out, the length of each table, and the digest.
    """
    n = len(totals)
    owners = [totals.entries[family.name].names[:, 0] for family in totals.layout.sparse]
    lengths = np.column_stack([np.ones(n, np.int64), *(np.bincount(o, None, n) for o in owners)])
    ends, places = _places_of(lengths, kept)
    words = np.empty(ends[-1] // 4, dtype="<i4")
    for table, some, (_, firsts) in zip(_tables_of(totals), kept, places, strict=True):
        _windows(words, some)[firsts] = table[:, some]
    data = words.view(np.uint8).data
    return np.hstack([totals.counts, lengths, _digests(data, ends)]).astype("<i8"), data


def _places_of(
    lengths: IntArray, kept: Sequence[BoolArray]
) -> tuple[IntArray, list[tuple[IntArray, IntArray]]]:
    """Where slices of which tables have lengths (n, T) begin and end, shape (n + 1,), in bytes.

    And of each table the slice of each row, and its first word.
    """
    widths = np.array([some.sum() for some in kept])
    ends = np.append(0, np.cumsum(lengths * widths))
    firsts, places = ends[:-1].reshape(lengths.shape), []
    for own, first, width in zip(lengths.T, firsts.T, widths, strict=True):
        owners = np.repeat(np.arange(len(own)), own)
        numbers = np.arange(len(owners)) - (np.cumsum(own) - own)[owners]
        places.append((owners, first[owners] + width * numbers))
    return 4 * ends[:: len(kept)], places


def _windows(words: Digits, kept: BoolArray) -> Digits:
    """The row of a table that begins at each word."""
    width = int(kept.sum())
    shape = max(0, len(words) - width + 1), width
    return np.lib.stride_tricks.as_strided(words, shape, 2 * words.strides)


def _digests(data: memoryview, ends: IntArray) -> IntArray:
    """Of slices, shape (n, 1)."""
    digests = (
        hashlib.blake2b(data[first:end], digest_size=8).digest()
        for first, end in pairwise(ends.tolist())
    )
    return np.frombuffer(b"".join(digests), dtype="<i8")[:, None]


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
    _index: IntArray
    _kept: list[BoolArray]
    _ends: IntArray  # of slices in the file

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
            widths = [layout.width, *(f.id_width + f.width for f in layout.sparse)]
            shape, n_index = (3 + len(widths), record.n_slices), content["n_index"]
            options = pa.ipc.IpcReadOptions(use_threads=False)  # a few kilobytes
            try:
                masks = zip(map(bytes.fromhex, content["kept"]), widths, strict=True)
                kept = [_unpack_mask(*mask) for mask in masks]
                size = min(8 * math.prod(shape), 256 * n_index)  # lz4 makes no more of it
                columns = pa.decompress(payload[:n_index], size, "lz4")
                index = np.frombuffer(columns, "<i8").reshape(shape).T
                stream = pa.py_buffer(payload[n_index:])
                table = pa.ipc.open_stream(stream, options=options).read_all()
                table.validate()
                keys = encode_keys(table)
                for own in keys.values():
                    _validate(own, record.n_slices)
            except (pa.ArrowException, OSError, TypeError, ValueError) as cause:
                raise SketchFormatError(f"its head cannot be read ({cause}).") from None
            lengths, n_words = index[:, 2:-1], (record.n_bytes - record.n_head) // 4
            are_lengths = ((lengths >= 0) & (lengths <= n_words)).all()
            sizes = lengths @ [4 * int(some.sum()) for some in kept]
            ends = record.n_head + np.append(0, np.cumsum(sizes))
            if not are_lengths or (lengths[:, 0] != 1).any() or ends[-1] != record.n_bytes:
                raise SketchFormatError("its length is not that of its slices. Was it cut off?")
            return cls(path, layout, keys, index, kept, ends)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def counts(self) -> IntArray:
        """Rows, and rows left out, shape (n, 2)."""
        return self._index[:, :2]

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
        numbers = tuple(self.keys[name].indices.to_numpy() for name in names)
        return np.flatnonzero(is_found[numbers])

    def read_rows(self, rows: IntArray) -> Iterator[tuple[IntArray, Totals]]:
        """Some slices, with those of some megabytes in memory at a time.

        Parameters
        ----------
        rows : int array, ascending
            Which slices, at least one.

        Yields
        ------
        some : int array
            Which of the rows.
        totals : Totals
            Each slice compared with its digest.
        """
        pieces = np.cumsum(np.diff(self._ends)[rows]) // _READ_BYTES
        cuts = np.flatnonzero(np.diff(pieces)) + 1
        with self.path.open("rb", buffering=0) as file, name_file(self.path):
            for some in np.split(np.arange(len(rows)), cuts):
                yield some, self._read(file.fileno(), rows[some])

    def _read(self, file: int, rows: IntArray) -> Totals:
        index = self._index[rows]
        ends, places = _places_of(index[:, 2:-1], self._kept)
        words = np.empty(ends[-1] // 4, dtype="<i4")
        data, done = words.view(np.uint8).data, 0
        cuts = np.flatnonzero(np.diff(rows) != 1)  # other rows follow each other in the file
        firsts = self._ends[rows[np.append(0, cuts + 1)]].tolist()
        lasts = self._ends[rows[np.append(cuts, -1)] + 1].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            n = last - first
            if os.preadv(file, [data[done : done + n]], first) != n:
                raise SketchFormatError("it ends within a slice. Was it cut off?")
            done += n
        is_wrong = (_digests(data, ends) != index[:, -1:]).any(axis=1)
        if is_wrong.any():
            row = rows[np.argmax(is_wrong)]
            msg = f"the digest of slice {row} does not match: the file was damaged."
            raise SketchFormatError(msg)
        tables = []
        for some, (owners, starts) in zip(self._kept, places, strict=True):
            table = np.zeros((len(owners), len(some)), dtype=np.int32)
            table[:, some] = _windows(words, some)[starts]
            tables.append((owners, table))
        (_, table), *others = tables
        ends = np.cumsum([family.width for family in self.layout.dense])
        parts = np.split(table, ends[:-1], axis=1)
        dense = {f.name: own for f, own in zip(self.layout.dense, parts, strict=True)}
        entries = {}
        for family, (owners, own) in zip(self.layout.sparse, others, strict=True):
            names, digits = np.split(own, [family.id_width], axis=1)
            if family.id_width == 1 and len(own):
                numbers = names[:, 0]
                if numbers.min() < 0 or numbers.max() >= family.full_shape[0]:
                    raise SketchFormatError(f"there is no such entry of {family.name}.")
            entries[family.name] = Entries(np.column_stack([owners, names]), digits)
        return Totals(self.layout, index[:, :2], dense, entries)


def _unpack_mask(data: bytes, width: int) -> BoolArray:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=width).astype(bool)


def _validate(keys: Any, n: int) -> None:
    """Refuse a dictionary of keys with numbers of no value; Arrow takes thrice the time for it."""
    keys.dictionary.validate(full=True)
    numbers = keys.indices.to_numpy(zero_copy_only=False)
    if len(numbers) != n or not 0 <= numbers.min() <= numbers.max() < len(keys.dictionary):
        raise pa.ArrowInvalid("a number is that of no key")
