"""A look at a table before it is sketched: what its columns are, and which are worth clustering.

A sample of rows from all along the table is looked at. Columns of numbers are taken; what is left
out is named with the reason, and so is every choice that was made on the way: scales, logarithms,
what becomes of missing values. The result is a :class:`Recipe` and a few words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from sketchshift._text import counted
from sketchshift._times import (
    PERIODS,
    is_day_first,
    tell_order,
)
from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.data import Access, Block, Source, open_source
from sketchshift.data.open import ask
from sketchshift.errors import ChooseColumns, DataError, Option
from sketchshift.profiling.columns import (
    DECADES,
    FEWEST_FOR_IDENTIFIERS,
    MANY_DECADES,
    SurveyedColumn,
    look_at_number,
    look_at_other,
    percent,
)
from sketchshift.recipe import (
    MISSING,
    Category,
    Cycle,
    Frequency,
    Log,
    Number,
    Part,
    Recipe,
    texts_of,
)
from sketchshift.sketch.reading import keep_rows

__all__ = ["ENCODINGS", "ON_MISSING", "SCALES", "Survey", "survey"]

SCALES = ("auto", "none", "standard", "robust", "log")
ON_MISSING = ("auto", "raise", "skip", "mean", "column")
ENCODINGS = ("auto", "onehot", "frequency")

ROWS = 50_000  # looked at, at most
PLACES = 200  # where rows are drawn from, in a large file
SMALL_BYTES = 2**23  # of a file that is looked at as a whole
ONE_HOT = 12  # values of a category, at most, that get a column each
LISTED, NAMED = 16, 6  # columns in a line for people, and in a sentence
MOST_LISTED = 200  # values of a category whose frequencies are kept
UNITS_TOLD = 1.5  # ratio of standard deviations from which on it is told that units were kept
UNITS_DIFFER = 10.0  # ratio of standard deviations from which on each column has its own scale
MOST_ROWS_LOST = 1 / 3  # share of rows with a gap up to which these are left out, and not columns
FILLABLE = 0.1  # share of a column up to which its gaps cannot make up a cluster
FEW_FILLED = 0.05  # share of a column up to which filled gaps are not worth a word
FEW_ROWS_LOST = 0.01  # share of rows with a gap that may be left where columns with gaps go
MOST_SKIPPED = 0.9  # share of rows beyond which leaving them out is not proposed
COPY = 0.99  # correlation from which on two columns say the same
ROWS_COMPARED = 5000
NOT_NAMED = "not named"  # a reason that decides on proposals

"""Names of things that are numbered; how many there are is a name in the plural."""


Note: TypeAlias = tuple[str | Option, ...]
"""A sentence for people, in parts."""


@dataclass(frozen=True)
class Survey:
    """What a table holds, and what to make of it.

    Attributes
    ----------
    columns : tuple of SurveyedColumn
        All of them: those of numbers first, each in the order of the table.
    recipe : Recipe
        How they become numbers.
    standardize : bool or "robust"
        Whether each gets a scale of its own, for :func:`sketchshift.plan`.
    on_invalid : {"raise", "skip"}
        What to do with rows that still have missing values.
    n_rows : int
        Rows that were looked at.
    is_complete : bool
        Whether these are all rows.
    keeps : dict
        What each way to deal with missing values would keep: shares of the rows and numbers of
        columns, as sentences. Empty where nothing is missing.
    notes : tuple of Note
        What was decided, and what could be decided otherwise, a sentence each.
    """

    columns: tuple[SurveyedColumn, ...]
    recipe: Recipe
    standardize: bool | str
    on_invalid: str
    n_rows: int
    is_complete: bool
    keeps: dict[str, str]
    notes: tuple[Note, ...]

    @property
    def choice(self) -> tuple[str, ...] | Recipe:
        """What goes to ``columns=``: names where numbers are taken as they are, else the recipe."""
        return self.recipe.columns if self.recipe.is_plain else self.recipe

    @property
    def used(self) -> list[SurveyedColumn]:
        """The columns that are sketched."""
        return [column for column in self.columns if column.is_used]

    @property
    def left_out(self) -> list[SurveyedColumn]:
        """The others."""
        return [column for column in self.columns if not column.is_used]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, words: Callable[[Option], str] = str) -> list[str]:
        """A few lines for people; ``words`` is how a surface spells an option."""
        lines = [f"Columns: {_list_some(self.used)}."]
        told = [column for column in self.left_out if column.reason != NOT_NAMED]
        none = "all others" if len(told) < len(self.left_out) else "nothing"
        lines += [f"Left out: {_list_some(told) or none}."]
        return lines + [_spell(note, words) for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "columns": [
                {"name": c.name, "kind": c.kind, "used": c.is_used, "reason": c.reason}
                | {"missing": c.missing, "distinct": c.distinct}
                for c in self.columns
            ],
            "rows_looked_at": self.n_rows,
            "is_complete": self.is_complete,
            "standardize": self.standardize,
            "on_invalid": self.on_invalid,
            "recipe": self.recipe.to_list(),
            "notes": [_spell(note, Option.in_shell) for note in self.notes],
            "keeps": self.keeps,
        }


def _list_some(columns: Sequence[SurveyedColumn]) -> str:
    shown = [f"{c.name}{f' ({c.reason})' if c.reason else ''}" for c in columns[:LISTED]]
    more = len(columns) - LISTED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _spell(note: Note, words: Callable[[Option], str]) -> str:
    return "".join(words(part) if isinstance(part, Option) else part for part in note)


def survey(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    categories: Sequence[str] | str = (),
    encode: str = "auto",
    cycles: Sequence[str] = (),
    scale: str = "auto",
    on_missing: str = "auto",
    query: str | None = None,
    where: str | None = None,
    sample_weight: str | None = None,
    keys: Sequence[str] = (),
    seed: int = 0,
) -> Survey:
    """Look at a table, and say which of its columns to cluster, and how.

    Numbers are taken. Text, dates, constants and identifiers (recognised by their names, and by
    having another value in every row) are left out. So are columns with most gaps, until at most a
    third of the rows has a gap.

    Parameters
    ----------
    data : frame, Arrow data or path(s)
        A table with names of columns that can be read twice.
    columns : sequence of str or None
        Columns of numbers to take, whatever they look like; None chooses them.
    exclude : sequence of str
        Columns to leave out.
    categories : sequence of str or "all"
        Columns that are taken as categories; "all": every column of text with at most 12 values.
    encode : {"auto", "onehot", "frequency"}
        A column of zeros and ones for each category, or the share of the rows that have it. "auto"
        takes the former up to 12 values, the latter beyond.
    cycles : sequence of str
        Times that come round: "hour(pickup)", "weekday(pickup)" or "month(date)".
    scale : {"auto", "none", "standard", "robust", "log"}
        "none" leaves units as they are, "standard" divides by standard deviations, "robust" by the
        distance of the quartiles, "log" takes logarithms of columns that span two powers of ten or
        more, and divides by standard deviations. "auto" is "standard" if standard deviations differ
        by a factor of 10 or more, or if there are categories or cycles, and else "none".
    on_missing : {"auto", "raise", "skip", "mean", "column"}
        Refuse rows with missing values, leave such rows out, count them as the mean, or leave out
        columns with most of them until at most 1 % of the rows has any. "auto" skips such rows.
        Where many columns lack a few values each, up to 10 %, and more than a third of the rows
        would go, it takes the mean.
    query : str or None
        Of a database: a SELECT, or the name of a table. None takes the only table.
    where : str or None
        A condition on the columns, as SQL writes it: only such rows are looked at.
    sample_weight : str or None
        A column of weights: it is not clustered.
    keys : sequence of str
        Columns that say which slice a row belongs to: they are not clustered.
    seed : int, default=0
        Of the rows that are looked at, 50,000 at most.

    Returns
    -------
    survey : Survey
        ``survey.choice`` goes to ``columns=`` of :func:`sketchshift.plan` or
        :func:`sketchshift.sketch`, ``survey.standardize`` and ``survey.on_invalid`` beside it.

    Examples
    --------
    >>> import pyarrow as pa, sketchshift as ss
    >>> table = pa.table({"id": range(40), "x": [0.5, 9.0] * 20, "shop": ["a", "b"] * 20})
    >>> print(ss.profiling.survey(table))
    Columns: x.
    Left out: id (identifier), shop (text, 2 values).
    To use 'shop' as well: categories=['shop']
    >>> ss.profiling.survey(table, categories=["shop"]).recipe.names
    ('x', 'shop = a', 'shop = b')
    """
    check_choice("survey", "encode", encode, ENCODINGS)
    check_choice("survey", "scale", scale, SCALES)
    check_choice("survey", "on_missing", on_missing, ON_MISSING)
    check_integer("survey", "seed", seed, 0, 2**64 - 1)
    parsed = tuple(map(_parse_cycle, dict.fromkeys(cycles)))
    asked = _Asked(columns, tuple(exclude), categories, encode, parsed)
    beside = (*asked.category_names, *(cycle.column for cycle in asked.cycles), *asked.exclude)

    def open_with(*keys: str) -> Source:
        return open_source(
            ask(data, query),
            columns=columns,
            weights=sample_weight,
            keys=tuple(dict.fromkeys((*beside, *keys))),
            skip_invalid=True,
            beside="others",
        )

    source = open_with()
    if source.columns is None:
        raise DataError("a survey needs a table with names of columns, and this has none.")
    if source.access is Access.ONCE:
        raise DataError("a survey reads rows that are read again later. Pass files or a table.")
    choose = None if where is None else partial(_keep_rows, where=where, open_with=open_with)
    sample = _draw(source, choose, seed)
    return _conclude(sample, asked, scale, on_missing, apart=keys)


@dataclass(frozen=True)
class _Asked:
    """What the caller said about columns."""

    columns: Sequence[str] | None
    exclude: tuple[str, ...]
    categories: Sequence[str] | str
    encode: str
    cycles: tuple[Cycle, ...]

    @property
    def category_names(self) -> tuple[str, ...]:
        """Columns named as categories."""
        if isinstance(self.categories, str):
            if self.categories != "all":
                must = 'a list of column names, or "all"'
                raise parameter_error("survey", "categories", must, self.categories)
            return ()
        return tuple(dict.fromkeys(self.categories))


def _parse_cycle(text: str) -> Cycle:
    found = re.fullmatch(r"\s*(\w+)\((.+)\)\s*", text) if isinstance(text, str) else None
    if found is None or found[1] not in PERIODS:
        units = ", ".join(f"{unit}(...)" for unit in PERIODS)
        msg = f"cycles must be written as {units}, with the name of a column. Got {text!r}."
        raise DataError(msg)
    return Cycle(found[2].strip(), found[1])


# The rows that are looked at.


@dataclass(frozen=True)
class _Sample:
    names: tuple[str, ...]
    numbers: FloatArray
    others: Any
    is_complete: bool

    @property
    def n_rows(self) -> int:
        return len(self.numbers)


def _keep_rows(source: Source, where: str, open_with: Callable[..., Source]) -> Source:
    """The rows for which a condition is true; the names of folders stand in it, too."""
    from sketchshift.sketch.where import columns_named

    first = next(iter(source), None)
    kept = () if first is None or first.keys is None else first.keys.schema.names
    there = {*(source.columns or ()), *kept}
    beyond = [name for name in columns_named(where) if name not in there]
    opened = open_with(*beyond) if beyond else source
    return keep_rows(_with_numbers_as_keys(opened), where, kept)


def _draw(source: Source, choose: Callable[[Source], Source] | None, seed: int) -> _Sample:
    """Rows from all along a source, all of them if they are few."""
    import pyarrow as pa

    names = source.columns or ()
    is_small = source.n_bytes is not None and source.n_bytes <= SMALL_BYTES
    is_small |= source.n_rows is not None and source.n_rows <= ROWS
    source = source if choose is None else choose(source)
    if source.across is None or is_small:
        blocks, is_complete = _thin(source, seed)
    else:
        blocks, is_complete = list(source.across(ROWS, PLACES, seed)), False
    if not blocks:
        raise DataError("there are no rows to look at. Check the path or the condition.")
    numbers = np.concatenate([np.asarray(block.values, dtype=np.float64) for block in blocks])
    tables = [_as_table(block.keys) for block in blocks if block.keys is not None]
    others = _join(tables) if tables else pa.table({})
    return _Sample(names, numbers, others, is_complete)


def _join(tables: Sequence[Any]) -> Any:
    """One table; of columns that hold unlike types in unlike files, text."""
    import pyarrow as pa

    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:
        texts = pa.schema([(name, pa.string()) for name in tables[0].column_names])
        return pa.concat_tables([table.cast(texts) for table in tables])


def _as_table(keys: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([keys]) if isinstance(keys, pa.RecordBatch) else keys


def _with_numbers_as_keys(source: Source) -> Source:
    """The same source, whose keys have the columns of numbers too, for a condition."""
    import pyarrow as pa

    def widen(blocks: Iterable[Block]) -> Iterator[Block]:
        for block in blocks:
            numbers = {
                name: pa.array(np.ascontiguousarray(values), from_pandas=True)
                for name, values in zip(source.columns or (), block.values.T, strict=True)
            }
            keys = pa.table(numbers)
            for name in () if block.keys is None else block.keys.schema.names:
                if name not in numbers:
                    keys = keys.append_column(
                        block.keys.schema.field(name), block.keys.column(name)
                    )
            yield replace(block, keys=keys)

    across = source.across
    return replace(
        source,
        read=lambda: widen(source.read()),
        across=None if across is None else lambda *asked: widen(across(*asked)),
    )


def _thin(source: Source, seed: int) -> tuple[list[Block], bool]:
    """All rows, or one of two, of four, ... so that about as many are left as are looked at."""
    held: list[Block] = []
    n_held, stride, rng = 0, 1, np.random.default_rng(seed)
    for block in source:
        held.append(_some(block, stride, rng))
        n_held += len(held[-1].values)
        while n_held > ROWS:
            thinned = (_some(block, 2, rng) for block in held)
            held, stride = [block for block in thinned if len(block.values)], 2 * stride
            n_held = sum(len(block.values) for block in held)
    return held, stride == 1


def _some(block: Block, stride: int, rng: np.random.Generator) -> Block:
    if stride == 1:
        return block
    rows = _one_of_each(len(block.values), stride, rng)
    keys = None if block.keys is None else _as_table(block.keys).take(rows)
    return replace(block, values=block.values[rows], keys=keys)


def _one_of_each(n: int, stride: int, rng: np.random.Generator) -> IntArray:
    """One row at random of each ``stride`` that follow each other: any is as likely as any other.

    A fixed one of them would show a column that alternates as a constant.
    """
    rows = np.arange(0, n, stride)
    rows += rng.integers(stride, size=len(rows))
    return rows[rows < n]


# What the columns are.


# What to make of them.


def _conclude(
    sample: _Sample, asked: _Asked, scale: str, on_missing: str, apart: Sequence[str]
) -> Survey:
    numbers = {name: sample.numbers[:, j] for j, name in enumerate(sample.names)}
    facts = [look_at_number(name, values) for name, values in numbers.items()]
    named = (*asked.category_names, *(cycle.column for cycle in asked.cycles))
    others = [name for name in sample.others.column_names if name not in numbers]
    facts += [
        look_at_other(name, sample.others.column(name), is_complete=sample.is_complete)
        for name in others
    ]
    facts = _without_days_of_months(facts)
    facts = [_as_asked(fact, asked, apart) for fact in facts if fact.name not in named]
    notes: list[Note] = []
    cycles = [_look_at_cycle(cycle, sample.others, notes) for cycle in asked.cycles]
    facts += [fact for _, _, fact in cycles]
    gaps = numbers | {fact.name: values[:, 0] for _, values, fact in cycles}
    facts, on_invalid, fills, keeps = _deal_with_missing(facts, gaps, asked, on_missing, notes)
    fills_all = fills and not sample.is_complete  # rows that were not looked at may have gaps
    is_numeric = {f.name: f.is_used for f in facts if f.kind != "cycle"}
    logs = [f.name for f in facts if f.is_used and f.decades >= DECADES and scale == "log"]
    parts: list[Part] = [
        _number_part(name, numbers[name], fills, fills_all, is_log=name in logs)
        for name, is_used in is_numeric.items()
        if is_used
    ]
    facts = [
        replace(f, reason=f"log, {f.reason}".removesuffix(", ")) if f.name in logs else f
        for f in facts
    ]
    for name in _categories_meant(facts, asked):
        column = sample.others.column(name)
        part = _category_part(name, column, asked.encode)
        parts.append(part)
        facts = [f for f in facts if f.name != name]
        words = f"one column for each of {len(part.values)} values"
        words = words if isinstance(part, Category) else "frequency"
        facts.append(SurveyedColumn(name, "category", True, words, distinct=len(part.values)))
    left = {f.name for f in facts if f.kind == "cycle" and not f.is_used}
    for cycle, values, fact in cycles:
        if fact.name not in left:
            is_filled = fills and (fills_all or fact.missing > 0)
            parts.append(replace(cycle, fill=_mean_place(values)) if is_filled else cycle)
    facts = [replace(f, kind="time") if f.kind == "cycle" else f for f in facts]
    if not parts:
        raise _nothing_left(facts)
    recipe = Recipe(tuple(parts))
    standardize = _choose_scale(facts, recipe, scale, notes)
    notes += _tell_copies(parts, numbers, asked)
    notes += _suggest(facts, asked, scale)
    order = {name: j for j, name in enumerate((*sample.names, *others))}
    facts.sort(key=lambda fact: order.get(fact.name, len(order)))
    n, is_complete = sample.n_rows, sample.is_complete
    return Survey(
        tuple(facts), recipe, standardize, on_invalid, n, is_complete, keeps, tuple(notes)
    )


def _look_at_cycle(
    cycle: Cycle, others: Any, notes: list[Note]
) -> tuple[Cycle, FloatArray, SurveyedColumn]:
    """A cycle that reads every part of the data alike, its places (n, 2), and what it is."""
    column = others.column(cycle.column)
    zone = getattr(column.type, "tz", None)  # texts of the same times have offsets alone
    cycle = replace(cycle, day_first=is_day_first(column), zone=zone)
    values = cycle.encode(column)  # says what is wrong with it
    notes += [(words,) for words in [tell_order(column)] if words]
    if cycle.unit == "weekday" and _is_number(column):
        notes.append((f"Numbers of {cycle.column!r} are taken as 0 for Monday to 6 for Sunday.",))
    missing = int(np.isnan(values[:, 0]).sum())
    if missing == len(values):
        facts = f"no row has {cycle.unit} in {cycle.column!r}"
        hours = f"Numbers must be 0 to {PERIODS[cycle.unit]}, and times as in '2026-01-05 13:45'."
        raise DataError(f"{facts}: all are missing or of another kind. {hours}")
    return cycle, values, SurveyedColumn(cycle.column, "cycle", True, cycle.unit, missing)


def _is_number(column: Any) -> bool:
    """Whether the first values of a column, of a text file too, are small numbers."""
    return bool(re.fullmatch(r"\d(\.0*)?", str(texts_of(column.drop_null()[:1])[0])))


def _mean_place(values: FloatArray) -> tuple[float, float]:
    cosine, sine = np.nanmean(values, axis=0)
    return _rounded(float(cosine)), _rounded(float(sine))


def _without_days_of_months(facts: list[SurveyedColumn]) -> list[SurveyedColumn]:
    """A column "day" of numbers up to 31, beside a month, says little of a row: it is left out."""
    names = [fact.name.lower() for fact in facts]
    is_day = [
        "month" in names and name == "day" and fact.low >= 1.0 and fact.high <= 31.0
        for name, fact in zip(names, facts, strict=True)
    ]
    return [
        replace(fact, is_used=False, reason="day of the month") if found else fact
        for fact, found in zip(facts, is_day, strict=True)
    ]


def _as_asked(fact: SurveyedColumn, asked: _Asked, apart: Sequence[str]) -> SurveyedColumn:
    """What was named is taken; what was excluded, and keys of slices, are not."""
    if fact.name in asked.exclude:
        return replace(fact, is_used=False, reason="excluded")
    if fact.name in apart:
        return replace(fact, is_used=False, reason="a key")
    if asked.columns is not None and fact.name not in asked.columns:
        return replace(fact, is_used=False, reason=NOT_NAMED)
    if asked.columns is not None and not math.isnan(fact.low):  # numbers, whatever they look like
        return replace(fact, kind="number", is_used=True, reason="")
    return fact


@dataclass(frozen=True)
class _Gaps:
    """Which rows of the sample lack a value, by column."""

    masks: dict[str, BoolArray]

    def of(self, name: str) -> float:
        """Share of the rows that lack this column."""
        return float(self.masks[name].mean())

    def share(self, names: Iterable[str]) -> float:
        """Share of the rows that lack one of these columns."""
        masks = [self.masks[name] for name in names]
        return float(np.any(masks, axis=0).mean()) if masks else 0.0

    def thin_out(self, names: Sequence[str], most: float, above: float) -> list[str]:
        """What is left of columns if those with most gaps go, one after another.

        They go until at most a share ``most`` of the rows has a gap, or no column lacks more than
        ``above``. O(n d).
        """
        kept = sorted(names, key=self.of, reverse=True)
        n_gaps = np.sum([self.masks[name] for name in kept], axis=0)
        while kept and (n_gaps > 0).mean() > most and self.of(kept[0]) > above:
            n_gaps = n_gaps - self.masks[kept.pop(0)]
        return [name for name in names if name in kept]


def _deal_with_missing(
    facts: list[SurveyedColumn],
    numbers: dict[str, FloatArray],
    asked: _Asked,
    on_missing: str,
    notes: list[Note],
) -> tuple[list[SurveyedColumn], str, bool, dict[str, str]]:
    """Columns with some left out, what to do with rows, whether gaps are filled, what is kept.

    Each choice is judged on the columns that are taken if nothing is said, so that what is told of
    it is what it does.
    """
    used = [f.name for f in facts if f.is_used]
    gaps = _Gaps({name: ~np.isfinite(numbers[name]) for name in used})
    found = [f.name for f in facts if f.is_used and f.kind != "cycle"]  # cycles were asked for
    if asked.columns is None and found:
        fullest = min(found, key=gaps.of)
        kept = gaps.thin_out(found, MOST_ROWS_LOST, FILLABLE) or [fullest]
        used = [name for name in used if name in kept or name not in found]
    lost, whole = gaps.share(used), gaps.thin_out(used, FEW_ROWS_LOST, 0.0)
    choice = on_missing
    if choice == "auto":
        is_filled = lost > MOST_ROWS_LOST and max(map(gaps.of, used)) <= FILLABLE
        choice = "mean" if is_filled or lost > 0.5 else "skip"
    keeps = _keeps(gaps, used, whole)
    if lost:
        notes.append(_tell_missing(gaps, used, choice, keeps))
    if choice == "column":
        if used and not whole:
            raise _no_whole_columns(gaps, used)
        used = whole
    facts = [_without_gaps(f, gaps, used, choice) for f in facts]
    return facts, "raise" if choice == "raise" else "skip", choice == "mean", keeps


def _keeps(gaps: _Gaps, used: Sequence[str], whole: Sequence[str]) -> dict[str, str]:
    """What each choice does with gaps; without those that would keep little."""
    lost, rest = gaps.share(used), gaps.share(whole)
    if not lost:
        return {}
    keeps = {
        "skip": f"leaves out {percent(lost)} of the rows",
        "mean": "keeps all rows and counts a missing value as the mean of its column",
        "column": f"leaves out {_columns([name for name in used if name not in whole])}"
        + (f" and {percent(rest)} of the rows" if rest else ""),
    }
    if 2 * len(whole) < len(used) or not whole or len(whole) == len(used):
        del keeps["column"]
    if lost > MOST_SKIPPED:
        del keeps["skip"]
    return keeps


def _tell_missing(gaps: _Gaps, used: Sequence[str], choice: str, keeps: Mapping[str, str]) -> Note:
    names = sorted((name for name in used if gaps.of(name)), key=gaps.of, reverse=True)
    listed = ", ".join(f"{name} ({percent(gaps.of(name))})" for name in names[:3])
    more = f" and {counted(len(names) - 3, 'column')} more" if len(names) > 3 else ""
    said = keeps.get(choice, "refuses rows with missing values")
    if choice == "mean" and gaps.of(names[0]) > FEW_FILLED:
        said += f". A cluster near the mean of {names[0]} may be made of missing values"
    ways = [way for way in ("skip", "mean", "column") if way != choice and way in keeps]
    options = (("; ", Option("on_missing", way), f" {keeps[way]}") for way in ways)
    return (
        f"Missing values: {listed}{more}. This {said}",
        *(p for way in options for p in way),
        ".",
    )


def _without_gaps(
    fact: SurveyedColumn, gaps: _Gaps, used: Sequence[str], choice: str
) -> SurveyedColumn:
    """A column as it is used; one that was left out for its gaps, or is filled, says so."""
    if not fact.is_used or not fact.missing:
        return fact
    missing = f"{percent(gaps.of(fact.name))} missing"
    if fact.name not in used:
        return replace(fact, is_used=False, reason=missing)
    is_told = choice == "mean" and gaps.of(fact.name) > FEW_FILLED
    return replace(fact, reason=f"{missing}, counted as the mean") if is_told else fact


def _no_whole_columns(gaps: _Gaps, used: Sequence[str]) -> DataError:
    least = min(used, key=gaps.of)
    fact = (
        f"every column has missing values, {least!r} the fewest with {percent(gaps.of(least))}. "
        "So no column can be kept with "
    )
    lost = gaps.share(used)
    way, words = ("mean", "count them as the mean") if lost > MOST_SKIPPED else ("skip", "")
    words = words or f"leave out the {percent(lost)} of the rows that have some"
    ending = f"Instead, {words}: "
    return DataError(fact, Option("on_missing", "column"), f". {ending}", Option("on_missing", way))


def _number_part(
    name: str, values: FloatArray, fills: bool, fills_all: bool, *, is_log: bool
) -> Number:
    finite = values[np.isfinite(values)]
    is_filled = fills_all or (fills and len(finite) < len(values))
    fill = _rounded(float(finite.mean())) if is_filled else None
    if not is_log:
        return Number(name, fill)
    low = float(np.quantile(finite[finite > 0.0], 0.01))
    return Log(name, fill, unit=10.0 ** math.floor(math.log10(low)))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _categories_meant(facts: Sequence[SurveyedColumn], asked: _Asked) -> list[str]:
    if asked.categories != "all":
        return list(asked.category_names)
    return [f.name for f in facts if _is_few(f) and f.reason not in ("excluded", "a key")]


def _is_few(fact: SurveyedColumn) -> bool:
    """Whether a column is text of so few values that each gets a column, missing ones aside."""
    return fact.kind == "category" and fact.distinct <= ONE_HOT


def _category_part(name: str, column: Any, encode: str) -> Category | Frequency:
    import pyarrow.compute as pc

    counts = pc.value_counts(texts_of(column))
    pairs = [(item["values"].as_py(), item["counts"].as_py()) for item in counts]
    pairs.sort(key=lambda pair: (-pair[1], pair[0]))
    is_few = sum(value != MISSING for value, _ in pairs) <= ONE_HOT
    if encode == "onehot" or (encode == "auto" and is_few):
        values = [value for value, _ in pairs[:MOST_LISTED]]
        return Category(name, tuple(sorted(values, key=lambda v: (v == MISSING, v))))
    pairs = pairs[: 10 * MOST_LISTED]
    shares = tuple(_rounded(count / len(column)) for _, count in pairs)
    return Frequency(name, tuple(value for value, _ in pairs), shares)


def _choose_scale(
    facts: Sequence[SurveyedColumn], recipe: Recipe, scale: str, notes: list[Note]
) -> bool | str:
    """Whether each column gets a scale of its own, which is told where it matters."""
    if scale == "log":
        notes.append((_logs_in_words(recipe),))
    if scale != "auto":
        if len(recipe.parts) > 1 and scale in DIVISORS:
            notes.append((f"Each column was divided by {DIVISORS[scale]}.",))
        return "robust" if scale == "robust" else scale != "none"
    as_they_are = ("; ", Option("scale", "none"), " takes them as they are.")
    divided = "each column was divided by its standard deviation"
    if any(type(part) is not Number for part in recipe.parts):
        notes.append((f"Numbers stand beside categories or times, so {divided}", *as_they_are))
        return True
    spreads = {f.name: f.spread for f in facts if f.is_used and f.spread > 0.0}
    if len(spreads) < 2:
        return False
    wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
    ratio = spreads[wide] / spreads[narrow]
    if ratio >= UNITS_DIFFER:
        fact = f"Units differ: {wide} varies {ratio:,.0f} times as much as {narrow}. So {divided}"
        notes.append((fact, *as_they_are))
        return True
    if ratio >= UNITS_TOLD:
        fact = f"Columns were taken in their units: {wide} varies {ratio:.1f} times as much as "
        alike = (Option("scale", "standard"), " gives all columns the same weight.")
        notes.append((f"{fact}{narrow}; ", *alike))
    return False


DIVISORS = {
    "standard": "its standard deviation",
    "log": "its standard deviation",
    "robust": "the distance of its quartiles",
}
"""What a scale divides columns by, in words."""


def _logs_in_words(recipe: Recipe) -> str:
    if any(isinstance(part, Log) for part in recipe.parts):
        return "Of columns on a log scale typical values are told: geometric means."
    fact = "No column without negative numbers spans two powers of ten"
    return f"{fact}, so no logarithm was taken."


def _tell_copies(
    parts: Sequence[Part], numbers: dict[str, FloatArray], asked: _Asked
) -> list[Note]:
    """Columns that say what others say, so that this counts more than once; O(n d^2 + d^3)."""
    found = [part for part in parts if part.is_number]
    if len(found) < 2:
        return []
    values = np.hstack([part.encode(numbers[part.column]) for part in found])
    values = values[np.isfinite(values).all(axis=1)]
    stride = max(1, len(values) // ROWS_COMPARED)
    values = values[_one_of_each(len(values), stride, np.random.default_rng(0))]
    if len(values) < FEWEST_FOR_IDENTIFIERS:
        return []
    copies = _find_copies(values, [part.column for part in found])
    told = list(copies.values())
    if not told:
        return []
    more = (
        f", and so on for {counted(len(told) - NAMED, 'column')} more" if len(told) > NAMED else ""
    )
    fact = f"{'; '.join(told[:NAMED])}{more}. To count what they say once: "
    return [(fact, Option("exclude", tuple(dict.fromkeys((*asked.exclude, *copies)))))]


def _find_copies(values: FloatArray, names: Sequence[str]) -> dict[str, str]:
    """Columns that rise or fall as an earlier one does, in words."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.atleast_2d(np.nan_to_num(np.corrcoef(values.T)))
    copies: dict[str, str] = {}
    kept: list[int] = []
    for j, name in enumerate(names):
        like = next((i for i in kept if abs(r[i, j]) >= COPY), None)
        if like is None:
            kept.append(j)
        else:
            copies[name] = f"{name} says the same as {names[like]} (r = {r[like, j]:.3f})"
    return copies


