"""Delta and Iceberg tables: read at a version, and followed from version to version.

The oracles are the lakes' own readers: the query engine of ``deltalake``, and ``pyiceberg``.
"""

from __future__ import annotations

import base64
import datetime
import json
import shutil
import struct
import subprocess
import sys
from itertools import chain
from pathlib import Path
from runpy import run_path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.data import open_source
from sketchshift.errors import DataError
from sketchshift.features import Cells
from sketchshift.live import lakes
from sketchshift.live.changes import open_changes
from sketchshift.live.lake_names import find_lake

pytest.importorskip("deltalake", reason="needs the extra lakes")
pytest.importorskip("pyiceberg", reason="needs the extra lakes")

FIRE = Path(__file__).with_name("follow_lakes.py")
SPEC = ss.SketchSpec(2, 40, 1.0, columns=("x", "y")).replaced(cells=Cells.of(np.eye(2)))


def rows(n, seed, first=0):
    draw = np.random.default_rng(seed)
    columns = {"x": draw.normal(size=n), "y": draw.normal(size=n)}
    return pa.table(
        {"id": np.arange(first, first + n), **columns, "day": draw.choice(["a", "b"], n)}
    )


def write(place, table, **options):
    from deltalake import write_deltalake

    write_deltalake(str(place), table, **options)


def append(place, table):
    write(place, table, mode="append")


def delta(place, version=None):
    from deltalake import DeltaTable

    return DeltaTable(str(place), version=version)


def read(place, version=None, columns="x, y, day"):
    """All rows of a Delta table, as its own query engine reads them."""
    from deltalake import QueryBuilder

    query = QueryBuilder().register("t", delta(place, version))
    return pa.table(query.execute(f"select {columns} from t").read_all())


def assert_same(sketch, table):
    assert sketch.to_bytes() == ss.sketch(table, SPEC).to_bytes()


def assert_holds(source, table):
    assert_same(ss.sketch(source, SPEC), table)


def changes_of(source, since):
    return list(open_changes(source).changes(since))


def files_in(change):
    return tuple(
        [] if some is None else list(some.files) for some in (change.added, change.removed)
    )


def rows_in(change):
    return tuple(sum(file.n_rows_kept for file in files) for files in files_in(change))


@pytest.fixture
def follow(tmp_path):
    """Brings a state of the test's own to a table."""

    def bring(source, **given):
        return ss.live.follow(source, tmp_path / "state", spec=SPEC, **given)

    return bring


@pytest.fixture
def table(tmp_path):
    """A Delta table of four versions, of whose files not all count."""
    place = tmp_path / "table"
    write(place, rows(300, 1), partition_by=["day"])
    append(place, rows(200, 2, 300))
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
            assert_holds(asked, expected)
    for newest in (table, str(table), f"delta://{table}", delta(table)):
        assert_holds(newest, read(table))
    given = {"n_clusters": 3, "columns": ["x", "y"]}
    assert ss.plan(table, **given) == ss.plan(read(table), **given)


def test_what_is_no_version_or_no_table_is_an_error(table):
    for wrong, words in (
        (f"{table}@v9", r"at version 9.*not there yet"),
        (f"{table}@soon", r"'soon' is no version.*@v12"),
        (table.parent, r"has the table .*table' in it.*Name the table itself"),
    ):
        with pytest.raises(DataError, match=words):
            ss.sketch(wrong, SPEC)


