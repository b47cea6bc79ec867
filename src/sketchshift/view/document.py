"""All that a page shows, as one JSON document: numbers and text, nothing of how it looks.

Takes a :class:`SketchFile` and what decoders made of it; hands mappings to ``page`` and
``explorer``. The map is drawn from what is known of the rows: the counts, means and variances of
the cells of the sketch, and the clusters' Gaussians, within the range of the columns.

Symbols
-------
k, d      clusters, columns
J         cells with rows
"""

from __future__ import annotations

import base64
import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

import sketchshift
from sketchshift._text import (
    cell,
    cluster_header,
    counted,
    finite,
    rows_in_words,
    visible_lines,
)
from sketchshift._times import MONTHS, WEEKDAYS, describe_keys
from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding, KCurve
from sketchshift.decoders.shares import ClusterCells, ClusterSketches, follow_clusters
from sketchshift.drift import Comparison, compare
from sketchshift.drift.compare import Population, cluster_changes
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.features.plan import cells_in_words
from sketchshift.metrics import assign
from sketchshift.privacy import PrivateSketch
from sketchshift.recipe import log_ticks
from sketchshift.sketch import AnySketch, Sketch, SketchTable
from sketchshift.sketch.sketch import merge_sketches
from sketchshift.view.looks import (
    COMPARED,
    MAPPED,
    SCALES,
    best_columns,
    column_kinds,
    known_decoding,
    main_axes,
    shown_values,
    variances_within,
)
from sketchshift.view.plane import range_of

__all__ = [
    "ALL",
    "MOST_CHOICES",
    "MOST_SLICES",
    "Selection",
    "SketchFile",
    "build_document",
    "build_trends",
    "build_view",
    "compare_slices",
    "curve_record",
    "select_rest",
    "to_json",
]

# The file that is shown, and the rows of it that can be selected.

ALL = "all rows"

MOST_CHOICES = 2_000
"""Selections to choose from: a longer list is of no use to a person."""


@dataclass(frozen=True)
class Selection:
    """Rows that can be looked at on their own.

    Attributes
    ----------
    label : str
        For a person: ``"day = 2026-01-05"``.
    column : str or None
        The column of the key that was cut by; None for all rows.
    where : str or None
        The same as a condition for ``--where``.
    members : tuple of int
        Slices of the table.
    """

    label: str
    column: str | None
    where: str | None
    members: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SketchFile:
    """A sketch, raw or private, or a table of sketches, as it was read from a file.

    Attributes
    ----------
    name : str
        As the user typed it.
    n_bytes : int
        Of the file.
    sketches : tuple of Sketch, or of one PrivateSketch
        The slices; a single sketch is one.
    table : SketchTable or None
        None for a single sketch.
    """

    name: str
    n_bytes: int
    sketches: tuple[AnySketch, ...]
    table: SketchTable | None = None

    @classmethod
    def of(cls, name: str, n_bytes: int, given: AnySketch | SketchTable) -> SketchFile:
        """Describe a file by its name, its size ``n_bytes`` and the sketch or table ``given``."""
        if isinstance(given, SketchTable):
            return cls(name, n_bytes, given.sketches, given)
        return cls(name, n_bytes, (given,))

    @cached_property
    def whole(self) -> AnySketch:
        """The sketch of all rows."""
        return self._merge(range(len(self.sketches)))

    @property
    def promise(self) -> str | None:
        """What a private sketch promises, in one line; raw ones promise nothing."""
        whole = self.whole
        return whole.statement if isinstance(whole, PrivateSketch) else None

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns, or their positions in words."""
        return self.whole.spec.rows.labels

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of the key; none for a single sketch."""
        return () if self.table is None else self.table.by

    @cached_property
    def choices(self) -> tuple[Selection, ...]:
        """All rows, then those of each value of each column of the key, at most 2000."""
        everything = Selection(ALL, None, None, tuple(range(len(self.sketches))))
        cuts = [cut for column in self.by for cut in self._cut(column)]
        return (everything, *cuts)[:MOST_CHOICES]

    def sketch_of(self, selection: Selection) -> AnySketch:
        """Return the sketch of the rows of ``selection``; there must be some."""
        sketch = self._merge(selection.members)
        if sketch.total_weight <= 0:
            raise DataError(f"there are no rows in the slice {selection.label}. Choose another.")
        return sketch

    def _merge(self, members: Iterable[int]) -> AnySketch:
        if self.table is None:
            return self.sketches[0]
        return merge_sketches([self.table.sketches[i] for i in members])

    def _cut(self, column: str) -> list[Selection]:
        assert self.table is not None
        members: dict[Any, list[int]] = {}  # by Arrow's scalars: an hour that comes twice is two
        for i, scalar in enumerate(self.table.keys.column(column)):
            members.setdefault(scalar, []).append(i)
        keys = [scalar.as_py() for scalar in members]
        return [
            Selection(f"{column} = {name}", column, _condition(column, key), tuple(rows))
            for name, key, rows in zip(
                describe_keys(column, keys), keys, members.values(), strict=True
            )
        ]


