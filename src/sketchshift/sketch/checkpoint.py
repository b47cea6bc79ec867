"""Checkpoints: a pass that crashed goes on where it was, and ends with the same bytes.

A checkpoint is one file, replaced as a whole every few seconds. It holds the sums of all rows read
so far, and a trail of these rows: a hash of the bytes of each file, row group by row group or range
by range, and a hash of the rows of the piece that was being read. A pass that goes on reads these
bytes again and compares them with the trail. If they are the same, only the rows after them are
summed; if not, the pass is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from sketchshift._paths import Place, mark_of, parse_path
from sketchshift._writing import write_atomically
from sketchshift.data import Block, Source
from sketchshift.data.source import Piece
from sketchshift.errors import DataError, SketchFormatError
from sketchshift.features import SketchSpec
from sketchshift.sketch.file import name_file, pack, read_header, register_kind, unpack
from sketchshift.sketch.sketch import Sketch

__all__ = ["Sums", "check_same_plan", "read_checkpoint", "read_on", "write_checkpoint"]

MAGIC = b"\x89SKC\r\n\x1a\n"
_KINDS = {"kind": str, "n_position": int, "n_state": int}

SECONDS, SHARE = 5.0, 0.05
"""Seconds between two writes, at least; longer where they would take more than this share."""

BEGIN_ANEW = "Give what was given then, or delete the checkpoint to begin anew."


class Sums(Protocol):
    """What the blocks of a pass are added to."""

    kind: str

    def add(self, blocks: Iterator[Block]) -> None:
        """Add all blocks."""

    def freeze(self) -> tuple[dict[str, Any], bytes]:
        """What it takes to go on: whatever JSON can hold, and the integers."""

    def thaw(self, state: dict[str, Any], integers: bytes) -> None:
        """Take over what :meth:`freeze` gave; refuse sums of another spec."""


def write_checkpoint(
    path: Place, kind: str, position: dict[str, Any], state: dict[str, Any], integers: bytes
) -> None:
    """Replace a checkpoint as a whole: a crash leaves the old one or the new one."""
    parts = [json.dumps(part, allow_nan=False).encode() for part in (position, state)]
    header = {"kind": kind, "n_position": len(parts[0]), "n_state": len(parts[1])}
    write_atomically(path, pack(MAGIC, header, b"".join([*parts, integers])))


def read_checkpoint(path: Place, kind: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Position, state and integers of a checkpoint of this kind."""
    try:
        return _parse(path.read_bytes(), kind)[1:]
    except SketchFormatError as error:
        raise SketchFormatError(f"cannot go on from {path}: {error}") from None


def _parse(
    data: bytes, expected: str | None = None
) -> tuple[str, dict[str, Any], dict[str, Any], bytes]:
    """Kind, position, state and integers of a checkpoint."""
    if data[: len(MAGIC)] != MAGIC:
        raise SketchFormatError("it is no checkpoint. It was left as it is.")
    text, payload = unpack(data, MAGIC)
    header = read_header(text, _KINDS)
    kind = header["kind"]
    if expected is not None and kind != expected:
        msg = f"it is a checkpoint of {kind}, not of {expected}. Give it another name."
        raise SketchFormatError(msg)
    middle = header["n_position"]
    end = middle + header["n_state"]
    if not 0 <= middle <= end <= len(payload):
        raise SketchFormatError("its parts are longer than the file.")
    position, state = (_read_object(p) for p in (payload[:middle], payload[middle:end]))
    return kind, position, state, bytes(payload[end:])


def _load_checkpoint(path: Place) -> Any:
    """The sketcher that was saved, or the sketch or table of the rows that a pass has read."""
    from sketchshift.sketch.sketcher import STREAM, Sketcher  # these import this module
    from sketchshift.sketch.slices import read_slices

    with name_file(path):
        kind, position, _, integers = _parse(path.read_bytes())
        if kind == "slices":
            return read_slices(position, integers)
        if kind != STREAM:
            return Sketch.from_bytes(integers)
    return Sketcher.load(path)


register_kind(MAGIC, "a checkpoint", _load_checkpoint)


def _read_object(text: memoryview) -> dict[str, Any]:
    try:
        content = json.loads(bytes(text))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise SketchFormatError("its parts are not JSON.")
    return content


def check_same_plan(begun: SketchSpec, now: SketchSpec) -> None:
    """Refuse to go on with another spec."""
    if begun.fingerprint != now.fingerprint or begun != now:
        msg = (
            "the checkpoint was begun with another plan:\n"
            f"  then: {begun.describe()}\n"
            f"  now : {now.describe()}\n"
            f"The data or the options have changed since. {BEGIN_ANEW}"
        )
        raise DataError(msg)


def read_on(
    source: Source,
    sums: Sums,
    path: str | os.PathLike[str],
    reading: dict[str, Any],
    progress: Callable[[int, float | None], None] | None = None,
) -> None:
    """Add all rows of a source to sums, from where a checkpoint stands on.

    Parameters
    ----------
    source : Source
        Data in files.
    sums : Sums
        Of no rows.
    path : path
        The checkpoint. Without such a file, the pass begins at the start; at the end the file
        is there, complete.
    reading : dict
        How rows are read, as JSON has it: whoever goes on must read them in the same way.
    progress : callable or None
        Called as ``progress(n_rows, share_read)``, also of rows that are in already.
    """
    if source.pieces is None:
        msg = (
            "a checkpoint needs data in files: only these can be compared and gone on with. "
            "Write the data to a file first, or save a Sketcher between two updates."
        )
        raise DataError(msg)
    path, trail = parse_path(path), Trail()
    if path.exists():
        position, state, integers = read_checkpoint(path, sums.kind)
        trail = Trail.from_json(position, path)
        _check_reading(trail.reading, reading)
        sums.thaw(state, integers)
    trail.reading = reading
    blocks, pause = trail.blocks(source, progress), SECONDS
    while not trail.is_complete:
        sums.add(_take_for(blocks, pause))
        start = time.monotonic()
        write_checkpoint(path, sums.kind, trail.to_json(), *sums.freeze())
        pause = max(SECONDS, (time.monotonic() - start) / SHARE)


