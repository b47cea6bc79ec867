"""Delta and Iceberg tables: read at a version, and followed from version to version.

The oracles are the lakes' own readers: the query engine of ``deltalake``, and ``pyiceberg``.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.data import open_source
from sketchshift.live import lakes
from sketchshift.live.changes import open_changes
from sketchshift.live.lake_names import find_lake

pytest.importorskip("deltalake", reason="needs the extra lakes")
pytest.importorskip("pyiceberg", reason="needs the extra lakes")

FIRE = Path(__file__).with_name("follow_lakes.py")
SPEC = ss.plan(
    pa.table(dict(zip("xy", np.random.default_rng(0).normal(size=(2, 500)), strict=True))),
    3,
    sketch_size=40,
    seed=0,
)


def rows(n: int, seed: int, first: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    columns = {"x": draw.normal(size=n), "y": draw.normal(size=n)}
    return pa.table(
        {"id": np.arange(first, first + n), **columns, "day": draw.choice(["a", "b"], n)}
    )


def write(place, table: pa.Table, **options) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(place), table, **options)


def delta(place, version: int | None = None):
    from deltalake import DeltaTable

    return DeltaTable(str(place), version=version)


def read(place, version: int | None = None, columns: str = "x, y, day") -> pa.Table:
    """All rows of a Delta table, as its own query engine reads them."""
    from deltalake import QueryBuilder

    query = QueryBuilder().register("t", delta(place, version))
    return pa.table(query.execute(f"select {columns} from t").read_all())


def assert_same(sketch: ss.Sketch, table: pa.Table) -> None:
    assert sketch.to_bytes() == ss.sketch(table, SPEC).to_bytes()


def changes_of(source, since) -> list:
    return list(open_changes(source).changes(since))


def files_in(change) -> tuple[list, list]:
    return tuple(
        [] if some is None else list(some.files) for some in (change.added, change.removed)
    )


@pytest.fixture
def table(tmp_path):
    """A Delta table of four versions, of whose files not all count."""
    place = tmp_path / "table"
    write(place, rows(300, 1), partition_by=["day"])
    write(place, rows(200, 2, 300), mode="append")
    delta(place).delete("x > 0.5")
    delta(place).update(updates={"y": "y + 1"}, predicate="id < 50")
    return place


# Delta, at a version.


def test_a_delta_table_has_the_rows_of_its_version_and_not_of_all_its_files(table):
    naive = sum(pq.read_metadata(path).num_rows for path in table.rglob("*.parquet"))

    for version in range(4):
        expected = read(table, version)
        assert expected.num_rows < naive
        for asked in (f"{table}@v{version}", f"delta:{table}@{version}", delta(table, version)):
            assert_same(ss.sketch(asked, SPEC), expected)
    for newest in (table, str(table), f"delta://{table}", delta(table)):
        assert_same(ss.sketch(newest, SPEC), read(table))


def test_a_plan_of_a_delta_table_draws_from_all_of_its_files(table):
    spec = ss.plan(table, 3, columns=["x", "y"], seed=0)

    assert spec == ss.plan(read(table), 3, columns=["x", "y"], seed=0)


def test_a_version_that_is_not_there_is_an_error(table):
    with pytest.raises(ss.errors.DataError, match=r"at version 9.*not there yet"):
        ss.sketch(f"{table}@v9", SPEC)
    with pytest.raises(ss.errors.DataError, match=r"'soon' is no version.*@v12"):
        ss.sketch(f"{table}@soon", SPEC)


def test_a_folder_with_a_table_in_it_is_refused(table, tmp_path):
    with pytest.raises(
        ss.errors.DataError, match=r"has the table .*table' in it.*Name the table itself"
    ):
        ss.sketch(tmp_path, SPEC)


@pytest.mark.parametrize(
    ("address", "kind", "table", "version"),
    [
        ("delta+s3://bucket/t@v3", "delta", "s3://bucket/t", "v3"),
        ("delta://s3://bucket/t", "delta", "s3://bucket/t", None),
        ("delta:/no/such", "delta", "/no/such", None),
        ("delta:///no/such", "delta", "/no/such", None),
        ("iceberg://prod/ns.t@audit", "iceberg", "//prod/ns.t", "audit"),
        ("iceberg+s3://b/t/1.metadata.json", "iceberg", "s3://b/t/1.metadata.json", None),
        ("delta:file:///data/my%20table@v3", "delta", "/data/my table", "v3"),
        ("delta+file:///data/t", "delta", "/data/t", None),
        ("iceberg:file:///data/t", "iceberg", "/data/t", None),
    ],
)
def test_an_address_is_understood_also_as_a_path(address, kind, table, version):
    """A path makes one slash of two."""
    assert find_lake(address) == find_lake(Path(address)) == (kind, table, version)


def test_the_name_of_a_table_has_no_password():
    name = lakes.name_place

    assert name("s3://key:secret@bucket/t/?token=1") == "s3://bucket/t"
    assert name("abfss://box@account.net/t") == "abfss://box@account.net/t"
    assert name("file:///data/my%20table") == "/data/my table"


def test_deleted_rows_and_a_checkpoint_are_refused(tmp_path):
    write(tmp_path / "t", rows(20, 1))
    leave_out(tmp_path / "t", [3])

    with pytest.raises(
        ss.errors.DataError, match=r"cannot go on from a checkpoint.*Leave the checkpoint"
    ):
        ss.sketch(tmp_path / "t", SPEC, checkpoint=tmp_path / "half")


def test_a_folder_whose_name_has_an_at_is_itself(tmp_path):
    place = tmp_path / "me@v0"
    write(place, rows(30, 1))
    write(place, rows(30, 2), mode="append")

    assert ss.sketch(place, SPEC).count == 60
    assert ss.sketch(f"{place}@v0", SPEC).count == 30


def test_partition_columns_are_keys_and_features(tmp_path):
    """Their values are in the log alone, written as in an address."""
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "x": np.random.default_rng(0).normal(size=6),
            "text": ["a b/c=ü%", "a b/c=ü%", "@", None, "@", "ü"],
            "when": pa.array([moment] * 6, pa.timestamp("us", "UTC")),
            "date": [datetime.date(2020, 1, 2)] * 3 + [None] * 3,
            "n": [1, 2, 3, 4, 5, 6],
            "is_new": [True, False, True, False, None, True],
        }
    )
    write(tmp_path, table, partition_by=["text", "when", "date", "n", "is_new"])
    keys = ["text", "when", "date", "is_new"]

    anew = read(tmp_path, columns=", ".join(["x", "n", *keys]))
    spec = ss.plan(anew, 2, columns=["x", "n"], seed=0)
    found, expected = (ss.sketch_by(some, keys, spec=spec) for some in (tmp_path, anew))

    assert found.keys.to_pylist() == expected.keys.to_pylist()
    assert [s.to_bytes() for s in found.sketches] == [s.to_bytes() for s in expected.sketches]


def test_rows_that_a_deletion_vector_leaves_out_are_left_out(tmp_path):
    """The vectors are written by hand, as the protocol says; the query engine reads them too."""
    write(tmp_path, rows(200, 1))
    state = tmp_path.with_name("state")
    cube = ss.live.follow(tmp_path, state, spec=SPEC)
    for gone in ([3, 5, 199], [3, 4, 5, 17, 199], [4]):
        leave_out(tmp_path, gone)
        (change,) = changes_of(tmp_path, cube.positions[f"delta:{tmp_path}"])
        added, removed = (sum(f.n_rows_kept for f in files) for files in files_in(change))
        ss.live.follow(tmp_path, state)

        assert_same(ss.sketch(tmp_path, SPEC), read(tmp_path))
        assert_same(cube.merge(), read(tmp_path))
        assert (added, removed) == {3: (0, 3), 5: (0, 2), 1: (4, 0)}[len(gone)]


def leave_out(place: Path, gone: list[int]) -> None:
    """Commit a deletion vector for the only file of a table, in place of the one it has."""
    from pyroaring import BitMap

    head = struct.pack("<IQI", 1681511377, 1, 0)  # the magic number, one bitmap, its key
    content = head + BitMap(gone).serialize()
    vector = {
        "storageType": "i",
        "pathOrInlineDv": as_z85(content),
        "sizeInBytes": len(content),
        "cardinality": len(gone),
    }
    log = place / "_delta_log"
    newest = max(log.glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    old = {
        name: add[name]
        for name in ("path", "partitionValues", "size", "deletionVector")
        if name in add
    }
    remove = {"dataChange": True, "deletionTimestamp": 0, "extendedFileMetadata": True, **old}
    lines = [{"remove": remove}, {"add": add | {"deletionVector": vector}}]
    if newest.name.startswith("0" * 20):
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        lines += [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}]
    version = int(newest.stem) + 1
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


def as_z85(content: bytes) -> str:
    own = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded = content + bytes(-len(content) % 4)
    return base64.b85encode(padded).decode().translate(str.maketrans(own, z85))


def test_columns_are_found_under_the_names_that_they_have_in_files(tmp_path):
    """Column mapping: what the table calls x is called col-1 in its files."""
    write(tmp_path, rows(50, 1).rename_columns(["id", "col-1", "y", "day"]), partition_by=["day"])
    expected = read(tmp_path, columns='"col-1" as x, y, day')
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for i, one in enumerate(schema["fields"]):
                mapped = {"id": i, "physicalName": one["name"]}
                one["metadata"] = {f"delta.columnMapping.{k}": v for k, v in mapped.items()}
            schema["fields"][1]["name"] = "x"
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    log.write_text("\n".join(map(json.dumps, actions)))

    assert_same(ss.sketch(tmp_path, SPEC), expected)
    assert list(ss.sketch_by(tmp_path, "day", spec=SPEC).keys["day"].to_pylist()) == ["a", "b"]


def test_columns_are_found_by_numbers_where_the_table_goes_by_these(tmp_path):
    """Column mapping by id: names in files say nothing. The query engine reads nulls there."""
    named = rows(50, 1).rename_columns(["d", "b", "c", "a"])
    fields = [f.with_metadata({"PARQUET:field_id": str(i)}) for i, f in enumerate(named.schema)]
    write(tmp_path, named)
    (file,) = tmp_path.glob("*.parquet")
    pq.write_table(named.cast(pa.schema(fields)), file)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    actions = {next(iter(line)): line for line in map(json.loads, log.read_text().splitlines())}
    metadata = actions["metaData"]["metaData"]
    schema = json.loads(metadata["schemaString"])
    for i, (field, name) in enumerate(zip(schema["fields"], rows(1, 0).column_names, strict=True)):
        mapped = {"id": i, "physicalName": f"col-{i}"}
        field["metadata"] = {f"delta.columnMapping.{key}": value for key, value in mapped.items()}
        field["name"] = name
    metadata["schemaString"] = json.dumps(schema)
    metadata["configuration"] = {"delta.columnMapping.mode": "id"}
    actions["protocol"] = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    log.write_text("\n".join(map(json.dumps, actions.values())))

    assert_same(ss.sketch(tmp_path, SPEC), rows(50, 1))


def test_a_table_that_needs_more_of_a_reader_is_refused(tmp_path):
    write(tmp_path, rows(5, 1))
    features = {"readerFeatures": ["newerThanThis"], "writerFeatures": ["newerThanThis"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(protocol))

    with pytest.raises(ss.errors.DataError, match="newerThanThis"):
        ss.sketch(tmp_path, SPEC)


def test_only_the_bytes_of_columns_asked_for_are_read(tmp_path):
    draw = np.random.default_rng(0)
    wide = pa.array([draw.bytes(1000) for _ in range(2000)])
    write(tmp_path, rows(2000, 1).append_column("wide", wide))
    counted: list[int] = []
    (change,) = changes_of(tmp_path, None)
    opened = change.added
    open_file = opened.open_file
    spied = replace(opened, open_file=lambda path: SpiedFile(open_file(path), counted))

    assert_same(ss.sketch(spied, SPEC), rows(2000, 1))
    assert 30_000 < sum(counted) < 200_000  # of two million


class SpiedFile:
    """A file that writes down how much is read of it."""

    def __init__(self, file, counted: list[int]) -> None:
        self._file, self._counted = file, counted

    def read(self, n=-1):
        content = self._file.read(None if n is None or n < 0 else n)
        self._counted.append(len(content))
        return content

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def test_vectors_of_a_table_are_read_as_rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    write(tmp_path, pa.table({"id": np.arange(60), "embedding": list(X)}))

    source = open_source(tmp_path, columns=["embedding"])
    assert np.array_equal(np.concatenate([block.values for block in source]), X)


def test_a_pass_over_a_table_goes_on_from_a_checkpoint(table, tmp_path):
    checkpoint = tmp_path / "half.checkpoint"

    first = ss.sketch(table, SPEC, checkpoint=checkpoint)
    again = ss.sketch(table, SPEC, checkpoint=checkpoint)

    assert_same(first, read(table))
    assert again.to_bytes() == first.to_bytes()


# Delta, followed.


def test_a_state_follows_a_delta_table_and_its_slices(table, tmp_path):
    cube = ss.live.follow(f"{table}@v0", tmp_path / "state", spec=SPEC, by="day")
    for version in (1, 2, 3, 1, 3):  # back as well
        ss.live.follow(f"{table}@v{version}", tmp_path / "state")

        expected = ss.sketch_by(read(table, version), "day", spec=SPEC)
        assert_same(cube.merge(), read(table, version))
        assert cube.table().counts.tolist() == expected.counts.tolist()
    assert cube.positions[f"delta:{table}"]["version"] == 3


def test_following_stops_at_a_version(table, tmp_path):
    cube = ss.live.follow(table, tmp_path / "state", spec=SPEC, until={"version": 0})
    assert_same(cube.merge(), read(table, 0))

    ss.live.follow(table, tmp_path / "state", until={"version": 2})
    assert_same(cube.merge(), read(table, 2))


def test_a_compaction_is_followed_without_reading(table):
    (before,) = changes_of(table, None)
    write(table, rows(20, 8, 900), mode="append")
    delta(table).optimize.compact()

    (change,) = changes_of(table, before.position)
    added, removed = files_in(change)

    assert sum(file.n_rows for file in added) == 20
    assert removed == []
    delta(table).optimize.z_order(["x"])
    (moved,) = changes_of(table, change.position)
    assert (moved.added, moved.removed) == (None, None)


def test_where_there_is_a_change_feed_only_rows_that_changed_are_read(tmp_path):
    place, state = tmp_path / "table", tmp_path / "state"
    feed = {"delta.enableChangeDataFeed": "true"}
    write(place, rows(300, 1), partition_by=["day"], configuration=feed)
    cube = ss.live.follow(place, state, spec=SPEC)
    delta(place).delete("id = 7")
    delta(place).update(updates={"y": "y + 1"}, predicate="id = 8")

    (change,) = changes_of(place, cube.positions[f"delta:{place}"])
    paths = {Path(file.path).relative_to(place).parts[0] for file in chain(*files_in(change))}
    ss.live.follow(place, state)

    assert paths == {"_change_data"}
    assert_same(cube.merge(), read(place))


def test_rows_that_were_vacuumed_are_refused_and_the_state_stays(table, tmp_path):
    cube = ss.live.follow(table, tmp_path / "state", spec=SPEC)
    before = cube.merge().to_bytes()
    delta(table).delete("id > 100")
    delta(table).vacuum(0, enforce_retention_duration=False, dry_run=False)

    with pytest.raises(
        ss.errors.DataError, match=r"from version 3 to .*no longer be read.*Start again"
    ):
        ss.live.follow(table, tmp_path / "state")
    assert ss.live.Cube.open(tmp_path / "state").merge().to_bytes() == before


def test_small_files_that_were_rewritten_and_vacuumed_are_read_where_they_went(tmp_path):
    place, state = tmp_path / "table", tmp_path / "state"
    write(place, rows(100, 1).drop(["day"]))
    cube = ss.live.follow(place, state, spec=SPEC)
    for i in range(5):
        write(place, rows(10, 10 + i, 200).drop(["day"]), mode="append")
    compact_small(place)
    delta(place).vacuum(0, enforce_retention_duration=False, dry_run=False)

    ss.live.follow(place, state)

    assert_same(cube.merge(), read(place, columns="x, y"))


def compact_small(place: Path) -> None:
    """Rewrite the small files of a table alone, in a commit that changes no row."""
    log = place / "_delta_log"
    adds = [
        json.loads(line)["add"]
        for path in sorted(log.glob("*.json"))[1:]
        for line in path.read_text().splitlines()
        if '"add"' in line
    ]
    merged = pa.concat_tables(pq.read_table(place / add["path"]) for add in adds)
    pq.write_table(merged, place / "merged.parquet")
    size = (place / "merged.parquet").stat().st_size
    unchanged = {"dataChange": False, "partitionValues": {}}
    lines = [{"add": {"path": "merged.parquet", "size": size, "modificationTime": 0, **unchanged}}]
    lines += [
        {"remove": {"path": add["path"], "size": add["size"], "deletionTimestamp": 0, **unchanged}}
        for add in adds
    ]
    version = int(max(log.glob("*.json")).stem) + 1
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


ADD_AGAIN = [("add", True)]
REMOVE_TWICE = [("remove", True), ("remove", True)]
MOVE_NOWHERE = [("remove", False)]


@pytest.mark.parametrize("steps", [ADD_AGAIN, REMOVE_TWICE, MOVE_NOWHERE])
def test_a_commit_that_does_not_say_what_it_changes_is_compared(tmp_path, steps):
    """A file comes that is there, goes that is not, or is moved to nowhere."""
    place, state = tmp_path / "table", tmp_path / "state"
    write(place, rows(50, 1).drop(["day"]))
    write(place, rows(9, 2, 50).drop(["day"]), mode="append")
    cube = ss.live.follow(place, state, spec=SPEC)
    newest = place / "_delta_log" / f"{1:020d}.json"
    lines = map(json.loads, newest.read_text().splitlines())
    add = next(line["add"] for line in lines if "add" in line)
    for version, (kind, is_change) in enumerate(steps, 2):
        action = {kind: add | {"dataChange": is_change, "deletionTimestamp": 0}}
        newest.with_name(f"{version:020d}.json").write_text(json.dumps(action))
    ss.live.follow(place, state)

    expected = read(place, columns="x, y")
    assert len(expected) == (59 if steps is ADD_AGAIN else 50)
    assert_same(cube.merge(), expected)


def test_a_log_that_was_cleaned_up_is_refused(table, tmp_path):
    ss.live.follow(f"{table}@v0", tmp_path / "state", spec=SPEC)
    delta(table).create_checkpoint()
    for version in (0, 1):
        (table / "_delta_log" / f"{version:020d}.json").unlink()

    with pytest.raises(
        ss.errors.DataError, match=r"version 1 of .*no longer in its log.*Start again"
    ):
        ss.live.follow(table, tmp_path / "state")


def test_a_new_column_is_followed_and_one_that_is_gone_is_refused(table, tmp_path):
    cube = ss.live.follow(table, tmp_path / "state", spec=SPEC)
    wider = rows(20, 9, 900).append_column("more", pa.array(np.ones(20)))
    write(table, wider, mode="append", schema_mode="merge")
    ss.live.follow(table, tmp_path / "state")
    assert_same(cube.merge(), read(table))

    write(table, wider.drop(["y"]), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(ss.errors.DataError, match="has no column 'y'"):
        ss.live.follow(table, tmp_path / "state")


def test_a_table_that_was_made_anew_is_refused(table, tmp_path):
    ss.live.follow(table, tmp_path / "state", spec=SPEC)
    shutil.rmtree(table)
    write(table, rows(10, 1))

    with pytest.raises(
        ss.errors.DataError, match="another table than the one that the state follows"
    ):
        ss.live.follow(table, tmp_path / "state")


def test_the_first_load_of_a_large_table_goes_on_where_it_was_cut_off(table, tmp_path, monkeypatch):
    """In pieces of one file each; the version that it began with is loaded to the end."""
    monkeypatch.setattr(lakes, "GROUP_BYTES", 1)
    pieces = changes_of(table, None)
    assert len(pieces) > 1

    whole = sum_of(pieces)
    write(table, rows(20, 9, 900), mode="append")
    rest = changes_of(table, json.loads(json.dumps(pieces[0].position)))

    assert_same(whole, read(table, 3))
    assert_same(sum_of([pieces[0], *rest]), read(table))


def sum_of(changes) -> ss.Sketch:
    total = ss.Sketcher(SPEC)
    for change in changes:
        if change.added is not None:
            total.update(change.added)
        if change.removed is not None:
            total.remove(change.removed)
    return total.sketch()


# Iceberg, at a snapshot.


@pytest.fixture
def catalog(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    found.create_namespace("ns")
    yield found
    found.close()


@pytest.fixture
def iceberg(catalog):
    """An Iceberg table, partitioned by day, of some snapshots."""
    from pyiceberg.transforms import IdentityTransform

    table = catalog.create_table("ns.t", rows(1, 0).schema)
    with table.update_spec() as change:
        change.add_field("day", IdentityTransform(), "day")
    table.append(rows(300, 1))
    table.append(rows(200, 2, 300))
    table.delete("x > 0.5")
    return table


def place_of(table) -> str:
    return table.location().removeprefix("file://")


def test_an_iceberg_table_has_the_rows_of_its_snapshot(iceberg):
    for snapshot in iceberg.snapshots():
        expected = iceberg.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert_same(ss.sketch(f"{place_of(iceberg)}@{snapshot.snapshot_id}", SPEC), expected)
    metadata = iceberg.metadata_location.removeprefix("file://")
    for newest in (iceberg, place_of(iceberg), f"iceberg:{place_of(iceberg)}@main", metadata):
        assert_same(ss.sketch(newest, SPEC), iceberg.scan().to_arrow())


def test_slices_of_an_iceberg_table_are_those_of_its_rows(iceberg):
    found, expected = (
        ss.sketch_by(some, "day", spec=SPEC) for some in (iceberg, iceberg.scan().to_arrow())
    )

    assert found.keys["day"].to_pylist() == expected.keys["day"].to_pylist()
    assert [s.to_bytes() for s in found.sketches] == [s.to_bytes() for s in expected.sketches]


def test_a_snapshot_that_is_not_there_is_an_error(iceberg):
    with pytest.raises(ss.errors.DataError, match=r"no snapshot, branch or tag '77'.*main"):
        ss.sketch(f"{place_of(iceberg)}@77", SPEC)


def test_metadata_that_two_writers_left_are_refused(iceberg):
    """Without the catalog nobody knows which of them counts."""
    newest = Path(iceberg.metadata_location.removeprefix("file://"))
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))

    with pytest.raises(
        ss.errors.DataError, match=r"2 files of the newest number.*iceberg://catalog"
    ):
        ss.sketch(place_of(iceberg), SPEC)


def test_renamed_and_new_columns_of_iceberg_are_found_by_their_numbers(iceberg):
    from pyiceberg.types import DoubleType

    with iceberg.update_schema() as change:
        change.rename_column("y", "height")
        change.add_column("more", DoubleType())

    expected = iceberg.scan().to_arrow()
    spec = ss.plan(expected, 2, columns=["x", "height"], seed=0)

    assert ss.sketch(iceberg, spec) == ss.sketch(expected, spec)
    with pytest.raises(ss.errors.DataError, match="has no column 'y'"):
        ss.sketch(iceberg, SPEC)


def test_a_table_that_was_dropped_is_named(catalog, iceberg, tmp_path):
    ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    catalog.drop_table(iceberg.name())

    with pytest.raises(
        ss.errors.DataError, match=r"cannot read the Iceberg table .*does not exist"
    ):
        ss.live.follow(iceberg, tmp_path / "state")


@pytest.mark.parametrize("way", ["swapped", "dropped"])
def test_a_column_that_took_the_name_of_another_is_refused(iceberg, tmp_path, way):
    """The state has sums of the one, and rows to come would bring the other."""
    from pyiceberg.types import DoubleType

    cube = ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    before = cube.merge()
    if way == "dropped":
        with iceberg.update_schema() as change:
            change.delete_column("x")
        iceberg.append(rows(5, 8, 700).drop(["x"]))
        with pytest.raises(ss.errors.DataError, match="has no column 'x'"):
            ss.live.follow(iceberg, tmp_path / "state")
        with iceberg.update_schema() as change:
            change.add_column("x", DoubleType())
    else:
        for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
            with iceberg.update_schema() as change:
                change.rename_column(old, new)
    iceberg.append(rows(20, 9, 900).select(iceberg.schema().as_arrow().names))

    with pytest.raises(ss.errors.DataError, match=r"'x'.* another column.*Rename the columns back"):
        ss.live.follow(iceberg, tmp_path / "state")
    assert cube.merge() == before


def test_files_that_were_added_without_numbers_are_read_by_names(catalog, tmp_path):
    table = catalog.create_table("ns.added", rows(1, 0).schema)
    pq.write_table(rows(40, 5), tmp_path / "own.parquet")
    table.add_files([f"file://{tmp_path}/own.parquet"])

    assert_same(ss.sketch(table, SPEC), rows(40, 5))


def test_files_without_numbers_and_without_names_are_refused(catalog, tmp_path):
    """Each of their columns would be missing in all rows."""
    table = catalog.create_table("ns.added", rows(1, 0).schema)
    pq.write_table(rows(40, 5), tmp_path / "own.parquet")
    table.add_files([f"file://{tmp_path}/own.parquet"])
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")

    with pytest.raises(
        ss.errors.DataError, match=r"Set its property schema\.name-mapping\.default"
    ):
        ss.sketch_by(table, "day", spec=SPEC, on_invalid="skip")


TEXTS = ["", "%2F", "a b/c=ü%", "+", "%", None]


@pytest.mark.parametrize("has_column", [True, False])
def test_values_of_partitions_and_places_of_iceberg_hold_any_sign(catalog, tmp_path, has_column):
    """A % in a place is no escape. An empty text is not null, also where only the log has it."""
    from pyiceberg.transforms import IdentityTransform

    draw = np.random.default_rng(0)
    own = pa.table({"x": draw.normal(size=12), "y": draw.normal(size=12), "text": TEXTS * 2})
    place = f"file://{tmp_path}/my %20 t+ü"
    table = catalog.create_table("ns.signs", own.schema, location=place)
    with table.update_spec() as change:
        change.add_field("text", IdentityTransform(), "part")
    table.append(own)
    if not has_column:
        for task in table.scan().plan_files():
            path = task.file.file_path.removeprefix("file://")
            pq.write_table(pq.ParquetFile(path).read().drop(["text"]), path)

    cube = ss.live.follow(table, tmp_path / "state", spec=SPEC, by="text")
    expected = ss.sketch_by(own, "text", spec=SPEC)
    assert same_slices(ss.sketch_by(table, "text", spec=SPEC), expected)
    assert same_slices(cube.table(), expected)
    table.append(own)
    ss.live.follow(f"{tmp_path}/my %20 t+ü", tmp_path / "state")
    assert same_slices(cube.table(), ss.sketch_by(table.scan().to_arrow(), "text", spec=SPEC))


def same_slices(found: ss.SketchTable, expected: ss.SketchTable) -> bool:
    bytes_of = [
        {
            key: s.to_bytes()
            for key, s in zip(some.keys["text"].to_pylist(), some.sketches, strict=True)
        }
        for some in (found, expected)
    ]
    return bytes_of[0] == bytes_of[1]


def test_a_snapshot_is_itself_also_where_a_tag_has_its_number_for_a_name(iceberg, tmp_path):
    cube = ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    first, *_, last = (snapshot.snapshot_id for snapshot in iceberg.snapshots())
    iceberg.manage_snapshots().create_tag(first, str(last)).commit()
    iceberg.manage_snapshots().rollback_to_snapshot(first).commit()
    ss.live.follow(iceberg, tmp_path / "state")

    assert_same(cube.merge(), iceberg.scan().to_arrow())


def test_a_file_that_a_table_has_twice_counts_twice(catalog, tmp_path):
    table = catalog.create_table("ns.twice", rows(1, 0).schema)
    pq.write_table(rows(40, 5), tmp_path / "own.parquet")
    table.add_files([f"file://{tmp_path}/own.parquet"])
    once = table.current_snapshot().snapshot_id
    table.add_files([f"file://{tmp_path}/own.parquet"], check_duplicate_files=False)
    cube = ss.live.follow(table, tmp_path / "state", spec=SPEC)
    assert cube.merge().count == 80

    table.manage_snapshots().rollback_to_snapshot(once).commit()
    ss.live.follow(table, tmp_path / "state")

    assert_same(cube.merge(), table.scan().to_arrow())


def test_a_table_of_metadata_alone_is_followed_as_it_is(iceberg, tmp_path):
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(iceberg.metadata_location)

    assert_same(
        ss.live.follow(table, tmp_path / "state", spec=SPEC).merge(), table.scan().to_arrow()
    )


@pytest.mark.parametrize("kind", ["PARQUET", "PUFFIN"])
def test_rows_deleted_by_position_are_left_out_and_followed(iceberg, tmp_path, kind):
    cube = ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    file = next(iter(iceberg.scan().plan_files())).file
    write_deletes(iceberg, file, [0, 3, 4], kind)

    expected = iceberg.scan().to_arrow()
    (change,) = changes_of(iceberg, cube.positions[f"iceberg:{place_of(iceberg)}"])
    added, removed = (sum(f.n_rows_kept for f in files) for files in files_in(change))
    ss.live.follow(iceberg, tmp_path / "state")

    assert (added, removed) == (0, 3)
    assert_same(ss.sketch(iceberg, SPEC), expected)
    assert_same(cube.merge(), expected)


def test_rows_deleted_by_equality_are_refused(iceberg):
    file = next(iter(iceberg.scan().plan_files())).file
    write_deletes(iceberg, file, [1], "EQUALITY")

    with pytest.raises(ss.errors.DataError, match=r"deleted by equality.*Compact the table"):
        ss.sketch(iceberg, SPEC)


def write_deletes(table, file, positions: list[int], kind: str) -> None:
    """Commit a file of deletions, which pyiceberg itself does not write."""
    from pyiceberg import manifest as m
    from pyiceberg.table.snapshots import Operation
    from pyiceberg.table.update.snapshot import _FastAppendFiles

    place = f"{place_of(table)}/data/deletes-{kind.lower()}"
    if kind == "PUFFIN":
        Path(place).write_bytes(puffin(file.file_path, positions))
    else:
        paths = [file.file_path] * len(positions)
        pq.write_table(pa.table({"file_path": paths, "pos": positions}), place)
    is_equal = kind == "EQUALITY"
    content = m.DataFileContent.EQUALITY_DELETES if is_equal else m.DataFileContent.POSITION_DELETES
    deletes = m.DataFile.from_args(
        content=content,
        file_path=f"file://{place}",
        file_format=m.FileFormat.PUFFIN if kind == "PUFFIN" else m.FileFormat.PARQUET,
        partition=file.partition,
        record_count=len(positions),
        file_size_in_bytes=Path(place).stat().st_size,
        equality_ids=[1] if is_equal else None,
    )
    deletes.spec_id = file.spec_id

    class Deletes(m.ManifestWriterV2):
        def content(self):
            return m.ManifestContent.DELETES

        @property
        def _meta(self):
            return {**super()._meta, "content": "deletes"}

    class RowDelta(_FastAppendFiles):
        def _manifests(self):
            output = self.new_manifest_output()
            spec = self.spec(file.spec_id)
            with Deletes(spec, self.schema(), output, self._snapshot_id, "deflate") as writer:
                status = m.ManifestEntryStatus.ADDED
                writer.add(
                    m.ManifestEntry.from_args(
                        status=status, snapshot_id=self._snapshot_id, data_file=deletes
                    )
                )
            return [writer.to_manifest_file(), *self._existing_manifests()]

    with (
        table.transaction() as transaction,
        RowDelta(Operation.OVERWRITE, transaction=transaction, io=table.io),
    ):
        pass


def puffin(path: str, positions: list[int]) -> bytes:
    """A file of one deletion vector."""
    from pyroaring import BitMap

    vector = struct.pack("<IQI", 1681511377, 1, 0) + BitMap(positions).serialize()
    blob = struct.pack(">I", len(vector)) + vector + bytes(4)
    described = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
    }
    footer = json.dumps({"blobs": [described]}).encode()
    end = struct.pack("<I", len(footer)) + bytes(4) + b"PFA1"
    return b"PFA1" + blob + b"PFA1" + footer + end


# Iceberg, followed.


def test_a_state_follows_an_iceberg_table_back_and_along_a_branch(iceberg, tmp_path):
    """After a rollback there is no way from snapshot to snapshot: the two are compared."""
    state = tmp_path / "state"
    cube = ss.live.follow(iceberg, state, spec=SPEC, by="day")
    first, second = (snapshot.snapshot_id for snapshot in iceberg.snapshots()[:2])
    iceberg.manage_snapshots().create_branch(second, "audit").commit()
    iceberg.manage_snapshots().rollback_to_snapshot(first).commit()
    ss.live.follow(iceberg, state)
    assert_same(cube.merge(), iceberg.scan().to_arrow())

    iceberg.append(rows(30, 4, 700), branch="audit")
    iceberg.append(rows(10, 5, 800))
    ss.live.follow(f"{place_of(iceberg)}@audit", state)
    expected = iceberg.scan().use_ref("audit").to_arrow()
    assert_same(cube.merge(), expected)
    assert cube.table().counts.sum() == len(expected)


def test_a_snapshot_that_replaces_files_is_followed_without_reading(iceberg):
    (before,) = changes_of(iceberg, None)
    fire().rewrite(iceberg)
    iceberg.append(rows(20, 6, 900).slice(0, 20))

    (change,) = changes_of(iceberg, before.position)
    added, removed = files_in(change)

    assert sum(file.n_rows for file in added) == 20
    assert removed == []


def test_a_snapshot_that_does_not_say_what_it_changes_is_compared(iceberg, tmp_path):
    """It takes up a manifest of a snapshot that it does not descend from."""
    from pyiceberg.table.snapshots import Operation
    from pyiceberg.table.update.snapshot import _FastAppendFiles

    before, other = iceberg.current_snapshot().snapshot_id, rows(7, 6, 900)
    iceberg.append(other)
    left = iceberg.current_snapshot()
    taken = [m for m in left.manifests(iceberg.io) if m.added_snapshot_id == left.snapshot_id]
    iceberg.manage_snapshots().rollback_to_snapshot(before).commit()
    iceberg.append(rows(3, 7, 950))
    cube = ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)

    class Picked(_FastAppendFiles):
        def _manifests(self):
            return [*taken, *self._existing_manifests()]

    with (
        iceberg.transaction() as transaction,
        Picked(Operation.APPEND, transaction=transaction, io=iceberg.io),
    ):
        pass
    ss.live.follow(iceberg, tmp_path / "state")

    assert_same(cube.merge(), iceberg.scan().to_arrow())


def test_an_expired_snapshot_is_refused_and_the_state_stays(iceberg, tmp_path):
    cube = ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    before, old = cube.merge().to_bytes(), iceberg.current_snapshot().snapshot_id
    iceberg.delete("id < 20")
    fire().rewrite(iceberg)
    iceberg.delete("id > 250")
    iceberg.maintenance.expire_snapshots().by_id(old).commit()
    with pytest.raises(
        ss.errors.DataError, match=rf"no snapshot, branch or tag '{old}'.*start again"
    ):
        ss.live.follow(iceberg, tmp_path / "state")

    assert ss.live.Cube.open(tmp_path / "state").merge().to_bytes() == before


def test_a_table_without_a_snapshot_is_followed_from_nothing(catalog, tmp_path):
    table = catalog.create_table("ns.empty", rows(1, 0).schema)
    cube = ss.live.follow(table, tmp_path / "state", spec=SPEC)
    assert cube.merge().count == 0

    table.append(rows(30, 1))
    table.append(rows(30, 2))
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    ss.live.follow(table, tmp_path / "state")
    assert_same(cube.merge(), table.scan().to_arrow())


def test_snapshots_that_expired_on_the_way_are_passed_over(iceberg, tmp_path):
    cube = ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    iceberg.delete("id < 20")
    between = iceberg.current_snapshot().snapshot_id
    iceberg.append(rows(30, 7, 900))
    iceberg.maintenance.expire_snapshots().by_id(between).commit()

    ss.live.follow(iceberg, tmp_path / "state")

    assert_same(cube.merge(), iceberg.scan().to_arrow())


def test_files_of_iceberg_that_are_gone_are_refused(iceberg, tmp_path):
    ss.live.follow(iceberg, tmp_path / "state", spec=SPEC)
    files = [task.file.file_path for task in iceberg.scan().plan_files()]
    iceberg.delete("id < 400")
    for file in files:
        Path(file.removeprefix("file://")).unlink()

    with pytest.raises(ss.errors.DataError, match=r"no longer be read.*Start again"):
        ss.live.follow(iceberg, tmp_path / "state")


# Commands.


def invoke(*words: str):
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_commands_take_tables_of_lakes(table, iceberg, tmp_path):
    (tmp_path / "plan.json").write_text(SPEC.to_json())
    for source, expected in (
        (f"{table}@v1", read(table, 1)),
        (f"delta:{table}", read(table)),
        (place_of(iceberg), iceberg.scan().to_arrow()),
    ):
        out = tmp_path / "out.sketch"
        invoke("sketch", source, "--plan", tmp_path / "plan.json", "-o", out)
        assert_same(ss.load(out), expected)
    invoke("plan", table, "-k", 3, "--columns", "x,y", "-o", tmp_path / "own.json")
    invoke("cluster", f"{table}@v2", "-k", 3, "--columns", "x,y")
    for source, expected in ((table, read(table)), (place_of(iceberg), iceberg.scan().to_arrow())):
        state = tmp_path / f"state-{Path(source).name}"
        invoke("follow", source, state, "--plan", tmp_path / "plan.json", "--by", "day")
        assert_same(ss.live.Cube.open(state).merge(), expected)


def test_without_the_package_the_extra_is_named(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)

    with pytest.raises(ss.errors.SketchshiftError, match=r"pip install 'sketchshift\[lakes\]'"):
        ss.sketch(table, SPEC)


# Commits and kills at random.


def fire():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("follow_lakes", FIRE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def under_fire(*words: str) -> dict:
    """In a process of its own: what it sets for catalogs is read when pyiceberg is imported."""
    done = subprocess.run(
        [sys.executable, "-W", "error", FIRE, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("delta", "--commits", "150", "--kills", "2"),
        ("delta", "--feed", "--commits", "60", "--kills", "1", "--followers", "1"),
        ("iceberg", "--commits", "20", "--kills", "2", "--followers", "1"),
    ],
    ids=" ".join,
)
def test_a_state_is_exact_after_random_commits_and_kills(words):
    result = under_fire(*words)

    assert result["state_commits"] > result["checks"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_state_is_exact_after_ten_thousand_commits_and_fifty_kills(kind):
    """Some twenty minutes for Delta, hours for Iceberg."""
    result = under_fire(kind, "--commits", "10000", "--kills", "50")

    assert result["commits"] == 10_000
    assert result["checks"] == 50


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "lakes.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(code, names)