@pytest.mark.parametrize(
    ("address", "kind", "table", "version"),
    [
        ("delta+s3://bucket/t@v3", "delta", "s3://bucket/t", "v3"),
        ("delta://s3://bucket/t", "delta", "s3://bucket/t", None),
        ("delta:/no/such", "delta", "/no/such", None),
        ("iceberg://prod/ns.t@audit", "iceberg", "//prod/ns.t", "audit"),
        ("iceberg+s3://b/t/1.metadata.json", "iceberg", "s3://b/t/1.metadata.json", None),
        ("delta:file:///data/my%20table@v3", "delta", "/data/my table", "v3"),
        ("delta+file:///data/t", "delta", "/data/t", None),
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


def test_a_pass_goes_on_from_a_checkpoint_but_not_where_rows_are_deleted(table, tmp_path):
    for _ in range(2):
        assert_same(ss.sketch(table, SPEC, checkpoint=tmp_path / "whole"), read(table))
    write(tmp_path / "t", rows(20, 1))
    leave_out(tmp_path / "t", 1, [3])

    with pytest.raises(DataError, match=r"cannot go on from a checkpoint.*Leave the checkpoint"):
        ss.sketch(tmp_path / "t", SPEC, checkpoint=tmp_path / "half")


def test_a_folder_whose_name_has_an_at_is_itself(tmp_path):
    place = tmp_path / "me@v0"
    write(place, rows(30, 1))
    append(place, rows(30, 2))

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
    keys, spec = ["text", "when", "date", "is_new"], ss.SketchSpec(2, 9, 1.0, columns=("x", "n"))

    anew = read(tmp_path, columns=", ".join(["x", "n", *keys]))

    assert ss.sketch_by(tmp_path, keys, spec=spec) == ss.sketch_by(anew, keys, spec=spec)


# What the writers of other packages do is written into the log by hand.


def log_of(place, version):
    return place / "_delta_log" / f"{version:020d}.json"


def read_log(place, version, kind):
    """The only action of a kind."""
    actions = map(json.loads, log_of(place, version).read_text().splitlines())
    (found,) = [action[kind] for action in actions if kind in action]
    return found


def write_log(place, version, *actions):
    log_of(place, version).write_text("\n".join(map(json.dumps, actions)))


def needs(*features):
    named = {"readerFeatures": features, "writerFeatures": features}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **named}}


def vector_of(gone):
    """Numbers of rows as the protocols of both lakes write them."""
    from pyroaring import BitMap

    head = struct.pack("<IQI", 1681511377, 1, 0)  # the magic number, one bitmap, its key
    return head + BitMap(gone).serialize()


def leave_out(place, version, gone):
    """Commit a deletion vector for the only file of a table, in place of the one it has."""
    own = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    content = vector_of(gone)
    text = base64.b85encode(content + bytes(-len(content) % 4)).decode()
    vector = {
        "storageType": "i",
        "pathOrInlineDv": text.translate(str.maketrans(own, z85)),
        "sizeInBytes": len(content),
        "cardinality": len(gone),
    }
    add = read_log(place, version - 1, "add")
    remove = {**add, "deletionTimestamp": 0, "extendedFileMetadata": True}
    actions = [{"remove": remove}, {"add": add | {"deletionVector": vector}}]
    write_log(place, version, *actions, *[needs("deletionVectors")][: version == 1])


