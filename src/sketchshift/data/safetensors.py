"""Tensors in ``.safetensors`` files: one of two dimensions, mapped a window at a time.

A file is eight bytes that say how long its header is, the header in JSON, and the numbers. The
header names the tensors, with the type, shape and place of each. All of it is checked before a
number is read: the places must follow each other without a gap up to the end of the file, as the
format demands, so that no file can pass for another.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from sketchshift._paths import Place
from sketchshift._text import NAMES_SHOWN, listed
from sketchshift._typing import RealArray
from sketchshift.data.memory import check_shape, native
from sketchshift.data.npy import MappedArray, open_mapped
from sketchshift.data.source import Request, Source, report_damage
from sketchshift.errors import ChooseColumns, DataError

__all__ = ["open_safetensors"]

LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000  # bytes, as in the format's own reader
DTYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "BF16": "<u2",  # the upper half of a float32
}


@dataclass(frozen=True)
class _Tensor:
    """What a header says of a tensor; ``start`` and ``stop`` count from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.name!r} ({self.dtype}, {' x '.join(map(str, self.shape)) or 'one number'})"


def open_safetensors(path: Place, request: Request) -> Source:
    """Read a ``.safetensors`` file.

    Parameters
    ----------
    path : Path or RemotePath
        With a tensor of two dimensions, of floats (F16, BF16, F32, F64), integers or booleans.
    request : Request
        Its only column is the name of the tensor, where there are several.

    Returns
    -------
    source : Source
        Blocks are read-only maps of their own rows; of a store, their bytes. BF16 becomes
        float32.
    """
    where = str(path)
    tensors, offset = _read_header(path)
    tensor = _choose_tensor(tensors, request, where)
    replace(request, columns=None).refuse_names(where)
    check_shape(tensor.shape, f"tensor {tensor.name!r} of {where}")
    convert = _widen if tensor.dtype == "BF16" else native
    dtype = np.dtype(DTYPES[tensor.dtype])
    array = MappedArray(path, dtype, tensor.shape, offset + tensor.start, convert)
    return replace(open_mapped(array, request), vector=tensor.name)


def _widen(halves: RealArray) -> RealArray:
    """Numbers in bfloat16 as float32, whose upper half they are."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _choose_tensor(tensors: list[_Tensor], request: Request, where: str) -> _Tensor:
    """The tensor asked for, or the only one that has rows."""
    if request.columns is not None and request.names_needed:
        return _find_tensor(tensors, request.columns, where)
    tables = [t for t in tensors if len(t.shape) == 2 and t.dtype in DTYPES]
    if len(tables) == 1:
        return tables[0]
    if not tables:
        found = _list_tensors(tensors) or "none at all"
        msg = f"{where} has no tensor of numbers with two dimensions. It has {found}."
        raise DataError(msg)
    fact = f"{where} has {len(tables)} tensors with rows: {_list_tensors(tables)}. Choose one with "
    raise DataError(fact, ChooseColumns((tables[0].name,)), ".")


def _list_tensors(tensors: list[_Tensor]) -> str:
    more = f" and {len(tensors) - NAMES_SHOWN} more" if len(tensors) > NAMES_SHOWN else ""
    return ", ".join(map(str, tensors[:NAMES_SHOWN])) + more


def _find_tensor(tensors: list[_Tensor], names: tuple[str, ...], where: str) -> _Tensor:
    if len(names) > 1:
        fact = f"cannot read {listed(names)} of {where} as one: choose one tensor, with "
        raise DataError(fact, ChooseColumns(names[:1]), ".")
    found = next((tensor for tensor in tensors if tensor.name == names[0]), None)
    if found is None:
        there = listed([tensor.name for tensor in tensors]) or "none at all"
        raise DataError(f"{where} has no tensor {names[0]!r}. It has {there}.")
    if found.dtype not in DTYPES:
        msg = (
            f"cannot read tensor {found} of {where} as real numbers. Known are {', '.join(DTYPES)}."
        )
        raise DataError(msg)
    return found


def _read_header(path: Place) -> tuple[list[_Tensor], int]:
    """The tensors in the order of their places, and where the first place begins."""
    with report_damage(str(path), ValueError, RecursionError), path.open("rb") as file:
        n_bytes = path.stat().st_size
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if not 2 <= length <= min(LONGEST_HEADER, n_bytes - LENGTH_BYTES):
            raise ValueError(f"its header cannot have {length} bytes")
        text = file.read(length).decode()
        if not text.startswith("{"):
            raise ValueError("its header is no JSON object")
        header = json.loads(text, object_pairs_hook=_refuse_repeats)
        notes = header.pop("__metadata__", {})
        if not isinstance(notes, dict) or not all(isinstance(v, str) for v in notes.values()):
            raise ValueError("its metadata are no texts")
        tensors = sorted(
            (_read_entry(name, entry) for name, entry in header.items()),
            key=lambda tensor: (tensor.start, tensor.stop),
        )
        _check_places(tensors, n_bytes - LENGTH_BYTES - length)
    return tensors, LENGTH_BYTES + length


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("its header has a name twice")
    return dict(pairs)


def _read_entry(name: str, entry: Any) -> _Tensor:
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [start, stop]}:
            numbers = [*shape, start, stop]
        case _:
            raise ValueError(f"tensor {name!r} lacks its dtype, shape or data_offsets")
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise ValueError(f"tensor {name!r} has a shape or place that is no number")
    if dtype in DTYPES and stop - start != prod(shape) * np.dtype(DTYPES[dtype]).itemsize:
        raise ValueError(f"tensor {name!r} has another size than its shape says")
    return _Tensor(name, dtype, tuple(shape), start, stop)


def _check_places(tensors: list[_Tensor], n_bytes: int) -> None:
    """Refuse gaps, overlaps, and bytes that no tensor has, or that the file does not have."""
    edges = [(0, 0), *((tensor.start, tensor.stop) for tensor in tensors), (n_bytes, n_bytes)]
    if any(before[1] != after[0] or after[0] > after[1] for before, after in pairwise(edges)):
        raise ValueError("its tensors do not fill the file one after the other")
