from __future__ import annotations

import re

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


COLUMNS = [
    *(pa.array([1, None, 0]).cast(kind) for kind in (pa.uint8(), pa.int64(), pa.bool_())),
    *(pa.array([1, None, 0]).cast(kind) for kind in (pa.float16(), pa.float32())),
    pa.array([1, None, 0]).cast(pa.decimal128(21, 2)),
    *(pa.array(cells).dictionary_encode() for cells in ([1, None, 0], [True, None, False])),
    pa.compute.run_end_encode(pa.array([1.0, None, 0.0])),
]


def test_every_numeric_type_becomes_numbers_and_null_becomes_nan(gather):
    for column in COLUMNS:
        values, weights = gather(pa.table({"x": column, "w": column}), weights="w")

        assert_array_equal(values, [[1], [np.nan], [0]])
        assert_array_equal(weights, [1, np.nan, 0])


def test_numbers_without_gaps_and_gaps_without_numbers(check_rows):
    for column, expected in (
        (pa.array([True, False]), [[1], [0]]),
        (pa.array([2**60 + 1, None]), [[2.0**60], [np.nan]]),
        (pa.nulls(2), [[np.nan], [np.nan]]),
    ):
        check_rows(pa.table({"x": column}), expected)


def test_columns_of_unlike_dtypes_become_doubles(gather):
    mixed = pa.table({"a": np.ones(3, "f4"), "b": np.ones(3, "i8")})

    assert gather(mixed).dtype == np.float64


def test_other_types_are_refused_by_name():
    texts = (pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.string()))
    times = (pa.date32(), pa.timestamp("s"), pa.duration("s"))
    for kind in (*texts, *times, pa.struct({"k": pa.int64()})):
        table = pa.table({"x": [1.0], "t": pa.nulls(1, kind)})

        with pytest.raises(DataError, match=rf"'t' \({re.escape(str(kind)[:20])}.*columns=\['x'\]"):
            open_source(table)


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


def test_a_stream_that_breaks_is_a_data_error():
    def batches():
        yield pa.record_batch({"a": [1.0]})
        raise OSError("the line went dead")

    schema = pa.schema({"a": pa.float64()})
    blocks = iter(open_source(pa.RecordBatchReader.from_batches(schema, batches())))

    next(blocks)
    with pytest.raises(DataError, match=r"cannot read the stream.*the line went dead"):
        next(blocks)


def test_a_single_arrow_column_is_refused():
    class Series:
        def __arrow_c_stream__(self, requested_schema=None):
            return pl.Series([1.0]).__arrow_c_stream__(requested_schema)

    for data in (pa.array([1.0]), pa.chunked_array([[1.0]]), pa.scalar(1), Series()):
        with pytest.raises(DataError, match=r"cannot read .*(Array|Scalar|Series as a table)"):
            open_source(data)
