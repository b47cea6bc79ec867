"""Sketches as rows of a table in which plain SQL adds and subtracts (``docs/databases.md``).

A row holds one integer of at most 40 bits: which part of the sketch it belongs to, where in it,
and its limb. All rows are linear in the data, so that ``SUM(value) ... GROUP BY part, i, j, limb``
is ``+`` and a difference is ``-``, in any engine. Rows of value 0 are left out. Two seals are
linear, too: one ties the sums to their plan, the other notices rows left out or taken twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sketchshift._text import listed
from sketchshift._typing import IntArray
from sketchshift.data.sample import mix, random_bits
from sketchshift.errors import (
    DataError,
    IncompatibleSketchesError,
    SharePlan,
    SketchFormatError,
)
from sketchshift.features import SketchSpec
from sketchshift.live.database import Query, append_rows, ask, fetch_table
from sketchshift.sketch.cells import FarPart
from sketchshift.sketch.measure import Measure, Part, WideArray, parts_of

__all__ = ["COLUMNS", "LIMB_BITS", "from_rows", "read_rows", "seal_of", "to_rows", "write_rows"]

LIMB_BITS = 40
"""An integer is the sum of its limbs times 2**(40 limb); each is from -2**39 to 2**39 - 1.

So SUM stays within a BIGINT for 2**24 sketches, as SQLite needs it."""

COUNT, SEAL = "count", "seal"
PLACE = {"part": pa.string(), "i": pa.int64(), "j": pa.int32(), "limb": pa.int16()}
COLUMNS = {"plan": pa.string(), **PLACE, "value": pa.int64()}
"""Columns beside the key, with their types."""

_HALF, _MASK = 2 ** (LIMB_BITS - 1), 2**LIMB_BITS - 1
_SEAL_DIGITS = LIMB_BITS // 4 - 1  # hexadecimal ones of a fingerprint: below 2**36
_SEAL_BITS = 4 * _SEAL_DIGITS


def seal_of(spec: SketchSpec) -> int:
    """What each row of data adds to the seal: sums across plans do not fit the count then."""
    return int(spec.fingerprint[:_SEAL_DIGITS], 16) | 1


def _share(name: str, i: IntArray, j: IntArray, values: WideArray) -> int:
    """What integers of a part add to the seal of all: each times an odd number of its place."""
    bits = mix(random_bits(i, crc32(name.encode())) ^ j.astype(np.uint64))
    factors = (bits >> np.uint64(64 - _SEAL_BITS)) | np.uint64(1)
    return int((factors.astype(object) * values).sum())


def to_rows(keys: Any, totals: Sequence[Measure], spec: SketchSpec) -> Any:
    """The integers of some sketches of one plan.

    Parameters
    ----------
    keys : Arrow table of n rows
        Possibly of no columns.
    totals : sequence of n Measure
        Of the sketches.
    spec : SketchSpec
        Of all of them.

    Returns
    -------
    rows : Arrow table
        The columns of the key, then :data:`COLUMNS`. Two to three thousand rows for a sketch of
        ten clusters in ten columns.
    """
    clashes = [name for name in keys.column_names if name in COLUMNS]
    if clashes:
        msg = f"the key has a column {clashes[0]!r}, which the rows need. Rename it."
        raise DataError(msg)
    tables = [_rows_of(measure, spec) for measure in totals]
    empty = pa.table({name: pa.nulls(0, kind) for name, kind in COLUMNS.items()})
    rows = pa.concat_tables([empty, *tables])
    numbers = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    for place, name in enumerate(keys.column_names):
        rows = rows.add_column(place, name, _plain(keys.column(name)).take(pa.array(numbers)))
    return rows.combine_chunks()


def _plain(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _rows_of(measure: Measure, spec: SketchSpec) -> Any:
    none = np.empty(0, np.int64)
    parts: list[tuple[str, IntArray, IntArray, IntArray, IntArray]] = [("", none, none, none, none)]
    for name, i, j, values in _entries(measure, spec):
        for limb, of_limb in enumerate(_limbs(values)):
            some = np.flatnonzero(of_limb)
            limbs = np.full(len(some), limb)
            parts.append((name, i[some], j[some], limbs, of_limb[some].astype(np.int64)))
    sizes = [len(part[1]) for part in parts]
    names = pa.array(np.repeat([part[0] for part in parts], sizes), pa.string())
    plan = pa.array([spec.fingerprint] * len(names), pa.string())
    numbers = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
    kinds = list(COLUMNS.values())[2:]
    arrays = [pa.array(column, kind) for column, kind in zip(numbers, kinds, strict=True)]
    return pa.table([plan, names, *arrays], names=list(COLUMNS))


def _entries(
    measure: Measure, spec: SketchSpec
) -> Iterator[tuple[str, IntArray, IntArray, WideArray]]:
    """Name, places and values of all integers, those of the parts only where they are not 0."""
    yield from _unsealed(measure, spec)
    yield SEAL, *_line(_seals(measure, spec))


def _seals(measure: Measure, spec: SketchSpec) -> list[int]:
    """That of the plan, and that of all integers, the first seal among them."""
    of_plan = (measure.count + measure.n_invalid) * seal_of(spec)
    shares = (_share(*entries) for entries in _unsealed(measure, spec))
    return [of_plan, sum(shares, start=_share(SEAL, *_line([of_plan])))]


def _unsealed(
    measure: Measure, spec: SketchSpec
) -> Iterator[tuple[str, IntArray, IntArray, WideArray]]:
    yield COUNT, *_line([measure.count, measure.n_invalid])
    for part in parts_of(spec):
        integers = measure.parts[part.name]
        if isinstance(part, FarPart):
            yield part.name, *part.entries(integers)
            continue
        place = np.nonzero(integers)
        yield part.name, place[0], place[-1] * (integers.ndim > 1), integers[place]


def _line(values: Sequence[int]) -> tuple[IntArray, IntArray, WideArray]:
    """Integers at i = 0, 1, ... and j = 0."""
    where = np.arange(len(values))
    return where, np.zeros_like(where), np.array(values, dtype=object)


def _from_entries(part: Part, i: IntArray, j: IntArray, values: WideArray) -> Any:
    """Integers of a part at their places, those of one place added up; ValueError for others."""
    if isinstance(part, FarPart):
        return part.from_entries(i, j, values)
    rows, columns = (*part.shape, 1)[:2]
    if ((i < 0) | (i >= rows) | (j < 0) | (j >= columns)).any():
        raise ValueError(f"{part.name} has no integers at such places.")
    totals = np.zeros((rows, columns), dtype=object)
    np.add.at(totals, (i, j), values)
    totals = totals.reshape(part.shape)
    return totals if part.is_wide else totals.astype(np.int64)


def _limbs(values: WideArray) -> Iterator[WideArray]:
    """Balanced digits of integers, lowest first: small negative numbers have one, too."""
    while values.any():
        low = ((values + _HALF) & _MASK) - _HALF
        yield low
        values = (values - low) >> LIMB_BITS


def from_rows(rows: Any, spec: SketchSpec) -> tuple[Any, list[Measure]]:
    """What :func:`to_rows` gave, or SQL made of it: keys, and the integers of each.

    Parameters
    ----------
    rows : Arrow table
        With the columns ``part``, ``i``, ``j``, ``limb`` and ``value``; ``plan`` may be left out,
        all others are keys. Values may be of any size: rows of one place are added up.
    spec : SketchSpec
        The plan of all sketches.

    Returns
    -------
    keys : Arrow table of n rows
        In ascending order.
    totals : list of n Measure
        Anything but sums and differences of whole sketches of this plan is an error.
    """
    from sketchshift.sketch.table import group_keys

    _check_columns(rows, spec)
    keys = rows.select([name for name in rows.column_names if name not in COLUMNS])
    try:
        places = {name: _integers(rows, name).astype(np.int64) for name in ("i", "j", "limb")}
    except OverflowError:
        raise SketchFormatError(
            "i, j and limb must be as they were written: one is huge."
        ) from None
    if (places["limb"] < 0).any() or (places["limb"] > 8).any():
        raise SketchFormatError("a limb must be from 0 to 8. Leave the column as it was written.")
    shifts = LIMB_BITS * places["limb"].astype(object)
    values = _integers(rows, "value") << shifts
    names = np.array(rows.column("part").to_pylist(), dtype=object)
    if not keys.num_columns:
        groups, members = keys, [np.arange(len(names)).tolist()]
    else:
        groups, members = group_keys(keys)
    where = (np.array(some, dtype=np.int64) for some in members)
    return groups, [
        _measure(names[at], places["i"][at], places["j"][at], values[at], spec) for at in where
    ]


def _check_columns(rows: Any, spec: SketchSpec) -> None:
    missing = [name for name in (*PLACE, "value") if name not in rows.column_names]
    if missing:
        msg = (
            f"rows of sketches have no column {listed(missing)}: they have "
            f"{listed(rows.column_names)}. Select part, i, j, limb and SUM(value) AS value, and "
            "group by the others."
        )
        raise DataError(msg)
    if "plan" not in rows.column_names:
        return
    plans = pc.unique(rows.column("plan")).to_pylist()
    if plans not in ([], [spec.fingerprint]):
        found = listed([str(plan)[:8] for plan in plans])
        msg = (
            f"these rows were made with the plans {found}, and this one is "
            f"{spec.fingerprint[:8]!r}. Select those of one: WHERE plan = {spec.fingerprint!r}. "
        )
        raise IncompatibleSketchesError(msg, SharePlan(), verb="merge")


def _integers(rows: Any, name: str) -> WideArray:
    """A column as Python's integers: SUM of a BIGINT is NUMERIC, HUGEINT or a decimal elsewhere."""
    wide = np.empty(len(rows), dtype=object)
    wide[:] = [_integer(value, name) for value in rows.column(name).to_pylist()]
    return wide


