"""What pictures share: looks that can be told apart without colour, columns and their units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._colours import MARKS, PALETTE, colour_of, mark_of
from sketchshift._text import meaningful, visible
from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import parameter_error
from sketchshift.decoders import Decoding
from sketchshift.features import SketchSpec
from sketchshift.sketch import AnySketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COMPARED",
    "INK",
    "MAPPED",
    "SCALES",
    "SHAPES",
    "best_columns",
    "check_decoding",
    "column_kinds",
    "escape_name",
    "fill_look",
    "known_decoding",
    "legend_above",
    "legend_of_clusters",
    "line_look",
    "logarithmic",
    "main_axes",
    "names_in_words",
    "positions_of",
    "shown_values",
    "variances_within",
    "wrap_name",
]

# Looks of clusters and axes: colours are those of _colours, the same in every picture. There are
# dashes and markers beside them; their cycles have lengths without a common divisor, so that few
# clusters look alike in a print without colours.

DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1.5)))
HATCHES = ("", "///", "...", "xxx")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
SHAPES = dict(zip(MARKS, "os^D", strict=True))
"""What matplotlib calls the marks."""

INK = "0.15"
"""Of lines and text that belong to no cluster."""

LISTED, CHARACTERS = 16, 38
"""Clusters in a legend, and characters of their names."""


def line_look(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of the line of cluster i."""
    return {
        "color": colour_of(i),
        "linestyle": DASHES[i % len(DASHES)],
        "marker": MARKERS[i % len(MARKERS)],
    }


