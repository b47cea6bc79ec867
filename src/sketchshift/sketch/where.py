"""A condition on keys, as SQL writes it: ``day >= '2026-01-05' AND origin IN ('SFO', 'OAK')``.

The text is parsed by sqlglot and then translated, word by word, into an Arrow expression.
What has no translation here is refused, so that a condition can compare columns with values
and do nothing else: it calls no function, reads no file and is never evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sketchshift._text import listed
from sketchshift._times import WEEKDAYS, as_times, find_form
from sketchshift._typing import IntArray
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
        written are numbers where they are compared with a number. Columns of texts that are dates,
        however they are written, are times where they are compared with '2026-01-05'.
    where : str
        Text is in single quotes, dates too; a name that is not a plain word in double quotes.
        Values are read as the type of the column they are compared with. As in SQL, a
        comparison with a missing key is not true.

    Returns
    -------
    rows : int array
        Their numbers, ascending; possibly none.
    """
    translation = _Translation(table, where)
    condition = translation()
    with_numbers = translation.table.append_column(ROW, pa.array(np.arange(len(table))))
    try:
        return np.asarray(with_numbers.filter(condition).column(ROW))
    except pa.ArrowException as cause:
        msg = f"cannot apply the condition {where!r}: {cause}. {GRAMMAR}."
        raise DataError(msg) from cause


