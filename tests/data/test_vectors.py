"""Columns of vectors: the same numbers give the same bytes, however they are stored."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

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


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def beside(vectors):
    """A table with other columns, as they lie beside embeddings."""
    n = len(vectors)
    return pa.table({"id": range(n), "text": ["a"] * n, "v": vectors, "w": np.arange(1.0, n + 1)})


# Kinds of lists.


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u4"])
def test_a_column_of_lists_gives_a_column_for_each_number(gather, kind, dtype):
    array = X.astype(dtype) if dtype != "u4" else np.abs(X).astype(dtype)

    values = gather(pa.table({"v": kind(array)}), block_rows=7)

    np.testing.assert_array_equal(values, array)
    assert values.dtype == dtype


def test_the_numbers_have_no_names(kind):
    source = open_source(beside(kind(X)), columns=["v"])

    assert source.columns is None
    assert (source.vector, source.n_features) == ("v", D)
    assert open_source(beside(kind(X)), columns=["id"]).vector is None


def test_a_slice_of_a_column_gives_its_own_rows(gather, kind):
    table = pa.table({"v": kind(X)})

    np.testing.assert_array_equal(gather(table.slice(5, 11)), X[5:16])
    assert len(gather(table.slice(N))) == 0
    np.testing.assert_array_equal(gather(table.to_batches(max_chunksize=7)[2]), X[14:21])
    np.testing.assert_array_equal(gather(table.slice(5, 11).to_reader(max_chunksize=3)), X[5:16])


def test_a_block_is_a_view_of_the_lists_where_it_can(kind):
    column = kind(X)
    (block,) = open_source(pa.record_batch({"v": column}))
    stored = column.storage if isinstance(column, pa.ExtensionArray) else column

    numbers = np.from_dlpack(stored.values)
    assert np.shares_memory(block.values, numbers) == (kind is not views)


def test_vectors_need_no_table_around_them(gather, kind):
    column = kind(X)

    for vectors in (column, pa.chunked_array([column[:7], column[7:]])):
        np.testing.assert_array_equal(gather(vectors), X)
    for frame in frames(X):
        series = frame[frame.columns[0]]
        np.testing.assert_array_equal(gather(series), X)
    with pytest.raises(DataError, match=r"one column.*to_frame"):
        open_source(pl.Series([1.0]))


def test_matrices_lists_of_lists_and_lists_of_text_are_no_vectors():
    matrices = pa.fixed_shape_tensor(pa.float32(), [D, 1])
    for cells in (pa.ExtensionArray.from_storage(matrices, fixed(X)), [[[1.0]]], [["a"]]):
        with pytest.raises(DataError, match=r"'v' .* cannot be read as numbers"):
            open_source(pa.table({"v": cells}))


def test_booleans_in_lists_are_numbers(gather):
    bits = pa.array([[True, False], [None, True]])

    np.testing.assert_array_equal(gather(pa.table({"v": bits})), [[1, 0], [np.nan, 1]])


# Which columns are read.


def test_vectors_beside_other_columns_are_refused_by_what_to_choose(kind):
    message = r"'v', beside 'id', 'text', 'w'\. .*columns=\['v'\], or .*columns=\['id', 'w'\]"

    with pytest.raises(DataError, match=message):
        open_source(beside(kind(X)))
    with pytest.raises(DataError, match=r"'v', beside 'id'\. .*columns=\['v'\]"):
        open_source(beside(kind(X)), columns=["v", "id"])


def test_of_two_columns_of_vectors_one_is_chosen(gather):
    table = pa.table({"a": fixed(X), "b": listed(2 * X)})

    with pytest.raises(DataError, match=r"columns of vectors, 'a', 'b'\. .*columns=\['a'\]"):
        open_source(table)
    np.testing.assert_array_equal(gather(table, columns=["b"]), 2 * X)


def test_weights_and_keys_are_no_columns_beside_vectors(kind):
    table = beside(kind(X)).drop_columns(["id"])
    spec = ss.plan(X, 2)

    slices = ss.sketch_by(table, "text", spec, sample_weight="w")

    assert slices.merge() == ss.sketch(X, spec, sample_weight=np.arange(1.0, N + 1))
    with pytest.raises(DataError, match=r"'v' .* cannot be read as weights"):
        ss.sketch(table, spec, columns=["w"], sample_weight="v")


def test_a_spec_with_names_asks_vectors_for_them():
    spec = ss.SketchSpec(2, sketch_size=10, bandwidth=1.0, columns=["x", "y"])

    with pytest.raises(DataError, match="has no columns 'x', 'y'"):
        ss.sketch(pa.table({"v": fixed(X)}), spec)


# Vectors that are missing or of other lengths.

CELLS = [[1.0, 2.0], [3.0, 4.0], None, [5.0, None], [1.0, 2.0, 3.0], [], [6.0, 7.0]]
GOOD = np.array([[1.0, 2.0], [3.0, 4.0], [6.0, 7.0]])


@pytest.fixture(params=["list", "large_list", "list_view", "pandas", "polars", "parquet", "arrow"])
def ragged(request, tmp_path):
    """CELLS from three rows on, in each kind of data."""

    def make(cells):
        kinds = {"large_list": pa.large_list, "list_view": pa.list_view}
        kind = kinds.get(request.param, pa.list_)(pa.float32())
        table = pa.table({"v": pa.array([[0.0]] * 2 + cells, kind)}).slice(2)
        if request.param == "pandas":
            return pd.DataFrame({"v": cells})
        if request.param == "polars":
            return pl.DataFrame({"v": pl.Series(cells, dtype=pl.List(pl.Float32))})
        if request.param == "parquet":
            pq.write_table(table, tmp_path / "x.parquet", row_group_size=3)
            return tmp_path / "x.parquet"
        if request.param == "arrow":
            with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as file:
                file.write_table(table, max_chunksize=3)
            return tmp_path / "x.arrow"
        return table

    return make


def test_faulty_vectors_are_left_out_and_counted(ragged):
    sketch = ss.sketch(ragged(CELLS), SPEC, on_invalid="skip")

    assert (sketch.count, sketch.n_invalid) == (3, 4)
    assert sketch.z.tobytes() == ss.sketch(GOOD, SPEC).z.tobytes()
    assert ss.plan(ragged(CELLS), 1, on_invalid="skip") == ss.plan(GOOD, 1)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (CELLS[:3], r"no vector in row 2 of .*, column 'v' .*on_invalid=\"skip\""),
        (CELLS[:2] + CELLS[4:], r"vector in row 2 of .*'v', has 3 numbers, and others have 2"),
        (CELLS[:2] + CELLS[5:], r"vector in row 2 of .*'v', has 0 numbers, and others have 2"),
        ([CELLS[4], *CELLS[:2]], r"vector in row 0 of .*'v', has 3 numbers, and others have 2"),
        (CELLS[:2] + CELLS[3:4], r"row 2 of .* has nan in column 1"),
    ],
)
def test_faulty_vectors_are_refused_by_their_row(ragged, cells, message):
    for call in (lambda data: ss.sketch(data, SPEC), lambda data: ss.plan(data, 1)):
        with pytest.raises(InvalidRowsError, match=message):
            call(ragged(cells))


def test_a_faulty_vector_of_a_fixed_size_is_missing():
    column = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2))
    table = pa.table({"v": column})

    with pytest.raises(InvalidRowsError, match="no vector in row 1 of table"):
        ss.sketch(table, SPEC)
    sketch = ss.sketch(table.slice(1), SPEC, on_invalid="skip")
    assert (sketch.count, sketch.n_invalid) == (1, 1)
    assert sketch.z.tobytes() == ss.sketch(np.array([[3.0, 4.0]]), SPEC).z.tobytes()


def test_a_row_drawn_from_a_large_file_is_named_where_it_lies(tmp_path, monkeypatch):
    monkeypatch.setattr("sketchshift.data.sample.FEW_ROWS_FACTOR", 0)
    monkeypatch.setattr("sketchshift.data.sample.FEW_BYTES", 0)
    monkeypatch.setattr(reading, "ROWS_FOR_CELLS", 7000)
    cells, weights = [[1.0, 2.0]] * 9000, np.ones(9000)
    faults = {"no vector in": (None, 1.0), "nan in column 1": ([1.0, None], 1.0)}
    faults |= {"weights must be": ([1.0, 2.0], -1.0)}
    for fault, (cell, weight) in faults.items():
        for row in range(5000, 5009):  # of which most are drawn
            cells[row], weights[row] = cell, weight
        table = pa.table({"v": pa.array(cells), "w": weights})
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=1500)

        with pytest.raises(InvalidRowsError, match=fault) as error:
            ss.plan(tmp_path / "x.parquet", 1, columns=["v"], sample_weight="w")
        (row,) = re.findall(r"row (\d+) of", str(error.value))
        assert 5000 <= int(row) < 5009


def test_vectors_of_another_length_than_the_spec_are_refused(kind):
    with pytest.raises(DataError, match=r"3 columns, and the spec has n_features=2"):
        ss.sketch(pa.table({"v": kind(X)}), SPEC)


@pytest.mark.parametrize("start", [-1, 2, 2**31 - 2])
def test_lists_that_reach_beyond_their_numbers_are_damaged(start):
    starts, sizes = pa.array([0, start], pa.int32()), pa.array([2, 2], pa.int32())
    column = pa.ListViewArray.from_arrays(starts, sizes, pa.array([1.0, 2.0, 3.0]))

    with pytest.raises(DataError, match="lists of column 'v' are damaged"):
        list(open_source(pa.record_batch({"v": column})))


NUMBERS = st.one_of(st.none(), st.integers(-100, 100))
LISTS = st.one_of(
    st.none(), st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, min_size=2, max_size=2)
)
ITEMS = [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.int64(), pa.decimal128(5, 2)]


@settings(deadline=None)
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
    np.testing.assert_array_equal(np.concatenate([np.empty((0, d)), *values]), expected)


# No vectors at all.


def test_lists_without_rows_take_the_length_of_the_spec():
    empty = pa.table({"v": pa.array([], pa.list_(pa.float32()))})
    full = pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32()))})

    assert ss.Sketcher(SPEC).update(empty).update(full).count == 1
    with pytest.raises(DataError, match="no vectors to plan on in column 'v'"):
        ss.plan(empty, 1)
    with pytest.raises(DataError, match="no vectors to plan on in column 'v'"):
        ss.plan(pa.table({"v": pa.array([None, []], pa.list_(pa.float32()))}), 1)
    with pytest.raises(DataError, match="no vectors"):
        ss.decoders.bandwidth(empty)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_file_without_rows_is_as_wide_as_the_others(tmp_path, position):
    parts = [X[:10], X[10:]]
    parts.insert(position, X[:0])
    for i, part in enumerate(parts):
        pq.write_table(pa.table({"v": listed(part)}), tmp_path / f"{i}.parquet")

    values = np.concatenate([block.values for block in open_source(tmp_path)])
    np.testing.assert_array_equal(values, X)


def test_files_of_other_vectors_are_not_read_as_one(tmp_path):
    pq.write_table(pa.table({"v": listed(X)}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"v": listed(X[:, :2].copy())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"u": listed(X)}), tmp_path / "2.parquet")

    with pytest.raises(DataError, match=r"(?s)vectors of 3 numbers in column 'v'.*of 2 numbers"):
        open_source([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    with pytest.raises(DataError, match=r"(?s)in column 'v'.*in column 'u'"):
        open_source([tmp_path / "0.parquet", tmp_path / "2.parquet"])


def test_blocks_of_other_vectors_are_not_read_as_one():
    other = pa.table({"u": listed(X)})

    with pytest.raises(DataError, match=r"vectors in column 'u', but block 0 has .*'v'"):
        list(open_source(iter([pa.table({"v": listed(X)}), other])))


# Files.


@pytest.mark.parametrize("row_group", [7, 100])
def test_parquet_reads_the_bytes_of_the_vectors_alone(gather, tmp_path, kind, row_group):
    vectors = listed(X) if kind is views else kind(X)  # Parquet has no views
    path = tmp_path / "x.parquet"
    pq.write_table(beside(vectors), path, row_group_size=row_group)

    np.testing.assert_array_equal(gather(path, columns=["v"]), X)
    source = open_source(path, columns=["v"])
    read = sum(stop - start for piece in source.pieces() for start, stop in piece.ranges)
    assert read < path.stat().st_size * 0.9
    assert source.access is Access.DISK
    assert source.n_rows == N


@pytest.mark.parametrize("form", ["file", "stream"])
def test_arrow_files_are_read(gather, tmp_path, kind, form):
    path, table = tmp_path / "x.arrow", beside(kind(X))
    with getattr(pa.ipc, f"new_{form}")(path, table.schema) as file:
        file.write_table(table, max_chunksize=9)

    np.testing.assert_array_equal(gather(path, columns=["v"]), X)


class OtherDataset(ds.InMemoryDataset):
    """A dataset of another library, such as Lance's: it derives from Arrow's."""


def test_datasets_of_other_libraries_are_read(gather, tmp_path):
    dataset = OtherDataset(beside(fixed(X)))

    np.testing.assert_array_equal(gather(dataset, columns=["v"]), X)
    (tmp_path / "x.lance").mkdir()
    with pytest.raises(DataError, match=r"Pass lance\.dataset\(\.\.\.\) of it"):
        open_source(tmp_path / "x.lance")


def test_rows_are_drawn_from_all_along_a_large_file(tmp_path, monkeypatch):
    """The plan of vectors is that of the same numbers in columns of their own."""
    monkeypatch.setattr("sketchshift.data.sample.FEW_ROWS_FACTOR", 0)
    monkeypatch.setattr("sketchshift.data.sample.FEW_BYTES", 0)
    monkeypatch.setattr(reading, "ROWS_FOR_CELLS", 3000)
    array = np.random.default_rng(1).normal(size=(9000, 4))
    columns = pa.table({f"x{j}": column for j, column in enumerate(array.T)})
    for name, table in {"s": columns, "v": pa.table({"v": fixed(array)})}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=1000)
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", table.schema) as file:
            file.write_table(table, max_chunksize=1000)

    for end in ("parquet", "arrow"):
        ours, theirs = (
            ss.plan(tmp_path / f"{name}.{end}", 3, columns=names)
            for name, names in (("v", ["v"]), ("s", columns.column_names))
        )
        assert ours.columns is None
        assert ours == dataclasses.replace(theirs, columns=None)


def test_another_column_is_another_reading(tmp_path, monkeypatch):
    """A checkpoint of one column of vectors must not go on with another."""
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    path, table = tmp_path / "x.arrow", pa.table({"a": fixed(X), "b": fixed(-X)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=10)
    spec, seen = ss.plan(X, 2), []

    def stop(n_rows, share):
        seen.append(n_rows)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ss.sketch(path, spec, columns=["a"], checkpoint=tmp_path / "c", progress=stop)
    assert (tmp_path / "c").exists()
    with pytest.raises(DataError, match="vector"):
        ss.sketch(path, spec, columns=["b"], checkpoint=tmp_path / "c")


# Frames.


def frames(X):
    yield pl.DataFrame({"v": pl.Series(X, dtype=pl.Array(pl.Float32, X.shape[1]))})
    yield pl.DataFrame({"v": pl.Series(X.tolist(), dtype=pl.List(pl.Float32))})
    for kind in (fixed, listed, large):
        yield pd.DataFrame({"v": pd.Series(kind(X), dtype=pd.ArrowDtype(kind(X).type))})
    yield pd.DataFrame({"v": list(X)})
    yield pd.DataFrame({"v": list(X.astype("f8").tolist())}, index=range(5, 5 + len(X)))
    yield pd.DataFrame({"v": [tuple(row) for row in X.astype("f8").tolist()]})
    yield pd.DataFrame({0: list(X)})


def test_frames_with_vectors_are_read(gather, block_rows):
    for frame in frames(X):
        np.testing.assert_array_equal(gather(frame, block_rows=block_rows), X)
        assert open_source(frame).columns is None


def test_objects_of_pandas_that_are_no_vectors_are_refused_by_their_row():
    cells = [*X, np.ones((2, 2)), *X]

    with pytest.raises(DataError, match=rf"row {N} of the table .* is no vector of numbers"):
        list(open_source(pd.DataFrame({"v": cells})))
    with pytest.raises(DataError, match=rf"row {N} of the table .* is no vector of numbers"):
        list(open_source(pd.DataFrame({"v": [*X, "text"]})))


def test_many_missing_objects_of_pandas_are_rows_that_are_left_out():
    frame = pd.DataFrame({"v": [*X[:2, :2], *[None] * 3000, *X[2:, :2]]})

    assert ss.sketch(frame, SPEC, on_invalid="skip").n_invalid == 3000


def test_estimators_read_a_column_of_vectors():
    expected = ss.CompressiveKMeans(2, random_state=0).fit(X)

    for table in [*frames(X), pa.table({"v": fixed(X)})]:
        found = ss.CompressiveKMeans(2, random_state=0).fit(table)
        np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
        np.testing.assert_array_equal(found.predict(table), expected.predict(X))


# Short floats.


def test_bfloat16_is_read_as_it_is(gather, block_rows):
    short = X.astype(ml_dtypes.bfloat16)

    values = gather(short, block_rows=block_rows)

    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, short.astype(np.float64))
    assert ss.sketch(short, ss.plan(short, 2)) == ss.sketch(values, ss.plan(values, 2))
    np.testing.assert_array_equal(gather([short[:10], short[10:]]), values)
    np.testing.assert_array_equal(gather(pd.DataFrame({"v": list(short)})), values)
    np.testing.assert_array_equal(ss.metrics.assign(short, X[:3]), ss.metrics.assign(values, X[:3]))
    fitted = [ss.CompressiveKMeans(2, random_state=0).fit(rows) for rows in (short, values)]
    np.testing.assert_array_equal(*(fit.cluster_centers_ for fit in fitted))


def test_bytes_of_no_type_are_no_numbers(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(ml_dtypes.bfloat16))

    with pytest.raises(DataError, match=r"V2 as real numbers.*astype\(np\.float32\)"):
        open_source(tmp_path / "x.npy")
    with pytest.raises(DataError, match="structured_to_unstructured"):
        open_source(np.zeros((2, 2), dtype=[("a", "f4")]))


class OnlyDlpack:
    """An array of a library that shares memory in no other way."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_are_shared_by_dlpack(gather):
    np.testing.assert_array_equal(gather(OnlyDlpack(X)), X)


