"""One pass over any data: the sketcher that takes rows in, and out again.

Takes blocks from ``data``; hands a :class:`~sketchshift.Sketch` to everybody. Threads share
nothing: each has totals of its own, and integers add up to the same in any order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any

from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.data import Block, Source, open_source
from sketchshift.errors import DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.sketch.rows import RowAdder, make_accumulator
from sketchshift.sketch.sketch import Sketch, check_removal
from sketchshift.sketch.totals import Totals

__all__ = ["Progress", "Sketcher"]

REACHED = 0.999999  # of a reach: clipping leaves rounding errors

Progress = Callable[[int, float | None], None]
"""Called with the rows of a block just read and the share of the input read so far."""


class Sketcher:
    """Takes rows in, and out again, as they come.

    Parameters
    ----------
    spec : SketchSpec
        What is summed.
    n_threads : int or None
        Threads for large inputs; None takes the processors this process may use.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity: refuse them by number, or leave them
        out and count them in ``n_invalid``.
    kernel : {"auto", "cpu", "reference"}
        Where the sums are computed; the integers are the same.

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
        self.spec = _checked(spec)
        self._skip = check_choice("Sketcher", "on_invalid", on_invalid, ("raise", "skip")) == "skip"
        self._n_threads = _processors() if n_threads is None else n_threads
        check_integer("Sketcher", "n_threads", self._n_threads, 1, 4096)
        self._kernel = select_kernel(kernel)
        self._accumulate = make_accumulator(spec, self._kernel)
        self._totals = Totals.zero(spec)
        self._names = spec.columns
        self._lock = Lock()  # several threads may update one sketcher

    @property
    def count(self) -> int:
        """Number of rows that are in now."""
        return self._totals.count

    def __repr__(self) -> str:
        return f"<Sketcher of {self.count} rows x {self.spec.n_features} columns so far>"

    def update(
        self,
        data: Any,
        *,
        sample_weight: Any = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
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
        progress : callable or None
            Called as ``progress(n_rows, share_read)`` after each block.

        Returns
        -------
        self : Sketcher
            If anything is wrong with the data, an exception is raised and nothing is added.
        """
        added = self._total(data, sample_weight, columns, progress)
        with self._lock:
            self._totals = self._totals + added
        return self

    def remove(
        self,
        data: Any,
        *,
        sample_weight: Any = None,
        columns: Sequence[str] | None = None,
        progress: Progress | None = None,
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
        removed = self._total(data, sample_weight, columns, progress)
        with self._lock:
            rest = self._totals - removed
            check_removal(self._totals, removed, rest)
            self._totals = rest
        return self

    def sketch(self) -> Sketch:
        """The sketch of the rows that are in now."""
        return Sketch(self.spec, self.spec.fingerprint, self._totals.copy())

    def _total(
        self,
        data: Any,
        sample_weight: Any,
        columns: Sequence[str] | None,
        progress: Progress | None,
    ) -> Totals:
        source = _open(data, self.spec, columns, self._names, sample_weight)

        def new_adder() -> RowAdder:
            return RowAdder(
                self.spec,
                self._kernel,
                self._accumulate,
                columns=source.columns,
                skip_invalid=self._skip,
            )

        blocks = _reporting(source, progress)
        totals = _add_blocks(blocks, new_adder, self._n_threads)
        self._names = self._names or source.columns  # later frames are read by the same names
        return totals


def _checked(spec: SketchSpec) -> SketchSpec:
    """The spec, if all rows of its public ball are within its reach."""
    if spec.origin is None:
        return spec
    if spec.tilt is not None:
        msg = (
            "a spec for private releases has no tilt, which multiplies the noise by its cap. Make "
            "one with ss.privacy.plan, plan_declared or plan_public."
        )
        raise SpecError(msg)
    if not spec.origin.radius < REACHED * spec.reach:
        msg = (
            f"rows are clipped to a ball of radius {spec.origin.radius:.4g}, and the spec reaches "
            f"{spec.reach:.4g}, in normalised units. Declare a smaller radius."
        )
        raise SpecError(msg)
    return spec


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _open(
    data: Any,
    spec: SketchSpec,
    columns: Sequence[str] | None,
    names: Sequence[str] | None,
    sample_weight: Any,
) -> Source:
    if columns is not None and spec.columns is not None and tuple(columns) != spec.columns:
        msg = (
            f"columns={list(columns)} are not those of the spec, {list(spec.columns)}. Leave "
            "`columns` out, or make a spec for these columns."
        )
        raise DataError(msg)
    if isinstance(data, Source):
        return data
    return open_source(data, columns=columns, default_columns=names, weights=sample_weight)


def _reporting(source: Source, progress: Progress | None) -> Iterator[Block]:
    for block in source:
        yield block
        if progress is not None:
            progress(len(block.values), block.done)


def _add_blocks(
    blocks: Iterator[Block], new_adder: Callable[[], RowAdder], n_threads: int
) -> Totals:
    """Totals of all blocks; a few blocks at most are held at a time."""
    head = list(islice(blocks, 2))
    blocks = chain(head, blocks)
    if n_threads == 1 or len(head) < 2:
        adder = new_adder()
        for block in blocks:
            adder.add(block)
        return adder.totals()
    adders: list[RowAdder] = []
    free: SimpleQueue[RowAdder] = SimpleQueue()

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
    total = new_adder().totals()
    for adder in adders:
        total = total + adder.totals()
    return total
