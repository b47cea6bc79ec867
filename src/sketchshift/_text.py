"""Text from data that goes where some signs do more than show: terminals, pages, spreadsheets.

Names, keys and paths come from strangers. A terminal obeys escape sequences in them, marks of
direction reorder what stands beside them, and a spreadsheet computes a cell that begins like a
formula.
"""

from __future__ import annotations

import re

__all__ = ["cell", "from_cell", "visible", "visible_lines"]

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, escape sequences begin with one
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"  # marks of direction, breaks of lines, signs of no width
    "\ud800-\udfff]"  # bytes of file names that are not text
)
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def visible(text: str) -> str:
    r"""One line of text, in which signs that control how others are shown are escapes.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    shown : str
        With ``\x1b`` or ``\u202e`` in place of such a sign; the same text where there is none.
    """
    return text if text.isprintable() else _CONTROLS.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Text of ours, in which line breaks are meant: each line as :func:`visible` shows it."""
    return "\n".join(map(visible, text.split("\n")))


def cell(text: str) -> str:
    """Text for a cell of a CSV file, which a spreadsheet does not take for a formula.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    written : str
        With an apostrophe in front if it begins with =, +, -, @, a tab or a line break, or with
        apostrophes and one of these; :func:`from_cell` gives the text back.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(written: str) -> str:
    """The text that :func:`cell` wrote."""
    return written[1:] if written.startswith("'") and _FORMULA.match(written) else written


def _escape(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode("ascii")
