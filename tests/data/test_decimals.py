"""Decimals are the floats nearest to them, as text and Python read them, however they come in."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sketchshift.data import open_source

RNG = np.random.default_rng(8)
NUMBERS = [Decimal(int(n)).scaleb(-9) for n in RNG.integers(10**16, 10**18, 300)]
FLOATS = np.array([float(number) for number in NUMBERS])
TYPES = {"decimal32": pa.decimal32, "decimal64": pa.decimal64}
TYPES |= {"decimal128": pa.decimal128, "decimal256": pa.decimal256}
MOST_DIGITS = {"decimal32": 9, "decimal64": 18, "decimal128": 38, "decimal256": 76}


def table():
    """Decimals beside their floats, which weigh what the decimals do."""
    column = pa.array(NUMBERS, pa.decimal128(38, 9))
    return pa.table({"x": column, "y": FLOATS, "w": column})


def written(path, write):
    write(table(), path)
    return path


SOURCES = {
    "table": lambda _: table(),
    "stream": lambda _: table().to_reader(max_chunksize=300),
    "dictionary": lambda _: table().set_column(0, "x", table()["x"].dictionary_encode()),
    "pandas": lambda _: table().to_pandas(types_mapper=pd.ArrowDtype),
    "parquet": lambda folder: written(folder / "x.parquet", pq.write_table),
    "ipc": lambda folder: written(folder / "x.arrow", feather.write_feather),
}


@pytest.mark.parametrize("source", SOURCES)
def test_decimals_are_the_floats_that_python_reads(tmp_path, gather, source):
    """Arrow's own cast is one unit off for hundreds of these."""
    values, weights = gather(SOURCES[source](tmp_path), weights="w")

    assert_array_equal(values, np.column_stack([FLOATS, FLOATS]))
    assert_array_equal(weights, FLOATS)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=25)
@given(data=st.data())
def test_every_decimal_type_and_scale_is_rounded_once(kind, data):
    most = MOST_DIGITS[kind]
    precision = data.draw(st.integers(1, most))
    scale = data.draw(st.integers(-4 if most > 18 else 0, precision))
    whole = st.integers(-(10**precision) + 1, 10**precision - 1)
    near = st.integers(2**53 - 4, 2**53 + 4).filter(lambda n: n < 10**precision)
    whole = whole | near if precision > 16 else whole
    numbers = data.draw(st.lists(st.none() | whole, min_size=1, max_size=20))
    decimals = [None if n is None else Decimal(f"{n}e{-scale}") for n in numbers]
    column = pa.array([None, *decimals], TYPES[kind](precision, scale))[1:]  # with an offset

    (block,) = open_source(pa.table({"x": column}))

    expected = [np.nan if number is None else float(number) for number in decimals]
    assert_array_equal(block.values[:, 0], expected)