def test_rows_that_a_deletion_vector_leaves_out_are_left_out(tmp_path, follow):
    """The query engine reads the vectors too."""
    place = tmp_path / "table"
    write(place, rows(200, 1))
    cube = follow(place)
    for version, gone, counts in (
        (1, [3, 5, 199], (0, 3)),
        (2, [3, 4, 5, 17, 199], (0, 2)),
        (3, [4], (4, 0)),
    ):
        leave_out(place, version, gone)
        (change,) = changes_of(place, *cube.positions.values())
        follow(place)

        assert_holds(place, read(place))
        assert_same(cube.merge(), read(place))
        assert rows_in(change) == counts


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_as_the_table_maps_them(tmp_path, mode):
    """By their names in files, or by their numbers, where names say nothing."""
    expected = rows(50, 1)
    physical = ["id", "col-1", "y", "day"]
    by = ["day"] if mode == "name" else None
    write(tmp_path, expected.rename_columns(physical), partition_by=by)
    if mode == "id":
        (file,) = tmp_path.glob("*.parquet")
        named = expected.rename_columns(["d", "b", "c", "a"])
        fields = [f.with_metadata({"PARQUET:field_id": str(i)}) for i, f in enumerate(named.schema)]
        pq.write_table(named.cast(pa.schema(fields)), file)
    actions = [json.loads(line) for line in log_of(tmp_path, 0).read_text().splitlines()]
    metadata = read_log(tmp_path, 0, "metaData")
    schema = json.loads(metadata["schemaString"])
    for i, field in enumerate(schema["fields"]):
        mapped = {"id": i, "physicalName": field["name"]}
        field["metadata"] = {f"delta.columnMapping.{key}": value for key, value in mapped.items()}
    schema["fields"][1]["name"] = "x"
    metadata |= {
        "schemaString": json.dumps(schema),
        "configuration": {"delta.columnMapping.mode": mode},
    }
    kept = [action for action in actions if not action.keys() & {"metaData", "protocol"}]
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    write_log(tmp_path, 0, {"protocol": protocol}, {"metaData": metadata}, *kept)

    assert ss.sketch_by(tmp_path, "day", SPEC) == ss.sketch_by(expected, "day", SPEC)


def test_a_table_that_needs_more_of_a_reader_is_refused(tmp_path):
    write(tmp_path, rows(5, 1))
    write_log(tmp_path, 1, needs("newerThanThis"))

    with pytest.raises(DataError, match="newerThanThis"):
        ss.sketch(tmp_path, SPEC)


def bytes_read():
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/io")
def test_only_the_bytes_of_columns_asked_for_are_read(tmp_path):
    draw = np.random.default_rng(0)
    wide = pa.array([draw.bytes(1000) for _ in range(2000)])
    write(tmp_path, rows(2000, 1).append_column("wide", wide))
    assert_holds(tmp_path, rows(2000, 1))  # what is needed is imported
    before = bytes_read()

    ss.sketch(tmp_path, SPEC)

    assert 30_000 < bytes_read() - before < 200_000  # of two million


def test_vectors_of_a_table_are_read_as_rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    write(tmp_path, pa.table({"id": np.arange(60), "embedding": list(X)}))

    source = open_source(tmp_path, columns=["embedding"])
    assert np.array_equal(np.concatenate([block.values for block in source]), X)


# Delta, followed.


def test_a_state_follows_a_delta_table_and_its_slices(table, follow):
    for version in (0, 1, 2, 3, 1, 3):  # back as well
        cube = follow(f"{table}@v{version}", by="day")

        expected = ss.sketch_by(read(table, version), "day", spec=SPEC)
        assert_same(cube.merge(), read(table, version))
        assert cube.table() == expected
    assert cube.positions[f"delta:{table}"]["version"] == 3


def test_following_stops_at_a_version(table, follow):
    assert_same(follow(table, until={"version": 2}).merge(), read(table, 2))


def vacuum(place):
    delta(place).vacuum(0, enforce_retention_duration=False, dry_run=False)


def test_a_compaction_is_followed_without_reading(tmp_path, follow):
    """Small files are read where they went."""
    place = tmp_path / "table"
    write(place, rows(3000, 1))
    cube = follow(place)
    for i in range(5):
        append(place, rows(10, i, 5000))
    delta(place).optimize.compact(target_size=20_000)
    vacuum(place)

    (change,) = changes_of(place, *cube.positions.values())
    follow(place)

    assert rows_in(change) == (50, 0)
    assert_same(cube.merge(), read(place))
    delta(place).optimize.z_order(["x"])
    (moved,) = changes_of(place, change.position)
    assert (moved.added, moved.removed) == (None, None)


