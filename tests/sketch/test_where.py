"""Conditions on keys: DuckDB is the oracle where it means the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.data import open_source
from sketchshift.errors import DataError
from sketchshift.sketch.where import columns_named, find_ranges, find_rows

NOONS = [dt.datetime(2026, 1, day, 12) for day in range(1, 8)]
TABLE = pa.table(
    {
        "day": [noon.date() for noon in NOONS],
        "origin": ["SFO", "OAK", None, "LAX", "SFO", "O'Hare", "oak"],
        "month": pa.array([1, 2, 3, 4, 5, 6, None], pa.int64()),
        "my key": [True, False, True, False, True, False, None],
        "moment": pa.array(NOONS, pa.timestamp("ns")),
        "count": [10, 20, 30, 40, 50, 60, 70],
        "sold": [*map(Decimal, ["1.25", "2.00", "-3.50"] * 2), None],
        "text": ["2026-01-02", "north", "2026-01-06", "2026-01-0x", "south", None, "a"],
        "clock": [dt.time(hour) for hour in range(7)],
        "row": range(7),
    }
)

CONDITIONS = [
    "day >= '2026-01-05'",
    "day >= DATE '2026-01-05'",
    "'2026-01-05' <= day",
    "day = '2026-01-02' OR day = '2026-01-04'",
    "day BETWEEN '2026-01-02' AND '2026-01-03'",
    "NOT (day > '2026-01-02')",
    "origin = 'SFO'",
    "origin <> 'SFO'",
    "origin != 'SFO' AND count < 50",
    "origin IN ('SFO', 'OAK')",
    "origin NOT IN ('SFO', 'OAK')",
    "origin LIKE 'O%'",
    "origin NOT LIKE 'O%'",
    "NOT origin LIKE 'O%'",
    "NOT (origin NOT LIKE 'O%')",
    "month NOT BETWEEN 2 AND 4",
    "origin IS NULL",
    "origin IS NOT NULL and month is not null",
    "origin = 'O''Hare'",
    "month = -1",
    "month = 5 -- a remark",
    '"my key"',
    'not "my key"',
    '"my key" = true',
    "moment < '2026-01-02 13:00:00'",
    "((month = 1)) or (month = 2 and origin = 'OAK')",
    "month = count",
]


def ask_duckdb(keys: pa.Table, where: str) -> list[int]:
    relation = duckdb.sql(f"SELECT row FROM keys WHERE {where}\n")
    return sorted(row for (row,) in relation.fetchall())


@pytest.mark.parametrize("where", CONDITIONS)
def test_duckdb_selects_the_same_rows(where: str) -> None:
    assert find_rows(TABLE, where).tolist() == ask_duckdb(TABLE, where)


FAULTS = {
    "": "it is empty",
    "day >=": "it cannot be read",
    "day >= '2026-01-05'; DROP TABLE x": "it cannot be read",
    "dya > '2026-01-05'": "no column 'dya'. Did you mean 'day'?",
    'origin = "SFO"': "Put text in single quotes: 'SFO'. It may name 'day'",
    "origin = SFO": "no column 'SFO'. Put text in single quotes: 'SFO'. It may name 'day'",
    "SFO = origin": "no column 'SFO'. Put text in single quotes: 'SFO'.",
    "origin = orgin": "Did you mean 'origin'? It may name 'day'",
    "origin IN (SFO, OAK)": "'SFO' is not a value. Put text in single quotes: 'SFO'.",
    "day = 7": "'7' cannot be read as date32[day], which the column holds. Write it as in '2026-01",
    "moment = 7": "which the column holds. Write it as in '2026-01-05'.",
    "month = 'SFO'": "'SFO' cannot be read as int64, which the column holds. Compare columns",
    "month < origin": "column 'month' holds int64 and column 'origin' holds string",
    "origin = 5": "write '5' in single quotes",
    "day >= 'yesterday'": "'yesterday' cannot be read as date32",
    "month + 1 > 2": "'month + 1' is not the name of a column",
    "month > 1 + 1": "'1 + 1' is not a value",
    "read_csv('/etc/passwd')": "is not a comparison",
    "origin = read_text('/etc/passwd')": "is not a value",
    "month": "'month' is not a comparison",
    "month LIKE '1%'": "LIKE is for text",
    "other.month = 1": "'other.month' is not the name of a column",
    "month IN (SELECT 1)": "is not a comparison",
    "month BETWEEN SYMMETRIC 4 AND 2": "is not a comparison",
    "origin LIKE 'O!%' ESCAPE '!'": "is not a comparison",
    "origin LIKE ANY ('O%', 'S%')": "is not a value",
    "origin ILIKE 'o%'": "is not a comparison",
    "EXISTS (SELECT 1)": "is not a comparison",
    "__row__ = 1": "no column '__row__'",
    "(" * 5000: "cannot apply",
    "month = 1 or " * 1000 + "month = 2": "longer than 10,000",
}


@pytest.mark.parametrize(("where", "fact"), FAULTS.items(), ids=[w[:20] for w in FAULTS])
def test_what_is_not_a_comparison_is_refused_with_the_reason(where: str, fact: str) -> None:
    with pytest.raises(DataError) as caught:
        find_rows(TABLE, where)
    assert fact in str(caught.value)
    assert len(str(caught.value)) < 600


VALUES = {
    "day": [f"'2026-01-{day:02d}'" for day in range(1, 8)],
    "origin": ["'SFO'", "'OAK'", "'O''Hare'", "'A'", "'2026-01-04'"],
    "month": ["-1", "2", "3", "4.5", "6"],
    "moment": ["'2026-01-02 13:00:00'", "'2026-01-05'", "'2026-01-07 12:00:00'"],
    "sold": ["1.25", "2", "-3.5"],
    "text": ["'2026-01-02'", "'2026-01-06'", "'north'"],
    "clock": ["'02:00:00'", "'03:30:00'", "'05:00:01'"],
}
NOT = st.sampled_from(["", "NOT "])


@st.composite
def comparisons(draw) -> str:
    name = draw(st.sampled_from(sorted(VALUES)))
    one, two = (draw(st.sampled_from(VALUES[name])) for _ in range(2))
    sign, negate = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), draw(NOT)
    forms = [f"{name} {sign} {one}", f"{one} {sign} {name}", f"{name} {negate}IN ({one}, {two})"]
    forms += [f"{name} {negate}BETWEEN {one} AND {two}", f"{name} IS {negate}NULL"]
    return draw(st.sampled_from(forms))


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("{}({} {} {})".format, NOT, inner, st.sampled_from(["AND", "OR"]), inner)


def bounds_of(table: pa.Table) -> pa.Table:
    columns = {}
    for name in table.column_names:
        column = table[name]
        low, high = pc.min_max(column).values()
        columns[name] = pa.array([low, high, None if column.null_count else low], column.type)
    return pa.table(columns)


@settings(max_examples=120)
@given(
    where=st.recursive(comparisons(), joined, max_leaves=6),
    order=st.permutations(range(7)),
    cuts=st.sets(st.integers(1, 6), max_size=3),
)
def test_random_conditions_find_what_duckdb_finds_and_no_range_hides_it(where, order, cuts):
    keys = TABLE.take(pa.array(order))
    parts = [keys[start:stop] for start, stop in pairwise(sorted({0, *cuts, 7}))]

    rows = [order[i] for i in find_rows(keys, where)]

    assert sorted(rows) == ask_duckdb(keys, where)
    kept = find_ranges(pa.concat_tables(map(bounds_of, parts)), where)
    assert {i for i, part in enumerate(parts) if len(find_rows(part, where))} <= set(kept)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("month = 3", [1, 3]),  # of missing keys nothing is known
        ("month <> 3", [0, 1, 2, 3]),
        ("month >= 5 OR day < '2026-01-02'", [0, 2, 3]),
        ("NOT (month >= 3)", [0, 3]),
        ("month NOT BETWEEN 1 AND 2 AND day <= '2026-01-04'", [1]),
        ("origin IS NULL", [1]),
        ("origin IS NOT NULL", [0, 1, 2, 3]),
        ("origin = 'OAK' AND month IS NULL", []),
    ],
)
def test_tables_that_cannot_meet_a_condition_are_ruled_out(where, kept):
    bounds = [bounds_of(TABLE[i : i + 2]) for i in range(0, 7, 2)]

    assert find_ranges(pa.concat_tables(bounds), where) == kept


def test_a_text_is_a_date_whatever_stands_beside_it():
    texts = ["05.01.2026", "5/1/2026", "north", "20260105", "2026-01-05 00:00:01", "NA", "5.1.2026"]
    table = pa.table({"k": texts})

    assert find_rows(table, "k = '2026-01-05'").tolist() == [0, 3, 6]
    assert find_rows(table, "k > DATE '2026-01-05'").tolist() == [1, 2, 4]
    alone = [len(find_rows(table[i : i + 1], "k > '2026-01-05'")) for i in range(len(texts))]
    assert np.flatnonzero(alone).tolist() == [1, 2, 4]
    for where, day in {"k > '2026-01-05'": "13/1/2026", "k > '2026-02-30'": "2026-01-01"}.items():
        with pytest.raises(DataError, match=r"13/1/2026' cannot be read|no day '2026-02-30'"):
            find_rows(pa.table({"k": [*texts, day]}), where)


RAW = """x;price;sold;day;who;open
1;1.200,5;3;05.01.2026;Ann;true
2;7,25;;06.01.2026;;false
3;99;12;31.12.2025;Bob;
"""


@pytest.fixture
def cells(tmp_path) -> pa.RecordBatch:
    (tmp_path / "x.csv").write_text(RAW)
    names = ["price", "sold", "day", "who", "open"]
    (block,) = open_source(tmp_path / "x.csv", columns=["x"], keys=names)
    return block.keys


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("price > 50", [0, 2]),
        ("price = 7.25", [1]),
        ("price BETWEEN 7 AND 99", [1, 2]),
        ("price IN (99, 1200.5)", [0, 2]),
        ("-1 < sold AND sold < 10", [0]),
        ("sold IS NULL", [1]),
        ("sold = '12'", [2]),
        ("day >= '2026-01-01'", [0, 1]),
        ("day = '2026-01-06'", [1]),
        ("day = '31.12.2025'", [2]),
        ("day LIKE '%.2026' AND day < '2026-01-06'", [0]),
        ("who <> 'Ann'", [2]),
        ("open", [0]),
        ("open = false", [1]),
    ],
)
def test_conditions_are_on_what_the_cells_of_a_text_file_mean(cells, where, expected):
    assert find_rows(cells, where).tolist() == expected


def test_a_cell_that_is_no_number_is_named_by_a_condition_on_numbers(cells):
    with pytest.raises(DataError, match=r"column 'who' holds 'Ann', which is no number"):
        find_rows(cells, "who > 1")


def test_a_condition_tells_the_columns_it_names():
    joined = "a > 1 AND (b = 'x' OR \"my key\" IN (1, 2)) AND a < 9"
    others = "NOT c LIKE 'x%' AND d BETWEEN 1 AND 2 AND e IS NULL"

    assert sorted(columns_named(joined)) == ["a", "b", "my key"]
    assert sorted(columns_named(others)) == ["c", "d", "e"]
    with pytest.raises(DataError, match="cannot apply the condition"):
        columns_named("a >")


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.large_string())]
)
def test_a_text_is_the_same_however_a_table_holds_it(kind):
    """Categories of pandas are dictionaries, and its texts large strings, as those of Polars."""
    texts = pa.array(["05.01.2026", "06.01.2026", None, "a"])
    table = pa.table({"day": texts.cast(kind), "plain": texts})

    for where, rows in {
        "day > '2026-01-05'": [1, 3],
        "day LIKE '0%'": [0, 1],
        "day IS NULL": [2],
        "day = plain": [0, 1, 3],
    }.items():
        assert find_rows(table, where).tolist() == rows


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("month > 2.5", [1]),
        ("month < 9223372036854775808", [0, 1]),
        ("small < 300", [0, 1]),
        ("small = -1", []),
        ("small > 1e1", [1]),
        ("half >= 2.5", [1]),
        ("NOT nothing = 'a' OR nothing = 1", []),
        ("zoned < '2026-01-02 11:00:00'", [0]),  # DuckDB takes a time for one of its own zone
    ],
)
def test_times_are_utc_and_a_value_need_not_fit_into_the_type_of_its_column(where, rows):
    table = pa.table(
        {
            "month": [2, 3],
            "small": pa.array([1, 255], pa.uint8()),
            "half": np.array([1.5, 2.5], np.float16),
            "nothing": pa.nulls(2),
            "zoned": pa.array(NOONS[:2], pa.timestamp("us", "UTC")),
        }
    )

    assert find_rows(table, where).tolist() == rows