def fill_look(i: int) -> dict[str, Any]:
    """Colour of the area of cluster i; where colours come back, with a hatch."""
    hatch = HATCHES[i // len(PALETTE) % len(HATCHES)]
    return {"facecolor": colour_of(i), "hatch": hatch, "edgecolor": "white"}


def names_in_words(sketch: AnySketch, decoding: Decoding) -> list[str]:
    """What each cluster is, with its number: "2 high price"; its number alone if that is all."""
    known = known_decoding(sketch, decoding)
    if known.std is None:
        return [f"cluster {i}" for i in range(len(decoding.weights))]
    return [f"{c.number}  {_shorten(visible(c.name))}" for c in known.profile.clusters]


def _shorten(name: str) -> str:
    return name if len(name) <= CHARACTERS else name[: CHARACTERS - 1].rstrip(" ,") + "…"


def legend_of_clusters(
    where: Axes | Figure, names: Sequence[str], shares: FloatArray, **options: Any
) -> None:
    """A legend that says what each colour is: marks, names and shares, heaviest first."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], linestyle="none", marker=SHAPES[mark_of(i)], color=colour_of(i), markersize=8,
            label=escape_name(f"{name}  {_percent(share)} %"),
        )
        for i, (name, share) in enumerate(zip(names[:LISTED], shares, strict=False))
    ]  # fmt: skip
    more = len(names) - LISTED
    if more > 0:
        handles.append(Line2D([], [], linestyle="none", label=f"and {more:,} more"))
    look: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "handletextpad": 0.3}
    if handles:
        where.legend(handles=handles, **(look | options))


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


# Columns: which of them, and under what names.


def positions_of(
    sketch: AnySketch, columns: Sequence[int | str], caller: str, counts: tuple[int, int] = (2, 2)
) -> list[int]:
    """Positions of different columns, given by position, or by name where the spec has names.

    Parameters
    ----------
    sketch : Sketch
        Whose columns they are.
    columns : sequence of int or str
        What was asked for.
    caller : str
        Named in the error.
    counts : pair of int
        The least and the largest number of columns.
    """
    d, names = sketch.spec.n_features, list(sketch.spec.rows.names or ())
    found = [names.index(c) if isinstance(c, str) and c in names else c for c in columns]
    are_columns = all(isinstance(c, int | np.integer) and 0 <= c < d for c in found)
    least, most = counts
    if not (are_columns and least <= len(found) <= most and len(set(found)) == len(found)):
        many = {(2, 2): "two"}.get(counts, f"{least} to {most}")
        must = f"{many} different columns, positions from 0 to {d - 1}"
        must += f" or names among {', '.join(map(repr, names[:8]))}" if names else ""
        raise parameter_error(caller, "columns", must, columns)
    return [int(c) for c in found]


def check_decoding(sketch: AnySketch, decoding: Decoding, caller: str) -> None:
    """Refuse a decoding of another number of columns."""
    d = sketch.spec.n_features
    if decoding.centroids.shape[1] != d:
        must = f"a Decoding of the sketch's {d} columns"
        raise parameter_error(caller, "decoding", must, decoding)


# Which columns tell the clusters apart.

DISTINCT, COMPARED = 20, 40
"""Columns of which pairs are tried for the map, and clusters that they are to tell apart."""

MAPPED = 30
"""Columns up to which two of them make the map; of more, each is a small part of a row."""

SCALES = ("number", "log")
"""Kinds of columns that make an axis of a map; shares and circles do not."""

TINY = 1e-300


def known_decoding(sketch: AnySketch, decoding: Decoding) -> Decoding:
    """The decoding, with its sketch."""
    return decoding if decoding.sketch is not None else replace(decoding, sketch=sketch)


def best_columns(decoding: Decoding) -> tuple[list[int], list[int]]:
    """All columns, those first that tell the clusters apart best; and the best pair of them.

    Two clusters are the harder to tell apart the larger exp(-D^2 / 8), with D the distance of
    their means in standard deviations within them. A column, or a pair of columns, is as good as
    the sum of it over all pairs of clusters, times their shares, is small: O(k^2 d).
    """
    means, shares = decoding.centroids[:COMPARED], decoding.weights[:COMPARED]
    first, second = np.triu_indices(len(shares), 1)
    odds, apart = shares[first] * shares[second], means[first] - means[second]
    variances = variances_within(decoding)
    within = 0.5 * (variances[first] + variances[second])
    squares = np.divide(apart**2, within, out=np.zeros_like(apart), where=within > 0.0)
    order = np.argsort(odds @ np.exp(-squares / 8.0), kind="stable")
    few = _on_scales(decoding, order)[:DISTINCT]
    pairs = [(a, b) for i, a in enumerate(few.tolist()) for b in few.tolist()[i + 1 :]]
    u = apart / np.sqrt(within + TINY)
    confused = []
    for a, b in pairs:
        r = np.zeros(len(odds))  # correlation within: columns that say the same count once
        if decoding.covariances is not None:
            c = decoding.covariances[:COMPARED, a, b]
            r = 0.5 * (c[first] + c[second]) / np.sqrt(within[:, a] * within[:, b] + TINY)
            r = np.clip(r, -0.99, 0.99)
        squares = (u[:, a] ** 2 - 2 * r * u[:, a] * u[:, b] + u[:, b] ** 2) / (1 - r**2)
        confused.append(odds @ np.exp(-squares / 8.0))
    best = pairs[int(np.argmin(confused))] if pairs else (0, 0)
    return order.tolist(), list(best)


def _on_scales(decoding: Decoding, order: IntArray) -> IntArray:
    """Columns with a scale, if there are two of them."""
    kinds = [] if decoding.spec is None else column_kinds(decoding.spec)
    found = [c for c in order.tolist() if kinds and kinds[c] in SCALES]
    return np.array(found) if len(found) > 1 else order


def variances_within(decoding: Decoding) -> FloatArray:
    """Of the columns within each cluster; where they are not known, within all of them: (k, d)."""
    k, d = decoding.centroids[:COMPARED].shape
    total = np.zeros(d) if decoding.std is None else np.square(decoding.std)
    if decoding.covariances is not None:
        own = np.diagonal(decoding.covariances[:COMPARED], axis1=1, axis2=2)
        return np.asarray(np.maximum(own, 1e-6 * total))
    rests = decoding.centroids - decoding.weights @ decoding.centroids
    within = np.maximum(total - decoding.weights @ rests**2, 1e-6 * total)
    return np.broadcast_to(within, (k, d))


def main_axes(decoding: Decoding, unit: FloatArray) -> tuple[tuple[str, str], FloatArray]:
    """Names and directions (2, d) along which clusters lie farthest apart, columns in units."""
    rests = (decoding.centroids - decoding.weights @ decoding.centroids) / unit
    padded = np.vstack([np.sqrt(decoding.weights)[:, None] * rests, np.zeros((2, len(unit)))])
    axes = np.linalg.svd(padded, full_matrices=False)[2][:2]
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(2), largest])[:, None]
    first, second = (decoding.columns[j] for j in largest)
    return (f"main axis 1, mostly {first}", f"main axis 2, mostly {second}"), axes


def column_kinds(spec: SketchSpec) -> list[str]:
    """What each column is."""
    if spec.rows.recipe is None:
        return ["number"] * spec.n_features
    return [part.kind for part in spec.rows.recipe.parts for _ in part.names]


def shown_values(decoding: Decoding) -> list[list[str]]:
    """The means of the clusters, with as many digits as mean something, shape (k, d)."""
    profile = decoding.profile
    return [
        [
            text.replace("-", "\N{MINUS SIGN}")
            for place, trait in zip(profile.table.places, traits, strict=True)
            for text in _show(place.part.kind, trait.shown, means[place.numbers])
        ]
        for means, traits in zip(profile.table.means.tolist(), profile.told, strict=True)
    ]


def _show(kind: str, told: str, means: Sequence[float]) -> list[str]:
    """The numbers that were made of one column of the table: one of them as it is told in words."""
    if kind == "category":
        return [f"{100 * min(max(mean, 0.0), 1.0):.0f} %" for mean in means]
    return [told] if kind in SCALES else [meaningful(mean) for mean in means]


def escape_name(name: str) -> str:
    """A column name in which a dollar sign starts no formula, and nothing hides or turns others."""
    return visible(name).replace("$", r"\$")


def wrap_name(name: str, width: int) -> str:
    """A column name, escaped, on lines of at most so many characters; nothing is left out."""
    parts = re.findall(rf"[^ _./-]{{1,{width - 1}}}[ _./-]?|[ _./-]", visible(name))
    lines = [""]
    for part in parts:  # a word with the sign after it, or a piece of a long word
        if len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(escape_name(line.rstrip()) for line in lines)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"
