"""All that a page shows, as one JSON document: numbers and text, nothing of how it looks.

Takes a :class:`SketchFile` and what decoders made of it; hands mappings to ``page`` and
``explorer``.
The correlation function is not drawn here. The page gets frequencies and z and computes the
picture of any two columns itself, as a product of two matrices of waves.

Symbols
-------
d, m      columns, frequencies
zeta      z times the root of m: means of waves, of size 1 at most
"""

from __future__ import annotations

import base64
import json
import math
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

import sketchshift
from sketchshift._text import cell, cluster_header, column_names, finite, visible_lines
from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding, KCurve
from sketchshift.decoders.problem import spread_of
from sketchshift.decoders.shares import ClusterCells, ClusterSketches, follow_clusters
from sketchshift.drift import Comparison, compare
from sketchshift.errors import DataError
from sketchshift.features.plan import cells_in_words
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch, SketchTable
from sketchshift.sketch.sketch import merge_sketches

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
        """The file of a sketch or of a table."""
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
        return column_names(self.whole.spec)

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
        """The sketch of the selected rows; there must be some."""
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
        return [
            Selection(
                f"{column} = {describe_key(key)}", column, _condition(column, key), tuple(rows)
            )
            for key, rows in ((scalar.as_py(), rows) for scalar, rows in members.items())
        ]


def describe_key(key: Any) -> str:
    """A value of a key for a person."""
    return "(missing)" if key is None else str(key)


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

FREQUENCIES, NUMBERS = 2_048, 500_000
"""Most frequencies, and numbers in them, that a page is given: the first ones are like all."""


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
        Names, promise, summary, frequencies, versions.
    """
    scale = file.whole.spec.scale
    return {
        "name": file.name,
        "promise": file.promise,
        "columns": list(file.columns),
        HEADER: _header(file),
        "scale": list(scale) if isinstance(scale, tuple) else [],
        "summary": _summary(file),
        "plan": _plan(file.whole),
        "frequencies": _frequencies(file.whole),
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
        Floats are those of the decoding, to the last bit. Mean and deviation of a private sketch
        are those of its clusters.
    """
    m = _n_frequencies(sketch)
    mean, variance = spread_of(sketch, decoding)
    zeta = sketch.z[:m] * math.sqrt(sketch.spec.sketch_size)
    return {
        "label": selection.label,
        "rows": sketch.count,
        "rows_std": sketch.count_std,
        "mean": mean.tolist(),
        "deviation": np.sqrt(variance).tolist(),
        "zeta": _pack(np.concatenate([zeta.real, zeta.imag])),
        "centroids": decoding.centroids.tolist(),
        "shares": decoding.weights.tolist(),
        "residual": decoding.residual_norm,
        "sentence": decoding.sentence,
        "is_good": decoding.is_good,
    }


def curve_record(curve: KCurve | None) -> dict[str, Any] | None:
    """Misfit and score of each number of clusters, and which one was chosen."""
    if curve is None:
        return None
    arrays = {name: getattr(curve, name).tolist() for name in ("n_clusters", "misfit", "score")}
    return arrays | {"chosen": curve.chosen}


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
    spec, tilt = sketch.spec, sketch.spec.tilt
    ends = spec.bandwidth if isinstance(spec.bandwidth, tuple) else (spec.bandwidth,)
    return [
        ("cells", cells_in_words(spec) or "none"),
        ("frequencies m", f"{spec.sketch_size:,}"),
        ("law", spec.law + (", structured" if spec.structured else "")),
        ("bandwidth", " to ".join(f"{end:.4g}" for end in ends)),
        ("tilt", "none" if tilt is None else f"radius {tilt.radius:.4g}, cap {tilt.cap:.4g}"),
        ("scale", "one a column" if isinstance(spec.scale, tuple) else f"{spec.scale or 1.0:.4g}"),
        ("seed", str(spec.seed)),
    ]


def _frequencies(sketch: AnySketch) -> dict[str, Any]:
    """Frequencies in turns for each unit of the data: the page needs no normalisation then."""
    spec, m = sketch.spec, _n_frequencies(sketch)
    turns = sketch.turns[:, :m] * spec.per_unit[:, None]
    cap = None if spec.tilt is None else spec.tilt.cap
    return {"m": m, "center": spec.center_vector.tolist(), "turns": _pack(turns), "cap": cap}


def _n_frequencies(sketch: AnySketch) -> int:
    d, m = sketch.spec.n_features, sketch.spec.sketch_size
    return min(m, FREQUENCIES, max(NUMBERS // d, 64))


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
    has_scales = isinstance(file.whole.spec.scale, tuple)
    return [cell(name) for name in cluster_header(file.columns, has_scales=has_scales)]


# Two slices side by side: whether the data changed, and which clusters did.


def select_rest(file: SketchFile, selection: Selection) -> Selection:
    """All rows that are not in a selection."""
    others = sorted(set(range(len(file.sketches))) - set(selection.members))
    if not others:
        raise DataError(f"there are no rows beside {selection.label}. Choose another slice.")
    return Selection("all other rows", None, None, tuple(others))


def compare_slices(file: SketchFile, before: Selection, after: Selection, k: int) -> dict[str, Any]:
    """What :func:`sketchshift.compare` says of two selections without common rows.

    Parameters
    ----------
    file : SketchFile
        What is looked at.
    before, after : Selection
        Rows that have none in common: the threshold is that of independent ones.
    k : int
        Clusters of both together to report on.

    Returns
    -------
    record : dict
        A sentence, and the clusters with their shares on both sides.
    """
    if set(before.members) & set(after.members):
        msg = f"{before.label} and {after.label} share rows. Compare slices without common rows."
        raise DataError(msg)
    found = compare(file.sketch_of(before), file.sketch_of(after), n_clusters=k)
    clusters = [
        {
            "centroid": change.centroid.tolist(),
            "before": change.share_a,
            "after": change.share_b,
            "verdict": change.verdict,
        }
        for change in found.clusters
    ]
    return {"sentence": _sentence(found, before, after), "clusters": clusters}


def _sentence(found: Comparison, before: Selection, after: Selection) -> str:
    verdict = "differ" if found.drifted else "do not differ more than chance allows"
    return (
        f"{before.label} and {after.label} {verdict}: their sketches are {found.distance:.3g} "
        f"apart, and without drift {found.threshold:.3g} is exceeded in "
        f"{100 * found.false_alarm:g} % of cases (p = {found.p_value:.2g})."
    )


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
        names = [describe_key(key) for key in table.keys.column(column).to_pylist()]
        shown = table.sketches[:MOST_SLICES]
        found.append(
            {
                "column": column,
                "names": names[:MOST_SLICES],
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