def test_where_there_is_a_change_feed_only_rows_that_changed_are_read(tmp_path, follow):
    place = tmp_path / "table"
    feed = {"delta.enableChangeDataFeed": "true"}
    write(place, rows(300, 1), partition_by=["day"], configuration=feed)
    cube = follow(place)
    delta(place).delete("id = 7")
    delta(place).update(updates={"y": "y + 1"}, predicate="id = 8")

    (change,) = changes_of(place, *cube.positions.values())
    paths = {Path(file.path).relative_to(place).parts[0] for file in chain(*files_in(change))}
    follow(place)

    assert paths == {"_change_data"}
    assert_same(cube.merge(), read(place))


ADD_AGAIN = [("add", True)]
REMOVE_TWICE = [("remove", True), ("remove", True)]
MOVE_NOWHERE = [("remove", False)]


@pytest.mark.parametrize("steps", [ADD_AGAIN, REMOVE_TWICE, MOVE_NOWHERE])
def test_a_commit_that_does_not_say_what_it_changes_is_compared(tmp_path, follow, steps):
    """A file comes that is there, goes that is not, or is moved to nowhere."""
    place = tmp_path / "table"
    write(place, rows(50, 1))
    append(place, rows(9, 2, 50))
    cube = follow(place)
    add = read_log(place, 1, "add")
    for version, (kind, is_change) in enumerate(steps, 2):
        write_log(place, version, {kind: add | {"dataChange": is_change, "deletionTimestamp": 0}})
    follow(place)

    assert cube.merge().count == (59 if steps is ADD_AGAIN else 50)
    assert_same(cube.merge(), read(place))


def test_a_new_column_is_followed(table, follow):
    cube = follow(table)
    wider = rows(20, 9, 900).append_column("more", pa.array(np.ones(20)))
    write(table, wider, mode="append", schema_mode="merge")
    follow(table)

    assert_same(cube.merge(), read(table))


def clean_log(place):
    delta(place).create_checkpoint()
    for version in (0, 1):
        log_of(place, version).unlink()


def make_anew(place):
    shutil.rmtree(place)
    write(place, rows(10, 1))


def lose_column(place):
    write(place, rows(9, 9).drop(["y"]), mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (vacuum, r"from version 0 to .*no longer be read.*Start again"),
        (clean_log, r"version 1 of .*no longer in its log.*Start again"),
        (make_anew, "another table than the one that the state follows"),
        (lose_column, "has no column 'y'"),
    ],
)
def test_a_table_that_cannot_be_followed_is_refused_and_the_state_stays(
    table, follow, spoil, words
):
    cube, before = follow(f"{table}@v0"), read(table, 0)
    spoil(table)

    with pytest.raises(DataError, match=words):
        follow(table)
    assert_same(cube.merge(), before)


def test_the_first_load_of_a_large_table_goes_on_where_it_was_cut_off(table, monkeypatch):
    """In pieces of one file each; the version that it began with is loaded to the end."""
    monkeypatch.setattr(lakes, "GROUP_BYTES", 1)
    pieces = changes_of(table, None)
    assert len(pieces) > 1

    assert_same(sum_of(pieces), read(table))
    append(table, rows(20, 9, 900))
    rest = changes_of(table, json.loads(json.dumps(pieces[0].position)))
    assert_same(sum_of([pieces[0], *rest]), read(table))


def sum_of(changes):
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
def empty(catalog):
    """An Iceberg table without a snapshot."""
    return catalog.create_table("ns.t", rows(1, 0).schema)


@pytest.fixture
def iceberg(empty):
    """An Iceberg table, partitioned by day, of some snapshots."""
    partition_by(empty, "day")
    empty.append(rows(300, 1))
    empty.append(rows(200, 2, 300))
    empty.delete("x > 0.5")
    return empty


def partition_by(table, name):
    from pyiceberg.transforms import IdentityTransform

    with table.update_spec() as change:
        change.add_field(name, IdentityTransform(), f"by {name}")


def place_of(table):
    return table.location().removeprefix("file://")


def assert_follows(cube, table):
    assert_same(cube.merge(), table.scan().to_arrow())


