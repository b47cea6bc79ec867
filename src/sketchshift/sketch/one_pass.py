"""The function that reads any data once, with a spec given or planned on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from sketchshift._validation import parameter_error
from sketchshift.data import Block, Source, open_source
from sketchshift.errors import DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.sketch.checkpoint import check_same_plan, read_on
from sketchshift.sketch.plan import plan_source
from sketchshift.sketch.sketch import Sketch
from sketchshift.sketch.sketcher import Progress, Sketcher, open_for

__all__ = ["as_read", "check_result", "open_planned", "sketch"]

LEAST_WEIGHT = 2.0**-12
"""Mean weight below which the integers, in steps of 2**-22, keep too few digits."""


def sketch(
    data: Any,
    spec: SketchSpec | None = None,
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    seed: int | None = None,
    standardize: bool | None = None,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Sketch:
    """Read data once and give its sketch.

    Parameters
    ----------
    data : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        NumPy arrays (memmaps too), SciPy sparse matrices, pandas and Polars frames, Arrow
        tables, readers and anything with ``__arrow_c_stream__``, files (.parquet, .csv,
        .csv.gz, .arrow, .npy), folders and globs of them, or an iterator of such blocks.
    spec : SketchSpec or None
        What is summed. If it names columns, sources with names are read by them.
    n_clusters : int or None
        Instead of a spec: plan one for so many clusters, as :func:`sketchshift.plan` does. An
        iterator is planned on its first rows.
    sketch_size, seed, standardize : int, int and bool, or None
        With ``n_clusters``: as in :func:`sketchshift.plan`.
    columns : sequence of str or None
        Columns to read, by name; None takes the spec's, or all.
    sample_weight : array of shape (n,), str or None
        Weights, or the name of the column that holds them, of order 1: they count in steps of
        2**-22.
    n_threads : int or None
        None takes the processors this process may use. The bytes do not depend on it.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity, or have it as their weight.
    kernel : {"auto", "cpu", "cuda", "reference"}
        Where the sums are computed.
    progress : callable or None
        Called as ``progress(n_rows, share_read)`` after each block.
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
    planning = {"sketch_size": sketch_size, "seed": seed, "standardize": standardize}
    spec, source = open_planned(
        data, spec, n_clusters, planning, columns, on_invalid=on_invalid, weights=sample_weight
    )
    sketcher = Sketcher(spec, n_threads=n_threads, on_invalid=on_invalid, kernel=kernel)
    if checkpoint is None:
        result = sketcher.update(source, progress=progress).sketch()
    else:
        sums = _SketchSums(sketcher, source)
        read_on(source, sums, checkpoint, as_read(source, sample_weight, on_invalid), progress)
        result = sums.sketch
    check_result(result, is_weighted=sample_weight is not None)
    return result


class _SketchSums:
    """The sums of a plain pass, as a checkpoint holds them."""

    kind = "a sketch"

    def __init__(self, sketcher: Sketcher, source: Source) -> None:
        self._sketcher, self._source, self.sketch = sketcher, source, sketcher.sketch()

    def add(self, blocks: Iterator[Block]) -> None:
        """Add all blocks."""
        totals = self._sketcher.total(self._source, blocks)
        self.sketch += Sketch(self.sketch.spec, self.sketch.fingerprint, totals)

    def freeze(self) -> tuple[dict[str, Any], bytes]:
        """The sketch of the rows so far."""
        return {}, self.sketch.to_bytes()

    def thaw(self, state: dict[str, Any], integers: bytes) -> None:
        """Go on from a sketch of the same spec."""
        begun = Sketch.from_bytes(integers)
        check_same_plan(begun.spec, self.sketch.spec)
        self.sketch = begun


def as_read(source: Source, sample_weight: Any, on_invalid: str, **more: Any) -> dict[str, Any]:
    """What must be the same when a pass goes on, beside the spec, as JSON has it."""
    columns = None if source.columns is None else list(source.columns)
    return {"columns": columns, "sample_weight": sample_weight, "on_invalid": on_invalid} | more


def open_planned(
    data: Any,
    spec: SketchSpec | None,
    n_clusters: int | None,
    planning: dict[str, Any],
    columns: Sequence[str] | None,
    *,
    on_invalid: str,
    **opening: Any,
) -> tuple[SketchSpec, Source]:
    """The spec that was given, or else planned, and the data opened for it.

    Parameters
    ----------
    data, spec, n_clusters, columns, on_invalid
        As in :func:`sketch`.
    planning : dict
        Arguments of :func:`sketchshift.plan`, None where they were not given.
    **opening
        More for :func:`~sketchshift.data.open_source`.

    Returns
    -------
    spec : SketchSpec
        Of the pass to come.
    source : Source
        Delivers all rows.
    """
    given = {name: value for name, value in planning.items() if value is not None}
    _check_one(spec, n_clusters, given)
    if spec is None and n_clusters is not None:
        source = open_source(data, columns=columns, **opening)
        return plan_source(source, n_clusters, on_invalid=on_invalid, **given)
    if not isinstance(spec, SketchSpec):
        raise parameter_error("sketch", "spec", "a SketchSpec", spec)
    return spec, open_for(spec, data, columns, names=spec.columns, **opening)


def check_result(result: Sketch, *, is_weighted: bool) -> None:
    """Refuse the sketch of no rows, and of rows whose weights vanish in the integers."""
    if result.count == 0 and result.spec.origin is None:  # of private rows an error would tell
        left_out = f" ({result.n_invalid} invalid rows were left out)" if result.n_invalid else ""
        raise DataError(f"there are no rows to sketch{left_out}. Check the path or the filter.")
    if is_weighted and result.total_weight < result.count * LEAST_WEIGHT:
        msg = (
            f"the weights are too small for the integers: {result.count} rows have weight "
            f"{result.total_weight:.3g} in all. Multiply the weights by a constant, so that a "
            "typical one is 1 (and leave rows of weight 0 out)."
        )
        raise DataError(msg)


def _check_one(spec: Any, n_clusters: Any, given: dict[str, Any]) -> None:
    if spec is None and n_clusters is None:
        msg = (
            "sketch needs spec or n_clusters. Pass n_clusters=10 to plan on the way, or "
            "spec=ss.plan(sample, n_clusters=10) to share a plan between parts of the data."
        )
        raise SpecError(msg)
    beside = [*(["n_clusters"] if n_clusters is not None else []), *given]
    if spec is not None and beside:
        msg = (
            f"sketch takes spec or n_clusters, not both: {', '.join(beside)} cannot change what "
            "the spec says. Leave them out, or pass them to ss.plan instead."
        )
        raise SpecError(msg)