def _order_in_time(names: Sequence[str]) -> list[int]:
    """Places of names in the order of the calendar if they are weekdays or months, else as given.

    Names may be cut to their first letters, three at least.
    """
    for calendar in (WEEKDAYS, MONTHS):
        starts = [day[:3] for day in calendar]
        places = [starts.index(name[:3]) if name[:3] in starts else 0 for name in names]
        if all(calendar[i].startswith(name[:9]) for i, name in zip(places, names, strict=True)):
            return sorted(range(len(names)), key=lambda i: places[i])
    return list(range(len(names)))


def _condition(column: str, key: Any) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column)
    name = column if is_plain else '"' + column.replace('"', '""') + '"'
    if key is None:
        return f"{name} IS NULL"
    if isinstance(key, int | float) and not isinstance(key, bool):
        return f"{name} = {key!r}"
    return f"{name} = '" + str(key).replace("'", "''") + "'"


HEADER = "header"
"""The only text of a document that is saved and not shown: its names are the true ones."""

MOST_NUMBERS = 100_000
"""Coordinates of cells, and entries of covariances, that a page is given."""


def build_document(file: SketchFile, commands: Sequence[str]) -> dict[str, Any]:
    """What stays the same whatever is decoded.

    Parameters
    ----------
    file : SketchFile
        What is looked at.
    commands : sequence of str
        Lines that give the same result again.

    Returns
    -------
    record : dict
        Names, promise, summary, versions.
    """
    scale = file.whole.spec.rows.scale
    return {
        "name": file.name,
        "promise": file.promise,
        "columns": list(file.columns),
        HEADER: _header(file),
        "scale": list(scale) if isinstance(scale, tuple) else [],
        "summary": _summary(file),
        "plan": _plan(file.whole),
        "reproduce": {
            "commands": list(commands),
            "versions": _versions(),
            "fingerprint": file.whole.fingerprint,
        },
        "view": None,
        "curve": None,
        "trends": [],
        "live": None,
    }


def build_view(selection: Selection, sketch: AnySketch, decoding: Decoding) -> dict[str, Any]:
    """The clusters of some rows.

    Parameters
    ----------
    selection : Selection
        Which rows.
    sketch : Sketch or PrivateSketch
        Theirs.
    decoding : Decoding
        What a decoder made of it.

    Returns
    -------
    record : dict
        Floats are those of the decoding, to the last bit. O(k d^2) for clusters with covariances.
    """
    decoding = known_decoding(sketch, decoding)
    order, pair = best_columns(decoding)
    main, d = _main_axes(decoding), sketch.spec.n_features
    return {
        "label": selection.label,
        "rows": sketch.count,
        "rows_std": sketch.count_std,
        "lead": _lead(selection, sketch, decoding),
        "profile": decoding.profile.to_dict(),
        "shown": shown_values(decoding),
        "order": order,
        "pair": [d, d + 1] if main and d > MAPPED else pair,
        "main": main,
        "has_categories": any(kind not in SCALES for kind in column_kinds(sketch.spec)),
        "covariances": _pack_covariances(decoding),
        "within": _within(decoding),
        "cells": _cells(sketch, decoding),
        "residual": decoding.residual_norm,
        "sentence": decoding.sentence,
        "is_good": decoding.is_good,
    } | _range(sketch)


