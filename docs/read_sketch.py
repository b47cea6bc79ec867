"""Read a sketch file or a table of sketches with NumPy and pyarrow alone (docs/format.md, 3.)."""

import base64
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def families_of(spec):
    """Name of each family, how many integers name an entry, and sizes of its groups."""
    assert "families" not in spec, "their modules know their shapes"
    d, spread = spec["rows"]["n_features"], spec.get("spread", "columns")
    has_sums, n_products = spread == "columns", d * (d + 1) // 2 if d <= 64 else d
    p = 0 if has_sums or spread is None else len(base64.b64decode(spread)) // 4 // d
    if "waves" in spec:
        yield "waves", 0, (2 * spec["waves"]["size"],)
    yield "moments", 0, (1, 1, d, d, d, n_products) if has_sums else (1, 1)
    if "cells" in spec:
        yield "cells", 1, (1, d, 1 + p if p else d)
        yield "outliers", 5, (1, d, 1 + p if p else d)
        yield "partial", 0, (1,)
        yield from [("clipped", 1, (1, d, 1))] * isinstance(spec["rows"].get("onto"), dict)


def read_slice(data, plan):
    """Rows and rows left out, and the integers of each family, names of entries first."""
    key = bytes.fromhex(plan["fingerprint"])
    assert data[-16:] == hashlib.blake2b(data[:-16], digest_size=16, key=key).digest(), "damaged"
    families, rows, at = [*families_of(plan["spec"])], {}, 16
    for name, n_names, _ in families:
        rows[name] = int.from_bytes(data[at : at + 4], "little") if n_names else 1
        at += 4 * (n_names > 0)
    groups = [(name, size) for name, n, sizes in families for size in (n, *sizes) if size]
    widths, at, found = data[at : at + len(groups)], at + len(groups), {}
    for (name, size), w in zip(groups, widths, strict=True):
        places = range(at, at := at + rows[name] * size * w, w)
        numbers = [int.from_bytes(data[i : i + w], "little", signed=True) for i in places]
        found.setdefault(name, []).append(np.array(numbers, dtype=object).reshape(-1, size))
    return np.frombuffer(data, "<i8", 2), {name: np.hstack(own) for name, own in found.items()}


data = Path(sys.argv[1]).read_bytes()
if data[:4] == b"PAR1":
    slices = pq.read_table(sys.argv[1]).to_pylist()
else:
    assert data[-32:] == hashlib.blake2b(data[:-32], digest_size=32).digest(), "damaged"
    end = 16 + int.from_bytes(data[12:16], "little")
    slices = [{"plan": data[16:end], "sketch": data[end:-32]}]
for row in slices:
    plan, data = json.loads(row.pop("plan")), row.pop("sketch")
    counts, integers = read_slice(data, plan)
    d, W = plan["spec"]["rows"]["n_features"], integers["moments"][0, 1]
    steps = integers["moments"][0, 2 : 2 + d] * 2**52 / max(W, 1)  # of unit / 2**16
    shown = {name: own[:2, :9].tolist() for name, own in integers.items()}
    sys.stdout.write(f"{row} {counts.tolist()} mean {steps.tolist()} {shown}\n")
