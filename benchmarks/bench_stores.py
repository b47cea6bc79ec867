"""A large Parquet file on S3: bytes fetched, memory and seconds, also where requests fail.

Run: ``python benchmarks/bench_stores.py [--megabytes 200]``. A server of its own gives ranges of
files of a temporary folder as S3 does, counts the bytes that go out, and breaks a fifth of its
answers when it is told to. Some columns are sketched in fresh processes, from this machine and from
the server. Arrow's dataset reads the same columns from the same server, and does nothing with them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "data"))
from faulty_proxy import KINDS, Handler, Proxy

COLUMNS = [f"x{j:02}" for j in range(16)]
NEEDED = ["x03", "x07", "x11"]
GROUP_ROWS = 400_000  # 51 MB of 16 columns
SERVE = "--serve"

LEAST = """
import json, sys, time
from pathlib import Path
where, columns = sys.argv[1], sys.argv[2].split(",")
{setup}
cpu, start = time.process_time(), time.perf_counter()
{work}
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
status = Path("/proc/self/status").read_text()  # ru_maxrss would be that of the parent as well
mib = int(status.partition("VmHWM:")[2].split()[0]) / 1024
print(json.dumps([found, seconds, cpu, mib]))
"""
SKETCH = LEAST.format(
    setup="""
import sketchshift as ss
spec = ss.SketchSpec(len(columns), 64, bandwidth=1.0, columns=tuple(columns))
""",
    work="found = ss.sketch(where, spec).to_bytes().hex()",
)
ARROW = LEAST.format(
    setup="""
import os
import pyarrow.dataset, pyarrow.fs
server = pyarrow.fs.S3FileSystem(
    anonymous=True, region="us-east-1", endpoint_override=os.environ["AWS_ENDPOINT_URL"]
)
""",
    work="""
data = pyarrow.dataset.dataset(where.removeprefix("s3://"), filesystem=server, format="parquet")
found = sum(len(batch) for batch in data.to_batches(columns=columns))
""",
)


class Files(Handler):
    """Files of a folder, each first name in it a bucket: HEAD, GET of a range, and lists."""

    def fetch(self, sent: bytes):
        """The answer: status, headers, body, and of a HEAD the length."""
        where = urlsplit(self.path)
        said = {name: values[0] for name, values in parse_qs(where.query).items()}
        bucket, _, key = unquote(where.path).strip("/").partition("/")
        file = Path(self.server.upstream) / bucket / key
        if not key and "list-type" in said:
            body = self.list_of(file, said.get("prefix", ""), int(said.get("max-keys", 1000)))
            return 200, [("Content-Type", "application/xml")], body, None
        if not (file.is_file() or (not key and file.is_dir())):
            return 404, [], b"", None
        return self.bytes_of(file) if key else (200, [], b"", None)

    def bytes_of(self, file: Path):
        """A range of a file, or all of it."""
        status = file.stat()
        tag, date = (
            f'"{status.st_mtime_ns:x}-{status.st_size:x}"',
            formatdate(status.st_mtime, usegmt=True),
        )
        headers = [("ETag", tag), ("Last-Modified", date), ("Accept-Ranges", "bytes")]
        if self.command == "HEAD":
            return 200, headers, b"", status.st_size
        start, stop, code = 0, status.st_size, 200
        if span := self.headers.get("Range"):
            first, _, last = span.removeprefix("bytes=").partition("-")
            start, stop, code = int(first), min(int(last or stop) + 1, stop), 206
            headers.append(("Content-Range", f"bytes {start}-{stop - 1}/{status.st_size}"))
        with file.open("rb") as opened:
            return code, headers, os.pread(opened.fileno(), stop - start, start), None

    @staticmethod
    def list_of(folder: Path, prefix: str, limit: int) -> bytes:
        """All files below a prefix; nobody asks for folders here."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        found = [(str(f.relative_to(folder)), f) for f in sorted(folder.rglob("*")) if f.is_file()]
        found = [(key, file) for key, file in found if key.startswith(prefix)][:limit]
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{now}</LastModified>"
            f"<Size>{file.stat().st_size}</Size></Contents>"
            for key, file in found
        )
        head = (
            f"<Name>{folder.name}</Name><Prefix>{prefix}</Prefix><KeyCount>{len(found)}</KeyCount>"
        )
        facts = f"{head}<MaxKeys>{limit}</MaxKeys><IsTruncated>false</IsTruncated>"
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        return f'<ListBucketResult xmlns="{space}">{facts}{entries}</ListBucketResult>'.encode()


