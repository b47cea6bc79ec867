"""A picture in the terminal: half blocks in colour, or shades where there is none.

Takes an image from ``plots``; hands lines of rich text to ``demo``. Knows no matplotlib:
the colours are eleven of viridis, with straight lines between.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from sketchshift._typing import FloatArray

__all__ = ["framed", "picture"]

VIRIDIS = (
    (0x44, 0x01, 0x54),
    (0x48, 0x24, 0x75),
    (0x41, 0x44, 0x87),
    (0x35, 0x5F, 0x8D),
    (0x2A, 0x78, 0x8E),
    (0x21, 0x91, 0x8C),
    (0x22, 0xA8, 0x84),
    (0x44, 0xBF, 0x70),
    (0x7A, 0xD1, 0x51),
    (0xBD, 0xDF, 0x26),
    (0xFD, 0xE7, 0x25),
)
SHADES = " ░▒▓█"
LETTERS = " .:-=+*#%@"  # where the output cannot hold shades


def picture(image: FloatArray, console: Console) -> list[Text]:
    """Lines that show an image, as well as the console can.

    Parameters
    ----------
    image : array of shape (ny, nx)
        The first row is at the bottom, as in a plot; negative values are shown as zero. An
        even ny fills all lines.
    console : Console
        Two rows of the image share a line.

    Returns
    -------
    lines : list of Text
        From top to bottom, nx characters each.
    """
    peak = float(image.max())
    level = np.clip(image[::-1] / (peak if peak > 0 else 1.0), 0.0, 1.0)
    level = np.vstack([level, np.zeros((len(level) % 2, level.shape[1]))])
    upper, lower = level[::2], level[1::2]
    if console.color_system is not None and _can_write("▀", console):
        return [_coloured(_colours(u), _colours(v)) for u, v in zip(upper, lower, strict=True)]
    ramp = SHADES if _can_write(SHADES, console) else LETTERS
    shade = ((upper + lower) / 2) ** 0.7  # so that few shades show the faint parts, too
    steps = np.minimum(shade * len(ramp), len(ramp) - 1).astype(int)
    return [Text("".join(ramp[step] for step in row)) for row in steps]


def framed(
    lines: Sequence[Text], *, x: tuple[str, str, str], y: tuple[str, str, str], indent: int = 2
) -> list[Text]:
    """Lines of a picture with its two axes.

    Parameters
    ----------
    lines : sequence of Text
        At least three, of one length.
    x, y : triple of str
        Low end, name and high end of an axis.
    indent : int
        Blanks before everything.

    Returns
    -------
    lines : list of Text
        One more than before.
    """
    margin = max(map(len, y))
    labels = {0: y[2], len(lines) // 2: y[1], len(lines) - 1: y[0]}
    result = [
        Text(" " * indent + labels.get(i, "").rjust(margin) + " ").append_text(line)
        for i, line in enumerate(lines)
    ]
    width = len(lines[0])
    below = x[1].center(width)
    below = x[0] + below[len(x[0]) : width - len(x[2])] + x[2]
    return [*result, Text(" " * (indent + margin + 1) + below)]


def _colours(levels: FloatArray) -> list[str]:
    table = np.array(VIRIDIS, dtype=float)
    at = levels * (len(table) - 1)
    channels = [np.interp(at, range(len(table)), table[:, c]) for c in range(3)]
    return [f"rgb({r:.0f},{g:.0f},{b:.0f})" for r, g, b in zip(*channels, strict=True)]


def _coloured(upper: Sequence[str], lower: Sequence[str]) -> Text:
    line = Text()
    for above, below in zip(upper, lower, strict=True):
        line.append("▀", style=f"{above} on {below}")
    return line


def _can_write(characters: str, console: Console) -> bool:
    try:
        characters.encode(console.encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True
