"""Names of tables of lakes: which path, address or object means a table of Delta or Iceberg.

Reads no log, and imports neither library: a folder that has a log is known by its files.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from sketchshift.errors import DataError

__all__ = ["Lake", "find_lake", "kind_of_table", "refuse_log"]


class Lake(NamedTuple):
    """A table of a lake, as it was asked for.

    Attributes
    ----------
    kind : {"delta", "iceberg"}
        Also the module that reads it.
    table : str
        A folder, a file of metadata, an address, or ``//catalog/namespace.table``.
    version : str or None
        As it was written behind the ``@``; None: the newest.
    """

    kind: str
    table: str
    version: str | None


LAKE_TYPES = {("deltalake", "DeltaTable"): "delta", ("pyiceberg", "Table"): "iceberg"}


def find_lake(path: str | PathLike[str]) -> Lake | None:
    """The table of a lake that a path or an address means; None for anything else.

    Parameters
    ----------
    path : str or path
        A folder with ``_delta_log``, one with ``metadata/*.metadata.json``, such a file, or an
        address: ``delta:/folder``, ``delta+s3://bucket/table``, ``delta:file:///folder``,
        ``iceberg:/folder``, ``iceberg://catalog/namespace.table``. Each with ``@`` and a version
        behind it, if it is not the newest that is meant. A path that made one slash of two is
        understood.
    """
    text = str(path)
    table, at, version = text.rpartition("@")
    if not at or "/" in version or Path(text).expanduser().exists():
        table, version = text, ""
    address = re.fullmatch(r"(delta|iceberg)(\+[a-z0-9]+)?:(.+)", table)
    if address is None:
        folder = Path(table).expanduser()
        kind = _kind_of_lake(folder)
        return None if kind is None else Lake(kind, str(folder.resolve()), version or None)
    kind, scheme, rest = address.groups()
    if scheme == "+file" or re.match("/*file:/", rest):
        rest = unquote(re.sub("^/*(file:)?/*", "/", rest))
    elif scheme is not None:
        rest = f"{scheme[1:]}://{rest.lstrip('/')}"
    elif kind == "delta" or _kind_of_lake(Path("/" + rest.lstrip("/"))) == "iceberg":
        rest = re.sub("^/*([a-z0-9]+):/+", r"\1://", re.sub("^/+", "/", rest))
    elif rest.startswith("/"):
        rest = "//" + rest.lstrip("/")
    folder = Path(rest).expanduser()
    return Lake(kind, str(folder.resolve()) if folder.exists() else rest, version or None)


def _kind_of_lake(path: Path) -> str | None:
    if (path / "_delta_log").is_dir():
        return "delta"
    is_file = path.name.endswith(".metadata.json") and path.is_file()
    return "iceberg" if is_file or any(path.glob("metadata/*.metadata.json")) else None


def refuse_log(path: Any, folder: Any) -> None:
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


def kind_of_table(data: Any) -> str | None:
    """The kind of a table of a lake that a library has opened."""
    names = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__)
    return next((LAKE_TYPES[name] for name in names if name in LAKE_TYPES), None)