def test_an_iceberg_table_has_the_rows_of_its_snapshot(iceberg):
    for snapshot in iceberg.snapshots():
        expected = iceberg.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert_holds(f"{place_of(iceberg)}@{snapshot.snapshot_id}", expected)
    metadata = iceberg.metadata_location.removeprefix("file://")
    for newest in (iceberg, place_of(iceberg), f"iceberg:{place_of(iceberg)}@main", metadata):
        assert_holds(newest, iceberg.scan().to_arrow())
    with pytest.raises(DataError, match=r"no snapshot, branch or tag '77'.*main"):
        ss.sketch(f"{place_of(iceberg)}@77", SPEC)


def test_metadata_that_two_writers_left_are_refused(iceberg):
    """Without the catalog nobody knows which of them counts."""
    newest = Path(iceberg.metadata_location.removeprefix("file://"))
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))

    with pytest.raises(DataError, match=r"2 files of the newest number.*iceberg://catalog"):
        ss.sketch(place_of(iceberg), SPEC)


def test_renamed_and_new_columns_of_iceberg_are_found_by_their_numbers(iceberg):
    from pyiceberg.types import DoubleType

    with iceberg.update_schema() as change:
        change.rename_column("y", "height")
        change.add_column("more", DoubleType())
    spec = ss.SketchSpec(2, 9, 1.0, columns=("x", "height"))

    assert ss.sketch(iceberg, spec) == ss.sketch(iceberg.scan().to_arrow(), spec)
    with pytest.raises(DataError, match="has no column 'y'"):
        ss.sketch(iceberg, SPEC)


def test_a_column_that_took_the_name_of_another_is_refused(iceberg, follow):
    """The state has sums of the one, and rows to come would bring the other."""
    cube, before = follow(iceberg), iceberg.scan().to_arrow()
    for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
        with iceberg.update_schema() as change:
            change.rename_column(old, new)
    iceberg.append(rows(20, 9, 900).select(iceberg.schema().as_arrow().names))

    with pytest.raises(DataError, match=r"'x'.* another column.*Rename the columns back"):
        follow(iceberg)
    assert_same(cube.merge(), before)


def test_files_that_were_added_are_read_by_names_as_often_as_the_table_has_them(
    empty, follow, tmp_path
):
    pq.write_table(rows(40, 5), tmp_path / "own.parquet")
    for _ in range(2):
        empty.add_files([f"file://{tmp_path}/own.parquet"], check_duplicate_files=False)
    cube = follow(empty)
    assert cube.merge().count == 80

    empty.manage_snapshots().rollback_to_snapshot(empty.snapshots()[0].snapshot_id).commit()
    follow(empty)
    assert_same(cube.merge(), rows(40, 5))
    with empty.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(DataError, match=r"Set its property schema\.name-mapping\.default"):
        ss.sketch_by(empty, "day", spec=SPEC, on_invalid="skip")


@pytest.mark.parametrize("has_column", [True, False])
def test_values_of_partitions_and_places_of_iceberg_hold_any_sign(
    catalog, follow, tmp_path, has_column
):
    """A % in a place is no escape. An empty text is not null, also where only the log has it."""
    texts = ["", "%2F", "a b/c=ü%", "+", "%", None]
    own = rows(12, 1).set_column(3, "text", pa.array(texts * 2))
    place = f"{tmp_path}/my %20 t+ü"
    table = catalog.create_table("ns.signs", own.schema, location=f"file://{place}")
    partition_by(table, "text")
    table.append(own)
    if not has_column:
        for task in table.scan().plan_files():
            path = task.file.file_path.removeprefix("file://")
            pq.write_table(pq.ParquetFile(path).read().drop(["text"]), path)

    def expected(rows):
        return ss.sketch_by(rows, "text", spec=SPEC)

    cube = follow(table, by="text")
    assert expected(table) == cube.table() == expected(own)
    table.append(own)
    follow(place, by="text")
    assert cube.table() == expected(table.scan().to_arrow())


