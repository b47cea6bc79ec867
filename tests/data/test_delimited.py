from __future__ import annotations

import bz2
import csv as plain_csv
import gzip
import io
import lzma
import re
import zipfile
from decimal import Decimal
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.data import open_source, text_files
from sketchshift.data.dialect import Dialect, describe
from sketchshift.data.open import spool_stdin
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

    message = (
        rf"x\.csv: row {rows} \(data rows count from 0\) has 3 cells, but the first line has 2"
    )
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("0.5,-1e3\n3,4\n", [[0.5, -1000], [3, 4]]),
        ("5,NA\nNA,4\n", [[5, np.nan], [np.nan, 4]]),
        ("7,1", [[7, 1]]),
    ],
)
def test_a_first_line_of_numbers_is_a_row(gather, write, text, expected):
    path = write(text)

    np.testing.assert_array_equal(gather(path), expected)
    assert open_source(path).columns == ("column 0", "column 1")
    assert describe(path) == "x.csv: without a line of column names."
    with pytest.raises(DataError, match=r"has no column 'a'.*It has 'column 0', 'column 1'"):
        open_source(path, columns=["a"])


def test_rows_with_a_word_that_comes_again_below_have_no_header(gather, write):
    path = write("5.1,3.5,setosa\n4.9,3,setosa\n7,3.2,versicolor\n")

    np.testing.assert_array_equal(
        gather(path, columns=["column 0", "column 1"]), [[5.1, 3.5], [4.9, 3], [7, 3.2]]
    )


def test_a_number_that_comes_twice_in_the_first_line_is_no_name(gather, write):
    path = write("0,0,Ann\n1,5,Bob\n")

    np.testing.assert_array_equal(gather(path, columns=["column 0", "column 1"]), [[0, 0], [1, 5]])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("country,2019,2020\nFR,1,2\nDE,3,4\n", "2020"),
        ("0,1,2\n7,8,9\n", "1"),  # the names that pandas gives
        ("1,2,3\nred,blue,4\n", "3"),
        (",2019,2020\n0,1,2\n1,3,4\n", "2019"),
    ],
)
def test_years_and_pandas_own_names_are_names(write, text, name):
    path = write(text)

    assert Dialect.sniff(path).header
    assert open_source(path, columns=[name]).columns == (name,)


def test_a_dialect_can_say_whether_there_is_a_header(gather, write):
    path = write("0,1\n3,4\n")

    assert gather(path).tolist() == [[3, 4]]
    assert gather(path, dialect=Dialect(header=False)).tolist() == [[0, 1], [3, 4]]
    assert gather(write("8,9\n3,4\n"), dialect=Dialect(header=True)).tolist() == [[3, 4]]


def test_the_index_that_pandas_writes_is_not_taken_for_data(gather, write):
    path = write(FRAME.to_csv())

    np.testing.assert_array_equal(gather(path), X)
    assert gather(path, columns=["column 0", "a"])[:, 0].tolist() == list(range(20))
    assert open_source(path, columns=["a"]).columns == ("a",)


def test_a_column_without_a_name_gets_a_stand_in(gather, write):
    path = write("a,,b\n1,2,3\n4,2,6\n")

    assert gather(path).tolist() == [[1, 2, 3], [4, 2, 6]]
    assert open_source(path).columns == ("a", "column 1", "b")


def test_names_of_rows_as_r_writes_them_are_left_out(gather, write):
    assert gather(write('"","x"\n"Mazda",3\n"Ford",4\n')).tolist() == [[3], [4]]


def _zip(text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", text)
    return packed.getvalue()


PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: pa.compress(text, "zstd", asbytes=True),
    ".zip": _zip,
}


