"""A plugin of dbt-duckdb: ``merge_sketches(list(sketch))`` in every SQL model."""

from __future__ import annotations

from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin

import sketchshift as ss


def merge(sketches: list[bytes]) -> bytes:
    """The bytes of the sketch of all rows."""
    return sum(ss.Sketch.from_bytes(part) for part in sketches).to_bytes()


class Plugin(BasePlugin):
    """Tells each connection what merging is."""

    def configure_connection(self, conn: Any) -> None:
        """Register the function."""
        conn.create_function("merge_sketches", merge, ["BLOB[]"], "BLOB")
