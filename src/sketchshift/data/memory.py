"""Which opener reads what lies in memory, without importing what is not needed.

The library an object comes from is told by its type: a NumPy user never waits for
pyarrow or narwhals to load.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sketchshift.data.arrays import as_array, open_array, open_sparse
from sketchshift.data.blocks import Source
from sketchshift.data.request import Request
from sketchshift.errors import DataError

__all__ = ["is_table", "open_in_memory"]

ENGINES = {"dask": "dask", "distributed": "dask", "pyspark": "spark", "ray": "ray"}


def open_in_memory(data: Any, request: Request) -> Source | None:
    """Open an array, sparse matrix, frame or Arrow object; ``None`` for anything else."""
    if isinstance(data, np.ndarray):
        return open_array(data, request)
    if _is_sparse(data):
        return open_sparse(data, request)
    library = type(data).__module__.partition(".")[0]
    if library in ENGINES:
        msg = (
            f"cannot read a {library} collection here: it lies on many machines. "
            f"Use plan, sketch or sketch_by of sketchshift.engines.{ENGINES[library]}."
        )
        raise DataError(msg)
    if library != "pyarrow" and _is_frame(data):
        from sketchshift.data.frames import open_frame

        return open_frame(data, request)
    if library == "pyarrow" or _speaks_arrow(data):
        from sketchshift.data.arrow import open_arrow

        return open_arrow(data, request)
    if hasattr(data, "__array__") and not isinstance(data, type):
        return open_array(as_array(data), request)
    return None


def is_table(item: Any) -> bool:
    """Whether an item of a list is a block of rows rather than one row."""
    return getattr(item, "ndim", None) == 2 or hasattr(type(item), "columns") or _speaks_arrow(item)


def _is_sparse(data: Any) -> bool:
    scipy_sparse = sys.modules.get("scipy.sparse")  # who has such a matrix has imported it
    return scipy_sparse is not None and bool(scipy_sparse.issparse(data))


def _is_frame(data: Any) -> bool:
    if not (_speaks_arrow(data) or hasattr(type(data), "columns") or hasattr(data, "to_frame")):
        return False
    from sketchshift.data.frames import is_frame

    return is_frame(data)


def _speaks_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
