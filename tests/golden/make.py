"""Write golden values: ``python tests/golden/make.py NAME [FILE]`` (see README.md beside it).

Totals are integers, the same everywhere. What BLAS computes is the same where the vector
instructions are, so all other values are made with those of 2013, which every processor that runs
the tests has.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
PINNED = {
    "SKETCHSHIFT_SIMD": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
MODULES = {"paper": "decodings", "errors": "commands"}
"""Where functions are that have no module of their name."""


def values_of(name, *options):
    """Return the values of a file, as JSON holds them, floats with 13 digits."""
    warnings.simplefilter("ignore")
    found = getattr(import_module(MODULES.get(name, name)), name)(*options)
    return json.loads(
        json.dumps(found, default=int), parse_float=lambda x: float(f"{float(x):.13g}")
    )


def written(value, indent="\n"):
    """Return JSON with one list of plain values a line."""
    parts = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(parts, list) or not any(isinstance(each, list | dict) for each in parts):
        return json.dumps(value)
    lines = [written(each, indent + " ") for each in parts]
    if isinstance(value, dict):
        lines = [f"{json.dumps(name)}: {line}" for name, line in zip(value, lines, strict=True)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}{indent} " + f",{indent} ".join(lines) + indent + last


def main(name, path=None, *options):
    """Write the values to the golden file, or to another one."""
    if name != "totals" and any(os.environ.get(key) != PINNED[key] for key in PINNED):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | PINNED)
    target = HERE / f"{name}.json" if path is None else Path(path)
    target.write_text(written(values_of(name, *options)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
