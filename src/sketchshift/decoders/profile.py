"""What each cluster is: its rows, how wide it is, and the columns that set it apart.

A column sets a cluster apart when the mean of its rows lies far from the mean of all rows, counted
in standard deviations of all rows. Where a recipe made several numbers of one column of the table,
or another number, the column is told as the table has it: shares of categories, typical values,
hours.

Symbols
-------
k, d      clusters, columns
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._registry import show_card
from sketchshift._text import counted, finite, meaningful
from sketchshift._times import name_of
from sketchshift._typing import FloatArray
from sketchshift.metrics import nearest_two
from sketchshift.recipe import Category, Cycle, Log, Number, Part
from sketchshift.sketch import Sketch

if TYPE_CHECKING:
    from sketchshift.decoders.decoder import Decoding

__all__ = ["ClusterProfile", "Profile", "ProfileTable", "Trait", "to_arrow"]

NOTABLE, VERY = 0.3, 2.0
"""Standard deviations from which a column is "high" or "low", and "very" so."""

ECHO = 0.9
"""Correlation, over all rows, from which on two columns say the same, and one of them is told."""

TOLD, IN_NAME, MOST_IN_NAME = 3, 2, 4
"""Columns told of a cluster, those in its name, and those if names are to differ."""

FINEST = 0.001
"""Of the standard deviation of all rows: a cluster is not told as if it were narrower."""

UNSEEN = 1e-5
"""Likewise: what sums in steps do not tell from 0."""

ALL_ROUND = 0.1
"""Distance of a mean time from the center of its circle below which it points nowhere."""

MOST_SHOWN = 12
"""Columns of the table in a notebook."""

AVERAGE, ALONE = "near the average", "all rows"
"""Names of a cluster that no column sets apart, and of one without others."""


@dataclass(frozen=True)
class Trait:
    """How one column of a cluster differs from all rows.

    Attributes
    ----------
    column : str
        As the table has it.
    value : float or str
        Mean of the cluster's rows, in the units of the table: of a category the value that is
        more common here, of a column on a log scale the typical value.
    deviation : float
        From the mean of all rows, in standard deviations of all rows.
    text : str
        ``"price high, +1.9 sd"``.
    shown : str
        The value with as many digits as mean something: ``"9,120"``.
    label : str
        For a name: ``"high price"``.
    """

    column: str
    value: float | str
    deviation: float
    text: str
    shown: str
    label: str

    @property
    def is_notable(self) -> bool:
        """Whether the column is worth a word: at least 0.3 sd from the mean of all rows."""
        return abs(self.deviation) >= NOTABLE


@dataclass(frozen=True)
class ClusterProfile:
    """What one cluster is.

    Attributes
    ----------
    number : int
        From 0, as in ``centroids``.
    rows : int or None
        Its share of all rows, rounded; None where the number of rows is not known.
    share : float
        Of all rows, or of their weight.
    spread : float or None
        Root of the mean squared distance to the centroid, as a share of that of all rows to their
        mean: 1 is as wide as all rows, 0 one point. In the distances that clusters were found by.
    name : str
        A few words, different for each cluster: ``"high price, low table"``.
    traits : tuple of Trait
        The three columns that set it apart, farthest first. Those within 0.3 sd are left out, and
        those that say the same as one that differs more: with a correlation of 0.9 or more.
    """

    number: int
    rows: int | None
    share: float
    spread: float | None
    name: str
    traits: tuple[Trait, ...]


@dataclass(frozen=True, eq=False)
class ProfileTable:
    """The numbers behind a profile, by cluster and column.

    Attributes
    ----------
    columns : tuple of str
        Names of the d columns.
    means, spreads, deviations : arrays of shape (k, d)
        Mean and standard deviation of the cluster's rows, and how far the mean is from that of all
        rows, in standard deviations of all rows. NaN where it is not known.
    mean, std : arrays of shape (d,)
        Of all rows.
    places : tuple
        The columns of the table that these columns are made of.
    correlations : array of shape (d, d) or None
        Of all rows, where the sketch keeps them.
    """

    columns: tuple[str, ...]
    means: FloatArray
    spreads: FloatArray
    deviations: FloatArray
    mean: FloatArray
    std: FloatArray
    places: tuple[_Place, ...]
    correlations: FloatArray | None = None

    def is_echo(self, a: int, b: int) -> bool:
        """Whether columns a and b of the table say the same, as far as is known."""
        first = [self.places[j].first for j in (a, b)]
        are_numbers = all(len(self.places[j].part.names) == 1 for j in (a, b))
        known = self.correlations
        return known is not None and are_numbers and bool(abs(known[first[0], first[1]]) >= ECHO)

    @classmethod
    def of(cls, decoding: Decoding) -> ProfileTable:
        """The numbers of a decoding: O(k d)."""
        C, unknown = decoding.centroids, np.full(decoding.centroids.shape[1], np.nan)
        mean = unknown if decoding.mean is None else decoding.mean
        std = unknown if decoding.std is None else decoding.std
        spreads = np.full(C.shape, np.nan)
        if decoding.covariances is not None:
            spreads = np.sqrt(np.diagonal(decoding.covariances, axis1=1, axis2=2))
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = np.where(std > 0.0, (C - mean) / std, 0.0 * std)
        places, correlations = _places_of(decoding), _correlations(decoding)
        columns = tuple(decoding.columns)
        return cls(columns, C, spreads, deviations, mean, std, places, correlations)


@dataclass(frozen=True, eq=False)
class Profile:
    """What each cluster of a decoding is.

    Attributes
    ----------
    clusters : tuple of ClusterProfile
        In the order of the centroids.
    table : ProfileTable
        The numbers behind it.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> X = np.repeat([[0.0, 0.0], [1.0, 3.0]], [300, 100], axis=0)
    >>> X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    >>> profile = ss.decode(ss.sketch(X, n_clusters=2), n_clusters=2).profile
    >>> [cluster.rows for cluster in profile.clusters]
    [300, 100]
    >>> profile.clusters[1].name
    'high column 1'
    """

    clusters: tuple[ClusterProfile, ...]
    table: ProfileTable

    @classmethod
    def of(cls, decoding: Decoding) -> Profile:
        """The profile of a decoding: O(k d log d)."""
        table = ProfileTable.of(decoding)
        shares, n = decoding.weights, decoding.n_rows
        rows = [None if n is None else round(float(share) * n) for share in shares]
        told = [list(_tell(table, i, rows[i])) for i in range(len(shares))]
        voices = _voices(table, told) if told else []
        traits = [_rank(own, voices) for own in told]
        spreads, names = _spreads(decoding, table), _names(traits)
        clusters = (
            ClusterProfile(
                i, rows[i], float(shares[i]), spreads[i], names[i], tuple(traits[i][:TOLD])
            )
            for i in range(len(shares))
        )
        return cls(tuple(clusters), table)

    def __len__(self) -> int:
        return len(self.clusters)

    def __getitem__(self, number: int) -> ClusterProfile:
        return self.clusters[number]

    def __repr__(self) -> str:
        return "\n".join([f"<Profile of {counted(len(self), 'cluster')}>", *self.lines()])

    def lines(self) -> list[str]:
        """For terminals: two lines for each cluster, one where no column sets it apart."""
        if not self.clusters:
            return []
        heads = [[str(c.number), _rows_told(c), f"{100 * c.share:.1f} %"] for c in self.clusters]
        widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
        lines = []
        for cluster, head in zip(self.clusters, heads, strict=True):
            cells = [text.rjust(width) for text, width in zip(head, widths, strict=True)]
            lines.append("  ".join([*filter(None, cells), cluster.name]))
            told = "; ".join(map(_with_value, cluster.traits))
            if told:
                lines.append(" " * (widths[0] + 2) + told)
        return lines

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold: columns, all rows, and each cluster with its traits and numbers."""
        table = self.table
        clusters = [
            {
                "cluster": c.number,
                "rows": c.rows,
                "share": c.share,
                "spread": c.spread,
                "name": c.name,
                "traits": [
                    {
                        "column": t.column,
                        "value": t.value,
                        "deviation": t.deviation,
                        "text": t.text,
                        "shown": t.shown,
                    }
                    for t in c.traits
                ],
                "means": table.means[i].tolist(),
                "spreads": table.spreads[i].tolist(),
                "deviations": table.deviations[i].tolist(),
            }
            for i, c in enumerate(self.clusters)
        ]
        content = {
            "columns": list(table.columns),
            "mean": table.mean.tolist(),
            "std": table.std.tolist(),
            "clusters": clusters,
        }
        known: dict[str, Any] = finite(content)
        return known

    def to_arrow(self) -> Any:
        """An Arrow table of a row for each cluster: rows, share, spread, name, and its means.

        Means are in the units of the table: of a column on a log scale, the typical value.
        """
        own = {
            "cluster": [c.number for c in self.clusters],
            "rows": [c.rows for c in self.clusters],
            "share": [c.share for c in self.clusters],
            "spread": [c.spread for c in self.clusters],
            "name": [c.name for c in self.clusters],
        }
        return to_arrow(own, self.table.columns, self.natural_means)

    def _repr_html_(self) -> str | None:
        return show_card(self)

    def most_telling(self, most: int) -> list[int]:
        """Positions among ``titles`` of the columns that differ most between clusters, in order.

        Columns that say the same as another that is among them come last.
        """
        voices = _voices(self.table, self.told) if self.told else []
        found = [
            voices[j] for j in columns_shown([[own[j] for j in voices] for own in self.told], most)
        ]
        others = [j for j in columns_shown(self.told, len(self.titles)) if j not in voices]
        return sorted([*found, *others[: most - len(found)]])

    @property
    def titles(self) -> list[str]:
        """The columns of the table that numbers were made of, as people call them."""
        return [place.title for place in self.table.places]

    @cached_property
    def told(self) -> list[list[Trait]]:
        """For each cluster, every one of these columns, whether it sets it apart or not."""
        return [list(_tell(self.table, c.number, c.rows)) for c in self.clusters]

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.to_arrow().to_pandas()

    @property
    def natural_means(self) -> FloatArray:
        """Means (k, d) in the units of the table: of a column on a log scale, the typical value."""
        means = self.table.means.copy()
        for place in self.table.places:
            if isinstance(place.part, Log):
                means[:, place.first] = place.part.natural(means[:, place.first])
        return means