def write_file(path: Path, n_groups: int) -> int:
    """Row groups of the same random rows; the bytes that the footer says are needed."""
    X = np.random.default_rng(0).normal(size=(len(COLUMNS), GROUP_ROWS))
    table = pa.table(dict(zip(COLUMNS, X, strict=True)))
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(n_groups):
            writer.write_table(table, GROUP_ROWS)
    footer = pq.read_metadata(path)
    return sum(
        footer.row_group(i).column(COLUMNS.index(name)).total_compressed_size
        for i in range(footer.num_row_groups)
        for name in NEEDED
    )


class Bench:
    """The server, and processes that read from it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, __file__, SERVE, str(folder)]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.endpoint = f"http://127.0.0.1:{int(self._server.stdout.readline())}"

    def order(self, words: str = "") -> dict[str, int]:
        """Set the faults; what happened since the last order."""
        with urlopen(f"{self.endpoint}/__proxy__?{words}", timeout=30) as answer:
            return json.load(answer)

    def read(self, program: str, where: str, faults: str = "") -> tuple[object, dict[str, float]]:
        """What a fresh process finds, and what that took."""
        said = {"AWS_ENDPOINT_URL": self.endpoint, "SKETCHSHIFT_STORAGE": "anonymous=true"}
        command = [sys.executable, "-c", program, where, ",".join(NEEDED)]
        self.order(faults)
        done = subprocess.run(
            command, env={**os.environ, **said}, check=True, stdout=subprocess.PIPE, text=True
        )
        counts = self.order()
        found, seconds, cpu, mib = json.loads(done.stdout)
        facts = {"seconds": seconds, "client_cpu": cpu, "mib": mib, "bytes": counts["body_bytes"]}
        n_faults = sum(counts[kind] for kind in KINDS)
        return found, {**facts, "requests": counts["requests"], "faults": n_faults}

    def stop(self) -> None:
        """End the server."""
        self._server.terminate()
        self._server.wait()


def bench_file(bench: Bench, path: Path, needed: int) -> dict[str, dict[str, float]]:
    """One file, from this machine, from the server, from the server that fails, and by Arrow."""
    glob, title = f"s3://bucket/{path.parent.name}/*.parquet", path.parent.name
    here, local = bench.read(SKETCH, str(path))
    found = {f"{title}, local": {name: local[name] for name in ("seconds", "client_cpu", "mib")}}
    ways = {"S3": (SKETCH, ""), "S3, a fifth fails": (SKETCH, "rate=0.2&seed=1")}
    for name, (program, faults) in ways.items():
        there, facts = bench.read(program, glob, faults)
        assert there == here, name
        found[f"{title}, {name}"] = {**facts, "bytes_ratio": facts["bytes"] / needed, "equal": 1.0}
    rows, facts = bench.read(ARROW, f"s3://bucket/{path.parent.name}/{path.name}")
    assert rows == pq.read_metadata(path).num_rows
    found[f"{title}, pyarrow.dataset"] = {**facts, "bytes_ratio": facts["bytes"] / needed}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument(SERVE, metavar="FOLDER", help="only the server: prints its port")
    options = parser.parse_args()
    if options.serve:
        server = Proxy(options.serve, Files)
        print(server.server_address[1], flush=True)
        server.serve_forever()
    folder, found = Path(tempfile.mkdtemp(prefix="stores-")), {}
    bench = Bench(folder)
    try:
        for megabytes in (options.megabytes // 10, options.megabytes):
            path = folder / "bucket" / f"{megabytes}MB" / "x.parquet"
            path.parent.mkdir(parents=True)
            n_groups = max(1, round(megabytes * 1e6 / (8 * GROUP_ROWS * len(COLUMNS))))
            found |= bench_file(bench, path, write_file(path, n_groups))
            path.unlink()
        report("stores", found)
    finally:
        bench.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
