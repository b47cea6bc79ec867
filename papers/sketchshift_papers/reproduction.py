"""One figure from its file to its verdicts: run, draw, judge, write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sketchshift.cli import write_atomically
from sketchshift_papers.claims import judge
from sketchshift_papers.definition import Figure, Grid
from sketchshift_papers.pictures import draw
from sketchshift_papers.runner import Progress, Store, run_figure
from sketchshift_papers.verdicts import markdown, verdict_facts

__all__ = ["reproduce"]


def reproduce(
    figure: Figure,
    grid: Grid,
    stem: Path,
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
    stem : Path
        Where results go, less the suffix: ``.parquet``, ``.png``, ``.json`` and ``.md``. Finished
        runs found there are not repeated.
    n_jobs : int
        Processes.
    again : bool
        Forget what is there.
    progress : callable or None
        Called with the number of runs finished and of all.

    Returns
    -------
    facts : dict
        Verdicts with their numbers, as they are written to the ``.json``.
    """
    runs = stem.with_suffix(".parquet")
    if again:
        runs.unlink(missing_ok=True)
    rows = run_figure(figure, grid, Store(runs), n_jobs=n_jobs, progress=progress)
    draw(figure, grid, rows, stem.with_suffix(".png"))
    facts = verdict_facts(figure, judge(figure, rows), rows)
    write_atomically(stem.with_suffix(".json"), json.dumps(facts, indent=1).encode())
    text = "\n".join(markdown(facts))
    write_atomically(stem.with_suffix(".md"), text.encode())
    return facts