def to_arrow(own: dict[str, Any], columns: Sequence[str], values: FloatArray) -> Any:
    """An Arrow table: columns of our own, and those of the data, which keep their names.

    Parameters
    ----------
    own : dict
        Name and values; one that the data has as well becomes "cluster NAME".
    columns : sequence of str
        Names of the d columns of the data.
    values : array of shape (k, d)
        Theirs.
    """
    import pyarrow as pa

    taken = set(columns)
    names = [f"cluster {name}" if name in taken else name for name in own]
    arrays = [pa.array(column) for column in [*own.values(), *values.T]]
    return pa.table(arrays, names=[*names, *columns])


def columns_shown(told: Sequence[Sequence[Trait]], most: int = MOST_SHOWN) -> list[int]:
    """The columns that differ most between clusters, in their order."""
    return sorted(np.argsort(-_largest(told), kind="stable")[:most].tolist()) if told else []


def _with_value(trait: Trait) -> str:
    """The text of a trait, with the value unless it tells it: a deviation is none."""
    is_told = isinstance(trait.value, str) or trait.shown in trait.label
    is_told = is_told and trait.shown in trait.text
    return trait.text if is_told else f"{trait.text} ({trait.shown})"


def _rows_told(cluster: ClusterProfile) -> str:
    return "" if cluster.rows is None else counted(cluster.rows, "row")


