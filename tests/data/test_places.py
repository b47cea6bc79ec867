"""Large files: rows from all along them, and no more read than that."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchshift.data import Access, memory, open_source
from sketchshift.data import sample as sampling
from sketchshift.data.sample import by_position, draw_rows, share_out, spread

N = 50_000
X = np.sort(np.random.default_rng(0).normal(size=(N, 2)), axis=0)  # sorted: the head is far out
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "w": np.arange(N) + 1.0, "t": ["z"] * N})


def write_ipc(path, table, new=pa.ipc.new_file):
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def write_parts(folder, table, n_parts=200):
    folder.mkdir()
    for i in range(n_parts):
        rows = N // n_parts
        part = table.slice(i * rows, rows)
        pa.parquet.write_table(part, folder / f"{i:03}.parquet")


def write_csv(path, table):
    pa.csv.write_csv(table, path)


WRITERS = {
    "one.parquet": pa.parquet.write_table,
    "groups.parquet": lambda t, path: pa.parquet.write_table(t, path, row_group_size=300),
    "table.csv": lambda t, path: write_csv(path, t),
    "table.tsv": lambda t, path: path.write_bytes(
        "\n".join(["a\tb\tw"] + [f"{a}\t{b}\t{i + 1}" for i, (a, b) in enumerate(X)]).encode()
    ),
    "file.arrow": lambda t, path: write_ipc(path, t),
    "stream.arrow": lambda t, path: write_ipc(path, t, pa.ipc.new_stream),
    "parts": lambda t, path: write_parts(path, t),
    "array.npy": lambda t, path: np.save(path, X),
    "columns.npy": lambda t, path: np.save(path, np.asfortranarray(X)),
}
NOT_READ = set(WRITERS) - {"stream.arrow"}  # which can only be read from start to end


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """These small files count as large ones."""
    monkeypatch.setattr(sampling, "FEW_BYTES", 0)
    monkeypatch.setattr(sampling, "FEW_ROWS_FACTOR", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    for name, write in WRITERS.items():
        write(TABLE, folder / name)
    (folder / "packed.csv.gz").write_bytes(gzip.compress((folder / "table.csv").read_bytes(), 1))
    return folder


def draw(data, n_rows=1000, seed=0, **options):
    named = not str(data).endswith(".npy")
    source = open_source(data, columns=["a", "b"] if named else None, **options)
    return draw_rows(source, n_rows, seed=seed, keep=lambda _: None)


@pytest.mark.parametrize("name", [*WRITERS, "packed.csv.gz"])
def test_a_sorted_file_is_sampled_from_all_along(name, folder):
    """1000 rows of a normal law: their mean is off by 0.03, that of the first 1000 by 2.4."""
    values = draw(folder / name).values

    assert len(values) == 1000
    assert X[:1000].mean() < -2.2
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(values.std(axis=0), 1.0, atol=0.1)
    assert values.min() < -2.0
    assert values.max() > 2.0


@pytest.mark.parametrize("name", [*WRITERS, "packed.csv.gz"])
def test_what_is_drawn_are_rows_of_the_file_each_at_most_once(name, folder):
    values = draw(folder / name, 2500, seed=3).values

    rows = np.searchsorted(X[:, 0], values[:, 0])
    np.testing.assert_array_equal(X[rows], values)
    assert len(np.unique(rows)) == len(rows)


@pytest.mark.parametrize("name", sorted(NOT_READ))
def test_a_large_file_is_not_read_from_start_to_end(name, folder):
    source = open_source(folder / name, columns=None if name.endswith(".npy") else ["a", "b"])

    def read():
        raise AssertionError("read from the start")

    sample = draw_rows(replace(source, read=read), 500, seed=0, keep=lambda _: None)

    assert len(sample.values) == 500


@pytest.mark.parametrize("name", [*WRITERS, "packed.csv.gz"])
def test_the_same_seed_draws_the_same_rows_and_another_one_others(name, folder):
    first, again, other = (draw(folder / name, 200, seed).values for seed in (1, 1, 2))

    np.testing.assert_array_equal(first, again)
    assert first.tolist() != other.tolist()


@pytest.mark.parametrize("name", ["one.parquet", "table.csv", "table.tsv", "file.arrow", "parts"])
def test_weights_are_drawn_with_their_rows(name, folder):
    sample = draw(folder / name, weights="w")

    np.testing.assert_array_equal(X[sample.weights.astype(int) - 1], sample.values)


@pytest.mark.parametrize("name", [*WRITERS, "packed.csv.gz"])
def test_the_rows_of_every_block_can_be_named(name, folder):
    """What a message says about a row's place is where the row lies."""
    source = open_source(folder / name, columns=None if name.endswith(".npy") else ["a", "b"])
    named = []

    def keep(block):
        named.append((block.source, block.first_row, block.values[0, 0]))

    draw_rows(source, 100, seed=0, keep=keep)

    for where, row, value in named[::10]:
        if where.startswith("record batch"):
            row += 700 * int(where.split()[2])
        elif "counted from byte" in where:
            text = (folder / name).read_bytes()
            begin = int(where.split(",")[-2].split()[-1])
            begin = text.index(b"\n", begin - 1) + 1
            assert (
                float(text[begin:].split(b"\n")[row].replace(b"\t", b",").split(b",")[0]) == value
            )
            continue
        elif name == "parts":
            row += N // 200 * int(where[-len("000.parquet") :].split(".")[0])
        assert X[row, 0] == value


