"""Large files: rows from all along them, and no more read than that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sketchshift.data import Access, memory, open_source
from sketchshift.data import sample as sampling
from sketchshift.data.sample import by_position, draw_rows, share_out, spread

N = 20_000
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


def in_commas(row):
    """A line with decimal commas."""
    return f"{row['a']};{row['b']};{row['w']}".replace(".", ",")


WRITERS = {
    "one.parquet": lambda t, path: pa.parquet.write_table(t, path),
    "groups.parquet": lambda t, path: pa.parquet.write_table(t, path, row_group_size=300),
    "table.csv": lambda t, path: pa.csv.write_csv(t, path),
    "table.txt": lambda t, path: path.write_text(
        "\n".join(["a;b;w", *map(in_commas, t.to_pylist())])
    ),
    "packed.csv.gz": lambda t, path: pa.csv.write_csv(t, pa.output_stream(path)),
    "file.arrow": lambda t, path: write_ipc(path, t),
    "stream.arrow": lambda t, path: write_ipc(path, t, pa.ipc.new_stream),
    "parts": lambda t, path: write_parts(path, t),
    "array.npy": lambda t, path: np.save(path, X),
    "columns.npy": lambda t, path: np.save(path, np.asfortranarray(X)),
}


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
    return folder


def open_large(path):
    """The file, which may not be read from start to end if there is another way."""
    is_array = path.suffix == ".npy"
    source = open_source(
        path, columns=None if is_array else ["a", "b"], weights=None if is_array else "w"
    )
    return source if path.name in ("stream.arrow", "packed.csv.gz") else replace(source, read=None)


def draw(source, n_rows=1000, seed=0, keep=lambda _: None):
    return draw_rows(source, n_rows, seed=seed, keep=keep)


@pytest.mark.parametrize("name", WRITERS)
def test_a_sorted_file_is_sampled_from_all_along_and_each_row_named(name, folder):
    """1000 rows of a normal law: their mean is off by 0.03, that of the first 1000 by 2.

    Messages name the row where it lies.
    """
    source, named = open_large(folder / name), []

    def keep(block):
        named.append((block.source, block.first_row, block.values[0, 0]))

    sample = draw(source, keep=keep)
    first, again, other = (draw(source, 100, seed).values.tolist() for seed in (1, 1, 2))

    rows = np.searchsorted(X[:, 0], sample.values[:, 0])
    assert_array_equal(X[rows], sample.values)
    n_twice = 1000 - len(np.unique(rows))
    assert n_twice == 0 or (n_twice < 5 and name in ("table.csv", "table.txt"))  # seeks in one line
    assert sample.weights is None or sample.weights.tolist() == (rows + 1.0).tolist()
    np.testing.assert_allclose(sample.values.mean(axis=0), 0.0, atol=0.1)
    assert sample.values.min() < -2.0 < 2.0 < sample.values.max()
    assert first == again != other
    for where, row, value in named[::10]:
        if "counted from byte" in where:
            text, place = (folder / name).read_bytes(), int(where.split(",")[-2].split()[-1])
            row += text[: text.index(b"\n", place - 1)].count(b"\n")
        elif where.startswith("record batch"):
            row += 700 * int(where.split()[2])
        elif name == "parts":
            row += N // 200 * int(where[-len("000.parquet") :].split(".")[0])
        assert X[row, 0] == value


def test_few_of_many_files_are_opened(folder, monkeypatch):
    opened = []
    original = pa.parquet.ParquetFile.iter_batches

    def iter_batches(self, *args, **options):
        opened.append(self)
        return original(self, *args, **options)

    source = open_large(folder / "parts")
    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", iter_batches)

    assert len(draw(source).values) >= 900
    assert 32 <= len(opened) <= 64


def test_files_are_drawn_from_in_proportion_to_their_rows(tmp_path):
    for i, size in enumerate([10_000, 100, 30_000]):
        np.save(tmp_path / f"{i}.npy", i + np.linspace(0.0, 0.1, size)[:, None])

    values = draw(open_source(tmp_path), 4010).values

    counts = np.bincount(values[:, 0].astype(int), minlength=3)
    np.testing.assert_allclose(counts, [1000, 10, 3000], atol=3)


def test_cells_of_several_lines_are_not_torn_apart(tmp_path):
    """Seeks land inside quoted cells that hold lines like those of the table, but not quite."""
    story = '"one line,\nnext 1,2 line\n3,4\nlast"'
    lines = [f"{i},{story},{i + 0.5}" for i in range(3000)]
    (tmp_path / "x.csv").write_text("\n".join(["n,story,y", *lines]))

    values = draw(open_source(tmp_path / "x.csv", columns=["n", "y"]), 300).values

    assert len(values) >= 150
    assert_array_equal(values[:, 1], values[:, 0] + 0.5)
    assert values[:, 0].mean() == pytest.approx(1500, abs=250)


def test_a_text_file_that_cannot_be_cut_is_read_from_start_to_end(tmp_path, monkeypatch):
    """Carriage returns alone end its lines, and a seek looks for line feeds.

    No cell is cut in its middle where the text looked at for the end of a line ends.
    """
    rows = b"\r".join(b"%d,%d" % (i, 10**6) for i in range(5000))
    for longest, header in ((2**20, b"n,y\r"), (1000, b"n,y\r"), (1000, b"n,y\n")):
        monkeypatch.setattr("sketchshift.data.text_files.LONGEST_LINE", longest)
        (tmp_path / "x.csv").write_bytes(header + rows)

        values = draw(open_source(tmp_path / "x.csv"), 300).values

        assert len(values) == 300
        assert values[:, 0].mean() == pytest.approx(2500, abs=450)  # 5 standard deviations
        assert set(values[:, 1]) == {10**6}


def test_every_line_of_a_text_file_can_be_drawn_and_no_header(tmp_path):
    """A file of ten lines, asked for many rows: as many seeks as there are bytes find all."""
    lines = ["n,y", *(f"{i},{i}" for i in range(10))]
    for text in (
        "\n".join(lines),
        "\r\n".join([*lines, ""]),
        "\n".join(["\ufeff", "", *lines, ""]),  # blank lines are skipped at every place
        "\r\n".join(["", "", *lines]),
    ):
        (tmp_path / "x.csv").write_bytes(text.encode())
        source = open_source(tmp_path / "x.csv")

        drawn = {tuple(row) for block in source.across(60, 64, 0) for row in block.values.tolist()}
        assert drawn == {(i, i) for i in range(10)}


def test_a_large_memory_map_is_a_file_and_a_small_one_is_memory(folder, monkeypatch):
    mapped = np.load(folder / "array.npy", mmap_mode="r")
    assert open_source(mapped).access is Access.MEMORY

    monkeypatch.setattr(memory, "LARGE_MAP", 0)
    source = open_source(mapped, weights=np.arange(N) + 1.0)
    sample = draw(source)

    assert source.access is Access.DISK
    assert_array_equal(X[sample.weights.astype(int) - 1], sample.values)
    assert all(np.shares_memory(block.values, mapped) for block in source)


@given(n=st.integers(1, 200), length=st.integers(0, 1000), seed=st.integers(0, 2**64 - 1))
def test_positions_are_spread_one_to_each_part(n, length, seed):
    positions = spread(n, length, seed)

    assert len(positions) == min(n, length)
    assert len(np.unique(positions)) == len(positions)
    for i, position in enumerate(positions):
        assert i * length // len(positions) <= position < (i + 1) * length // len(positions)


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