def _spreads(decoding: Decoding, table: ProfileTable) -> list[float | None]:
    """How wide clusters are, as shares of how wide all rows are."""
    scale = decoding.column_scale
    whole = float(np.square(table.std / scale).sum())
    wide = np.square(table.spreads / scale).sum(axis=1)
    if decoding.covariances is None:
        wide = _squares_of_cells(decoding)
    if whole == 0.0:
        return [0.0 if width == 0.0 else None for width in wide]
    shares = np.sqrt(wide / whole).tolist()
    return [share if math.isfinite(share) else None for share in shares]


def _squares_of_cells(decoding: Decoding) -> FloatArray:
    """Mean squared distances of rows to their centroids, (k,): cells go to the nearest one.

    NaN where there are no cells, or none of a cluster. O(J k d).
    """
    sketch, k = decoding.sketch, len(decoding.weights)
    if not isinstance(sketch, Sketch) or sketch.cells is None or not k:
        return np.full(k, np.nan)
    spec, sums = sketch.spec, sketch.cells + sketch.outer
    places = spec.rows.center_vector + spec.rows.scale_vector * sums.means
    found = nearest_two(places, decoding.centroids, decoding.column_scale)
    per_unit = spec.rows.scale_vector / decoding.column_scale
    squares = np.square(found.distances) + (sums.variances * per_unit**2).sum(axis=1)
    weights = np.bincount(found.labels, sums.weights, minlength=k)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.bincount(found.labels, sums.weights * squares, k) / weights)


