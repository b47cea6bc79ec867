"""A look at a table before it is sketched: what its columns are, and which are worth clustering.

A sample of rows from all along the table is looked at. Columns of numbers are taken; what is left
out is named with the reason, and so is every choice that was made on the way: scales, logarithms,
what becomes of missing values. The result is a :class:`Recipe` and a few words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from sketchshift._text import counted
from sketchshift._times import PERIODS, is_day_first, is_time_column, tell_order
from sketchshift._typing import FloatArray
from sketchshift._validation import check_choice, check_integer, parameter_error
from sketchshift.data import Access, Block, Source, open_source
from sketchshift.data.database import ask
from sketchshift.errors import ChooseColumns, DataError, Option
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

__all__ = ["ENCODINGS", "ON_MISSING", "SCALES", "Survey", "SurveyedColumn", "survey"]

SCALES = ("auto", "none", "standard", "robust", "log")
ON_MISSING = ("auto", "raise", "skip", "mean", "column")
ENCODINGS = ("auto", "onehot", "frequency")

ROWS = 50_000  # looked at, at most
PLACES = 200  # where rows are drawn from, in a large file
SMALL_BYTES = 2**23  # of a file that is looked at as a whole
FEWEST_FOR_IDENTIFIERS = 20  # of fewer rows, all may differ by chance
ONE_HOT = 12  # values of a category, at most, that get a column each
LISTED = 16  # columns in a line for people
MOST_LISTED = 200  # values of a category whose frequencies are kept
UNITS_DIFFER = 10.0  # ratio of standard deviations from which on each column has its own scale
MOSTLY_MISSING = 1 / 3  # share of missing values from which on a column is left out
FEW_ROWS_LOST = 0.2  # share of rows with a missing value up to which these are left out
HEAVY_TAIL = 30.0  # largest value over the 75th percentile, from which on a tail is heavy
DECADES, MANY_DECADES = 2.0, 3.0  # that it spans for a logarithm, and for a note

_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|key|index|idx|rownum|row|nr|no|number|serial|code|zip|zipcode|"
    r"postcode|postal|phone|fips|isbn|ean|sku|unnamed: \d+)$",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](ID|Id)$")


Note: TypeAlias = tuple[str | Option, ...]
"""A sentence for people, in parts."""


@dataclass(frozen=True)
class SurveyedColumn:
    """What a look at a column tells.

    Attributes
    ----------
    name : str
        In the table.
    kind : str
        "number", "category", "time", "text", "identifier", "constant", "empty" or "other".
    is_used : bool
        Whether it becomes numbers that are sketched.
    reason : str
        Why it is left out, or how it is used; empty for a number as it is.
    missing : int
        Rows of the sample without a value.
    distinct : int
        Different values in the sample.
    low, high, spread : float
        Least and largest number, and their standard deviation; NaN for others.
    decades : float
        Powers of ten between the tenth percentile of the positive numbers and the largest, if the
        tail is heavy; else 0.
    """

    name: str
    kind: str
    is_used: bool
    reason: str = ""
    missing: int = 0
    distinct: int = 0
    low: float = math.nan
    high: float = math.nan
    spread: float = math.nan
    decades: float = 0.0


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
        if self.left_out:
            lines += [f"Left out: {_list_some(self.left_out)}."]
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
    having another value in every row) are left out, and so are columns of which more than a third
    is missing.

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
        columns that have any. "auto" skips up to a fifth of the rows, and beyond takes the mean.
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
    >>> print(ss.survey(table))
    Columns: x.
    Left out: id (identifier), shop (text, 2 values).
    To use 'shop' as well: categories=['shop']
    >>> ss.survey(table, categories=["shop"]).recipe.names
    ('x', 'shop = a', 'shop = b')
    """
    check_choice("survey", "encode", encode, ENCODINGS)
    check_choice("survey", "scale", scale, SCALES)
    check_choice("survey", "on_missing", on_missing, ON_MISSING)
    check_integer("survey", "seed", seed, 0, 2**64 - 1)
    asked = _Asked(columns, tuple(exclude), categories, encode, tuple(map(_parse_cycle, cycles)))
    named = asked.category_names
    source = open_source(
        ask(data, query),
        columns=columns,
        weights=sample_weight,
        keys=tuple(dict.fromkeys((*named, *(cycle.column for cycle in asked.cycles)))),
        skip_invalid=True,
        beside="others",
    )
    if source.columns is None:
        raise DataError("a survey needs a table with names of columns, and this has none.")
    if source.access is Access.ONCE:
        raise DataError("a survey reads rows that are read again later. Pass files or a table.")
    sample = _draw(source, where, seed)
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
        return tuple(self.categories)


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


