"""Every single run, in one Parquet file a figure: what is there is not run again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sketchshift._writing import opened_atomically
from sketchshift.errors import DataError

__all__ = ["KEY", "Row", "Store", "commit"]

Row = dict[str, Any]

KEY = ("dataset", "decoder", "m", "sigma", "L", "seed", "settings")
TEXTS = ("figure", "dataset", "decoder", "settings", "version", "commit")
INTEGERS = ("d", "m", "L", "seed", "n_samples")
SAVE_EVERY = 2.0  # seconds between writes


class Store:
    """The runs of one figure, written to disk every few seconds and when asked.

    Parameters
    ----------
    path : Path
        A Parquet file; read if it exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = _read(path) if path.exists() else []
        self._by_key = {key_of(row): row for row in rows}
        self._saved = time.monotonic()

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return key_of(row) in self._by_key

    @property
    def rows(self) -> list[Row]:
        """All runs, in the order in which they were added."""
        return list(self._by_key.values())

    def find(self, row: Mapping[str, Any]) -> Row | None:
        """The stored run of the same key."""
        return self._by_key.get(key_of(row))

    def add(self, rows: Iterable[Row]) -> None:
        """Keep finished runs; write them if the last time was a while ago."""
        self._by_key.update((key_of(row), row) for row in rows)
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write all runs; a reader never sees half a file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._by_key:
            return
        rows = self.rows
        names = list(dict.fromkeys(name for row in rows for name in row))
        schema = pa.schema([(name, _type(name)) for name in names])
        table = pa.Table.from_pylist(rows, schema=schema)
        with opened_atomically(self.path) as file:
            pq.write_table(table, file)
        self._saved = time.monotonic()

    def forget(self) -> None:
        """Drop all runs, on disk too."""
        self._by_key.clear()
        self.path.unlink(missing_ok=True)


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two runs the same."""
    return tuple(row[name] for name in KEY)


def commit() -> str:
    """The commit of the code, with a plus where files differ from it; "" outside of git."""
    here = Path(__file__).resolve().parent
    if not any((parent / ".git").exists() for parent in here.parents[:4]):
        return ""
    try:
        words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
        done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _read(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        msg = f"{str(path)!r} is not a readable Parquet file. Delete it to start again."
        raise DataError(msg) from error
    if not set(KEY) <= set(table.column_names):
        raise DataError(f"{str(path)!r} holds no runs of this program. Choose another folder.")
    rows: list[Row] = table.to_pylist()
    # columns that other contenders have are null here: they were never measured
    kept = {*KEY, *TEXTS, *INTEGERS}
    return [{n: v for n, v in row.items() if v is not None or n in kept} for row in rows]


def _type(name: str) -> Any:
    import pyarrow as pa

    if name in TEXTS:
        return pa.string()
    return pa.int64() if name in INTEGERS else pa.float64()