class Tensor:
    """What of PyTorch's tensors is used here, as its documentation has it."""

    def __init__(self, array, *, requires_grad=True):
        self._array, self.shape, self.ndim = array, array.shape, array.ndim
        self._requires_grad = requires_grad

    def __getitem__(self, span):
        return Tensor(self._array[span])

    def detach(self):
        return Tensor(self._array, requires_grad=False)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self._array.astype(np.float32), requires_grad=self._requires_grad)

    def numpy(self):
        if self._requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self._array.dtype.kind == "V":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


Tensor.__module__ = "torch"


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.int64])
def test_tensors_of_pytorch_are_read(gather, block_rows, dtype):
    array = X.astype(dtype)

    values = gather(Tensor(array), block_rows=block_rows)

    np.testing.assert_array_equal(values, array.astype(np.float64))
    fitted = [ss.CompressiveKMeans(2, random_state=0).fit(rows) for rows in (Tensor(array), values)]
    np.testing.assert_array_equal(*(fit.cluster_centers_ for fit in fitted))


# All ways at once.


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 9),
    dtype=st.sampled_from(["float16", "float32", "float64", "int16"]),
    start=st.integers(0, 5),
    seed=st.integers(0, 2**31),
)
def test_the_same_numbers_give_the_same_bytes(tmp_path_factory, n, d, dtype, start, seed):
    folder = tmp_path_factory.mktemp("ways")
    longer = np.random.default_rng(seed).normal(scale=20, size=(start + n, d)).astype(dtype)
    array = longer[start:]
    ways = [pa.table({"v": kind(longer)}).slice(start) for kind in KINDS]
    ways += [array.tolist(), np.asfortranarray(array), pd.DataFrame({"v": list(array)})]
    np.save(folder / "c.npy", array)
    np.save(folder / "f.npy", np.asfortranarray(array))
    save_file({"v": array.copy()}, folder / "x.safetensors")
    pq.write_table(ways[0], folder / "x.parquet", row_group_size=1 + n // 3)
    ways += [folder / name for name in ("c.npy", "f.npy", "x.safetensors", "x.parquet")]

    expected = ss.sketch(array, n_clusters=2)

    for way in ways:
        assert ss.sketch(way, n_clusters=2).to_bytes() == expected.to_bytes()


# The page.

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"


def test_the_lines_of_the_page_give_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    array = (rng.normal(size=(200, D)) + 20 * np.arange(200)[:, None] % 200).astype(np.float16)
    table = pa.table({"day": ["a", "b"] * 100, "embedding": fixed(array)})
    np.save("vectors.npy", array)
    save_file({"embedding": array}, "vectors.safetensors")
    pq.write_table(table, "texts.parquet")
    with pa.ipc.new_file("texts.arrow", table.schema) as file:
        file.write_table(table)
    section = PAGE.read_text("utf-8").partition("## Vectors and embeddings")[2]
    lines = section.partition("```python\n")[2].partition("```")[0].splitlines()
    names = {"ss": ss, "vectors": array, "table": table, "frame": pl.from_arrow(table)}

    results = [eval(line, names) for line in lines]

    expected = ss.sketch(array, n_clusters=10)
    assert len(results) == 9
    assert [result.to_bytes() for result in results[:7]] == [expected.to_bytes()] * 7
    assert results[7].merge().to_bytes() == expected.to_bytes()
    assert results[8].labels_.tolist() == results[8].labels_[:10].tolist() * 20