def _draw(source: Source, where: str | None, seed: int) -> _Sample:
    """Rows from all along a source, all of them if they are few."""
    import pyarrow as pa

    names = source.columns or ()
    is_small = source.n_bytes is not None and source.n_bytes <= SMALL_BYTES
    is_small |= source.n_rows is not None and source.n_rows <= ROWS
    if where is not None:
        first = next(iter(source), None)
        kept = () if first is None or first.keys is None else first.keys.schema.names
        source = keep_rows(_with_numbers_as_keys(source), where, kept)
    if source.across is None or is_small:
        blocks, is_complete = _thin(source)
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


def _thin(source: Source) -> tuple[list[Block], bool]:
    """All rows, or every second, fourth, ... so that about as many are left as are looked at."""
    held: list[Block] = []
    n_held, stride = 0, 1
    for block in source:
        held.append(_every(block, stride))
        n_held += len(held[-1].values)
        while n_held > ROWS:
            held, stride = [_every(block, 2) for block in held], 2 * stride
            n_held = sum(len(block.values) for block in held)
    return held, stride == 1


def _every(block: Block, stride: int) -> Block:
    if stride == 1:
        return block
    rows = np.arange(0, len(block.values), stride)
    keys = None if block.keys is None else _as_table(block.keys).take(rows)
    return replace(block, values=block.values[::stride], keys=keys)


# What the columns are.


def _look_at_number(name: str, values: FloatArray) -> SurveyedColumn:
    finite = values[np.isfinite(values)]
    missing = len(values) - len(finite)
    if not len(finite):
        return SurveyedColumn(name, "empty", False, "empty", missing)
    distinct = np.unique(finite)
    facts = SurveyedColumn(
        name,
        "number",
        True,
        "",
        missing,
        len(distinct),
        float(distinct[0]),
        float(distinct[-1]),
        float(finite.std()),
        _decades(finite),
    )
    if len(distinct) == 1:
        return replace(facts, kind="constant", is_used=False, reason="constant")
    if _is_identifier(name, finite, len(distinct)):
        return replace(facts, kind="identifier", is_used=False, reason="identifier")
    return facts


def _decades(values: FloatArray) -> float:
    """Powers of ten that a heavy tail spans; 0 for others and for columns of negative numbers."""
    positive = values[values > 0.0]
    if len(positive) < max(10, len(values) // 10) or (values < 0.0).mean() > 0.01:
        return 0.0
    low, high = np.quantile(positive, [0.1, 0.75])
    decades = math.log10(float(positive.max()) / float(low))
    is_heavy = float(positive.max()) >= HEAVY_TAIL * float(high) or decades >= 2 * DECADES
    return decades if is_heavy and decades >= DECADES else 0.0


def _is_identifier(name: str, values: FloatArray, n_distinct: int) -> bool:
    """A whole number that names rows: by its name, or since every row has another one, in order."""
    if not (values == np.floor(values)).all():
        return False
    has_name = bool(_IDENTIFIER.search(name) or _CAMEL_ID.search(name)) or not name.strip()
    if has_name:
        return n_distinct > 2
    is_unique = n_distinct == len(values) and len(values) >= FEWEST_FOR_IDENTIFIERS
    return is_unique and bool((np.diff(values) > 0.0).all())


def _look_at_other(name: str, column: Any) -> SurveyedColumn:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    missing = column.null_count
    if missing == len(column):
        return SurveyedColumn(name, "empty", False, "empty", missing)
    if pa.types.is_temporal(kind):
        return SurveyedColumn(name, "time", False, "a time", missing)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_dictionary(kind) or pa.types.is_string_view(kind)):
        return SurveyedColumn(name, "other", False, f"{kind}", missing)
    if is_text and is_time_column(column):
        return SurveyedColumn(name, "time", False, "a time", missing)
    distinct = len(pc.unique(column.drop_null()))
    facts = SurveyedColumn(name, "category", False, "", missing, distinct)
    if distinct == 1:
        return replace(facts, kind="constant", reason="constant")
    n = len(column) - missing
    is_unique = distinct > 0.9 * n and n >= FEWEST_FOR_IDENTIFIERS
    kind = "identifier" if is_unique else "category"
    words = "text, another in every row" if is_unique else f"text, {counted(distinct, 'value')}"
    return replace(facts, kind=kind, reason=words)