def find_ranges(ranges: Sequence[Any], where: str) -> list[int]:
    """Which of some tables may have a row for which a condition is true.

    Parameters
    ----------
    ranges : sequence of Arrow tables of three rows
        Of each table the smallest and the largest value of each column, and in the third row
        nothing where one is missing; nothing at all where that is not known. All have the same
        columns.
    where : str
        As :func:`find_rows` takes it.

    Returns
    -------
    numbers : list of int
        Of those that may have one.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    together = pa.concat_tables(ranges)
    translation, named = _Translation(together, where), columns_named(where)
    condition = translation()
    tables = ds.FileSystemDataset.from_paths(
        [str(i) for i in range(len(ranges))],
        schema=translation.table.schema,  # of texts compared as times, nothing is promised
        format=ds.IpcFileFormat(),  # no file is opened
        filesystem=LocalFileSystem(),
        partitions=[_promise(table.select(named)) for table in ranges],
    )
    try:
        return [int(found.path) for found in tables.get_fragments(filter=condition)]
    except pa.ArrowException:  # the condition is asked of the rows themselves
        return list(range(len(ranges)))


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


def _promise(table: Any) -> Any:
    """What holds for all rows of a table."""
    promise = pc.scalar(True)
    for name in table.column_names:
        low, high, last = table.column(name)
        if low.is_valid:
            field = pc.field(name)
            within = (field >= low) & (field <= high)
            promise = promise & (within if last.is_valid else within | field.is_null())
    return promise


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
    from sqlglot import expressions as sql
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    if not isinstance(where, str) or not where.strip():
        raise _refusal(where, "it is empty")
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


class _Translation:
    """From the words of one condition to an Arrow expression over one table.

    ``table`` gets a column more for each one that is compared as something else than text.
    """

    def __init__(self, table: Any, where: str) -> None:
        from sqlglot import expressions as sql

        self.table = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
        self._schema, self._where, self._sql = table.schema, where, sql
        self._operators: dict[type[Any], Callable[[Any, Any], Any]] = {
            sql.EQ: eq,
            sql.NEQ: ne,
            sql.LT: lt,
            sql.LTE: le,
            sql.GT: gt,
            sql.GTE: ge,
        }

    def __call__(self) -> Any:
        node = _parse(self._where)
        try:
            return self._condition(node)
        except RecursionError as cause:
            raise self._refusal("it is nested too deeply") from cause

    def _condition(self, node: Any) -> Any:
        if any(value and name not in TRANSLATED for name, value in node.args.items()):
            raise self._refusal(f"{node.sql()!r} is not a comparison")
        found = self._translate(node)
        return ~found if node.args.get("negate") else found  # some write NOT LIKE so

    def _translate(self, node: Any) -> Any:
        """The expression for a node, without the NOT that some nodes hold inside."""
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
            ends = [node.args[end] for end in ("low", "high")]
            field, kind = self._compared(node.this, ends, in_order=True)
            low, high = (self._value(end, kind) for end in ends)
            return (field >= low) & (field <= high)
        if isinstance(node, sql.In) and node.expressions:
            field, kind = self._compared(node.this, node.expressions)
            return reduce(or_, (field == self._value(item, kind) for item in node.expressions))
        if isinstance(node, sql.Is) and isinstance(node.expression, sql.Null):
            return self._column(node.this)[0].is_null()
        if isinstance(node, sql.Like):
            return self._like(node)
        if isinstance(node, sql.Column):
            field, kind = self._column(node)
            if pa.types.is_boolean(kind):
                return field
        raise self._refusal(f"{node.sql()!r} is not a comparison")

    def _comparison(self, node: Any) -> Any:
        sql, operator = self._sql, self._operators[type(node)]
        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(left, sql.Column) and isinstance(right, sql.Column):
            pair = (self._column(side, maybe_text=True)[0] for side in (left, right))
            return operator(*pair)
        in_order = operator not in (eq, ne)
        if isinstance(right, sql.Column):
            field, kind = self._compared(right, [left], in_order=in_order)
            return operator(self._value(left, kind), field)
        field, kind = self._compared(left, [right], in_order=in_order)
        return operator(field, self._value(right, kind))

    def _compared(self, node: Any, values: list[Any], *, in_order: bool = False) -> tuple[Any, Any]:
        """A column and its type, as what it is compared with: text may show numbers or times."""
        field, kind = self._column(node)
        if not pa.types.is_string(kind):
            return field, kind
        sql, literals = self._sql, [value.unnest() for value in values]
        literals = [value.this if isinstance(value, sql.Neg) else value for value in literals]
        texts = [value.this for value in literals if isinstance(value, sql.Literal)]
        if in_order and set(texts) & set(WEEKDAYS):
            hint = f"Name them: {node.name} IN ('Saturday', 'Sunday')"
            raise self._refusal("days of the week have no order here", hint)
        are_numbers = [value.is_number for value in literals if isinstance(value, sql.Literal)]
        if are_numbers and all(are_numbers) and is_as_written(self._schema.field(node.name)):
            return self._converted(node.name, self._numbers)
        if any(re.match(ISO_DATE, text) for text in texts) and find_form(self._cells(node.name)):
            return self._converted(node.name, self._times)
        return field, kind

    def _cells(self, name: str) -> Any:
        return self.table.column(name).combine_chunks()

    def _numbers(self, name: str) -> Any:
        cells, sign = self._cells(name), decimal_of(self._schema.field(name))
        numbers, is_fault = parse_numbers(cells, Dialect(decimal=sign))
        first = pc.index(is_fault, True).as_py()
        if first >= 0:
            fact = f"column {name!r} holds {cells[first].as_py()!r}, which is no number"
            raise self._refusal(fact, "Compare it with text in single quotes")
        return numbers

    def _times(self, name: str) -> Any:
        return as_times(self._cells(name), is_part=True)

    def _converted(self, name: str, convert: Callable[[str], Any]) -> tuple[Any, Any]:
        """A new column of the table, made of another."""
        alias = f"{convert.__name__} of {name}"
        if alias not in self.table.schema.names:
            self.table = self.table.append_column(alias, convert(name))
        return pc.field(alias), self.table.schema.field(alias).type

    def _like(self, node: Any) -> Any:
        field, kind = self._column(node.this)
        if not pa.types.is_string(kind):
            raise self._refusal(f"LIKE is for text, and {node.this.sql()!r} holds {kind}")
        return pc.match_like(field, self._value(node.expression, kind).as_py())

    def _column(self, node: Any, *, maybe_text: bool = False) -> tuple[Any, Any]:
        """The field of a column, and its type. A name of no column may be text without quotes."""
        if not isinstance(node, self._sql.Column) or node.table:
            raise self._refusal(f"{node.sql()!r} is not the name of a column")
        name, there = node.name, self._schema.names
        if name not in there:
            close = get_close_matches(name, there, n=1)
            meant = f"Did you mean {close[0]!r}? " if close else ""
            is_text = node.this.quoted or (maybe_text and not close)
            hint = f"{meant}{_in_quotes(name) + '. ' if is_text else ''}It may name {listed(there)}"
            raise self._refusal(f"there is no column {name!r}", hint)
        return pc.field(name), self._schema.field(name).type

    def _value(self, node: Any, kind: Any) -> Any:
        """A literal, as the type of the column it is compared with."""
        sql, node = self._sql, node.unnest()
        if isinstance(node, sql.Cast) and isinstance(node.this, sql.Literal):
            node = self._uncast(node)
        if isinstance(node, sql.Boolean):
            literal: Any = node.this
        elif isinstance(node, sql.Neg) and isinstance(node.this, sql.Literal):
            literal = f"-{node.this.this}"
        elif isinstance(node, sql.Literal):
            literal = node.this
            if pa.types.is_string(kind) and not node.is_string:
                raise self._refusal(f"the column holds text: write '{literal}' in single quotes")
        else:
            hint = _in_quotes(node.name) if isinstance(node, sql.Column) else GRAMMAR
            raise self._refusal(f"{node.sql()!r} is not a value", hint)
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
    if isinstance(literal, str) and (
        pa.types.is_decimal(kind) or (pa.types.is_integer(kind) and "." in literal)
    ):
        return pa.scalar(_exact(literal))  # month > 2.5
    return pa.scalar(literal).cast(kind)
