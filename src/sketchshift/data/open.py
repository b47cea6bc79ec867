"""The door: one function that opens any kind of data.

Decides which opener answers: by the library of what lies in memory, by the ends of the names of
files. Two registries are here, of file formats and of collections that lie on many machines; the
formats that come with the package are registered like any other. Reads nothing itself.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib import import_module
from itertools import chain
from operator import methodcaller
from os import PathLike
from pathlib import Path, PurePath
from shutil import copyfileobj
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sketchshift._paths import (
    CHUNK_BYTES,
    Place,
    RemotePath,
    check_unchanged,
    map_ahead,
    parse_path,
)
from sketchshift._registry import added, first_answer
from sketchshift._text import counted, listed, without_password
from sketchshift._typing import RealArray
from sketchshift._validation import parameter_error
from sketchshift._writing import opened_for_now
from sketchshift.data.memory import as_array, native, open_array, open_sparse, open_tensor
from sketchshift.data.sample import by_position, share_out
from sketchshift.data.source import (
    Access,
    Block,
    Piece,
    Request,
    Source,
    make_request,
    read_once,
    report_damage,
)
from sketchshift.errors import ChooseColumns, DataError, LoadSketch
from sketchshift.recipe import Recipe

__all__ = [
    "ask",
    "expand",
    "find_engine",
    "find_source",
    "first_suffixes",
    "gather_vectors",
    "is_collection",
    "is_data_file",
    "is_table",
    "known_suffixes",
    "open_files",
    "open_in_memory",
    "open_iterator",
    "open_source",
    "pick_files",
    "register_collections",
    "register_format",
    "spool_stdin",
]

# Formats of files, by the ends of their names.

Opener: TypeAlias = Callable[[Any, Request], Any]

LOOSE = (".txt", ".dat", ".db")
"""Ends of names of tables, and of much else: in folders of other data they are passed over."""

PACKED = (".gz", ".bz2", ".zst", ".xz", ".zip")

_formats: dict[str, Opener] = {}
_read_stores: set[Opener] = set()  # others get a copy of what lies in a store


def register_format(suffixes: str | Sequence[str], opener: Opener) -> None:
    """Make a file format known to everything that reads files.

    From then on files whose names end so are read by :func:`sketchshift.sketch`,
    :func:`sketchshift.plan`, :func:`sketchshift.sketch_by`, the estimators and the command line,
    also in folders and globs.

    Parameters
    ----------
    suffixes : str or sequence of str
        Ends of names, such as ``".fits"``; capital letters do not matter. The longest one that a
        name has decides. Help texts show the first. One that is known already gets the new opener.
    opener : callable
        Called as ``opener(path, request)``; of a file that lies in a store it gets a copy. It
        returns anything that :func:`sketchshift.sketch` reads from memory: an array, a frame, an
        Arrow table or stream, or an iterator of such blocks, for files that are larger than the
        memory. It is called once to learn the columns, and again for every pass. What ``request``
        asks for (``columns``, ``weights``, ``keys``) is taken from what it returns; a format that
        can leave other columns unread may look at it. The readers of this package return a
        ``sketchshift.data.Source``, of which a sample can be drawn without a pass.

    Notes
    -----
    The formats of other packages are found through the entry points ``sketchshift.formats``: the
    end of a name, and the opener.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> def open_bars(path, request):
    ...     return np.loadtxt(path, delimiter="|", ndmin=2)
    >>> ss.data.register_format(".bars", open_bars)
    """
    ends = (
        list(suffixes)
        if isinstance(suffixes, Sequence) and not isinstance(suffixes, str)
        else [suffixes]
    )
    for end in ends:
        if not isinstance(end, str) or not end.startswith(".") or end.lower() in (".", ".sketch"):
            must = "ends of file names such as '.fits', other than '.sketch'"
            raise parameter_error("register_format", "suffixes", must, suffixes)
    if not ends or not callable(opener):
        must = "at least one end of a name" if not ends else "a function of a path and a request"
        name, value = ("suffixes", suffixes) if not ends else ("opener", opener)
        raise parameter_error("register_format", name, must, value)
    _formats.update(dict.fromkeys((end.lower() for end in ends), opener))


def _openers() -> dict[str, Opener]:
    """The openers of all formats, registered here or by entry points."""
    return _formats | added("formats") | _formats


def known_suffixes() -> str:
    """The ends of names of files that are read, in words, without those of packed text."""
    *others, last = (end for end in _openers() if not end.endswith(PACKED))
    return ", ".join(others) + " or " + last


def first_suffixes() -> str:
    """The first end of a name of each format, for help texts."""
    firsts = {opener: end for end, opener in reversed(_openers().items()) if end not in LOOSE}
    return ", ".join(reversed(firsts.values()))


def is_data_file(path: Place) -> bool:
    """Whether a file is data, by the end of its name."""
    return path.name.lower().endswith(tuple(_openers()))


def _suffix_of(path: Place) -> str | None:
    """The end of a name that tells the format of a file: the longest that is known."""
    name = path.name.lower()
    return max((end for end in _openers() if name.endswith(end)), key=len, default=None)


def _opener_of(path: Place) -> Opener:
    end = _suffix_of(path)
    if end is not None:
        return _openers()[end]
    if path.suffix.lower() == ".sketch":
        raise DataError(f"{str(path)!r} is a sketch, not data. ", LoadSketch(str(path)))
    msg = f"cannot tell the format of {str(path)!r}: its name does not end in {known_suffixes()}."
    raise DataError(msg)


def _open_file(path: Place, request: Request) -> Source:
    """Open a file; the values of its folders' names are columns of it, too."""
    open_other = None if path.is_file() and is_data_file(path) else find_source(path)
    if open_other is not None:
        return open_other(request)
    opened = _open_alone(path, request := request.of_file(path))
    is_added = request.beyond and request.key_names
    return _opener_in("data.hive", "add_values")(opened, request) if is_added else opened


