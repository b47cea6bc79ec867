"""Random commits on a table, and followers of it that are killed.

``python tests/live/follow_lakes.py delta --commits 10000 --kills 50`` writes so many commits
(appends, deletes, updates, compactions, now and then a restore) and meanwhile has two processes
follow the table at once, which it kills with SIGKILL so many times. After each kill the state is
brought up to date and compared, byte by byte, with the sketch of the rows that the lake's own
package reads. Prints what happened as JSON. ``iceberg`` likewise, in a catalog of SQLite.

With ``--store s3://bucket/folder`` the table lies in a store, which the environment says how to
reach (AWS_ENDPOINT_URL and so on); with ``--through http://host`` the followers reach it there, as
through a proxy with faults.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import sketchshift as ss

COLUMNS = ["x", "y"]
DAYS = ["mon", "tue", "wed"]
MOST_ROWS = 600
CATALOG = "fire"


def plan_for_fire():
    rows = np.random.default_rng(0).normal(size=(500, 2))
    return ss.plan(pa.table(dict(zip(COLUMNS, rows.T, strict=True))), 3, sketch_size=40, seed=0)


class Writer:
    """Makes random commits; ``state`` of the random numbers is all that they depend on."""

    def __init__(self, seed):
        self.random, self.next_id, self.done = random.Random(seed), 0, Counter()

    def rows(self, n):
        ids = range(self.next_id, self.next_id + n)
        self.next_id += n
        draw = self.random
        columns = {name: [draw.gauss(0, 1) for _ in ids] for name in COLUMNS}
        return pa.table({"id": list(ids), **columns, "day": [draw.choice(DAYS) for _ in ids]})

    def oldest(self):
        """Rows with smaller numbers are deleted, so that the table stays small."""
        return max(0, self.next_id - MOST_ROWS + self.random.randrange(100))

    def some(self):
        first = self.random.randrange(max(0, self.next_id - MOST_ROWS), self.next_id + 1)
        return first, first + self.random.randrange(1, 20)

    def delete(self):
        first, end = self.some()
        self.table.delete(f"id < {self.oldest()} or (id >= {first} and id < {end})")

    def commit(self, state):
        kinds = {"append": 8, "delete": 3, "update": 4, "compact": 2, "restore": 0.1}
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        getattr(self, kind)()
        self.done[kind] += 1


class DeltaWriter(Writer):
    """A Delta table, partitioned by day."""

    def __init__(self, folder, seed, *, feed, store=None):
        super().__init__(seed)
        from deltalake import DeltaTable, write_deltalake

        self.place = place = f"{store or folder}/table"
        self.address = self.source = f"delta+{place}" if store else place
        options = {"delta.checkpointInterval": "50"}
        options |= {"delta.enableChangeDataFeed": "true"} if feed else {}
        stored = {"storage_options": {"AWS_ALLOW_HTTP": "true"}} if store else {}
        write_deltalake(place, self.rows(50), partition_by=["day"], configuration=options, **stored)
        self.table = DeltaTable(place, **stored)

    def read(self):
        from deltalake import QueryBuilder

        rows = QueryBuilder().register("t", self.table).execute("select x, y, day from t")
        return pa.table(rows.read_all())

    def append(self):
        from deltalake import write_deltalake

        write_deltalake(self.table, self.rows(self.random.randrange(1, 20)), mode="append")

    def update(self):
        first, end = self.some()
        self.table.update(updates={"y": "y * 0.5"}, predicate=f"id >= {first} and id < {end}")

    def compact(self):
        self.table.optimize.compact()

    def restore(self):
        self.table.restore(max(0, self.table.version() - 3))


class IcebergWriter(Writer):
    """An Iceberg table in a catalog of SQLite; old snapshots expire."""

    def __init__(self, folder, seed, *, store=None):
        super().__init__(seed)
        uri = f"sqlite:///{folder}/catalog.db"
        os.environ[f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI"] = uri  # for the followers
        os.environ[f"PYICEBERG_CATALOG__{CATALOG.upper()}__TYPE"] = "sql"
        from pyiceberg.catalog.sql import SqlCatalog

        stored = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"]} if store else {}
        catalog = SqlCatalog(CATALOG, uri=uri, warehouse=store or f"file://{folder}", **stored)
        catalog.create_namespace("ns")
        kept = {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "10",
        }
        rows = self.rows(50)
        self.table = self.source = catalog.create_table("ns.table", rows.schema, properties=kept)
        self.table.append(rows)
        self.place, self.address = self.table.location(), f"iceberg://{CATALOG}/ns.table"
        if store:
            self.source = self.address

    def read(self):
        return self.table.scan(selected_fields=("x", "y", "day")).to_arrow()

    def append(self):
        self.table.append(self.rows(self.random.randrange(1, 20)))

    def update(self):
        first, end = self.some()
        rows = self.table.scan(f"id >= {first} and id < {end}").to_arrow()
        halves = pc.multiply(rows["y"], 0.5)
        self.table.overwrite(
            rows.set_column(rows.schema.get_field_index("y"), "y", halves),
            f"id >= {first} and id < {end}",
        )

    def compact(self):
        rewrite(self.table)

    def restore(self):
        way = self.table.current_snapshot()
        for _ in range(3):
            parent = self.table.snapshot_by_id(way.parent_snapshot_id or -1)
            way = parent or way
        self.table.manage_snapshots().rollback_to_snapshot(way.snapshot_id).commit()

    def line(self):
        """The current snapshot and those that it came from."""
        found, way = set(), self.table.current_snapshot()
        while way is not None:
            found.add(way.snapshot_id)
            way = self.table.snapshot_by_id(way.parent_snapshot_id or -1)
        return found

    def commit(self, state):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match")
            super().commit(state)
        snapshots = self.table.snapshots()
        (position,) = ss.live.Cube.open(state).positions.values()
        reached = self.table.snapshot_by_id(position["version"])
        # Followers that still have a rollback before them would go back to what expires here.
        if len(snapshots) > 16 and reached.snapshot_id in self.line():
            before = min(reached.timestamp_ms, snapshots[-6].timestamp_ms)
            old = self.table.maintenance.expire_snapshots()
            old.older_than(datetime.fromtimestamp(before / 1000)).commit()
            self.done["expired"] += 1


def rewrite(table):
    """Write all rows into one file, as a snapshot that changes none: a compaction."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files
    from pyiceberg.table.snapshots import Operation, Summary
    from pyiceberg.table.update.snapshot import _OverwriteFiles

    class Rewrite(_OverwriteFiles):
        def _summary(self, snapshot_properties=None):
            return Summary(operation=Operation.REPLACE)

    old = [task.file for task in table.scan().plan_files()]
    rows = table.scan().to_arrow()
    with table.transaction() as transaction:
        replacing = Rewrite(Operation.REPLACE, transaction=transaction, io=table.io)
        with replacing:
            for file in old:
                replacing.delete_data_file(file)
            for file in _dataframe_to_data_files(table.metadata, rows, table.io):
                replacing.append_data_file(file)


