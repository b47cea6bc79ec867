"""Paths, folders and globs, read as one source.

Expands what was asked into files in a fixed order, lets one reader per suffix open
each, and checks that all deliver the same columns. Only headers are read before the
first block is asked for. Knows no format: see ``parquet``, ``delimited``, ``ipc``, ``npy``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from sketchshift._text import listed
from sketchshift.data.sample import by_position, share_out
from sketchshift.data.source import Access, Block, Piece, Request, Source
from sketchshift.errors import ChooseColumns, DataError, LoadSketch

__all__ = ["KNOWN_SUFFIXES", "expand", "known_suffixes", "open_files"]

Reader: TypeAlias = Callable[[Path, Request], Source]

DELIMITED = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
ARROW = (".arrow", ".feather", ".ipc")
KNOWN_SUFFIXES = (".parquet", *DELIMITED, *ARROW, ".npy")


def open_files(paths: Sequence[str | PathLike[str]], request: Request) -> Source:
    """Read files one after the other as if they were one.

    Parameters
    ----------
    paths : sequence of paths, folders or globs
        Read in this order; the files of a folder or glob are sorted by name.
    request : Request
        Columns apply to every file; weights must be a column name.

    Returns
    -------
    source : Source
        One file is open at a time; how much of it is in memory is its reader's
        business, a few blocks for all of them. ``done`` counts bytes.
    """
    request.refuse_weight_array("files")
    files = [file for path in paths for file in expand(path)]
    _refuse_twice(files)
    first = _open_one(files[0], request)
    opened = [first, *(_open_alike(file, request, first, files[0]) for file in files[1:])]
    sizes = [file.stat().st_size for file in files]
    counts = [source.n_rows for source in opened]
    known = [count for count in counts if count is not None]
    n_rows = sum(known) if len(known) == len(counts) else None

    def read() -> Iterator[Block]:
        return _read(opened, sizes)

    def pieces() -> Iterator[Piece]:
        return _pieces(files, opened, sizes)

    def across(n_rows_wanted: int, n_places: int, seed: int) -> Iterator[Block]:
        shares = share_out(sizes if n_rows is None else known, n_rows_wanted, n_places, seed)
        return _read_across(opened, shares, seed)

    d, n_bytes = first.n_features, sum(sizes)
    return Source(first.columns, d, n_rows, read, Access.DISK, n_bytes, across, pieces)


def _refuse_twice(files: Sequence[Path]) -> None:
    times = Counter(file.resolve() for file in files)
    twice = [str(file) for file in files if times[file.resolve()] > 1]
    if twice:
        msg = f"{twice[0]!r} is given twice: its rows would count twice. Name each file once."
        raise DataError(msg)


def expand(path: str | PathLike[str]) -> list[Path]:
    """Files meant by a path: itself, all in the folder, or all that match the glob."""
    if path == "":
        msg = "cannot read the path '': it is empty. Use '.' for the current folder."
        raise DataError(msg)
    given = Path(path).expanduser()
    if given.is_dir():
        return _files_in(given)
    if given.exists():
        _suffix(given)
        return [given]
    if any(sign in str(given) for sign in "*?["):
        return [file for match in _matches(given) for file in expand(match)]
    hint = (
        " Open addresses with pyarrow.dataset.dataset(...) and pass the dataset."
        if "://" in str(path)
        else ""
    )
    msg = f"there is no file or folder {str(path)!r}.{hint}"
    raise DataError(msg)


def _files_in(folder: Path) -> list[Path]:
    files = [
        file
        for file in sorted(folder.rglob("*"), key=Path.as_posix)
        if file.name.lower().endswith(KNOWN_SUFFIXES)
        and file.is_file()
        and not _is_hidden(file.relative_to(folder))
    ]
    if not files:
        msg = f"the folder {str(folder)!r} has no file that ends in {known_suffixes()}."
        raise DataError(msg)
    return files


def _matches(pattern: Path) -> list[Path]:
    root = Path(pattern.anchor)
    matches = sorted(root.glob(str(pattern.relative_to(pattern.anchor))), key=Path.as_posix)
    matches = [match for match in matches if not _is_hidden(_unspelled(match, pattern))]
    if not matches:
        msg = f"no file matches {str(pattern)!r}."
        raise DataError(msg)
    return matches


def _unspelled(match: Path, pattern: Path) -> Path:
    """The parts of a match that may be hidden from the pattern.

    Not those whose first sign it spells, as ``.x*`` does, nor a file of data that only begins
    with ``_``: whoever writes a glob means all files of that name.
    """
    is_data = match.name.lower().endswith(KNOWN_SUFFIXES) and match.is_file()
    parts = match.parts[:-1] if is_data and match.name.startswith("_") else match.parts
    return Path(*(part for part in parts if not _is_spelled(part, pattern)))


def _is_spelled(part: str, pattern: Path) -> bool:
    return any(part[0] == p[0] and fnmatchcase(part, p) for p in pattern.parts)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _suffix(path: Path) -> str:
    for suffix in KNOWN_SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    if path.suffix.lower() == ".sketch":
        raise DataError(f"{str(path)!r} is a sketch, not data. ", LoadSketch(str(path)))
    msg = f"cannot tell the format of {str(path)!r}: its name does not end in {known_suffixes()}."
    raise DataError(msg)


def known_suffixes() -> str:
    """The ends of names of files that are read, in words."""
    return ", ".join(KNOWN_SUFFIXES[:-1]) + " or " + KNOWN_SUFFIXES[-1]


def _open_one(path: Path, request: Request) -> Source:
    return _reader(_suffix(path))(path, request)


def _reader(suffix: str) -> Reader:
    if suffix == ".npy":
        from sketchshift.data.npy import open_npy

        return open_npy
    if suffix == ".parquet":
        from sketchshift.data.arrow import open_parquet

        return open_parquet
    if suffix in ARROW:
        from sketchshift.data.arrow import open_ipc

        return open_ipc
    from sketchshift.data.text_files import open_delimited

    return open_delimited


def _open_alike(path: Path, request: Request, first: Source, first_path: Path) -> Source:
    """Open a later file, in the column order of the first one."""
    opened = _open_one(path, request)
    if opened.columns == first.columns and opened.n_features == first.n_features:
        return opened
    if opened.columns is None or first.columns is None:
        facts = f"  {first_path}: {_shape(first)}\n  {path}: {_shape(opened)}"
    elif set(opened.columns) == set(first.columns):
        return _open_one(path, replace(request, columns=first.columns))
    else:
        here = [name for name in first.columns if name not in opened.columns]
        there = [name for name in opened.columns if name not in first.columns]
        facts = f"  only in {first_path}: {listed(here) or 'none'}\n"
        facts += f"  only in {path}: {listed(there) or 'none'}"
    msg = (
        f"cannot read files with different columns as one:\n{facts}\n"
        "Choose columns that all files have with "
    )
    raise DataError(msg, ChooseColumns(), ", or read them apart.")


def _shape(source: Source) -> str:
    if source.columns is None:
        return f"{source.n_features} columns without names"
    return f"columns {listed(source.columns)}"


def _read(opened: Sequence[Source], sizes: Sequence[int]) -> Iterator[Block]:
    before = 0
    for source, size in zip(opened, sizes, strict=True):
        yield from _of_all(source, before, size, sum(sizes))
        before += size


def _of_all(blocks: Iterable[Block], before: int, size: int, total: int) -> Iterator[Block]:
    """Blocks of one file, with the share of all files read so far."""
    for block in blocks:
        share = 1.0 if block.done is None else block.done
        yield replace(block, done=(before + share * size) / total)


def _pieces(
    files: Sequence[Path], opened: Sequence[Source], sizes: Sequence[int]
) -> Iterator[Piece]:
    """The pieces of all files; one that cannot be cut is a piece by itself."""

    def read(piece: Piece, before: int, size: int, first_row: int) -> Iterator[Block]:
        return _of_all(piece.read(first_row), before, size, sum(sizes))

    before = 0
    for file, source, size in zip(files, opened, sizes, strict=True):
        whole = Piece(file, ((0, size),), partial(_read_whole, source))
        for piece in [whole] if source.pieces is None else source.pieces():
            yield replace(piece, read=partial(read, piece, before, size))
        before += size


def _read_whole(source: Source, first_row: int) -> Iterator[Block]:
    """All blocks; a whole file has no rows before it."""
    return source.read()


def _read_across(
    opened: Sequence[Source], shares: Iterable[tuple[int, int, int]], seed: int
) -> Iterator[Block]:
    for part, n_rows, n_places in shares:
        source = opened[part]
        across = source.across or by_position(source.read)
        yield from across(n_rows, n_places, seed + part)
