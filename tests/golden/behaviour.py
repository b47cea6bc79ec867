"""What plans, decoders and commands give on real and made data, as one JSON object on stdout.

``python tests/golden/behaviour.py > tests/golden/behaviour.json`` writes the golden file anew: on
purpose only. Sketches are the same bytes everywhere; what BLAS computes is the same where the
vector instructions are, so these are held to those of 2013 (``PINNED``), which every processor
that runs the tests has.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

PINNED = {
    "SKETCHSHIFT_SIMD": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
SAMPLES = Path(__file__).parents[1] / "samples"
VOLATILE = {"seconds", "rows_per_second"}


def run_pinned() -> str:
    """What this script prints, from a process with these instructions."""
    words = [sys.executable, __file__]
    environment = os.environ | PINNED
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def datasets() -> dict[str, tuple[Any, bool]]:
    """Rows, and whether columns get scales of their own."""
    import numpy as np
    from sklearn import datasets

    found: dict[str, tuple[Any, bool]] = {
        name: (getattr(datasets, f"load_{name}")().data, name != "digits")
        for name in ("iris", "wine", "breast_cancer", "diabetes", "digits")
    }
    for name in ("china", "flower"):
        pixels = datasets.load_sample_image(f"{name}.jpg").reshape(-1, 3)
        found[name] = pixels[::97].astype(float), False
    for name in ("skin", "spectral_mnist"):
        with np.load(SAMPLES / f"{name}.npz", allow_pickle=False) as arrays:
            found[name] = arrays["X"].astype(float), False
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, size=(12, 4))
    found["mixture"] = centers[rng.integers(0, 12, 6000)] + rng.normal(size=(6000, 4)), False
    found["lognormal"] = rng.lognormal(sigma=1.5, size=(5000, 3)), False
    found["square"] = rng.uniform(size=(5000, 2)), False
    found["whole numbers"] = rng.poisson(2.0, size=(3000, 5)).astype(float), False
    found["five rows"] = rng.normal(size=(5, 2)), False
    found["equal rows"] = np.full((40, 3), 7.0), False
    return found


def decoded(X: Any, standardize: bool, cells: bool) -> dict[str, Any]:
    """Plans, sketches and clusters for several k, with cells or with waves alone."""
    import sketchshift as ss

    found: dict[str, Any] = {}
    for k in (1, 3, 8):
        if k > len(X):
            continue
        sketch = ss.sketch(X, n_clusters=k, standardize=standardize, cells=cells)
        decoding = ss.decode(sketch, k)
        found[str(k)] = {
            "plan": short_plan(sketch.spec),
            "sketch": hashlib.blake2b(sketch.to_bytes(), digest_size=16).hexdigest(),
            "outcome": decoding.outcome.name,
            "residual_norm": float(decoding.residual_norm),
            "weights": decoding.weights.tolist(),
            "centroids": decoding.centroids.tolist(),
        }
    return found


def short_plan(spec: Any) -> dict[str, Any]:
    """A plan as JSON, with a digest for the centers of its cells."""
    plan: dict[str, Any] = json.loads(spec.to_json())
    if spec.cells is not None:
        numbers = {"centers": spec.cells.centers} | (
            {"middles": spec.cells.middles} if spec.cells.middles else {}
        )
        plan["cells"] = plan["cells"] | {name: digest_of(text) for name, text in numbers.items()}
    if spec.axes is not None:
        plan["axes"] = digest_of(spec.axes.directions)
    return plan


def digest_of(numbers: bytes) -> str:
    """What stands for many numbers."""
    return hashlib.blake2b(numbers, digest_size=16).hexdigest()


def command_outputs() -> dict[str, Any]:
    """What commands say with ``--json``, without what changes from run to run."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    rng = np.random.default_rng(1)
    for day in (1, 2):
        X = rng.normal(size=(900, 3)) + rng.integers(0, 3, 900)[:, None] * [4.0, 0.0, day]
        columns = {name: X[:, j] for j, name in enumerate("xyz")}
        table = pa.table(columns | {"w": rng.integers(1, 4, 900), "shop": rng.choice(3, 900)})
        pyarrow.csv.write_csv(table, f"day{day}.csv")
    lines = [
        "plan day1.csv -k 3 --columns x,y,z -o plan.json",
        "sketch day1.csv --plan plan.json --weights w -o day1.sketch",
        "sketch day2.csv --plan plan.json --weights w -o day2.sketch",
        "sketch day1.csv day2.csv --plan plan.json --by shop -o shops.parquet",
        "merge day1.sketch day2.sketch -o both.sketch",
        "subtract both.sketch day1.sketch -o rest.sketch",
        "inspect both.sketch",
        "inspect shops.parquet",
        "cluster both.sketch -k 3 -o centroids.csv",
        "cluster both.sketch -k auto",
        "cluster shops.parquet -k 2 --where 'shop = 1'",
        "cluster day1.csv -k 3 --columns x,y,z --standardize",
        "cluster both.sketch -k 3 --decoder cl-ompr",
        "compare day1.sketch day2.sketch -k 3",
        "watch shops.parquet --by shop",
        "assign day1.csv --centroids centroids.csv -o labels.csv",
    ]
    return {line: facts_of(line) for line in lines}


def facts_of(line: str) -> Any:
    """The JSON object of a command, or what it says instead."""
    from click.testing import CliRunner

    from sketchshift.cli import main

    result = CliRunner().invoke(main, [*shlex.split(line), "--json"])
    if result.exit_code:
        return {"exit_code": result.exit_code, "said": result.stderr}
    facts = json.loads(result.stdout)
    return {name: fact for name, fact in facts.items() if name not in VOLATILE}


def behaviour() -> dict[str, Any]:
    """All of it."""
    warnings.simplefilter("ignore")
    folder = os.getcwd()  # noqa: PTH109
    found: dict[str, Any] = {"decoded": {}, "waves": {}}
    for name, (X, standardize) in datasets().items():
        found["decoded"][name] = decoded(X, standardize, cells=True)
        found["waves"][name] = decoded(X, standardize, cells=False)
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        try:
            found["commands"] = command_outputs()
        finally:
            os.chdir(folder)
    return found


if __name__ == "__main__":
    is_pinned = all(os.environ.get(name) == value for name, value in PINNED.items())
    sys.stdout.write(json.dumps(behaviour(), indent=1) if is_pinned else run_pinned())