@pytest.mark.parametrize("pack", ["", ".gz"])
@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (
            "id;x;y\n7;1,5;-2\n8;2;3\n",
            "separated by ';', decimal comma",
            [[7, 1.5, -2], [8, 2, 3]],
        ),
        ("x;y\n1;2\n3;4\n", "separated by ';'", [[1, 2], [3, 4]]),
        ("x;y\n1.5;2.5\n3;4\n", "separated by ';'", [[1.5, 2.5], [3, 4]]),
        ("x|y\n1|2\n3|4\n", "separated by '|'", [[1, 2], [3, 4]]),
        ("x\ty\n1\t2\n", "separated by tabs", [[1, 2]]),
        ("x y\n1 2\n", "separated by spaces", [[1, 2]]),
        ("my x,y\n1,2\n", "", [[1, 2]]),
        ("x,y\n1,2\n", "", [[1, 2]]),
    ],
)
def test_the_separator_is_found_in_plain_and_packed_files(
    gather, tmp_path, text, words, expected, pack
):
    path = tmp_path / f"x.csv{pack}"
    path.write_bytes(PACK[pack](text.encode()))

    assert gather(path).tolist() == expected
    assert describe(path) == (f"x.csv{pack}: {words}." if words else "")


@pytest.mark.parametrize("pack", PACK)
def test_a_large_file_is_read_to_its_end_and_a_pass_can_be_given_up(gather, tmp_path, pack):
    numbers = np.arange(300_000)
    path = tmp_path / f"x.tsv{pack}"
    path.write_bytes(PACK[pack](("i\th\n" + "".join(f"{i}\t{i / 2}\n" for i in numbers)).encode()))

    for _ in range(3):
        assert len(next(iter(open_source(path))).values) > 0
    shares = [block.done for block in open_source(path)]
    assert pack or (shares[0] < 0.4 and len(set(shares)) > 2)  # packed bytes are read ahead
    np.testing.assert_array_equal(gather(path), np.stack([numbers, numbers / 2], axis=1))


