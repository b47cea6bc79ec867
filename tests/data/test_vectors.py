"""Columns of vectors: the same numbers give the same bytes, however they are stored."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift.data import Access, open_source
from sketchshift.errors import DataError, InvalidRowsError
from sketchshift.sketch import checkpoint, reading

N, D = 40, 3
X = np.random.default_rng(0).normal(scale=5, size=(N, D)).astype(np.float32)
SPEC = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)


def fixed(X):
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


def listed(X):
    ends = np.arange(0, X.size + 1, X.shape[1])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(X.ravel()))


def large(X):
    return listed(X).cast(pa.large_list(pa.from_numpy_dtype(X.dtype)))


def views(X):
    """List views that begin anywhere: here the last row lies first."""
    n, d = X.shape
    starts = pa.array(np.arange(n)[::-1] * d, pa.int32())
    sizes = pa.array(np.full(n, d), pa.int32())
    return pa.ListViewArray.from_arrays(starts, sizes, pa.array(X[::-1].ravel()))


def tensors(X):
    kind = pa.fixed_shape_tensor(pa.from_numpy_dtype(X.dtype), [X.shape[1]])
    return pa.ExtensionArray.from_storage(kind, fixed(X))


KINDS = [fixed, listed, large, views, tensors]


def beside(vectors):
    """A table with other columns, as they lie beside embeddings."""
    n = len(vectors)
    return pa.table({"id": range(n), "text": ["a"] * n, "v": vectors, "w": np.arange(1.0, n + 1)})


def write(table, path, rows=10):
    """A Parquet or Arrow file in parts of some rows."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=rows)
    return path


# Kinds of lists.


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def test_a_column_of_lists_of_any_kind_gives_its_rows(gather, check_rows, kind):
    """Also a slice, a batch, a stream, and a column without a table around it."""
    column = kind(X)
    table = pa.table({"v": column})

    check_rows(table, X)
    check_rows(table.slice(5, 11), X[5:16])
    assert len(gather(table.slice(N))) == 0
    check_rows(table.to_batches(max_chunksize=7)[2], X[14:21])
    check_rows(table.slice(5, 11).to_reader(max_chunksize=3), X[5:16])
    for vectors in (column, pa.chunked_array([column[:7], column[7:]])):
        check_rows(vectors, X)


def test_a_block_is_a_view_of_the_lists_and_keeps_their_dtype(kind):
    """List views lie in any order, so their rows are copied."""
    for dtype in ("f2", "f4", "f8", "i1", "i8", "u4"):
        array = np.abs(X).astype(dtype)
        column = kind(array)
        (block,) = open_source(pa.record_batch({"v": column}))
        stored = column.storage if isinstance(column, pa.ExtensionArray) else column

        assert_array_equal(block.values, array)
        assert block.values.dtype == dtype
        numbers = np.from_dlpack(stored.values)
        assert np.shares_memory(block.values, numbers) == (kind is not views)


def test_booleans_in_lists_are_numbers(check_rows):
    bits = pa.array([[True, False], [None, True]])

    check_rows(pa.table({"v": bits}), [[1, 0], [np.nan, 1]])


# Which columns are read.


def test_what_is_no_single_column_of_vectors_is_refused(check_rows, tmp_path):
    table, matrices = beside(fixed(X)), pa.fixed_shape_tensor(pa.float32(), [D, 1])
    two = pa.table({"a": fixed(X), "b": listed(2 * X)})
    tables = [pa.table({"v": listed(X)}), pa.table({"v": listed(X[:, :2].copy())})]
    tables.append(pa.table({"u": listed(X)}))
    paths = [write(t, tmp_path / f"{i}.parquet") for i, t in enumerate(tables)]
    cells = (pa.ExtensionArray.from_storage(matrices, fixed(X)), [[[1.0]]], [["a"]])
    starts = [pa.array([0, start], pa.int32()) for start in (-1, 2, 2**31 - 2)]
    beyond = [
        pa.ListViewArray.from_arrays(s, pa.array([2, 2], pa.int32()), pa.array([1.0, 2.0, 3.0]))
        for s in starts
    ]

    for data, columns, message in (
        (table, None, r"'v', beside 'id', 'text', 'w'\. .*columns=\['v'\], or .*\['id', 'w'\]"),
        (table, ["v", "id"], r"'v', beside 'id'\. .*columns=\['v'\]"),
        (two, None, r"columns of vectors, 'a', 'b'\. .*columns=\['a'\]"),
        (paths[:2], None, r"(?s)vectors of 3 numbers in column 'v'.*of 2 numbers"),
        (paths[::2], None, r"(?s)in column 'v'.*in column 'u'"),
        (iter(tables[::2]), None, r"vectors in column 'u', but block 0 has .*'v'"),
        *((pa.table({"v": c}), None, r"'v' .* cannot be read as numbers") for c in cells),
        *((pa.record_batch({"v": c}), None, "lists of column 'v' are damaged") for c in beyond),
    ):
        with pytest.raises(DataError, match=message):
            list(open_source(data, columns=columns))
    check_rows(two, 2 * X, columns=["b"])


