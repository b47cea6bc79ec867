r"""How the columns of a table become the numbers that are sketched.

A :class:`Recipe` is a list of parts. Each part takes one column of the table, of any type, and
gives one or more columns of numbers: the number itself, its logarithm, one column for each
category, the frequency of a category, or the place of a time on a circle. It travels in the plan,
so that every part of the data, on any machine and at any time, is turned into the same numbers, to
the bit.

Symbols
-------
n, w      rows of a batch, columns of numbers that a part gives
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sketchshift._text import meaningful
from sketchshift._times import PERIODS, as_times, part_of
from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import check_integer, check_number, parameter_error
from sketchshift.errors import DataError, SpecError

__all__ = [
    "MISSING",
    "Category",
    "Cycle",
    "Frequency",
    "Log",
    "Number",
    "Part",
    "Recipe",
    "drop_words",
    "log_ticks",
    "texts_of",
]

CALLER = "Recipe"
FEW_TICKS = 3  # powers of ten on an axis, up to which there is room for others
MOST_VALUES = 10_000  # categories of one column
FIRST_DAY = 10_000_101  # from here on a number of a cycle is a day in digits
MISSING = "(missing)"
"""What a missing category is called, beside the others."""


@dataclass(frozen=True)
class Part:
    """One column of a table, and the numbers made of it.

    Parameters
    ----------
    column : str
        Its name in the table.
    """

    column: str
    kind: ClassVar[str] = ""
    is_number: ClassVar[bool] = False  # whether the column has to hold numbers

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise parameter_error(CALLER, "column", "the name of a column", self.column)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the w columns of numbers."""
        return (self.column,)

    def encode(self, column: Any) -> FloatArray:
        """Numbers of shape (n, w); NaN where a value is missing.

        Parameters
        ----------
        column : array of shape (n,), or Arrow array of n rows
            Numbers for a part that needs them, else the column as it is.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds of it."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Number(Part):
    """A number as it is.

    Parameters
    ----------
    column : str
        Its name in the table.
    fill : float or None
        What a missing value counts as; None leaves it missing.
    """

    fill: float | None = None
    kind: ClassVar[str] = "number"
    is_number: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fill is not None:
            fill = check_number(CALLER, "fill", self.fill, low=-1e150, high=1e150)
            object.__setattr__(self, "fill", fill + 0.0)

    def encode(self, column: Any) -> FloatArray:
        """The numbers, with missing ones filled if that was asked for."""
        values = np.asarray(column, dtype=np.float64)
        if self.fill is not None:
            values = np.where(np.isfinite(values), values, self.fill)
        return values[:, None]


@dataclass(frozen=True)
class Log(Number):
    r"""The logarithm of a number, for columns that span many powers of ten.

    .. math:: y = \operatorname{sign}(x) \, \ln(1 + |x| / u)

    Near zero it is proportional to x, so that zeros and negative numbers have their place.

    Parameters
    ----------
    column : str
        Its name in the table.
    fill : float or None
        What a missing value counts as, in the units of the table.
    unit : float
        The number u > 0 below which differences count as they are.
    """

    unit: float = 1.0
    kind: ClassVar[str] = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        unit = check_number(CALLER, "unit", self.unit, low=1e-150, high=1e150)
        object.__setattr__(self, "unit", unit)

    def encode(self, column: Any) -> FloatArray:
        """The logarithms."""
        values = super().encode(column)
        values = np.where(np.isfinite(values), values, np.nan)
        return np.copysign(_log(1.0 + np.abs(values) / self.unit), values)

    def natural(self, value: Any) -> Any:
        """The number of the table that has this logarithm."""
        return np.copysign(self.unit * np.expm1(np.abs(value)), value)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Round numbers of the table between two logarithms: where each lies, and how it is told.

        Powers of ten; where there are fewer than four of them, twice and five times these as well.
        """
        ends = self.natural(np.array([low, high]))
        for factors in ([1.0], [1.0, 2.0, 5.0]):
            sizes = np.outer(10.0 ** np.arange(-9, 16), factors).ravel()
            numbers = np.concatenate([-sizes[::-1], [0.0], sizes])
            inside = numbers[(numbers >= ends[0]) & (numbers <= ends[1])]
            if len(inside) > FEW_TICKS:
                break
        places = np.copysign(np.log1p(np.abs(inside) / self.unit), inside)
        return [(float(x), meaningful(float(y))) for x, y in zip(places, inside, strict=True)]


