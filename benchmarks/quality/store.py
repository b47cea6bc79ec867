"""Finished runs in a file of JSON lines, so that an interrupted benchmark goes on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from quality.runs import OURS, Run

KEY = tuple(field.name for field in dataclasses.fields(Run))


class Store:
    """Finished runs in a folder, the references among them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "runs.jsonl"
        self._facts = {_run_of(row): row for row in _read_lines(self._path)}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All that is known, sorted: the order in which runs end does not matter."""
        return [self._facts[run] for run in sorted(self._facts)]

    def __contains__(self, run: Run) -> bool:
        return run in self._facts

    def n_bytes(self, run: Run) -> int | None:
        """What our sketch had in the same place; None if that is not known yet."""
        row = self._facts.get(dataclasses.replace(run, method=OURS), {})
        return row.get("bytes")

    def add(self, run: Run, facts: dict[str, Any]) -> None:
        """Append a finished run, at once."""
        row = {**dataclasses.asdict(run), **facts}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._facts[run] = row

    def forget(self, runs: Collection[Run]) -> None:
        """Take out what has to be run again."""
        self._facts = {run: row for run, row in self._facts.items() if run not in set(runs)}
        part = self._path.with_suffix(".part")
        part.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        part.replace(self._path)


def _run_of(row: dict[str, Any]) -> Run:
    return Run(**{name: row[name] for name in KEY})


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines: an interrupted one is left out and its run repeated."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]