@pytest.mark.parametrize("pack", [".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_a_damaged_packed_file_is_named(tmp_path, pack):
    path = tmp_path / f"x.csv{pack}"
    rows = np.random.default_rng(1).normal(size=(50_000, 2))
    text = pd.DataFrame(rows, columns=["a", "b"]).to_csv(index=False).encode()
    path.write_bytes(PACK[pack](text)[:-2000])

    with pytest.raises(DataError, match=rf"cannot read .*x\.csv\{pack}: it seems damaged"):
        list(open_source(path))


def test_a_zip_file_of_several_tables_is_refused(tmp_path):
    path = tmp_path / "x.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n2\n")

    with pytest.raises(DataError, match=r"it holds 2 files, not one. Unpack it first"):
        open_source(path)


@pytest.mark.parametrize("name", ["x.txt", "x.dat", "X.TXT", "x.dat.gz", "x.tab"])
def test_text_tables_may_have_other_names(gather, write, name):
    assert gather(write("a;b\n1;2\n", name)).tolist() == [[1, 2]]


def test_notes_beside_the_data_of_a_folder_are_passed_over(gather, write, tmp_path):
    write("a,b\n1,2\n", "x.csv")
    write("Read me first, please.\n", "README.txt")

    assert gather(tmp_path).tolist() == [[1, 2]]


@pytest.mark.parametrize("name", ["my.tsv.backup.csv", "my.tsv.csv.gz", "x.tsv-old.csv"])
def test_only_the_end_of_a_name_tells_the_separator(gather, write, name):
    assert gather(write("a,b\n1,2\n", name)).tolist() == [[1, 2]]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_known_by_its_mark(gather, write, encoding, name):
    path = write("\ufeffa,né\n1,2\n3,4\n".encode(encoding), name)

    assert gather(path).tolist() == [[1, 2], [3, 4]]
    assert open_source(path).columns == ("a", "né")
    assert describe(path) == ("" if encoding == "utf-8" else f"{name}: encoded in {encoding}.")


@pytest.mark.parametrize(
    ("encoding", "letter", "found"),
    [("cp1252", "é", "cp1252"), ("cp1252", "€", "cp1252"), ("latin-1", "é\x81", "iso8859-1")],
)
@pytest.mark.parametrize("n_before", [0, 200_000])
def test_letters_that_are_not_utf8_are_read(write, encoding, letter, found, n_before):
    rows = [*["1,e"] * n_before, *[f"2,{letter}"] * 50_000, "3,e"]
    path = write(("x,k\n" + "\n".join(rows) + "\n").encode(encoding))
    source = open_source(path, columns=["x"], keys=["k"])

    keys = [key for block in source for key in block.keys["k"].to_pylist()]

    assert Dialect.sniff(path).encoding == found
    assert keys[n_before:] == [*[letter] * 50_000, "e"]
    in_pieces = [k for p in source.pieces() for b in p.read(0) for k in b.keys["k"].to_pylist()]
    assert in_pieces == keys


def test_a_letter_of_another_encoding_among_utf8_is_named_with_what_to_do(write):
    path = write("x,k\n1,ééé\n".encode() * 1 + b"2,\xe9\n")

    with pytest.raises(DataError) as caught:
        list(open_source(path, columns=["x"], keys=["k"]))

    assert "column 'k' holds b'\\xe9' in row 1 (data rows count from 0), which is not" in str(
        caught.value
    )
    assert str(caught.value).endswith(": `with ss.data.text_dialect(encoding='cp1252'):`.")
    with ss.data.text_dialect(encoding="cp1252"):
        (block,) = open_source(path, columns=["x"], keys=["k"])
    assert block.keys["k"].to_pylist()[1] == "é"


def test_a_byte_that_the_encoding_does_not_have_is_an_error_that_says_what_to_do(write):
    path = write(b"x,k\n1,a\n2,\x81\n")

    with pytest.raises(DataError, match=r"as cp1252 .*text_dialect\(encoding=\.\.\.\)"):
        list(open_source(path, keys=["k"], dialect=Dialect(encoding="cp1252")))


def test_one_column_of_numbers_may_have_any_name(gather, write):
    assert gather(write("a;b\n1\n2\n")).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "x.csv", "it is empty"),
        (b"\n\r\n", "x.csv", "it is empty"),
        (b"not gzip at all", "bad.csv.gz", "damaged"),
    ],
)
def test_a_file_that_is_no_text_table_is_named(tmp_path, content, name, message):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DataError, match=rf"(?s){name}.*{message}"):
        open_source(path)


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

    def read_all():
        n_rows = 0
        for piece in open_source(path).pieces():
            n_rows += sum(len(block.values) for block in piece.read(n_rows))

    with pytest.raises(DataError, match=r"'what' in row 50 "):
        read_all()


# Numbers as people write them.


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("\u22125", -5),
        ("12 %", 12),
        ("12%", 12),
        ("0.5%", 0.5),
        ("1'234.5", 1234.5),
        ("1\u2019234", 1234),
        ("1 234", 1234),
        ("1\u00a0234\u202f567"[:5], 1234),
        ("1,23,456", 123456),
        ("1e3 %", 1000),
        (" inf ", np.inf),
        ("?", np.nan),
        ("-", np.nan),
        ("n/a", np.nan),
        ("missing", np.nan),
        ("#DIV/0!", np.nan),
    ],
)
def test_signs_around_numbers_do_not_change_them(gather, write, cell, value):
    """Also where they come so late that the file was taken for a plain one."""
    n_before = 20_000 if cell.startswith(("$", "n/a", "1")) else 0
    path = write("a|b\n" + "1.5|0\n" * n_before + f"3|1\n{cell}|2\n4|3\n")

    np.testing.assert_array_equal(gather(path)[n_before:, 0], [3, value, 4])


