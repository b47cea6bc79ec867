"""Lists of an inverted index, trained from sketches instead of rows.

An index of vectors (faiss' ``IndexIVF``, pgvector's ``ivfflat``) puts every row into the list of
its nearest coarse centroid, and a query looks into a few lists. These centroids are k-means of the
rows. Here they come from sketches: of shards that are added, less rows that were deleted, without
reading the others again.

Symbols
-------
J, k, d   cells of the sketch, lists, columns
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._kmeans import weighted_kmeans
from sketchshift._text import counted
from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.decoders import Decoding, Outcome, Trust, decode
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features.rows import METRICS
from sketchshift.metrics import assign, match_centroids
from sketchshift.sketch import AnySketch, Sketch, SketchTable
from sketchshift.sketch.sketch import merge_sketches

__all__ = ["CoarseLists", "train_lists"]

MOST_LISTS = 16_384
LOSS_TO_STAY = 1.01
"""Times the cost of centroids found anew that the previous ones, moved on, may have and stay."""


@dataclass(frozen=True, eq=False)
class CoarseLists:
    """Coarse centroids of an inverted index, and what is known of them.

    Attributes
    ----------
    centroids : float32 array of shape (k, d)
        One for each list, in C order, as ``quantizer.add`` of faiss takes them. Those of
        directions have length 1.
    shares : array of shape (k,)
        Share of the rows expected in each list.
    metric : str
        "euclidean", or "cosine" where rows are compared by their directions.
    n_rows : int
        How many rows the sketch is of.
    cost : float or None
        Estimate of the mean squared distance of the rows to the centroids of their lists.
    cost_bound : float or None
        What that is at most, proved, for centroids found anew: see :func:`sketchshift.certify`.
    trust : Trust or None
        How far both are apart, in a sentence.
    has_moved : bool array of shape (k,)
        Whether a list's place was taken by another one's: whether its centroid is now nearer to
        another previous centroid than to its own. All False without previous ones.
    """

    centroids: NDArray[np.float32]
    shares: FloatArray
    metric: str
    n_rows: int
    cost: float | None = None
    cost_bound: float | None = None
    trust: Trust | None = None
    has_moved: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def n_lists(self) -> int:
        """Number k of lists."""
        return len(self.centroids)

    @property
    def n_moved(self) -> int:
        """How many lists have moved; rows of the others mostly stay where they are."""
        return int(self.has_moved.sum())

    def assign(self, X: Any) -> IntArray:
        """The list of each row.

        Parameters
        ----------
        X : array-like of shape (N, d)
            Read block by block. Lengths do not matter where directions are compared.

        Returns
        -------
        lists : int64 array of shape (N,)
            From 0 to k - 1. O(N k d).
        """
        # Of unit centroids, the nearest to a row is the nearest to its direction.
        return assign(X, self.centroids)

    def to_faiss(self) -> Any:
        """An empty ``faiss.IndexIVFFlat`` that is trained: ``index.add(X)`` may follow.

        Returns
        -------
        index : faiss.IndexIVFFlat
            With squared distances, or with inner products for directions; then rows and queries
            must have length 1, as always in faiss.
        """
        faiss = _import_faiss()
        is_cosine = self.metric == "cosine"
        d = self.centroids.shape[1]
        quantizer = faiss.IndexFlatIP(d) if is_cosine else faiss.IndexFlatL2(d)
        quantizer.add(self.centroids)
        measure = faiss.METRIC_INNER_PRODUCT if is_cosine else faiss.METRIC_L2
        return faiss.IndexIVFFlat(quantizer, d, self.n_lists, measure)

    def __repr__(self) -> str:
        k, d = self.centroids.shape
        return f"<CoarseLists: {k} x {d} columns, {self.metric}, of {self.n_rows} rows>"


def train_lists(
    sketches: Sketch | SketchTable | Iterable[Sketch | SketchTable],
    n_lists: int,
    *,
    where: str | None = None,
    without: Sketch | SketchTable | Iterable[Sketch | SketchTable] | None = None,
    metric: str | None = None,
    previous: CoarseLists | Any = None,
    seed: int = 0,
) -> CoarseLists:
    r"""Coarse centroids for an inverted index, from sketches of its rows.

    .. math::

        \arg\min_{c_1 \dots c_k} \sum_n \min_i \|x_n - c_i\|^2

    over the rows of all sketches, less those of ``without``.

    Parameters
    ----------
    sketches : Sketch, SketchTable, or several of them
        Shards of the data, taken with one plan: ``ss.plan(sample, n_clusters=n_lists)``.
    n_lists : int
        Number k of lists, up to 16,384 and to the number J of cells.
    where : str or None
        Which slices of the tables, as in :meth:`SketchTable.where`.
    without : Sketch, SketchTable, several of them, or None
        Sketches of deleted rows. They are subtracted, to the bit.
    metric : str or None
        "cosine" for rows that are compared by their directions, else "euclidean". None takes that
        of the plan. A plan of another metric is refused, unless rows had length 1 already when
        they were sketched: ask for "cosine" then.
    previous : CoarseLists, array of shape (k, d) or None
        Centroids of the index as it is. Where the data allows, they are moved on, so that few rows
        change their list; else new ones take the numbers of those next to them.
    seed : int, default=0
        Of every random start. The same sketches and seed give the same bytes.

    Returns
    -------
    lists : CoarseLists
        Centroids in float32, the share of the rows in each list, and how far they can be trusted.
        O(J k d) a step of k-means over cells, whatever the number of rows.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = 9.0 * rng.normal(size=(16, 8))[rng.integers(16, size=3000)]
    >>> X += rng.normal(size=X.shape)
    >>> spec = ss.plan(X, n_clusters=16)
    >>> shards = [ss.sketch(part, spec) for part in np.split(X, 3)]
    >>> lists = ss.index.train_lists(shards, 16)
    >>> lists
    <CoarseLists: 16 x 8 columns, euclidean, of 3000 rows>
    >>> fresh = ss.index.train_lists(shards, 16, without=shards[2], previous=lists)
    >>> fresh.n_rows, fresh.n_moved
    (2000, 0)
    """
    k = check_integer("train_lists", "n_lists", n_lists, 1, MOST_LISTS)
    sketch = _merge(sketches, "sketches", where)
    if without is not None:
        gone = _merge(without, "without", None)
        sketch = sketch - gone
    metric = _choose_metric(sketch, metric)
    _check_tells(sketch, k)
    old = None if previous is None else _as_previous(previous, k, sketch.spec.n_features)
    found = decode(sketch, k, seed=seed)
    if found.outcome is not Outcome.COMPLETE:
        msg = (
            f"the sketch tells only {counted(len(found.centroids), 'list')} apart, and {k:,} were "
            "asked for: so many distinct rows it is of. Ask for fewer lists."
        )
        raise DataError(msg)
    return _Trained.of(sketch, found, metric, old).lists(metric, sketch, found)


def _merge(given: Any, name: str, where: str | None) -> Sketch:
    """One sketch of all that was given."""
    parts: list[Sketch] = []
    is_one = isinstance(given, AnySketch | SketchTable)
    n_tables = 0
    for part in [given] if is_one else _listed(given, name):
        if isinstance(part, SketchTable):
            n_tables += 1
            parts += (part if where is None else part.where(where)).sketches
        elif isinstance(part, AnySketch):
            parts.append(part)  # type: ignore[arg-type]
        else:
            raise parameter_error("train_lists", name, _KINDS, part)
    if where is not None and not n_tables:
        must = "None where no table is given: conditions are on the keys of tables"
        raise parameter_error("train_lists", "where", must, where)
    if not parts:
        raise DataError(f"{name!r} of train_lists has no sketches in it. Check the condition.")
    return parts[0] if len(parts) == 1 else merge_sketches(parts)


_KINDS = "sketches or tables of sketches"


def _listed(given: Any, name: str) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise parameter_error("train_lists", name, _KINDS, given)
    return list(given)


def _choose_metric(sketch: AnySketch, metric: str | None) -> str:
    planned = sketch.spec.rows.metric
    if metric is None:
        return planned
    check_choice("train_lists", "metric", metric, METRICS)
    if metric == "euclidean" and planned == "cosine":
        must = "'cosine': the plan keeps directions alone. Plan anew with metric='euclidean'"
        raise parameter_error("train_lists", "metric", must, metric)
    return metric


def _check_tells(sketch: AnySketch, k: int) -> None:
    """Refuse more lists than cells: what lies in one cell cannot be told apart."""
    cells = sketch.spec.cells
    if cells is not None and k > cells.n_cells:
        msg = (
            f"the sketch has {counted(cells.n_cells, 'cell')}: it cannot tell {k:,} lists apart. "
            f"Plan with n_clusters={k} on a larger sample and sketch the rows with that plan, or "
            "ask for fewer lists."
        )
        raise DataError(msg)


def _as_previous(previous: Any, k: int, d: int) -> FloatArray:
    centroids = previous.centroids if isinstance(previous, CoarseLists) else previous
    try:
        points = np.asarray(centroids, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.shape != (k, d) or not np.isfinite(points).all():
        must = f"lists, or finite centroids of shape ({k}, {d})"
        raise parameter_error("train_lists", "previous", must, previous)
    return points


@dataclass(frozen=True, eq=False)
class _Trained:
    """Centroids (k, d) in the units of the data, with shares (k,) and the cost."""

    centroids: FloatArray
    shares: FloatArray
    cost: float | None
    is_anew: bool
    has_moved: BoolArray

    @classmethod
    def of(
        cls, sketch: AnySketch, found: Decoding, metric: str, previous: FloatArray | None
    ) -> _Trained:
        """Those found anew; or the previous ones moved on, where these are about as good."""
        centroids, k = found.centroids, len(found.centroids)
        if previous is None:
            return cls(centroids, found.weights, found.cost, True, np.zeros(k, dtype=bool))
        cells = _cell_means(sketch)
        if cells is not None:
            means, weights = cells
            on = weighted_kmeans(means, weights, k, starts=previous)
            anew = weighted_kmeans(means, weights, k, starts=centroids, max_iterations=1)
            if on.cost <= LOSS_TO_STAY * anew.cost:
                shares = np.bincount(on.labels, weights, minlength=k) / weights.sum()
                moved = _find_moved(previous, on.centroids)
                return cls(on.centroids, shares, None, False, moved)
        order = _match(previous, centroids)
        moved = _find_moved(previous, centroids[order])
        return cls(centroids[order], found.weights[order], found.cost, True, moved)

    def lists(self, metric: str, sketch: AnySketch, found: Decoding) -> CoarseLists:
        """As they are handed to an index."""
        points = self.centroids
        if metric == "cosine":
            lengths = np.linalg.norm(points, axis=1, keepdims=True)
            points = points / np.where(lengths > 0.0, lengths, 1.0)
        return CoarseLists(
            np.ascontiguousarray(points, dtype=np.float32),
            np.asarray(self.shares, dtype=np.float64),
            metric,
            int(sketch.count),
            self.cost,
            found.cost_bound if self.is_anew else None,
            found.trust,
            self.has_moved,
        )


def _cell_means(sketch: AnySketch) -> tuple[FloatArray, FloatArray] | None:
    """Means of the cells that have rows, in the units of the data, and their weights."""
    sums = sketch.cells if isinstance(sketch, Sketch) else None
    if sums is None:
        return None
    has_rows = sums.weights > 0.0
    spec = sketch.spec
    means = spec.rows.center_vector + sums.means[has_rows] / spec.rows.per_unit
    return means, sums.weights[has_rows]


def _match(previous: FloatArray, centroids: FloatArray) -> IntArray:
    """Which centroid takes the number of each previous one.

    Pairs that are each other's nearest come first: they are most of them, and the best assignment
    of the rest is then a small problem.
    """
    to_new, to_old = assign(previous, centroids), assign(centroids, previous)
    order = np.where(to_old[to_new] == np.arange(len(previous)), to_new, -1)
    left_old = np.flatnonzero(order < 0)
    left_new = np.setdiff1d(np.arange(len(centroids)), order)
    if len(left_old):
        order[left_old] = left_new[match_centroids(previous[left_old], centroids[left_new])]
    return order


def _find_moved(previous: FloatArray, centroids: FloatArray) -> BoolArray:
    """Whether a centroid is nearer to another previous one than to its own."""
    nearest = assign(centroids, previous)
    is_other = nearest != np.arange(len(previous))
    ties = np.square(centroids - previous).sum(axis=1) == np.square(
        centroids - previous[nearest]
    ).sum(axis=1)
    return np.asarray(is_other & ~ties)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as cause:
        msg = "to_faiss needs faiss, which is not installed: pip install 'sketchshift[index]'."
        raise MissingDependencyError(msg) from cause
    return faiss
