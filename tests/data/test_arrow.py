from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.errors import DataError


def test_every_numeric_type_becomes_numbers_and_null_becomes_nan(gather, check_rows):
    numbers = pa.array([1, None, 0])
    kinds = (pa.uint8(), pa.int64(), pa.bool_(), pa.float16(), pa.float32(), pa.decimal128(21, 2))
    for column in (
        *map(numbers.cast, kinds),
        numbers.dictionary_encode(),
        numbers.cast(pa.bool_()).dictionary_encode(),
        pa.compute.run_end_encode(numbers.cast(pa.float64())),
    ):
        values, weights = gather(pa.table({"x": column, "w": column}), weights="w")

        assert_array_equal(values, [[1], [np.nan], [0]])
        assert_array_equal(weights, [1, np.nan, 0])
    mixed = pa.table({"a": [True, False], "b": [2**60 + 1, None], "c": pa.nulls(2)})
    check_rows(mixed, [[1, 2.0**60, np.nan], [0, np.nan, np.nan]])


def test_other_types_are_refused_by_name():
    texts = (pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.string()))
    for kind in (*texts, pa.timestamp("s"), pa.duration("s"), pa.struct({"k": pa.int64()})):
        table = pa.table({"x": [1.0], "t": pa.nulls(1, kind)})

        with pytest.raises(DataError, match=rf"'t' \({re.escape(str(kind)[:20])}.*columns=\['x'\]"):
            open_source(table)


def test_a_stream_is_consumed_batch_by_batch_and_once():
    asked = []

    def batches():
        for i in range(10):
            asked.append(i)
            yield pa.record_batch({"a": [float(i)]})
        raise OSError("the line went dead")

    schema = pa.schema({"a": pa.float64()})
    source = open_source(pa.RecordBatchReader.from_batches(schema, batches()))
    assert asked == []

    blocks = iter(source)
    next(blocks)
    next(blocks)

    assert asked == [0, 1]
    with pytest.raises(DataError, match=r"cannot read the stream.*the line went dead"):
        list(blocks)
    with pytest.raises(DataError, match="an Arrow stream can be read only once"):
        iter(source)


def test_a_single_arrow_column_is_refused():
    series = SimpleNamespace(__arrow_c_stream__=pl.Series([1.0]).__arrow_c_stream__)
    for data in (pa.array([1.0]), pa.chunked_array([[1.0]]), pa.scalar(1), series):
        with pytest.raises(DataError, match=r"cannot read .*(Array|Scalar|space as a table)"):
            open_source(data)
