"""What a single column of a table is: a measure, a code, a category, a time.

Takes the values of a sample; hands a :class:`SurveyedColumn` to ``survey``, which chooses. Judges
by names and values, and says its reason in words.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchshift._text import counted
from sketchshift._times import PERIODS, as_times, is_time_column, part_of
from sketchshift._typing import FloatArray
from sketchshift.errors import DataError
from sketchshift.recipe import drop_words

__all__ = [
    "DECADES",
    "FEWEST_FOR_IDENTIFIERS",
    "MANY_DECADES",
    "OF_DAY",
    "SurveyedColumn",
    "look_at_number",
    "look_at_other",
    "percent",
]

DECADES, MANY_DECADES = 2.0, 3.0  # that a column spans for a logarithm, and for a note
OF_DAY = "a time of day"
MOSTLY_MISSING = 1 / 3  # share of a text that is told to be missing
FEWEST_FOR_IDENTIFIERS = 20  # of fewer rows, all may differ by chance
NEARLY_ALL = 0.99  # share of whole numbers in a column whose name says that they are codes
ONE_YEAR = 330.0  # days that dates span, from which on they have seasons
FEWEST_SEEN = {"hour": 6, "weekday": 4, "month": 6}  # different ones, for it to be proposed
HEAVY_TAIL = 30.0  # largest value over the 75th percentile, from which on a tail is heavy
FEWEST_IN_TAIL = 10  # positive numbers, for a tail
_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|key|index|idx|rownum|row|nr|no|number|serial|code|zip|zipcode|"
    r"postcode|postal|phone|fips|isbn|ean|sku|unnamed: \d+)$",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](ID|Id)$")
_ONE_OF_MANY = re.compile(
    r"(flight|individual|subject|respondent|participant|patient|customer|client|user|person|"
    r"member|employee|student|household|account|invoice|order|transaction|ticket|case|record)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SurveyedColumn:
    """What a look at a column tells.

    Attributes
    ----------
    name : str
        In the table.
    kind : str
        "number", "category", "time", "identifier", "constant", "empty" or "other".
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
        Powers of ten between the tenth percentile of the positive numbers and the largest; 0 where
        more than 1 % is negative, or hardly any is positive.
    zeros : float
        Share of the numbers that are 0.
    is_heavy : bool
        Whether few numbers are very much larger than the others.
    units : tuple of str
        Of a time, what comes round in it again and again: "hour", "weekday", "month".
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
    zeros: float = 0.0
    is_heavy: bool = False
    units: tuple[str, ...] = ()


def look_at_number(name: str, values: FloatArray) -> SurveyedColumn:
    """What numbers of shape (n,) are, NaN where one is missing: measures, codes, days."""
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
        float((finite == 0.0).mean()),
        _is_heavy(finite),
    )
    if len(distinct) == 1:
        return replace(facts, kind="constant", is_used=False, reason="constant")
    if _is_identifier(name, finite, len(distinct)):
        return replace(facts, kind="identifier", is_used=False, reason="identifier")
    if _are_days(distinct):
        words = f"days such as {distinct[0]:.0f}"
        units = ("weekday",)
        return replace(facts, kind="time", is_used=False, reason=words, decades=0.0, units=units)
    return facts


def _are_days(values: FloatArray) -> bool:
    """Whether numbers are days written in digits, such as 20260105."""
    year, month, day = values // 10_000, values // 100 % 100, values % 100
    is_day = (values == np.floor(values)) & (year >= 1800) & (year < 2200)
    is_day &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool(is_day.all())


def _decades(values: FloatArray) -> float:
    """Powers of ten that the positive numbers span, zeros aside; 0 for columns of negative ones."""
    positive = values[values > 0.0]
    if len(positive) < FEWEST_IN_TAIL or (values < 0.0).mean() > 0.01:
        return 0.0
    return math.log10(float(positive.max()) / float(np.quantile(positive, 0.1)))