def _suggest(facts: Sequence[SurveyedColumn], asked: _Asked, scale: str) -> list[Note]:
    """What could be decided otherwise."""
    notes: list[Note] = []
    heavy = [f for f in facts if f.is_used and f.is_heavy and f.decades >= _few_decades(f)]
    if heavy and scale in ("auto", "standard", "none"):
        worst = max(heavy, key=lambda f: f.decades)
        more = f", and {counted(len(heavy) - 1, 'other column')} like it" if len(heavy) > 1 else ""
        notes.append((f"{_tail_in_words(worst)}{more}: try ", Option("scale", "log")))
    apart = ("excluded", "a key", NOT_NAMED)
    unused = [f for f in facts if not f.is_used and f.reason not in apart]
    texts = tuple(f.name for f in unused if _is_few(f) and "missing" not in f.reason)
    if texts:
        categories = (*asked.category_names, *texts)
        notes.append((f"To use {_columns(texts)} as well: ", Option("categories", categories)))
    times = [f for f in unused if f.units]
    if times and not asked.cycles:
        name, units = times[0].name, times[0].units
        cycles = tuple(f"{unit}({name})" for unit in units)
        fact = f"To use the {' and the '.join(units)} of {name!r} as well: "
        notes.append((fact, Option("cycles", cycles)))
    rounds = {f.name: unit for f in facts if f.is_used and (unit := _unit_of(f))}
    if rounds:
        verb = "comes" if len(rounds) == 1 else "come"
        near = ", ".join(dict.fromkeys(NEAR[unit] for unit in rounds.values()))
        cycles = tuple(f"{unit}({name})" for name, unit in rounds.items())
        fact = f"{_columns(tuple(rounds))} {verb} round, and {near}: "
        notes.append((fact, Option("cycles", cycles)))
    return notes


