"""Files of ours, changed where it hurts and with their digest mended: decoded, or refused by us.

Every file is told by its kind and a number, so that one that fails can be made again:
``trial("sketch", 1234)``.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import resource
import signal
import struct
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

import sketchshift as ss
from sketchshift import errors
from sketchshift.cli.inspect import _statistics
from sketchshift.cli.output import keys_in_words, sketch_record, spec_record
from sketchshift.features import Cells, Origin
from sketchshift.privacy.sketch import released_parts
from sketchshift.sketch.measure import parts_of
from sketchshift.sketch.stored import summarise_file
from sketchshift.view import SketchFile, report_on

MEANT = (errors.PlanWarning, errors.PrivacyWarning, errors.ScaleHint, ConvergenceWarning)
SECONDS = 60  # for one file; a decoding takes a tenth of one
FEW = 2**16  # numbers to draw for a fingerprint
X = np.random.default_rng(5).normal(size=(300, 3)) + np.repeat([[0.0], [4.0]], 150, axis=0)

NUMBERS = [0, 1, -1, 2, 7, 255, 2**22, 2**31, 2**52, 2**53 + 1, 2**61, 2**62 - 1, 2**62, 2**63 - 1]
NUMBERS += [-(2**63), 2**64 - 1, 2**64, 10**30, -(10**30), 10**400]
FLOATS = [0.0, 0.5, 1.0, 1.5, -1.0, 1e-20, 1e20, 1e-150, 1e150, -1e150, 5e-324, 1e300, 1e308]
FLOATS += [2.0**16, 3.0, 1e-5, 1e-3, 0.999999, -0.0, math.pi, 1e15, 1e16]
OTHERS: list[Any] = [None, True, False, "", "x", "0" * 32, "f" * 32, "a\0b", "\ud800", [], [1.0]]
OTHERS += [{}, {"a": 1}, [[[]]], "x" * 5000, [0.1] * 3, [1e150, 1.0, -1e150], [1e-150] * 3]
OTHERS += [[1e-20, 1e20], [0.3, 0.2], [0.1, 0.2], "declared", "private", "replace_one", "float64"]
WORDS = ["gaussian", "folded_gaussian", "adapted_radius", "float32", "float64"]


def spec_of(**options: Any) -> ss.SketchSpec:
    return ss.SketchSpec(**{"n_features": 3, "sketch_size": 12, "bandwidth": 1.0} | options)


SPECS = [
    spec_of(
        bandwidth=(0.5, 2.0),
        center=(1, 2, 3),
        scale=(1.0, 2.0, 3.0),
    ),
    spec_of(n_features=1, columns=("x",), scale=2.0),
    spec_of(n_features=2, columns=("x", "y"), law="adapted_radius", precision="float64"),
    spec_of(n_features=2, bandwidth=(0.3, 3.0), far_share=0.25, seed=3),
    spec_of(sketch_size=0, landmarks=ss.features.Landmarks.of([[0.0, 1.0, 2.0], [1.0, 0.5, 3.0]])),
]


@cache
def sketches() -> list[ss.Sketch]:
    """Raw ones: rows as they are, of weights, a difference, and none."""
    found = []
    for i, spec in enumerate(SPECS):
        rows = X[:, : spec.n_features]
        weights = np.linspace(0.0, 2.0, len(rows)) if i % 2 else None
        whole = ss.sketch(rows, spec, sample_weight=weights)
        part = ss.sketch(rows[:100], spec, sample_weight=None if weights is None else weights[:100])
        found += [whole, whole - part]
    return [*found, ss.sketch(X[:1], SPECS[0]), ss.Sketcher(SPECS[1]).sketch()]


@cache
def private_sketches() -> list[Any]:
    found = []
    for d in (1, 3):
        spec = spec_of(n_features=d, origin=Origin("declared", 20.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(ss.privacy.release(ss.sketch(X[:, :d], spec), 9.0, 1e-6, force=True))
    both = ss.privacy.release(ss.sketch(X + 1, spec), 9.0, 1e-6, force=True)
    celled = dataclasses.replace(spec, cells=Cells.of(X[:4]))
    cells = ss.privacy.release(ss.sketch(X, celled), 9.0, 1e-6, force=True)
    return [*found, found[-1] + both, cells]


@cache
def table() -> ss.SketchTable:
    days = np.arange(len(X)) % 3
    return ss.sketch_by(X[:, :2], by=days, spec=SPECS[3])


# How a document, an integer or a file is changed.


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every place inside a JSON document: what holds it, and its name or number there."""
    found = []
    names = list(document) if isinstance(document, dict) else range(len(document))
    for name in names:
        found.append((document, name))
        if isinstance(document[name], dict | list):
            found += places(document[name])
    return found