def _is_heavy(values: FloatArray) -> bool:
    """Whether the largest numbers are far from three quarters of all, zeros included."""
    largest = float(values.max())
    is_far = largest >= HEAVY_TAIL * max(float(np.quantile(values, 0.75)), 0.0)
    return largest > 0.0 and (is_far or _decades(values) >= 2 * DECADES)


def _is_identifier(name: str, values: FloatArray, n_distinct: int) -> bool:
    """A whole number that names rows: by its name, or since it counts them, or groups of them."""
    is_whole = values == np.floor(values)
    has_name = bool(_IDENTIFIER.search(name) or _CAMEL_ID.search(name)) or not name.strip()
    if has_name and is_whole.mean() >= NEARLY_ALL:
        return n_distinct > 2
    if not is_whole.all() or n_distinct < FEWEST_FOR_IDENTIFIERS:
        return False
    if _ONE_OF_MANY.fullmatch(name.strip()):
        return True
    steps = np.diff(values)
    return bool((steps > 0.0).all()) or _counts_groups(values, steps)


def _counts_groups(values: FloatArray, steps: FloatArray) -> bool:
    """Whether groups of as many rows each are numbered from 0 or 1 on: 1, 1, 2, 2, 3, 3."""
    lengths = np.diff(np.flatnonzero(np.concatenate([[1.0], steps, [1.0]])))
    is_even = bool((lengths == lengths[0]).all())
    return values[0] in (0.0, 1.0) and is_even and bool(np.isin(steps, (0.0, 1.0)).all())


def look_at_other(name: str, column: Any, *, is_complete: bool) -> SurveyedColumn:
    """What an Arrow column of other things is; ``is_complete``: it has all rows of the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = drop_words(column)
    kind = column.type
    missing = column.null_count
    if missing == len(column):
        return SurveyedColumn(name, "empty", False, "empty", missing)
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return SurveyedColumn(name, "other", False, "a duration", missing)
    if pa.types.is_temporal(kind):
        is_of_day = pa.types.is_time(kind)
        words, units = (OF_DAY, ("hour",)) if is_of_day else ("a time", _units_in(column))
        return SurveyedColumn(name, "time", False, words, missing, units=units)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_dictionary(kind) or pa.types.is_string_view(kind)):
        return SurveyedColumn(name, "other", False, f"{kind}", missing)
    if is_text and is_time_column(column):
        units = _units_in(column)
        return SurveyedColumn(name, "time", False, "a time", missing, units=units)
    distinct = len(pc.unique(column.drop_null()))
    facts = SurveyedColumn(name, "category", False, "", missing, distinct)
    if distinct == 1:
        return replace(facts, kind="constant", reason="constant")
    n = len(column) - missing
    is_unique = distinct > 0.9 * n and n >= FEWEST_FOR_IDENTIFIERS
    kind = "identifier" if is_unique else "category"
    words = (
        f"text, {counted(distinct, 'value')}{'' if is_complete or distinct < 100 else ' or more'}"
    )
    if is_unique:
        words = f"text, another in {'' if distinct == n else 'nearly '}every row"
    if missing > MOSTLY_MISSING * len(column):
        words += f", {percent(missing / len(column))} missing"
    return replace(facts, kind=kind, reason=words)


def _units_in(column: Any) -> tuple[str, ...]:
    """What comes round in times: hours if they have some, and months or weekdays.

    Weekdays are those of less than a year. Of dates a year apart nothing comes round.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        times = as_times(column).drop_null().cast(pa.timestamp("us"), safe=False)
        seen = {unit: len(pc.unique(part_of(times, unit))) for unit in FEWEST_SEEN}
    except (DataError, pa.ArrowException):
        return ()
    ends = pc.min_max(times.cast(pa.int64()))
    days = (ends["max"].as_py() - ends["min"].as_py()) / 86.4e9 if len(times) else 0.0
    season = "month" if days >= ONE_YEAR else "weekday"
    is_long = days >= 2 * PERIODS["weekday"]
    return tuple(
        unit
        for unit in ("hour", season)
        if seen[unit] >= FEWEST_SEEN[unit] and (unit == "hour" or is_long)
    )


def percent(share: float) -> str:
    """A share for people."""
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