def _integer(value: Any, name: str) -> int:
    if type(value) is int:
        return value
    try:
        number = Decimal(value) if isinstance(value, str | Decimal) else None
        if number is not None and number == int(number):
            return int(number)
    except (ArithmeticError, ValueError):
        pass
    msg = (
        f"the column {name!r} must hold integers, and here it holds {value!r}. Cast sums: "
        "CAST(SUM(value) AS BIGINT) AS value."
    )
    raise DataError(msg)


def _measure(
    names: WideArray, i: IntArray, j: IntArray, values: WideArray, spec: SketchSpec
) -> Measure:
    """The integers of one sketch; what they cannot be is an error."""
    by_name = {str(name): np.flatnonzero(names == name) for name in set(names.tolist())}
    none = np.empty(0, np.int64)

    def entries(name: str) -> tuple[IntArray, IntArray, WideArray]:
        some = by_name.pop(name, none)
        return i[some], j[some], values[some]

    count, n_invalid = _few(*entries(COUNT), 2)
    of_plan, of_all = _few(*entries(SEAL), 2)
    if of_plan != (count + n_invalid) * seal_of(spec):
        msg = (
            f"these sums are not those of sketches with the plan {spec.fingerprint[:8]!r} alone: "
            "their seal does not fit the number of rows. Select one plan, and all rows of its "
            f"sketches: WHERE plan = {spec.fingerprint!r}. "
        )
        raise IncompatibleSketchesError(msg, SharePlan(), verb="merge")
    try:
        parts = {part.name: _from_entries(part, *entries(part.name)) for part in parts_of(spec)}
    except (ValueError, OverflowError) as error:
        raise SketchFormatError(f"the rows are not those of a sketch: {error}") from None
    if by_name:
        msg = f"the plan has no part {listed([*by_name])}. Leave the column part as it was written."
        raise SketchFormatError(msg)
    totals = Measure(count, n_invalid, parts)
    if of_all != _seals(totals, spec)[1]:
        msg = (
            "some rows of these sketches are missing, or come more than once: the seal of all "
            "integers does not fit them. Select all rows of each sketch, by its keys and never by "
            "part, i, j or limb."
        )
        raise SketchFormatError(msg)
    if not totals.is_sound(spec):
        msg = (
            f"the integers are not those of any rows ({count} rows, {n_invalid} left out). "
            "Subtract only what was added."
        )
        raise SketchFormatError(msg)
    return totals


def _few(i: IntArray, j: IntArray, values: WideArray, n: int) -> list[int]:
    """The integers of counts; places that they do not have are an error."""
    if (i >= n).any() or (i < 0).any() or j.any():
        raise SketchFormatError("the counts stand at other places than they were written at.")
    return [sum(values[i == place].tolist()) for place in range(n)]


# Into a database and back.


def write_rows(rows: Any, database: Any, name: str) -> None:
    """Append rows to a table, which is made if it is not there: all of them, or none."""
    append_rows(Query(database, name), rows)


def read_rows(rows: Any, query: str | None) -> Any:
    """Rows as an Arrow table: Arrow data of any kind, or what a database answers."""
    if query is not None or isinstance(rows, Query):
        return fetch_table(rows if isinstance(rows, Query) else ask(rows, query))
    if not hasattr(rows, "__arrow_c_stream__"):
        msg = (
            f"cannot read {type(rows).__name__} as rows of sketches. Pass an Arrow table, a result "
            "that gives one, or a database and a query= that selects them."
        )
        raise DataError(msg)
    return pa.table(rows)
