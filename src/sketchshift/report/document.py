"""All that a page shows, as one JSON document: numbers and text, nothing of how it looks.

Takes a :class:`Subject` and what decoders made of it; hands mappings to ``page`` and ``server``.
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
from sketchshift._text import cell, visible_lines
from sketchshift._typing import ComplexArray, FloatArray
from sketchshift.decoders import Decoding, KCurve
from sketchshift.decoders.problem import spread_of
from sketchshift.decoders.shares import ClusterSketches
from sketchshift.drift import Comparison, compare
from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, Sketch, SketchTable
from sketchshift.sketch.sketch import merged

__all__ = [
    "ALL",
    "MOST_CHOICES",
    "MOST_SLICES",
    "Choice",
    "Subject",
    "compare_slices",
    "curve_facts",
    "document",
    "rest_of",
    "to_json",
    "trends",
    "view",
]

# What is looked at: a sketch, raw or private, or a table of sketches with its slices.
#
# Takes what the commands read; hands sketches of chosen rows to the other modules of this room.

ALL = "all rows"

MOST_CHOICES = 2_000
"""Slices to choose from: a list of more is of no use to a person."""


@dataclass(frozen=True)
class Choice:
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
class Subject:
    """A sketch, or a table of them, under the name it was asked for by.

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
    def of(cls, name: str, n_bytes: int, given: AnySketch | SketchTable) -> Subject:
        """A subject of what was read."""
        if isinstance(given, SketchTable):
            return cls(name, n_bytes, given.sketches, given)
        return cls(name, n_bytes, (given,))

    @cached_property
    def whole(self) -> AnySketch:
        """The sketch of all rows."""
        return self._merged(range(len(self.sketches)))

    @property
    def promise(self) -> str | None:
        """What a private sketch promises, in one line; raw ones promise nothing."""
        whole = self.whole
        return whole.statement if isinstance(whole, PrivateSketch) else None

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns, or their positions in words."""
        spec = self.whole.spec
        return spec.columns or [f"column {i}" for i in range(spec.n_features)]

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of the key; none for a single sketch."""
        return () if self.table is None else self.table.by

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All rows, then those of each value of each column of the key, at most 2000."""
        everything = Choice(ALL, None, None, tuple(range(len(self.sketches))))
        cuts = [choice for column in self.by for choice in self._cut(column)]
        return (everything, *cuts)[:MOST_CHOICES]

    def sketch_of(self, choice: Choice) -> AnySketch:
        """The sketch of the chosen rows; there must be some."""
        chosen = self._merged(choice.members)
        if chosen.total_weight <= 0:
            raise DataError(f"there are no rows in the slice {choice.label}. Choose another.")
        return chosen

    def _merged(self, members: Iterable[int]) -> AnySketch:
        if self.table is None:
            return self.sketches[0]
        return merged([self.table.sketches[i] for i in members])

    def _cut(self, column: str) -> list[Choice]:
        assert self.table is not None
        members: dict[Any, list[int]] = {}  # by Arrow's scalars: an hour that comes twice is two
        for i, scalar in enumerate(self.table.keys.column(column)):
            members.setdefault(scalar, []).append(i)
        return [
            Choice(f"{column} = {key_text(key)}", column, _condition(column, key), tuple(rows))
            for key, rows in ((scalar.as_py(), rows) for scalar, rows in members.items())
        ]


def key_text(key: Any) -> str:
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


def document(subject: Subject, commands: Sequence[str]) -> dict[str, Any]:
    """What stays the same whatever is decoded.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    commands : sequence of str
        Lines that give the same result again.

    Returns
    -------
    facts : dict
        Names, promise, summary, frequencies, versions.
    """
    scale = subject.whole.spec.scale
    return {
        "name": subject.name,
        "promise": subject.promise,
        "columns": list(subject.columns),
        HEADER: _header(subject),
        "scale": list(scale) if isinstance(scale, tuple) else [],
        "summary": _summary(subject),
        "plan": _plan(subject.whole),
        "frequencies": _frequencies(subject.whole),
        "reproduce": {
            "commands": list(commands),
            "versions": _versions(),
            "fingerprint": subject.whole.fingerprint,
        },
        "view": None,
        "curve": None,
        "trends": [],
        "live": None,
    }


def view(choice: Choice, sketch: AnySketch, decoding: Decoding) -> dict[str, Any]:
    """The clusters of some rows.

    Parameters
    ----------
    choice : Choice
        Which rows.
    sketch : Sketch or PrivateSketch
        Theirs.
    decoding : Decoding
        What a decoder made of it.

    Returns
    -------
    facts : dict
        Floats are those of the decoding, to the last bit. Mean and deviation of a private sketch
        are those of its clusters.
    """
    m = _n_frequencies(sketch)
    mean, variance = spread_of(sketch, decoding)
    zeta = sketch.z[:m] * math.sqrt(sketch.spec.sketch_size)
    return {
        "label": choice.label,
        "rows": sketch.count,
        "rows_std": sketch.count_std,
        "mean": mean.tolist(),
        "deviation": np.sqrt(variance).tolist(),
        "zeta": _packed(np.concatenate([zeta.real, zeta.imag])),
        "centroids": decoding.centroids.tolist(),
        "shares": decoding.weights.tolist(),
        "residual": decoding.residual_norm,
        "outcome": str(decoding.outcome),
    }


def curve_facts(curve: KCurve | None) -> dict[str, Any] | None:
    """Residual and score of each number of clusters, and which one was chosen."""
    if curve is None:
        return None
    arrays = {name: getattr(curve, name).tolist() for name in ("n_clusters", "residual", "score")}
    return arrays | {"chosen": curve.chosen}


def to_json(facts: Any) -> str:
    """JSON text in ASCII, for a page: what is not a finite number becomes null.

    Signs in text that would turn or hide what stands beside them are shown as escapes.
    """
    return json.dumps(_shown(facts), allow_nan=False, separators=(",", ":"))


def _summary(subject: Subject) -> list[tuple[str, str]]:
    whole, spec = subject.whole, subject.whole.spec
    rows = [
        ("rows", f"{whole.about}{whole.count:,}"),
        ("columns", f"{spec.n_features:,}"),
        ("bytes", f"{subject.n_bytes:,}"),
    ]
    if subject.table is not None:
        rows.append(("slices", f"{len(subject.sketches):,} by {', '.join(subject.by)}"))
    if not isinstance(whole, Sketch):
        return rows
    if whole.total_weight != whole.count:
        rows.append(("total weight", f"{whole.total_weight:,.10g}"))
    if whole.n_invalid:
        rows.append(("rows left out", f"{whole.n_invalid:,}"))
    return rows


def _plan(sketch: AnySketch) -> list[tuple[str, str]]:
    spec, tilt = sketch.spec, sketch.spec.tilt
    ends = spec.bandwidth if isinstance(spec.bandwidth, tuple) else (spec.bandwidth,)
    return [
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
    turns = sketch.frequencies.turns[:, :m] * spec.per_unit[:, None]
    cap = None if spec.tilt is None else spec.tilt.cap
    return {"m": m, "center": spec.center_vector.tolist(), "turns": _packed(turns), "cap": cap}


def _n_frequencies(sketch: AnySketch) -> int:
    d, m = sketch.spec.n_features, sketch.spec.sketch_size
    return min(m, FREQUENCIES, max(NUMBERS // d, 64))


def _versions() -> list[tuple[str, str]]:
    others = [(name, version(name)) for name in ("numpy", "scipy", "numba")]
    return [
        ("sketchshift", sketchshift.__version__),
        ("Python", platform.python_version()),
        *others,
    ]


def _packed(values: Any) -> str:
    """Little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


