"""What a decoder is, what it gives back, and which decoders there are.

A decoder is two methods: ``fit`` makes of a sketch what any number of clusters is cut from, and
``decode`` of that cuts them. What :func:`register_decoder` is told of is found by ``ss.decode``,
the commands and the reports.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sketchshift._pictures import draw_picture
from sketchshift._registry import show_card
from sketchshift._text import nameless_columns
from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders.profile import Profile, to_arrow
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.features.rows import directions_of
from sketchshift.metrics import Assignment, nearest_two
from sketchshift.sketch import AnySketch
from sketchshift.sketch.reading import Reading

__all__ = [
    "DECODERS",
    "Decoder",
    "Decoding",
    "Fit",
    "KCurve",
    "Outcome",
    "Progress",
    "Round",
    "Step",
    "Trust",
    "register_decoder",
    "summary_of",
    "uses_cells",
]


UNPROVED = "No cost of these clusters was estimated."
TRUSTED = 1.15
"""Times the estimated cost up to which a proved one is good news."""


class Outcome(StrEnum):
    """How a decoding ended; the value is the sentence shown to the user."""

    COMPLETE = "All centroids were found."
    EMPTY_RESIDUAL = (
        "Nothing was left to explain before all centroids were found: the data has fewer distinct "
        "points than clusters were asked for, or points too near to each other for this plan."
    )
    FLAT_CORRELATION = (
        "No further centroid was found: the bandwidth of the plan is probably too small, the "
        "starts are too few, or the domain holds no data."
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One atom of the trace, as the progress callback receives it.

    Attributes
    ----------
    index, total : int
        Number of this atom, from 1, and of all atoms.
    centroid : array of shape (d,)
        In the units of the data.
    correlation : float
        The correlation function of the residual there.
    residual_norm : float
        Norm of what the atoms so far leave of the sketch, after their weights were fitted again,
        relative to the sketch's own.
    """

    index: int
    total: int
    centroid: FloatArray
    correlation: float
    residual_norm: float


@dataclass(frozen=True, eq=False)
class Round:
    """One fit of the turnkey decoder's trace, as the progress callback receives it.

    Attributes
    ----------
    index, total : int
        Number of this fit, from 1, and of all fits.
    n_atoms : int
        Gaussians fitted.
    misfit : float
        What the descent brought down: the root of the weighted squares that these Gaussians, more
        than there are clusters, leave of the sketch, relative to the sketch's own.
    """

    index: int
    total: int
    n_atoms: int
    misfit: float


Progress = Callable[[Step | Round], None]


@dataclass(frozen=True, eq=False)
class KCurve:
    """How well k clusters explain a sketch, for every k up to a largest one.

    Attributes
    ----------
    n_clusters : int array of shape (k_max,)
        The numbers 1, 2, ..., k_max.
    misfit : array of shape (k_max,)
        What k Gaussians, one for each cluster, leave of the weighted sketch, as a share of it: the
        geometric mean for Gaussians of the clusters' shapes and for round ones.
    score : array of shape (k_max,)
        The misfit with the noise of so few rows in it, times the fourth root of k.
    inertia : array of shape (k_max,)
        Share of the variance that is left within clusters: the elbow curve of k-means.
    chosen : int
        The least k whose score is within 2.5 % of the least, where that is a natural number;
        otherwise the middle one of the alternatives.
    criterion : str
        What decided: "misfit"; "distinct points" when rows have so few values that each is a
        cluster; or "variance" where there is no natural number of clusters.
    is_natural : bool
        Whether the curve singles this number out. If not, more clusters go on explaining more, and
        any number is as good as another.
    alternatives : tuple of int
        A coarse, a medium and a fine number of clusters, each where the gain of one more drops.
    """

    n_clusters: IntArray
    misfit: FloatArray
    score: FloatArray
    inertia: FloatArray
    chosen: int
    criterion: str
    is_natural: bool = True
    alternatives: tuple[int, ...] = ()

    def __repr__(self) -> str:
        what = "" if self.is_natural else ", no natural number"
        return (
            f"<KCurve of 1 to {len(self.n_clusters)} clusters: {self.chosen} by {self.criterion}"
            f"{what}>"
        )