def _open_alone(path: Place, request: Request) -> Source:
    """Open a file; what its format gives is made a source that can be read again."""
    first = _call_opener(path, request)
    if isinstance(first, Source):
        return first
    opened = _open_result(first, path, request)

    def read() -> Iterator[Block]:
        first_row, again = 0, _call_opener(path, request)
        if again is first and isinstance(again, Iterator):
            msg = (
                f"the reader of {str(path)!r} returned the same iterator twice, whose first rows "
                "are gone. It must open the file anew each time it is called."
            )
            raise DataError(msg)
        blocks = _open_result(again, path, request)
        if blocks.columns != opened.columns:
            raise DataError(f"the columns of {str(path)!r} changed while it was read.")
        with report_damage(str(path), ValueError):
            for block in blocks:
                yield replace(block, source=str(path), first_row=first_row)
                first_row += len(block.values)

    d, vector = opened.n_features, opened.vector
    return Source(opened.columns, d, opened.n_rows, read, Access.DISK, vector=vector)


def _call_opener(path: Place, request: Request) -> Any:
    with report_damage(str(path), ValueError):
        opener = _opener_of(path)
        if isinstance(path, RemotePath) and opener not in _read_stores:
            return opener(_copy_of(path, path.stat().mark), request)
        return opener(path, request)


@cache
def _copy_of(path: RemotePath, _: str) -> Path:
    """A copy on this machine, for readers that know no stores; removed when Python ends."""
    with opened_for_now(path.name) as file:
        copyfileobj(path.open("rb", CHUNK_BYTES), file, CHUNK_BYTES)
    return Path(file.name)


def _open_result(data: Any, path: Place, request: Request) -> Source:
    if isinstance(data, Iterator):
        with report_damage(str(path), ValueError):
            return open_iterator(data, request)
    opened = open_in_memory(data, request)
    if opened is None:
        msg = (
            f"the reader of {str(path)!r} returned a {type(data).__name__}. It must return an "
            "array, a data frame, an Arrow table or stream, or an iterator of such blocks."
        )
        raise DataError(msg)
    return opened


def _import_opener(module: str, name: str) -> Opener:
    """An opener of this room, whose libraries are imported when a file turns up."""

    def opener(path: Place, request: Request) -> Any:
        return _opener_in(module, name)(path, request)

    _read_stores.add(opener)
    return opener