def _rank(traits: Sequence[Trait], voices: Sequence[int]) -> list[Trait]:
    """Those worth a word among some columns, farthest from the mean first."""
    notable = (traits[j] for j in voices if traits[j].is_notable)  # nor one that is not known
    return sorted(notable, key=lambda trait: -abs(trait.deviation))


def _voices(table: ProfileTable, told: Sequence[Sequence[Trait]]) -> list[int]:
    """The columns that speak, of those that say the same the one that differs most: O(d^2)."""
    largest = _largest(told)
    voices: list[int] = []
    for j in np.argsort(-largest, kind="stable").tolist():
        if not any(table.is_echo(j, other) for other in voices):
            voices.append(j)
    return sorted(voices)


def _largest(told: Sequence[Sequence[Trait]]) -> FloatArray:
    """Of each column, the largest deviation among the clusters; 0 where it is not known."""
    deviations = np.array([[trait.deviation for trait in own] for own in told])
    return np.asarray(np.nan_to_num(np.abs(deviations)).max(axis=0, initial=0.0))


def _correlations(decoding: Decoding) -> FloatArray | None:
    """Of all rows, (d, d); NaN where a column does not vary or the sketch does not keep them."""
    moments = None if decoding.sketch is None else decoding.sketch.moments
    if moments is None:
        return None
    stds = np.sqrt(np.diagonal(moments[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(moments[1] / np.outer(stds, stds))


def _names(traits: Sequence[Sequence[Trait]]) -> list[str]:
    """A name for each cluster, of the columns that set it apart; longer where two would agree."""
    if list(traits) == [[]]:
        return [ALONE]
    labels = [[trait.label for trait in own] for own in traits]
    lengths = [IN_NAME] * len(traits)
    for _ in range(IN_NAME, MOST_IN_NAME + 1):
        words = [tuple(own[:n]) for own, n in zip(labels, lengths, strict=True)]
        times = Counter(map(frozenset, words))  # the same words in another order are no other name
        is_shared = [times[frozenset(own)] > 1 for own in words]
        lengths = [n + more for n, more in zip(lengths, is_shared, strict=True)]
    names = [", ".join(own) or AVERAGE for own in words]
    if len(names) == 1 and names[0] == AVERAGE:
        return [ALONE]
    values = [_with_values(own, name) for own, name in zip(traits, names, strict=True)]
    names = [values[i] if is_shared[i] else name for i, name in enumerate(names)]
    times_named = Counter(names)
    return [f"{name} ({i})" if times_named[name] > 1 else name for i, name in enumerate(names)]


def _with_values(traits: Sequence[Trait], name: str) -> str:
    """A name with the values of its columns, for clusters that words do not tell apart."""
    labels = [
        f"{_quoted(t.column)} about {t.shown}" if isinstance(t.value, float) else t.label
        for t in traits[:IN_NAME]
    ]
    return ", ".join(dict.fromkeys(labels)) or name


def _quoted(column: str) -> str:
    """A column in a name, in quotes where it would be read as a word of ours."""
    return repr(column) if column.lower() in WORDS else column


WORDS = ("high", "low", "very", "common", "rare", "about", "around", "mostly", "often")


# Columns as the table has them: the one place that looks at the parts of a recipe.


@dataclass(frozen=True)
class _Place:
    """One column of the table, and where its numbers stand among the d columns."""

    part: Part
    first: int

    @property
    def column(self) -> str:
        return self.part.column

    @property
    def title(self) -> str:
        unit = f"{self.part.unit.replace('_', ' ')} of " if isinstance(self.part, Cycle) else ""
        return unit + self.part.column

    @property
    def numbers(self) -> slice:
        return slice(self.first, self.first + len(self.part.names))


def _places_of(decoding: Decoding) -> tuple[_Place, ...]:
    recipe = None if decoding.spec is None else decoding.spec.rows.recipe
    parts = [Number(name) for name in decoding.columns] if recipe is None else recipe.parts
    ends = itertools.accumulate((len(part.names) for part in parts), initial=0)
    return tuple(_Place(part, first) for part, first in zip(parts, ends, strict=False))


def _tell(table: ProfileTable, i: int, rows: int | None) -> Iterator[Trait]:
    """Every column of cluster i; the deviation is NaN where it is not known."""
    tellers = {"category": _tell_category, "cycle": _tell_cycle, "frequency": _tell_frequency}
    for place in table.places:
        yield tellers.get(place.part.kind, _tell_number)(place, table, i, rows)


_YEAR = re.compile("(^|[^a-z])years?$", re.IGNORECASE)
"""Columns whose numbers have no commas."""


def _very(word: str, deviation: float) -> str:
    return f"very {word}" if abs(deviation) >= VERY else word


def _tell_number(place: _Place, table: ProfileTable, i: int, rows: int | None) -> Trait:
    """A number, or the typical value of one on a log scale."""
    j, column = place.first, place.column
    value, deviation = float(table.means[i, j]), float(table.deviations[i, j])
    spread = float(table.spreads[i, j] if np.isfinite(table.spreads[i, j]) else table.std[j])
    is_equal = spread < UNSEEN * float(table.std[j])
    if math.isfinite(table.std[j]):
        spread = max(spread, FINEST * float(table.std[j]))  # a row or two seem to have none
    if isinstance(place.part, Log):
        value = float(place.part.natural(value))
        spread *= place.part.unit + abs(value)  # the slope of the scale there
    word = _very("high" if deviation > 0.0 else "low", deviation)
    text, shown = f"{column} {word}, {deviation:+.1f} sd", meaningful(value, spread, rows)
    if is_equal and "." in shown:  # rows that are all 1 are not 1.000
        shown = shown.rstrip("0").rstrip(".")
    label = f"{word} {_quoted(column)}"
    if _YEAR.search(column) and 1000.0 < value < 3000.0:
        shown = f"{value:.0f}"  # a date: no sign between thousands
        label = f"{column} about {shown}"
    return Trait(column, value, deviation, text, shown, label)


def _tell_category(place: _Place, table: ProfileTable, i: int, rows: int | None) -> Trait:
    """The value of a category whose share is the most above that of all rows."""
    assert isinstance(place.part, Category)
    column, numbers = place.column, place.numbers
    here, all_rows = (np.clip(m[numbers], 0.0, 1.0) for m in (table.means[i], table.mean))
    j = int(np.argmax(here - all_rows))
    value, shown = place.part.values[j], f"{100 * here[j]:.0f} % {place.part.values[j]}"
    text = f"{column}: {shown}, {100 * all_rows[j]:.0f} % of all rows"
    often = "mostly" if here[j] >= 0.5 else "more often"
    deviation = float(table.deviations[i, numbers][j])
    return Trait(column, value, deviation, text, shown, f"{column} {often} {value}")


def _tell_frequency(place: _Place, table: ProfileTable, i: int, rows: int | None) -> Trait:
    """How common the values of a column are."""
    value, deviation = float(table.means[i, place.first]), float(table.deviations[i, place.first])
    word = _very("common" if deviation > 0.0 else "rare", deviation)
    text = f"{place.column}: {word} values, {deviation:+.1f} sd"
    shown = f"{100 * value:.2g} % of rows"
    return Trait(place.column, value, deviation, text, shown, f"{word} {place.column}")


def _tell_cycle(place: _Place, table: ProfileTable, i: int, rows: int | None) -> Trait:
    """When: of the mean of points on a circle, the direction."""
    assert isinstance(place.part, Cycle)
    mean = table.means[i, place.numbers]
    std = float(np.sqrt(np.mean(np.square(table.std[place.numbers]))))
    distance = float(np.linalg.norm(mean - table.mean[place.numbers]))
    deviation = distance / std if std > 0.0 else 0.0
    moment = place.part.natural(*map(float, mean))
    is_round = float(np.linalg.norm(mean)) < ALL_ROUND
    shown = "all round" if is_round else _MOMENTS[place.part.unit](moment)
    label = f"{place.column} {shown}" if is_round else f"{place.column} around {shown}"
    return Trait(place.column, moment, deviation, f"{label}, {deviation:.1f} sd off", shown, label)


_MOMENTS: dict[str, Callable[[float], str]] = {
    "hour": lambda hour: f"{round(hour) % 24} h",
    "weekday": lambda day: name_of("weekday", round(day) % 7),
    "month": lambda month: name_of("month", round(month) % 12 or 12),
    "day_of_year": lambda day: name_of("day_of_year", round(day) % 366 or 366),
}
"""A place on a circle in words; months and days of the year count from 1: 0 is December."""
