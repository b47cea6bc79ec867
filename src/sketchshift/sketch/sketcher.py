"""One pass over any data: the sketcher that takes rows in, and out again.

Takes blocks from ``data``; hands a :class:`~sketchshift.Sketch` to everybody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.data import Block, Source, open_source
from sketchshift.data.blocks import joined
from sketchshift.data.request import BLOCK_BYTES
from sketchshift.errors import DataError, SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.sketch.checkpoint import read_checkpoint, write_checkpoint
from sketchshift.sketch.rows import RowAdder, make_accumulator
from sketchshift.sketch.sketch import Sketch, check_removal
from sketchshift.sketch.threads import add_blocks, processors
from sketchshift.sketch.totals import Totals

__all__ = ["Progress", "Sketcher", "open_for", "reporting"]

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
        self.spec = _checked(spec)
        self._skip = check_choice("Sketcher", "on_invalid", on_invalid, ("raise", "skip")) == "skip"
        self.n_threads = processors() if n_threads is None else n_threads
        check_integer("Sketcher", "n_threads", self.n_threads, 1, 4096)
        self._kernel = select_kernel(kernel)
        self._accumulate = make_accumulator(spec, self._kernel)
        self._totals = Totals.zero(spec)
        self._names = spec.columns
        self.position: Any = None  # of the stream, where it was loaded from a file
        self._lock = Lock()  # several threads may update one sketcher
        n_rows = max(1, min(HELD_ROWS, HELD_NUMBERS // spec.n_features))
        self._held = np.empty((n_rows, spec.n_features))
        self._n_held = 0
        # A row inside this box is within reach; one outside may be, which the sums will tell.
        self._box = REACHED * spec.reach / np.sqrt(spec.n_features) / spec.per_unit

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
        is_plain = sample_weight is None and columns is None and progress is None
        if is_plain and self._hold(data):
            return self
        added = self._total(data, sample_weight, columns, progress)
        with self._lock:
            self._totals = self._totals + added
        return self

    def _hold(self, data: Any) -> bool:
        """Keep a few rows for later; False for anything but an array of a few good rows."""
        if type(data) is not np.ndarray or data.ndim != 2 or data.dtype.kind not in "fiub":
            return False
        n, d = data.shape
        if not 0 < n <= len(self._held) // 8 or d != self.spec.n_features:
            return False
        if not (np.abs(data - self.spec.center_vector) < self._box).all():  # nor for NaN
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
            self._totals = self._totals + self._total(held, None, None, None)
            self._n_held = 0

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
            self._flush()
            rest = self._totals - removed
            check_removal(self._totals, removed, rest, self.spec)
            self._totals = rest
        return self

    def sketch(self) -> Sketch:
        """The sketch of the rows that are in now."""
        with self._lock:
            self._flush()
            return Sketch(self.spec, self.spec.fingerprint, self._totals.copy())

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
            msg = f"position must be something that JSON can hold, and it is not ({cause})."
            raise DataError(msg) from None
        state = {"columns": self._names, "on_invalid": "skip" if self._skip else "raise"}
        integers = self.sketch().to_bytes()
        write_checkpoint(Path(path), STREAM, {"value": position}, state, integers)

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
        position, state, integers = read_checkpoint(Path(path), STREAM)
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

    def _total(
        self,
        data: Any,
        sample_weight: Any,
        columns: Sequence[str] | None,
        progress: Progress | None,
    ) -> Totals:
        source = open_for(self.spec, data, columns, weights=sample_weight, names=self._names)
        totals = self.total(source, reporting(source, progress))
        self._names = self._names or source.columns  # later frames are read by the same names
        return totals

    def total(self, source: Source, blocks: Iterator[Block]) -> Totals:
        """What some blocks of a source add up to; they are not added here."""
        if self._kernel.chunk > BLOCK_NUMBERS:
            blocks = joined(blocks, self._kernel.chunk // self.spec.n_features)
        adders = add_blocks(blocks, self.adders(source), self.n_threads)
        return sum((adder.totals() for adder in adders), start=Totals.zero(self.spec))

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


def reporting(source: Iterable[Block], progress: Progress | None) -> Iterator[Block]:
    """The blocks of a source, each reported once it was taken."""
    for block in source:
        yield block
        if progress is not None:
            progress(len(block.values), block.done)