@dataclass(frozen=True)
class Category(Part):
    """One column of zeros and ones for each value of a column: one-hot encoding.

    The mean of such a column is the share of the rows with that value. A value that is not listed
    is zero in all of them.

    Parameters
    ----------
    column : str
        Its name in the table.
    values : tuple of str
        The values; missing ones are "(missing)", which is listed if there are any.
    """

    values: tuple[str, ...] = ()
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "values", _check_values(self.values))

    @property
    def names(self) -> tuple[str, ...]:
        """Such as "cut = Ideal"."""
        return tuple(f"{self.column} = {value}" for value in self.values)

    def encode(self, column: Any) -> FloatArray:
        """Ones where the value is that of the column of numbers, zeros elsewhere."""
        return np.asarray(_find(column, self.values)[:, None] == np.arange(len(self.values)), float)


@dataclass(frozen=True)
class Frequency(Part):
    """How common a value is: the share of the rows that have it, in the sample of the plan.

    Parameters
    ----------
    column : str
        Its name in the table.
    values : tuple of str
        The values that were seen.
    shares : tuple of float
        Their shares; a value that was not seen has 0.
    """

    values: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    kind: ClassVar[str] = "frequency"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "values", _check_values(self.values))
        shares = tuple(check_number(CALLER, "shares", s, low=0.0, high=1.0) for s in self.shares)
        object.__setattr__(self, "shares", shares)
        if len(shares) != len(self.values):
            raise parameter_error(CALLER, "shares", "one number for each value", self.shares)

    @property
    def names(self) -> tuple[str, ...]:
        """Such as "frequency of city"."""
        return (f"frequency of {self.column}",)

    def encode(self, column: Any) -> FloatArray:
        """The shares; the last one is that of a value that was not seen."""
        return np.array([*self.shares, 0.0])[_find(column, self.values)][:, None]


