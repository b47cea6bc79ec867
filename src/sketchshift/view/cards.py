"""What notebooks show of plans, sketches, tables and decodings: cards of HTML.

The classes find :func:`card_of` by the entry points ``sketchshift.cards``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from sketchshift._colours import colour_of
from sketchshift._html import (
    Cell,
    Html,
    Row,
    bar,
    card,
    chip,
    curve,
    escape,
    facts,
    fold,
    grid,
    note,
    shaded,
)
from sketchshift._text import counted, meaningful, number, rows_in_words, size_in_words
from sketchshift._times import describe_keys
from sketchshift.decoders import Decoding
from sketchshift.decoders.profile import Profile, Trait, columns_shown
from sketchshift.drift import Comparison, Watch
from sketchshift.features import SketchSpec
from sketchshift.privacy import PrivateSketch
from sketchshift.recipe import Cycle
from sketchshift.sketch import AnySketch, Sketch, SketchTable

__all__ = ["card_of"]

COLUMNS_SHOWN = 12
COLUMNS_NAMED = 20
SLICES_SHOWN = 14
SENTENCES_SHOWN = 3
LEGEND = (
    "Columns hold means: orange is above the mean of all rows, blue below. "
    "A spread of 1 is as wide as all rows."
)


@singledispatch
def card_of(thing: Any) -> str | None:
    """Return the HTML that a notebook shows of a thing; None for one that has no card."""
    return None


@card_of.register
def _of_spec(spec: SketchSpec) -> str:
    parts, recipe = [_facts_of(spec)], spec.rows.recipe
    if recipe is not None:
        how = [
            [
                Cell(part.column, is_text=True),
                Cell(part.unit if isinstance(part, Cycle) else part.kind, is_text=True),
            ]
            for part in recipe.parts
        ]
        parts += [grid(["column", "read as"], how[:COLUMNS_NAMED]), _more(len(how), COLUMNS_NAMED)]
    elif spec.rows.names is not None:
        names = spec.rows.names
        parts += [note(", ".join(names[:COLUMNS_NAMED])), _more(len(names), COLUMNS_NAMED)]
    return card(f"Plan for sketches of {counted(spec.n_features, 'column')}", *parts)


def _facts_of(spec: SketchSpec) -> Html:
    is_standardised = "yes" if spec.rows.is_standardised else "no"
    known = {"metric": spec.rows.metric, "standardised": is_standardised}
    if spec.cells is not None:
        known["cells"] = f"{spec.cells.n_cells:,}"
    known["waves"] = f"{spec.sketch_size:,}"
    if spec.waves is not None:
        known["seed"] = str(spec.waves.seed)
    return facts(known | {"fingerprint": spec.fingerprint[:8]})


def _more(n: int, shown: int) -> Html:
    return note(f"{counted(n - shown, 'more column')}." if n > shown else "")


@card_of.register
def _of_sketch(sketch: Sketch) -> str:
    left_out = {"left out": counted(sketch.n_invalid, "row")} if sketch.n_invalid else {}
    is_plain = sketch.total_weight == sketch.count
    weight = {} if is_plain else {"weight": number(sketch.total_weight)}
    known = facts({**weight, **left_out, "size": size_in_words(sketch.nbytes)})
    return _of_columns("Sketch", sketch, known)


@card_of.register
def _of_private_sketch(sketch: PrivateSketch) -> str:
    return _of_columns("Private sketch", sketch, note(sketch.statement))


def _of_columns(what: str, sketch: AnySketch, known: Html) -> str:
    """What a sketch is of, and mean and spread of its columns if it has them."""
    spec, spread, parts = sketch.spec, sketch.spread, [known]
    title = f"{what} of {rows_in_words(sketch)}, {counted(spec.n_features, 'column')}"
    if spread is not None:
        names, stds = spec.rows.labels, np.sqrt(np.maximum(spread[1], 0.0))
        rows: list[Row] = [
            [
                Cell(names[j], is_text=True),
                meaningful(float(spread[0][j]), float(stds[j]), sketch.count),
                meaningful(float(stds[j]), float(stds[j])),
            ]
            for j in range(min(spec.n_features, COLUMNS_SHOWN))
        ]
        parts.append(grid(["column", "mean", "standard deviation"], rows))
        parts.append(_more(spec.n_features, COLUMNS_SHOWN))
    return card(title, *parts, fold("Plan", _facts_of(spec)))


@card_of.register
def _of_table(table: SketchTable) -> str:
    counts, names, n = table.counts, _keys_of(table), len(table)
    title = f"{counted(n, 'slice')} by {', '.join(table.by)}: {counted(int(counts.sum()), 'row')}"
    if not n:
        return card(title)
    largest, first = max(int(counts.max()), 1), SLICES_SHOWN - 3
    shown = range(n) if n <= SLICES_SHOWN else [*range(first), *range(n - 3, n)]
    rows: list[Row] = [
        [Cell(names[i], is_text=True), bar(counts[i] / largest, f"{counts[i]:,}")] for i in shown
    ]
    if n > len(shown):
        rows.insert(first, [Cell(f"{n - len(shown):,} more", is_text=True), ""])
    titles = [f"{name}: {counted(int(c), 'row')}" for name, c in zip(names, counts, strict=True)]
    parts = [
        note("Rows of each slice, in order:"),
        curve([float(c) for c in counts], titles),
        grid([", ".join(table.by), "rows"], rows),
    ]
    return card(title, *parts, fold("Plan", _facts_of(table.spec)))


def _keys_of(table: SketchTable) -> list[str]:
    columns = (column.to_pylist() for column in table.keys.columns)
    return [", ".join(map(str, key)) for key in zip(*columns, strict=True)]


@card_of.register
def _of_decoding(decoding: Decoding) -> str:
    k, d = decoding.centroids.shape
    rows = "" if decoding.sketch is None else f" of {rows_in_words(decoding.sketch)}"
    title = f"{counted(k, 'cluster')}{rows}, {counted(d, 'column')}"
    return card(title, note(decoding.sentence), _grid_of(decoding.profile))


@card_of.register
def _of_profile(profile: Profile) -> str:
    return card(f"Profile of {counted(len(profile), 'cluster')}", _grid_of(profile))


def _grid_of(profile: Profile) -> Html:
    """The columns that set clusters apart, shaded by deviation."""
    told, shown = profile.told, columns_shown(profile.told)
    largest = max([c.share for c in profile.clusters], default=1.0)
    rows: list[Row] = [
        [
            Cell(chip(i), is_text=True),
            Cell(c.name, title="; ".join(t.text for t in c.traits), is_text=True),
            "" if c.rows is None else f"{c.rows:,}",
            bar(c.share / largest, f"{100 * c.share:.1f} %", colour_of(i)),
            "" if c.spread is None else f"{c.spread:.2f}",
            *(_shaded(profile.table.places[j], told[i][j]) for j in shown),
        ]
        for i, c in enumerate(profile.clusters)
    ]
    titles = profile.titles
    head = ["", "name", "rows", "share", "spread", *(titles[j] for j in shown)]
    more = len(titles) - len(shown)
    left_out = f"The {len(shown)} columns that differ most; {more} more are not shown. "
    return Html(grid(head, rows) + note(left_out * (more > 0) + LEGEND))


def _shaded(place: Any, trait: Trait) -> Cell:
    """A cell of the table; a time of day is neither above nor below another."""
    deviation = math.nan if isinstance(place.part, Cycle) else trait.deviation
    return shaded(trait.shown, deviation, trait.text)


@card_of.register
def _of_comparison(comparison: Comparison) -> str:
    title = "The data drifted" if comparison.drifted else "No drift beyond chance"
    known = {
        "distance": f"{comparison.distance:.3g}",
        "threshold": f"{comparison.threshold:.3g}",
        "p-value": f"{comparison.p_value:.2g}" if comparison.p_value >= 1e-4 else "below 0.0001",
        "false alarms": f"{100 * comparison.false_alarm:g} %",
        "rows": " and ".join(f"{n:,.0f}" for n in comparison.counts),
    }
    if not comparison.is_decoded or comparison.decoding is None or not comparison.clusters:
        return card(title, facts(known))
    largest = max(share for c in comparison.clusters for share in (c.share_a, c.share_b)) or 1.0
    rows: list[Row] = []
    for i, each in enumerate(comparison.clusters):
        words = (chip(i), comparison.decoding.profile.clusters[i].name, each.verdict)
        mark, name, verdict = (Cell(word, is_text=True) for word in words)
        before, after = (
            bar(share / largest, f"{100 * share:.1f} %", colour_of(i))
            for share in (each.share_a, each.share_b)
        )
        rows.append([mark, name, before, after, f"{100 * each.change:+.1f} %", verdict])
    head = ["", "cluster", "share before", "share after", "change", "verdict"]
    return card(title, facts(known), note(comparison.sentence), grid(head, rows))


@card_of.register
def _of_watch(watch: Watch) -> str:
    title = f"{counted(len(watch), 'slice')} by {watch.by}: {counted(len(watch.alarms), 'alarm')}"
    if not watch.slices:
        return card(title)
    keys = describe_keys(watch.by, [each.key for each in watch.slices])
    alarms = [each.drifted for each in watch.slices]
    drift = [
        max((test.distance / test.threshold for test in each.tests), default=math.nan)
        for each in watch.slices
    ]
    counts = [each.count for each in watch.slices]
    rows = [
        _curve_row("rows", counts, lambda n: counted(n, "row"), keys),
        _curve_row("drift, in thresholds", drift, "{:.2g}".format, keys, alarms=alarms, line=1.0),
    ]
    clusters = () if watch.decoding is None else watch.decoding.profile.clusters
    for i, cluster in enumerate(clusters):
        shares, name = [each.shares[i] for each in watch.slices], escape(cluster.name)
        show, colour = (lambda share: f"{100 * share:.1f} %"), colour_of(i)
        rows.append(_curve_row(Html(f"{chip(i)} {name}"), shares, show, keys, colour=colour))
    span = f"{keys[0]} to {keys[-1]}" + ("; orange dots are alarms" if any(alarms) else "")
    named = zip(keys, watch.slices, strict=True)
    alarmed = [note(f"{key}: {each.sentence}") for key, each in named if each.drifted]
    last = alarmed[-SENTENCES_SHOWN:]
    if len(alarmed) > len(last):
        last.insert(0, note(f"The last {len(last)} of {len(alarmed)} alarms:"))
    head = ["", "over time", "least", "most", "last"]
    return card(title, note(span), grid(head, rows), *last)


def _curve_row(
    name: str, values: Sequence[float], show: Callable[[Any], str], keys: list[str], **looks: Any
) -> Row:
    """One line of the table in a notebook: a curve, and its ends in words."""
    texts = [show(value) for value in values]
    titles = [f"{key}: {text}" for key, text in zip(keys, texts, strict=True)]
    row = [Cell(each, is_text=True) for each in (name, curve(values, titles, **looks))]
    known = [i for i, value in enumerate(values) if math.isfinite(value)]
    if not known:
        return [*row, "", "", ""]
    ends = min(known, key=values.__getitem__), max(known, key=values.__getitem__), known[-1]
    return [*row, *(Cell(texts[i], title=keys[i]) for i in ends)]
