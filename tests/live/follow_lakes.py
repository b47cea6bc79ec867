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


def plan_for_fire() -> ss.SketchSpec:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    return ss.plan(pa.table(dict(zip(COLUMNS, rows.T, strict=True))), 3, sketch_size=40, seed=0)


class Writer:
    """Makes random commits; ``state`` of the random numbers is all that they depend on."""

    def __init__(self, seed: int) -> None:
        self.random, self.next_id, self.done = random.Random(seed), 0, Counter()

    def rows(self, n: int) -> pa.Table:
        ids = range(self.next_id, self.next_id + n)
        self.next_id += n
        draw = self.random
        columns = {name: [draw.gauss(0, 1) for _ in ids] for name in COLUMNS}
        return pa.table({"id": list(ids), **columns, "day": [draw.choice(DAYS) for _ in ids]})

    def oldest(self) -> int:
        """Rows with smaller numbers are deleted, so that the table stays small."""
        return max(0, self.next_id - MOST_ROWS + self.random.randrange(100))

    def some(self) -> tuple[int, int]:
        first = self.random.randrange(max(0, self.next_id - MOST_ROWS), self.next_id + 1)
        return first, first + self.random.randrange(1, 20)

    def commit(self, state: Path) -> None:
        kinds = {"append": 8, "delete": 3, "update": 4, "compact": 2, "restore": 0.1}
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        getattr(self, kind)()
        self.done[kind] += 1


class DeltaWriter(Writer):
    """A Delta table, partitioned by day."""

    def __init__(self, folder: Path, seed: int, *, feed: bool, store: str | None = None) -> None:
        super().__init__(seed)
        from deltalake import DeltaTable, write_deltalake

        place = f"{store or folder}/table"
        self.address = self.source = f"delta+{place}" if store else place
        options = {"delta.checkpointInterval": "50"}
        options |= {"delta.enableChangeDataFeed": "true"} if feed else {}
        stored = {"storage_options": {"AWS_ALLOW_HTTP": "true"}} if store else {}
        write_deltalake(place, self.rows(50), partition_by=["day"], configuration=options, **stored)
        self.table = DeltaTable(place, **stored)

    def read(self) -> pa.Table:
        from deltalake import QueryBuilder

        rows = QueryBuilder().register("t", self.table).execute("select x, y, day from t")
        return pa.table(rows.read_all())

    def append(self) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.table, self.rows(self.random.randrange(1, 20)), mode="append")

    def delete(self) -> None:
        first, end = self.some()
        self.table.delete(f"id < {self.oldest()} or (id >= {first} and id < {end})")

    def update(self) -> None:
        first, end = self.some()
        self.table.update(updates={"y": "y * 0.5"}, predicate=f"id >= {first} and id < {end}")

    def compact(self) -> None:
        self.table.optimize.compact()

    def restore(self) -> None:
        self.table.restore(max(0, self.table.version() - 3))


class IcebergWriter(Writer):
    """An Iceberg table in a catalog of SQLite; old snapshots expire."""

    def __init__(self, folder: Path, seed: int, *, store: str | None = None) -> None:
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
        self.address = f"iceberg://{CATALOG}/ns.table"
        if store:
            self.source = self.address

    def read(self) -> pa.Table:
        return self.table.scan(selected_fields=("x", "y", "day")).to_arrow()

    def append(self) -> None:
        self.table.append(self.rows(self.random.randrange(1, 20)))

    def delete(self) -> None:
        first, end = self.some()
        self.table.delete(f"id < {self.oldest()} or (id >= {first} and id < {end})")

    def update(self) -> None:
        first, end = self.some()
        rows = self.table.scan(f"id >= {first} and id < {end}").to_arrow()
        halves = pc.multiply(rows["y"], 0.5)
        self.table.overwrite(
            rows.set_column(rows.schema.get_field_index("y"), "y", halves),
            f"id >= {first} and id < {end}",
        )

    def compact(self) -> None:
        rewrite(self.table)

    def restore(self) -> None:
        way = self.table.current_snapshot()
        for _ in range(3):
            parent = self.table.snapshot_by_id(way.parent_snapshot_id or -1)
            way = parent or way
        self.table.manage_snapshots().rollback_to_snapshot(way.snapshot_id).commit()

    def line(self) -> set[int]:
        """The current snapshot and those that it came from."""
        found, way = set(), self.table.current_snapshot()
        while way is not None:
            found.add(way.snapshot_id)
            way = self.table.snapshot_by_id(way.parent_snapshot_id or -1)
        return found

    def commit(self, state: Path) -> None:
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


