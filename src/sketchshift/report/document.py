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
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

import sketchshift
from sketchshift._text import cell, visible_lines
from sketchshift.decoders import Decoding, KCurve
from sketchshift.decoders.moments import spread_of
from sketchshift.report.subject import Choice, Subject
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["curve_facts", "document", "to_json", "view"]

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
