from __future__ import annotations

import bz2
import csv as plain_csv
import gzip
import io
import lzma
import re
import zipfile
from decimal import Decimal
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift.data import open_source, text_files
from sketchshift.data.dialect import Dialect
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


@pytest.fixture
def small_chunks(monkeypatch):
    """Arrow reads text in chunks of 128 KiB."""
    monkeypatch.setattr(text_files, "READ_BYTES", 1)


TWO = ["column 0", "column 1"]
TABLES = {
    "missing and odd cells": (
        'a,b\n1,0\n,0\nNA,0\nnan,0\ninf,0\n 2 ,0\n"3",0\n',
        ["a"],
        [[1], [np.nan], [np.nan], [np.nan], [np.inf], [2], [3]],
    ),
    "booleans": ("a,b\nTrue,1.5\nFalse,2\n,3\n", None, [[1, 1.5], [0, 2], [np.nan, 3]]),
    "a mark, Windows lines, and line breaks in text": (
        '\ufeffa,t,b\r\n1,"two\r\nlines, one cell",2\r\n\r\n3,"""x""",4\r\n',
        ["a", "b"],
        [[1, 2], [3, 4]],
    ),
    "numbers in the first line": ("1,2\n3,4\n", TWO, [[1, 2], [3, 4]]),
    "numbers with signs in the first line": ("0.5,-1e3\n3,4\n", TWO, [[0.5, -1000], [3, 4]]),
    "NA in the first line": ("5,NA\nNA,4\n", TWO, [[5, np.nan], [np.nan, 4]]),
    "one line of numbers": ("7,1", TWO, [[7, 1]]),
    "a word that comes again below": (
        "5.1,3.5,setosa\n4.9,3,setosa\n7,3.2,versicolor\n",
        TWO,
        [[5.1, 3.5], [4.9, 3], [7, 3.2]],
    ),
    "a number twice in the first line": ("0,0,Ann\n1,5,Bob\n", TWO, [[0, 0], [1, 5]]),
    "an index that pandas wrote": (",a\n0,1.5\n1,2\n", None, [[1.5], [2]]),
    "that index, asked for": (",a\n0,1.5\n1,2\n", ["column 0", "a"], [[0, 1.5], [1, 2]]),
    "a column without a name": ("a,,b\n1,2,3\n4,2,6\n", None, [[1, 2, 3], [4, 2, 6]]),
    "names of rows as R writes them": ('"","x"\n"Mazda",3\n"Ford",4\n', None, [[3], [4]]),
    "one column of any name": ("a;b\n1\n2\n", None, [[1], [2]]),
    "years as names": ("country,2019,2020\nFR,1,2\nDE,3,4\n", ["2020"], [[2], [4]]),
    "the names that pandas gives": ("0,1,2\n7,8,9\n", ["1"], [[8]]),
    "a number as a name, above numbers": ("1,2,3\nred,blue,4\n", ["3"], [[4]]),
    "no rows": ("a,b\n", None, np.empty((0, 2))),
    "many blank lines first": ("\n" * 70_000 + "a,b\n1,2\n", None, [[1, 2]]),
    "very long lines": (
        ",".join(f"x{i:0140}" for i in range(1000)) + "\n" + ",".join(["1.5" + "0" * 100] * 1000),
        None,
        [[1.5] * 1000],
    ),
    "years beside an index": (",2019,2020\n0,1,2\n1,3,4\n", ["2019"], [[1], [3]]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_as_a_person_would(check_rows, write, name):
    text, columns, expected = TABLES[name]
    path = write(text)

    check_rows(path, expected, columns=columns)
    if columns == TWO:
        with pytest.raises(DataError, match=r"has no column 'a'.*It has 'column 0', 'column 1'"):
            open_source(path, columns=["a"])


@pytest.mark.usefixtures("small_chunks")
def test_a_column_may_change_late_in_the_file(gather, write):
    """From whole numbers to floats, or from nothing to numbers."""
    assert gather(write("a\n" + "1\n" * 100_000 + "2.5\n"))[-1, 0] == 2.5
    assert gather(write("a,b\n" + "1,\n" * 50_000 + "1,7\n"))[-1, 1] == 7


# Cells and lines that are no good.


@pytest.mark.usefixtures("small_chunks")
def test_the_cell_or_line_at_fault_is_named_by_its_row(write):
    """Rows before it are delivered, and cells that are not read do not count."""
    for rows, line, fault, message in (
        (5, "1,2", "1,n/k", r"column 'b' holds 'n/k' in row 5 \(data rows count from 0\)"),
        (50_000, "1,2", "1,n/k", r"column 'b' holds 'n/k' in row 50000 \("),
        (3, "1,2", "3,4,5", r"row 3 \(data rows .* 0\) has 3 cells, but the first line has 2"),
        (50_000, "1,2", "3,4,5", "row 50000 .*has 3 cells, but the first line has 2"),
        (50_000, "true,1", "maybe,1", r"column 'a' .*'maybe' in row 50000 .*true or false"),
    ):
        for name in ("x.csv", "x.csv.gz"):
            path = write("a,b\n" + f"{line}\n" * rows + f"{fault}\noops,3\n", name)
            seen = []
            with pytest.raises(DataError, match=rf"x\.csv.*: {message}"):
                seen.extend(open_source(path))
            assert rows <= 5 or seen[0].values[0, 0] == 1
    path = write("t,a,b\n" + "x,1,2\n" * 9 + "x,1,n/k\nx,oops,3\n")
    with pytest.raises(DataError, match="column 'a' holds 'oops' in row 10 "):
        list(open_source(path, columns=["a"]))


def test_a_bad_cell_in_a_later_piece_is_named_by_its_row(write, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    path = write("i,j\n" + "1,2\n" * 50 + "1,what\n" + "1,2\n" * 50)

    def read_all():
        n_rows = 0
        for piece in open_source(path).pieces():
            n_rows += sum(len(block.values) for block in piece.read(n_rows))

    with pytest.raises(DataError, match=r"'what' in row 50 "):
        read_all()


def test_what_is_no_table_of_numbers_is_named_at_once(write):
    kinds = {
        "red": "text",
        "none": "text",
        "2020-01-31": "date32",
        "2020-01-31 10:00:00": "timestamp",
    }
    for content, name, message in (
        *(
            (f"a,t,b\n1,{t},2\n3,{t},4\n", "x.csv", rf"'t' \({kind}.*columns=\['a', 'b'\]")
            for t, kind in kinds.items()
        ),
        ("", "x.csv", "it is empty"),
        ("\n\r\n", "x.csv", "it is empty"),
        ("x" * 2**25, "x.csv", "a line of it does not end"),
        ("not packed at all", "bad.csv.xz", "damaged"),
        (_zip("x\n1\n", "x\n2\n"), "x.csv.zip", "it holds 2 files, not one. Unpack it first"),
    ):
        with pytest.raises(DataError, match=rf"(?s){name}.*{message}"):
            open_source(write(content, name))


# Packed files.


def _zip(*texts):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, text in enumerate(texts):
            archive.writestr(f"{i}.csv", text)
    return packed.getvalue()


PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lambda text: lzma.compress(text, preset=0),
    ".zst": lambda text: pa.compress(text, "zstd", asbytes=True),
    ".zip": _zip,
}


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("pack", PACK)
def test_a_large_file_is_read_to_its_end_and_a_pass_can_be_given_up(check_rows, tmp_path, pack):
    numbers = np.arange(40_000)
    path = tmp_path / f"x.tsv{pack}"
    text = ("i\th\n" + "".join(f"{i}\t{i / 2}\n" for i in numbers)).encode()
    path.write_bytes(PACK[pack](text))

    for _ in range(3):
        assert len(next(iter(open_source(path))).values) > 0
    shares = [block.done for block in open_source(path)]
    assert pack or (shares[0] < 0.4 and len(set(shares)) > 2)  # packed bytes are read ahead
    check_rows(path, np.stack([numbers, numbers / 2], axis=1))
    path.write_bytes(PACK[pack](text)[:-2000])
    if pack:
        with pytest.raises(DataError, match=rf"cannot read .*x\.tsv\{pack}: it seems damaged"):
            list(open_source(path))


def test_the_end_of_a_name_tells_the_format_and_the_separator(check_rows, write, tmp_path):
    for name in ("x.txt", "x.dat", "X.TXT", "x.dat.gz", "x.tab"):
        check_rows(write("a;b\n1;2\n", name), [[1, 2]])
    for name in ("my.tsv.backup.csv", "my.tsv.csv.gz", "x.tsv-old.csv"):
        check_rows(write("a,b\n1,2\n", name), [[1, 2]])


# Encodings.


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_known_by_its_mark(check_rows, write, encoding):
    for name in ("x.csv", "x.csv.gz"):
        path = write("\ufeffa,né\n1,2\n3,4\n".encode(encoding), name)

        check_rows(path, [[1, 2], [3, 4]])
        assert open_source(path).columns == ("a", "né")


@pytest.mark.parametrize("letter", ["é", "€", "é\x81"])
def test_letters_that_are_not_utf8_are_read(write, letter):
    """Also where they come late in the file."""
    encoding = "iso8859-1" if "\x81" in letter else "cp1252"
    for n_before in (0, 20_000):
        expected = [*"e" * n_before, *[letter] * 20_000, "e"]
        path = write("\n".join(["x,k", *(f"2,{key}" for key in expected), ""]).encode(encoding))
        source = open_source(path, columns=["x"], keys=["k"])

        for blocks in (source, (b for piece in source.pieces() for b in piece.read(0))):
            assert [k for block in blocks for k in block.keys["k"].to_pylist()] == expected


def test_a_letter_of_another_encoding_is_named_with_what_to_do(write):
    path = write("x,k\n1,ééé\n".encode() + b"2,\xe9\n")
    message = r"'k' holds b'\\xe9' in row 1 .*with ss\.data\.text_dialect\(encoding='cp1252'\):`\.$"

    with pytest.raises(DataError, match=message):
        list(open_source(path, columns=["x"], keys=["k"]))
    with ss.data.text_dialect(encoding="cp1252"):
        (block,) = open_source(path, columns=["x"], keys=["k"])
    assert block.keys["k"].to_pylist()[1] == "é"
    path = write(b"x,k\n1,a\n2,\x81\n")
    with pytest.raises(DataError, match=r"as cp1252 .*text_dialect\(encoding=\.\.\.\)"):
        list(open_source(path, keys=["k"], dialect=Dialect(encoding="cp1252")))


# Pieces.


cells = st.sampled_from(
    ["", "x", "1", '"a"', '"a,b"', '"line\n2"', '"say ""hi"""', '5" pipe', '""']
)


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(
    lines=st.lists(st.tuples(cells, cells), max_size=40),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    size=st.integers(1, 60),
    is_ended=st.booleans(),
)
def test_text_is_cut_between_rows_only(gather, write, lines, end, size, is_ended):
    """Oracle: Arrow's own chunker on the whole file, whatever stands in the cells."""
    text = "i,s,t" + end + end.join(f"{i},{s},{t}" for i, (s, t) in enumerate(lines))
    path, chosen = write(text + end * is_ended), {"columns": ["i"], "keys": ["s", "t"]}
    try:
        list(open_source(path, **chosen))
    except DataError:
        return

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", size)
        gather(path, **chosen)  # in pieces, too


def test_text_is_cut_into_pieces_where_quotes_stand_as_they_should(write, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE_BYTES", 40)  # may end within a cell
    cells = ["x", '"a,b"', '"line\n2"', '"say ""hi"""'] * 25
    path = write("i,s\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))

    pieces = list(open_source(path, columns=["i"]).pieces())

    assert len(pieces) > 5


# Numbers as people write them.

SIGNED = {
    "\u22125": -5,
    "12 %": 12,
    "12%": 12,
    "0.5%": 0.5,
    "1'234.5": 1234.5,
    "1\u2019234": 1234,
    "1 234": 1234,
    "1\u00a0234": 1234,
    "1,23,456": 123456,
    "1e3 %": 1000,
    " inf ": np.inf,
    "?": np.nan,
    "-": np.nan,
    "n/a": np.nan,
    "missing": np.nan,
    "#DIV/0!": np.nan,
}


def test_signs_around_numbers_do_not_change_them(gather, write):
    """Also where they come so late that the file was taken for a plain one."""
    for cell, value in SIGNED.items():
        assert_array_equal(gather(write(f"a|b\n3|1\n{cell}|2\n"))[:, 0], [3, value])
    late = "".join(f"{cell}|1\n" for cell in SIGNED)
    values = gather(write("a|b\n" + "1.5|0\n" * 20_000 + late))
    assert_array_equal(values[20_000:, 0], list(SIGNED.values()))


def test_what_is_no_number_is_named(write):
    for cell in [
        "1,2",
        "0,125",
        "1,2345",
        "12,34",
        "$5",
        "5_EUR",
        "%",
        "--5",
        "1.2.3",
        "5_kg",
        "1_23",
        "(-5)",
    ]:
        cell = cell.replace("_", " ")
        message = re.escape(f"column 'a' holds {cell!r} in row 2 (data rows count from 0)")
        with pytest.raises(DataError, match=message):
            list(open_source(write(f"a|b\n1.5|0\n2.5|0\n{cell}|2\n")))


def test_words_for_a_missing_value_are_text_in_columns_of_text(write):
    path = write("x,k\n1,none\n2,-\n3,red\n4,\n")

    (block,) = open_source(path, columns=["x"], keys=["k"])

    assert block.keys["k"].to_pylist() == ["none", "-", "red", None]


# How a file is written: found, or said.

DIALECTS = [
    ("id;x;y\n7;1,5;-2\n8;2;3\n", [[7, 1.5, -2], [8, 2, 3]]),
    ("x;y\n1;2\n3;4\n", [[1, 2], [3, 4]]),
    ("x|y\n1|2\n3|4\n", [[1, 2], [3, 4]]),
    ("x\ty\n1\t2\n", [[1, 2]]),
    ("x y\n1 2\n", [[1, 2]]),
    ("my x,y\n1,2\n", [[1, 2]]),
    ("x,y\n1,2\n", [[1, 2]]),
    # else why not a comma between cells
    ("a;b\n1,234;5\n", [[1.234, 5]]),
    ("a;b\n1,234;5.5\n", [[1234, 5.5]]),
    ("a;b\n1.234;5\n", [[1.234, 5]]),
    ("a;b\n1.234;5,5\n", [[1234, 5.5]]),
    ("a;b\n1.234.567;5\n", [[1234567, 5]]),
    ("a;b\n0,125;5\n", [[0.125, 5]]),
    ("a;b\n1,5e3;5\n", [[1500, 5]]),
    ("a;b\n.;5\n0,5;6\n", [[np.nan, 5], [0.5, 6]]),
    ("a;b\n1 234,5;7\n", [[1234.5, 7]]),
    ("a;b\n1'234.5;7\n", [[1234.5, 7]]),
]


def test_separator_and_decimal_sign_are_found_in_plain_and_packed_files(check_rows, write):
    for text, expected in DIALECTS:
        for name in ("x.csv", "x.csv.gz"):
            check_rows(write(text, name), expected)
    with pytest.raises(DataError, match=r"'b' \(text\)"):  # a draw: the point
        list(open_source(write("a;b\n1.5;2,5\n")))


def test_a_dialect_can_be_said(check_rows, write):
    for text, dialect, expected in (
        ("a;b\n1,234;5\n", Dialect(decimal="."), [[1234, 5]]),
        ("0,1\n3,4\n", None, [[3, 4]]),
        ("0,1\n3,4\n", Dialect(header=False), [[0, 1], [3, 4]]),
        ("8,9\n3,4\n", Dialect(header=True), [[3, 4]]),
        ("a\n1\n2\nkaputt\n", Dialect(missing="kaputt"), [[1], [2], [np.nan]]),
        ("a\n1\n", Dialect(encoding="ascii"), [[1]]),
        ("a\n1\n".encode("utf-16-le"), Dialect(encoding="utf-16"), [[1]]),
    ):
        check_rows(write(text), expected, dialect=dialect)
    path = write("a\n1\n2\nkaputt\n")
    with ss.data.text_dialect(missing=["kaputt"]):
        check_rows(path, [[1], [2], [np.nan]])
    message = r"say so: `with ss\.data\.text_dialect\(missing=\['kaputt'\]\):`\.$"
    with pytest.raises(DataError, match=message):  # outside of it, as before
        list(open_source(path))


def test_a_dialect_that_cannot_be_is_refused():
    for options, message in (
        ({"separator": ";;"}, "separator.*one sign"),
        ({"separator": "é"}, "separator.*one sign"),
        ({"separator": 5}, "separator.*one sign"),
        ({"decimal": ";"}, "decimal.*must be '.' or ','"),
        ({"encoding": "utf-9"}, "encoding.*Python knows"),
    ):
        with pytest.raises(ValueError, match=message):
            Dialect(**options)


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e7, 1e7).map(lambda x: round(x, 2)),
    st.integers(-(10**9), 10**9).map(float),
)


@settings(max_examples=40)
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
    """The oracle are the floats themselves."""
    if groups == decimal:
        around, groups = "{}", ""
    path = tmp_path_factory.mktemp("dialect") / "x.csv"
    rows = [[around.format(_spell(x, decimal, groups)) for x in row] for row in values]
    text = io.StringIO(newline="")
    plain_csv.writer(text, delimiter=separator).writerows([["née", "b"], *rows])
    path.write_bytes(text.getvalue().encode(encoding))
    dialect = Dialect(separator, decimal)

    found = np.concatenate([block.values for block in open_source(path, dialect=dialect)])

    assert_array_equal(found, np.array(values))


def _spell(x, decimal, groups):
    """A float with all its digits; in groups where there is no exponent."""
    text = repr(x)
    if "e" in text:
        return text.replace(".", decimal)
    whole, _, part = f"{Decimal(text):,f}".partition(".")
    return whole.replace(",", groups) + (decimal + part if part else "")


# Standard input.


def test_a_minus_reads_standard_input_whatever_comes(check_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sketchshift.data.open.PATIENCE_S", -1.0)
    text = FRAME.to_csv(index=False).encode()
    FRAME.to_feather(tmp_path / "frame")
    np.save(tmp_path / "array.npy", X)
    for suffix, content in (
        (".csv", FRAME.to_csv(index=False, sep=";", decimal=",").encode()),
        (".csv.gz", gzip.compress(text)),
        (".csv.zst", PACK[".zst"](text)),
        (".parquet", FRAME.to_parquet(index=False)),
        (".arrow", (tmp_path / "frame").read_bytes()),
        (".npy", (tmp_path / "array.npy").read_bytes()),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        spool_stdin.cache_clear()
        check_rows("-", X)
        check_rows("-", X)  # again, from the copy
        assert spool_stdin().name == f"stdin{suffix}"
    spool_stdin.cache_clear()
    assert "is copied to" in capsys.readouterr().err
    for is_terminal, message in ((False, "standard input is empty"), (True, "nothing is piped")):
        nothing = Mock(buffer=io.BytesIO(), **{"isatty.return_value": is_terminal})
        monkeypatch.setattr("sys.stdin", nothing)
        with pytest.raises(DataError, match=message):
            open_source("-")
