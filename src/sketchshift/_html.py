"""Pieces of HTML that notebooks show: tables, bars of shares, shaded cells and small curves.

Everything is self-contained: no script, no style sheet, no network. Text has the colour of the
page around it and nothing has a background but shades that let it through, so that light and dark
notebooks are served alike. Every text is escaped here, and nowhere else.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sketchshift._colours import HIGH, colour_of, mark_of, shade
from sketchshift._text import visible

__all__ = [
    "Cell",
    "Html",
    "Row",
    "bar",
    "card",
    "chip",
    "curve",
    "escape",
    "facts",
    "fold",
    "grid",
    "note",
    "progress_line",
    "shaded",
]

FAINT = "color-mix(in srgb, currentColor 25%, transparent)"
CELL = "padding:2px 8px;vertical-align:middle;white-space:nowrap;background:transparent"
MARKS = {"circle": "●", "square": "■", "triangle": "▲", "diamond": "◆"}
CURVE = (220.0, 28.0)
"""Width and height of a small curve."""

LONG = 20
"""Letters of a text that is not to be broken into many lines."""

MOST_DOTS = 60
"""Points of a curve up to which each has a place to hover over."""


class Html(str):
    """Text that is HTML already: it is not escaped again."""

    __slots__ = ()


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    content : str or Html
        What it shows.
    background : str
        Its shade; "" for none.
    title : str
        What is shown when the mouse is over it.
    is_text : bool
        Whether it is to the left, and may be broken into lines; numbers are to the right.
    """

    content: str
    background: str = ""
    title: str = ""
    is_text: bool = False


Row = Sequence[Cell | str]


def escape(text: object) -> Html:
    """Any text as HTML; what is HTML already stays as it is."""
    return text if isinstance(text, Html) else Html(html.escape(visible(str(text))))


def card(title: str, *parts: Html) -> Html:
    """All that a notebook shows of one thing, below a title."""
    style = "color:inherit;font-size:13px;line-height:1.4;max-width:100%;overflow-x:auto"
    heading = f'<div style="font-weight:600;margin-bottom:4px">{escape(title)}</div>'
    return Html(f'<div class="sketchshift" style="{style}">{heading}{"".join(parts)}</div>')


def note(text: str) -> Html:
    """A sentence."""
    return Html(f'<div style="margin:2px 0;opacity:0.8">{escape(text)}</div>') if text else Html("")


def facts(known: Mapping[str, object]) -> Html:
    """Facts on one line: what, and how much."""
    items = (
        f'<span style="margin-right:16px;white-space:nowrap"><span style="opacity:0.7">'
        f"{escape(name)}</span> {escape(value)}</span>"
        for name, value in known.items()
    )
    return Html(f'<div style="margin:2px 0">{"".join(items)}</div>')


def fold(title: str, *parts: Html) -> Html:
    """What few people look for, folded away."""
    summary = f'<summary style="cursor:pointer;opacity:0.8">{escape(title)}</summary>'
    return Html(f'<details style="margin-top:4px">{summary}{"".join(parts)}</details>')


