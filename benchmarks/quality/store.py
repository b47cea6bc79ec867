"""Finished runs in a file of JSON lines, so that an interrupted benchmark goes on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import sketchshift as ss
from quality.baselines import kmeans
from quality.datasets import Dataset
from quality.runs import Run

REFERENCE_SEEDS = range(5)
KEY = tuple(field.name for field in dataclasses.fields(Run))


class Store:
    """Finished runs and the references' errors, in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._runs, self._references = folder / "runs.jsonl", folder / "references.json"
        self.rows: list[dict[str, Any]] = _read_lines(self._runs)
        self._done = {Run(**{name: row[name] for name in KEY}) for row in self.rows}

    def __contains__(self, run: Run) -> bool:
        return run in self._done

    def add(self, run: Run, facts: dict[str, Any]) -> None:
        """Append a finished run, at once."""
        row = {**dataclasses.asdict(run), **facts}
        with self._runs.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        self._done.add(run)

    def forget(self, methods: Collection[str], datasets: Collection[str]) -> None:
        """Take out what has to be run again."""
        self.rows = [
            row
            for row in self.rows
            if row["method"] not in methods or row["dataset"] not in datasets
        ]
        self._done = {Run(**{name: row[name] for name in KEY}) for row in self.rows}
        part = self._runs.with_suffix(".part")
        part.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        part.replace(self._runs)

    def reference(self, data: Dataset) -> float:
        """Mean squared error of the best of five single runs of Lloyd's; computed once."""
        known = json.loads(self._references.read_text()) if self._references.exists() else {}
        if data.name not in known:
            runs = (kmeans(data.X, data.k, seed, starts=1) for seed in REFERENCE_SEEDS)
            known[data.name] = min(ss.mse(data.X, centroids) for centroids in runs)
            self._references.write_text(json.dumps(known, indent=2) + "\n")
        return float(known[data.name])


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines: an interrupted one is left out and its run repeated."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]
