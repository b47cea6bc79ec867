"""Words that all rooms share: counts, rows, columns and numbers, and text from strangers.

Names, keys and paths come from strangers and go where some signs do more than show. A terminal
obeys escape sequences in them, marks of direction reorder what stands beside them, and a
spreadsheet computes a cell that begins like a formula.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

__all__ = [
    "NAMES_SHOWN",
    "SECRET",
    "cell",
    "cluster_header",
    "column_in_words",
    "counted",
    "finite",
    "from_cell",
    "hide_passwords",
    "listed",
    "meaningful",
    "nameless_columns",
    "number",
    "rows_in_words",
    "size_in_words",
    "visible",
    "visible_lines",
    "without_password",
]

NAMES_SHOWN = 20
"""Names in one message; it says how many more there are."""


class _Rows(Protocol):
    """What :func:`rows_in_words` needs to know of a sketch."""

    @property
    def about(self) -> str: ...

    @property
    def count(self) -> int: ...


def counted(n: int, noun: str) -> str:
    """A number of things: ``"1 row"``, ``"2,000 rows"``, ``"2 sketches"``, ``"2 axes"``."""
    plural = noun + ("es" if noun.endswith("ch") else "s")
    if noun.endswith("is"):
        plural = noun.removesuffix("is") + "es"
    return f"{n:,} {noun if n == 1 else plural}"


def rows_in_words(sketch: _Rows) -> str:
    """How many rows a sketch is of, or about how many."""
    return sketch.about + counted(sketch.count, "row")


def size_in_words(n_bytes: int) -> str:
    """Bytes as people write them: ``"812 bytes"``, ``"14.1 kB"``, ``"2.5 MB"``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return counted(n_bytes, "byte")


def nameless_columns(n: int) -> list[str]:
    """What columns without names are called: ``"column 0"``, ``"column 1"`` and so on."""
    return [f"column {j}" for j in range(n)]


def column_in_words(j: int, columns: Sequence[str] | None) -> str:
    """One column in a sentence: ``"column 'height'"``, or ``"column 3"`` without names."""
    return f"column {j}" if columns is None else f"column {columns[j]!r}"


def cluster_header(columns: Sequence[str], *, has_scales: bool) -> list[str]:
    """Names of the columns of a table of centroids: "x scale" holds the scale of column "x"."""
    scales = [f"{name} scale" for name in columns if has_scales]
    return ["cluster", "share", *columns, *scales]


def listed(names: Sequence[str]) -> str:
    """Names quoted and joined, the first twenty of them."""
    text = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{text} and {more} more" if more > 0 else text


def number(value: float) -> str:
    """Six significant digits; a dash where there is no number."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


def meaningful(value: float, spread: float | None = None, n: int | None = None) -> str:
    """A mean with the digits that mean something: ``"231"``, ``"0.012"``, ``"3,930"``.

    Parameters
    ----------
    value : float
        The mean of a column.
    spread : float or None
        Standard deviation of the rows it is the mean of; None, 0 or NaN where it is not known.
    n : int or None
        How many rows these are; None where that is not known.

    Returns
    -------
    text : str
        The last digit is that of the standard error, ``spread / sqrt(n)``, and at least the first
        and at most the third of the spread; without n the second of the spread, without a spread
        the fourth of the value. With commas between thousands; a dash where there is no number.

    Examples
    --------
    >>> meaningful(230.934, 12), meaningful(0.0123, 0.004, 150), meaningful(3932.8, 3989.4, 53940)
    ('231', '0.012', '3,930')
    """
    if not math.isfinite(value):
        return "-"
    if not spread or not math.isfinite(spread):
        places = 3 - _magnitude(value)
    elif not n:
        places = 1 - _magnitude(spread)
    else:
        places = -round(math.log10(spread / math.sqrt(n)))
        places = min(max(places, -_magnitude(spread)), 2 - _magnitude(spread))
    if not -15 < _magnitude(value) < 15 or places > 15:
        return f"{value:.3g}"
    text = f"{round(value, places):,.{max(places, 0)}f}"
    if not spread and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if text.strip("-0.,") else "0"


def _magnitude(value: float) -> int:
    """The power of ten of the first digit."""
    return math.floor(math.log10(abs(value))) if value else 0


def finite(value: Any, text: Callable[[str], str] = str) -> Any:
    """What JSON can hold: NaN and infinity become None.

    Parameters
    ----------
    value : object
        Numbers, texts, lists and mappings of them, to any depth.
    text : callable
        What becomes of every text that is not a name in a mapping.

    Returns
    -------
    value : object
        Tuples are lists.
    """
    if isinstance(value, Mapping):
        return {name: finite(item, text) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item, text) for item in value]
    if isinstance(value, str):
        return text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# Text from strangers, made harmless.

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


SECRET = (
    r"(?:sig|key|[\w.-]*(?:pass|signature|token|secret|credential|"
    r"(?:api|access|account)[_-]?key)[\w.-]*)"
)
"""Names of parameters that nobody may read."""

_PASSWORD = re.compile(
    rf"((?:\w+://|postgres(?:ql)?:/?)[^\s:/@'\"]*):[^\s'\"]*@|"
    rf"([?&]{SECRET}=|\b(?:ssl)?password\s*=\s*)(?:\\?'[^']*'|[^&\s'\"]*)",
    re.I,
)


def without_password(address: str) -> str:
    """An address as it may be shown, and used again; a path as it is."""
    if "://" not in address:
        return address
    scheme, _, rest = address.partition("://")
    before, sign, place = rest.rpartition("@")
    place, mark, parameters = place.partition("?")
    pairs = parameters.split("&")
    kept = "&".join(pair for pair in pairs if not re.match(f"{SECRET}=", pair, re.I))
    return f"{scheme}://{before.partition(':')[0]}{sign}{place}{mark if kept else ''}{kept}"


def hide_passwords(text: str) -> str:
    """Text in which addresses have no password: before an "@", or as a parameter or signature."""

    def hide(found: re.Match[str]) -> str:
        return found[2] + "***" if found[2] else found[1] + "@"

    return _PASSWORD.sub(hide, text)


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
