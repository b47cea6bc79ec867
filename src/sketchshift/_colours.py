"""The colours of the project: one for each cluster, in every picture, page and table.

The colours were searched for (simulated annealing) so that the nearest two of them are as far
apart as can be, for readers with full colour vision and for those without red, green or blue
cones, while each can be seen on white and on a dark page.
"""

from __future__ import annotations

__all__ = ["HIGH", "LOW", "MARKS", "PALETTE", "THIN", "colour_of", "mark_of", "shade"]

PALETTE = (
    "#1f78c8",  # blue
    "#d9720a",  # orange
    "#06a170",  # green
    "#b0298e",  # magenta
    "#836641",  # brown
    "#8878ff",  # violet
    "#f6566c",  # rose
    "#a18f9e",  # grey
    "#b43d16",  # brick
    "#c27cc0",  # orchid
    "#c88646",  # tan
    "#994b6e",  # plum
)
"""Of clusters 0 to 11: none is black or nearly white, all have a contrast of 3 to either page."""

MARKS = ("circle", "square", "triangle", "diamond")
"""Of clusters 0 to 11, 12 to 23, and so on: colours come back, with another mark."""

LOW, HIGH = "#2f6fb7", "#c8641e"
"""Below and above the mean of all rows."""

THIN = 100
"""Rows below which a slice is hatched: a share may be off by five percent points and more."""

FULL = 2.0
"""Standard deviations from which on a deviation has the full colour."""

OPACITY = 0.6
"""Of the full colour: dark text is read on it on a white page, light text on a dark one."""


def colour_of(i: int) -> str:
    """Colour of cluster i, as "#rrggbb".

    Examples
    --------
    >>> colour_of(0), colour_of(12)
    ('#1f78c8', '#1f78c8')
    """
    return PALETTE[i % len(PALETTE)]


def mark_of(i: int) -> str:
    """Mark of cluster i, one of :data:`MARKS`.

    Examples
    --------
    >>> mark_of(0), mark_of(12)
    ('circle', 'square')
    """
    return MARKS[i // len(PALETTE) % len(MARKS)]


def shade(deviation: float) -> str:
    """Background of a number that lies so many standard deviations from the mean of all rows.

    Parameters
    ----------
    deviation : float
        Below 0 blue, above 0 orange; from two on the colour is full. NaN is taken for 0.

    Returns
    -------
    colour : str
        As "#rrggbbaa", which style sheets and matplotlib understand. It is transparent at 0, so
        that it serves on white and on dark pages.

    Examples
    --------
    >>> shade(0.0), shade(-2.0), shade(1.0)
    ('#c8641e00', '#2f6fb799', '#c8641e4c')
    """
    size = min(abs(deviation) / FULL, 1.0) if deviation == deviation else 0.0
    return f"{LOW if deviation < 0 else HIGH}{round(255 * OPACITY * size):02x}"
