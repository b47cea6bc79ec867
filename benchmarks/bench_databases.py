"""PostgreSQL as a source.

Run: ``python benchmarks/bench_databases.py [--rows 500000]`` where Debian's PostgreSQL is. A
server of its own starts in a temporary folder, with one table of ten float8 columns (100 bytes a
row). Its rows are written to a file by COPY, and sketched as they come, in fresh processes, in
turns. Processor seconds count those of the client and of the server's backends; on a busy machine
they tell more than the wall clock does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import adbc_driver_postgresql.dbapi as postgres
import psutil
from harness import report

import sketchshift as ss

COLUMNS = [f"x{j}" for j in range(10)]
NAMES = ", ".join(COLUMNS)
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
CHILD = """
import json, sys, time
from pathlib import Path
import sketchshift as ss
address, query, plan = sys.argv[1:]
spec = ss.load(plan)
cpu, start = time.process_time(), time.perf_counter()
sketch = ss.sketch(address, spec, query=query)
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
status = Path("/proc/self/status").read_text()  # ru_maxrss would be that of the parent as well
mib = int(status.partition("VmHWM:")[2].split()[0]) / 1024
print(json.dumps([sketch.count, seconds, cpu, mib]))
"""


class Server:
    """A server of its own, that is gone with everything at the end."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._user: dict[str, object] = {"cwd": self.folder, "check": True}
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
            self._user |= {"user": "postgres", "extra_groups": ()}
        self._data = str(self.folder / "data")
        self.address = f"postgresql://postgres@/postgres?host={self.folder}"
        self._call("initdb", "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C")
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off"
        self._call("pg_ctl", "-o", options, "-l", str(self.folder / "log"), "-w", "start")
        self.pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def _call(self, program: str, *words: str) -> None:
        command = [PROGRAMS[-1] / program, "-D", self._data, *words]
        subprocess.run(command, stdout=subprocess.DEVNULL, **self._user)

    def run(self, *statements: str) -> list[tuple]:
        """The rows of the last statement."""
        connect = postgres.connect(self.address, autocommit=True)
        with connect as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if statement.startswith("SELECT") else []

    def cpu(self) -> float:
        """Processor seconds of all backends that have ended."""
        time.sleep(0.2)
        times = psutil.Process(self.pid).cpu_times()
        return times.children_user + times.children_system

    def timed(self, call: Callable[[], object]) -> dict[str, float]:
        """Wall seconds of a call, and processor seconds of the backends that it used."""
        before, start = self.cpu(), time.perf_counter()
        call()
        wall = time.perf_counter() - start
        return {"seconds": wall, "server_cpu": self.cpu() - before}

    def stop(self) -> None:
        """End the server, and delete its files."""
        self._call("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)


def fill(server: Server, n: int) -> None:
    """A table of n rows, around ten centers."""
    numbers = ", ".join(
        f"(i % 10) * {j % 3} + random() AS {name}" for j, name in enumerate(COLUMNS)
    )
    server.run(
        f"CREATE UNLOGGED TABLE points AS SELECT {numbers} FROM generate_series(1, {n}) AS s(i)",
        "VACUUM ANALYZE points",
        "ALTER DATABASE postgres SET synchronize_seqscans = off",  # LIMIT means the same rows
    )


def read(server: Server, query: str, plan: Path) -> dict[str, float]:
    """Sketch a query in a fresh process: rows, seconds, and the largest memory in MiB."""
    words = [sys.executable, "-c", CHILD, server.address, query, str(plan)]
    before = server.cpu()
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    rows, seconds, cpu, mib = json.loads(done.stdout)
    cpus = {"client_cpu": cpu, "server_cpu": server.cpu() - before}
    return {"rows": rows, "seconds": seconds, **cpus, "mib": mib}


def bench_reading(server: Server, n: int, repeats: int) -> dict[str, object]:
    """The rate of a sketch against that of COPY, and its memory at a tenth of the rows."""
    plan = server.folder / "plan.json"
    timed = server.timed(
        lambda: plan.write_text(
            ss.plan(server.address, n_clusters=10, query="points", columns=COLUMNS).to_json()
        )
    )
    found: dict[str, object] = {"plan_seconds": timed["seconds"]}
    target = server.folder / "copied"
    copies: dict[str, list] = {"binary": [], "text": []}
    sketches = []
    for _ in range(repeats):
        for kind, times in copies.items():
            sql = f"COPY (SELECT {NAMES} FROM points) TO '{target}' (FORMAT {kind})"
            times.append(server.timed(lambda sql=sql: server.run(sql)))
            found[f"{kind}_bytes"] = target.stat().st_size
            target.unlink()
        sketches.append(read(server, "points", plan))
    best = min(sketches, key=lambda s: s["seconds"])
    few = read(server, f"SELECT * FROM points LIMIT {n // 10}", plan)
    found |= {"sketch": best, "mib_of_a_tenth": few["mib"]}
    for kind, times in copies.items():
        found[f"copy_{kind}"] = least = min(times, key=lambda t: t["seconds"])
        found[f"rate_against_copy_{kind}"] = least["seconds"] / best["seconds"]
        cpu = best["client_cpu"] + best["server_cpu"]
        found[f"cpu_against_copy_{kind}"] = cpu / least["server_cpu"]
    return found


def flatten(facts: dict[str, object], before: str = "") -> dict[str, float]:
    """Numbers of nested facts, by their joined names."""
    flat: dict[str, float] = {}
    for name, value in facts.items():
        whole = f"{before}{name}"
        flat |= flatten(value, f"{whole} ") if isinstance(value, dict) else {whole: float(value)}
    return flat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    server = Server()
    try:
        fill(server, options.rows)
        found = bench_reading(server, options.rows, options.repeats)
    finally:
        server.stop()
    report("databases", {"reading": flatten(found)})


if __name__ == "__main__":
    main()