def _lead(selection: Selection, sketch: AnySketch, decoding: Decoding) -> str:
    """What is in the data, in one sentence."""
    k, d = len(decoding.weights), _n_table_columns(sketch.spec)
    which = "" if selection.column is None else f" ({selection.label})"
    found = f"{counted(k, 'cluster')} in {rows_in_words(sketch)}{which} and {counted(d, 'column')}"
    if not k:
        return f"{found}: none was found."
    largest = decoding.profile.clusters[0]
    share = f"{100 * largest.share:.0f}\N{NO-BREAK SPACE}%"
    name = largest.name.removesuffix(f" ({largest.number})")
    size = f"; the largest ({name}) has {share} of the rows" if k > 1 else ""
    if not decoding.is_good:
        return f"{found}{size}. Take {'them' if k > 1 else 'it'} with care."
    if k == 1:  # it explains nothing, which is no news
        return f"{found}."
    unknown = "How far they can be trusted is not known."
    return f"{found}{size}. {unknown if decoding.trust is None else decoding.trust}"


# Which columns tell the clusters apart, and where on the map they are.


def _main_axes(decoding: Decoding) -> list[dict[str, Any]]:
    """Axes of the map beside the columns, where there are clusters enough to tell them."""
    (k, d), std = decoding.centroids.shape, decoding.std
    if d < 3 or k < 3 or std is None:
        return []
    unit = np.where(std > 0.0, std, np.inf)
    names, axes = main_axes(decoding, unit)
    return [
        {"name": name, "vector": (axis / unit).tolist()}
        for name, axis in zip(names, axes, strict=True)
    ]