@pytest.mark.parametrize("kind", ["PARQUET", "PUFFIN"])
def test_rows_deleted_by_position_are_left_out_and_followed(iceberg, follow, kind):
    cube = follow(iceberg)
    write_deletes(iceberg, [0, 3, 4], kind)

    (change,) = changes_of(iceberg, *cube.positions.values())
    follow(iceberg)

    assert rows_in(change) == (0, 3)
    assert_holds(iceberg, iceberg.scan().to_arrow())
    assert_follows(cube, iceberg)


def test_rows_deleted_by_equality_are_refused(iceberg):
    write_deletes(iceberg, [1], "EQUALITY")

    with pytest.raises(DataError, match=r"deleted by equality.*Compact the table"):
        ss.sketch(iceberg, SPEC)


def commit_manifests(table, operation, make):
    """A snapshot with further manifests, of which some need its number."""
    from pyiceberg.table.snapshots import Operation
    from pyiceberg.table.update.snapshot import _FastAppendFiles

    class Picked(_FastAppendFiles):
        def _manifests(self):
            return [*make(self), *self._existing_manifests()]

    with (
        table.transaction() as transaction,
        Picked(Operation[operation], transaction=transaction, io=table.io),
    ):
        pass


def write_deletes(table, positions, kind):
    """Commit a file of deletions from the first file, which pyiceberg itself does not write."""
    from pyiceberg import manifest as m

    file = next(iter(table.scan().plan_files())).file
    place = Path(f"{place_of(table)}/data/deletes")
    if kind == "PUFFIN":
        place.write_bytes(puffin(file.file_path, positions))
    else:
        paths = [file.file_path] * len(positions)
        pq.write_table(pa.table({"file_path": paths, "pos": positions}), place)
    deletes = m.DataFile.from_args(
        content=m.DataFileContent[f"{'EQUALITY' if kind == 'EQUALITY' else 'POSITION'}_DELETES"],
        file_path=f"file://{place}",
        file_format=m.FileFormat["PUFFIN" if kind == "PUFFIN" else "PARQUET"],
        partition=file.partition,
        record_count=len(positions),
        file_size_in_bytes=place.stat().st_size,
        equality_ids=[1] if kind == "EQUALITY" else None,
    )
    deletes.spec_id = file.spec_id

    class Deletes(m.ManifestWriterV2):
        def content(self):
            return m.ManifestContent.DELETES

        @property
        def _meta(self):
            return {**super()._meta, "content": "deletes"}

    def make(commit):
        own = {"snapshot_id": commit._snapshot_id, "data_file": deletes}
        spec, output = commit.spec(file.spec_id), commit.new_manifest_output()
        with Deletes(spec, commit.schema(), output, own["snapshot_id"], "deflate") as writer:
            writer.add(m.ManifestEntry.from_args(status=m.ManifestEntryStatus.ADDED, **own))
        return [writer.to_manifest_file()]

    commit_manifests(table, "OVERWRITE", make)


def puffin(path, positions):
    """A file of one deletion vector."""
    vector = vector_of(positions)
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


def test_a_state_follows_an_iceberg_table_back_and_along_a_branch(iceberg, follow):
    """After a rollback there is no way from snapshot to snapshot: the two are compared."""
    cube = follow(iceberg, by="day")
    first, second, last = (snapshot.snapshot_id for snapshot in iceberg.snapshots()[:3])
    with iceberg.manage_snapshots() as manage:
        manage.create_branch(second, "audit")
        manage.create_tag(first, str(last))  # a snapshot is itself all the same
    iceberg.manage_snapshots().rollback_to_snapshot(first).commit()
    follow(iceberg, by="day")
    assert_follows(cube, iceberg)

    iceberg.append(rows(30, 4, 700), branch="audit")
    iceberg.append(rows(10, 5, 800))
    follow(f"{place_of(iceberg)}@audit", by="day")
    expected = iceberg.scan().use_ref("audit").to_arrow()
    assert_same(cube.merge(), expected)
    assert cube.table().counts.sum() == len(expected)