def _opener_in(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"sketchshift.{module}"), name)
    return found


register_format(".parquet", _import_opener("data.arrow", "open_parquet"))
for _ends in ((".csv", ".txt", ".dat"), (".tsv", ".tab")):
    _packed = [f"{_end}{_pack}" for _end in _ends for _pack in PACKED]
    register_format((*_ends, *_packed), _import_opener("data.text_files", "open_delimited"))
register_format((".arrow", ".feather", ".ipc"), _import_opener("data.arrow", "open_ipc"))
register_format(".npy", _import_opener("data.npy", "open_npy"))
register_format(".safetensors", _import_opener("data.safetensors", "open_safetensors"))

# Databases and tables of lakes, which other rooms read.


def ask(data: Any, query: str | None = None) -> Any:
    """Data as it is; the address of a database, or data with a query, as what is asked.

    Parameters
    ----------
    data : anything
        With a query an address, a file or a connection of a database.
    query : str or None
        One SELECT, or the name of a table.
    """
    if query is None and not (isinstance(data, str) and "://" in data):
        return data
    asked = first_answer("queries", data, query)
    return data if asked is None else asked


def find_source(data: Any) -> Callable[[Request], Source] | None:
    """What opens data that is no file: a query, a connection, a table of a lake; else None."""
    found: Callable[[Request], Source] | None = first_answer("sources", data)
    return found


# Collections that lie on many machines, by their type or its library.

Collections: TypeAlias = str | type

_engines: dict[Collections, Callable[[], Any]] = {}


def register_collections(collections: Collections, find: Callable[[], Any]) -> None:
    """Say who reads collections of a type, or of all types of a library.

    Parameters
    ----------
    collections : str or type
        The name of a package, such as ``"dask"``, or a class.
    find : callable
        Imports and returns the engine; called when such a collection turns up.
    """
    _engines[collections] = find


def is_collection(data: Any) -> bool:
    """Whether an engine reads the data; nothing is imported."""
    return _finder_of(data) is not None


def find_engine(data: Any) -> Any:
    """The engine that reads a collection; None for data that is read here."""
    find = _finder_of(data)
    return None if find is None else find()


def _finder_of(data: Any) -> Callable[[], Any] | None:
    kinds = (*type(data).__mro__, type(data).__module__.partition(".")[0])
    return next((_engines[kind] for kind in kinds if kind in _engines), None)


# Paths, folders and globs, read as one source.
#
# Expands what was asked into files in a fixed order, lets the opener of each suffix open them, and
# checks that all deliver the same columns. Only headers are read before the first block.


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
    opened = _open_all(files, request)
    first = opened[0]
    sizes = [
        file.stat().st_size if file.is_file() else source.n_bytes or 0
        for file, source in zip(files, opened, strict=True)
    ]
    counts = [source.n_rows for source in opened]
    known = [count for count in counts if count is not None]
    n_rows = sum(known) if len(known) == len(counts) else None

    def read() -> Iterator[Block]:
        return _read_files(files, opened, sizes)

    def pieces() -> Iterator[Piece]:
        return _pieces(files, opened, sizes)

    def across(n_rows_wanted: int, n_places: int, seed: int) -> Iterator[Block]:
        shares = share_out(sizes if n_rows is None else known, n_rows_wanted, n_places, seed)
        return _read_across(files, opened, shares, seed)

    d, costs = first.n_features, [source.place_bytes for source in opened if source.place_bytes]
    of_files = (Access.DISK, sum(sizes), across, pieces, first.vector, max(costs, default=None))
    return Source(first.columns, d, n_rows, read, *of_files)


def _open_all(files: Sequence[Place], request: Request) -> list[Source]:
    """All files, in the column order of the first; of lists without rows, as wide as the others."""
    first = _open_file(files[0], request)
    if not first.n_features:
        widths = (_open_file(file, request).n_features for file in files[1:])
        request = replace(request, n_features=next(filter(None, widths), None))
        first = _open_file(files[0], request)
    request = replace(request, n_features=first.n_features)
    open_one = partial(_open_alike, request=request, first=first, first_path=files[0])
    return [first, *map_ahead(open_one, files[1:], files[0], FILES_AHEAD)]