@dataclass(frozen=True)
class Trust:
    """How far clusters can be trusted: what is proved of their cost, against the estimate.

    Distances are those that the clusters were found by: of the data, or of columns divided by their
    scales where each has its own.

    Attributes
    ----------
    score : float
        The estimated cost over the one proved of all rows, from 0 to 1.
    is_good : bool
        Whether the latter is at most 1.15 times the estimate. All of 220 such clusters of the sets
        of ``docs/quality.md`` cost less than 1.05 times those of the best k-means.
    sentence : str
        For people; also ``str(trust)``.
    """

    score: float
    is_good: bool
    sentence: str

    @classmethod
    def of(
        cls,
        cost: float,
        bound: float,
        of_all: float,
        *,
        variances: tuple[float, float],
        of_light: float = 0.0,
        left_out: str = "",
        is_exact: bool = False,
    ) -> Trust:
        """Judge an estimated ``cost`` by a proved ``bound``, both of rows that belong to clusters.

        ``of_light`` is a part of the cost that is known only as long as no cluster cuts the cells
        it is from; ``of_all`` is what is proved of all rows; ``variances`` are what a single
        cluster would cost, of rows that belong to clusters and of all; ``left_out`` tells of rows
        that belong to none; ``is_exact``: all rows of a cluster are equal, and the bound is
        rounding.
        """
        score = cost / of_all if of_all > 0.0 else 1.0
        explained = _explained(0.0 if is_exact else min(cost + of_light, bound), variances[0])
        if score * TRUSTED >= 1.0:
            proved = _explained(0.0 if is_exact else of_all, variances[1])
            return cls(score, True, f"The clusters explain {explained}{_proved(proved)}.")
        proved = _explained(bound, variances[0])
        if cost * TRUSTED >= bound:
            words = f"explain {explained} of all rows but a few{_proved(proved)}"
            advice = "If they are sound, plan anew on a sample that has such rows."
        else:
            words = f"seem to explain {explained}{_proved(proved, 'only')}"
            advice = (
                "A plan for as many clusters, on more rows across all of the data, would tell more."
            )
        sentences = (f"The clusters {words}.", left_out, advice)
        return cls(score, False, " ".join(filter(None, sentences)))

    def __str__(self) -> str:
        return self.sentence


NOTHING = "hardly anything of the variance"


def _explained(cost: float, variance: float) -> str:
    """The share of a variance that a cost does not leave; with more digits, the nearer to all."""
    left = min(1.0, cost / variance) if variance > 0.0 else 0.0
    if left >= 0.995:
        return NOTHING
    if left < 5e-7:
        return "all of the variance"
    digits = max(0, -math.floor(math.log10(left)) - 1)
    return f"{100.0 * (1.0 - left):.{digits}f} % of the variance"


def _proved(explained: str, how: str = "at least") -> str:
    """What is proved of it, as the second half of a sentence."""
    if explained == NOTHING:
        return "" if how == "at least" else ", and nothing is proved"
    return f", and {how} {explained.removesuffix(' of the variance')} is proved"