# What to make of them.


def _conclude(
    sample: _Sample, asked: _Asked, scale: str, on_missing: str, apart: Sequence[str]
) -> Survey:
    numbers = {name: sample.numbers[:, j] for j, name in enumerate(sample.names)}
    facts = [_look_at_number(name, values) for name, values in numbers.items()]
    named = (*asked.category_names, *(cycle.column for cycle in asked.cycles))
    others = [name for name in sample.others.column_names if name not in numbers]
    facts += [_look_at_other(name, sample.others.column(name)) for name in others]
    facts = [_as_asked(fact, asked, apart) for fact in facts if fact.name not in named]
    notes: list[Note] = []
    facts, on_invalid, fills, keeps = _deal_with_missing(facts, numbers, asked, on_missing, notes)
    logs = [f.name for f in facts if f.is_used and f.decades and scale == "log"]
    parts: list[Part] = [
        _number_part(f.name, numbers[f.name], fills, is_log=f.name in logs)
        for f in facts
        if f.is_used
    ]
    facts = [replace(f, reason="log") if f.name in logs else f for f in facts]
    for name in _categories_meant(facts, asked):
        column = sample.others.column(name)
        part = _category_part(name, column, asked.encode)
        parts.append(part)
        facts = [f for f in facts if f.name != name]
        words = f"one column for each of {len(part.values)} values"
        words = words if isinstance(part, Category) else "frequency"
        facts.append(SurveyedColumn(name, "category", True, words, distinct=len(part.values)))
    for cycle in asked.cycles:
        column = sample.others.column(cycle.column)
        cycle = replace(cycle, day_first=is_day_first(column))
        cycle.encode(column)  # says what is wrong with it
        parts.append(cycle)
        facts.append(SurveyedColumn(cycle.column, "time", True, cycle.unit))
        notes += [(words,) for words in [tell_order(column)] if words]
    if not parts:
        raise _nothing_left(facts)
    recipe = Recipe(tuple(parts))
    standardize = _choose_scale(facts, recipe, scale, notes)
    notes += _suggest(facts, asked, scale)
    order = {name: j for j, name in enumerate((*sample.names, *others))}
    facts.sort(key=lambda fact: order.get(fact.name, len(order)))
    n, is_complete = sample.n_rows, sample.is_complete
    return Survey(
        tuple(facts), recipe, standardize, on_invalid, n, is_complete, keeps, tuple(notes)
    )


def _as_asked(fact: SurveyedColumn, asked: _Asked, apart: Sequence[str]) -> SurveyedColumn:
    """What was named is taken; what was excluded, and keys of slices, are not."""
    if fact.name in asked.exclude:
        return replace(fact, is_used=False, reason="excluded")
    if fact.name in apart:
        return replace(fact, is_used=False, reason="a key")
    if asked.columns is not None and fact.kind in ("identifier", "constant", "number"):
        is_named = fact.name in asked.columns and not math.isnan(fact.low)
        return replace(
            fact, is_used=is_named, reason="" if is_named else fact.reason or "not named"
        )
    return fact