@pytest.mark.parametrize(
    "cell",
    [
        "1,2",
        "0,125",
        "1,2345",
        "12,34",
        "$5",
        "5 EUR",
        "%",
        "--5",
        "1.2.3",
        "5 kg",
        "1 23",
        "(-5)",
    ],
)
def test_what_is_no_number_is_named(write, cell):
    path = write("a|b\n1.5|0\n2.5|0\n" + f"{cell}|2\n")

    message = re.escape(f"column 'a' holds {cell!r} in row 2 (data rows count from 0)")
    with pytest.raises(DataError, match=message):
        list(open_source(path))


def test_a_word_can_be_said_to_mean_a_missing_value(gather, write):
    path = write("a,b\n1,2\n2,2\nkaputt,3\n")

    with pytest.raises(
        DataError, match=r"say so: `with ss\.data\.text_dialect\(missing=\['kaputt'\]\):`\.$"
    ):
        list(open_source(path))
    values = gather(path, dialect=Dialect(missing=["kaputt"]))
    np.testing.assert_array_equal(values[:, 0], [1, 2, np.nan])


def test_what_is_said_in_a_with_holds_inside_of_it_alone(write):
    path = write("a;b\n1,234;5\n2,345;6\n")

    def mean() -> float:
        return float(ss.sketch(path, n_clusters=1).mean[0])

    with ss.data.text_dialect(thousands=","):
        assert mean() == pytest.approx(1789.5)
    assert mean() == pytest.approx(1.7895)


def test_words_for_a_missing_value_are_text_in_columns_of_text(write):
    path = write("x,k\n1,none\n2,-\n3,red\n4,\n")

    (block,) = open_source(path, columns=["x"], keys=["k"])

    assert block.keys["k"].to_pylist() == ["none", "-", "red", None]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("1,234;5", "separated by ';', decimal comma"),  # else why not a comma between cells
        ("1,234;5.5", "separated by ';', thousands marked by ','"),
        ("1.234;5", "separated by ';'"),
        ("1.234;5,5", "separated by ';', decimal comma, thousands marked by '.'"),
        ("1.234.567;5", "separated by ';', decimal comma, thousands marked by '.'"),
        ("0,125;5", "separated by ';', decimal comma"),
        ("1 234,5;7", "separated by ';', decimal comma, thousands marked by spaces"),
        ("1'234.5;7", "separated by ';', thousands marked by \"'\""),
        ("1.5;2,5", "separated by ';'"),  # a draw: the plain one
    ],
)
def test_the_decimal_sign_is_found(write, rows, words):
    assert Dialect.sniff(write(f"a;b\n{rows}\n")).words == words


def test_the_decimal_sign_can_be_said(gather, write):
    path = write("a;b\n1,234;5\n")

    assert gather(path).tolist() == [[1.234, 5]]
    assert gather(path, dialect=Dialect(thousands=",")).tolist() == [[1234, 5]]
    assert gather(path, dialect=Dialect(decimal=".")).tolist() == [[1234, 5]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "separator.*one sign"),
        ({"decimal": ";"}, "decimal.*must be '.' or ','"),
        ({"thousands": ".", "decimal": "."}, "thousands.*not the decimal sign"),
        ({"encoding": "utf-9"}, "encoding.*Python knows"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Dialect(**options)


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e7, 1e7).map(lambda x: round(x, 2)),
    st.integers(-(10**9), 10**9).map(float),
)


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30),
    separator=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"]),
    groups=st.sampled_from(["", ",", ".", " ", "'"]),
    around=st.sampled_from(["{}", "{} %"]),
)
def test_any_table_of_floats_in_any_dialect_reads_back_to_the_same_floats(
    tmp_path_factory, values, separator, decimal, encoding, groups, around
):
    """Oracles: the floats themselves, and pandas for the same dialect where signs are none."""
    if groups == decimal:
        around, groups = "{}", ""
    path = tmp_path_factory.mktemp("dialect") / "x.csv"
    rows = [[around.format(_spell(x, decimal, groups)) for x in row] for row in values]
    text = io.StringIO(newline="")
    plain_csv.writer(text, delimiter=separator).writerows([["née", "b"], *rows])
    path.write_bytes(text.getvalue().encode(encoding))
    dialect = Dialect(separator, decimal, groups, None)

    found = np.concatenate([block.values for block in open_source(path, dialect=dialect)])

    np.testing.assert_array_equal(found, np.array(values))
    if around == "{}":
        known = {"sep": separator, "decimal": decimal, "thousands": groups or None}
        frame = pd.read_csv(path, encoding=encoding, **known)
        np.testing.assert_allclose(found, frame.to_numpy(dtype=float), rtol=1e-14)  # not exact


