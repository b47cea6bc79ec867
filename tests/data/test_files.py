from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sketchshift.data import open_source
from sketchshift.data.open import expand
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


def write(path, frame=FRAME):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    elif path.suffix == ".npy":
        np.save(path, frame.to_numpy())
    elif path.suffix.lower() == ".arrow":
        frame.reset_index(drop=True).to_feather(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.fixture
def folder(tmp_path):
    """Twenty rows in four files of three kinds, beside what must be left alone."""
    for i, name in enumerate(("1.parquet", "2/1.csv", "2/2.csv.gz", "3.ARROW")):
        write(tmp_path / name, FRAME[5 * i : 5 * i + 5])
    for ignored in (".hidden.csv", "_SUCCESS.csv", "_tmp/1.csv", ".git/1.csv", "notes.doc"):
        write(tmp_path / ignored)
    return tmp_path


def test_a_folder_is_read_in_the_order_of_names_and_a_list_in_its_own(check_rows, folder):
    paths = [folder / "2" / "1.csv", str(folder / "1.parquet")]

    for data, rows in ((folder, X), (str(folder), X), (paths, np.roll(X[:10], 5, axis=0))):
        check_rows(data, rows)


def test_a_glob_takes_all_data_that_match_and_nothing_that_engines_hide(tmp_path):
    """As in Spark's and Delta's folders: marks of success, logs, unfinished parts."""
    for name in (
        "a.csv",
        "_b.csv",
        "c[1].csv",
        ".d.csv",
        "_tmp/1.csv",
        "_SUCCESS",
        "_log/1.parquet",
    ):
        write(tmp_path / name)

    def found(pattern):
        return [file.relative_to(tmp_path).as_posix() for file in expand(tmp_path / pattern)]

    assert found("*.csv") == found("*") == found("**/*.csv") == ["_b.csv", "a.csv", "c[1].csv"]
    assert found("?b.csv") == found("_*.csv") == found("_b.csv") == ["_b.csv"]
    assert found("_t*/*.csv") == found("_tmp/?.csv") == ["_tmp/1.csv"]
    assert found(".") == ["a.csv", "c[1].csv"]


def test_relative_globs_start_from_the_current_folder(check_rows, folder, monkeypatch):
    monkeypatch.chdir(folder)

    check_rows("2/*.csv", X[5:10])
    check_rows("**/[12].csv*", X[5:15])


def test_a_file_whose_name_looks_like_a_glob_is_read(check_rows, tmp_path):
    check_rows(write(tmp_path / "x[1].csv"), X)


def test_columns_in_another_order_are_put_in_that_of_the_first(check_rows, tmp_path):
    write(tmp_path / "1.csv", FRAME[:10])
    write(tmp_path / "2.parquet", FRAME[10:][["c", "a", "b"]])

    check_rows(tmp_path, X)


def test_files_with_other_columns_are_both_named(tmp_path):
    write(tmp_path / "1.csv")
    write(tmp_path / "2.csv", FRAME.rename(columns={"b": "z"}))

    message = r"(?s)only in .*1\.csv: 'b'\n  only in .*2\.csv: 'z'\n.*columns=\[\.\.\.\]"
    with pytest.raises(DataError, match=message):
        open_source(tmp_path)
    with pytest.raises(DataError, match=r"2\.csv has no column 'b'"):
        open_source(tmp_path, columns=["b"])
    assert open_source(tmp_path, columns=["a", "c"]).columns == ("a", "c")


def test_a_file_that_vanishes_is_named(tmp_path):
    for name in ("x.parquet", "x.csv", "x.npy", "x.arrow"):
        path = write(tmp_path / name)
        source = open_source(path)
        path.unlink()

        with pytest.raises(DataError, match=rf"cannot read .*{name}.*[Nn]o such file"):
            list(source)


def test_a_file_given_twice_is_refused(tmp_path):
    write(tmp_path / "1.csv")

    for paths in ([tmp_path / "1.csv", tmp_path / "1.csv"], [tmp_path, str(tmp_path / "*.csv")]):
        with pytest.raises(DataError, match=r"1\.csv' is given twice"):
            open_source(paths)


NOWHERE = {
    "none.csv": r"no file or folder '.*none\.csv'",
    "none*.csv": r"no file matches '.*none\*\.csv'",
    "notes.doc": r"notes\.doc': its name does not end in \.parquet, \.csv, .* or \.sqlite3",
    "*.doc": r"notes\.doc': its name does not end in",
    "empty": r"folder '.*empty' has no file that ends in \.parquet",
    "mixed": r"(?s)1\.csv: columns 'a'.*2\.npy: 3 columns without names",
    "wide": r"(?s)1\.npy: 3 columns.*2\.npy: 2 columns",
    "day.sketch": r"day\.sketch' is a sketch, not data\. Read it with ss\.load\('.*day\.sketch'\)\.",
}


@pytest.mark.parametrize(("name", "words"), NOWHERE.items())
def test_paths_that_lead_to_no_data_are_named(tmp_path, name, words):
    for file in ("notes.doc", "day.sketch", "mixed/1.csv", "mixed/2.npy", "wide/1.npy"):
        write(tmp_path / file)
    write(tmp_path / "wide" / "2.npy", FRAME[["a", "b"]])
    (tmp_path / "empty").mkdir()

    with pytest.raises(DataError, match=words):
        open_source(tmp_path / name)


def test_an_empty_path_is_not_the_current_folder_and_weights_of_files_are_a_column(folder):
    with pytest.raises(DataError, match="it is empty"):
        open_source("")
    with pytest.raises(DataError, match=r"sample_weight cannot be an array for files.*its name"):
        open_source(folder, weights=np.ones(20))
