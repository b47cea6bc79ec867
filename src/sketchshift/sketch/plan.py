"""Specs from any data: draw a sample, and plan on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sketchshift._typing import IntArray
from sketchshift.data import Access, Block, Source
from sketchshift.data.open import ask
from sketchshift.data.sample import Keep, PartSample, Sample, draw_head, draw_part, draw_rows
from sketchshift.data.source import not_finite
from sketchshift.errors import DataError, PlanWarning, warn
from sketchshift.features import SketchSpec
from sketchshift.features.plan import DRIFT_ROWS, plan_drift_rows, plan_rows
from sketchshift.features.rows import directions_of
from sketchshift.recipe import Recipe
from sketchshift.sketch.reading import Planning, Reading, engine_of
from sketchshift.sketch.rows import check_weights

__all__ = [
    "draw_sample",
    "plan",
    "plan_collection_or_rows",
    "plan_drift",
    "plan_sample",
    "plan_source",
    "refuse_no_vectors",
]

# The turnkey spec: draw a sample of any data, and plan on it.
#
# Takes a source from ``data``, hands a spec made by ``features``. What the numbers of a plan
# should be is not decided here, but in ``features.plan``.


def plan(
    sample: Any,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | Recipe | None = None,
    query: str | None = None,
    where: str | None = None,
    sample_weight: Any = None,
    standardize: bool | str = False,
    on_invalid: str = "raise",
    cells: bool | int = True,
    metric: str = "euclidean",
) -> SketchSpec:
    """A spec that suits the data: nothing to tune.

    Center, scale, cells and bandwidths come from up to 200,000 rows, drawn across all of the data.
    Make the plan once, and sketch every part of the data with it.

    Parameters
    ----------
    sample : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        The data itself, or a sample across it. See :func:`sketchshift.sketch`. Also a collection
        of Dask, Spark or Ray, of which rows are drawn where they lie.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    sketch_size : int or None
        Half of the numbers of a sketch, without its moments: the number m of frequencies where
        there are no cells. None takes 10 k d, at least 50.
    seed : int, default=0
        Of the frequencies and of the choice of rows.
    columns : sequence of str, Recipe or None
        Columns to read, by name, or one of vectors; None takes all but the weights. A recipe says
        how to make numbers of columns of any kind: see :func:`sketchshift.profiling.survey`.
    query : str or None
        Of a database: a SELECT, or the name of a table. None takes the only table.
    where : str or None
        A condition on any columns of a table, as SQL writes it: other rows are not looked at.
    sample_weight : array of shape (n,), str or None
        Weights, or the name of the column that holds them.
    standardize : bool or "robust", default=False
        Give every column a scale of its own, where units differ: its standard deviation, or
        ("robust") the distance of its quartiles. Otherwise distances are those of the data, as in
        k-means.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity, or have it as their weight.
    cells : bool or int, default=True
        Give most of the 2 m numbers to cells: counts, sums and squares of the rows nearest to each
        of some centers. Clusters are then as good as those of k-means on tails as well, no row is
        too far, and :func:`sketchshift.certify` proves what they cost. False gives all to waves,
        as the paper has it, from max(2000, 20 k) rows. Of fewer than 20 rows there are no cells. A
        number is how many cells there are at most, instead of as many as the sample is worth.
        Beyond 30 columns, without ``standardize``, cells hold the sums of all columns, and squares
        and waves are those along the ten principal axes of the sample.
    metric : {"euclidean", "cosine"}
        "cosine" divides every row by its length first, so that directions are clustered.

    Returns
    -------
    spec : SketchSpec
        The same for rows in any order.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> spec = ss.plan(X, n_clusters=5)
    >>> spec.cells
    <20 cells of 2 columns from 1,000 rows>
    >>> ss.plan(X[::-1], n_clusters=5) == spec
    True
    """
    planning = Planning(n_clusters, sketch_size, seed, standardize, cells, metric)
    reading = Reading(None, columns, sample_weight, on_invalid, where=where)
    sample = ask(sample, query)
    return plan_collection_or_rows(sample, reading, planning)


def plan_collection_or_rows(sample: Any, reading: Reading, planning: Planning) -> SketchSpec:
    """The plan of rows here, or of a collection of an engine."""
    engine = engine_of(sample)
    if engine is not None:
        return engine.plan(sample, reading, planning)
    source = reading.open(sample)
    spec, _ = plan_source(source, planning, reading.on_invalid, reading.recipe)
    return spec


@dataclass(frozen=True)
class DriftPlanning(Planning):
    """The parameters of :func:`plan_drift`, checked before any row is drawn."""

    n_clusters: int = 1
    cells: bool | int = False

    def n_rows(self, n_features: int) -> int:
        """Number of rows that the plan looks at."""
        return DRIFT_ROWS

    def plan_values(self, values: Any, columns: tuple[str, ...] | None) -> SketchSpec:
        """Plan on rows that are drawn already."""
        return plan_drift_rows(
            np.asarray(values, dtype=np.float64),
            sketch_size=self.sketch_size or DRIFT_SIZE,
            seed=self.seed,
            columns=columns,
            standardize=bool(self.standardize),
            metric=self.metric,
        )


DRIFT_SIZE = 960  # frequencies: a file of less than 16,000 bytes, with all that belongs to it


def plan_drift(
    sample: Any,
    *,
    sketch_size: int = DRIFT_SIZE,
    seed: int = 0,
    columns: Sequence[str] | Recipe | None = None,
    query: str | None = None,
    where: str | None = None,
    standardize: bool | str = False,
    metric: str = "euclidean",
    on_invalid: str = "raise",
) -> SketchSpec:
    r"""A spec for drift alone: small slices, compared in milliseconds, in any dimension.

    A slice holds its waves and its weight, 16 m bytes whatever the number of columns; no clusters
    are decoded from it. The kernel is Gaussian, of 0.7 times the median distance of two rows. How
    much sketches of such rows vary is found once, here, from up to 4,096 rows, and kept in the
    spec: :func:`compare` then needs neither rows nor a decoder.

    Parameters
    ----------
    sample : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        The data itself, or a sample across it, of 100 rows at least, as for
        :func:`sketchshift.sketch`. Also a collection of Dask, Spark or Ray.
    sketch_size : int, default=960
        Number m of frequencies.
    seed : int, default=0
        Of the frequencies and of the choice of rows.
    columns : sequence of str, Recipe or None
        Columns to read, by name, or how to make numbers of them; None takes all.
    query : str or None
        Of a database: a SELECT, or the name of a table. None takes the only table.
    where : str or None
        A condition on any columns of a table, as SQL writes it: other rows are not looked at.
    standardize : bool, default=False
        Give every column a scale of its own, where units differ.
    metric : {"euclidean", "cosine"}
        "cosine" compares directions: rows are divided by their lengths.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity.

    Returns
    -------
    spec : SketchSpec
        The same for rows in any order. O(4096 m (d + m)): some seconds.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> spec = ss.drift.plan_drift(rng.normal(size=(1000, 100)), sketch_size=200)
    >>> before, after = (ss.sketch(rng.normal(size=(1000, 100)) + m, spec) for m in (0.0, 0.1))
    >>> ss.compare(before, after).drifted
    True
    """
    planning = DriftPlanning(
        sketch_size=sketch_size, seed=seed, standardize=standardize, metric=metric
    )
    reading = Reading(columns=columns, on_invalid=on_invalid, where=where)
    sample = ask(sample, query)
    return plan_collection_or_rows(sample, reading, planning)


def plan_source(
    source: Source,
    planning: Planning,
    on_invalid: str = "raise",
    recipe: Recipe | None = None,
) -> tuple[SketchSpec, Source]:
    """Plan on rows of a source that is open already.

    The source handed back delivers all rows, also where the first ones of a stream had to be
    taken for the plan.
    """
    refuse_no_vectors(source)
    keep = _rows_to_keep(source, on_invalid, planning.metric)
    n_rows = planning.n_rows(source.n_features)
    if source.access is Access.ONCE:
        drawn, n_taken, source = draw_head(source, n_rows, seed=planning.seed, keep=keep)
        _warn_of_head(n_taken)
    else:
        drawn = draw_rows(source, n_rows, seed=planning.seed, keep=keep)
    return plan_sample(drawn, planning, source.columns, recipe), source


def draw_sample(source: Source, planning: Planning, on_invalid: str) -> PartSample:
    """The rows of one part of some data that a plan of all of it may need.

    Parameters
    ----------
    source : Source
        Can be read twice.
    planning : Planning
        Says how many rows, and has the seed.
    on_invalid : {"raise", "skip"}
        As in :func:`plan`.

    Returns
    -------
    sample : PartSample
        To be merged with those of the other parts.
    """
    keep = _rows_to_keep(source, on_invalid, planning.metric)
    n_rows = planning.n_rows(source.n_features)
    return draw_part(source, n_rows, seed=planning.seed, keep=keep)


def refuse_no_vectors(source: Source) -> None:
    """Raise where there is no row of vectors, so that nobody knows how long they are."""
    if not source.n_features:
        msg = f"there are no vectors to plan on in column {source.vector!r}. Check the path."
        raise DataError(msg)


def plan_sample(
    sample: Sample,
    planning: Planning,
    columns: tuple[str, ...] | None,
    recipe: Recipe | None = None,
) -> SketchSpec:
    """Plan on rows that are drawn already."""
    if not len(sample.values):
        raise DataError("there are no rows to plan on. Check the path, the filter or the weights.")
    rows, bounds = sample.values, (sample.lower, sample.upper)
    planning = planning.for_columns(rows.shape[1])
    if planning.metric == "cosine":
        rows = directions_of(rows)
        bounds = rows.min(axis=0), rows.max(axis=0)
    if isinstance(planning, DriftPlanning):
        spec = planning.plan_values(rows, columns)
        return spec if recipe is None else spec.replaced(rows=replace(spec.rows, columns=recipe))
    return plan_rows(
        rows,
        planning.n_clusters,
        weights=sample.weights,
        sketch_size=planning.sketch_size,
        seed=planning.seed,
        columns=columns,
        standardize=planning.standardize,
        bounds=bounds,
        cells=planning.cells,
        metric=planning.metric,
        has_axes=planning.has_axes,
        splits_values=planning.splits_values,
        overwrite=True,  # they were drawn for this
        recipe=recipe,
    )


def _rows_to_keep(source: Source, on_invalid: str, metric: str) -> Keep:
    """Which rows of a source may be drawn."""
    skip, has_lengths = on_invalid == "skip", metric == "cosine"
    return partial(_usable, columns=source.columns, skip=skip, has_lengths=has_lengths)


def _warn_of_head(n_taken: int | None) -> None:
    if n_taken is not None:
        msg = (
            f"planned on the first {n_taken:,} rows, since a stream can be read only once: if it "
            "is sorted, pass spec=ss.plan(a sample across it, n_clusters)."
        )
        warn(msg, PlanWarning)


def _usable(
    block: Block, *, columns: tuple[str, ...] | None, skip: bool, has_lengths: bool
) -> IntArray | None:
    """Rows of finite numbers with a positive weight; refuses what a sketch would refuse."""
    is_finite = np.isfinite(block.values)
    if is_finite.all() and block.weights is None and not has_lengths:
        return None
    is_usable = np.asarray(is_finite.all(axis=1))
    if has_lengths:
        is_usable &= np.isfinite(directions_of(block.values)[:, 0])
    if block.weights is not None:
        is_usable &= np.isfinite(block.weights)
    if not skip and not is_usable.all():
        raise not_finite(block, is_usable, columns)
    if block.weights is not None:
        rows = np.flatnonzero(is_usable)
        check_weights(block.weights[rows], rows, block.source, block.first_row)
        is_usable &= block.weights > 0.0
    return None if is_usable.all() else np.flatnonzero(is_usable)