def _header(subject: Subject) -> list[str]:
    """The first line of the table that the page saves, as ``sketchshift assign`` reads it."""
    has_scales = isinstance(subject.whole.spec.scale, tuple)
    scales = [f"{name} scale" for name in subject.columns if has_scales]
    return [cell(name) for name in ("cluster", "share", *subject.columns, *scales)]


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: item if name == HEADER else _shown(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    if isinstance(value, str):
        return visible_lines(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# Two slices side by side: whether the data changed, and which clusters did.


def rest_of(subject: Subject, choice: Choice) -> Choice:
    """All rows that are not in a choice."""
    others = sorted(set(range(len(subject.sketches))) - set(choice.members))
    if not others:
        raise DataError(f"there are no rows beside {choice.label}. Choose another slice.")
    return Choice("all other rows", None, None, tuple(others))


def compare_slices(subject: Subject, before: Choice, after: Choice, k: int) -> dict[str, Any]:
    """What :func:`sketchshift.compare` says of two choices without common rows.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    before, after : Choice
        Rows that have none in common: the threshold is that of independent ones.
    k : int
        Clusters of both together to report on.

    Returns
    -------
    facts : dict
        A sentence, and the clusters with their shares on both sides.
    """
    if set(before.members) & set(after.members):
        msg = f"{before.label} and {after.label} share rows. Compare slices without common rows."
        raise DataError(msg)
    found = compare(subject.sketch_of(before), subject.sketch_of(after), n_clusters=k)
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


def _sentence(found: Comparison, before: Choice, after: Choice) -> str:
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


def trends(subject: Subject, decoding: Decoding, decoded: AnySketch) -> list[dict[str, Any]]:
    """Shares over the slices, for each column of the key.

    Parameters
    ----------
    subject : Subject
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
    if subject.table is None or not len(decoding.weights):
        return []
    atoms = ClusterSketches.of(decoding, decoded.spec)
    rest = atoms.z - decoded.z  # what the clusters do not explain is taken to stay
    found = []
    for column in subject.by:
        table = subject.table.merge_by(column)
        names = [key_text(key) for key in table.keys.column(column).to_pylist()]
        shown = table.sketches[:MOST_SLICES]
        found.append(
            {
                "column": column,
                "names": names[:MOST_SLICES],
                "counts": [sketch.count for sketch in shown],
                "shares": [_shares(atoms, sketch, rest).tolist() for sketch in shown],
                "left_out": max(0, len(table) - MOST_SLICES),
            }
        )
    return found


def _shares(atoms: ClusterSketches, sketch: AnySketch, rest: ComplexArray) -> FloatArray:
    if sketch.total_weight <= 0:
        return np.full(len(atoms.weights), np.nan)
    return atoms.shares(sketch.z + rest)
