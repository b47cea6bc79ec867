"""Formulas as MathML, written when the pages are built: no script and no network to read them.

Browsers draw MathML themselves. A formula that cannot be translated stops the build.
"""

from __future__ import annotations

import html
import re
import unicodedata

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

SAME = {r"\\tfrac": r"\\frac", r"\\arg": r"\\operatorname{arg}", r"\\textstyle": ""}
"""Commands by others of the same meaning, which the translator knows."""

STYLES = {
    "script": ("MATHEMATICAL SCRIPT", "SCRIPT"),
    "fraktur": ("MATHEMATICAL FRAKTUR", "BLACK-LETTER"),
    "double-struck": ("MATHEMATICAL DOUBLE-STRUCK", "DOUBLE-STRUCK"),
    "bold": ("MATHEMATICAL BOLD",),
    "bold-italic": ("MATHEMATICAL BOLD ITALIC",),
}
"""Styles that browsers leave to letters of their own, and how Unicode calls these."""


def to_mathml(latex: str, display: str) -> str:
    """One formula; its lines, where it has several, are aligned at the sign &."""
    for old, new in SAME.items():
        latex = re.sub(rf"{old}(?![a-zA-Z])", new, latex)
    latex = latex.replace(r"\|", "‖")
    if re.search(r"(?<!\\)&|\\\\", latex) and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    written = convert(latex, display=display)
    return re.sub(rf'<mi mathvariant="({"|".join(STYLES)})">([^<]+)</mi>', _letter, written)


def _letter(found: re.Match[str]) -> str:
    """A letter of a style as a sign of its own."""
    of, _, letter = unicodedata.name(html.unescape(found[2])).partition(" ")  # LATIN CAPITAL ...
    for style in STYLES[found[1]]:
        name = (
            f"{style} {letter.replace('LETTER ', '')}"
            if of != "DIGIT"
            else f"{style} {of} {letter}"
        )
        try:
            return f"<mi>{unicodedata.lookup(name)}</mi>"
        except KeyError:  # some letters have older names
            continue
    return found[0]


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line."""
    translator.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is wider than the page."""
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(to_mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_block, None))
    return {"parallel_read_safe": True}
