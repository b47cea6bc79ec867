"""One pass over any data: the sketcher that takes rows in, and out again.

Takes blocks from ``data``; hands a :class:`~sketchshift.Sketch` to everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any

from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.data import Block, Source, open_source
from sketchshift.data.blocks import joined
from sketchshift.data.request import BLOCK_BYTES
from sketchshift.errors import DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.sketch.rows import RowAdder, make_accumulator
from sketchshift.sketch.sketch import Sketch, check_removal
from sketchshift.sketch.threads import add_blocks, processors
from sketchshift.sketch.totals import Totals

__all__ = ["Progress", "Sketcher", "open_for", "reporting"]

BLOCK_NUMBERS = BLOCK_BYTES // 8  # what sources give at a time is enough for most kernels
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
        What to do with rows that hold NaN or infinity, or have it as their weight: refuse them
        by number, or leave them out and count them in ``n_invalid``.
    kernel : {"auto", "cpu", "cuda", "reference"}
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
        self.n_threads = processors() if n_threads is None else n_threads
        check_integer("Sketcher", "n_threads", self.n_threads, 1, 4096)
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
            check_removal(self._totals, removed, rest, self.spec)
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
        source = open_for(self.spec, data, columns, weights=sample_weight, names=self._names)
        blocks = reporting(source, progress)
        if self._kernel.chunk > BLOCK_NUMBERS:
            blocks = joined(blocks, self._kernel.chunk // self.spec.n_features)
        adders = add_blocks(blocks, self.adders(source), self.n_threads)
        totals = sum((adder.totals() for adder in adders), start=Totals.zero(self.spec))
        self._names = self._names or source.columns  # later frames are read by the same names
        return totals

    def adders(self, source: Source) -> Callable[[], RowAdder]:
        """What makes adders for the rows of a source, one for each thread."""
        return partial(
            RowAdder,
            self.spec,
            self._kernel,
            self._accumulate,
            columns=source.columns,
            skip_invalid=self._skip,
        )


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


def open_for(
    spec: SketchSpec,
    data: Any,
    columns: Sequence[str] | None,
    *,
    names: Sequence[str] | None,
    **opening: Any,
) -> Source:
    """Open data by the names of a spec's columns; ``names`` where the spec has none.

    Parameters
    ----------
    spec, data, columns
        As in :func:`sketchshift.sketch`.
    names : sequence of str or None
        Columns to take by default.
    **opening
        More for :func:`~sketchshift.data.open_source`.

    Returns
    -------
    source : Source
        ``data`` itself where it is open already.
    """
    if columns is not None and spec.columns is not None and tuple(columns) != spec.columns:
        msg = (
            f"columns={list(columns)} are not those of the spec, {list(spec.columns)}. Leave "
            "`columns` out, or make a spec for these columns."
        )
        raise DataError(msg)
    if isinstance(data, Source):
        return data
    return open_source(data, columns=columns, default_columns=names, **opening)


def reporting(source: Source, progress: Progress | None) -> Iterator[Block]:
    """The blocks of a source, each reported once it was taken."""
    for block in source:
        yield block
        if progress is not None:
            progress(len(block.values), block.done)
