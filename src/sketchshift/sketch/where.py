"""A condition on keys, as SQL writes it: ``day >= '2026-01-05' AND origin IN ('SFO', 'OAK')``.

The text is parsed by sqlglot and then followed, word by word, with functions of Arrow. What is not
known here is refused, so that a condition can compare columns with values and do nothing else: it
calls no function, reads no file and is never evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sketchshift._text import listed
from sketchshift._times import WEEKDAYS, split_times
from sketchshift._typing import BoolArray, IntArray
from sketchshift.data.dialect import Dialect, parse_numbers
from sketchshift.data.source import decimal_of, is_as_written
from sketchshift.errors import DataError

__all__ = ["ROW", "columns_named", "find_ranges", "find_rows", "may_meet"]

ROW = "__row__"
LONGEST = 10_000  # characters of a condition
OFFSET = r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"  # from UTC, behind a time
ISO_DATE = r"\d{4}-\d\d-\d\d"
TRANSLATED = {"this", "expression", "expressions", "low", "high", "negate"}
"""Parts of a node that are translated; a node with others is refused."""

_Operator = Callable[[Any, Any], Any]
MIRRORED: dict[_Operator, _Operator] = {
    pc.less: pc.greater,
    pc.less_equal: pc.greater_equal,
    pc.greater: pc.less,
    pc.greater_equal: pc.less_equal,
}
"""Comparisons by order, and what they are with their sides exchanged."""

GRAMMAR = (
    "Compare columns with values (=, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL) and join "
    "conditions by AND, OR and NOT"
)


def find_rows(table: Any, where: str) -> IntArray:
    """The rows of an Arrow table for which a condition is true.

    Parameters
    ----------
    table : Arrow table
        Whose columns the condition may name. Columns of a text file that are read as they are
        written are numbers where they are compared with a number. Texts that are dates, however
        they are written, are times where they are compared with '2026-01-05'; other texts beside
        them are texts, and those such as NA are missing.
    where : str
        Text is in single quotes, dates too; a name that is not a plain word in double quotes.
        Values are read as the type of the column they are compared with. As in SQL, a
        comparison with a missing key is not true.

    Returns
    -------
    rows : int array
        Their numbers, ascending; possibly none.
    """
    batch = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    return np.flatnonzero(_Rows(batch, where)().may_be_true)


def find_ranges(bounds: Any, where: str) -> list[int]:
    """Which of n tables may have a row for which a condition is true.

    Parameters
    ----------
    bounds : Arrow table of 3 n rows
        Of each table the smallest and the largest value of each column, and in the third row
        nothing where one is missing; nothing at all where that is not known.
    where : str
        As :func:`find_rows` takes it.

    Returns
    -------
    numbers : list of int
        Of those that may have one.
    """
    return np.flatnonzero(_Ranges(bounds, where)().may_be_true).tolist()


def may_meet(keys: Any, where: str) -> bool:
    """Whether a condition may be true of rows of which some columns are known.

    Parameters
    ----------
    keys : Arrow table of one row
        The columns that are known.
    where : str
        As :func:`find_rows` takes it. Of conditions joined by AND, those are looked at that name no
        other column.
    """
    from sqlglot import expressions as sql

    node, known = _parse(where).unnest(), set(keys.schema.names)
    parts = [part.sql() for part in (node.flatten() if isinstance(node, sql.And) else [node])]
    try:
        return all(len(find_rows(keys, p)) for p in parts if known.issuperset(columns_named(p)))
    except DataError:  # the rows themselves will say it
        return True


def columns_named(where: str) -> tuple[str, ...]:
    """Names of the columns in a condition, each once.

    Parameters
    ----------
    where : str
        As :func:`find_rows` takes it.
    """
    from sqlglot import expressions as sql

    return tuple(dict.fromkeys(node.name for node in _parse(where).find_all(sql.Column)))


def _parse(where: str) -> Any:
    if not isinstance(where, str) or not where.strip():
        raise _refusal(where, "it is empty")
    return _parse_text(where)


@lru_cache(maxsize=16)  # one question parses its condition several times
def _parse_text(where: str) -> Any:
    from sqlglot import expressions as sql
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    if len(where) > LONGEST:
        raise _refusal(where, f"it is longer than {LONGEST:,} characters")
    try:
        return parse_one(where, into=sql.Condition)
    except SqlglotError as cause:
        hint = f"{GRAMMAR}, as in \"day >= '2026-01-05'\""
        raise _refusal(where, "it cannot be read", hint) from cause
    except RecursionError as cause:
        raise _refusal(where, "it is nested too deeply") from cause


def _refusal(where: Any, fact: str, hint: str = GRAMMAR) -> DataError:
    text = where if not isinstance(where, str) or len(where) < 200 else f"{where[:200]} ..."
    return DataError(f"cannot apply the condition {text!r}: {fact}. {hint}.")


@dataclass(frozen=True)
class _Truth:
    """What a condition may be for each of n rows or tables: of a row with a missing key neither."""

    may_be_true: BoolArray
    may_be_false: BoolArray

    @classmethod
    def of(cls, found: Any) -> _Truth:
        """Of an Arrow array of booleans, for rows."""
        is_true, is_known = pc.fill_null(found, False), pc.is_valid(found)
        true, known = (each.to_numpy(zero_copy_only=False) for each in (is_true, is_known))
        return cls(true, known & ~true)

    def __and__(self, other: _Truth) -> _Truth:
        return _Truth(self.may_be_true & other.may_be_true, self.may_be_false | other.may_be_false)

    def __invert__(self) -> _Truth:
        return _Truth(self.may_be_false, self.may_be_true)

    def __or__(self, other: _Truth) -> _Truth:
        return ~(~self & ~other)


class _Condition:
    """A condition on the columns of a table; what is asked of them is left to subclasses."""

    def __init__(self, table: Any, where: str) -> None:
        from sqlglot import expressions as sql

        self._table, self._where, self._sql = _with_plain_types(table, where), where, sql
        self._schema = self._table.schema
        self._operators: dict[type[Any], _Operator] = {
            sql.EQ: pc.equal,
            sql.NEQ: pc.not_equal,
            sql.LT: pc.less,
            sql.LTE: pc.less_equal,
            sql.GT: pc.greater,
            sql.GTE: pc.greater_equal,
        }

    def __call__(self) -> _Truth:
        node = _parse(self._where)
        try:
            return self._condition(node)
        except RecursionError as cause:
            raise self._refusal("it is nested too deeply") from cause
        except pa.ArrowException as cause:
            raise self._refusal(str(cause)) from cause

    def _ask(self, name: str, operator: _Operator, value: Any) -> _Truth:
        """A column beside a value of its type."""
        raise NotImplementedError

    def _ask_missing(self, name: str) -> _Truth:
        """Whether a column has no value."""
        raise NotImplementedError

    def _ask_cells(self, ask: Callable[..., Any], *names: str) -> _Truth:
        """What a function says of the cells of some columns."""
        raise NotImplementedError

    def _condition(self, node: Any) -> _Truth:
        if any(value and name not in TRANSLATED for name, value in node.args.items()):
            raise self._refusal(f"{node.sql()!r} is not a comparison")
        found = self._translate(node)
        return ~found if node.args.get("negate") else found  # some write NOT LIKE so

    def _translate(self, node: Any) -> _Truth:
        """What a node is, without the NOT that some nodes hold inside."""
        sql = self._sql
        if isinstance(node, sql.Paren):
            return self._condition(node.this)
        if isinstance(node, sql.Not):
            return ~self._condition(node.this)
        if isinstance(node, sql.And | sql.Or):
            join = and_ if isinstance(node, sql.And) else or_
            return reduce(join, (self._condition(part) for part in node.flatten()))
        if type(node) in self._operators:
            return self._comparison(node)
        if isinstance(node, sql.Between):
            low, high = (node.args[end] for end in ("low", "high"))
            above = self._compare(node.this, pc.greater_equal, low)
            return above & self._compare(node.this, pc.less_equal, high)
        if isinstance(node, sql.In) and node.expressions:
            equal = (self._compare(node.this, pc.equal, item) for item in node.expressions)
            return reduce(or_, equal)
        if isinstance(node, sql.Is) and isinstance(node.expression, sql.Null):
            return self._ask_missing(self._column(node.this)[0])
        if isinstance(node, sql.Like):
            return self._like(node)
        if isinstance(node, sql.Column):
            name, kind = self._column(node)
            if pa.types.is_boolean(kind):
                return self._ask(name, pc.equal, pa.scalar(True))
        raise self._refusal(f"{node.sql()!r} is not a comparison")

    def _comparison(self, node: Any) -> _Truth:
        sql, operator = self._sql, self._operators[type(node)]
        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(left, sql.Column) and isinstance(right, sql.Column):
            (a, one), (b, other) = (self._column(side, maybe_text=True) for side in (left, right))
            try:
                return self._ask_cells(operator, a, b)
            except pa.ArrowException as cause:
                fact = f"column {a!r} holds {one} and column {b!r} holds {other}"
                raise self._refusal(fact, "Compare columns of one type") from cause
        if isinstance(right, sql.Column):
            return self._compare(right, MIRRORED.get(operator, operator), left)
        return self._compare(left, operator, right)

    def _compare(self, node: Any, operator: _Operator, value: Any) -> _Truth:
        """A column beside a value, which is read as the column's type.

        A cell of text is compared with a number as a number where text files are read as they are
        written; with a date as a date, if it is one itself, and else as text. So what a condition
        says of a row does not depend on the other rows of a block or a part.
        """
        name, kind = self._column(node)
        if pa.types.is_null(kind):  # no cell has a value, of whatever type it would be
            return self._ask_cells(lambda cells: pc.cast(cells, pa.bool_()), name)
        if not pa.types.is_string(kind):
            return self._ask(name, operator, self._value(value, kind))
        literal, is_number = self._literal(value)
        if operator in MIRRORED and literal in WEEKDAYS:
            hint = f"Name them: {name} IN ('Saturday', 'Sunday')"
            raise self._refusal("days of the week have no order here", hint)
        if is_number and is_as_written(self._schema.field(name)):
            number = self._value(value, pa.float64())
            return self._ask_cells(lambda cells: operator(self._numbers(name, cells), number), name)
        text, moment = self._value(value, kind), self._moment(literal)
        if not moment.is_valid:
            return self._ask(name, operator, text)

        def ask(cells: Any) -> Any:
            times, others = self._split_times(name, cells)
            return pc.coalesce(operator(times, moment), operator(others, text))

        return self._ask_cells(ask, name)

    def _moment(self, literal: Any) -> Any:
        """The time that '2026-01-05 13:45' is; null for other texts."""
        if not re.match(ISO_DATE, str(literal)):
            return pa.scalar(None)
        try:
            return split_times(pa.array([literal]))[0][0]
        except DataError as cause:
            fact, hint = f"there is no day {literal!r}", "Write it as in '2026-01-05'"
            raise self._refusal(fact, hint) from cause

    def _numbers(self, name: str, cells: Any) -> Any:
        sign = decimal_of(self._schema.field(name))
        numbers, is_fault = parse_numbers(cells, Dialect(decimal=sign))
        first = pc.index(is_fault, True).as_py()
        if first >= 0:
            fact = f"column {name!r} holds {cells[first].as_py()!r}, which is no number"
            raise self._refusal(fact, "Compare it with text in single quotes")
        return numbers

    def _split_times(self, name: str, cells: Any) -> tuple[Any, Any]:
        try:
            return split_times(cells)
        except DataError as cause:
            msg = f"cannot apply the condition {self._where!r} to column {name!r}: {cause}"
            raise DataError(msg) from cause

    def _like(self, node: Any) -> _Truth:
        name, kind = self._column(node.this)
        if not pa.types.is_string(kind):
            raise self._refusal(f"LIKE is for text, and {node.this.sql()!r} holds {kind}")
        pattern = self._value(node.expression, kind).as_py()
        return self._ask_cells(lambda cells: pc.match_like(cells, pattern), name)

    def _column(self, node: Any, *, maybe_text: bool = False) -> tuple[str, Any]:
        """The name of a column, and its type. A name of no column may be text without quotes."""
        if not isinstance(node, self._sql.Column) or node.table:
            raise self._refusal(f"{node.sql()!r} is not the name of a column")
        name, there = node.name, self._schema.names
        if name not in there:
            close = get_close_matches(name, there, n=1)
            meant = f"Did you mean {close[0]!r}? " if close else ""
            is_text = node.this.quoted or (maybe_text and not close)
            hint = f"{meant}{_in_quotes(name) + '. ' if is_text else ''}It may name {listed(there)}"
            raise self._refusal(f"there is no column {name!r}", hint)
        return name, self._schema.field(name).type

    def _literal(self, node: Any) -> tuple[Any, bool]:
        """The text of a value, or a boolean; and whether it is a number."""
        sql, node = self._sql, node.unnest()
        if isinstance(node, sql.Cast) and isinstance(node.this, sql.Literal):
            node = self._uncast(node)
        if isinstance(node, sql.Boolean):
            return node.this, False
        if isinstance(node, sql.Neg) and isinstance(node.this, sql.Literal):
            return f"-{node.this.this}", True
        if isinstance(node, sql.Literal):
            return node.this, node.is_number
        hint = _in_quotes(node.name) if isinstance(node, sql.Column) else GRAMMAR
        raise self._refusal(f"{node.sql()!r} is not a value", hint)

    def _value(self, node: Any, kind: Any) -> Any:
        """A literal, as the type of the column it is compared with."""
        literal, is_number = self._literal(node)
        if pa.types.is_string(kind) and is_number:
            raise self._refusal(f"the column holds text: write '{literal}' in single quotes")
        try:
            return _scalar(literal, kind)
        except (pa.ArrowException, ArithmeticError, ValueError) as cause:
            fact = f"{literal!r} cannot be read as {kind}, which the column holds"
            raise self._refusal(fact, _example(kind)) from cause

    def _uncast(self, node: Any) -> Any:
        """The literal of DATE '2026-01-05', where a cast would leave it as it is."""
        kind, literal = node.to.this, node.this
        types = self._sql.DataType
        is_changed = (kind == types.Type.DATE and not re.fullmatch(ISO_DATE, literal.this)) or (
            kind in types.INTEGER_TYPES and not re.fullmatch(r"[+-]?\d+", literal.this)
        )
        if is_changed:
            raise self._refusal(f"{node.sql()!r} is another value", "Write that value itself")
        return literal

    def _refusal(self, fact: str, hint: str = GRAMMAR) -> DataError:
        return _refusal(self._where, fact, hint)


class _Rows(_Condition):
    """A condition that is asked of each row."""

    def _ask(self, name: str, operator: _Operator, value: Any) -> _Truth:
        return self._ask_cells(lambda cells: operator(cells, value), name)

    def _ask_missing(self, name: str) -> _Truth:
        return self._ask_cells(pc.is_null, name)

    def _ask_cells(self, ask: Callable[..., Any], *names: str) -> _Truth:
        cells = [self._table.column(name).combine_chunks() for name in names]
        if len(cells) > 1:
            return _Truth.of(ask(*cells))
        encoded = cells[0].dictionary_encode("encode")  # each value is asked once
        return _Truth.of(ask(encoded.dictionary).take(encoded.indices))


class _Ranges(_Condition):
    """A condition that is asked of tables, of which the ends of each column are known.

    See :func:`find_ranges`.
    """

    def _ask(self, name: str, operator: _Operator, value: Any) -> _Truth:
        low, high, _ = self._ends(name)
        if operator is pc.not_equal:
            return ~self._ask(name, pc.equal, value)
        if operator is pc.equal:
            at_least = self._ask(name, pc.greater_equal, value)
            return at_least & self._ask(name, pc.less_equal, value)
        if operator in (pc.greater, pc.greater_equal):
            low, high = high, low
        return _Truth(_maybe(operator(low, value)), _maybe(pc.invert(operator(high, value))))

    def _ask_missing(self, name: str) -> _Truth:
        may_be = _maybe(self._ends(name)[2].is_null())
        return _Truth(may_be, np.ones_like(may_be))

    def _ask_cells(self, ask: Callable[..., Any], *names: str) -> _Truth:
        can_be = np.ones(len(self._table) // 3, bool)
        return _Truth(can_be, can_be)

    def _ends(self, name: str) -> list[Any]:
        column = self._table.column(name).combine_chunks()
        return [column.take(pa.array(np.arange(i, len(column), 3))) for i in range(3)]


def _with_plain_types(table: Any, where: str) -> Any:
    """The same table, with one type for all ways to hold a text in the columns of a condition."""
    named = columns_named(where)
    for i, field in enumerate(table.schema):
        kind = _plain_type(field.type) if field.name in named else field.type
        if kind != field.type:
            table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    return table


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.float32() if pa.types.is_float16(kind) else kind


def _maybe(found: Any) -> BoolArray:
    """Where it is not known to be false."""
    can_be: BoolArray = pc.fill_null(found, True).to_numpy(zero_copy_only=False)
    return can_be


def _in_quotes(text: str) -> str:
    return f"Put text in single quotes: '{text}'"


def _example(kind: Any) -> str:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "Write it as in '2026-01-05' or, if clocks show it twice, '2026-10-25 02:00+01:00'"
    is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    return "Write it as in '2026-01-05'" if is_time else GRAMMAR


def _exact(literal: str) -> Decimal:
    """A number with all of its digits, which are not rounded to those of a column."""
    number = Decimal(literal.strip()) if literal.strip() else Decimal("NaN")
    if not number.is_finite():
        msg = f"{literal!r} is no number"
        raise ValueError(msg)
    return number.quantize(1) if number == number.to_integral() else number


def _scalar(literal: Any, kind: Any) -> Any:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        if re.search(OFFSET, str(literal)):
            return pa.scalar(literal).cast(kind)
        plain = pa.scalar(literal).cast(pa.timestamp(kind.unit))
        return pc.assume_timezone(plain, kind.tz, nonexistent="latest")
    if pa.types.is_time(kind):
        return pa.scalar(time.fromisoformat(literal)).cast(kind)
    if isinstance(literal, str) and (pa.types.is_decimal(kind) or pa.types.is_integer(kind)):
        if pa.types.is_integer(kind):
            with suppress(pa.ArrowInvalid):
                return pa.scalar(literal).cast(kind)
        return pa.scalar(_exact(literal))  # month > 2.5, or a number that the column cannot hold
    return pa.scalar(literal).cast(kind)