def rewrite(table) -> None:
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


def follow_for_ever(address: str, state: str) -> None:
    """What a follower does until it is killed."""
    ss.live.follow(address, state)
    sys.stdout.write("following\n")
    sys.stdout.flush()
    while True:
        time.sleep(random.random() * 0.5)
        ss.live.follow(address, state)


@contextmanager
def followers(n: int, address: str, state: Path):
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


def check(writer: Writer, state: Path, spec: ss.SketchSpec) -> None:
    """Compare the state with a sketch of all rows, by the bytes, as a whole and by day."""
    cube, rows = ss.live.follow(writer.source, state), writer.read()
    assert cube.merge().to_bytes() == ss.sketch(rows, spec).to_bytes()
    table, anew = cube.table(), ss.sketch_by(rows, "day", spec=spec)
    found = {
        key: sketch.to_bytes()
        for key, sketch in zip(table.keys["day"].to_pylist(), table.sketches, strict=True)
        if sketch.count
    }
    assert found == {
        key: sketch.to_bytes()
        for key, sketch in zip(anew.keys["day"].to_pylist(), anew.sketches, strict=True)
    }


def run(
    kind: str,
    *,
    commits: int,
    kills: int,
    seed: int = 0,
    n_followers: int = 2,
    feed: bool = False,
    limit: float = 1e9,
    within: str | None = None,
    store: str | None = None,
    through: str | None = None,
) -> dict[str, object]:
    """Write commits, kill followers, check; what happened."""
    start, spec = time.monotonic(), plan_for_fire()
    if through:
        os.environ["SKETCHSHIFT_STORAGE"] = f"endpoint={through},tries=40"
    with tempfile.TemporaryDirectory(dir=within) as folder:
        place, state = Path(folder), Path(folder) / "state"
        writer = IcebergWriter(place, seed, store=store) if kind == "iceberg" else None
        writer = writer or DeltaWriter(place, seed, feed=feed, store=store)
        ss.live.follow(writer.source, state, spec=spec, by="day")
        n_done, n_checks = 0, 0
        for killed in range(kills):
            with followers(n_followers, writer.address, state):
                while n_done < commits * (killed + 1) // kills:
                    writer.commit(state)
                    n_done += 1
                time.sleep(writer.random.random() * 0.2)
            check(writer, state, spec)
            ss.live.Cube.open(state).compact()
            n_checks += 1
            sys.stderr.write(f"{n_done} commits, {n_checks} checks\n")
            if time.monotonic() - start > limit:
                break
        cube = ss.live.Cube.open(state)
        return {
            "kind": kind + "+feed" * feed,
            "commits": n_done,
            "by_kind": dict(writer.done),
            "kills": n_checks * n_followers,
            "checks": n_checks,
            "rows": cube.merge().count,
            "state_commits": cube.version,
            "seconds": round(time.monotonic() - start, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["delta", "iceberg"])
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10, help="times that all followers are killed")
    parser.add_argument("--followers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--feed", action="store_true", help="of Delta: with a change data feed")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds, to end early")
    parser.add_argument("--within", help="where to make the folder of the table")
    parser.add_argument("--store", help="where to make the table instead: s3://bucket/folder")
    parser.add_argument("--through", help="the endpoint by which followers reach the store")
    given = parser.parse_args()
    result = run(
        given.kind,
        commits=given.commits,
        kills=given.kills,
        seed=given.seed,
        n_followers=given.followers,
        feed=given.feed,
        limit=given.limit,
        within=given.within,
        store=given.store,
        through=given.through,
    )
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--follow"]:
        follow_for_ever(*sys.argv[2:])
    else:
        main()
