"""Sketch files and tables with damage of any kind: refused by name, or loaded to equal sums.

python tests/fuzz/test_hostile_files.py [N]     # 25,000 files: minutes
"""

# ruff: noqa: T201
from __future__ import annotations

import resource
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.errors import DataError, SketchFormatError, SpecError
from sketchshift.features import Cells

SPECS = ({}, {"cells": True}, {"spread": None})
BATCH = 32  # of repeated rows in a bomb


@cache
def originals():
    """A table of each spec, and one of another plan."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3)) * np.where(rng.random((400, 1)) < 0.03, 1e4, 1.0)
    hours = np.datetime64("2026-01-01T00", "us") + 3_600_000_000 * (np.arange(400) % 40)
    found = []
    for parts in (*SPECS, {}):
        spec = ss.SketchSpec(3, 10, 1.0, seed=9 if len(found) == len(SPECS) else 0)
        spec = spec.replaced(**parts | ({"cells": Cells.of(X[:6])} if "cells" in parts else {}))
        found.append(ss.sketch_by(X, hours, spec, n_threads=1))
    return found


@cache
def written():
    """Bytes of the tables and of a sketch of each, as they are saved."""
    with tempfile.TemporaryDirectory() as folder:
        tables = []
        for table in originals():
            table.save(Path(folder) / "t.parquet")
            tables.append((Path(folder) / "t.parquet").read_bytes())
    return tables, [table.sketches[3].to_bytes() for table in originals()]


def flip(data, rng, first=0):
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(first, len(data))] ^= 1 << rng.integers(8)
    return data


def cut(data, rng):
    return data[: rng.integers(len(data))]


def prolong(data, rng):
    return data + rng.bytes(int(rng.integers(1, 40)))


def overwrite(data, rng):
    n = int(rng.integers(1, 200))
    at = int(rng.integers(max(1, len(data) - n)))
    data[at : at + n] = rng.bytes(n) if rng.random() < 0.5 else bytes(n)
    return data


def move(data, rng):
    """Some bytes stand at another place, too."""
    n = int(rng.integers(1, 2000))
    a, b = rng.integers(max(1, len(data) - n), size=2)
    data[a : a + n] = data[b : b + n]
    return data


def remove(data, rng):
    at, n = int(rng.integers(len(data))), int(rng.integers(1, 100))
    return data[:at] + data[at + n :]


def forge_footer(data, rng):
    """Bytes of the footer of Parquet, in which sizes, offsets and types stand."""
    footer = int.from_bytes(data[-8:-4], "little")
    data[-8 - footer + rng.integers(footer)] = rng.integers(256)
    return flip(data, rng, len(data) - 8 - footer) if rng.random() < 0.5 else data


DAMAGES = [flip, flip, flip, cut, prolong, overwrite, move, remove]


def swap_rows(rows, rng, other):
    return rows.take(rng.permutation(len(rows)))


def mix_plans(rows, rng, other):
    """Slices, plans, or both, of another table."""
    i = int(rng.integers(len(rows)))
    for name in (["plan"], ["sketch"], ["plan", "sketch"])[rng.integers(3)]:
        own, foreign = rows[name].to_pylist(), other[name].to_pylist()
        own[i] = foreign[i]
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, pa.array(own, rows[name].type))
    return rows


def damage_slice(rows, rng, other):
    own, i = rows["sketch"].to_pylist(), int(rng.integers(len(rows)))
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    own[i] = bytes(damage(bytearray(own[i]), rng)) if rng.random() < 0.9 else None
    return rows.set_column(3, "sketch", pa.array(own, pa.binary()))


def drop_columns(rows, rng, other):
    return rows.drop_columns(rows.column_names[rng.integers(4)])


def bomb(rows, rng, other):
    """A value written once, for many rows, or many zeros."""
    n = BATCH * int(rng.integers(1, 2000))
    size = 2 ** int(rng.integers(1, 22))
    codes, values = pa.array(np.zeros(n, np.int32)), [rows["plan"][0].as_py(), "\0" * size]
    if rng.random() < 0.3:
        values.reverse()
    plans = pa.DictionaryArray.from_arrays(codes, pa.array(values[:1]))
    zeros = pa.DictionaryArray.from_arrays(codes, pa.array([values[1].encode()]))
    return pa.table({"key": np.arange(n), "plan": plans, "sketch": zeros})


ROWS = [swap_rows, mix_plans, damage_slice, damage_slice, drop_columns, bomb]


def write_damaged(path, rng):
    """Write a damaged file; return what it held before, and what was done."""
    tables, sketches = written()
    i, kind = int(rng.integers(len(SPECS))), rng.integers(4)
    if kind == 0:
        damage = DAMAGES[rng.integers(len(DAMAGES))]
        path.write_bytes(damage(bytearray(sketches[i]), rng))
        return originals()[i].sketches[3], f"sketch, {damage.__name__}"
    if kind == 1:
        damage = ROWS[rng.integers(len(ROWS))]
        rows = damage(originals()[i].to_arrow(), rng, originals()[-1].to_arrow())
        options = {"data_page_version": ("1.0", "2.0")[rng.integers(2)], "store_schema": False}
        codec = ("none", "zstd", "snappy", "brotli")[rng.integers(4)]
        pq.write_table(rows, path, compression=codec, **options)
        if damage is bomb and rng.random() < 0.5:
            path.write_bytes(forge_footer(bytearray(path.read_bytes()), rng))
        return originals()[i], f"table, {damage.__name__}"
    damage = forge_footer if kind == 2 else DAMAGES[rng.integers(len(DAMAGES))]
    path.write_bytes(damage(bytearray(tables[i]), rng))
    return originals()[i], f"table, {damage.__name__}"


def trial(number, folder):
    """Load a damaged file; return what happened. Different sums are an AssertionError."""
    rng, path = np.random.default_rng([29, number]), folder / "damaged"
    before, done = write_damaged(path, rng)
    try:
        found = ss.load(path)
    except (DataError, SketchFormatError, SpecError) as error:  # a plan begins with a brace
        words = str(error)
    else:
        assert found == before, done
        return done, "equal"
    assert str(path) in words, words
    assert "slice" not in done or "row " in words, words
    return done, "refused"


@pytest.mark.parametrize(
    "numbers", [range(400), pytest.param(range(400, 25_000), marks=pytest.mark.slow)], ids=len
)
def test_damaged_files_are_refused_by_name_or_load_to_equal_sums_in_little_memory(
    numbers, tmp_path
):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = Counter(trial(number, tmp_path)[1] for number in numbers)

    assert set(found) == {"refused", "equal"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700_000


def main() -> None:
    """Try many files; print what happened to each kind of damage."""
    n, found, faults = int(([*sys.argv, "25000"])[1]), Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n):
            print(number, end="\r", flush=True)  # a crash leaves its number
            try:
                found[trial(number, Path(folder))] += 1
            except Exception as error:
                faults.append((number, repr(error)[:300]))
    for (done, result), times in sorted(found.items()):
        print(f"{done:28} {result:8} {times:6}")
    with suppress(OSError):
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000, "MB at most")
    print(len(faults), "faults", *faults, sep="\n")


if __name__ == "__main__":
    main()
