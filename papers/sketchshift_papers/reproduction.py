"""One figure from its file to its verdicts: run, draw, judge, write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sketchshift.cli import write_atomically
from sketchshift_papers.claims import judge
from sketchshift_papers.definition import Figure, Grid
from sketchshift_papers.pictures import draw
from sketchshift_papers.runner import Progress, Store, planned, run_figure
from sketchshift_papers.verdicts import markdown, verdict_facts

__all__ = ["Files", "n_missing", "reproduce"]


@dataclass(frozen=True)
class Files:
    """Where the results of a figure lie."""

    folder: Path
    name: str

    @property
    def runs(self) -> Path:
        """Every single run."""
        return self.folder / f"{self.name}.parquet"

    @property
    def picture(self) -> Path:
        """The figure."""
        return self.folder / f"{self.name}.png"

    @property
    def verdicts(self) -> Path:
        """The verdicts as JSON; as markdown in the ``.md`` beside it."""
        return self.folder / f"{self.name}.json"


def n_missing(figure: Figure, grid: Grid, files: Files) -> int:
    """Runs that are still to do."""
    store = Store(files.runs)
    return sum(row not in store for row in planned(figure, grid))


def reproduce(
    figure: Figure,
    grid: Grid,
    files: Files,
    *,
    n_jobs: int = 1,
    again: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a figure, draw it, and say which claims hold.

    Parameters
    ----------
    figure : Figure
        Read by :func:`load_figure`.
    grid : Grid
        How much of it is run.
    files : Files
        Where results go; finished runs found there are not repeated.
    n_jobs : int
        Processes.
    again : bool
        Forget what is there.
    progress : callable or None
        Called with the number of runs finished and of all.

    Returns
    -------
    facts : dict
        Verdicts with their numbers, as they are written to ``files.verdicts``.
    """
    store = Store(files.runs)
    if again:
        store.forget()
    rows = run_figure(figure, grid, store, n_jobs=n_jobs, progress=progress)
    draw(figure, grid, rows, files.picture)
    facts = verdict_facts(figure, judge(figure, rows), rows)
    write_atomically(files.verdicts, json.dumps(facts, indent=1).encode())
    text = "\n".join(markdown(facts))
    write_atomically(files.verdicts.with_suffix(".md"), text.encode())
    return facts