# Vectors that are missing or of other lengths.

CELLS = [[1.0, 2.0], [3.0, 4.0], None, [5.0, None], [1.0, 2.0, 3.0], [], [6.0, 7.0]]
GOOD = np.array([[1.0, 2.0], [3.0, 4.0], [6.0, 7.0]])


RAGGED = {
    "table": lambda table, _: table,
    "views": lambda *_: pa.table({"v": pa.array(CELLS, pa.list_view(pa.float32()))}),
    "pandas": lambda table, _: pd.DataFrame({"v": CELLS}),
    "parquet": lambda table, folder: write(table, folder / "x.parquet", 3),
}


@pytest.mark.parametrize("name", RAGGED)
def test_faulty_vectors_are_named_by_their_row_or_left_out_and_counted(tmp_path, name):
    lists = pa.array([[0.0], [0.0], *CELLS], pa.list_(pa.float32()))
    data = RAGGED[name](pa.table({"v": lists}).slice(2), tmp_path)

    for read, argument in ((ss.plan, 1), (ss.sketch, SPEC)):
        with pytest.raises(InvalidRowsError, match=r"no vector in row 2 of .*on_invalid=\"skip\""):
            read(data, argument)
    sketch = ss.sketch(data, SPEC, on_invalid="skip")
    assert (sketch.count, sketch.n_invalid) == (3, 4)
    assert sketch.z.tobytes() == ss.sketch(GOOD, SPEC).z.tobytes()
    assert ss.plan(data, 1, on_invalid="skip") == ss.plan(GOOD, 1)


def test_the_fault_of_a_vector_is_named():
    pairs = pa.array([*CELLS[:2], None], pa.list_(pa.float64(), 2))
    for cells, message in (
        (CELLS[:2] + CELLS[4:], r"vector in row 2 of .*'v', has 3 numbers, and others have 2"),
        ([CELLS[5], *CELLS[:2]], r"vector in row 0 of .*'v', has 0 numbers, and others have 2"),
        (CELLS[:2] + CELLS[3:4], r"row 2 of .* has nan in column 1"),
        (pairs, "no vector in row 2 of table"),
    ):
        table = pa.table({"v": cells})
        with pytest.raises(InvalidRowsError, match=message):
            ss.sketch(table, SPEC)
    assert ss.sketch(table, SPEC, on_invalid="skip").mean.tolist() == [2.0, 3.0]


@pytest.fixture
def large_files(monkeypatch):
    """Plans draw 2000 rows from all along files, however small these are."""
    monkeypatch.setattr("sketchshift.data.sample.FEW_ROWS_FACTOR", 0)
    monkeypatch.setattr("sketchshift.data.sample.FEW_BYTES", 0)
    monkeypatch.setattr(reading, "ROWS_FOR_CELLS", 2000)


@pytest.mark.usefixtures("large_files")
def test_a_row_drawn_from_a_large_file_is_named_where_it_lies(tmp_path):
    for cell, weight, fault in ((None, 1.0, "no vector in"), ([1.0, 2.0], -1.0, "weights must be")):
        cells, weights = [[1.0, 2.0]] * 3000, np.ones(3000)
        cells[1000:1009], weights[1000:1009] = [cell] * 9, weight  # most of them are drawn
        table = pa.table({"v": pa.array(cells), "w": weights})
        path = write(table, tmp_path / "x.parquet", 500)

        with pytest.raises(InvalidRowsError, match=fault) as error:
            ss.plan(path, 1, columns=["v"], sample_weight="w")
        (row,) = re.findall(r"row (\d+) of", str(error.value))
        assert 1000 <= int(row) < 1009


NUMBERS = st.one_of(st.none(), st.integers(-100, 100))
LISTS = st.one_of(
    st.none(), st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, min_size=2, max_size=2)
)
ITEMS = [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.int64(), pa.decimal128(5, 2)]


@settings(max_examples=40)
@given(
    cells=st.lists(LISTS, max_size=30),
    first=st.integers(0, 5),
    kind=st.sampled_from([pa.list_, pa.large_list, pa.list_view, pa.large_list_view]),
    item=st.sampled_from(ITEMS),
    rows=st.integers(1, 7),
)
def test_any_lists_are_what_a_loop_over_them_finds(cells, first, kind, item, rows):
    """Rows of the commonest length; whatever is not such a row is NaN throughout."""
    column = pa.array([[7]] * first + cells, kind(item))[first:]
    source = open_source(pa.record_batch({"v": column}), block_rows=rows, skip_invalid=True)
    d = source.n_features

    values = [block.values for block in source]

    lengths = Counter(len(cell) for cell in cells if cell)
    assert lengths[d] == max(lengths.values(), default=0)
    expected = [cell if cell is not None and len(cell) == d else [None] * d for cell in cells]
    expected = np.array(expected, dtype=float).reshape(len(cells), d)
    assert_array_equal(np.concatenate([np.empty((0, d)), *values]), expected)


