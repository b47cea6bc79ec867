from __future__ import annotations

import gzip
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchshift.data import open_source, text_files
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.fixture
def write(tmp_path):
    def make(text, name="x.csv"):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return make


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.tsv", "x.tsv.gz", "X.CSV"])
def test_a_text_table_gives_the_columns_asked_for(gather, block_rows, write, name):
    text = FRAME.assign(t="some text").to_csv(index=False, sep="\t" if "tsv" in name else ",")
    path = write(text, name)

    values, weights = gather(path, columns=["c", "a"], weights="b", block_rows=block_rows)

    np.testing.assert_array_equal(values, X[:, [2, 0]])
    np.testing.assert_array_equal(weights, X[:, 1])


def test_a_large_file_is_read_in_order_and_done_counts_its_bytes(gather, write):
    numbers = np.arange(600_000)
    path = write("i,h\n" + "".join(f"{i},{i / 2}\n" for i in numbers))

    values = gather(path)
    shares = [block.done for block in open_source(path)]

    np.testing.assert_array_equal(values, np.stack([numbers, numbers / 2], axis=1))
    assert shares[0] < 0.2
    assert len(set(shares)) > 5


def test_integers_may_turn_into_floats_late_in_the_file(gather, write):
    path = write("a\n" + "1\n" * 700_000 + "2.5\n")

    assert gather(path)[-1, 0] == 2.5


@pytest.mark.parametrize(
    ("cell", "value"),
    [("", np.nan), ("NA", np.nan), ("nan", np.nan), ("inf", np.inf), (" 2 ", 2), ('"3"', 3)],
)
def test_missing_and_odd_cells_are_numbers(gather, write, cell, value):
    np.testing.assert_array_equal(gather(write(f"a,b\n1,0\n{cell},0\n"))[:, 0], [1, value])


def test_true_and_false_are_numbers(gather, write):
    values = gather(write("a,b\nTrue,1.5\nFalse,2\n,3\n"))

    np.testing.assert_array_equal(values, [[1, 1.5], [0, 2], [np.nan, 3]])


def test_a_column_that_starts_empty_is_read(gather, write):
    path = write("a,b\n" + "1,\n" * 50_000 + "1,7\n")

    assert gather(path)[-1, 1] == 7


def test_byte_order_marks_windows_lines_and_line_breaks_in_text_do_no_harm(gather, write):
    path = write('\ufeffa,t,b\r\n1,"two\r\nlines, one cell",2\r\n\r\n3,"""x""",4\r\n')

    np.testing.assert_array_equal(gather(path, columns=["a", "b"]), [[1, 2], [3, 4]])


def test_very_long_lines_are_read(gather, write):
    names = [f"column_{i}" for i in range(20_000)]
    path = write(",".join(names) + "\n" + ",".join(["1.5"] * 20_000) + "\n")

    np.testing.assert_array_equal(gather(path), np.full((1, 20_000), 1.5))


def test_text_that_is_not_utf8_does_no_harm_in_other_columns(gather, write):
    path = write("a,t\n1,caf\xe9\n".encode("latin-1"))

    np.testing.assert_array_equal(gather(path, columns=["a"]), [[1]])


def test_a_header_without_rows_yields_no_blocks(write):
    source = open_source(write("a,b\n"))

    assert (source.columns, list(source)) == (("a", "b"), [])


@pytest.mark.parametrize("rows", [5, 100_000])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_a_text_cell_is_named_with_file_column_and_row(write, rows, name):
    path = write("t,a,b\n" + "x,1,2\n" * rows + "x,1,n/k\nx,oops,3\n" + "x,1,2\n" * 9, name)

    message = rf"x\.csv.*: column 'b' holds 'n/k' in row {rows} \(data rows count from 0\)"
    with pytest.raises(DataError, match=message):
        list(open_source(path, columns=["a", "b"]))
    with pytest.raises(DataError, match=rf"column 'a' holds 'oops' in row {rows + 1} "):
        list(open_source(path, columns=["a"]))


def test_rows_before_a_late_text_cell_are_delivered(write):
    blocks = iter(open_source(write("a\n" + "12345\n" * 400_000 + "oops\n")))

    assert next(blocks).values[0, 0] == 12345
    with pytest.raises(DataError, match="'oops' in row 400000 "):
        list(blocks)


