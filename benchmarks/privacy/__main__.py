"""All runs, one line each in a file, then the table and the picture."""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import sketchshift as ss
from privacy import other_environment
from privacy.data import NAMES, Rows, here, rows
from privacy.methods import METHODS
from privacy.report import write_report

RESULTS = Path(__file__).parents[1] / "results"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (20_000, 100_000)
SEEDS = (0, 1, 2)


def main() -> None:
    """Run what is missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--datasets", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--diffprivlib", metavar="PYTHON", help="interpreter that has it")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    store = Store(options.results / "privacy" / "runs.jsonl")
    has_other = other_environment.is_usable(options.diffprivlib)
    if not has_other:
        print("diffprivlib is left out: no interpreter that has it was given.")
    for n, name in product(options.rows, here(options.datasets)):
        wanted = [
            (method, epsilon, seed)
            for method, epsilon, seed in product(METHODS, EPSILONS, options.seeds)
            if (name, n, method, epsilon, seed) not in store
        ]
        asked = [
            (epsilon, seed)
            for epsilon, seed in product(EPSILONS, options.seeds)
            if has_other and (name, n, other_environment.NAME, epsilon, seed) not in store
        ]
        if not wanted and not asked:
            continue
        data = rows(name, n)
        for method, epsilon, seed in wanted:
            store.add(name, n, method, epsilon, seed, data, METHODS[method](data, epsilon, seed))
        if asked:
            found = other_environment.centroids(options.diffprivlib, data, asked)
            for (epsilon, seed), centroids in found.items():
                store.add(name, n, other_environment.NAME, epsilon, seed, data, centroids)
        print(f"{name}, {n:,} rows: {len(wanted) + len(asked)} runs", flush=True)
    write_report(store.lines, options.results)


class Store:
    """Finished runs, so that an interrupted benchmark goes on."""

    FIELDS = ("dataset", "n", "method", "epsilon", "seed")

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # an interrupted line is left out
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        self._done = {tuple(line[field] for field in self.FIELDS) for line in self.lines}

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._done

    def add(
        self,
        name: str,
        n: int,
        method: str,
        epsilon: float,
        seed: int,
        data: Rows,
        centroids: np.ndarray,
    ) -> None:
        """Judge centroids and write the line."""
        line = dict(zip(self.FIELDS, (name, n, method, epsilon, seed), strict=True))
        line["rse"] = ss.metrics.mse(data.X, centroids) / data.least
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)


if __name__ == "__main__":
    main()
