"""Streams of real brokers: every message once, gaps and strangers refused."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.live import brokers
from sketchshift.live.brokers import open_stream, parse_address

pytestmark = pytest.mark.brokers
SPEC = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=1.0, columns=("x", "y"))


def make_rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def as_json(X):
    return [json.dumps({"x": x, "y": y}).encode() for x, y in X.tolist()]


def as_arrow(X):
    table, sink = pa.table({"x": X[:, 0], "y": X[:, 1]}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return sink.getvalue()


def follow(address, since=None):
    """The sketch of all that came, the position after it, and the number of changes."""
    sketcher, n_changes = ss.Sketcher(SPEC), 0
    for change in open_stream(address).changes(since):
        if change.added is not None:
            sketcher.update(change.added)
        if change.removed is not None:
            sketcher.remove(change.removed)
        since, n_changes = json.loads(json.dumps(change.position)), n_changes + 1
    return sketcher.sketch(), since, n_changes


def test_every_message_comes_once_in_whatever_batches(broker, stream):
    X = make_rows(700)
    broker.send(as_json(X[:500]), stream)

    first, position, n_changes = follow(broker.address(stream, batch=90))
    broker.send(as_json(X[500:]), stream)
    second, position, _ = follow(broker.address(stream), position)
    none, _, _ = follow(broker.address(stream), position)

    assert n_changes > 5
    assert first + second == ss.sketch(X, SPEC)
    assert first == ss.sketch(X[:500], SPEC) or broker.is_counted_by_partition
    assert none.count == 0


def test_tables_of_arrow_are_messages_of_many_rows(broker, stream):
    X = make_rows(1000)
    broker.send([as_arrow(X[:400]), *as_json(X[400:500]), as_arrow(X[500:])], stream)

    assert follow(broker.address(stream))[0] == ss.sketch(X, SPEC)


def test_large_messages_make_small_batches(broker, stream, monkeypatch):
    monkeypatch.setattr(brokers, "PAGE_BYTES", 100_000)
    X = make_rows(60_000)
    broker.send([as_arrow(part) for part in np.split(X, 300)], stream)

    sketch, _, n_changes = follow(broker.address(stream))

    assert sketch == ss.sketch(X, SPEC)
    assert n_changes > 5


def test_a_late_joiner_may_begin_at_the_newest(broker, stream):
    X = make_rows(50)
    broker.send(as_json(X[:30]), stream)

    nothing, position, _ = follow(broker.address(stream, **{"from": "newest"}))
    broker.send(as_json(X[30:]), stream)
    rest, _, _ = follow(broker.address(stream), position)

    assert nothing.count == 0
    assert rest == ss.sketch(X[30:], SPEC)


@pytest.mark.parametrize(
    ("drop", "n_lost"),
    [
        (lambda server, stream: server.drop_oldest(60, stream), 20),
        (lambda server, stream: server.drop_oldest(100, stream), 60),
        (lambda server, stream: server.drop(50, stream), 1),
        (lambda server, stream: server.drop(99, stream), 1),
    ],
    ids=["oldest", "all", "between", "last"],
)
def test_messages_dropped_before_they_were_read_are_refused(redis_server, stream, drop, n_lost):
    X = make_rows(100)
    redis_server.send(as_json(X[:40]), stream)
    _, position, _ = follow(redis_server.address(stream))
    redis_server.send(as_json(X[40:]), stream)
    drop(redis_server, stream)

    message = rf"{n_lost} messages? of .* dropped what.*gaps=skip"
    with pytest.raises(ss.errors.DataError, match=message):
        follow(redis_server.address(stream, batch=7), position)
    rest, position, _ = follow(redis_server.address(stream, gaps="skip"), position)

    assert rest.count == 60 - n_lost
    assert not rest.count or position["lost"] == n_lost  # a position comes with a message


def test_messages_dropped_after_they_were_read_or_before_the_first_read_are_no_gap(
    redis_server, stream
):
    X = make_rows(100)
    redis_server.send(as_json(X[:40]), stream)
    redis_server.drop_oldest(10, stream)
    first, position, _ = follow(redis_server.address(stream))
    redis_server.send(as_json(X[40:]), stream)
    redis_server.drop_oldest(30, stream)

    rest, position, _ = follow(redis_server.address(stream), position)

    assert first + rest == ss.sketch(X[10:], SPEC)
    assert "lost" not in position


def test_a_stream_made_anew_is_not_the_one_that_was_read(redis_server, stream):
    redis_server.send(as_json(make_rows(10)), stream)
    _, position, _ = follow(redis_server.address(stream))
    redis_server.begin_anew(stream)

    with pytest.raises(
        ss.errors.DataError, match=r"not the stream that was read before.*new state"
    ):
        follow(redis_server.address(stream), position)


def test_offsets_of_a_topic_that_has_not_got_them_are_refused(kafka_server, stream):
    kafka_server.send(as_json(make_rows(10)), stream)
    _, position, _ = follow(kafka_server.address(stream))
    offsets = position["offsets"]

    beyond = {"offsets": {**offsets, "0": offsets["0"] + 100}}
    with pytest.raises(ss.errors.DataError, match="not the stream that was read before"):
        follow(kafka_server.address(stream), beyond)
    before = {"offsets": {**offsets, "0": -5}}
    with pytest.raises(ss.errors.DataError, match=r"5 messages .* offsets -5 to -1 of partition 0"):
        follow(kafka_server.address(stream), before)
    with pytest.raises(ss.errors.DataError, match="partition 77"):
        follow(kafka_server.address(stream), {"offsets": {**offsets, "77": 1}})


def test_a_bad_message_is_named_by_its_id_or_counted(broker, stream):
    X = make_rows(20)
    bodies = as_json(X)
    broker.send([*bodies[:10], b"\x00 rubbish", *bodies[10:]], stream)
    (change,) = open_stream(broker.address(stream)).changes(None)

    where = rf"message \S+ of {broker.address(stream)} cannot be read"
    with pytest.raises(ss.errors.InvalidRowsError, match=where):
        ss.sketch(change.added, SPEC)
    skipped = ss.sketch(change.added, SPEC, on_invalid="skip")

    assert skipped.count == 20
    assert skipped.n_invalid == 1


def test_fields_of_redis_are_rows_of_texts(redis_server, stream):
    X = make_rows(30)
    entries = [{"x": repr(x), "y": repr(y), "country": "FR"} for x, y in X.tolist()]
    redis_server.send(entries, stream)
    (change,) = open_stream(redis_server.address(stream)).changes(None)

    table = ss.sketch_by(change.added, "country", SPEC)

    assert table["FR"] == ss.sketch(X, SPEC)
    assert ss.plan(change.added, 2, columns=["x", "y"]).rows.names == ("x", "y")


def test_changes_of_a_database_add_and_subtract(broker, stream):
    """Debezium's envelope: an update takes the row before away."""
    old, new = make_rows(5, 1), make_rows(5, 2)
    rows = [{"x": x, "y": y} for x, y in old.tolist()]
    after = [{"x": x, "y": y} for x, y in new.tolist()]
    made = [{"op": "c", "before": None, "after": row} for row in rows]
    updated = [{"op": "u", "before": b, "after": a} for b, a in zip(rows, after, strict=True)]
    deleted = {"schema": {}, "payload": {"op": "d", "before": after[0], "after": None}}
    broker.send([json.dumps(c).encode() for c in [*made, *updated, deleted]], stream)

    sketch, _, _ = follow(broker.address(stream))

    assert sketch == ss.sketch(new[1:], SPEC)


