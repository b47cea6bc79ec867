"""Arrays in memory: NumPy (memory maps and masked arrays too) and SciPy sparse.

Blocks are views; only masked, byte-swapped and sparse rows are copied, a block at a
time. Knows no names: arrays have none.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sketchshift._typing import RealArray
from sketchshift._validation import is_short_float, unmasked, widen
from sketchshift.data.sample import across_slices
from sketchshift.data.source import Access, Request, Source, Take, cut_blocks
from sketchshift.errors import DataError

__all__ = [
    "as_array",
    "check_dtype",
    "check_shape",
    "native",
    "open_array",
    "open_sparse",
    "open_tensor",
]

LARGE_MAP = 2**32  # bytes of a memory map from which on a pass over it is costly

ADVICE = {
    "c": "Pass real and imaginary parts as columns: np.hstack([X.real, X.imag]).",
    "O": "Convert it first: X.astype(float).",
    "M": "Convert dates to numbers first: X.astype('int64').",
    "m": "Convert durations to numbers first: X.astype('int64').",
    "V": "Convert it first: numpy.lib.recfunctions.structured_to_unstructured(X).",
}


def open_array(array: RealArray, request: Request, *, source: str = "array") -> Source:
    """Read a NumPy array in views of its rows.

    Parameters
    ----------
    array : array of shape (N, d)
        Any real dtype. Masked entries become NaN.
    request : Request
        Columns cannot be asked for by name.
    source : str
        Name for messages.

    Returns
    -------
    source : Source
        Blocks share the memory of ``array``; nothing else is allocated.
    """
    n, d = check_shape(array.shape, source)
    check_dtype(array.dtype, source)
    request.refuse_names(f"the {source}")
    given = request.weights_of(n, f"the {source}")
    weights = None if given is None else given.__getitem__
    take, keys = _rows_of(array), request.labels_of(n, f"the {source}")
    read = partial(
        cut_blocks, take, n, request.rows_for(d), weights=weights, keys=keys, source=source
    )
    if isinstance(array, np.memmap) and array.nbytes > LARGE_MAP:
        across = across_slices(take, n, weights=weights, source=source)
        return Source(None, d, n, read, Access.DISK, array.nbytes, across)
    return Source(None, d, n, read)


def open_tensor(tensor: Any, request: Request) -> Source:
    """Read a tensor of PyTorch in blocks; no copy is made of the whole.

    Parameters
    ----------
    tensor : torch.Tensor of shape (N, d)
        On any device, with or without gradients. Floats that NumPy does not know, such as
        bfloat16, become float32.
    request : Request
        Columns cannot be asked for by name.

    Returns
    -------
    source : Source
        Blocks share the memory of a tensor that NumPy can read.
    """
    n, d = check_shape(tuple(tensor.shape), "tensor")
    request.refuse_names("the tensor")
    given = request.weights_of(n, "the tensor")

    def take(span: slice) -> RealArray:
        part = tensor[span].detach().cpu()
        try:
            values: RealArray = part.numpy()
        except TypeError:  # says NumPy has no such type
            values = part.float().numpy()
        return values

    check_dtype(take(slice(0, 0)).dtype, "tensor")
    read = partial(
        cut_blocks,
        take,
        n,
        request.rows_for(d),
        weights=None if given is None else given.__getitem__,
        keys=request.labels_of(n, "the tensor"),
        source="tensor",
    )
    return Source(None, d, n, read)


def open_sparse(matrix: Any, request: Request) -> Source:
    """Read a SciPy sparse matrix or array, made dense one block at a time.

    Parameters
    ----------
    matrix : sparse matrix or array of shape (N, d)
        Formats other than CSR are converted once, which takes as much memory as the
        stored entries.
    request : Request
        Columns cannot be asked for by name.

    Returns
    -------
    source : Source
        Each block is a new dense array.
    """
    n, d = check_shape(matrix.shape, "sparse matrix")
    check_dtype(matrix.dtype, "sparse matrix")
    request.refuse_names("the sparse matrix")
    weights = request.weights_of(n, "the sparse matrix")
    csr = matrix.tocsr()
    read = partial(
        cut_blocks,
        lambda span: csr[span].toarray(),
        n,
        request.rows_for(d),
        weights=None if weights is None else weights.__getitem__,
        keys=request.labels_of(n, "the sparse matrix"),
        source="sparse matrix",
    )
    return Source(None, d, n, read)


def as_array(data: Any) -> RealArray:
    """An array from nested lists, or from anything with ``__array__``."""
    try:
        array: RealArray = np.asanyarray(unmasked(data))
    except Exception as cause:  # foreign ``__array__`` methods raise what they like
        msg = (
            f"cannot make an array of numbers from {type(data).__name__}: {cause} "
            "Pass rows of equal length, or an array of shape (rows, columns)."
        )
        raise DataError(msg) from cause
    return array


def check_shape(shape: tuple[int, ...], what: str) -> tuple[int, int]:
    """Rows and columns, or an error that says how to get two dimensions."""
    if len(shape) == 2 and shape[1] > 0:
        return shape[0], shape[1]
    if len(shape) == 2:
        fact, advice = "it has no columns", "Pass at least one column."
    elif len(shape) == 1:
        fact = "it has one dimension, not two"
        advice = "Use X.reshape(-1, 1) for one column, or X.reshape(1, -1) for one row."
    elif len(shape) == 0:
        fact, advice = "it is a single value", "Pass an array of shape (rows, columns)."
    else:
        fact = f"it has {len(shape)} dimensions, not two"
        advice = "Use X.reshape(len(X), -1) to make each item a row."
    msg = f"cannot read {what} of shape {shape} as rows: {fact}. {advice}"
    raise DataError(msg)


def check_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Refuse every dtype that does not hold real numbers."""
    if dtype.kind not in "biuf" and not is_short_float(dtype):
        advice = ADVICE.get(dtype.kind, "Replace text by numbers first.")
        if dtype.kind == "V" and dtype.names is None:
            advice = "Its bytes say no type: np.save forgets bfloat16. Save X.astype(np.float32)."
        msg = f"cannot read {what} of dtype {dtype} as real numbers. {advice}"
        raise DataError(msg)


def native(values: RealArray) -> RealArray:
    """The same values in the byte order of this machine; a view where it is that already.

    Kinds of floats that NumPy does not know itself, such as bfloat16, become float32.
    """
    values = widen(values)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _rows_of(array: RealArray) -> Take:
    if isinstance(array, np.ma.MaskedArray):
        return lambda span: native(unmasked(array[span]))
    plain = np.asarray(array)
    return lambda span: native(plain[span])
