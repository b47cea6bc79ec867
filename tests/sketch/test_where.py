from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError
from sketchshift.sketch.where import columns_named, find_ranges, find_rows

DAYS = [dt.date(2026, 1, day) for day in range(1, 8)]
NOONS = [dt.datetime(2026, 1, day, 12) for day in range(1, 8)]
TABLE = pa.table(
    {
        "day": DAYS,
        "origin": ["SFO", "OAK", None, "LAX", "SFO", "O'Hare", "oak"],
        "month": pa.array([1, 2, 3, 4, 5, 6, None], pa.int64()),
        "my key": [True, False, True, False, True, False, None],
        "moment": pa.array(
            [dt.datetime(2026, 1, day, 12) for day in range(1, 8)], pa.timestamp("ns")
        ),
        "zoned": pa.array(NOONS, pa.timestamp("us", "UTC")),
        "count": [10, 20, 30, 40, 50, 60, 70],
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
OURS = {
    "month > 2.5": [2, 3, 4, 5],
    "month < 9223372036854775808": [0, 1, 2, 3, 4, 5],
    "zoned < '2026-01-02 11:00:00'": [0],
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_duckdb_selects_the_same_rows(where: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    keys = TABLE.append_column("row", pa.array(range(7)))
    found = duckdb.sql(f"SELECT row FROM keys WHERE {where}\nORDER BY row").fetchall()
    assert len(keys) == 7
    assert find_rows(TABLE, where).tolist() == [row for (row,) in found]


@pytest.mark.parametrize(("where", "rows"), OURS.items())
def test_times_are_utc_and_numbers_compare_by_their_values(where: str, rows: list[int]) -> None:
    """DuckDB takes a time for one of its own zone."""
    assert find_rows(TABLE, where).tolist() == rows


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
ODD = TABLE.drop_columns(["my key", "zoned", "count"]).append_column(
    "sold", pa.array([Decimal(n) for n in ("1.25", "2.00", "-3.50")] * 2 + [None])
)
ODD = ODD.append_column(
    "text", pa.array(["2026-01-02", "north", "2026-01-06", "2026-01-0x", "south", None, "a"])
)
ODD = ODD.append_column("clock", pa.array([dt.time(hour) for hour in range(7)]))


def draw_condition(rng: np.random.Generator, depth: int = 0) -> str:
    if depth < 3 and rng.random() < 0.4:
        left, right = draw_condition(rng, depth + 1), draw_condition(rng, depth + 1)
        return f"{rng.choice(['', 'NOT '])}({left} {rng.choice(['AND', 'OR'])} {right})"
    name = rng.choice(list(VALUES))
    one, two = rng.choice(VALUES[name], 2)
    negate = rng.choice(["", "NOT "])
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    forms = [f"{name} {sign} {one}", f"{one} {sign} {name}", f"{name} {negate}IN ({one}, {two})"]
    forms += [f"{name} {negate}BETWEEN {one} AND {two}", f"{name} IS {negate}NULL"]
    return str(rng.choice(forms))


def bounds_of(table: pa.Table) -> pa.Table:
    columns = {}
    for name in table.column_names:
        column = table[name]
        low, high = pc.min_max(column).values()
        columns[name] = pa.array([low, high, None if column.null_count else low], column.type)
    return pa.table(columns)


@pytest.mark.parametrize("seed", range(3))
def test_random_conditions_find_what_duckdb_finds_and_no_range_hides_it(seed):
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(seed)
    for _ in range(40):
        where = draw_condition(rng)
        keys = ODD.take(pa.array(rng.permutation(7))).append_column("row", pa.array(range(7)))
        found = duckdb.sql(f"SELECT row FROM keys WHERE {where} ORDER BY row").fetchall()

        rows = find_rows(keys, where).tolist()

        assert rows == [row for (row,) in found], where
        starts = sorted({0, *rng.integers(1, 7, 3).tolist(), 7})
        parts = [keys.slice(a, b - a) for a, b in pairwise(starts)]
        kept = find_ranges(pa.concat_tables(map(bounds_of, parts)), where)
        assert {i for i, part in enumerate(parts) if len(find_rows(part, where))} <= set(kept), (
            where
        )


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
    keys = ODD.select(["day", "month", "origin"])
    bounds = [bounds_of(keys.slice(i, 2)) for i in range(0, 7, 2)]

    assert find_ranges(pa.concat_tables(bounds), where) == kept


def test_a_text_is_a_date_whatever_stands_beside_it():
    texts = [
        "05.01.2026",
        "5/1/2026",
        "north",
        "20260105",
        "2026-01-05 00:00:01",
        "NA",
        "5.1.2026",
    ]
    table = pa.table({"k": texts})

    assert find_rows(table, "k = '2026-01-05'").tolist() == [0, 3, 6]
    assert find_rows(table, "k > DATE '2026-01-05'").tolist() == [1, 2, 4]
    alone = [
        i
        for i, text in enumerate(texts)
        if len(find_rows(pa.table({"k": [text]}), "k > '2026-01-05'"))
    ]
    assert alone == [1, 2, 4]
    for where, day in {"k > '2026-01-05'": "13/1/2026", "k > '2026-02-30'": "2026-01-01"}.items():
        with pytest.raises(DataError, match=r"13/1/2026' cannot be read|no day '2026-02-30'"):
            find_rows(pa.table({"k": [*texts, day]}), where)


RAW = """price;sold;day;who;open
1.200,5;3;05.01.2026;Ann;true
7,25;;06.01.2026;;false
99;12;31.12.2025;Bob;
"""


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
def test_conditions_are_on_what_the_cells_of_a_text_file_mean(tmp_path, where, expected):
    path = tmp_path / "x.csv"
    path.write_text(RAW)
    raw = {name: ["price" if name == "sold" else "sold"] for name in ("price", "sold")}
    (priced,) = open_source(path, columns=raw["price"], keys=["price", "day", "who", "open"])
    (sold,) = open_source(path, columns=raw["sold"], keys=["sold"])
    table = pa.Table.from_batches([priced.keys]).append_column(
        sold.keys.schema.field("sold"), sold.keys["sold"]
    )

    assert find_rows(table, where).tolist() == expected
    if "sold" not in where:
        assert find_rows(priced.keys, where).tolist() == expected  # a batch


def test_a_cell_that_is_no_number_is_named_by_a_condition_on_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,k\n1,2\n2,red\n")
    (block,) = open_source(path, columns=["x"], keys=["k"])

    with pytest.raises(DataError, match=r"column 'k' holds 'red', which is no number"):
        find_rows(block.keys, "k > 1")
    assert find_rows(block.keys, "k = 'red'").tolist() == [1]


def test_text_that_is_no_file_is_compared_with_text_only():
    with pytest.raises(DataError, match="the column holds text: write '1' in single quotes"):
        find_rows(pa.table({"k": ["1", "2"]}), "k = 1")


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("a > 1", ("a",)),
        ("a > 1 AND (b = 'x' OR \"my key\" IN (1, 2)) AND a < 9", ("a", "b", "my key")),
        ("NOT c LIKE 'x%' AND d BETWEEN 1 AND 2 AND e IS NULL", ("c", "d", "e")),
    ],
)
def test_a_condition_tells_the_columns_it_names(where, names):
    assert sorted(columns_named(where)) == sorted(names)


@pytest.mark.parametrize("where", ["", "a >", "x" * 20_000])
def test_what_cannot_be_read_names_no_columns(where):
    with pytest.raises(DataError, match="cannot apply the condition"):
        columns_named(where)


TEXTS = ["05.01.2026", "06.01.2026", None, "a"]


@pytest.mark.parametrize(
    "held",
    [
        pa.array(TEXTS).dictionary_encode(),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.large_string()).dictionary_encode(),
        pa.array(TEXTS, pa.string_view()),
    ],
    ids=lambda held: str(held.type).partition(",")[0],
)
def test_a_text_is_the_same_however_a_table_holds_it(held):
    """Categories of pandas are dictionaries, and its texts large strings, as those of Polars."""
    table = pa.table({"day": held, "plain": TEXTS})
    expected = {"day > '2026-01-05'": [1, 3], "day LIKE '0%'": [0, 1], "day IS NULL": [2]}

    found = {where: find_rows(table, where).tolist() for where in expected}

    assert found == expected
    assert find_rows(table, "day = plain").tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("small < 300", [0, 1]),
        ("small = -1", []),
        ("small > 1e1", [1]),
        ("half >= 2.5", [1]),
        ("NOT nothing = 'a' OR nothing = 1", []),
    ],
)
def test_a_value_need_not_fit_into_the_type_of_its_column(where, rows):
    small, half = pa.array([1, 255], pa.uint8()), pa.array(np.array([1.5, 2.5], np.float16))
    table = pa.table({"small": small, "half": half, "nothing": pa.nulls(2)})

    assert find_rows(table, where).tolist() == rows


def test_columns_of_two_types_are_told_with_these():
    with pytest.raises(DataError, match="column 'a' holds int64 and column 'b' holds"):
        find_rows(pa.table({"a": [1], "b": ["x"]}), "a < b")