def _refuse_twice(files: Sequence[Place]) -> None:
    times = Counter(file.resolve() for file in files)
    twice = [str(file) for file in files if times[file.resolve()] > 1]
    if twice:
        msg = f"{twice[0]!r} is given twice: its rows would count twice. Name each file once."
        raise DataError(msg)


def expand(path: str | PathLike[str]) -> list[Place]:
    """Files meant by a path: itself, all in the folder, all that match the glob; "-" is stdin."""
    if path == "":
        msg = "cannot read the path '': it is empty. Use '.' for the current folder."
        raise DataError(msg)
    if path == "-":
        return [spool_stdin()]
    given = parse_path(path)
    if given.is_file() and is_data_file(given):
        return [given]
    if find_source(path) is not None:
        return [given]
    if given.is_dir():
        return _files_in(given)
    if given.exists():
        _opener_of(given)
        return [given]
    if any(sign in str(given) for sign in "*?["):
        return [file for match in _matches(given) for file in expand(match)]
    msg = f"there is no file or folder {without_password(str(given))!r}."
    raise DataError(msg)


# Standard input goes to a file first: a plan draws rows from all along the data before the pass
# that sketches them, and Parquet is read from its end. So memory stays flat, and disk is used.

BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",  # the stream form
    b"\x93NUMPY": ".npy",
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"\xfd7zXZ\x00": ".csv.xz",
    b"PK\x03\x04": ".csv.zip",
}
COPIED_BYTES, PATIENCE_S = 2**20, 2.0
FILES_AHEAD = 16  # of a store, opened at a time
PATH_TEXT = methodcaller("as_posix")


@cache
def spool_stdin() -> Path:
    """Copy standard input to a temporary file, once in a process.

    Returns
    -------
    path : Path
        Its name ends as the first bytes say: Parquet, Arrow, NumPy, packed text, or else text. It
        is removed when Python ends.
    """
    stdin = sys.stdin.buffer
    if sys.stdin.isatty():
        msg = "'-' reads standard input, and nothing is piped into it. As in: cat x.csv | ... -"
        raise DataError(msg)
    first = stdin.read(COPIED_BYTES)
    if not first:
        raise DataError("there are no rows: standard input is empty.")
    end = next((end for start, end in BEGINNINGS.items() if first.startswith(start)), ".csv")
    began, is_told = time.monotonic(), False
    with opened_for_now(f"stdin{end}") as file:
        for part in chain([first], iter(partial(stdin.read, COPIED_BYTES), b"")):
            file.write(part)
            if not is_told and time.monotonic() - began > PATIENCE_S:
                sys.stderr.write(f"standard input is copied to {file.name} before it is read\n")
                is_told = True
    return Path(file.name)


def pick_files(folder: Place, below: Iterable[Place]) -> list[Place]:
    """Those that are read of all that lies below a folder, sorted by name."""
    found = sorted(below, key=PATH_TEXT)
    for path in found:
        _refuse_log(path, folder)
    files = [
        file
        for file in found
        if is_data_file(file) and file.is_file() and not _is_hidden(file.relative_to(folder))
    ]
    return [file for file in files if not _is_loose(file)] or files


def _refuse_log(path: Place, folder: Place) -> None:
    """Refuse to read a folder as files where something in it is of the log of a table.

    Parameters
    ----------
    path : path
        A file or folder below the folder, here or in a store: these list files alone.
    folder : path
        What was asked for.
    """
    log = next((one for one in (path, path.parent) if one.name == "_delta_log"), None)
    if log is None and not path.name.endswith(".metadata.json"):
        return
    table, hint = path.parent.parent if log is None else log.parent, ""
    if "://" in str(table):
        hint = ", as iceberg://catalog/namespace.table" if log is None else f": delta+{table}"
    msg = (
        f"the folder {str(folder)!r} has the table {str(table)!r} in it, not all of whose files "
        f"count. Name the table itself{hint}."
    )
    raise DataError(msg)


