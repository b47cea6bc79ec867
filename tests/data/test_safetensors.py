from __future__ import annotations

import json
import struct

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from sketchshift.data import Access, open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(scale=50, size=(20, 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_every_short_float_becomes_the_float_that_it_is(check_rows, path, dtype):
    halves = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(-1, 2)
    save_file({"v": halves}, path)

    check_rows(path, halves.astype(np.float32))
    assert open_source(path).access is Access.DISK


def test_a_tensor_is_chosen_by_name(check_rows, path):
    save_file({"v": X, "ids": np.arange(20), "cube": np.zeros((2, 2, 2))}, path)
    check_rows(path, X)  # the only one of two dimensions
    save_file({"a": X, "b": 2 * X, "bias": X[0].copy(), "none": np.empty((0, 3))}, path)
    check_rows(path, 2 * X, columns=["b"])
    assert list(open_source(path, columns=["none"])) == []
    for columns, message in (
        (None, r"3 tensors with rows: .*'a' \(F64, 20 x 3\).*columns=\['"),
        (["c"], r"no tensor 'c'.*'a'"),
        (["a", "b"], r"choose one tensor, with columns=\['a'\]"),
        (["bias"], r"tensor 'bias' .*one dimension"),
    ):
        with pytest.raises(DataError, match=message):
            open_source(path, columns=columns)


def test_files_without_such_a_tensor_are_refused_by_what_they_have(path):
    save_file({"ids": np.arange(20)}, path)
    with pytest.raises(
        DataError, match=r"no tensor of numbers with two dimensions.*'ids' \(I64, 20\)"
    ):
        open_source(path)
    save_file({}, path)
    with pytest.raises(DataError, match="none at all"):
        open_source(path)


def test_weights_and_keys_are_no_columns_of_tensors(path):
    save_file({"v": X, "w": np.ones(20)}, path)

    for asked in ({"weights": "w"}, {"keys": ["w"]}):
        with pytest.raises(DataError, match="has no column names"):
            open_source(path, **asked)


# Files that are no good: each departs from a good one in one way.

BODY = X.astype("<f8").tobytes()


def entry(**changes):
    return {"dtype": "F64", "shape": [20, 3], "data_offsets": [0, len(BODY)], **changes}


def content(header, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + BODY


def test_rows_may_begin_anywhere(check_rows, path):
    for padding in range(9):
        path.write_bytes(content(json.dumps({"v": entry()}).encode() + b" " * padding))

        check_rows(path, X)
        assert next(iter(open_source(path))).values.flags.aligned


HALF = len(BODY) // 2
WRONG = {
    "an array": b"[]",
    "a number": b"12",
    "no JSON": b"{'v': 1}",
    "no text": b'{"\xff": 1}',
    "blank first": b" " + json.dumps({"v": entry()}).encode(),
    "twice": json.dumps({"v": entry()}).encode()[:-1]
    + b", "
    + json.dumps({"v": entry()}).encode()[1:],
    "deep": b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "no entry": {"v": 3},
    "no shape": {"v": {"dtype": "F64", "data_offsets": [0, len(BODY)]}},
    "three places": {"v": entry(data_offsets=[0, 1, len(BODY)])},
    "negative shape": {"v": entry(shape=[-20, -3])},
    "shape of bools": {"v": entry(shape=[True, 60])},
    "float shape": {"v": entry(shape=[20.0, 3])},
    "huge shape": {"v": entry(shape=[2**62, 2**62])},
    "endless": b'{"v": {"dtype": "F64", "shape": [20, 3], "data_offsets": [0, Infinity]}}',
    "larger": {"v": entry(shape=[21, 3])},
    "other type": {"v": entry(dtype="F32")},
    "gap before": {"v": entry(shape=[19, 3], data_offsets=[24, len(BODY)])},
    "rest behind": {"v": entry(shape=[19, 3], data_offsets=[0, len(BODY) - 24])},
    "beyond": {"v": entry(shape=[21, 3], data_offsets=[0, len(BODY) + 24])},
    "reversed": {"v": entry(data_offsets=[len(BODY), 0])},
    "overlap": {
        "a": entry(),
        "b": entry(shape=[10, 3], data_offsets=[HALF, len(BODY)]),
    },
    "same place": {"a": entry(), "b": entry()},
    "notes": {"v": entry(), "__metadata__": {"a": 1}},
    "notes in a list": {"v": entry(), "__metadata__": ["a"]},
}


def test_a_file_that_departs_from_a_good_one_is_damaged(path):
    """A header without sense, of another length, or a file that ends early."""
    save_file({"v": X}, path)
    good = path.read_bytes()
    contents = {f"{n} bytes": good[:n] for n in (0, 3, 8, 20)}
    contents |= {name: content(header) for name, header in WRONG.items()}
    for length in (0, 1, 2**63, 2**64 - 1, 100_000_001, 5000):
        contents[f"{length} of header"] = content({"v": entry()}, length)

    for name, wrong in contents.items():
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=r"x\.safetensors: it seems damaged or incomplete"):
            pytest.fail(f"{name}: {open_source(path)}")


def test_types_that_are_no_real_numbers_are_named(path):
    path.write_bytes(content({"v": entry(dtype="C64")}))

    for columns in (None, ["v"]):
        message = r"'v' \(C64, 20 x 3\)" + ".*Known are BOOL" * (columns is not None)
        with pytest.raises(DataError, match=message):
            open_source(path, columns=columns)
