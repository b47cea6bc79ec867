"""Run what is missing of a figure, in parallel processes, and go on after an interruption.

Takes a :class:`Figure` and a :class:`Grid`; keeps every single run in a :class:`Store`, one Parquet
file a figure. A piece of work is one sketch with all contenders that still need it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sketchshift
from sketchshift import SketchSpec, sketch
from sketchshift.cli import opened_atomically
from sketchshift.errors import DataError
from sketchshift_papers.contenders import Cell, measure, measure_reference
from sketchshift_papers.datasets import Data, make_data
from sketchshift_papers.definition import Contender, DatasetSpec, Figure, Grid, selects

__all__ = ["KEY", "Progress", "Row", "Store", "planned", "run_figure"]

Progress = Callable[[int, int], None]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Row = dict[str, Any]

KEY = ("dataset", "decoder", "m", "sigma", "L", "seed", "settings")
TEXTS = ("figure", "dataset", "decoder", "settings", "version", "commit")
INTEGERS = ("d", "m", "L", "seed", "n_samples")
UNIMPORTANT = ("label", "name", "sketch_sizes", "n_initializations", "is_ours", "only")
SAVE_EVERY = 2.0  # seconds between writes


# Every single run, in one Parquet file a figure: what is there is not run again.


class Store:
    """The runs of one figure, written to disk every few seconds and when asked.

    Parameters
    ----------
    path : Path
        A Parquet file; read if it exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = {key_of(row): row for row in _read(path)}
        self._saved = time.monotonic()

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return key_of(row) in self.runs

    @property
    def rows(self) -> list[Row]:
        """All runs, in the order in which they were added."""
        return list(self.runs.values())

    def add(self, rows: Iterable[Row]) -> None:
        """Keep finished runs; write them if the last time was a while ago."""
        self.runs.update((key_of(row), row) for row in rows)
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write all runs; a reader never sees half a file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.runs:
            return
        rows = self.rows
        names = list(dict.fromkeys(name for row in rows for name in row))
        schema = pa.schema([(name, _type(name)) for name in names])
        table = pa.Table.from_pylist(rows, schema=schema)
        with opened_atomically(self.path) as file:
            pq.write_table(table, file)
        self._saved = time.monotonic()


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two runs the same."""
    return tuple(row[name] for name in KEY)


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
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
    if name in TEXTS:
        return pa.string()
    return pa.int64() if name in INTEGERS else pa.float64()


# What is not there, run.


@dataclass(frozen=True, eq=False)
class Work:
    """One sketch, and what is still to be measured on it."""

    dataset: DatasetSpec
    n_samples: int | None
    m: int
    sigma: float
    seed: int
    reference: float
    parts: tuple[tuple[Contender, int | None, Row], ...]


def run_figure(
    figure: Figure,
    grid: Grid,
    store: Store,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[Row]:
    """Run what the store lacks.

    Parameters
    ----------
    figure : Figure
        What to run.
    grid : Grid
        How much of it.
    store : Store
        Where finished runs are; saved at the end, and when interrupted.
    n_jobs : int
        Processes, of one thread each; 1 runs in this one.
    progress : callable or None
        Called with the number of runs finished and of all.

    Returns
    -------
    rows : list
        All runs of the grid, those of earlier calls too.
    """
    rows = planned(figure, grid)
    left = {key_of(row) for row in rows if row not in store}

    def keep(finished: list[Row]) -> None:
        left.difference_update(map(key_of, finished))
        store.add(finished)
        if progress is not None:
            progress(len(rows) - len(left), len(rows))

    try:
        works = _works(figure, grid, store, rows)
        if n_jobs == 1 or len(works) < 2:
            for work in works:
                for row in _run(work):
                    keep([row])
        else:
            _run_in_pool(works, n_jobs, keep)
    finally:
        store.save()
    wanted = map(key_of, [*_references(figure, grid), *rows])
    return [store.runs[key] for key in wanted if key in store.runs]


def planned(figure: Figure, grid: Grid) -> list[Row]:
    """Keys of all runs of a grid, in the order they are run."""
    rows = []
    for dataset in figure.datasets_on(grid):
        heads = [
            (_head(figure, dataset, contender, grid) | {"L": L}, contender.only)
            for contender in figure.contenders
            for L in contender.n_initializations
        ]
        sizes = dataset.sketch_sizes or grid.sketch_sizes
        for seed, m, sigma in product(range(grid.realizations), sizes, grid.bandwidths):
            cell = {"m": m, "sigma": sigma, "seed": seed}
            rows += [head | cell for head, only in heads if selects(only, head | cell)]
    return rows


def _references(figure: Figure, grid: Grid) -> list[Row]:
    """Keys of the k-means runs, one a draw of a dataset."""
    lloyd = Contender("lloyd", "lloyd", "Lloyd")
    nowhere = {"m": None, "sigma": None, "L": None}
    return [
        _head(figure, dataset, lloyd, grid) | nowhere | {"seed": draw}
        for dataset in figure.datasets_on(grid)
        for draw in range(min(dataset.n_draws, grid.realizations))
    ]


def _head(figure: Figure, dataset: DatasetSpec, contender: Contender, grid: Grid) -> Row:
    """What all runs of a contender on a dataset have in common."""
    names = {"figure": figure.name, "dataset": dataset.name, "decoder": contender.name}
    return names | {"settings": _settings(dataset, contender, grid.n_samples)}


def _settings(dataset: DatasetSpec, contender: Contender, n_samples: int | None) -> str:
    """Changes with every option that changes a run: such runs are not mixed."""
    parts = [
        {name: value for name, value in asdict(part).items() if name not in UNIMPORTANT}
        for part in (dataset, contender)
    ]
    text = json.dumps([*parts, n_samples], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _works(figure: Figure, grid: Grid, store: Store, rows: list[Row]) -> list[Work]:
    """What is missing, gathered by sketch; references are computed here, first."""
    missing: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row not in store:
            cell = (row["dataset"], row["m"], row["sigma"], row["seed"])
            missing.setdefault(cell, []).append(row)
    if not missing:
        return []
    references = _reference_rows(figure, grid, store)
    errors = {(row["dataset"], row["seed"]): row["mse"] for row in references}
    datasets = {dataset.name: dataset for dataset in figure.datasets}
    works = []
    for (name, m, sigma, seed), parts in missing.items():
        contenders = tuple((figure.contender(row["decoder"]), row["L"], row) for row in parts)
        dataset = datasets[name]
        error = errors[name, seed % dataset.n_draws]
        works.append(Work(dataset, grid.n_samples, m, sigma, seed, error, contenders))
    return works


def _reference_rows(figure: Figure, grid: Grid, store: Store) -> Iterator[Row]:
    specs = {dataset.name: dataset for dataset in figure.datasets}
    for row in _references(figure, grid):
        if row not in store:
            data = _data(specs[row["dataset"]], grid.n_samples, row["seed"])
            store.add([_filled(row, data, measure_reference(data))])
        yield store.runs[key_of(row)]


def _filled(row: Row, data: Data, measures: dict[str, float]) -> Row:
    facts = {"d": data.n_features, "n_samples": len(data.X)}
    made_by = {"version": sketchshift.__version__, "commit": _commit()}
    return row | facts | measures | made_by


def _run_in_pool(works: list[Work], n_jobs: int, keep: Callable[[list[Row]], None]) -> None:
    """Keep rows sketch by sketch; when interrupted, also those that were under way."""
    with _one_thread_each():
        n_jobs = min(n_jobs, len(works))
        pool = ProcessPoolExecutor(n_jobs, get_context("spawn"), _ignore_interrupts)
        futures = [pool.submit(_run_all, work) for work in works]
        try:
            for future in as_completed(futures):
                keep(future.result())
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            for future in futures:
                if not future.cancelled() and future.exception() is None:
                    keep(future.result())
            raise
        pool.shutdown()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """New processes find one thread for BLAS in their environment."""
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_all(work: Work) -> list[Row]:
    return list(_run(work))


def _run(work: Work) -> Iterator[Row]:
    """Sketch once, then one contender after the other."""
    data = _data(work.dataset, work.n_samples, work.seed % work.dataset.n_draws)
    spec = SketchSpec(data.n_features, work.m, work.sigma, seed=work.seed)
    start = time.perf_counter()
    z = sketch(data.X, spec, n_threads=1)
    seconds = time.perf_counter() - start
    cell = Cell(data, z, work.seed, work.reference)
    for contender, L, row in work.parts:
        yield _filled(row, data, measure(contender, L, cell) | {"sketch_seconds": seconds})


@lru_cache(maxsize=1)
def _commit() -> str:
    """The commit of the code, with a plus where files differ from it; "" outside of git."""
    here = Path(__file__).parent
    try:
        words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
        done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


_made: dict[tuple[str, int | None, int], Data] = {}


def _data(dataset: DatasetSpec, n_samples: int | None, draw: int) -> Data:
    """The draw of a dataset, made once a process; the last few are kept."""
    key = (repr(dataset), n_samples, draw)
    if key not in _made:
        while len(_made) >= 8:
            del _made[next(iter(_made))]
        _made[key] = make_data(dataset, n_samples, draw)
    return _made[key]