def changed(document: Any, rng: np.random.Generator) -> Any:
    """A document with one to three places replaced, removed, repeated or added to."""
    document = copy.deepcopy(document)
    for _ in range(pick([1, 1, 1, 2, 3], rng)):
        if not places(document):
            break
        spots = places(document)
        holder, name = spots[rng.integers(len(spots))]
        action = rng.integers(10)
        if action == 0:
            del holder[name]
        elif action == 1 and isinstance(holder, dict):
            holder[pick(["new", "scale", "center", "origin", "far_share"], rng)] = any_value(rng)
        elif action == 2 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[name]))
        else:
            holder[name] = other_value(holder[name], rng)
    return document


def pick(values: Any, rng: np.random.Generator) -> Any:
    return values[rng.integers(len(values))]


def any_value(rng: np.random.Generator) -> Any:
    return copy.deepcopy(pick(pick([NUMBERS, FLOATS, OTHERS, WORDS], rng), rng))


def other_value(value: Any, rng: np.random.Generator) -> Any:
    """Mostly one of the same type: such a file is not refused at once."""
    if rng.random() < 0.2:
        return any_value(rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = [value + 1, value - 1, 2 * value, value // 2]
        return pick([*NUMBERS, *near], rng)
    if isinstance(value, float):
        near = [-value, 2 * value, value / 3, value * 10.0 ** int(rng.integers(-30, 30))]
        return pick([*FLOATS, *near], rng)
    if isinstance(value, str):
        return pick([*WORDS, value + "x", value[::-1], ""], rng)
    return any_value(rng)


def other_integer(value: int, bits: int, rng: np.random.Generator) -> int:
    sign = 1 if rng.random() < 0.5 else -1
    size = int(rng.integers(bits))
    near = [0, 1, -1, -value, value + 1, value - 1, 2 * value, value // 2, value * 3 // 4]
    wild = [sign << size, (sign << size) - 1, int(rng.integers(2**62)) >> int(rng.integers(62))]
    limit = 2 ** (bits - 1)
    return max(-limit, min(limit - 1, pick([*near, *wild], rng)))


def canonical(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def mended(magic: bytes, header: Any, payload: bytes) -> bytes:
    """A file around any content, with the digest that it should have."""
    text = canonical(header)
    body = struct.pack("<8sHHI", magic, 1, 0, len(text)) + text + payload
    return body + hashlib.blake2b(body, digest_size=32).digest()


def taken_apart(data: bytes) -> tuple[bytes, Any, bytes]:
    (length,) = struct.unpack_from("<I", data, 12)
    return data[:8], json.loads(data[16 : 16 + length]), data[16 + length : -32]


def with_its_fingerprint(header: Any) -> ss.SketchSpec | None:
    """The spec of a header, if there is one; its fingerprint is then the one in the header."""
    try:
        spec = ss.SketchSpec.from_dict(header["spec"])
    except (errors.SketchshiftError, KeyError, TypeError, ValueError):
        return None
    if spec.n_features * spec.sketch_size > FEW:
        return None
    header["spec"], header["fingerprint"] = json.loads(spec.to_json()), spec.fingerprint
    return spec


def with_other_integers(payload: bytes, n_narrow: int, rng: np.random.Generator) -> bytes:
    """A payload of 64-bit and then 128-bit integers, one to four of them changed."""
    changed = bytearray(payload)
    n = n_narrow + (len(payload) - 8 * n_narrow) // 16
    for _ in range(rng.integers(1, 5) if n else 0):
        i = int(rng.integers(n))
        at, size = (8 * i, 8) if i < n_narrow else (8 * n_narrow + 16 * (i - n_narrow), 16)
        value = int.from_bytes(changed[at : at + size], "little", signed=True)
        value = other_integer(value, 8 * size, rng)
        changed[at : at + size] = value.to_bytes(size, "little", signed=True)
    return bytes(changed)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut off, prolonged, or with some bytes that are others."""
    action = rng.integers(3)
    if action == 0:
        return data[: rng.integers(len(data))]
    if action == 1:
        return data + rng.bytes(int(rng.integers(1, 40)))
    flipped = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        flipped[rng.integers(len(data))] = rng.integers(256)
    return bytes(flipped)


def of_length(payload: bytes, length: int) -> bytes:
    return (payload * (length // max(1, len(payload)) + 1))[:length]


def mutated_sketch(data: bytes, rng: np.random.Generator) -> bytes:
    """A sketch file, raw or private, with another header, payload or both."""
    magic, header, payload = taken_apart(data)
    is_raw = magic[3:4] == b"S"
    what = rng.integers(8)
    if what == 0:
        return mended(magic, header, damaged(payload, rng))
    if what < 5:
        header = changed(header, rng)
    spec = with_its_fingerprint(header) if isinstance(header, dict) and rng.random() < 0.8 else None
    m = len(payload) // 16 if spec is None else spec.sketch_size
    if spec is not None:
        parts = parts_of(spec) if is_raw else released_parts(spec)
        n_bytes = sum(part.n_bytes for part in parts) + (0 if is_raw else 8)
        payload = of_length(payload, n_bytes)
    if what > 3:
        payload = with_other_integers(payload, 2 * m if is_raw else len(payload) // 8, rng)
    return mended(magic, header, payload)


# What is done with a file that is not refused.


def use_sketch(sketch: Any, like: Any, rng: np.random.Generator) -> None:
    """What a command would do with it, and then some."""
    repr(sketch)
    json.dumps(sketch_record(sketch, 1), default=str)
    type(sketch).from_bytes(sketch.to_bytes())
    if isinstance(sketch, ss.Sketch):
        _statistics(sketch)
        sketch.prefix(1 + sketch.spec.sketch_size // 2)
        for name in ("mean", "covariance"):
            getattr(sketch, name)
        use(lambda: sketch - sketch)
        use(lambda: sketch + sketch)
    if sketch.spec.n_features * sketch.spec.sketch_size > FEW:
        return
    use(lambda: ss.decode(sketch, 2))
    actions = [
        lambda: ss.compare(sketch, like, n_clusters=2),
        lambda: ss.compare(sketch, sketch, n_clusters=2),
        lambda: ss.decode(sketch, "auto", max_clusters=3),
        lambda: ss.CompressiveKMeans(2, random_state=0).fit_sketch(sketch).cluster_centers_,
        lambda: ss.CompressiveGaussianMixture(2, random_state=0).fit_sketch(sketch).means_,
        lambda: report_on(SketchFile.of("a", 1, sketch), 2),
        lambda: ss.drift.watch({0: like, 1: like, 2: sketch}, n_clusters=None),
        lambda: ss.SketchAndShift(n_initializations=10)(sketch, 2),
        lambda: ss.ClOmpr(n_initializations=10)(sketch, 2),
        lambda: ss.privacy.release(sketch, 1.0, 1e-6, force=True),
    ]
    for i in rng.choice(len(actions), 2, replace=False):
        use(actions[i])


def use(action: Callable[[], Any]) -> None:
    """Do it, or be refused by an error of ours."""
    with suppress(errors.SketchshiftError):
        action()


def try_sketch(folder: Path, rng: np.random.Generator) -> None:
    original = pick(sketches(), rng)
    path = folder / "a.sketch"
    path.write_bytes(mutated_sketch(original.to_bytes(), rng))
    use_sketch(ss.load(path), original, rng)


def try_private(folder: Path, rng: np.random.Generator) -> None:
    original = pick(private_sketches(), rng)
    path = folder / "a.sketch"
    path.write_bytes(mutated_sketch(original.to_bytes(), rng))
    use_sketch(ss.privacy.load(path), original, rng)


def try_table(folder: Path, rng: np.random.Generator) -> None:
    arrow, path = table().to_arrow(), folder / "t.parquet"
    what = rng.integers(5)
    if what < 2:
        data = arrow["sketch"].to_pylist()
        i = int(rng.integers(len(data)))
        data[i] = mutated_sketch(data[i], rng) if what else damaged(data[i], rng)
        arrow = arrow.set_column(2, "sketch", pa.array(data, pa.binary()))
    elif what == 2:
        place = int(rng.integers(3))
        arrow = arrow.set_column(place, arrow.column_names[place], other_column(rng))
    elif what == 3:
        names = [pick(["key", "count", "sketch", "", "a.b", "\0", "__order__", "k"], rng)]
        arrow = arrow.rename_columns([*names, *arrow.column_names[1:]][:3])
        arrow = arrow.append_column(pick(["count", "x", "sketch2"], rng), other_column(rng))
    pq.write_table(arrow, path, compression=pick(["none", "snappy", "zstd"], rng))
    if what == 4:
        path.write_bytes(damaged(path.read_bytes(), rng))
    where = pick([None, "count > 10", "key < 2", "key IS NULL"], rng)
    found = ss.SketchTable.from_parquet(path, where=where)
    repr(found)
    use(lambda: [keys_in_words(column.to_pylist()) for column in summarise_file(path)[0].columns])
    use(found.merge)
    if len(found):
        use(lambda: use_sketch(found.sketches[0], table().sketches[0], rng))
        use(lambda: ss.drift.watch(found, n_clusters=None))
    use(lambda: found.to_parquet(folder / "again.parquet"))


def other_column(rng: np.random.Generator) -> pa.Array:
    n, columns = 3, []
    for values in (
        [1, 2, 3],
        [100, 100, 100],
        [None] * n,
        ["a", "b", "c"],
        [1.5, math.nan, math.inf],
    ):
        columns.append(pa.array(values))
    columns += [pa.nulls(n, pa.binary()), pa.array([b"", b"x", None]), pa.array([[1], [], None])]
    columns += [
        pa.array([{"a": 1}] * n),
        pa.array([True, None, False]),
        pa.array([2**64 - 1] * n, pa.uint64()),
    ]
    columns += [
        pa.array([0, 1, 2**62], pa.timestamp("ns", "UTC")),
        pa.array([10**6] * n, pa.date32()),
    ]
    columns += [
        pa.array([-(2**50), 0, 1], pa.timestamp("s")),
        pa.array([1, 2, 3], pa.duration("s")),
    ]
    columns += [pa.array(["1"] * n).cast(pa.decimal128(38, 3)), pa.array([b"12"] * n, pa.binary(2))]
    columns += [pa.array(["a", "b", "a"]).dictionary_encode(), pa.array([1, 2, 3], pa.time64("us"))]
    return pick(columns, rng)


def try_plan(folder: Path, rng: np.random.Generator) -> None:
    spec = pick([*SPECS, private_sketches()[0].spec], rng)
    document = changed(json.loads(spec.to_json()), rng)
    text = json.dumps(document, indent=pick([None, 1], rng))
    if rng.random() < 0.1:
        text = damaged(text.encode(), rng).decode("latin-1")
    spec = ss.SketchSpec.from_json(text)
    assert ss.SketchSpec.from_json(spec.to_json()) == spec
    json.dumps(spec_record(spec), default=str)
    if spec.n_features * spec.sketch_size > FEW:
        return
    spec.describe()
    rows = pick([X, X * 1e-3, X * 1e6, X * 0.0], rng)
    rows = np.resize(rows, (30, spec.n_features)) * spec.scale_vector + spec.center_vector
    found: list[ss.Sketch] = []
    use(lambda: found.append(ss.sketch(rows, dataclasses.replace(spec, columns=None))))
    for sketch in found:
        use_sketch(sketch, sketch, rng)


def try_account(folder: Path, rng: np.random.Generator) -> None:
    path = folder / "account.json"
    account = ss.privacy.Account(path, 50.0, 1e-6)
    for released in private_sketches()[:2]:
        account.add(released.ledger.charges)
    document = json.loads(path.read_text())
    text = json.dumps(changed(document, rng)).encode()
    path.write_bytes(damaged(text, rng) if rng.random() < 0.1 else text)
    again = ss.privacy.Account(path)
    assert math.isfinite(again.spent)
    use(lambda: again.add(private_sketches()[2].ledger.charges))


KINDS = {
    "sketch": try_sketch,
    "private": try_private,
    "table": try_table,
    "plan": try_plan,
    "account": try_account,
}


def trial(kind: str, number: int, folder: Path) -> str:
    """Make a file, read it and use it; anything but an error of ours is a fault."""
    rng = np.random.default_rng([sorted(KINDS).index(kind), number])
    for file in folder.iterdir():
        file.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in MEANT:
            warnings.simplefilter("ignore", category)
        try:
            KINDS[kind](folder, rng)
        except errors.SketchshiftError:
            return "refused"
    return "decoded"


def trials(kind: str, numbers: range, folder: Path) -> tuple[Counter[str], dict[int, str]]:
    """How many were decoded and refused, and what went wrong with the others."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"{SECONDS} s")

    found, faults = Counter[str](), dict[int, str]()
    before = signal.signal(signal.SIGALRM, too_long)
    for number in numbers:
        signal.alarm(SECONDS)
        try:
            found[trial(kind, number, folder)] += 1
        except Exception as error:
            faults[number] = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    return found, faults


FAST = {"sketch": 150, "private": 60, "table": 120, "plan": 60, "account": 40}
MANY = {"sketch": 8000, "private": 4000, "table": 4000, "plan": 2500, "account": 1500}


@pytest.mark.parametrize("kind", FAST)
def test_a_changed_file_is_decoded_or_refused_by_an_error_of_ours(
    kind: str, tmp_path: Path
) -> None:
    found, faults = trials(kind, range(FAST[kind]), tmp_path)

    assert not faults
    assert found["decoded"]
    assert found["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_so_are_twenty_thousand_files_in_little_memory(
    kind: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert sum(MANY.values()) == 20_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    found, faults = trials(kind, range(MANY[kind]), tmp_path)

    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record_property("outcome", f"{kind}: {dict(found)}, {(after - before) / 1000:.0f} MB more")
    assert not faults
    assert after - before < 500_000
