"""Names of tables of lakes: which path, address or object means a table of Delta or Iceberg.

Reads no log, and imports neither library: a folder that has a log is known by its files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from sketchshift._paths import expand_home

__all__ = ["Lake", "find_lake", "find_table", "kind_of_table", "lake_function"]


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
    if not at or "/" in version or expand_home(text).exists():
        table, version = text, ""
    address = re.fullmatch(r"(delta|iceberg)(\+[a-z0-9]+)?:(.+)", table)
    if address is None:
        folder = expand_home(table)
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
    folder = expand_home(rest)
    return Lake(kind, str(folder.resolve()) if folder.exists() else rest, version or None)


def _kind_of_lake(path: Path) -> str | None:
    if (path / "_delta_log").is_dir():
        return "delta"
    is_file = path.name.endswith(".metadata.json") and path.is_file()
    return "iceberg" if is_file or any(path.glob("metadata/*.metadata.json")) else None


def kind_of_table(data: Any) -> str | None:
    """The kind of a table of a lake that a library has opened."""
    names = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__)
    return next((LAKE_TYPES[name] for name in names if name in LAKE_TYPES), None)


def find_table(data: Any) -> Callable[[Any], Any] | None:
    """What opens a table of a lake, an address or a folder of one; None for any other data."""
    kind = kind_of_table(data)
    if kind is not None:
        return partial(lake_function(kind, f"open_{kind}_table"), data)
    lake = find_lake(data) if isinstance(data, str | PathLike) else None
    if lake is None:
        return None
    return partial(lake_function(lake.kind, f"open_{lake.kind}"), lake.table, lake.version)


def lake_function(kind: str, name: str) -> Callable[..., Any]:
    """A function of the module that reads a kind of tables, imported when one turns up."""
    found: Callable[..., Any] = getattr(import_module(f"sketchshift.live.{kind}"), name)
    return found