NEAR = {
    "hour": "23 h is near 0 h",
    "weekday": "Sunday is near Monday",
    "month": "December is near January",
    "day_of_year": "31 December is near 1 January",
}
"""What is close on a circle, and far apart as a number."""


def _unit_of(fact: SurveyedColumn) -> str:
    """What a number is of a time, by its name and range; "" if it is nothing of the kind."""
    unit = fact.name.lower()
    is_unit = fact.low >= 0.0 and 2.0 < fact.high <= PERIODS.get(unit, 0)
    return unit if fact.kind == "number" and is_unit else ""


def _few_decades(fact: SurveyedColumn) -> float:
    """Powers of ten worth a note: fewer where zeros make up most of a column."""
    return DECADES if fact.zeros >= 0.5 else MANY_DECADES


def _tail_in_words(fact: SurveyedColumn) -> str:
    words = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}
    n = round(fact.decades)
    span = f"spans {words.get(n, str(n))} powers of ten"
    if fact.zeros < 0.5:
        return f"{fact.name} {span}"
    return f"{fact.name} is 0 in {percent(fact.zeros)} of the rows, and {span} in the others"


def _columns(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them."""
    more = len(names) - NAMED
    ending = f" and {counted(more, 'column')} more" if more > 0 else ""
    return ", ".join(repr(name) for name in names[:NAMED]) + ending


def _nothing_left(facts: Sequence[SurveyedColumn]) -> DataError:
    asked = [f for f in facts if f.reason != NOT_NAMED] or facts
    told = ", ".join(f"{f.name!r} ({f.reason})" for f in asked[:20])
    names = tuple(f.name for f in facts if not math.isnan(f.low) and f.reason != "excluded")
    texts = [f.name for f in facts if f.kind == "category"]
    fact = f"there is no column of numbers to cluster: {told}. "
    if texts:
        return DataError(fact, "Take categories with ", Option("categories", tuple(texts[:3])), ".")
    if not names:
        return DataError(fact, "Give a table that has some.")
    return DataError(fact, "Name the columns to take with ", ChooseColumns(names[:3]), ".")
