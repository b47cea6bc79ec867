from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [1, np.nan, 3]),
        (pa.array([2**60 + 1, None, 3]), [2.0**60, np.nan, 3]),
        (pa.array([True, None, False]), [1, np.nan, 0]),
        (pa.array([True, False, True]), [1, 0, 1]),
        (pa.array([1.5, None, np.inf], pa.float32()), [1.5, np.nan, np.inf]),
        (pa.array(np.array([1.5, 2, 3], np.float16)), [1.5, 2, 3]),
        (pa.array([Decimal("1.25"), None, Decimal("-3.5")]), [1.25, np.nan, -3.5]),
        (pa.array([7, None, 7]).dictionary_encode(), [7, np.nan, 7]),
        (pa.array([True, None, True]).dictionary_encode(), [1, np.nan, 1]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], [4.0, None]), [4, 4, np.nan]),
        (pa.nulls(3), [np.nan] * 3),
        (pa.array([255, 0, 1], pa.uint8()), [255, 0, 1]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_every_numeric_type_becomes_numbers_and_null_becomes_nan(gather, column, expected):
    table = pa.table({"x": column, "w": column})

    values, weights = gather(table, weights="w")

    assert_array_equal(values[:, 0], expected)
    assert_array_equal(weights, expected)


def test_columns_of_unlike_dtypes_become_doubles(gather):
    mixed = pa.table({"a": np.ones(3, "f4"), "b": np.ones(3, "i8")})

    assert gather(mixed).dtype == np.float64


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(["x"]), "string"),
        (pa.array(["x"]).dictionary_encode(), "dictionary<values=string"),
        (pa.array([0], pa.date32()), r"date32\[day\]"),
        (pa.array([0], pa.timestamp("s")), r"timestamp\[s\]"),
        (pa.array([0], pa.duration("s")), r"duration\[s\]"),
        (pa.array([["x"]]), "list<"),
        (pa.array([{"k": 1}]), "struct<"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_other_types_are_refused_by_name(column, kind):
    with pytest.raises(DataError, match=rf"'t' \({kind}.*columns=\['x'\]"):
        open_source(pa.table({"x": [1.0], "t": column}))


def test_a_stream_is_consumed_batch_by_batch():
    asked = []

    def batches():
        for i in range(10):
            asked.append(i)
            yield pa.record_batch({"a": np.full(4, float(i))})

    schema = pa.schema({"a": pa.float64()})
    source = open_source(pa.RecordBatchReader.from_batches(schema, batches()))
    assert asked == []

    blocks = iter(source)
    next(blocks)
    next(blocks)

    assert asked == [0, 1]


def test_a_stream_can_be_read_once():
    source = open_source(TABLE.to_reader())
    list(source)

    with pytest.raises(DataError, match="an Arrow stream can be read only once"):
        iter(source)


def test_a_duckdb_query_streams(gather):
    query = "select range::double as a, (range % 7)::decimal(5, 2) as b from range(300000)"

    values = gather(duckdb.sql(query), block_rows=1000)

    assert_array_equal(values, np.stack([np.arange(3e5), np.arange(3e5) % 7], axis=1))


def test_a_stream_that_breaks_is_a_data_error():
    def batches():
        yield pa.record_batch({"a": [1.0]})
        raise OSError("the line went dead")

    schema = pa.schema({"a": pa.float64()})
    blocks = iter(open_source(pa.RecordBatchReader.from_batches(schema, batches())))

    next(blocks)
    with pytest.raises(DataError, match=r"cannot read the stream.*the line went dead"):
        next(blocks)


@pytest.mark.parametrize("data", [pa.array([1.0]), pa.chunked_array([[1.0]]), pa.scalar(1)])
def test_a_single_arrow_column_is_refused(data):
    with pytest.raises(DataError, match=r"cannot read .*(Array|Scalar)"):
        open_source(data)


def test_a_stream_of_one_series_is_refused():
    class SeriesOnly:
        def __arrow_c_stream__(self, requested_schema=None):
            return pl.Series([1.0]).__arrow_c_stream__(requested_schema)

    with pytest.raises(DataError, match="cannot read SeriesOnly as a table of Arrow columns"):
        open_source(SeriesOnly())