def _take_for(blocks: Iterator[Block], seconds: float) -> Iterator[Block]:
    end = time.monotonic() + seconds
    for block in blocks:
        yield block
        if time.monotonic() > end:
            return


def _check_reading(then: dict[str, Any], now: dict[str, Any]) -> None:
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            msg = (
                f"the checkpoint was begun with {name}={then.get(name)!r}, and now it is "
                f"{now.get(name)!r}. {BEGIN_ANEW}"
            )
            raise DataError(msg)


@dataclass
class FileTrail:
    """What was read of one file: whole pieces, with a hash of their bytes."""

    name: str
    n_rows: int = 0
    n_pieces: int = 0
    digest: str = ""


@dataclass
class Trail:
    """What was read: files, and rows of the piece under way."""

    files: list[FileTrail] = field(default_factory=list)
    n_rows: int = 0
    digest: str = ""
    reading: dict[str, Any] = field(default_factory=dict)
    is_complete: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any], path: Place) -> Trail:
        """What :meth:`to_json` gave; anything else is refused."""
        try:
            trail = cls(**{**content, "files": [FileTrail(**file) for file in content["files"]]})
            digests = [trail.digest, *(file.digest for file in trail.files)]
            numbers = [n for file in trail.files for n in (file.n_rows, file.n_pieces)]
            if not all(re.fullmatch("([0-9a-f]{64})?", digest) for digest in digests):
                raise ValueError
            if not all(type(n) is int for n in [trail.n_rows, *numbers]):
                raise ValueError
            trail.reading = dict(trail.reading)
        except (KeyError, TypeError, ValueError):
            msg = f"cannot go on from {path}: its header does not say what was read."
            raise SketchFormatError(msg) from None
        trail.is_complete = False  # until all that was read has been compared
        return trail

    def blocks(
        self, source: Source, progress: Callable[[int, float | None], None] | None
    ) -> Iterator[Block]:
        """The blocks that were not read yet, once those that were are compared."""
        assert source.pieces is not None
        report = progress or (lambda n_rows, share: None)
        pieces = source.pieces()
        for file in self.files:
            _compare(file, pieces)
            report(file.n_rows, None)
        for piece in pieces:
            stamp = mark_of(piece.path)
            file = self._file_of(piece)
            for block in self._skip_replayed(piece.read(file.n_rows), piece.path):
                yield block
                report(len(block.values), block.done)
            if mark_of(piece.path) != stamp:
                raise DataError(f"{piece.path} changed while it was read. {BEGIN_ANEW}")
            file.digest = _chain(file.digest, piece.digest())
            file.n_pieces += 1
            file.n_rows += self.n_rows
            self.n_rows, self.digest = 0, ""
        if self.n_rows:
            raise _change_error(None)
        self.is_complete = True

    def _file_of(self, piece: Piece) -> FileTrail:
        if not self.files or self.files[-1].name != str(piece.path):
            self.files.append(FileTrail(str(piece.path)))
        return self.files[-1]

    def _skip_replayed(self, blocks: Iterator[Block], path: Place) -> Iterator[Block]:
        """Rows that are in already are compared; those behind them are added to the trail."""
        then, self.n_rows, self.digest = (self.n_rows, self.digest), 0, ""
        for block in blocks:
            is_in = self.n_rows < then[0]
            self.n_rows += len(block.values)
            self.digest = _chain(self.digest, *_bytes_of(block))
            if not is_in:
                yield block
            elif self.n_rows >= then[0] and then != (self.n_rows, self.digest):
                raise _change_error(path)
        if self.n_rows < then[0]:
            raise _change_error(path)


def _compare(file: FileTrail, pieces: Iterator[Piece]) -> None:
    """Refuse pieces that are not those of a file as it was read."""
    digest, path = "", None
    for _ in range(file.n_pieces):
        piece = next(pieces, None)
        if piece is None:
            raise _change_error(path)
        digest, path = _chain(digest, piece.digest()), piece.path
    if digest != file.digest:
        raise _change_error(path)


def _change_error(path: Place | None) -> DataError:
    where = "the data has" if path is None else f"{path} has"
    msg = (
        f"{where} changed since the checkpoint was written: it no longer holds the rows that were "
        "read. Give the data as it was, or delete the checkpoint to begin anew."
    )
    return DataError(msg)


def _chain(before: str, *parts: Any) -> str:
    """The hash of the hash before and of some more bytes."""
    digest = hashlib.blake2b(bytes.fromhex(before), digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _bytes_of(block: Block) -> Iterator[Any]:
    """All that a block adds to a sum."""
    values = np.ascontiguousarray(block.values)
    yield f"{values.dtype.str}{values.shape}".encode()
    yield values
    if block.weights is not None:
        yield np.ascontiguousarray(block.weights)
    if block.keys is not None:
        from sketchshift.sketch.keys import to_stream

        yield to_stream(block.keys)  # with types and dictionaries, which a batch alone has not