def test_few_of_many_files_are_opened(folder, monkeypatch):
    opened = []
    original = pa.parquet.ParquetFile.iter_batches

    def iter_batches(self, *args, **options):
        opened.append(self)
        return original(self, *args, **options)

    source = open_source(folder / "parts", columns=["a", "b"])
    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", iter_batches)
    sample = draw_rows(source, 1000, seed=0, keep=lambda _: None)

    assert 32 <= len(opened) <= 64
    assert len(sample.values) >= 900


def test_files_are_drawn_from_in_proportion_to_their_rows(tmp_path):
    sizes = [10_000, 100, 30_000]
    for i, size in enumerate(sizes):
        np.save(
            tmp_path / f"{i}.npy", np.full((size, 1), float(i)) + np.arange(size)[:, None] / 1e9
        )

    values = draw_rows(open_source(tmp_path), 4010, seed=0, keep=lambda _: None).values

    counts = np.bincount(np.rint(values[:, 0]).astype(int), minlength=3)
    np.testing.assert_allclose(counts, [1000, 10, 3000], atol=3)


def test_record_batches_of_all_sizes_are_drawn_from_in_proportion(tmp_path):
    """Every second batch is ten times as long as the others."""
    schema = pa.schema([("a", pa.float64())])
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_file(file, schema) as out:
        for i in range(200):
            values = np.full(1000 if i % 2 else 100, float(i % 2)) + np.arange(i, i + 1) / 1e6
            out.write_batch(pa.record_batch([pa.array(values)], schema=schema))

    values = draw_rows(open_source(tmp_path / "x.arrow"), 2000, seed=0, keep=lambda _: None).values

    assert values.round().mean() == pytest.approx(10 / 11, abs=0.04)


def test_cells_of_several_lines_are_not_torn_apart(tmp_path):
    """Seeks land inside quoted cells that hold lines like those of the table, but not quite."""
    story = '"one line,\nnext 1,2 line\n3,4\nlast"'
    lines = [f"{i},{story},{i + 0.5}" for i in range(3000)]
    (tmp_path / "x.csv").write_text("\n".join(["n,story,y", *lines]))

    source = open_source(tmp_path / "x.csv", columns=["n", "y"])
    values = draw_rows(source, 300, seed=0, keep=lambda _: None).values

    assert len(values) >= 150
    np.testing.assert_array_equal(values[:, 1], values[:, 0] + 0.5)
    assert values[:, 0].mean() == pytest.approx(1500, abs=250)


def test_a_text_file_that_cannot_be_cut_is_read_from_start_to_end(tmp_path):
    """Carriage returns alone end its lines, and a seek looks for line feeds."""
    (tmp_path / "x.csv").write_bytes(b"\r".join([b"n,y", *(b"%d,1" % i for i in range(5000))]))

    values = draw_rows(open_source(tmp_path / "x.csv"), 300, seed=0, keep=lambda _: None).values

    assert len(values) == 300
    assert values[:, 0].mean() == pytest.approx(2500, abs=450)  # 5 standard deviations


def test_a_long_text_without_line_feeds_is_not_cut_in_the_middle_of_a_cell(tmp_path, monkeypatch):
    """A piece of 1 MiB may end within a cell, and what is left there is no value."""
    monkeypatch.setattr("sketchshift.data.text_files.LONGEST_LINE", 1000)
    rows = b"\r".join(b"%d,%d" % (i, 10**6) for i in range(5000))
    for name, header in (("returns.csv", b"n,y\r"), ("mixed.csv", b"n,y\n")):
        (tmp_path / name).write_bytes(header + rows)

        source = open_source(tmp_path / name)
        values = draw_rows(source, 300, seed=0, keep=lambda _: None).values

        assert len(values) == 300
        assert set(values[:, 1]) == {10**6}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("break_", ["\n", "\r\n"])