def test_a_cell_that_breaks_a_run_of_booleans_is_named(write):
    path = write("a\n" + "true\n" * 50_000 + "maybe\n")

    with pytest.raises(DataError, match=r"'maybe' in row 50000 .*true or false"):
        list(open_source(path))


@pytest.mark.parametrize("rows", [3, 100_000])
def test_a_ragged_line_is_named_with_file_and_row(write, rows):
    path = write("a,b\n" + "1,2\n" * rows + "3,4,5\n1,2\n")

    message = rf"x\.csv: row {rows} \(data rows count from 0\) has 3 cells, but the header has 2"
    with pytest.raises(DataError, match=message):
        list(open_source(path))


@pytest.mark.parametrize(
    ("cell", "kind"),
    [("red", "text"), ("2020-01-31", "date32"), ("2020-01-31 10:00:00", "timestamp")],
)
def test_text_and_dates_are_known_at_once(write, cell, kind):
    path = write(f"a,t,b\n1,{cell},2\n3,{cell},4\n")

    with pytest.raises(DataError, match=rf"x\.csv: column 't' \({kind}.*columns=\['a', 'b'\]"):
        open_source(path)


def test_a_missing_column_is_known_at_once(write):
    with pytest.raises(DataError, match=r"x\.csv has no column 'hight'\. Did you mean 'height'\?"):
        open_source(write("height,width\n1,2\n"), columns=["hight"])


@pytest.mark.parametrize("header", ["1,2", "0.5,-1e3"])
def test_a_header_of_numbers_is_not_a_header(write, header):
    path = write(f"{header}\n3,4\n")

    with pytest.raises(DataError, match=r"x\.csv seems to have no header row: its first line is"):
        open_source(path)
    with pytest.raises(DataError, match="no header row"):
        open_source(path, columns=["a"])


def test_numbers_can_be_names_if_asked_for(gather, write):
    np.testing.assert_array_equal(gather(write("0,1\n3,4\n"), columns=["1"]), [[4]])


def test_the_index_that_pandas_writes_is_not_taken_for_data(write):
    path = write(FRAME.to_csv())

    with pytest.raises(
        DataError, match=r"column 0 .*has no name.*columns=\['a', 'b', 'c'\], or .*index=False"
    ):
        open_source(path)
    assert open_source(path, columns=["a"]).columns == ("a",)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("id;who;x;y\n7;Kunde 0;1,5;-2\n8;Kunde 1;2;3\n", "';', decimal=','", [[1.5, -2], [2, 3]]),
        ("x;y\n1,5;2\n3;4,25\n", "';', decimal=','", [[1.5, 2], [3, 4.25]]),
        ("x;y\n1;2\n3;4\n", "';'", [[1, 2], [3, 4]]),
        ("x;y\n1.5;2.5\n3;4\n", "';'", [[1.5, 2.5], [3, 4]]),
        ("x|y\n1|2\n3|4\n", "'|'", [[1, 2], [3, 4]]),
    ],
)
def test_a_file_with_another_separator_comes_with_the_line_that_converts_it(
    gather, write, text, options, expected, name
):
    path = write(text, name)

    with pytest.raises(DataError) as caught:
        open_source(path)

    said, line = str(caught.value).split(" Convert it: ")
    assert said == f"{path} seems to be separated by {options[:3]}, not by ','."
    assert line.startswith(f"pd.read_csv({str(path)!r}, sep={options}).to_parquet(")
    eval(line.removesuffix("."), {"pd": pd})
    assert gather(path.parent / "x.parquet", columns=["x", "y"]).tolist() == expected


@pytest.mark.parametrize(
    ("text", "name", "other"),
    [
        ("a\tb\n1\t2\n", "x.csv", "x.tsv"),
        ("a\tb\n1\t2\n", "x.csv.gz", "x.tsv.gz"),
        ("a,b\n1,2\n", "x.tsv", "x.csv"),
    ],
)
def test_commas_and_tabs_are_read_under_another_name(gather, write, text, name, other):
    path = write(text, name)

    with pytest.raises(DataError, match=rf"seems to be separated by .*Rename it to .*{other}'\.$"):
        open_source(path, columns=["a", "b"])

    assert gather(path.rename(path.with_name(other))).tolist() == [[1, 2]]


