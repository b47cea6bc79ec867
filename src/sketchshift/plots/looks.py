"""Looks that pictures share; clusters are told apart without colour.

There are dashes, markers and hatches beside colours. The colours are seven of the palette of
Okabe and Ito, which colour-blind readers can tell apart; the cycles have lengths without a
common divisor, so that few clusters look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["fill_look", "legend_above", "line_look", "logarithmic"]

COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "ooo", "+++", "|||", "OO", "**")
LIGHT = ("#d9d9d9", "#f2b48a", "#8cc2e0", "#7fcfb5", "#e6c0d6", "#f5d58a", "#c7e6f7")
"""The same colours, pale enough for black hatches."""


def line_look(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of the line of cluster i."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": DASHES[i % len(DASHES)],
        "marker": MARKERS[i % len(MARKERS)],
    }


def fill_look(i: int) -> dict[str, Any]:
    """Colour and hatch of the area of cluster i."""
    return {
        "facecolor": LIGHT[i % len(LIGHT)],
        "hatch": HATCHES[i % len(HATCHES)],
        "edgecolor": "black",
    }


def legend_above(ax: Axes, lines: Sequence[Any]) -> None:
    """A legend in one line between the axes and their title, where it hides nothing."""
    ax.legend(
        handles=lines, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(lines),
        fontsize=8, frameon=False, markerscale=0.7, columnspacing=1.2, handlelength=1.8,
    )  # fmt: skip
    ax.set_title(ax.get_title(), pad=22)


def logarithmic(ax: Axes, values: Sequence[float]) -> None:
    """Make the vertical axis logarithmic, with numbers even where it has no power of ten."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    ax.set_yscale("log")
    if max(values, default=1.0) < 20 * min(values, default=1.0):
        ax.yaxis.set_major_locator(MaxNLocator(6))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())