@dataclass(frozen=True)
class Cycle(Part):
    r"""The place of a time on a circle, so that 23 h is as near to 0 h as 1 h is.

    .. math:: (\cos 2 \pi p / P, \; \sin 2 \pi p / P)

    Parameters
    ----------
    column : str
        Of dates, times or text that holds them; or of the whole numbers p themselves.
    unit : str
        What comes round: "hour" (P = 24), "weekday" (7), "month" (12), "day_of_year" (366).
    day_first : bool or None
        Whether 5/1/2026 is the fifth of January, for texts that leave it open.
    zone : str or None
        Time zone whose clocks count, such as "Europe/Paris"; None: that of the column.
    fill : pair of float or None
        The cosine and sine that a missing time counts as; None leaves it missing.
    """

    unit: str = "hour"
    day_first: bool | None = None
    zone: str | None = None
    fill: tuple[float, float] | None = None
    kind: ClassVar[str] = "cycle"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit not in PERIODS:
            raise parameter_error(CALLER, "unit", f"one of {', '.join(PERIODS)}", self.unit)
        if self.day_first not in (None, True, False):
            raise parameter_error(CALLER, "day_first", "True, False or None", self.day_first)
        if not (self.zone is None or isinstance(self.zone, str)):
            raise parameter_error(CALLER, "zone", "the name of a time zone, or None", self.zone)
        if self.fill is not None:
            object.__setattr__(self, "fill", _check_place(self.fill))

    @property
    def names(self) -> tuple[str, ...]:
        """Such as "hour(pickup) cos" and "hour(pickup) sin"."""
        return tuple(f"{self.unit}({self.column}) {side}" for side in ("cos", "sin"))

    def encode(self, column: Any) -> FloatArray:
        """Cosines and sines, from a table: no two processors differ in it."""
        missing = len(self._circle) - 1
        places: IntArray = np.asarray(self._places(column).fill_null(missing))
        return np.asarray(self._circle[np.where((places >= 0) & (places < missing), places, -1)])

    def _places(self, column: Any) -> Any:
        """The numbers p of an Arrow column; one of whole numbers may hold days: 20260105."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        column = drop_words(column)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if is_text and pc.all(pc.match_substring_regex(column, r"^\s*\d{1,3}(\.0*)?\s*$")).as_py():
            column = pc.utf8_trim_whitespace(column).cast(pa.float64())
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        if any(is_number(column.type) for is_number in kinds):
            numbers = column.cast(pa.float64(), safe=False)
            is_known = pc.and_(pc.is_finite(numbers), pc.less(pc.abs(numbers), 1e9))
            column = pc.floor(pc.if_else(is_known, numbers, None)).cast(pa.int64())
            if (pc.max(column).as_py() or 0) < FIRST_DAY:
                return column
            column = column.cast(pa.string())
        return part_of(as_times(column, self.zone, self.day_first, is_part=True), self.unit)

    @cached_property
    def _circle(self) -> FloatArray:
        """Of each place; the last row is that of a missing time. Months count from 1."""
        n = PERIODS[self.unit]
        angles = 2.0 * math.pi * np.arange(n + 1) / n
        sides = np.column_stack([np.cos(angles), np.sin(angles)]).round(12) + 0.0
        return np.vstack([sides, self.fill or (math.nan, math.nan)])

    def natural(self, cosine: float, sine: float) -> float:
        """The place in [0, P) that lies in this direction."""
        period = PERIODS[self.unit]
        return float(math.atan2(sine, cosine) / (2.0 * math.pi) * period % period)


def _check_place(place: Any) -> tuple[float, float]:
    if not isinstance(place, Sequence) or len(place) != 2:
        raise parameter_error(CALLER, "fill", "a cosine and a sine, or None", place)
    cosine, sine = (check_number(CALLER, "fill", x, low=-1.0, high=1.0) for x in place)
    return cosine, sine


_KINDS: dict[str, type[Part]] = {c.kind: c for c in (Number, Log, Category, Frequency, Cycle)}


@dataclass(frozen=True)
class Recipe:
    """How the columns of a table become numbers: it goes wherever column names go.

    Parameters
    ----------
    parts : sequence of Part
        In the order in which their numbers stand side by side.

    Examples
    --------
    >>> import pyarrow as pa, sketchshift as ss
    >>> from sketchshift.recipe import Category, Log, Recipe
    >>> table = pa.table({"price": [1.0, 10.0, 1000.0], "cut": ["good", "fair", "good"]})
    >>> recipe = Recipe([Log("price"), Category("cut", ("fair", "good"))])
    >>> recipe.names
    ('price', 'cut = fair', 'cut = good')
    >>> spec = ss.plan(table, n_clusters=1, columns=recipe)
    >>> ss.sketch(table, spec).mean.round(1).tolist()
    [3.3, 0.3, 0.7]
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts) if isinstance(self.parts, Iterable) else ()
        if not parts or not all(isinstance(part, Part) for part in parts):
            must = "a list of parts such as Number('price')"
            raise parameter_error(CALLER, "parts", must, self.parts)
        object.__setattr__(self, "parts", parts)
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise SpecError(f"a recipe makes the column {twice[0]!r} twice. Leave one part out.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all columns of numbers."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def n_features(self) -> int:
        """Number of columns of numbers."""
        return len(self.names)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of the table that have to hold numbers, each once."""
        return tuple(dict.fromkeys(part.column for part in self.parts if part.is_number))

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of the table that are read as they are, each once."""
        return tuple(dict.fromkeys(part.column for part in self.parts if not part.is_number))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are read."""
        return tuple(dict.fromkeys((*self.numbers, *self.texts)))

    @property
    def is_plain(self) -> bool:
        """Whether numbers are read as they are, and nothing else: names of columns say as much."""
        return all(type(part) is Number and part.fill is None for part in self.parts)

    @cached_property
    def groups(self) -> IntArray:
        """For each column of numbers, which part it is of: those of one part share one scale."""
        return np.repeat(np.arange(len(self.parts)), [len(part.names) for part in self.parts])

    def encode(self, numbers: FloatArray, table: Any = None) -> FloatArray:
        """The columns of numbers, side by side.

        Parameters
        ----------
        numbers : array of shape (n, len(self.numbers))
            The columns that hold numbers, in the order of ``numbers``; NaN where one is missing.
        table : Arrow table or record batch of n rows
            With the columns of ``texts``.

        Returns
        -------
        values : array of shape (n, d)
            O(n d).
        """
        place = {name: j for j, name in enumerate(self.numbers)}
        columns = (
            numbers[:, place[part.column]] if part.is_number else table.column(part.column)
            for part in self.parts
        )
        encoded = [part.encode(c) for part, c in zip(self.parts, columns, strict=True)]
        return np.hstack(encoded)

    def unseen(self, mean: FloatArray) -> dict[str, float]:
        """Columns of categories with values that are not listed, and the share of such rows.

        Parameters
        ----------
        mean : array of shape (d,)
            Of the columns of numbers, over any rows: shares of listed values add up to 1.
        """
        found = {
            part.column: 1.0 - float(mean[self.groups == i].sum())
            for i, part in enumerate(self.parts)
            if isinstance(part, Category)
        }
        return {name: share for name, share in found.items() if share > 1e-9}

    def to_list(self) -> list[dict[str, Any]]:
        """What JSON holds of it."""
        return [part.to_dict() for part in self.parts]

    @classmethod
    def from_list(cls, content: Any) -> Recipe:
        """The recipe of a ``content`` that :meth:`to_list` wrote; else a :class:`SpecError`."""
        if not isinstance(content, Sequence) or isinstance(content, str):
            raise parameter_error(CALLER, "parts", "a list of objects", content)
        return cls(tuple(map(_part_of, content)))


def _part_of(content: Any) -> Part:
    kind = content.get("kind") if isinstance(content, Mapping) else None
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None or set(content) != {"kind", *(field.name for field in fields(cls))}:
        must = f"an object of a kind among {', '.join(_KINDS)}, with all of its fields"
        raise parameter_error(CALLER, "parts", must, content)
    return cls(**{name: value for name, value in content.items() if name != "kind"})


def _check_values(values: Any) -> tuple[str, ...]:
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_list or not all(isinstance(value, str) for value in values):
        raise parameter_error(CALLER, "values", "a list of texts", values)
    check_integer(CALLER, "number of values", len(values), 1, MOST_VALUES)
    if len(set(values)) < len(values):
        raise parameter_error(CALLER, "values", "a list of different texts", values)
    return tuple(values)


def texts_of(column: Any) -> Any:
    """An Arrow column as text, the way people would write its values; missing ones by name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        text = column.cast(pa.string())
    except pa.ArrowException as cause:
        msg = f"a column of type {column.type} has no categories. Leave it out."
        raise DataError(msg) from cause
    return pc.fill_null(drop_words(text), MISSING)


def drop_words(column: Any) -> Any:
    """A column of text without blanks around its cells, and words such as NA as missing values.

    Any other column is as it was. "None" and "-" are left: they may be answers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    cells = pc.utf8_trim_whitespace(column)
    is_missing = pc.match_substring_regex(cells, "^(?:|#?N/?A|n/a|NaN|nan|NaT|NULL|null)$")
    return pc.if_else(is_missing, pa.scalar(None, cells.type), cells)


def _find(column: Any, values: Sequence[str]) -> IntArray:
    """The position of each row's value among the values; their number if it is none of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(texts_of(column), value_set=pa.array(values, pa.string()))
    return np.asarray(pc.fill_null(found, len(values)))


LN_2 = 0.6931471805599453
SERIES = tuple(1.0 / (2 * i + 1) for i in range(12))


def _log(y: FloatArray) -> FloatArray:
    """Natural logarithms, by sums and products alone: the same bits on every processor.

    Libraries of mathematics differ in the last bit. With y = 2^e m, m in [0.7, 1.4), and
    s = (m - 1) / (m + 1) the logarithm is e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...).
    """
    m, e = np.frexp(y)
    is_low = m < math.sqrt(0.5)
    m, e = np.where(is_low, 2.0 * m, m), e - is_low
    s = (m - 1.0) / (m + 1.0)
    square, series = s * s, np.full_like(s, SERIES[-1])
    for term in SERIES[-2::-1]:
        series = series * square + term
    return np.asarray(e * LN_2 + 2.0 * s * series)


def log_ticks(
    recipe: Recipe | None, lower: Sequence[float] | FloatArray, upper: Sequence[float] | FloatArray
) -> list[list[tuple[float, str]] | None]:
    """For the axis of each column: :meth:`Log.ticks` between its ends; None for other columns."""
    parts = [None] * len(lower) if recipe is None else [p for p in recipe.parts for _ in p.names]
    return [
        part.ticks(float(low), float(high)) if isinstance(part, Log) and low < high else None
        for part, low, high in zip(parts, lower, upper, strict=True)
    ]