def test_a_snapshot_that_replaces_files_is_followed_without_reading(iceberg):
    (before,) = changes_of(iceberg, None)
    rewrite(iceberg)
    iceberg.append(rows(20, 6, 900))

    (change,) = changes_of(iceberg, before.position)
    assert rows_in(change) == (20, 0)


def rewrite(table):
    run_path(str(FIRE))["rewrite"](table)


def test_a_snapshot_that_does_not_say_what_it_changes_is_compared(iceberg, follow):
    """It takes up a manifest of a snapshot that it does not descend from."""
    before = iceberg.current_snapshot().snapshot_id
    iceberg.append(rows(7, 6, 900))
    left = iceberg.current_snapshot()
    taken = [m for m in left.manifests(iceberg.io) if m.added_snapshot_id == left.snapshot_id]
    iceberg.manage_snapshots().rollback_to_snapshot(before).commit()
    iceberg.append(rows(3, 7, 950))
    cube = follow(iceberg)
    commit_manifests(iceberg, "APPEND", lambda commit: taken)
    follow(iceberg)

    assert_follows(cube, iceberg)


def expire(table, snapshot):
    table.maintenance.expire_snapshots().by_id(snapshot).commit()


def test_an_expired_snapshot_is_refused_and_the_state_stays(iceberg, follow):
    cube, before = follow(iceberg), iceberg.scan().to_arrow()
    old = iceberg.current_snapshot().snapshot_id
    iceberg.delete("id < 20")
    rewrite(iceberg)
    iceberg.delete("id > 250")
    expire(iceberg, old)
    with pytest.raises(DataError, match=rf"no snapshot, branch or tag '{old}'.*start again"):
        follow(iceberg)

    assert_same(cube.merge(), before)


def test_a_table_without_a_snapshot_is_followed_from_nothing(empty, follow):
    cube = follow(empty)
    assert cube.merge().count == 0

    for seed in range(2):
        empty.append(rows(30, seed))
    expire(empty, empty.snapshots()[0].snapshot_id)  # one that expired on the way is passed over
    follow(empty)
    assert_follows(cube, empty)


def test_files_of_iceberg_that_are_gone_are_refused(iceberg, follow):
    follow(iceberg)
    files = [task.file.file_path for task in iceberg.scan().plan_files()]
    iceberg.delete("id < 400")
    for file in files:
        Path(file.removeprefix("file://")).unlink()

    with pytest.raises(DataError, match=r"no longer be read.*Start again"):
        follow(iceberg)


# Commands.


def test_commands_take_tables_of_lakes(table, tmp_path, run):
    plan, out, state = (tmp_path / name for name in ("plan.json", "x.sketch", "state"))
    run("plan", table, "-k", 3, "--columns", "x,y", "-o", plan)
    run("sketch", f"{table}@v1", "--plan", plan, "-o", out)
    assert ss.load(out) == ss.sketch(read(table, 1), ss.load(plan))
    run("follow", f"{table}@v1", state, "--plan", plan, "--by", "day")
    assert ss.live.Cube.open(state).merge() == ss.load(out)
    run("cluster", f"{table}@v2", "-k", 3, "--columns", "x,y")


def test_without_the_package_the_extra_is_named(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)

    with pytest.raises(ss.errors.SketchshiftError, match=r"pip install 'sketchshift\[lakes\]'"):
        ss.sketch(table, SPEC)


# Commits and kills at random.


def under_fire(*words):
    """In a process of its own: what it sets for catalogs is read when pyiceberg is imported."""
    done = subprocess.run(
        [sys.executable, "-W", "error", FIRE, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
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