def test_a_server_that_is_not_there_is_named_without_its_password():
    for kind in ("redis", "kafka"):
        with pytest.raises(ss.errors.DataError, match=r"127\.0\.0\.1:1/s") as raised:
            list(open_stream(f"{kind}://me:hunter2@127.0.0.1:1/s").changes(None))
        assert "hunter2" not in str(raised.value)


def test_a_redis_that_speaks_no_tls_is_told_soon(redis_server, stream, monkeypatch):
    """It waits for more of what it takes for a command: each try is as long as a client waits."""
    monkeypatch.setattr(brokers, "SECONDS", 0.5)
    address = redis_server.address(stream).replace("redis://", "rediss://")

    with redis_server.client() as client:

        def count():
            return client.info("stats")["total_connections_received"]

        before = count()
        with pytest.raises(ss.errors.DataError, match="runs, speaks TLS, and takes"):
            list(open_stream(address).changes(None))
        assert count() - before == 2


def test_an_address_says_what_is_read():
    address = parse_address("redis://me:p%40ss@[::1]:7000/my%20stream?db=3&from=newest&batch=9")

    assert (address.user, address.password) == ("me", "p@ss")
    assert address.name == "redis://[::1]:7000/my stream?db=3"
    same = ("redis://h/s", "redis://h/s?db=0", "rediss://u:p@h:6379/s?db=00")
    assert {parse_address(one).name for one in same} == {"redis://h:6379/s"}
    assert (address.start, address.batch, address.skips_gaps) == ("newest", 9, False)
    assert "p@ss" not in repr(address)
    for wrong in (
        "redis://host",
        "redis://h/s?from=first",
        "redis://h/s?batch=0",
        "kafka://h/s?db=1",
    ):
        with pytest.raises(ss.errors.DataError, match="address"):
            parse_address(wrong)
    assert parse_address("kafka://h/t?security.protocol=SSL").options


def test_the_page_on_streams_runs_as_written(redis_server, tmp_path, monkeypatch):
    page = Path(__file__).parents[3] / "docs" / "streams.md"
    code = re.search(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)[1]
    monkeypatch.chdir(tmp_path)

    code = code.replace("localhost:6379", f"127.0.0.1:{redis_server.port}")
    exec(code.replace('"localhost", 6379', f'"127.0.0.1", {redis_server.port}'), {})
