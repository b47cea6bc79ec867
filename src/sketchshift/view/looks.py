"""What pictures share: looks that can be told apart without colour, columns and their units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._colours import MARKS, PALETTE, colour_of, mark_of
from sketchshift._text import visible
from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.problem import moments_of, spread_of
from sketchshift.sketch import AnySketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "INK",
    "SHAPES",
    "best_pair",
    "check_decoding",
    "escape_name",
    "fill_look",
    "in_units",
    "legend_above",
    "legend_of_clusters",
    "line_look",
    "logarithmic",
    "names_in_words",
    "positions_of",
    "separation",
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
    known = decoding if decoding.sketch is not None else replace(decoding, sketch=sketch)
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
            label=escape_name(f"{name}  {100 * share:.2g} %"),
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


# Columns: which of them, under what names, in what units.

SHORT = 6
"""Characters up to which a number is written without a power of ten."""


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
    d, names = sketch.spec.n_features, list(sketch.spec.columns or ())
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


def separation(sketch: AnySketch, decoding: Decoding) -> FloatArray:
    r"""Share of each column's variance that lies between the clusters, shape (d,).

    .. math:: \eta^2_a = \frac{\sum_i w_i (c_{ia} - \mu_a)^2}{\mathrm{Var}(x_a)}

    The larger, the better the column tells the clusters apart; 0 where it is constant.
    """
    mean, variance = spread_of(sketch, decoding)
    between = decoding.weights @ (decoding.centroids - mean) ** 2
    return np.divide(between, variance, out=np.zeros_like(between), where=variance > 0)


def best_pair(sketch: AnySketch, decoding: Decoding) -> tuple[int, int]:
    r"""The two columns over which the clusters lie apart most.

    Those with the largest

    .. math:: \log \det T - \log \det (T - B)

    of the covariances T of all rows and B between clusters, over the two columns: Wilks' ratio. A
    column that repeats another adds nothing. Columns of categories, which have two values, come in
    only where there are no two others. O(d^2).
    """
    mean, total = moments_of(sketch, decoding)
    rests = decoding.centroids - mean
    between = (rests.T * decoding.weights) @ rests
    deviations = np.sqrt(np.diagonal(total))
    unit = np.where(deviations > 0.0, deviations, 1.0)
    total, between = total / np.outer(unit, unit), between / np.outer(unit, unit)
    pairs = list(combinations(_mapped_columns(sketch, deviations), 2))
    scores = []
    for pair in pairs:
        both = np.ix_(pair, pair)
        whole = np.linalg.det(total[both] + FLOOR * np.eye(2))
        left = np.linalg.det(total[both] - between[both] + FLOOR * np.eye(2))
        scores.append(math.log(whole) - math.log(max(left, FLOOR**2)))
    return pairs[int(np.argmax(scores))] if pairs else (0, 1)


FLOOR = 1e-3
"""Variance that counts as none, in units of the column's."""


def _mapped_columns(sketch: AnySketch, deviations: FloatArray) -> list[int]:
    """Columns that a map may have as axes: numbers that are not all equal."""
    recipe = getattr(sketch.spec, "recipe", None)
    varying = np.flatnonzero(deviations > 0.0).tolist()
    if recipe is None:
        return varying
    kinds = [part.kind for part in recipe.parts for _ in part.names]
    numbers = [j for j in varying if kinds[j] in ("number", "log")]
    return numbers if len(numbers) >= 2 else varying


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


def in_units(values: FloatArray) -> list[str]:
    """Numbers as short text, all alike, with the digits that tell them apart.

    Examples
    --------
    >>> in_units(np.array([0.0, 2.5, 5.0]))
    ['0', '2.5', '5.0']
    >>> in_units(np.array([-2e9, 0.0, 2e9]))
    ['-2e9', '0', '2e9']
    """
    if len(np.unique(values)) < 2:
        return [f"{v:.4g}" for v in values]
    step = float(np.diff(np.unique(values)).min())
    sizes = np.abs(values[values != 0])
    powers = {_power(size) for size in (sizes.min(), sizes.max())}
    fixed, *others = (_format(values, step, power) for power in (0, *sorted(powers)))
    shortest = min(others, key=_longest)
    return fixed if _longest(fixed) <= max(SHORT, _longest(shortest)) else shortest


def _format(values: FloatArray, step: float, power: int) -> list[str]:
    digits, exponent = _decimals(step / 10.0**power), f"e{power}" if power else ""
    return [f"{v / 10.0**power:.{digits}f}{exponent}" if v else "0" for v in values]


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts))


def _power(size: float) -> int:
    """The power of ten of its first digit, also where rounding left it just below one."""
    return math.floor(math.log10(size) + 1e-9)


def _decimals(step: float) -> int:
    """Digits after the point that show multiples of a step of at most three digits."""
    first = max(-_power(step), 0)
    enough = (
        n for n in range(first, first + 2) if math.isclose(step, round(step, n), rel_tol=1e-6)
    )
    return next(enough, first + 2)