def test_blank_lines_before_the_header_are_skipped_at_every_place(tmp_path, break_, mark):
    lines = [mark, "", "n,y", *(f"{i},{i}" for i in range(2000))]
    (tmp_path / "x.csv").write_bytes(break_.join(lines).encode())
    source = open_source(tmp_path / "x.csv")

    values = np.concatenate([block.values for block in source.across(300, 64, 0)])

    assert len(values) >= 150
    np.testing.assert_array_equal(values[:, 0], values[:, 1])


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_first_and_last_line_of_a_text_file_can_be_drawn(ending, tmp_path):
    """A file of ten lines, asked for many rows: as many seeks as there are bytes find all."""
    break_ = ending or "\n"
    (tmp_path / "x.csv").write_bytes(
        (break_.join(["n,y", *(f"{i},{i}" for i in range(10))]) + ending).encode()
    )
    source = open_source(tmp_path / "x.csv")

    seen = {block.values[0, 0] for block in source.across(60, 64, 0)}

    assert seen == set(np.arange(10.0))


def test_a_dataset_is_read_once_from_start_to_end(folder):
    dataset = pa.dataset.dataset(folder / "parts").filter(pa.compute.field("a") > 0)
    source = open_source(dataset, columns=["a", "b"])

    values = draw_rows(source, 500, seed=0, keep=lambda _: None).values

    assert source.access is Access.DISK
    assert len(values) == 500
    assert values[:, 0].min() > 0
    assert values[:, 0].mean() == pytest.approx(np.sqrt(2 / np.pi), abs=0.14)


def test_a_large_memory_map_is_a_file_and_a_small_one_is_memory(folder, monkeypatch):
    mapped = np.load(folder / "array.npy", mmap_mode="r")
    weights = np.arange(N) + 1.0
    assert open_source(mapped).access is Access.MEMORY

    monkeypatch.setattr(memory, "LARGE_MAP", 0)
    source = open_source(mapped, weights=weights)
    sample = draw_rows(source, 1000, seed=0, keep=lambda _: None)

    assert source.access is Access.DISK
    np.testing.assert_array_equal(X[sample.weights.astype(int) - 1], sample.values)
    assert sample.values.mean() == pytest.approx(0.0, abs=0.1)


@given(n=st.integers(1, 200), length=st.integers(0, 1000), seed=st.integers(0, 2**64 - 1))
def test_positions_are_spread_one_to_each_part(n, length, seed):
    positions = spread(n, length, seed)

    assert len(positions) == min(n, length)
    assert len(np.unique(positions)) == len(positions)
    for i, position in enumerate(positions):
        assert i * length // len(positions) <= position < (i + 1) * length // len(positions)


def test_every_position_is_as_likely_as_any_other():
    """400 spreads of 7 over 40: each 70 times, standard deviation at most 7.6."""
    times = np.bincount(np.concatenate([spread(7, 40, seed) for seed in range(400)]), minlength=40)

    assert np.abs(times - 70).max() < 5 * 7.6


@given(
    sizes=st.lists(st.integers(0, 500), min_size=1, max_size=100),
    n_rows=st.integers(1, 300),
    n_places=st.integers(1, 80),
    seed=st.integers(0, 99),
)
def test_shares_add_up_and_name_no_more_parts_than_asked_for(sizes, n_rows, n_places, seed):
    shares = list(share_out(sizes, n_rows, n_places, seed))

    assert len(shares) <= max(n_places, 1)
    assert all(sizes[part] > 0 for part, _, _ in shares)
    total = sum(rows for _, rows, _ in shares)
    assert not sum(sizes) or n_rows <= total <= n_rows + len(shares)


def test_a_pass_from_start_to_end_draws_every_row_equally_often():
    """200 passes, 20 of 100 rows each: 40 times, standard deviation 5.7."""
    source = open_source(np.arange(100.0)[:, None], block_rows=9)
    times = np.zeros(100)
    for seed in range(200):
        for block in by_position(source.read)(20, 64, seed):
            times[block.first_row] += 1
            assert block.values[0, 0] == block.first_row

    assert times.sum() == 200 * 20
    assert np.abs(times - 40).max() < 5 * 5.7