def _deal_with_missing(
    facts: list[SurveyedColumn],
    numbers: dict[str, FloatArray],
    asked: _Asked,
    on_missing: str,
    notes: list[Note],
) -> tuple[list[SurveyedColumn], str, bool, dict[str, str]]:
    """Columns with some left out, what to do with rows, whether gaps are filled, what is kept."""
    used = [f for f in facts if f.is_used]
    gaps = [f for f in used if f.missing]
    if not gaps:
        return facts, "raise" if on_missing == "raise" else "skip", False, {}
    n = len(next(iter(numbers.values())))
    if on_missing == "auto" and asked.columns is None:
        mostly = {f.name for f in gaps if f.missing > MOSTLY_MISSING * n}
        if len(mostly) < len(used):
            facts = [
                replace(f, is_used=False, reason=f"{_percent(f.missing / n)} missing")
                if f.name in mostly
                else f
                for f in facts
            ]
            gaps = [f for f in gaps if f.name not in mostly]
    lost = _share_of_gaps([numbers[f.name] for f in gaps])
    keeps = {
        "skip": f"leaves out {_percent(lost)} of the rows",
        "mean": "keeps all rows and counts a missing value as the mean of its column",
        "column": f"leaves out {_columns([f.name for f in gaps])}",
    }
    if not gaps:
        return facts, "skip", False, {}
    choice = on_missing
    if choice == "auto":
        choice = "skip" if lost <= FEW_ROWS_LOST else "mean"
    if choice == "column":
        names = {f.name for f in gaps}
        facts = [
            replace(f, is_used=False, reason=f"{_percent(f.missing / n)} missing")
            if f.name in names
            else f
            for f in facts
        ]
    culprits = sorted(gaps, key=lambda f: -f.missing)[:3]
    listed = ", ".join(f"{f.name} ({_percent(f.missing / n)})" for f in culprits)
    other = [way for way in ("skip", "mean", "column") if way != choice]
    said = keeps.get(choice, "refuses rows with missing values")
    ways = [(Option("on_missing", way), f" {keeps[way]}") for way in other]
    notes.append(
        (f"Missing values: {listed}. This {said}; ", *ways[0], "; ", *ways[1], "."),
    )
    return facts, "raise" if choice == "raise" else "skip", choice == "mean", keeps


def _share_of_gaps(columns: Sequence[FloatArray]) -> float:
    if not columns:
        return 0.0
    is_finite = np.isfinite(np.column_stack(columns))
    return float(1.0 - is_finite.all(axis=1).mean())


def _number_part(name: str, values: FloatArray, fills: bool, *, is_log: bool) -> Number:
    finite = values[np.isfinite(values)]
    fill = _rounded(float(finite.mean())) if fills and len(finite) < len(values) else None
    if not is_log:
        return Number(name, fill)
    low = float(np.quantile(finite[finite > 0.0], 0.01))
    return Log(name, fill, unit=10.0 ** math.floor(math.log10(low)))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _categories_meant(facts: Sequence[SurveyedColumn], asked: _Asked) -> list[str]:
    if asked.categories != "all":
        return list(asked.category_names)
    return [
        f.name
        for f in facts
        if f.kind == "category" and f.distinct <= ONE_HOT and f.reason not in ("excluded", "a key")
    ]


def _category_part(name: str, column: Any, encode: str) -> Category | Frequency:
    import pyarrow.compute as pc

    counts = pc.value_counts(texts_of(column))
    pairs = [(item["values"].as_py(), item["counts"].as_py()) for item in counts]
    pairs.sort(key=lambda pair: (-pair[1], pair[0]))
    if encode == "onehot" or (encode == "auto" and len(pairs) <= ONE_HOT):
        values = [value for value, _ in pairs[:MOST_LISTED]]
        return Category(name, tuple(sorted(values, key=lambda v: (v == MISSING, v))))
    pairs = pairs[: 10 * MOST_LISTED]
    shares = tuple(_rounded(count / len(column)) for _, count in pairs)
    return Frequency(name, tuple(value for value, _ in pairs), shares)


