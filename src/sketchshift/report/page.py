"""The page: one HTML file with its data, style and program in it, which opens without network.

Takes a document; hands text. What comes from the data travels as JSON in which no ``<`` is
left, and the program puts it on the page as text only. The policy in the head allows this very
program and this very style, by their digests, and no address at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from sketchshift._text import visible
from sketchshift.report.document import to_json

__all__ = ["policy", "render"]

PROGRAM = (
    "base.js", "chart.js", "table.js", "parallel.js", "map.js", "curve.js", "trends.js",
    "page.js", "live.js",
)  # fmt: skip
"""Parts of the program, in the order in which they need each other."""


def render(document: Mapping[str, Any]) -> str:
    """The page of a document.

    Parameters
    ----------
    document : mapping
        As ``document.document`` makes it; with ``live`` the page talks to its server.

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
    return (files("sketchshift.report") / "static" / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return _static("style.css")


@cache
def _program() -> str:
    body = "\n".join(_static(name) for name in PROGRAM)
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
