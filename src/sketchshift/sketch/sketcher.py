"""One pass over any data: the sketcher that takes rows in, and out again.

Takes blocks from ``data``; hands a :class:`~sketchshift.Sketch` to everybody.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from sketchshift._paths import parse_path
from sketchshift._validation import check_integer, parameter_error, told_progress
from sketchshift.data import Block, Source
from sketchshift.data.open import ask
from sketchshift.data.source import BLOCK_BYTES, join_blocks
from sketchshift.errors import DataError, PlanWarning, SketchFormatError, SpecError, warn
from sketchshift.features import SketchSpec
from sketchshift.kernels import processors, select_kernel
from sketchshift.recipe import Recipe
from sketchshift.sketch.checkpoint import (
    check_same_plan,
    read_checkpoint,
    read_on,
    write_checkpoint,
)
from sketchshift.sketch.plan import plan_source
from sketchshift.sketch.reading import (
    Planning,
    Reading,
    engine_of,
    refuse_options,
)
from sketchshift.sketch.rows import RowAdder, make_adders
from sketchshift.sketch.sketch import Sketch, check_removal
from sketchshift.sketch.totals import Totals

__all__ = [
    "Adder",
    "Progress",
    "Sketcher",
    "add_blocks",
    "check_result",
    "open_planned",
    "report_blocks",
    "run_pass",
    "sketch",
    "sketcher_for",
]

# Blocks shared out among threads.
#
# Threads share nothing: each has an adder of its own, and integers add up to the same in any
# order.


class Adder(Protocol):
    """What takes blocks in."""

    def add(self, block: Block) -> None:
        """Add the rows of a block."""


A = TypeVar("A", bound=Adder)


def add_blocks(blocks: Iterator[Block], new_adder: Callable[[], A], n_threads: int) -> list[A]:
    """Adders that have taken in all blocks between them; a few blocks are held at a time."""
    head = list(islice(blocks, 2))
    blocks = chain(head, blocks)
    if n_threads == 1 or len(head) < 2:
        adder = new_adder()
        for block in blocks:
            adder.add(block)
        return [adder]
    adders: list[A] = []
    free: SimpleQueue[A] = SimpleQueue()

    def add(block: Block) -> None:
        try:
            adder = free.get_nowait()
        except Empty:  # a thread's first block
            adder = new_adder()
            adders.append(adder)
        adder.add(block)
        free.put(adder)

    pending: deque[Future[None]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for block in blocks:
            pending.append(pool.submit(add, block))
            if len(pending) > n_threads:
                pending.popleft().result()  # in order: the first bad row is the one named
        for future in pending:
            future.result()
    return adders


BLOCK_NUMBERS = BLOCK_BYTES // 8  # what sources give at a time is enough for most kernels
HELD_ROWS, HELD_NUMBERS = 512, 2**18  # most of small updates that are summed at once
STREAM = "a Sketcher"  # kind of its checkpoints
REACHED = 0.999999  # of a reach: clipping leaves rounding errors

Progress = Callable[[int, float | None], None]
"""Called with the rows of a block just read and the share of the input read so far."""


class Sketcher:
    """Takes rows in, and out again, as they come.

    Rows may come one by one: small arrays are held and summed a few hundred at a time, which
    changes no integer. A bad row is refused by the call that brings it all the same.

    Parameters
    ----------
    spec : SketchSpec
        What is summed.
    n_threads : int or None
        Threads for large inputs; None takes the processors this process may use.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity, or have it as their weight: refuse them
        by number, or leave them out and count them in ``n_invalid``.
    kernel : {"auto", "cpu", "cuda", "reference"}
        Where the sums are computed; the integers are the same.

    Attributes
    ----------
    position : object
        What was stored with the sums by :meth:`save`, where they were loaded; else None.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> spec = ss.SketchSpec(n_features=3, sketch_size=60, bandwidth=1.0)
    >>> X = np.arange(300.0).reshape(100, 3) / 100
    >>> kept = ss.Sketcher(spec).update(X).remove(X[:30]).sketch()
    >>> kept == ss.sketch(X[30:], spec)
    True
    """

    def __init__(
        self,
        spec: SketchSpec,
        *,
        n_threads: int | None = None,
        on_invalid: str = "raise",
        kernel: str = "auto",
    ) -> None:
        if not isinstance(spec, SketchSpec):
            raise parameter_error("Sketcher", "spec", "a SketchSpec", spec)
        _check_reach(spec)
        self.spec, self._reading = spec, Reading(spec, on_invalid=on_invalid, kernel=kernel)
        self.n_threads = processors() if n_threads is None else n_threads
        check_integer("Sketcher", "n_threads", self.n_threads, 1, 4096)
        self._kernel = select_kernel(kernel)
        self._adders = make_adders(spec, self._kernel)
        self._totals = Totals.zero(spec)
        self._names = spec.rows.names
        self.position: Any = None  # of the stream, where it was loaded from a file
        self._lock = Lock()  # several threads may update one sketcher
        n_rows = max(1, min(HELD_ROWS, HELD_NUMBERS // spec.n_features))
        self._held = np.empty((n_rows, spec.n_features))
        self._n_held = 0
        # A row inside this box is within reach; one outside may be, which the sums will tell.
        self._box = REACHED * spec.reach / np.sqrt(spec.n_features) / spec.rows.per_unit

    @property
    def count(self) -> int:
        """Number of rows that are in now."""
        with self._lock:
            return self._totals.count + self._n_held

    def __copy__(self) -> Sketcher:
        """Another sketcher with the same rows; neither sees what the other takes in."""
        other = Sketcher.__new__(Sketcher)
        with self._lock:
            self._flush()
            vars(other).update(vars(self))
        other._held, other._lock = np.empty_like(self._held), Lock()
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Sketcher:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<Sketcher of {self.count} rows x {self.spec.n_features} columns so far>"

    def update(
        self,
        data: Any,
        *,
        sample_weight: Any = None,
        columns: Sequence[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> Sketcher:
        """Add rows.

        Parameters
        ----------
        data : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
            See :func:`sketchshift.sketch`.
        sample_weight : array of shape (n,), str or None
            Weights, or the name of the column that holds them, of order 1: they count in steps
            of 2**-22. A whole weight adds what as many equal rows would, but for ``count``.
        columns : sequence of str or None
            Columns to read, by name.
        progress : callable, bool or None
            Called as ``progress(n_rows, share_read)`` after each block. True shows a bar, in
            terminals and notebooks, where it takes more than two seconds.

        Returns
        -------
        self : Sketcher
            If anything is wrong with the data, an exception is raised and nothing is added.
        """
        is_plain = sample_weight is None and columns is None and progress is None
        if is_plain and self._hold(data):
            return self
        added = self._read("update", data, sample_weight, columns, progress)
        with self._lock:
            self._totals += added
        return self

    def _hold(self, data: Any) -> bool:
        """Keep a few rows for later; False for anything but an array of a few good rows."""
        if type(data) is not np.ndarray or data.ndim != 2 or data.dtype.kind not in "fiub":
            return False
        n, d = data.shape
        if not 0 < n <= len(self._held) // 8 or d != self.spec.n_features:
            return False
        if not (np.abs(data - self.spec.rows.center_vector) < self._box).all():  # nor for NaN
            return False
        with self._lock:
            if self._n_held + n > len(self._held):
                self._flush()
            self._held[self._n_held : self._n_held + n] = data
            self._n_held += n
        return True

    def _flush(self) -> None:
        """Sum the rows held; whoever calls has the lock."""
        if self._n_held:
            held = self._held[: self._n_held]
            self._totals += self._total(held, self._reading)
            self._n_held = 0

    def remove(
        self,
        data: Any,
        *,
        sample_weight: Any = None,
        columns: Sequence[str] | None = None,
        progress: Progress | bool | None = None,
    ) -> Sketcher:
        """Take rows out again, as if they had never been added.

        Parameters
        ----------
        data, sample_weight, columns, progress
            As in :meth:`update`.

        Returns
        -------
        self : Sketcher
            If more is removed than was added, an exception is raised and nothing changes.
        """
        removed = self._read("remove", data, sample_weight, columns, progress)
        with self._lock:
            self._flush()
            rest = self._totals - removed
            check_removal(self._totals, removed, rest)
            self._totals = rest
        return self

    def sketch(self) -> Sketch:
        """The sketch of the rows that are in now."""
        with self._lock:
            self._flush()
            return Sketch(self.spec, self.spec.fingerprint, self._totals)

    def save(self, path: str | os.PathLike[str], *, position: Any = None) -> None:
        """Write the rows so far to a file, to go on from there after a crash.

        Parameters
        ----------
        path : path
            Replaced as a whole: a crash leaves the old file or the new one.
        position : anything that JSON can hold
            Where the stream stands, such as an offset. It is stored with the sums in one step,
            so that :meth:`load` gives both as they were together; of a tuple JSON makes a list.
        """
        try:
            json.dumps(position, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as cause:
            msg = f"position must be numbers, texts, lists or mappings, for JSON to hold ({cause})."
            raise DataError(msg) from None
        state = {"columns": self._names, "on_invalid": self._reading.on_invalid}
        integers = self.sketch().to_bytes()
        write_checkpoint(parse_path(path), STREAM, {"value": position}, state, integers)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, n_threads: int | None = None, kernel: str = "auto"
    ) -> Sketcher:
        """Go on from a file that :meth:`save` wrote.

        Parameters
        ----------
        path : path
            A damaged file, or one of another kind, is a :class:`SketchFormatError`.
        n_threads, kernel
            As for a new sketcher.

        Returns
        -------
        sketcher : Sketcher
            With the rows that were in; ``position`` is what was stored with them.
        """
        position, state, integers = read_checkpoint(parse_path(path), STREAM)
        try:
            names, on_invalid = state["columns"], state["on_invalid"]
            sketch = Sketch.from_bytes(integers)
            sketcher = cls(sketch.spec, n_threads=n_threads, on_invalid=on_invalid, kernel=kernel)
            sketcher.position = position["value"]
            sketcher._names = None if names is None else tuple(map(str, names))
        except (KeyError, TypeError, SketchFormatError) as error:
            raise SketchFormatError(f"cannot go on from {path}: {error}") from None
        sketcher._totals = sketch._totals
        return sketcher

    def _read(
        self,
        verb: str,
        data: Any,
        sample_weight: Any,
        columns: Sequence[str] | None,
        progress: Progress | bool | None,
    ) -> Totals:
        """What the rows of one call add up to."""
        reading = replace(self._reading, columns=columns, sample_weight=sample_weight)
        with told_progress(verb, progress, "rows", "Reading rows") as advance:
            return self._total(data, reading, advance)

    def _total(self, data: Any, reading: Reading, progress: Progress | None = None) -> Totals:
        source = reading.open(data, names=self._names)
        totals = self.total(source, report_blocks(source, progress))
        self._names = self._names or source.columns  # later frames are read by the same names
        return totals

    def total(self, source: Source, blocks: Iterator[Block]) -> Totals:
        """What some blocks of a source add up to; they are not added here."""
        if self._kernel.chunk > BLOCK_NUMBERS:
            blocks = join_blocks(blocks, self._kernel.chunk // self.spec.n_features)
        adders = add_blocks(blocks, self.adders(source), self.n_threads)
        return Totals.join([adder.totals() for adder in adders]).merged()

    def adders(self, source: Source) -> Callable[[], RowAdder]:
        """What makes adders for the rows of a source, one for each thread."""
        return partial(
            RowAdder,
            self.spec,
            self._kernel,
            self._adders,
            columns=source.columns,
            skip_invalid=self._reading.on_invalid == "skip",
        )


def _check_reach(spec: SketchSpec) -> None:
    """Refuse a spec for private releases that does not reach all rows of its public ball."""
    if spec.rows.ball is None:
        return
    if not spec.rows.ball.radius < REACHED * spec.cell_reach:
        msg = (
            f"the declared radius is {spec.rows.ball.radius:.4g} times the scale, and exact sums "
            f"reach {spec.cell_reach:.4g} times. Declare a smaller radius."
        )
        raise SpecError(msg)


def report_blocks(source: Iterable[Block], progress: Progress | None) -> Iterator[Block]:
    """The blocks of a source; ``progress`` hears of each once it was taken."""
    for block in source:
        yield block
        if progress is not None:
            progress(len(block.values), block.done)


# The function that reads any data once, with a spec given or planned on the way.

LEAST_WEIGHT = 2.0**-12
MANY_UNSEEN = 0.01  # share of rows whose category the plan has not seen, worth a word
"""Mean weight below which the integers, in steps of 2**-22, keep too few digits."""


def sketch(
    data: Any,
    spec: SketchSpec | None = None,
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    seed: int | None = None,
    standardize: bool | str | None = None,
    cells: bool | None = None,
    metric: str | None = None,
    columns: Sequence[str] | Recipe | None = None,
    query: str | None = None,
    where: str | None = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
    progress: Progress | bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Sketch:
    """Read data once and give its sketch.

    Parameters
    ----------
    data : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        NumPy arrays (memmaps too), SciPy sparse matrices, pandas and Polars frames, Arrow
        tables, readers and anything with ``__arrow_c_stream__``, files (.parquet, .csv,
        .csv.gz, .arrow, .npy, .safetensors, and those of :func:`sketchshift.data.register_format`),
        folders and globs of them, or an iterator of such blocks. Also a database: the address
        ``postgresql://...``, a file (.duckdb, .sqlite), or a connection of duckdb or sqlite3. Also
        a collection of Dask, Spark or Ray, which is read where it lies
        (:mod:`sketchshift.engines`): without ``n_threads``, ``progress`` and ``checkpoint``.
    spec : SketchSpec or None
        What is summed. If it names columns, sources with names are read by them.
    n_clusters : int or None
        Instead of a spec: plan one for so many clusters, as :func:`sketchshift.plan` does. An
        iterator is planned on its first rows.
    sketch_size, seed, standardize, cells, metric : int, int, bool, bool and str, or None
        With ``n_clusters``: as in :func:`sketchshift.plan`.
    columns : sequence of str, Recipe or None
        Columns to read, by name; None takes the spec's, or all. One column of vectors is read as
        one column for each of their numbers. A recipe says how to make numbers of columns of any
        kind: see :func:`sketchshift.profiling.survey`.
    query : str or None
        Of a database: a SELECT, or the name of a table. None takes the only table.
    where : str or None
        A condition on any columns of a table, as SQL writes it: other rows are not read.
    sample_weight : array of shape (n,), str or None
        Weights, or the name of the column that holds them, of order 1: they count in steps of
        2**-22.
    n_threads : int or None
        None takes the processors this process may use. The bytes do not depend on it.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity, or have it as their weight, and with
        vectors that are missing or have another length than the others.
    kernel : {"auto", "cpu", "cuda", "reference"}
        Where the sums are computed.
    progress : callable, bool or None
        Called as ``progress(n_rows, share_read)`` after each block. True shows a bar, in
        terminals and notebooks, where it takes more than two seconds.
    checkpoint : path or None
        For data in files: a file that holds the sums so far and what was read, written every
        few seconds. After a crash the same call goes on from there, and ends with the same
        bytes; data that has changed since is refused. Delete the file when the result is safe.

    Returns
    -------
    sketch : Sketch
        O(N m d) time, or O(N m log d) with structured frequencies; memory does not grow
        with N.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> ss.sketch(X, n_clusters=5).count
    1000
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=100, bandwidth=0.5)
    >>> ss.sketch(X, spec).count
    1000
    """
    options = {"sketch_size": sketch_size, "seed": seed, "standardize": standardize}
    planning = Planning.instead_of(spec, n_clusters, **options, cells=cells, metric=metric)
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel, where=where)
    data, begin = ask(data, query), _SketchSums
    found: Sketch = run_pass(
        "sketch", data, reading, planning, begin, n_threads, progress, checkpoint
    )
    return found


def run_pass(
    function: str,
    data: Any,
    reading: Reading,
    planning: Planning | None,
    begin: Callable[[Source, Reading, int | None], Any],
    n_threads: int | None,
    progress: Progress | bool | None,
    checkpoint: str | os.PathLike[str] | None,
    **described: Any,
) -> Any:
    """Read data once; what public functions of a pass share.

    Parameters
    ----------
    function : str
        Name of the public function, also of the method of an engine.
    data, reading, planning
        As in :func:`open_planned`, or a collection.
    begin : callable
        From a source, its reading and ``n_threads`` to :class:`Sums` of no rows, whose ``result``
        checks what all rows add up to.
    n_threads, progress, checkpoint
        As in :func:`sketch`.
    **described
        What must be the same when the pass goes on, beside how rows are read.
    """
    engine = engine_of(data)
    if engine is not None:
        own = {"n_threads": n_threads, "progress": progress or None, "checkpoint": checkpoint}
        refuse_options(function, data, **own)
        if planning is not None:
            reading = replace(reading, spec=engine.plan(data, reading, planning))
        return getattr(engine, function)(data, reading)
    with told_progress(function, progress, "rows", "Reading rows") as advance:
        reading, source = open_planned(data, reading, planning)
        sums = begin(source, reading, n_threads)
        if checkpoint is None:
            sums.add(report_blocks(source, advance))
        else:
            described["columns"] = None if source.columns is None else list(source.columns)
            described |= {"vector": source.vector, "where": reading.where}
            described |= {"sample_weight": reading.sample_weight, "on_invalid": reading.on_invalid}
            read_on(source, sums, checkpoint, described, advance)
    return sums.result()


def sketcher_for(reading: Reading, n_threads: int | None = None) -> Sketcher:
    """A sketcher of no rows that adds them as the reading says."""
    options = {"on_invalid": reading.on_invalid, "kernel": reading.kernel}
    return Sketcher(reading.require_spec(), n_threads=n_threads, **options)


class _SketchSums:
    """The sums of a plain pass, as a checkpoint holds them."""

    kind = "a sketch"

    def __init__(self, source: Source, reading: Reading, n_threads: int | None) -> None:
        self._source, self._reading = source, reading
        self._sketcher = sketcher_for(reading, n_threads)

    def add(self, blocks: Iterator[Block]) -> None:
        """Add all blocks."""
        self._sketcher._totals += self._sketcher.total(self._source, blocks)

    def result(self) -> Sketch:
        """The sketch of all rows, if there are some."""
        found = self._sketcher.sketch()
        check_result(found, is_weighted=self._reading.is_weighted)
        return found

    def freeze(self) -> tuple[dict[str, Any], bytes]:
        """The sketch of the rows so far."""
        return {}, self._sketcher.sketch().to_bytes()

    def thaw(self, state: dict[str, Any], integers: bytes) -> None:
        """Go on from a sketch of the same spec."""
        begun = Sketch.from_bytes(integers)
        check_same_plan(begun.spec, self._sketcher.spec)
        self._sketcher._totals = begun._totals


def open_planned(data: Any, reading: Reading, planning: Planning | None) -> tuple[Reading, Source]:
    """Open data, once, and plan on it if there is no spec.

    Parameters
    ----------
    data : anything that :func:`sketch` takes, but collections
        A stream that is planned on still delivers all rows.
    reading : Reading
        Without a spec where there is a planning.
    planning : Planning or None
        What to plan.

    Returns
    -------
    reading : Reading
        With the spec of the pass to come.
    source : Source
        Delivers all rows.
    """
    source = reading.open(data)
    if planning is None:
        return reading, source
    spec, source = plan_source(source, planning, reading.on_invalid, reading.recipe)
    return replace(reading, spec=spec), source


def check_result(result: Sketch, *, is_weighted: bool) -> None:
    """Refuse the sketch of no rows, and of rows whose weights vanish in the integers."""
    if result.count == 0 and result.spec.rows.ball is None:  # of private rows an error would tell
        left_out = f" ({result.n_invalid} invalid rows were left out)" if result.n_invalid else ""
        raise DataError(f"there are no rows to sketch{left_out}. Check the path or the filter.")
    if is_weighted and result.total_weight < result.count * LEAST_WEIGHT:
        msg = (
            f"the weights are too small to be added exactly: {result.count} rows have weight "
            f"{result.total_weight:.3g} in all. Multiply the weights by a constant, so that a "
            "typical one is 1 (and leave rows of weight 0 out)."
        )
        raise DataError(msg)
    _warn_of_unseen(result)


def _warn_of_unseen(result: Sketch) -> None:
    """Say where categories of the rows are not those of the plan: these count as none of them."""
    spec = result.spec
    if (
        spec.rows.recipe is None
        or not spec.has_moments
        or spec.rows.metric != "euclidean"
        or spec.rows.ball
    ):
        return
    for name, share in spec.rows.recipe.unseen(result.mean).items():
        if share >= MANY_UNSEEN:
            msg = (
                f"{100 * share:.0f} % of the rows have a value of {name!r} that the plan does not "
                "list, and count as none of its categories. Plan again on rows like these, or with "
                "how common values are: encode='frequency'."
            )
            warn(msg, PlanWarning)