def grid(head: Sequence[str], rows: Iterable[Row]) -> Html:
    """A table; heads stand as their columns do, to the left or to the right."""
    lines = [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in rows]
    sides = [lines[0][j].is_text if lines else True for j in range(len(head))]
    cells = "".join(
        f'<th style="{CELL};white-space:normal;font-weight:600;text-align:'
        f'{"left" if is_text else "right"};vertical-align:bottom">{escape(name)}</th>'
        for name, is_text in zip(head, sides, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in lines)
    style = "border-collapse:collapse;border:none;margin:6px 0;color:inherit;font-size:inherit"
    line = f"border-bottom:1px solid {FAINT}"
    return Html(
        f'<table style="{style}"><thead><tr style="{line}">{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _cell(cell: Cell) -> str:
    left = CELL.replace("nowrap", "normal") + ";text-align:left;max-width:32em"
    left += (
        ";min-width:14em" if len(cell.content) > LONG and not isinstance(cell.content, Html) else ""
    )
    style = left if cell.is_text else f"{CELL};text-align:right"
    style += f";background:{cell.background}" if cell.background else ""
    title = f' title="{escape(cell.title)}"' if cell.title else ""
    return f'<td style="{style}"{title}>{escape(cell.content)}</td>'


def shaded(text: str, deviation: float, title: str = "") -> Cell:
    """A number whose shade tells how far it is from the mean of all rows."""
    return Cell(text, shade(deviation), title)


def chip(i: int) -> Html:
    """The colour, mark and number of cluster i."""
    mark = f'<span style="color:{colour_of(i)}">{MARKS[mark_of(i)]}</span>'
    return Html(f'<span style="white-space:nowrap">{mark} {i}</span>')


def bar(share: float, text: str, colour: str = "currentColor") -> Cell:
    """A share, of the longest bar, as a bar with its text before it."""
    width = 72.0 * min(max(share, 0.0), 1.0)
    drawn = Html(
        f'<span style="display:inline-block;text-align:right;min-width:4em">{escape(text)}</span>'
        f'<span style="display:inline-block;width:72px;margin-left:6px;text-align:left;'
        f'border-left:1px solid {FAINT}"><span style="display:inline-block;height:0.7em;'
        f'width:{width:.1f}px;background:{colour};opacity:0.8"></span></span>'
    )
    return Cell(Html(f'<span style="white-space:nowrap">{drawn}</span>'), is_text=True)


def progress_line(label: str, share: float | None, text: str) -> Html:
    """How far work is: a bar where the end is known, and how much is done."""
    drawn = "" if share is None else f'<progress value="{share:.3f}" max="1"></progress> '
    return Html(f'<div style="color:inherit">{escape(label)} {drawn}{escape(text)}</div>')


def curve(
    values: Sequence[float],
    titles: Sequence[str],
    *,
    alarms: Sequence[bool] = (),
    line: float | None = None,
    colour: str = "currentColor",
) -> Html:
    """A small curve over time.

    Parameters
    ----------
    values : sequence of n floats
        From 0 up; NaN leaves a gap.
    titles : sequence of n str
        What each is called, when the mouse is over it.
    alarms : sequence of n bool
        Which are marked; none by default.
    line : float or None
        A threshold, drawn across.
    colour : str
        Of the curve.

    Returns
    -------
    svg : Html
        An inline picture.
    """
    n, (width, height) = len(values), CURVE
    top = max([v for v in values if math.isfinite(v)] + [line or 0.0]) or 1.0
    alarms = alarms or [False] * n
    places = [
        (
            4.0 + (width - 8.0) * (i / (n - 1) if n > 1 else 0.5),
            height - 4.0 - (height - 8.0) * v / top,
        )
        for i, v in enumerate(values)
    ]
    parts = [
        f'<path d="{_path(places)}" fill="none" stroke="{colour}" stroke-width="1.5" '
        'stroke-linejoin="round"/>'
    ]
    if line is not None:
        y = height - 4.0 - (height - 8.0) * line / top
        parts.append(
            f'<path d="M0 {y:.1f}H{width:.0f}" stroke="currentColor" stroke-opacity="0.5" '
            'stroke-dasharray="3 3"/>'
        )
    for (x, y), title, alarm in zip(places, titles, alarms, strict=True):
        if math.isfinite(y) and (alarm or n <= MOST_DOTS):
            radius, fill = (3.0, HIGH) if alarm else (2.0, colour)
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}">'
                f"<title>{escape(title)}</title></circle>"
            )
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    style = "vertical-align:middle;color:inherit;overflow:visible"
    return Html(f'<svg {size} role="img" style="{style}">{"".join(parts)}</svg>')


def _path(places: Sequence[tuple[float, float]]) -> str:
    """Strokes from each point to the next; after a gap a new one begins."""
    steps, is_open = [], False
    for x, y in places:
        if math.isfinite(y):
            steps.append(f"{'L' if is_open else 'M'}{x:.1f} {y:.1f}")
        is_open = math.isfinite(y)
    return "".join(steps)