# No vectors at all.


def test_lists_without_rows_take_the_length_of_the_spec():
    empty, missing, full = (
        pa.table({"v": pa.array(cells, pa.list_(pa.float32()))})
        for cells in ([], [None, []], [[1.0, 2.0]])
    )

    assert ss.Sketcher(SPEC).update(empty).update(full).count == 1
    for table in (empty, missing):
        with pytest.raises(DataError, match="no vectors to plan on in column 'v'"):
            ss.plan(table, 1)
    with pytest.raises(DataError, match="no vectors"):
        ss.decoders.bandwidth(empty)


def test_a_file_without_rows_is_as_wide_as_the_others(check_rows, tmp_path):
    for i, part in enumerate((X[:0], X[:10], X[:0], X[10:])):
        write(pa.table({"v": listed(part)}), tmp_path / f"{i}.parquet")

    check_rows(tmp_path, X)


# Files.


def test_files_read_the_bytes_of_the_vectors_alone(check_rows, tmp_path):
    for kind in KINDS:
        check_rows(write(beside(kind(X)), tmp_path / "x.arrow", 9), X, columns=["v"])
    for kind, row_group in ((fixed, 7), (listed, 7), (large, 100), (tensors, 7)):
        path = write(beside(kind(X)), tmp_path / "x.parquet", row_group)

        check_rows(path, X, columns=["v"])
        source = open_source(path, columns=["v"])
        read = sum(stop - start for piece in source.pieces() for start, stop in piece.ranges)
        assert read < path.stat().st_size * 0.9
        assert (source.access, source.n_rows) == (Access.DISK, N)


def test_another_column_is_another_reading(tmp_path, monkeypatch):
    """A checkpoint of one column of vectors must not go on with another."""
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    path = write(pa.table({"a": fixed(X), "b": fixed(-X)}), tmp_path / "x.arrow")
    spec = ss.plan(X, 2)

    ss.sketch(path, spec, columns=["a"], checkpoint=tmp_path / "c")
    with pytest.raises(DataError, match="vector"):
        ss.sketch(path, spec, columns=["b"], checkpoint=tmp_path / "c")


# Frames.


def frames(X):
    yield pl.DataFrame({"v": pl.Series(X, dtype=pl.Array(pl.Float32, X.shape[1]))})
    yield pl.DataFrame({"v": pl.Series(X.tolist(), dtype=pl.List(pl.Float32))})
    for kind in (fixed, large):
        yield pd.DataFrame({"v": pd.Series(kind(X), dtype=pd.ArrowDtype(kind(X).type))})
    yield pd.DataFrame({"v": list(X)}, index=range(5, 5 + len(X)))
    yield pd.DataFrame({0: list(map(tuple, X.tolist()))})


def test_frames_and_series_of_vectors_are_read(check_rows):
    for frame in frames(X):
        check_rows(frame, X)
        assert open_source(frame).columns is None
        check_rows(frame[frame.columns[0]], X)


def test_objects_of_pandas_that_are_no_vectors_are_refused_by_their_row():
    for cells in ([*X, np.ones((2, 2)), *X], [*X, "text"]):
        with pytest.raises(DataError, match=rf"row {N} of the table .* is no vector of numbers"):
            list(open_source(pd.DataFrame({"v": cells})))


# Short floats.


def test_bfloat16_is_read_as_it_is(gather, check_rows):
    short = X.astype(ml_dtypes.bfloat16)

    values = gather(short)

    assert values.dtype == np.float32
    assert_array_equal(values, short.astype(np.float64))
    check_rows([short[:10], short[10:]], values)
    check_rows(pd.DataFrame({"v": list(short)}), values)
    assert_array_equal(ss.metrics.assign(short, X[:3]), ss.metrics.assign(values, X[:3]))


def test_bytes_of_no_type_are_no_numbers(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(ml_dtypes.bfloat16))

    with pytest.raises(DataError, match=r"V2 as real numbers.*astype\(np\.float32\)"):
        open_source(tmp_path / "x.npy")
    with pytest.raises(DataError, match="structured_to_unstructured"):
        open_source(np.zeros((2, 2), dtype=[("a", "f4")]))


class Tensor:
    """What of PyTorch's tensors is used here: one that is detached and here gives its numbers."""

    __module__ = "torch"

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, span):
        return Tensor(self.array[span])

    def detach(self):
        return SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=self._numpy, float=self._float))

    def _numpy(self):
        if self.array.dtype.kind == "V":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array

    def _float(self):
        return SimpleNamespace(numpy=lambda: self.array.astype(np.float32))


def test_tensors_of_pytorch_and_what_shares_memory_by_dlpack_are_read(check_rows):
    for dtype in (ml_dtypes.bfloat16, np.float16, np.float32, np.int64):
        array = X.astype(dtype)

        check_rows(Tensor(array), array.astype(np.float64))
    shared = SimpleNamespace(__dlpack__=X.__dlpack__, __dlpack_device__=X.__dlpack_device__)
    check_rows(shared, X)
