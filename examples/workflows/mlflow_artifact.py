"""A sketch of the rows that a model was trained on, kept with its run in MLflow.

Months later it is loaded again, and the rows of that day are compared with it. Run it::

    pip install sketchshift mlflow
    python examples/workflows/mlflow_artifact.py [folder]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mlflow
import numpy as np

import sketchshift as ss
from sketchshift.view import SketchFile, report_on

FOLDER = "sketchshift"


def log_sketch(sketch: ss.Sketch, n_clusters: int, name: str = "rows") -> None:
    """Keep a sketch, and the page about it, with the run that is open."""
    page, _ = report_on(SketchFile.of(name, len(sketch.to_bytes()), sketch), n_clusters)
    mlflow.log_text(page, f"{FOLDER}/{name}.html")
    with tempfile.TemporaryDirectory() as folder:
        sketch.save(Path(folder, f"{name}.sketch"))
        mlflow.log_artifact(str(Path(folder, f"{name}.sketch")), FOLDER)
    mlflow.log_params({"sketch_plan": sketch.spec.fingerprint, "sketch_rows": sketch.count})


def load_sketch(run_id: str, name: str = "rows") -> ss.Sketch:
    """The sketch of a run."""
    path = mlflow.artifacts.download_artifacts(
        run_id=run_id, artifact_path=f"{FOLDER}/{name}.sketch"
    )
    return ss.load(path)


def main() -> None:
    """Keep the training rows of a run; compare two later days with them."""
    folder = sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("shops")
    rng = np.random.default_rng(0)
    trained_on = rng.normal(size=(20_000, 3))
    with mlflow.start_run() as run:
        log_sketch(ss.sketch(trained_on, n_clusters=5), n_clusters=5)

    kept = load_sketch(run.info.run_id)
    for name, shift in (("usual", 0.0), ("moved", 0.5)):
        day = ss.sketch(rng.normal(size=(20_000, 3)) + shift, kept.spec)
        print(f"{name} day differs: {ss.compare(kept, day).drifted}")
    is_same = kept == ss.sketch(trained_on, kept.spec)
    print(f"loaded as it was logged: {is_same}, run {run.info.run_id}")


if __name__ == "__main__":
    main()