def _choose_scale(
    facts: Sequence[SurveyedColumn], recipe: Recipe, scale: str, notes: list[Note]
) -> bool | str:
    if scale in ("none", "robust", "standard", "log"):
        if scale == "log" and not any(isinstance(part, Log) for part in recipe.parts):
            notes.append(("No column spans two powers of ten, so no logarithm was taken.",))
        return "robust" if scale == "robust" else scale != "none"
    if any(type(part) is not Number for part in recipe.parts):
        return True
    spreads = {f.name: f.spread for f in facts if f.is_used and f.spread > 0.0}
    if len(spreads) < 2:
        return False
    wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
    ratio = spreads[wide] / spreads[narrow]
    if ratio < UNITS_DIFFER:
        return False
    notes.append(
        (
            f"Units differ: {wide} varies {ratio:,.0f} times as much as {narrow}. So each column "
            "was divided by its standard deviation; ",
            Option("scale", "none"),
            " takes them as they are.",
        )
    )
    return True


def _suggest(facts: Sequence[SurveyedColumn], asked: _Asked, scale: str) -> list[Note]:
    """What could be decided otherwise."""
    notes: list[Note] = []
    heavy = [f for f in facts if f.is_used and f.decades >= MANY_DECADES and f.reason != "log"]
    if heavy and scale in ("auto", "standard", "none"):
        worst = max(heavy, key=lambda f: f.decades)
        more = f", and {counted(len(heavy) - 1, 'other column')} like it" if len(heavy) > 1 else ""
        fact = f"{worst.name} spans {_decades_in_words(worst.decades)}{more}: try "
        notes.append((fact, Option("scale", "log")))
    unused = [f for f in facts if not f.is_used and f.reason not in ("excluded", "a key")]
    texts = tuple(f.name for f in unused if f.kind == "category" and f.distinct <= ONE_HOT)
    if texts:
        categories = (*asked.category_names, *texts)
        notes.append((f"To use {_columns(texts)} as well: ", Option("categories", categories)))
    times = [f.name for f in unused if f.kind == "time"]
    if times and not asked.cycles:
        cycle = (f"weekday({times[0]})",)
        notes.append((f"To use the weekday of {times[0]!r} as well: ", Option("cycles", cycle)))
    rounds = tuple(f"{f.name.lower()}({f.name})" for f in facts if f.is_used and _comes_round(f))
    if rounds:
        names = _columns([f.name for f in facts if f.is_used and _comes_round(f)])
        verb = "comes" if len(rounds) == 1 else "come"
        notes.append((f"{names} {verb} round, and 23 h is near 0 h: ", Option("cycles", rounds)))
    return notes


def _comes_round(fact: SurveyedColumn) -> bool:
    """Whether a number is an hour, a weekday or a month, by its name and range."""
    period = PERIODS.get(fact.name.lower(), 0)
    return fact.kind == "number" and fact.low >= 0.0 and 2.0 < fact.high <= period


def _decades_in_words(decades: float) -> str:
    words = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}
    n = round(decades)
    return f"{words.get(n, str(n))} powers of ten"


def _columns(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _percent(share: float) -> str:
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def _nothing_left(facts: Sequence[SurveyedColumn]) -> DataError:
    listed = ", ".join(f"{f.name!r} ({f.reason})" for f in facts[:20])
    names = tuple(f.name for f in facts if f.kind in ("identifier", "constant"))
    texts = [f.name for f in facts if f.kind == "category"]
    fact = f"there is no column of numbers to cluster: {listed}. "
    if texts:
        return DataError(fact, "Take categories with ", Option("categories", tuple(texts[:3])), ".")
    return DataError(fact, "Name the columns to take with ", ChooseColumns(names[:3]), ".")