@pytest.mark.parametrize("name", ["my.tsv.backup.csv", "my.tsv.csv.gz", "x.tsv-old.csv"])
def test_only_the_end_of_a_name_tells_the_separator(gather, write, name):
    assert gather(write("a,b\n1,2\n", name)).tolist() == [[1, 2]]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_known_by_its_mark(write, encoding, name):
    path = write("\ufeffa,b\n1,2\n3,4\n".encode(encoding), name)

    with pytest.raises(DataError, match=rf"it is {encoding[:6].upper()}, not UTF-8\. Convert"):
        open_source(path)


def test_one_column_of_numbers_may_have_any_name(gather, write):
    assert gather(write("a;b\n1\n2\n")).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "x.csv", "Empty CSV"),
        (b"not gzip at all", "bad.csv.gz", "damaged"),
        ("a,\xe9\n1,2\n".encode("latin-1"), "x.csv", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_text_table_is_named(tmp_path, content, name, message):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DataError, match=rf"(?s){name}.*{message}"):
        open_source(path)


def test_a_truncated_gzip_file_is_named(tmp_path):
    path = tmp_path / "x.csv.gz"
    text = FRAME.sample(50_000, replace=True, random_state=0).to_csv(index=False)
    path.write_bytes(gzip.compress(text.encode())[:-2000])

    with pytest.raises(DataError, match=r"cannot read .*x\.csv\.gz: it seems damaged"):
        list(open_source(path))


def test_a_pass_can_be_given_up(write):
    """Arrow still reads ahead when the blocks are dropped."""
    path = write("a\n" + "12345\n" * 800_000, "x.csv.gz")

    for _ in range(5):
        assert len(next(iter(open_source(path))).values) > 0


cells = st.sampled_from(
    ["", "x", "1", '"a"', '"a,b"', '"line\n2"', '"say ""hi"""', '5" pipe', '""']
)


@given(
    lines=st.lists(st.tuples(cells, cells), max_size=40),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    size=st.integers(1, 60),
    is_ended=st.booleans(),
)
def test_text_is_cut_between_rows_only(tmp_path_factory, lines, end, size, is_ended):
    """Oracle: Arrow's own chunker on the whole file, whatever stands in the cells."""
    text = "i,s,t" + end + end.join(f"{i},{s},{t}" for i, (s, t) in enumerate(lines))
    path = tmp_path_factory.mktemp("cut") / "x.csv"
    path.write_bytes((text + end * is_ended).encode())

    source = open_source(path, columns=["i"], keys=["s", "t"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", size)
        patch.setattr(text_files, "MOST_BYTES", 4 * size)
        pieces = list(source.pieces())
        found = [(b.values[:, 0].tolist(), b.keys.to_pylist()) for p in pieces for b in p.read(0)]

    try:
        expected = [(b.values[:, 0].tolist(), b.keys.to_pylist()) for b in source]
    except DataError:
        return
    assert _joined(found) == _joined(expected)


def _joined(blocks):
    return [list(chain.from_iterable(part)) for part in zip(*blocks, strict=True)]


@pytest.mark.parametrize("cell", ["x", '"a,b"', '"line\n2"', '"say ""hi"""'])
def test_text_is_cut_into_pieces_where_quotes_stand_as_they_should(write, monkeypatch, cell):
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    path = write("i,s\n" + "".join(f"{i},{cell}\n" for i in range(100)))

    pieces = list(open_source(path, columns=["i"]).pieces())

    assert len(pieces) > 5
    assert pieces[0].ranges[0][0] == 0  # with the header
    assert all(a.ranges[0][1] == b.ranges[0][0] for a, b in pairwise(pieces))


def test_a_bad_cell_in_a_later_piece_is_named_by_its_row(write, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    path = write("i,j\n" + "1,2\n" * 50 + "1,what\n" + "1,2\n" * 50)

    with pytest.raises(DataError, match="in row 50"):
        [list(piece.read(0)) for piece in open_source(path).pieces()]