def _files_in(folder: Place) -> list[Place]:
    files = pick_files(folder, folder.rglob("*"))
    if not files:
        hint = " Pass lance.dataset(...) of it." if folder.suffix.lower() == ".lance" else ""
        msg = f"the folder {str(folder)!r} has no file that ends in {known_suffixes()}.{hint}"
        raise DataError(msg)
    return files


def _is_loose(file: Place) -> bool:
    end = _suffix_of(file)
    return end is not None and end.startswith(LOOSE)


def _matches(pattern: Place) -> list[Place]:
    matches: list[Place]
    if isinstance(pattern, RemotePath):
        matches = [*pattern.matches()]
    else:
        root = Path(pattern.anchor)
        matches = sorted(root.glob(str(pattern.relative_to(pattern.anchor))), key=PATH_TEXT)
    matches = [match for match in matches if not _is_hidden(_parts_to_check(match, pattern))]
    if not matches:
        msg = f"no file matches {str(pattern)!r}."
        raise DataError(msg)
    return matches


def _parts_to_check(match: Place, pattern: Place) -> PurePath:
    """The parts of a match that may be hidden from the pattern.

    Not those whose first sign it spells, as ``.x*`` does, nor a file of data that only begins
    with ``_``: whoever writes a glob means all files of that name.
    """
    is_data = is_data_file(match) and match.is_file()
    parts = match.parts[:-1] if is_data and match.name.startswith("_") else match.parts
    return PurePath(*(part for part in parts if not _is_spelled(part, pattern)))


def _is_spelled(part: str, pattern: Place) -> bool:
    return any(part[0] == p[0] and fnmatchcase(part, p) for p in pattern.parts)


def _is_hidden(path: PurePath) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _open_alike(path: Place, request: Request, first: Source, first_path: Place) -> Source:
    """Open a later file, in the column order of the first one."""
    opened = _open_file(path, request)
    if _layout(opened) == _layout(first):
        return opened
    if opened.columns is None or first.columns is None:
        facts = f"  {first_path}: {_shape(first)}\n  {path}: {_shape(opened)}"
    elif set(opened.columns) == set(first.columns):
        return _open_file(path, replace(request, columns=first.columns))
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


def _layout(source: Source) -> tuple[Any, ...]:
    return source.columns, source.vector, source.n_features


def _shape(source: Source) -> str:
    if source.vector is not None:
        return f"vectors of {counted(source.n_features, 'number')} in column {source.vector!r}"
    if source.columns is None:
        return f"{source.n_features} columns without names"
    return f"columns {listed(source.columns)}"


def _read_files(
    files: Sequence[Place], opened: Sequence[Source], sizes: Sequence[int]
) -> Iterator[Block]:
    before = 0
    for file, source, size in zip(files, opened, sizes, strict=True):
        yield from _share_of_all(source, before, size, sum(sizes))
        check_unchanged(file)
        before += size


def _share_of_all(blocks: Iterable[Block], before: int, size: int, total: int) -> Iterator[Block]:
    """Blocks of one file, with the share of all files read so far."""
    for block in blocks:
        share = 1.0 if block.done is None else block.done
        yield replace(block, done=(before + share * size) / max(total, 1))


def _pieces(
    files: Sequence[Place], opened: Sequence[Source], sizes: Sequence[int]
) -> Iterator[Piece]:
    """The pieces of all files; one that cannot be cut is a piece by itself."""

    def read(piece: Piece, before: int, size: int, first_row: int) -> Iterator[Block]:
        yield from _share_of_all(piece.read(first_row), before, size, sum(sizes))
        check_unchanged(piece.path)

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
    files: Sequence[Place],
    opened: Sequence[Source],
    shares: Iterable[tuple[int, int, int]],
    seed: int,
) -> Iterator[Block]:
    for part, n_rows, n_places in shares:
        source = opened[part]
        across = source.across or by_position(source.read)
        yield from across(n_rows, n_places, seed + part)
        check_unchanged(files[part])


# Which opener reads what lies in memory, without importing what is not needed.
#
# The library an object comes from is told by its type: a NumPy user never waits for
# pyarrow or narwhals to load.


