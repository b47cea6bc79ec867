"""Sketches of days as assets of Dagster, and their sum as another.

A run again of a day replaces its file, so that the sum counts every row once. Run it::

    pip install sketchshift dagster
    python examples/workflows/dagster_assets.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import dagster as dg
import numpy as np

import sketchshift as ss

DAYS = dg.StaticPartitionsDefinition(["2026-11-16", "2026-11-17", "2026-11-18"])
SPEC = ss.SketchSpec(n_features=2, sketch_size=200, bandwidth=0.5, columns=["x", "y"])


class SketchFiles(dg.ConfigurableIOManager):
    """Keeps a sketch, or one of each partition, in a folder."""

    folder: str

    def _path(self, name: str, partition: str | None = None) -> Path:
        return Path(self.folder, name if partition is None else f"{name}/{partition}.sketch")

    def handle_output(self, context: dg.OutputContext, obj: ss.Sketch) -> None:
        """Write a sketch, whole or not at all."""
        name = context.asset_key.path[-1]
        partition = context.partition_key if context.has_partition_key else "all"
        path = self._path(name, partition)
        path.parent.mkdir(parents=True, exist_ok=True)
        obj.save(path)
        context.add_output_metadata({"rows": obj.count, "path": str(path)})

    def load_input(self, context: dg.InputContext) -> dict[str, ss.Sketch]:
        """The sketches of all partitions that are asked for."""
        name = context.asset_key.path[-1]
        keys = context.asset_partition_keys
        return {key: ss.load(self._path(name, key)) for key in keys}


def read_rows(day: str) -> np.ndarray:
    """The rows of a day: yours come from a lake or a database."""
    return np.random.default_rng(int(day.replace("-", ""))).normal(size=(1000, 2))


@dg.asset(partitions_def=DAYS)
def day_sketch(context: dg.AssetExecutionContext) -> ss.Sketch:
    """A few kilobytes of each day."""
    return ss.sketch(read_rows(context.partition_key), SPEC)


@dg.asset
def week_sketch(day_sketch: dict[str, ss.Sketch]) -> ss.Sketch:
    """The sketch of all days, without their rows."""
    return sum(day_sketch.values())


def main() -> None:
    """Make every day, one of them twice, and then the week."""
    folder = sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-")
    options = {"resources": {"io_manager": SketchFiles(folder=folder)}}
    with dg.DagsterInstance.ephemeral() as instance:
        for day in [*DAYS.get_partition_keys(), "2026-11-17"]:
            dg.materialize([day_sketch], partition_key=day, instance=instance, **options)
        dg.materialize(
            [day_sketch, week_sketch], selection=[week_sketch], instance=instance, **options
        )
    print(ss.load(Path(folder, "week_sketch", "all.sketch")))


if __name__ == "__main__":
    main()