@dataclass(frozen=True, eq=False)
class Decoding:
    """Clusters decoded from a sketch.

    Attributes
    ----------
    centroids : array of shape (k, d)
        In the units of the data, heaviest first. Fewer than asked for when ``outcome`` is not
        ``Outcome.COMPLETE``; none at all when nothing in the domain correlates.
    weights : array of shape (k,)
        Shares of the rows, positive or zero, summing up to 1.
    covariances : array of shape (k, d, d) or None
        In the units of the data; zero where a component is a Dirac; None when all are.
    residual_norm : float
        Norm of what these clusters, as a mixture of Gaussians with their weights and covariances,
        or of points where there are none, leave of the sketch's waves, relative to the norm of
        these. 0 is a sketch explained to the last wave; 1, or more, one not explained at all.
    outcome : Outcome
        How it ended; ``str(outcome)`` is a sentence.
    trace : tuple of Step or of Round
        One for each atom, in the order they were found; of the turnkey decoder, for each fit.
    curve : KCurve or None
        How the number of clusters was chosen, where that was left to the decoder.
    cost : float or None
        Estimate of the mean squared distance of the rows to their centroids, in the units of the
        data; None where the sketch has no cells.
    cost_bound : float or None
        What that distance is at most, proved: see :func:`sketchshift.certify`. Rows that belong to
        no cluster count here, and not in ``cost``.
    trust : Trust or None
        How far both are apart, for rows that belong to clusters.
    sketch : Sketch, PrivateSketch or None
        What was decoded: it knows the columns, and what all rows are. :func:`~sketchshift.decode`
        fills it in where a decoder did not.
    """

    centroids: FloatArray
    weights: FloatArray
    covariances: FloatArray | None
    residual_norm: float
    outcome: Outcome
    trace: tuple[Step, ...] | tuple[Round, ...]
    curve: KCurve | None = None
    cost: float | None = None
    cost_bound: float | None = None
    trust: Trust | None = None
    sketch: AnySketch | None = None

    # What all rows are: each cluster is told by how it differs.

    @property
    def spec(self) -> SketchSpec | None:
        """What the sketch was taken with: columns, scales, metric."""
        return None if self.sketch is None else self.sketch.spec

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns of the centroids; "column 0" and so on where they have none."""
        if self.spec is None:
            return nameless_columns(self.centroids.shape[1])
        return self.spec.rows.labels

    @property
    def n_rows(self) -> int | None:
        """Number of all rows, of a private sketch an estimate of it."""
        return None if self.sketch is None else self.sketch.count

    @property
    def total_weight(self) -> float | None:
        """Sum of the weights of all rows."""
        return None if self.sketch is None else self.sketch.total_weight

    @property
    def mean(self) -> FloatArray | None:
        """Mean of all rows, shape (d,): of the sketch, or, where it has none, of the clusters.

        None where there are neither.
        """
        return self._outline[0]

    @property
    def std(self) -> FloatArray | None:
        """Standard deviation of all rows (divided by N), shape (d,), likewise."""
        return self._outline[1]

    @cached_property
    def _outline(self) -> tuple[FloatArray | None, FloatArray | None]:
        known = None if self.sketch is None else self.sketch.spread
        if known is not None:
            return known[0], np.sqrt(np.maximum(known[1], 0.0))
        if not len(self.weights):
            return None, None
        mean = self.weights @ self.centroids
        variances = np.square(self.centroids - mean)
        if self.covariances is not None:
            variances += np.diagonal(self.covariances, axis1=1, axis2=2)
        return mean, np.sqrt(self.weights @ variances)

    @property
    def column_scale(self) -> FloatArray:
        """What distances divide each column by, shape (d,); ones where all columns are alike."""
        spec = self.spec
        if spec is None or not spec.rows.is_standardised:
            return np.ones(self.centroids.shape[1])
        return spec.rows.scale_vector

    @cached_property
    def profile(self) -> Profile:
        """What each cluster is, in words and numbers."""
        return Profile.of(self)

    # Which cluster rows belong to.

    def assign(self, data: Any) -> Assignment:
        """The cluster of each row, the distance to it, the second choice, and how sure it is.

        Distances are those that the clusters were found by: of columns divided by their scales
        where the plan standardises, of directions where its metric is "cosine".

        Parameters
        ----------
        data : anything that :func:`~sketchshift.sketch` reads
            An array, a frame, a path: read block by block, columns by name where they have names.

        Returns
        -------
        assignment : Assignment
            In the order of the rows. Rows with missing values have the label -1. O(N k d) time,
            O(N) memory.
        """
        found = [nearest_two(rows, self.centroids, self.column_scale) for rows in self._read(data)]
        fields = ("labels", "distances", "second", "confidence")
        return Assignment(*(np.concatenate([getattr(f, name) for f in found]) for name in fields))

    def predict(self, data: Any) -> IntArray:
        """Number of the cluster of each row, from 0; -1 where a value is missing.

        Parameters
        ----------
        data : anything that :func:`~sketchshift.sketch` reads
            As in :meth:`assign`.

        Returns
        -------
        labels : int64 array of shape (N,)
            The share of rows with each label is close to :attr:`weights`.
        """
        return self.assign(data).labels

    def _read(self, data: Any) -> Iterator[FloatArray]:
        """Blocks of rows, as distances see them before they are scaled."""
        yield self._see(np.empty((0, self.centroids.shape[1])))  # of data without rows
        for block in Reading(self.spec, on_invalid="skip").open(data):
            yield self._see(block.values)

    def _see(self, rows: RealArray) -> FloatArray:
        """Rows (n, d), as distances see them before they are scaled."""
        d = self.centroids.shape[1]
        if not len(self.centroids):
            raise DataError("there are no clusters to assign rows to: none was found.")
        values = np.asarray(rows, dtype=np.float64)
        if values.shape[1] != d:
            msg = f"the data has {values.shape[1]} columns, and the clusters have {d}."
            raise DataError(msg)
        is_cosine = self.spec is not None and self.spec.rows.metric == "cosine"
        return directions_of(values) if is_cosine else values

    def examples(self, data: Any, n_rows: int = 3, *, where: str | None = None) -> Any:
        """The rows nearest to each centroid, as the table has them, in one more pass.

        Parameters
        ----------
        data : frame, Arrow data or path(s)
            A table with names of columns.
        n_rows : int, default=3
            How many rows of each cluster.
        where : str or None
            A condition on the columns, as SQL writes it.

        Returns
        -------
        table : Arrow table of up to k n_rows rows
            All columns of the data behind ``cluster`` and ``distance``, the nearest first. O(N k d)
            time, memory of a few blocks.
        """
        import pyarrow as pa

        n_rows = check_integer("examples", "n_rows", n_rows, 1, 10**6)
        nearest: list[Any] = [[] for _ in self.weights]  # (distance, order, row) of each cluster
        reading = Reading(self.spec, on_invalid="skip", where=where)
        for number, block in enumerate(reading.open(data, beside="all")):
            if block.keys is None:
                raise DataError("examples need a table with names of columns, and this has none.")
            found = nearest_two(self._see(block.values), self.centroids, self.column_scale)
            for i, best in enumerate(nearest):
                mine = np.flatnonzero(found.labels == i)
                mine = mine[np.argsort(found.distances[mine], kind="stable")[:n_rows]]
                rows = block.keys.take(pa.array(mine))
                kept = [
                    (float(found.distances[row]), number, rows.slice(place, 1))
                    for place, row in enumerate(mine.tolist())
                ]
                best[:] = sorted([*best, *kept], key=lambda item: item[:2])[:n_rows]
        return _join_examples(nearest)

    # As a table, and as a picture.

    def to_arrow(self) -> Any:
        """An Arrow table of a row for each cluster: ``cluster``, ``share`` and its centroid."""
        own = {"cluster": np.arange(len(self.weights)), "share": self.weights}
        return to_arrow(own, self.columns, self.centroids)

    def to_pandas(self) -> Any:
        """The same as a pandas frame; ``profile.to_pandas()`` tells more of each cluster."""
        return self.to_arrow().to_pandas()

    def plot(self) -> Any:
        """The clusters on a map, their shares, and how they were found: a matplotlib figure."""
        if self.sketch is None:
            msg = (
                "this decoding does not know its sketch. Draw it with "
                "sketchshift.view.decoding_figure(sketch, decoding)."
            )
            raise DataError(msg)
        return draw_picture("decoding", self.sketch, self)

    @property
    def is_good(self) -> bool:
        """Whether all clusters were found, and nothing speaks against them."""
        is_trusted = self.trust is None or self.trust.is_good
        return self.outcome is Outcome.COMPLETE and is_trusted

    @property
    def sentence(self) -> str:
        """For people: how it ended, if not well; else how far the clusters can be trusted."""
        if self.outcome is not Outcome.COMPLETE:
            return str(self.outcome)
        return UNPROVED if self.trust is None else str(self.trust)

    def __repr__(self) -> str:
        k, d = self.centroids.shape
        return f"<Decoding of {k} centroids x {d} columns: residual {self.residual_norm:.3g}>"

    def _repr_html_(self) -> str | None:
        return show_card(self)


def _join_examples(nearest: Sequence[Sequence[tuple[float, int, Any]]]) -> Any:
    """One Arrow table of the rows of all clusters."""
    import pyarrow as pa

    found = [(i, distance, row) for i, best in enumerate(nearest) for distance, _, row in best]
    if not found:
        raise DataError("there are no rows to show. Check the path or the condition.")
    tables = [
        pa.Table.from_batches([row]) if isinstance(row, pa.RecordBatch) else row
        for *_, row in found
    ]
    rows = pa.concat_tables(tables, promote_options="permissive")
    own = {"cluster": [i for i, *_ in found], "distance": [distance for _, distance, _ in found]}
    names = [f"cluster {name}" if name in rows.column_names else name for name in own]
    arrays = [pa.array(values) for values in own.values()]
    return pa.table([*arrays, *rows.columns], names=[*names, *rows.column_names])


# What decoders have in common, and where they are found by name.


@runtime_checkable
class Fit(Protocol):
    """What a decoder knows of a sketch, before it is cut into clusters.

    It answers for every sketch with rows: equal rows, or fewer distinct ones than k, give the
    clusters there are, and ``Outcome.EMPTY_RESIDUAL``. A fit that can choose k also has
    ``decode_auto(max_clusters)``; one that takes much memory tells it as ``nbytes``.
    """

    def decode(self, k: int) -> Decoding:
        """The k clusters; k is at most what was fitted for."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """Finds clusters in sketches: usually a frozen dataclass, whose fields are its constants.

    Where to look is such a field, ``domain``, of those that can be told. One whose fits can choose
    k also has ``most_clusters(spec, max_clusters)``: the largest k that is looked at, given what
    was asked for or None. One that reads cells says so with ``uses_cells = True``; for others data
    is planned with waves alone.
    """

    def fit(
        self,
        sketch: AnySketch,
        n_clusters: int,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Fit:
        """What up to ``n_clusters`` clusters are cut from. ``progress`` is called now and then."""
        ...


DECODERS: dict[str, Callable[[], Decoder]] = {}
"""By name; called without arguments, each gives a decoder with its default constants."""


def register_decoder(name: str, cls: Callable[[], Decoder]) -> None:
    """Make a decoder known by name: to ``decode``, the commands and the reports.

    Parameters
    ----------
    name : str
        Small letters, digits and hyphens, as in ``sketchshift cluster --decoder NAME``.
    cls : type
        A class with a method ``fit(sketch, n_clusters, *, seed, progress)``, whose result has a
        method ``decode(k)`` that gives a :class:`Decoding`. Its fields have defaults. The first
        line of its docstring is what ``--help-all`` says of it.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> class Mean:
    ...     "One cluster at the mean, whatever was asked for."
    ...     def fit(self, sketch, n_clusters, *, seed=0, progress=None):
    ...         self.centroid = sketch.mean[None]
    ...         return self
    ...     def decode(self, k):
    ...         outcome = ss.decoders.Outcome.COMPLETE
    ...         return ss.Decoding(self.centroid, np.ones(1), None, 1.0, outcome, ())
    >>> ss.decoders.register_decoder("mean", Mean)  # doctest: +SKIP
    >>> ss.decode(ss.sketch(np.eye(2), n_clusters=1), 1, decoder=Mean()).centroids
    array([[0.5, 0.5]])
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise parameter_error("register_decoder", "name", "of small letters and hyphens", name)
    if name in DECODERS and not _is_same_definition(DECODERS[name], cls):
        must = "a name that no other decoder has"
        raise parameter_error("register_decoder", "name", must, name)
    if not callable(cls) or not callable(getattr(cls, "fit", None)):
        must = "a class with a method fit(sketch, n_clusters, *, seed, progress)"
        raise parameter_error("register_decoder", "cls", must, cls)
    DECODERS[name] = cls


def _is_same_definition(known: object, cls: object) -> bool:
    """Whether it is the same class, perhaps from a cell of a notebook that was run again."""
    places = [(getattr(c, "__module__", c), getattr(c, "__qualname__", c)) for c in (known, cls)]
    return known is cls or places[0] == places[1]


def uses_cells(decoder: object) -> bool:
    """Whether a decoder, given as one, by name or as None for the default, reads cells."""
    if isinstance(decoder, str):
        decoder = DECODERS.get(decoder)
    return decoder is None or bool(getattr(decoder, "uses_cells", False))


def summary_of(name: str) -> str:
    """The first line of the docstring of a registered decoder."""
    return (inspect.getdoc(DECODERS[name]) or "It does not say.").splitlines()[0]