def open_in_memory(data: Any, request: Request) -> Source | None:
    """Open an array, sparse matrix, frame or Arrow object; ``None`` for anything else."""
    if isinstance(data, np.ndarray):
        return open_array(data, request)
    if hasattr(data, "open_rows"):  # it reads by what is asked for, as the rows of messages do
        opened: Source = data.open_rows(request)
        return opened
    if _is_sparse(data):
        return open_sparse(data, request)
    open_other = find_source(data)
    if open_other is not None:
        return open_other(request)
    library = type(data).__module__.partition(".")[0]
    if is_collection(data):
        msg = (
            f"cannot read a {library} collection here: it lies on many machines. Use ss.plan, "
            "ss.sketch, ss.sketch_by or an estimator's fit, which read it there."
        )
        raise DataError(msg)
    if library != "pyarrow" and _is_frame(data):
        from sketchshift.data.frames import open_frame

        return open_frame(data, request)
    is_arrow = any(kind.__module__.startswith("pyarrow.") for kind in type(data).__mro__)
    if is_arrow or _speaks_arrow(data):
        from sketchshift.data.arrow import open_arrow

        return open_arrow(data, request)
    if library == "torch" and hasattr(data, "detach"):
        return open_tensor(data, request)
    if hasattr(data, "__array__") and not isinstance(data, type):
        return open_array(as_array(data), request)
    if hasattr(data, "__dlpack__") and not isinstance(data, type):
        return open_array(as_array(np.from_dlpack(data)), request)
    return None


def gather_vectors(data: Any) -> RealArray | None:
    """Rows in memory that NumPy alone would not find, as one array.

    Parameters
    ----------
    data : anything
        A table whose only column holds vectors, a tensor of PyTorch, or an array of numbers that
        NumPy does not know itself, such as bfloat16.

    Returns
    -------
    rows : array of shape (N, d) or None
        None for any other data.
    """
    if isinstance(data, np.ndarray):
        values = native(data) if data.dtype.kind == "V" else data
        return None if values.dtype == data.dtype else values
    is_tensor = type(data).__module__.partition(".")[0] == "torch"
    if not is_tensor and tuple(getattr(data, "shape", ()))[1:] != (1,):
        return None
    opened = open_in_memory(data, Request())
    if opened is None or not (is_tensor or opened.vector is not None):
        return None
    return np.concatenate([np.empty((0, opened.n_features), bool), *(b.values for b in opened)])


def is_table(item: Any) -> bool:
    """Whether an item of a list is a block of rows rather than one row."""
    return getattr(item, "ndim", None) == 2 or hasattr(type(item), "columns") or _speaks_arrow(item)


def _is_sparse(data: Any) -> bool:
    scipy_sparse = sys.modules.get("scipy.sparse")  # who has such a matrix has imported it
    return scipy_sparse is not None and bool(scipy_sparse.issparse(data))


def _is_frame(data: Any) -> bool:
    if not (_speaks_arrow(data) or hasattr(type(data), "columns") or hasattr(data, "to_frame")):
        return False
    from sketchshift.data.frames import is_frame

    return is_frame(data)


def _speaks_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


# Iterators, generators and lists whose items are blocks of rows.
#
# Items are arrays, frames, tables or batches, and are taken one at a time. Arrays are copied, so
# that an iterator may fill the same one again. Every item must have the columns of the first.


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
    request = replace(request, n_features=opened.n_features)

    if isinstance(items, Sequence):
        return replace(opened, read=lambda: _read_items(iter(items), opened, request))
    blocks = _read_items(chain([first], iterator), opened, request)
    return replace(opened, read=read_once(blocks, "an iterator of blocks"), access=Access.ONCE)


def _read_items(items: Iterator[Any], first: Source, request: Request) -> Iterator[Block]:
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
    elif set(other.columns or ()) != set(first.columns or ()) or other.vector != first.vector:
        facts = f"has {_names(other)}, but block 0 has {_names(first)}"
    else:
        return
    msg = f"ragged blocks: block {number} (counting from 0) {facts}. Give all the same columns."
    raise DataError(msg)


def _names(source: Source) -> str:
    if source.vector is not None:
        return f"vectors in column {source.vector!r}"
    return "no column names" if source.columns is None else f"columns {listed(source.columns)}"


