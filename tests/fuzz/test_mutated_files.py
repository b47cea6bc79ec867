"""Files of ours, changed where it hurts and with their digest mended: decoded, or refused by us.

Every file is told by its kind and a number, so that one that fails can be made again:
``trial("sketch", 34, folder)``.
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
from collections import Counter
from contextlib import suppress
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift import errors
from sketchshift.cli.inspect import _statistics
from sketchshift.cli.output import keys_in_words, sketch_record, spec_record
from sketchshift.features import Ball, Cells, Range
from sketchshift.sketch.stored import summarise_file
from sketchshift.sketch.totals import Layout
from sketchshift.view import SketchFile, report_on
from sketchshift_papers import landmarks

pytestmark = [
    pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning"),
    pytest.mark.filterwarnings("ignore::sketchshift.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sketchshift.errors.ScaleHint"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SECONDS = 60  # for one file; a decoding takes a tenth of one
FEW = 2**16  # numbers to draw for a fingerprint
X = np.random.default_rng(5).normal(size=(300, 3)) + np.repeat([[0.0], [4.0]], 150, axis=0)

VALUES = [0, 1, -1, 2**22, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**64, 10**400]
VALUES += [0.0, 0.5, 1.0, -1.0, 1e-20, 1e20, 1e-150, -1e150, 5e-324, 1e308, 0.999999, 1e15]
VALUES += ["", "0" * 32, "a\0b", "\ud800", "x" * 5000, "declared", "private", "replace_one"]
VALUES += ["gaussian", "folded_gaussian", "adapted_radius", "float32", "float64"]
VALUES += [None, True, [], {}, {"a": 1}, [[[]]], [0.1] * 3, [1e150, 1.0, -1e150], [1e-20, 1e20]]


def spec_of(**options):
    return ss.SketchSpec(**{"n_features": 3, "sketch_size": 12, "bandwidth": 1.0} | options)


@cache
def specs():
    return [
        spec_of(bandwidth=(0.5, 2.0), center=(1, 2, 3), scale=(1.0, 2.0, 3.0)),
        spec_of(n_features=1, columns=("x",), scale=2.0),
        spec_of(n_features=2, columns=("x", "y"), law="adapted_radius", precision="float64"),
        spec_of(n_features=2, bandwidth=Range(0.3, 3.0, 0.25), seed=3),
        spec_of().replaced(
            waves=None,
            families={"landmarks": landmarks.parameters([[0.0, 1, 2], [1, 0.5, 3]], 1.0)},
        ),
        spec_of().replaced(cells=Cells.of(X[:4])),
    ]


@cache
def sketches():
    """Raw ones: of weights, a difference, of one row, and of none."""
    found = []
    weights = np.linspace(0.0, 2.0, len(X))
    for spec in specs():
        rows = X[:, : spec.n_features]
        whole = ss.sketch(rows, spec, sample_weight=weights)
        found += [whole, whole - ss.sketch(rows[:100], spec, sample_weight=weights[:100])]
    return [*found, ss.sketch(X[:1], specs()[0]), ss.Sketcher(specs()[1]).sketch()]


@cache
def private_sketches():
    def released(rows, **options):
        spec = spec_of(n_features=rows.shape[1])
        of_ball = dataclasses.replace(spec.rows, onto=Ball("declared", 20.0))
        spec = spec.replaced(rows=of_ball, **options)
        return ss.privacy.release(ss.sketch(rows, spec), 9.0, 1e-6, force=True)

    one = released(X)
    return [released(X[:, :1]), one, one + released(X + 1), released(X, cells=Cells.of(X[:4]))]


@cache
def table():
    return ss.sketch_by(X[:, :2], by=np.arange(len(X)) % 3, spec=specs()[3])


# How a document, an integer or a file is changed.


def places(document):
    """Every place inside a JSON document: what holds it, and its name or number there."""
    found = []
    for name in document if isinstance(document, dict) else range(len(document)):
        found.append((document, name))
        if isinstance(document[name], dict | list):
            found += places(document[name])
    return found


def changed(text, rng):
    """The document in a text of JSON, with one to three places replaced, removed or added."""
    document = json.loads(text)
    for _ in range(pick([1, 1, 1, 2, 3], rng)):
        if not places(document):
            break
        holder, name = pick(places(document), rng)
        action = rng.integers(10)
        if action == 0:
            del holder[name]
        elif action == 1 and isinstance(holder, dict):
            holder[pick(["new", "scale", "center", "onto", "beyond", "families"], rng)] = any_value(
                rng
            )
        elif action == 2 and isinstance(holder, list):
            holder.append(any_value(rng))
        else:
            holder[name] = other_value(holder[name], rng)
    return document


def pick(values, rng):
    return values[rng.integers(len(values))]


def any_value(rng):
    return copy.deepcopy(pick(VALUES, rng))


def other_value(value, rng):
    """Mostly one of the same type: such a file is not refused at once."""
    if rng.random() < 0.2 or not isinstance(value, int | float | str):
        return any_value(rng)
    if isinstance(value, str):
        near = [value + "x", value[::-1]]
    elif isinstance(value, int):
        near = [value + 1, value - 1, 2 * value, value // 2]
    else:
        near = [-value, 2 * value, value / 3, value * 10.0 ** int(rng.integers(-30, 30))]
    return pick([*near, *(other for other in VALUES if type(other) is type(value))], rng)


def with_its_fingerprint(header):
    """The spec of a header, if there is one; its fingerprint is then the one in the header."""
    try:
        spec = ss.SketchSpec.from_dict(header["spec"])
    except (errors.SketchshiftError, KeyError, TypeError, ValueError):
        return None
    if spec.n_features * spec.sketch_size > FEW:
        return None
    header["spec"], header["fingerprint"] = json.loads(spec.to_json()), spec.fingerprint
    return spec


def with_other_integers(payload, rng):
    """A payload of integers of 64 and 128 bits, one to four of them changed."""
    changed = bytearray(payload)
    for _ in range(rng.integers(1, 5)):
        size = pick([8, 16], rng)
        at = size * int(rng.integers(max(1, len(payload) // size)))
        value = int.from_bytes(changed[at : at + size], "little", signed=True)
        power = 1 << int(rng.integers(8 * size))
        near = [0, 1, -1, -value, value + 1, 2 * value, value * 3 // 4, power, -power, power - 1]
        other = pick(near, rng) % 2 ** (8 * size)
        changed[at : at + size] = other.to_bytes(size, "little")
    return bytes(changed)


def damaged(data, rng):
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


def mutated_sketch(data, rng):
    """A sketch file, raw or private, with another header, payload or both, and its digest."""
    (length,) = struct.unpack_from("<I", data, 12)
    text, payload = data[16 : 16 + length], data[16 + length : -32]
    is_raw, header = data[3:4] == b"S", json.loads(text)
    what = rng.integers(8)
    if what == 0:
        payload = damaged(payload, rng)
    elif what < 5:
        header = changed(text, rng)
        if isinstance(header, dict) and rng.random() < 0.8:
            spec = with_its_fingerprint(header)
            if spec is not None and not is_raw:
                n = sum(math.prod(part.full_shape) for part in Layout.of(spec).released) + 1
                payload = (payload * (8 * n // max(1, len(payload)) + 1))[: 8 * n]
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    if what > 3:
        payload = with_other_octets(payload, rng) if is_raw else with_other_integers(payload, rng)
    if is_raw and rng.random() < 0.9:
        payload = with_its_digest(payload[:-16], header)
    body = data[:12] + struct.pack("<I", len(text)) + text + payload
    return body + hashlib.blake2b(body, digest_size=32).digest()


def with_other_octets(payload, rng):
    """A slice with one to four other bytes, mostly of integers."""
    changed = bytearray(payload)
    for _ in range(rng.integers(1, 5)):
        value = pick([0, 1, 127, 128, 255, int(rng.integers(256))], rng)
        changed[rng.integers(len(changed)) if rng.random() < 0.8 else rng.integers(50)] = value
    return bytes(changed)


def with_its_digest(content, header):
    """A slice with the digest that its content has with the fingerprint of a header."""
    try:
        key = bytes.fromhex(header["fingerprint"])
        return content + hashlib.blake2b(content, digest_size=16, key=key).digest()
    except (KeyError, TypeError, ValueError):
        return content + bytes(16)


# What is done with a file that is not refused.


def use_sketch(sketch, like, rng):
    """What a command would do with it, and then some."""
    repr(sketch)
    json.dumps(sketch_record(sketch, 1), default=str)
    type(sketch).from_bytes(sketch.to_bytes())
    if isinstance(sketch, ss.Sketch):
        _statistics(sketch)
        sketch.prefix(1 + sketch.spec.sketch_size // 2)
        _ = sketch.mean, sketch.covariance
        use(lambda: sketch - sketch)
        use(lambda: sketch + sketch)
    if sketch.spec.n_features * sketch.spec.sketch_size > FEW:
        return
    use(lambda: ss.decode(sketch, 2))
    actions = [
        lambda: ss.compare(sketch, like, n_clusters=2),
        lambda: ss.decode(sketch, "auto", max_clusters=3),
        lambda: ss.CompressiveGaussianMixture(2, random_state=0).fit_sketch(sketch).means_,
        lambda: report_on(SketchFile.of("a", 1, sketch), 2),
        lambda: ss.drift.watch({0: like, 1: like, 2: sketch}, n_clusters=None),
        lambda: ss.SketchAndShift(n_initializations=10)(sketch, 2),
        lambda: ss.privacy.release(sketch, 1.0, 1e-6, force=True),
    ]
    for i in rng.choice(len(actions), 2, replace=False):
        use(actions[i])


def use(action):
    """Do it, or be refused by an error of ours."""
    with suppress(errors.SketchshiftError):
        action()


def try_sketch(folder, rng, originals=sketches, load=ss.load):
    original = pick(originals(), rng)
    (folder / "a.sketch").write_bytes(mutated_sketch(original.to_bytes(), rng))
    use_sketch(load(folder / "a.sketch"), original, rng)


def try_private(folder, rng):
    try_sketch(folder, rng, private_sketches, ss.privacy.load)


def try_table(folder, rng):
    arrow, path = table().to_arrow(), folder / "t.parquet"
    what = rng.integers(5)
    if what < 2:
        data, plan = arrow["sketch"].to_pylist(), json.loads(arrow["plan"][0].as_py())
        i = int(rng.integers(len(data)))
        mended = with_its_digest(with_other_octets(data[i][:-16], rng), plan)
        data[i] = mended if what else damaged(data[i], rng)
        arrow = arrow.set_column(3, "sketch", pa.array(data, pa.binary()))
    elif what == 2:
        place = int(rng.integers(4))
        arrow = arrow.set_column(place, arrow.column_names[place], other_column(rng))
    elif what == 3:
        name = pick(["key", "count", "plan", "sketch", "", "a.b", "\0", "__order__", "k"], rng)
        arrow = arrow.rename_columns([name, *arrow.column_names[1:]])
        arrow = arrow.append_column(pick(["count", "x", "sketch2"], rng), other_column(rng))
    pq.write_table(arrow, path)
    if what == 4:
        path.write_bytes(damaged(path.read_bytes(), rng))
    where = pick([None, "count > 10", "key < 2", "key IS NULL"], rng)
    found = ss.load(path, where=where)
    repr(found)
    use(lambda: [keys_in_words(column.to_pylist()) for column in summarise_file(path)[0].columns])
    use(found.merge)
    if len(found):
        use(lambda: use_sketch(found.sketches[0], table().sketches[0], rng))
    use(lambda: found.save(folder / "again.parquet"))


def other_column(rng):
    kinds = [
        [1, 2, 3],
        ["a", "b", None],
        [1.5, math.nan, math.inf],
        [b"", b"x", None],
        [[1], [], None],
        [{"a": 1}] * 3,
        [True, None, False],
        pa.array([2**64 - 1] * 3, pa.uint64()),
        pa.array([0, 1, 2**62], pa.timestamp("ns", "UTC")),
        pa.array([-(2**50), 0, 1], pa.timestamp("s")),
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ]
    return pa.array(pick(kinds, rng))


def try_plan(folder, rng):
    spec = pick([*specs(), private_sketches()[0].spec], rng)
    text = json.dumps(changed(spec.to_json(), rng))
    if rng.random() < 0.1:
        text = damaged(text.encode(), rng).decode("latin-1")
    spec = ss.SketchSpec.from_json(text)
    assert ss.SketchSpec.from_json(spec.to_json()) == spec
    json.dumps(spec_record(spec), default=str)
    if spec.n_features * spec.sketch_size > FEW:
        return
    spec.describe()
    rows = np.resize(X * pick([1.0, 1e-3, 1e6, 0.0], rng), (30, spec.n_features))
    rows = rows * spec.rows.scale_vector + spec.rows.center_vector
    with suppress(errors.SketchshiftError):
        sketch = ss.sketch(rows, spec.replaced(rows=dataclasses.replace(spec.rows, columns=None)))
        use_sketch(sketch, sketch, rng)


def try_account(folder, rng):
    path = folder / "account.json"
    path.unlink(missing_ok=True)
    account = ss.privacy.Account(path, 50.0, 1e-6)
    for released in private_sketches()[:2]:
        account.add(released.ledger.charges)
    text = json.dumps(changed(path.read_text(), rng)).encode()
    path.write_bytes(damaged(text, rng) if rng.random() < 0.1 else text)
    again = ss.privacy.Account(path)
    assert math.isfinite(again.spent)
    use(lambda: again.add(private_sketches()[2].ledger.charges))


KINDS = {
    "account": try_account,
    "plan": try_plan,
    "private": try_private,
    "sketch": try_sketch,
    "table": try_table,
}


def trial(kind, number, folder):
    """Make a file, read it and use it; anything but an error of ours is a fault."""
    try:
        KINDS[kind](folder, np.random.default_rng([*map(ord, kind), number]))
    except errors.SketchshiftError:
        return "refused"
    return "decoded"


@pytest.fixture
def alarm():
    """Signals that end what takes longer than a file may."""

    def too_long(*_):
        raise TimeoutError(f"{SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    yield signal.alarm
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "n",
    [
        12,
        pytest.param(50, marks=pytest.mark.thorough),
        pytest.param(4000, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_decoded_or_refused_by_an_error_of_ours_in_little_memory(
    kind, n, alarm, tmp_path
):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, faults = Counter(), {}
    for number in range(n):
        alarm(SECONDS)
        try:
            found[trial(kind, number, tmp_path)] += 1
        except Exception as error:
            faults[number] = repr(error)

    assert not faults
    assert found["decoded"]
    assert found["refused"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
