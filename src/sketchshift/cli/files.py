"""Paths on the command line: outputs that can be written, sketches meant by a glob.

An output is checked before the data is read: a pass of hours must not end in "no such
folder". Neither may it replace one of its own inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sketchshift._writing import draft_of
from sketchshift.cli.facts import quoted
from sketchshift.errors import DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.privacy import PrivateSketch
from sketchshift.privacy import load as load_private
from sketchshift.sketch import Sketch, load
from sketchshift.sketch.format import MAGIC, PRIVATE_MAGIC

__all__ = [
    "check_output",
    "data_files",
    "has_magic",
    "is_table",
    "load_any",
    "load_raw",
    "read_spec",
    "sketch_files",
]


def check_output(output: str, inputs: Sequence[Path] = ()) -> Path:
    """The file to write, symbolic links followed, once it is sure that it can be written.

    Parameters
    ----------
    output : str
        As the user gave it.
    inputs : sequence of Path
        Files that are read; the output must not be one of them.

    Returns
    -------
    target : Path
        Nothing has been written to it yet.
    """
    try:
        target = Path(output).expanduser().resolve()
        if target.exists() and not target.is_file():
            kind = "a folder" if target.is_dir() else "not a regular file"
            raise DataError(f"cannot write {output!r}: it is {kind}. Give the name of a file.")
        if not target.parent.is_dir():
            fact = f"there is no folder {str(target.parent)!r}"
            raise DataError(f"cannot write {output!r}: {fact}. Make it first.")
        with draft_of(target):
            pass
    except OSError as error:
        msg = f"cannot write {output!r}: {error.strerror}. Choose another folder or name."
        raise DataError(msg) from error
    if any(path.resolve() == target for path in inputs):
        msg = f"the output {output!r} is also an input. Write to another file."
        raise click.UsageError(msg)
    return target


def data_files(data: Sequence[str]) -> list[Path]:
    """Files meant by paths, folders and globs of data."""
    from sketchshift.data.files import expand

    files = [file for path in data for file in expand(path)]
    if is_table(files[0]):
        msg = (
            f"{str(files[0])!r} is a table of sketches, not data. Cluster it: sketchshift cluster "
            f"{quoted(str(files[0]))} -k auto"
        )
        raise click.UsageError(msg)
    return files


def sketch_files(paths: Sequence[str]) -> list[Path]:
    """Files meant by paths and quoted globs of sketches, each once.

    Parameters
    ----------
    paths : sequence of str
        A path that does not exist and holds ``*``, ``?`` or ``[`` is a glob.

    Returns
    -------
    files : list of Path
        Those of a glob sorted by name. A file given twice is misuse, since its rows would
        count twice.
    """
    files = [file for path in paths for file in _expand(path)]
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:
            msg = f"{str(file)!r} is given twice, and its rows would count twice. Give it once."
            raise click.UsageError(msg)
        seen.add(file.resolve())
    return files


def is_table(file: Path) -> bool:
    """Whether a file is a table of sketches: Parquet with a column ``sketch`` of bytes."""
    with file.open("rb") as opened:
        if opened.read(4) != b"PAR1":
            return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(file)
        if "sketch" not in schema.names:
            return False
        kind = schema.field("sketch").type
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return False  # its reader will say what is wrong
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def has_magic(file: Path, *magics: bytes) -> bool:
    """Whether a file begins as a sketch does, raw or private; or with one of the bytes given."""
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) in (magics or (MAGIC, PRIVATE_MAGIC))


def load_any(path: Path) -> Sketch | PrivateSketch:
    """A sketch, raw or private as its first bytes say."""
    return load_private(path) if has_magic(path, PRIVATE_MAGIC) else load_raw(path)


def load_raw(path: Path) -> Sketch:
    """A raw sketch; data, or what is not even data, is refused by name."""
    from sketchshift.data.files import KNOWN_SUFFIXES, known_suffixes

    if not has_magic(path) and path.name.lower().endswith(KNOWN_SUFFIXES):
        msg = (
            f"{str(path)!r} is data. Take its sketch first: sketchshift sketch "
            f"{quoted(str(path))} -k 10 -o day1.sketch"
        )
        raise click.UsageError(msg)
    if not has_magic(path) and path.suffix.lower() != ".sketch":
        msg = (
            f"{path}: the first bytes are not those of a sketch file, and data is read from files "
            f"that end in {known_suffixes()}."
        )
        raise DataError(msg)
    return load(path)


def read_spec(path: str | Path) -> SketchSpec:
    """The spec in a plan file; what is wrong with it is said with its name."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        hint = "Write one with `sketchshift plan`."
        raise DataError(f"cannot read the plan {str(path)!r}: {error.strerror}. {hint}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: a plan must be JSON, and this is not text.") from error
    try:
        return SketchSpec.from_json(text)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def _expand(path: str) -> list[Path]:
    given = Path(path).expanduser()
    if given.is_dir():
        hint = f"Give its files, as in '{given / '*.sketch'}'."
        raise DataError(f"{path!r} is a folder, not a sketch. {hint}")
    if given.exists() or not any(sign in path for sign in "*?["):
        if not given.exists():
            raise DataError(f"there is no file {path!r}. Check the name and the folder.")
        return [given]
    pattern = str(given.relative_to(given.anchor))
    matches = sorted(Path(given.anchor).glob(pattern), key=Path.as_posix)
    files = [match for match in matches if match.is_file() and not match.name.startswith(".")]
    if not files:
        raise DataError(f"no file matches {path!r}. Check the pattern and the folder.")
    return files
