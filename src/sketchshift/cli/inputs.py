"""What commands are given: data, sketches, tables of sketches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import click
import numpy as np

from sketchshift._paths import Place, RemotePath, arrow_file, parse_path, shown
from sketchshift._text import rows_in_words, without_password
from sketchshift._times import PERIODS
from sketchshift._typing import FloatArray
from sketchshift.cli.options import (
    Options,
    list_typed,
    metric_option,
    on_invalid_option,
    query_option,
    scale_option,
    table_options,
    weights_option,
)
from sketchshift.cli.output import (
    QUERY,
    check_output,
    keys_in_words,
    note,
    quote,
    show_progress,
)
from sketchshift.data.open import ask, find_source
from sketchshift.decoders import Decoding, shares
from sketchshift.decoders.decoder import uses_cells
from sketchshift.errors import DataError, ScaleHint, SpecError
from sketchshift.features import SketchSpec
from sketchshift.privacy import PrivateSketch
from sketchshift.profiling.survey import Survey, survey
from sketchshift.sketch import AnySketch, Sketch, SketchTable, load
from sketchshift.sketch.file import MAGIC, PRIVATE_MAGIC, is_cube, name_file

__all__ = [
    "OF_DATA",
    "Data",
    "Inputs",
    "KeyCounts",
    "check_rows",
    "data_files",
    "has_magic",
    "input_options",
    "is_table",
    "keep_checkpoint",
    "key_columns",
    "load_any",
    "load_raw",
    "load_sum",
    "load_table",
    "look_at",
    "look_into",
    "paths_of",
    "read_data",
    "read_spec",
    "size_of",
    "sketch_files",
]

# Paths on the command line: data, sketches meant by a glob, plans, checkpoints.


Data: TypeAlias = Any
"""What data is read from: a file, or a query of a database."""


def data_files(data: Sequence[str]) -> list[Data]:
    """Files meant by paths, folders and globs of data; or the database that is asked."""
    from sketchshift.data.open import expand

    ctx = click.get_current_context(silent=True)
    text = None if ctx is None else ctx.meta.get(QUERY)
    if text is not None or any(map(_is_database, data)):
        if len(data) > 1:
            msg = f"a database is read by itself. Give {without_password(str(data[0]))!r} alone."
            raise click.UsageError(msg)
        return [ask(data[0], text)]
    files = [file for path in data for file in expand(path)]
    if is_table(files[0]):
        msg = (
            f"{str(files[0])!r} is a table of sketches, not data. Cluster it: sketchshift cluster "
            f"{quote(str(files[0]))} -k auto"
        )
        raise click.UsageError(msg)
    return [*files]


def _is_database(path: str) -> bool:
    return ask(path) is not path


def paths_of(data: Sequence[Data]) -> list[Place]:
    """Those of the inputs that are files, of this machine or of a store."""
    return [file for file in data if isinstance(file, Path | RemotePath)]


def sketch_files(paths: Sequence[str]) -> list[Place]:
    """Files meant by paths and quoted globs of sketches, each once.

    Parameters
    ----------
    paths : sequence of str
        A path that does not exist and holds ``*``, ``?`` or ``[`` is a glob.

    Returns
    -------
    files : list of Place
        Those of a glob sorted by name. A file given twice is misuse, since its rows would
        count twice.
    """
    files = [file for path in paths for file in _expand(path)]
    seen: set[Place] = set()
    for file in files:
        if file.resolve() in seen:
            msg = f"{str(file)!r} is given twice, and its rows would count twice. Give it once."
            raise click.UsageError(msg)
        seen.add(file.resolve())
    return files


def is_table(file: Place) -> bool:
    """Whether it is a table of sketches: Parquet with bytes ``sketch``, or a cube with keys."""
    if file.is_dir():
        return is_cube(file) and bool(load(file).by)
    if not file.is_file():  # a table of a lake
        return False
    with file.open("rb") as opened:
        if opened.read(4) != b"PAR1":
            return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(arrow_file(file, "bits"))
        if "sketch" not in schema.names:
            return False
        kind = schema.field("sketch").type
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return False  # its reader will say what is wrong
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def has_magic(file: Place, *magics: bytes) -> bool:
    """Whether a file begins as a sketch does, raw or private; or with one of the bytes given."""
    if file.is_dir():
        return False
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) in (magics or (MAGIC, PRIVATE_MAGIC))


def load_any(path: Place) -> Sketch | PrivateSketch:
    """A sketch, raw or private as its first bytes say; of a cube that of all its rows."""
    if is_cube(path):
        whole: Sketch = load(path).merge()
        return whole
    if not has_magic(path):
        return load_raw(path)
    sketch: Sketch | PrivateSketch = load(path)
    return sketch


def load_raw(path: Place) -> Sketch:
    """A raw sketch; data, or what is not even data, is refused by name."""
    from sketchshift.data.open import is_data_file, known_suffixes

    if not has_magic(path) and is_data_file(path):
        msg = (
            f"{str(path)!r} is data. Take its sketch first: sketchshift sketch "
            f"{quote(str(path))} -k 10 -o day1.sketch"
        )
        raise click.UsageError(msg)
    if not has_magic(path) and path.suffix.lower() != ".sketch":
        msg = (
            f"{path}: the first bytes are not those of a sketch file, and data is read from files "
            f"that end in {known_suffixes()}."
        )
        raise DataError(msg)
    with name_file(path):
        return Sketch.from_bytes(path.read_bytes())


def read_spec(path: str | Place) -> SketchSpec:
    """The spec in a plan file; what is wrong with it is said with its name."""
    try:
        text = parse_path(path).read_text(encoding="utf-8")
    except OSError as error:
        hint = "Write one with `sketchshift plan`."
        fact = f"cannot read the plan {shown(str(path))!r}: {error.strerror}"
        raise DataError(f"{fact}. {hint}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: a plan must be JSON, and this is not text.") from error
    try:
        return SketchSpec.from_json(text)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


@contextmanager
def keep_checkpoint(path: str | None, others: Sequence[Place]) -> Iterator[Place | None]:
    """The checkpoint of a pass, removed once the body has written its result.

    Parameters
    ----------
    path : str or None
        As the user gave it.
    others : sequence of Place
        Files that are read or written; the checkpoint must not be one of them.

    Yields
    ------
    checkpoint : Path or None
        Where it goes.
    """
    if path is None:
        yield None
        return
    checkpoint = check_output(path)
    if checkpoint in [other.resolve() for other in others]:
        msg = f"the checkpoint {path!r} is also read or written. Give it a name of its own."
        raise click.UsageError(msg)
    if checkpoint.exists():
        note(f"Going on from {path}: comparing what was read with what is there.")
    yield checkpoint
    checkpoint.unlink(missing_ok=True)


def _expand(path: str) -> list[Place]:
    if path == "-":
        from sketchshift.data.open import spool_stdin

        return [spool_stdin()]
    if _is_database(path):
        fact = f"{without_password(path)!r} is a database, not a sketch"
        raise DataError(f"{fact}. Take its sketch first: sketchshift sketch ... -o day1.sketch")
    given = parse_path(path)
    if is_cube(given):
        return [given]
    if given.is_dir():
        hint = f"Give its files, as in '{given / '*.sketch'}'."
        raise DataError(f"{shown(path)!r} is a folder, not a sketch. {hint}")
    if given.exists() or not any(sign in path for sign in "*?["):
        if not given.exists():
            raise DataError(f"there is no file {shown(path)!r}. Check the name and the folder.")
        return [given]
    matches: list[Place]
    if isinstance(given, RemotePath):
        matches = [*given.matches()]
    else:
        pattern = str(given.relative_to(given.anchor))
        matches = [*sorted(Path(given.anchor).glob(pattern), key=Path.as_posix)]
    files = [match for match in matches if match.is_file() and not match.name.startswith(".")]
    if not files:
        raise DataError(f"no file matches {shown(path)!r}. Check the pattern and the folder.")
    return files


# Tables of sketches on the command line: selected by ``--where``, added up.


def load_table(file: Place, where: str | None) -> SketchTable:
    """The slices of a table for which a condition holds; none of them is an error."""
    if is_cube(file):
        table: SketchTable = load(file).table(where)
    else:
        table = load(file, where=where)
    if not len(table):
        raise _no_slices(file, table.by, where)
    return table


def look_into(file: Place, where: str | None = None) -> tuple[Any, list[int], Sketch]:
    """Keys and numbers of rows of a table, and their sum; none of them is an error."""
    from sketchshift.sketch.stored import summarise_file

    keys, counts, whole = (
        _look_into_cube(file, where) if is_cube(file) else summarise_file(file, where)
    )
    if whole is None:
        raise _no_slices(file, keys.column_names, where)
    return keys, counts, whole


def _look_into_cube(path: Place, where: str | None) -> tuple[Any, list[int], Sketch | None]:
    cube = load(path)
    keys, counts = cube.summary(where)
    return keys, counts.tolist(), cube.merge(where) if len(counts) else None


def size_of(path: Place) -> int:
    """Bytes of a file, or of all files of a cube."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _no_slices(file: Place, by: Sequence[str], where: str | None) -> DataError:
    fact = f"no slice by {', '.join(by)} has {where}" if where else "it has no slices"
    return DataError(f"{file}: {fact}. `sketchshift inspect {quote(str(file))}` lists them.")


def load_sum(files: Sequence[Place], where: str | None = None) -> Sketch | PrivateSketch:
    """The sketch of all rows of sketches and tables, with a few of them in memory at a time.

    Parameters
    ----------
    files : sequence of Place
        At least one; all raw or all private.
    where : str or None
        Which slices of tables count; without tables it is misuse.

    Returns
    -------
    sketch : Sketch or PrivateSketch
        The sum, of the kind of the files.
    """
    tables = [file for file in files if is_table(file)]
    if where is not None and len(tables) < len(files):
        other = next(file for file in files if file not in tables)
        msg = f"--where selects slices of a table, and {str(other)!r} is a single sketch."
        raise click.UsageError(msg)
    parts = (look_into(file, where)[2] if file in tables else load_any(file) for file in files)
    return reduce(add, parts)


# What ``cluster`` and ``report`` are given: sketches or tables of them, or data to
# be read once.

S = TypeVar("S", bound=AnySketch)

MOST_KEYS = 24  # slices whose rows are shared out among clusters
AUTO = 20  # clusters that data is planned for with -k auto

input_options = Options(
    table_options, query_option, scale_option, on_invalid_option, weights_option, metric_option
)
"""How data is read."""

OF_DATA = (
    *("query", "columns", "exclude", "categories", "scale", "on_invalid", "weights", "metric"),
    "by",
)
"""Parameters that a sketch does not take."""

_UNSET: dict[str, Any] = dict.fromkeys((*OF_DATA, "where")) | {
    "scale": "auto",
    "on_invalid": "auto",
    "metric": "euclidean",
    "decoder": "turnkey",
    "seed": 0,
    "max_clusters": None,
}
"""Values of parameters that a command does not have."""


class Inputs:
    """Files on the command line, either all sketches and tables of them, or all data.

    Parameters
    ----------
    ctx : click.Context
        Of a command with :func:`input_options`.
    paths : sequence of str
        Files, folders of data, and quoted globs.
    """

    def __init__(self, ctx: click.Context, paths: Sequence[str]) -> None:
        self._params = _UNSET | ctx.params
        self.is_data, self.files = _files(paths)
        if not self.is_data:
            for flag in list_typed(ctx, OF_DATA):
                msg = f"{flag} says how data is read, and {str(self.files[0])!r} is a sketch."
                raise click.UsageError(msg)
        self.survey: Survey | None = None

    @property
    def paths(self) -> list[Place]:
        """The files that are read."""
        return paths_of(self.files)

    def count_keys(self, decoding: Decoding) -> KeyCounts | None:
        """How the slices of a table are distributed over clusters; None for anything else."""
        files = paths_of(self.files)
        if self.is_data or len(files) > 1 or not is_table(files[0]):
            return None
        table = load_table(files[0], self._params["where"])
        if len(table.by) != 1 or not 1 < len(table) <= MOST_KEYS:
            return None
        whole = table.merge()
        parts = [shares(decoding, part, reference=whole) for part in table.sketches]
        rows = np.array(parts).T * table.counts
        values = [value or "-" for value in keys_in_words(table.keys.column(0).to_pylist())]
        of_clusters = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
        return KeyCounts(table.by[0], values, of_clusters, table.counts / table.counts.sum())

    def sketch(self, n_clusters: int | Literal["auto"]) -> AnySketch:
        """Return the sketch of all rows; data is planned for and read once."""
        if not self.is_data:
            return check_rows(load_sum(self.paths, self._params["where"]), n_clusters)
        return self._read(n_clusters)[0]

    def load(self, n_clusters: int | Literal["auto"]) -> tuple[str, int, AnySketch | SketchTable]:
        """Load one sketch or table, or sketch data now; with its name and number of bytes."""
        name, where = self._params["file"], self._params["where"]
        if self.is_data:
            sketch, table = self._read(n_clusters)
            n_bytes = sum(part.nbytes for part in ([sketch] if table is None else table.sketches))
            return name, n_bytes, sketch if table is None else table
        if len(self.files) > 1:
            n = len(self.files)
            msg = f"{shown(name)!r} means {n} files. Merge them first, with `sketchshift merge`."
            raise click.UsageError(msg)
        path = self.paths[0]
        if not is_table(path):
            whole = load_sum([path], where)
            return shown(name), size_of(path), check_rows(whole, n_clusters)
        found = load_table(path, where)
        check_rows(found.merge(), n_clusters)
        return shown(name), size_of(path), found

    def _read(self, n_clusters: int | Literal["auto"]) -> tuple[Sketch, SketchTable | None]:
        """Plan for data and read it once."""
        params, by = self._params, self._params["by"]
        most = params["max_clusters"] or AUTO
        arguments = {
            "n_clusters": most if n_clusters == "auto" else n_clusters,
            "seed": params["seed"],
            "metric": params["metric"],
            "cells": uses_cells(params["decoder"].partition(":")[0]),
            "sample_weight": params["weights"],
        }
        with (
            warnings.catch_warnings(),
            show_progress("rows", "Looking at the table", then="Reading rows") as advance,
        ):
            self.survey, chosen = look_at(self.files, params, keys=key_columns(by))
            if params["scale"] == "none":  # units that differ were meant
                warnings.simplefilter("ignore", ScaleHint)
            result, table = read_data(self.files, by, arguments | chosen | {"progress": advance})
        check_rows(result, n_clusters)
        return result, table


def read_data(
    files: Sequence[Data], by: Sequence[str] | None, arguments: Mapping[str, Any]
) -> tuple[Sketch, SketchTable | None]:
    """The sketch of all rows, and the table of slices if it was asked for."""
    if by is None:
        from sketchshift.sketch import sketch

        return sketch(files, **arguments), None
    from sketchshift.sketch.slices import sketch_by

    table = sketch_by(files, by, **arguments)
    return table.merge(), table


def key_columns(by: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that keys are made of."""
    from sketchshift.sketch.keys import parse

    return () if by is None else tuple(key.column for key in parse(by))


@dataclass(frozen=True)
class KeyCounts:
    """How the slices of a table of sketches are distributed over clusters.

    Attributes
    ----------
    by : str
        The key.
    values : list of str
        Its values, in words.
    shares : array of shape (k, len(values))
        Of the rows of each cluster, those in each slice; rows add up to 1.
    of_all : array of shape (len(values),)
        The same for all rows.
    """

    by: str
    values: list[str]
    shares: FloatArray
    of_all: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        shares = {"shares": self.shares.tolist(), "of_all": self.of_all.tolist()}
        return {"by": self.by, "values": self.values, **shares}


def look_at(
    files: Sequence[Data], params: dict[str, Any], keys: Sequence[str] = ()
) -> tuple[Survey | None, dict[str, Any]]:
    """What a table holds, and the arguments with which it is planned for and read.

    Parameters
    ----------
    files : sequence of Place or Query
        Data.
    params : dict
        The values of some of :data:`input_options`.
    keys : sequence of str
        Columns that say which slice a row belongs to.

    Returns
    -------
    survey : Survey or None
        None for numbers without names: there is nothing to choose.
    arguments : dict
        Of :func:`sketchshift.plan` or :func:`sketchshift.sketch`.
    """
    from sketchshift.data import open_source

    params = _UNSET | params
    columns, weights, where = params["columns"], params["weights"], params["where"]
    scale, on_invalid = params["scale"], params["on_invalid"]
    source = open_source(
        files, columns=columns, weights=weights, skip_invalid=True, beside="others"
    )
    if source.columns is None:
        return None, _arguments_without_names(params, scale, on_invalid)
    named = params["categories"] or ()
    cycles = [name for name in named if name.partition("(")[0] in PERIODS and name.endswith(")")]
    categories = [name for name in named if name not in cycles]
    found = survey(
        files,
        columns=columns,
        exclude=params["exclude"] or (),
        categories="all" if categories == ["all"] else categories,
        cycles=cycles,
        scale=scale,
        on_missing=on_invalid,
        where=where,
        sample_weight=weights,
        keys=keys,
    )
    chosen = {"columns": found.choice, "standardize": found.standardize}
    return found, chosen | {"on_invalid": found.on_invalid, "where": where}


def _arguments_without_names(
    params: Mapping[str, Any], scale: str, on_invalid: str
) -> dict[str, Any]:
    """Return how numbers without names are read; options that need names are misuse."""
    given = [f"--{name}" for name in ("exclude", "categories", "where") if params[name]]
    given += ["--scale log"] * (scale == "log")
    given += [f"--on-invalid {on_invalid}"] * (on_invalid in ("mean", "column"))
    if given:
        raise click.UsageError(f"{given[0]} needs names of columns, and the data has none.")
    return {
        "columns": params["columns"],
        "standardize": "robust" if scale == "robust" else scale == "standard",
        "on_invalid": "raise" if on_invalid == "auto" else on_invalid,
    }


def check_rows(sketch: S, n_clusters: int | Literal["auto"]) -> S:
    """The sketch; one of fewer rows than clusters is an error."""
    if n_clusters != "auto" and sketch.count < n_clusters:
        msg = (
            f"there are {rows_in_words(sketch)}, too few for {n_clusters} clusters. Ask for fewer "
            "with -k, or give more data."
        )
        raise DataError(msg)
    return sketch


def _files(paths: Sequence[str]) -> tuple[bool, list[Data]]:
    """Whether the paths are data, and the files they mean."""
    if any(map(_is_database, paths)) or click.get_current_context().meta.get(QUERY) is not None:
        return True, data_files(paths)
    given = {path: parse_path(path) for path in paths}
    folders = [path for path, at in given.items() if at.is_dir() and not is_cube(at)]
    folders += [path for path in paths if path not in folders and find_source(path)]
    others = sketch_files([path for path in paths if path not in folders])
    sketches = [file for file in others if _is_sketch(file)]
    if folders or len(sketches) < len(others):
        if sketches:
            first = folders[0] if folders else next(f for f in others if f not in sketches)
            msg = (
                f"{str(sketches[0])!r} is a sketch and {str(first)!r} is data. Give one kind: "
                "`sketchshift sketch` makes a sketch of data with a --plan, to be merged."
            )
            raise click.UsageError(msg)
        return True, data_files(paths)
    return False, [*others]


def _is_sketch(file: Place) -> bool:
    """A file that says so, or that no reader of data would know."""
    from sketchshift.data.open import is_data_file

    return is_cube(file) or not is_data_file(file) or has_magic(file) or is_table(file)