def _cells(sketch: AnySketch, decoding: Decoding) -> dict[str, Any] | None:
    """What is counted in each cell, the heaviest ones first: rows, means, variances, cluster."""
    spec = sketch.spec
    sums = sketch.cells if isinstance(sketch, Sketch) else None
    if sums is None or spec.axes is not None or not len(decoding.weights):
        return None  # of very many columns the variances along them are not known
    d = spec.n_features
    heavy = np.argsort(-sums.weights, kind="stable")[: max(MOST_NUMBERS // d, 16)]
    heavy = heavy[sums.weights[heavy] > 0.0]
    normalised = (decoding.centroids - spec.rows.center_vector) * spec.rows.per_unit
    return {
        "weights": (sums.weights[heavy] / sums.weights.sum()).tolist(),
        "clusters": assign(sums.means[heavy], normalised).tolist(),
        "means": _pack(spec.rows.center_vector + spec.rows.scale_vector * sums.means[heavy]),
        "variances": _pack(spec.rows.scale_vector**2 * sums.variances[heavy]),
    }


def _range(sketch: AnySketch) -> dict[str, Any]:
    """Least and largest values of the columns: nothing is drawn beyond them."""
    lower, upper = range_of(sketch)
    if not np.isfinite(lower).all():
        return {"lower": None, "upper": None, "ticks": None}
    ticks = log_ticks(sketch.spec.rows.recipe, lower, upper)
    return {"lower": lower.tolist(), "upper": upper.tolist(), "ticks": ticks}


def _pack_covariances(decoding: Decoding) -> str | None:
    """Their upper triangles, row by row, one cluster after another."""
    covariances = decoding.covariances
    if covariances is None or covariances.size > MOST_NUMBERS:
        return None
    rows, columns = np.triu_indices(covariances.shape[1])
    return _pack(covariances[:, rows, columns])


def _within(decoding: Decoding) -> list[float] | None:
    """Variances of the columns within clusters, on average, where clusters have none of their own.

    Floats are in the units of the columns, shape (d,); None where those of all rows are not known.
    """
    if decoding.std is None or not len(decoding.weights) or _pack_covariances(decoding) is not None:
        return None
    shares = decoding.weights[:COMPARED]
    average: list[float] = (shares @ variances_within(decoding) / shares.sum()).tolist()
    return average


# Columns as the table has them, where a recipe made them: the one place that looks at its parts.


def _n_table_columns(spec: SketchSpec) -> int:
    """Columns of the table: a recipe may make several numbers of one."""
    return spec.n_features if spec.rows.recipe is None else len(spec.rows.recipe.columns)


# The number of clusters, and what a document is as text.


def curve_record(curve: KCurve | None) -> dict[str, Any] | None:
    """Misfit and score of each number of clusters, and which one was chosen."""
    if curve is None:
        return None
    arrays = {name: getattr(curve, name).tolist() for name in ("n_clusters", "misfit", "score")}
    names = ("chosen", "is_natural", "alternatives")
    return arrays | {name: getattr(curve, name) for name in names}


def to_json(record: Mapping[str, Any]) -> str:
    """JSON text in ASCII, for a page: what is not a finite number becomes null.

    Signs in text that would turn or hide what stands beside them are shown as escapes.
    """
    shown = {
        name: value if name == HEADER else finite(value, visible_lines)
        for name, value in record.items()
    }
    return json.dumps(shown, allow_nan=False, separators=(",", ":"))


def _summary(file: SketchFile) -> list[tuple[str, str]]:
    whole, spec = file.whole, file.whole.spec
    rows = [
        ("rows", f"{whole.about}{whole.count:,}"),
        ("columns", f"{spec.n_features:,}"),
        ("bytes", f"{file.n_bytes:,}"),
    ]
    if file.table is not None:
        rows.append(("slices", f"{len(file.sketches):,} by {', '.join(file.by)}"))
    if not isinstance(whole, Sketch):
        return rows
    if whole.total_weight != whole.count:
        rows.append(("total weight", f"{whole.total_weight:,.10g}"))
    if whole.n_invalid:
        rows.append(("rows left out", f"{whole.n_invalid:,}"))
    far = float(whole.outer.weights.sum() + whole.far.weights.sum())
    if far:
        rows.append(("rows beyond all cells", f"{far:,.10g}"))
    return rows


def _plan(sketch: AnySketch) -> list[tuple[str, str]]:
    spec, waves = sketch.spec, sketch.spec.waves
    scale = "one a column" if spec.rows.is_standardised else f"{spec.rows.scale or 1.0:.4g}"
    rows = [("cells", cells_in_words(spec) or "none"), ("frequencies m", f"{spec.sketch_size:,}")]
    if waves is not None:
        rows += [
            ("law", waves.law + (", structured" if waves.structured else "")),
            ("bandwidth", " to ".join(f"{end:.4g}" for end in dict.fromkeys(waves.range))),
            ("seed", str(waves.seed)),
        ]
    return [*rows, ("scale", scale)]


def _versions() -> list[tuple[str, str]]:
    others = [(name, version(name)) for name in ("numpy", "scipy", "scikit-learn")]
    return [
        ("sketchshift", sketchshift.__version__),
        ("Python", platform.python_version()),
        *others,
    ]


def _pack(values: Any) -> str:
    """Little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


def _header(file: SketchFile) -> list[str]:
    """The first line of the table that the page saves, as ``sketchshift assign`` reads it."""
    has_scales = file.whole.spec.rows.is_standardised
    return [cell(name) for name in cluster_header(file.columns, has_scales=has_scales)]


# Two slices side by side: whether the data changed, and which clusters did.


def select_rest(file: SketchFile, selection: Selection) -> Selection:
    """All rows that are not in a selection."""
    others = sorted(set(range(len(file.sketches))) - set(selection.members))
    if not others:
        raise DataError(f"there are no rows beside {selection.label}. Choose another slice.")
    return Selection("all other rows", None, None, tuple(others))


FALSE_ALARM = 0.01
"""The rate at which slices without drift are said to differ, and any cluster to have changed."""


def compare_slices(
    file: SketchFile,
    before: Selection,
    after: Selection,
    decoding: Decoding,
    decoded: AnySketch,
) -> dict[str, Any]:
    """What changed between two selections without common rows, told by clusters that are shown.

    Parameters
    ----------
    file : SketchFile
        What is looked at.
    before, after : Selection
        Rows that have none in common: the threshold is that of independent ones.
    decoding : Decoding
        The clusters, with their numbers.
    decoded : Sketch or PrivateSketch
        Whose clusters they are.

    Returns
    -------
    record : dict
        A sentence, changes in words, and the clusters with their shares on both sides.
    """
    if set(before.members) & set(after.members):
        msg = f"{before.label} and {after.label} share rows. Compare slices without common rows."
        raise DataError(msg)
    sides = file.sketch_of(before), file.sketch_of(after)
    found = compare(*sides, n_clusters=None, false_alarm=FALSE_ALARM)
    k = len(decoding.weights)
    population = Population(decoded, k, 0, "compare", decoding)
    changes = cluster_changes(sides, found.counts, population, FALSE_ALARM) if k else ()
    clusters = [
        {"before": change.share_a, "after": change.share_b, "verdict": change.verdict}
        for change in changes
    ]
    names = [cluster.name for cluster in decoding.profile.clusters]
    largest = sorted(range(k), key=lambda i: -abs(changes[i].change))
    changed = [i for i in largest if changes[i].verdict != "same"]
    return {
        "sentence": _sentence(found, before, after),
        "words": [f"{changes[i].tell(f'Cluster {i} ({names[i]})')}." for i in changed],
        "before": before.label,
        "after": after.label,
        "clusters": clusters,
    }


def _sentence(found: Comparison, before: Selection, after: Selection) -> str:
    rate = "less than 0.1" if found.p_value < 0.001 else f"{100 * found.p_value:.2g}"
    chance = f"chance alone makes as large a difference in {rate} % of cases"
    if found.drifted:
        return f"{before.label} and {after.label} differ: {chance}."
    return f"{before.label} and {after.label} do not differ more than chance allows: {chance}."


# The shares of the clusters in each slice of a table, one after another.
#
# Clusters stay where they are; their shares alone are fitted to each slice.

MOST_SLICES = 1_000
"""Slices of one column of the key that are drawn: a screen has no more dots."""


def build_trends(file: SketchFile, decoding: Decoding, decoded: AnySketch) -> list[dict[str, Any]]:
    """Shares over the slices, for each column of the key.

    Parameters
    ----------
    file : SketchFile
        Of a table; a single sketch has no trends.
    decoding : Decoding
        The clusters.
    decoded : Sketch or PrivateSketch
        Whose clusters they are: its shares are ``decoding.weights``.

    Returns
    -------
    trends : list of dict
        One for each column of the key: its name, the names and counts of its slices, and
        shares of shape (slices, k), a row of nulls for a slice without rows. O(k^2 m) a slice.
    """
    if file.table is None or not len(decoding.weights):
        return []
    clusters = follow_clusters(decoding, decoded.spec, decoded)
    found = []
    for column in file.by:
        table = file.table.merge_by(column)
        names = describe_keys(column, table.keys.column(column).to_pylist())
        order = _order_in_time(names)[:MOST_SLICES]
        shown = [table.sketches[i] for i in order]
        found.append(
            {
                "column": column,
                "names": [names[i] for i in order],
                "counts": [sketch.count for sketch in shown],
                "shares": [_shares(clusters, sketch).tolist() for sketch in shown],
                "left_out": max(0, len(table) - MOST_SLICES),
            }
        )
    return found


def _shares(clusters: ClusterCells | ClusterSketches, sketch: AnySketch) -> FloatArray:
    if sketch.total_weight <= 0:
        return np.full(len(clusters.weights), np.nan)
    return clusters.shares_of(sketch)
