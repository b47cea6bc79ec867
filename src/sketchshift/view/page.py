"""The page: one HTML file with its data, style and program in it, which opens without network.

Takes a document; hands text. What comes from the data travels as JSON in which no ``<`` is
left, and the program puts it on the page as text only. The policy in the head allows this very
program and this very style, by their digests, and no address at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from sketchshift._colours import FULL, HIGH, LOW, MARKS, OPACITY, PALETTE, THIN, shade
from sketchshift._text import visible
from sketchshift.decoders import Decoder, Decoding, KCurve, decode
from sketchshift.decoders.decoder import Progress
from sketchshift.decoders.turnkey import decoder_named
from sketchshift.errors import DataError, PlanWarning
from sketchshift.sketch import AnySketch
from sketchshift.view.document import (
    Selection,
    SketchFile,
    build_document,
    build_trends,
    build_view,
    curve_record,
    to_json,
)

__all__ = ["policy", "render", "render_report", "report_on"]

PROGRAM = ("base.js", "map.js", "clusters.js", "shares.js", "page.js")
"""Parts of the program, in the order in which they need each other."""


SHADED = {"low": -FULL, "high": FULL}
"""Deviations that the key of the table explains."""


def render(document: Mapping[str, Any]) -> str:
    """The page of a document.

    Parameters
    ----------
    document : mapping
        As ``build_document`` makes it; with ``live`` the page talks to its server.

    Returns
    -------
    text : str
        HTML. The same document gives the same text.
    """
    parts = {
        "policy": policy(live=document["live"] is not None),
        "title": html.escape(f"{visible(document['name'])}: clusters"),
        "style": _style(),
        "program": _program(),
        "document": to_json(document).replace("<", r"\u003c").replace(">", r"\u003e"),
    }
    before, *rest = _static("page.html").split("{{")
    pieces = [piece.split("}}", 1) for piece in rest]
    return before + "".join(parts[name] + after for name, after in pieces)


def policy(*, live: bool) -> str:
    """What the page may load: itself, and from its server if there is one."""
    rules = {
        "default-src": "'none'",
        "script-src": _digest(_program()),
        "style-src": _digest(_style()),
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


@cache
def _static(name: str) -> str:
    return (files("sketchshift.view") / "static" / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    shades = [f".key.{name} {{ background: {shade(side)}; }}" for name, side in SHADED.items()]
    return "\n".join([_static("style.css"), *shades])


@cache
def _program() -> str:
    shades = {"low": LOW, "high": HIGH, "full": FULL, "opacity": OPACITY}
    palette = {"COLOURS": PALETTE, "MARKS": MARKS, "SHADES": shades, "THIN": THIN}
    constants = [f"const {name} = {json.dumps(value)};" for name, value in palette.items()]
    body = "\n".join([*constants, *map(_static, PROGRAM)])
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


# The report: what one decoding says about a sketch or a table, in one file.


def report_on(
    file: SketchFile,
    n_clusters: int | Literal["auto"],
    *,
    seed: int = 0,
    commands: Sequence[str] = (),
    progress: Progress | None = None,
    decoder: Decoder | str | None = None,
) -> tuple[str, Decoding]:
    """Decode all rows of a file, and render the report on them.

    Parameters
    ----------
    file : SketchFile
        With at least as many rows as clusters.
    n_clusters : int or "auto"
        As in :func:`sketchshift.decode`.
    seed : int, default=0
        Of the decoder. The same file and seed give the same text.
    commands : sequence of str
        Lines that give the same result again.
    progress : callable or None
        Called after each fit of the clusters; the curve over k costs one more decoding.
    decoder : Decoder, str or None
        As in :func:`sketchshift.decode`.

    Returns
    -------
    text : str
        HTML.
    decoding : Decoding
        The clusters in it.
    """
    decoder = decoder_named(decoder, "report_on")
    decoding = decode(file.whole, n_clusters, seed=seed, progress=progress, decoder=decoder)
    curve = decoding.curve
    if curve is None and hasattr(decoder, "most_clusters"):
        most = max(len(decoding.weights), decoder.most_clusters(file.whole.spec, None))
        curve = _curve(file.whole, most, seed, decoder)
    return render_report(file, file.choices[0], decoding, curve, commands), decoding


def _curve(sketch: AnySketch, most: int, seed: int, decoder: Decoder) -> KCurve | None:
    """The curve up to ``most`` clusters, if there are waves to tell it.

    What is to be warned of has been told already.
    """
    with warnings.catch_warnings(), suppress(DataError):
        warnings.simplefilter("ignore", PlanWarning)
        return decode(sketch, "auto", max_clusters=most, seed=seed, decoder=decoder).curve
    return None


def render_report(
    file: SketchFile,
    selection: Selection,
    decoding: Decoding,
    curve: KCurve | None,
    commands: Sequence[str],
) -> str:
    """Render the report on a decoding that is there already.

    Parameters
    ----------
    file : SketchFile
        What is looked at.
    selection : Selection
        The rows that were decoded.
    decoding : Decoding
        Their clusters.
    curve : KCurve or None
        Theirs, for other numbers of clusters.
    commands : sequence of str
        Lines that give the same result again.

    Returns
    -------
    text : str
        HTML.
    """
    sketch = file.sketch_of(selection)
    document = build_document(file, commands) | {
        "view": build_view(selection, sketch, decoding),
        "curve": curve_record(curve),
        "trends": build_trends(file, decoding, sketch),
    }
    return render(document)