def _spell(x, decimal, groups):
    """A float with all its digits; in groups where there is no exponent."""
    text = repr(x)
    if "e" in text:
        return text.replace(".", decimal)
    whole, _, part = f"{Decimal(text):,f}".partition(".")
    return whole.replace(",", groups) + (decimal + part if part else "")


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.tuples(*[st.floats(-1e6, 1e6).map(lambda x: round(x, 3))] * 2), min_size=5),
    separator=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(["utf-8", "utf-16", "cp1252"]),
)
def test_what_is_found_of_a_dialect_is_what_was_written(
    tmp_path_factory, values, separator, decimal, encoding
):
    path = tmp_path_factory.mktemp("sniff") / "x.csv"
    frame = pd.DataFrame([*values, (0.25, -1.75)], columns=["née", "b"])
    frame.to_csv(path, sep=separator, decimal=decimal, encoding=encoding, index=False)

    found = np.concatenate([block.values for block in open_source(path)])

    np.testing.assert_array_equal(found, frame.to_numpy())


def test_a_sample_is_drawn_by_seeking_in_any_dialect_of_single_bytes(write):
    rows = [f"{i};{i},5;1.{i % 900 + 100:03d} %" for i in range(20_000)]
    path = write(("i;h;p\n" + "\n".join(rows) + "\n").encode("cp1252"))

    drawn = np.concatenate([b.values for b in open_source(path).across(500, 100, 0)])

    assert 250 <= len(drawn) <= 600
    np.testing.assert_array_equal(drawn[:, 1], drawn[:, 0] + 0.5)
    np.testing.assert_array_equal(drawn[:, 2], 1000 + drawn[:, 0] % 900 + 100)
    assert drawn[:, 0].max() > 18_000


# Standard input.


@pytest.mark.parametrize(
    ("suffix", "write_to"),
    [
        (".csv", lambda path: FRAME.to_csv(path, index=False)),
        (".csv", lambda path: FRAME.to_csv(path, index=False, sep=";", decimal=",")),
        (".csv.gz", lambda path: FRAME.to_csv(path, index=False)),
        (".csv.xz", lambda path: FRAME.to_csv(path, index=False)),
        (
            ".csv.zst",
            lambda path: path.write_bytes(PACK[".zst"](FRAME.to_csv(index=False).encode())),
        ),
        (".parquet", lambda path: FRAME.to_parquet(path, index=False)),
        (".arrow", lambda path: FRAME.to_feather(path)),
        (".npy", lambda path: np.save(path, X)),
    ],
)
def test_a_minus_reads_standard_input_whatever_comes(
    gather, tmp_path, monkeypatch, suffix, write_to
):
    path = tmp_path / f"x{suffix}"
    write_to(path)

    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        spool_stdin.cache_clear()
        np.testing.assert_array_equal(gather("-"), X)
        np.testing.assert_array_equal(gather("-"), X)  # again, from the copy
    assert spool_stdin().name == f"stdin{suffix}"
    spool_stdin.cache_clear()


def test_empty_standard_input_is_named(monkeypatch, tmp_path):
    path = tmp_path / "nothing"
    path.touch()
    spool_stdin.cache_clear()

    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(DataError, match="standard input is empty"):
            open_source("-")
