from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
TABLE = pa.table({"a": X[:, 0], "t": ["text"] * 20, "b": X[:, 1], "c": X[:, 2]})


def write_file(path, codec, new=pa.ipc.new_file):
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.OSFile(str(path), "wb") as f, new(f, TABLE.schema, options=options) as w:
        w.write_table(TABLE, max_chunksize=9)


def write_stream(path, codec):
    write_file(path, codec, pa.ipc.new_stream)


@pytest.mark.parametrize(
    ("suffix", "write", "codec"),
    [
        ("arrow", write_file, None),
        ("feather", write_file, "lz4"),
        ("ipc", write_stream, "zstd"),
        ("arrow", write_stream, None),
    ],
)
def test_both_forms_give_the_columns_asked_for(gather, block_rows, tmp_path, suffix, write, codec):
    path = tmp_path / f"x.{suffix}"
    write(path, codec)

    values, weights = gather(path, columns=["c", "a"], weights="b", block_rows=block_rows)

    np.testing.assert_array_equal(values, X[:, [2, 0]])
    np.testing.assert_array_equal(weights, X[:, 1])


def test_neither_form_counts_its_rows_but_both_say_how_far_they_are(tmp_path):
    write_file(tmp_path / "f.arrow", None)
    write_stream(tmp_path / "s.arrow", None)

    for name in ("f.arrow", "s.arrow"):
        source = open_source(tmp_path / name, columns=["a"])
        shares = [block.done for block in source]
        assert source.n_rows is None
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_blocks_outlive_the_map_they_came_from(tmp_path):
    write_file(tmp_path / "x.arrow", None)

    blocks = [block.values for block in open_source(tmp_path, columns=["a"], block_rows=2)]

    np.testing.assert_array_equal(np.concatenate(blocks)[:, 0], X[:, 0])


@pytest.mark.parametrize("write", [write_file, write_stream])
def test_text_and_missing_columns_are_known_at_once(tmp_path, write):
    write(tmp_path / "x.arrow", None)

    with pytest.raises(DataError, match=r"x\.arrow: column 't' \(string\).*'a', 'b', 'c'"):
        open_source(tmp_path)
    with pytest.raises(DataError, match=r"x\.arrow has no column 'z'"):
        open_source(tmp_path, columns=["z"])


@pytest.mark.parametrize("content", [b"", b"hello world", b"ARROW1\0\0 and no more"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "x.arrow").write_bytes(content)

    with pytest.raises(DataError, match=r"cannot read .*x\.arrow: it seems damaged"):
        open_source(tmp_path)


def test_a_truncated_stream_is_named(tmp_path):
    path = tmp_path / "x.arrow"
    write_stream(path, None)
    path.write_bytes(path.read_bytes()[:-300])

    with pytest.raises(DataError, match=r"cannot read .*x\.arrow: it seems damaged"):
        list(open_source(path, columns=["a"]))


def test_the_first_version_of_feather_is_refused(tmp_path):
    (tmp_path / "x.feather").write_bytes(b"FEA1" + b"\0" * 20)

    with pytest.raises(DataError, match=r"x\.feather: it is Feather version 1"):
        open_source(tmp_path)