def open_source(
    data: Any,
    *,
    columns: Sequence[str] | Recipe | None = None,
    default_columns: Sequence[str] | Recipe | None = None,
    weights: str | ArrayLike | None = None,
    block_rows: int | None = None,
    keys: Any = None,
    n_features: int | None = None,
    skip_invalid: bool = False,
    beside: str = "nothing",
    dialect: Any = None,
    may_count: Callable[[Any], bool] | None = None,
) -> Source:
    """Open any data as a stream of blocks; rows are read when the result is iterated.

    Parameters
    ----------
    data : array, sparse matrix, frame, Arrow data, path(s) or iterable of blocks
        NumPy arrays and memory maps, nested lists, SciPy sparse, pandas, Polars and
        other frames, Arrow tables, streams and datasets (DuckDB results too); a path,
        folder or glob, or a list of them (.parquet, .csv, .tsv, .arrow, .feather,
        .ipc, .npy, .safetensors, .duckdb, .sqlite); a :class:`Query` or the address of a
        database; or an iterable whose items are any of these but paths.
    columns : sequence of str or Recipe, optional
        Names of the columns to deliver, in this order, or how to make numbers of them. Default: all
        but weights and keys.
    default_columns : sequence of str or Recipe, optional
        Names to take when ``columns`` is None and the data has names; data without names
        is then read by position.
    weights : str or array of shape (N,), optional
        Column of weights, or the weights themselves where the length is known.
    block_rows : int, optional
        Most rows per block. Default: about 2 MiB of float64, 256 to 65536 rows.
    keys : str, sequence of str or array of shape (N,), optional
        Columns to deliver apart, of any type, as the keys of the rows; or the keys themselves
        where the length is known.
    n_features : int, optional
        Length of the vectors of a column of lists that has none to show.
    skip_invalid : bool
        Whether vectors that are missing, or have another length than the others, are delivered as
        NaN. Default: they are an error that names the row.
    beside : {"nothing", "others", "all"}
        Which columns are delivered as they are, as keys: "others" takes columns of numbers alone,
        if none are named, and delivers all others so; "all" delivers every column so, as well.
    dialect : Dialect, optional
        How text files are written. Default: that is found out from each file.
    may_count : callable, optional
        Says of an Arrow table with a row of keys whether rows with these have to be delivered.

    Returns
    -------
    source : Source
        Its columns and dimension are known and checked. Iterating holds about one
        block in memory beside the data, for files about one block or row group.

    Raises
    ------
    DataError
        If this cannot be read as rows of numbers with the columns asked for.
    """
    request = make_request(
        columns,
        weights,
        block_rows,
        default_columns,
        keys,
        n_features,
        skip_invalid=skip_invalid,
        beside=beside,
        dialect=dialect,
        may_count=may_count,
    )
    data = ask(data)
    if isinstance(data, str | PathLike):
        return open_files([data], request)
    if isinstance(data, list | tuple):
        return _open_list(data, request)
    opened = open_in_memory(data, request)
    if opened is not None:
        return opened
    if isinstance(data, Iterable) and not isinstance(data, bytes | bytearray | Mapping | Set):
        return open_iterator(data, request)
    msg = (
        f"cannot read data of type {type(data).__name__}. Pass an array of shape "
        "(rows, columns), a sparse matrix, a data frame, an Arrow table, stream or dataset, "
        "a path, folder or glob (or a list of them), or an iterator of blocks."
    )
    raise DataError(msg)


def _open_list(data: Sequence[Any], request: Request) -> Source:
    if not data:
        msg = f"there are no rows: the {type(data).__name__} is empty."
        raise DataError(msg)
    are_paths = [isinstance(item, str | PathLike) for item in data]
    if all(are_paths):
        return open_files(data, request)
    if any(are_paths):
        msg = (
            f"cannot read a {type(data).__name__} that mixes paths and other data "
            f"(item {are_paths.index(True)} is a path). Pass paths only, or blocks only."
        )
        raise DataError(msg)
    open_other = find_source(data[0]) if len(data) == 1 else None
    if open_other is not None:
        return open_other(request)
    if is_table(data[0]):
        return open_iterator(data, request)
    return open_array(as_array(data), request)
