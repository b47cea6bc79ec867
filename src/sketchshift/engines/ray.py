"""Ray datasets: Arrow blocks in, one row of bytes out of each, merged a few at a time.

A block is sketched by the task that read it, so that rows do not enter the object store; what
travels is one sketch for each block, or for each block and key.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sketchshift._validation import check_integer, check_number
from sketchshift.engines import Function, Merge
from sketchshift.engines.driver import cannot_read, choose_partitions, raise_own_errors
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.sketch.reading import Planning, Reading

__all__ = ["RayEngine"]

try:
    import ray.data
    from ray.data.dataset import MaterializedDataset
except ImportError as cause:
    msg = 'sketchshift.engines.ray needs Ray Data. Install it: pip install "sketchshift[ray]".'
    raise MissingDependencyError(msg) from cause


MERGERS = 16
"""Tasks that merge what blocks give, before this process does."""

GPU_ROWS = 2**20
"""Rows that go to a GPU at a time, unless ``batch_size`` says otherwise."""


class RayEngine:
    """The engine of Ray.

    Parameters
    ----------
    num_gpus : float or None
        GPUs that each sketching task takes. Such tasks run apart from the reading ones, on
        workers with a GPU, and blocks travel to them through the object store.
    batch_size : int or None
        Rows that a task sketches at a time; None takes whole blocks, or 2**20 rows for a GPU.
    **remote
        More for ``Dataset.map_batches``: ``num_cpus``, ``concurrency``, ``memory``, ...
    """

    checks_collections = True

    def __init__(
        self, num_gpus: float | None = None, batch_size: int | None = None, **remote: Any
    ) -> None:
        if num_gpus is not None:
            check_number("engines.ray", "num_gpus", num_gpus, low=0)
        if batch_size is not None:
            check_integer("engines.ray", "batch_size", batch_size, 1, 2**31)
        elif num_gpus:
            batch_size = GPU_ROWS
        self._remote = {"num_gpus": num_gpus, "batch_size": batch_size, **remote}

    def partitions(
        self, collection: Any, reading: Reading, planning: Planning | None = None
    ) -> tuple[ray.data.Dataset, Reading]:
        """The columns to read; for a plan, of some blocks of a dataset that lies in memory."""
        if not isinstance(collection, ray.data.Dataset):
            raise cannot_read(collection, "Ray", "ray.data.Dataset")
        reading.check_weight_name("Ray dataset")
        schema = collection.schema()
        if schema is None:
            raise DataError("the dataset has no rows and no columns. Check the path or the filter.")
        fields = dict(zip(schema.names, schema.types, strict=True))
        _refuse_tensors(fields, reading)
        known = {n: k if isinstance(k, pa.DataType) else pa.binary() for n, k in fields.items()}
        names = reading.column_names(pa.schema(known).empty_table())
        if planning is not None:
            collection = _some_blocks(collection, planning.seed)
        return collection.select_columns(names), reading

    def map(
        self, function: Function, partitions: tuple[ray.data.Dataset, Reading]
    ) -> ray.data.Dataset:
        """A dataset with one row of bytes for each block."""
        dataset, reading = partitions

        def read(block: pa.Table) -> pa.Table:
            return _row(function(block, reading, where="a block"))  # Ray does not number blocks

        return dataset.map_batches(read, batch_format="pyarrow", **self._remote)

    def reduce(self, merge: Merge, results: ray.data.Dataset) -> bytes | None:
        """The parts merged into 16 at most by the workers, and these into one here."""

        def join(block: pa.Table) -> pa.Table:
            return _row(merge(block["part"].to_pylist()))

        few = results.repartition(MERGERS)
        merged = few.map_batches(join, batch_size=None, batch_format="pyarrow")
        with raise_own_errors(ray.exceptions.RayError):
            return merge(row["part"] for row in merged.take_all())


def _row(part: bytes | None) -> pa.Table:
    return pa.table({"part": pa.array([part], pa.binary())})


def _some_blocks(dataset: ray.data.Dataset, seed: int) -> ray.data.Dataset:
    """Some blocks from all along a dataset that lies in memory; any other as it is."""
    if not isinstance(dataset, MaterializedDataset):
        return dataset
    blocks = dataset.to_arrow_refs()
    chosen = choose_partitions(len(blocks), seed)
    return ray.data.from_arrow_refs([blocks[i] for i in chosen.tolist()])


def _refuse_tensors(fields: dict[str, Any], reading: Reading) -> None:
    """Ray makes a column of tensors of an array of more than one dimension; vectors are read."""
    for name in reading.names or fields:
        kind = fields.get(name)
        if isinstance(kind, pa.BaseExtensionType) and len(getattr(kind, "shape", ())) > 1:
            msg = (
                f"column {name!r} holds tensors of shape {tuple(kind.shape)}, not numbers. Make "
                "each a vector: dataset.map_batches(lambda block: "
                f"{{{name!r}: block[{name!r}].reshape(len(block[{name!r}]), -1)}})."
            )
            raise DataError(msg)