def follow_for_ever(address, state):
    """What a follower does until it is killed."""
    ss.live.follow(address, state)
    sys.stdout.write("following\n")
    sys.stdout.flush()
    while True:
        time.sleep(random.random() * 0.5)
        ss.live.follow(address, state)


@contextmanager
def followers(n, address, state):
    """Processes that follow a table at once; they are killed at the end."""
    words = [sys.executable, __file__, "--follow", address, str(state)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    try:
        for process in running:
            assert process.stdout.readline() == "following\n"
        yield
        ended = [process.poll() for process in running]
        assert ended == [None] * n, f"a follower ended by itself: {ended}"
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()


def check(writer, state, spec):
    """Compare the state with a sketch of all rows, by the bytes, as a whole and by day."""
    cube, rows = ss.live.follow(writer.source, state), writer.read()
    assert cube.merge().to_bytes() == ss.sketch(rows, spec).to_bytes()
    assert cube.table() == ss.sketch_by(rows, "day", spec=spec)


def run(kind, commits, kills, n_followers=2, seed=0, feed=False, store=None, through=None):
    """Write commits, kill followers, check; what happened."""
    start, spec, n_done = time.monotonic(), plan_for_fire(), 0
    if through:
        os.environ["SKETCHSHIFT_STORAGE"] = f"endpoint={through},tries=40"
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        if kind == "iceberg":
            writer = IcebergWriter(folder, seed, store=store)
        else:
            writer = DeltaWriter(folder, seed, feed=feed, store=store)
        cube = ss.live.follow(writer.source, state, spec=spec, by="day")
        for killed in range(1, kills + 1):
            with followers(n_followers, writer.address, state):
                while n_done < commits * killed // kills:
                    writer.commit(state)
                    n_done += 1
                time.sleep(writer.random.random() * 0.2)
            check(writer, state, spec)
            cube.compact()
            sys.stderr.write(f"{n_done} commits, {killed} checks\n")
        return {
            "commits": n_done,
            "by_kind": writer.done,
            "checks": kills,
            "rows": cube.merge().count,
            "state_commits": cube.version,
            "seconds": round(time.monotonic() - start, 1),
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["delta", "iceberg"])
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10, help="times that all followers are killed")
    parser.add_argument("--followers", type=int, default=2, dest="n_followers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--feed", action="store_true", help="of Delta: with a change data feed")
    parser.add_argument("--store", help="where to make the table instead: s3://bucket/folder")
    parser.add_argument("--through", help="the endpoint by which followers reach the store")
    sys.stdout.write(json.dumps(run(**vars(parser.parse_args()))) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--follow"]:
        follow_for_ever(*sys.argv[2:])
    else:
        main()
