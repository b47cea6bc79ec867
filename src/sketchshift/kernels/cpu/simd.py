"""Vector code that numba's own vectoriser does not find: building blocks in LLVM's language.

Each function here writes instructions for vectors as wide as the machine has. Every lane
does the same scalar operations in the same order, without any fast-math licence, so the
results do not depend on the width. The functions of ``sums`` and ``fit`` are made of these.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from sketchshift.kernels import contract
from sketchshift.kernels.contract import (
    COSINE,
    ROUND_TO_HALF_TURNS,
    ROUND_TO_INTEGERS,
    SINE,
)

__all__ = [
    "DOUBLE",
    "FLOAT",
    "INT32",
    "INT64",
    "LANES",
    "MAGIC_BITS",
    "array_data",
    "broadcast",
    "constant",
    "cos_sin",
    "fma",
    "intrinsic",
    "jit",
    "lane_sum",
    "lane_sums",
    "load",
    "power_of_half",
    "rest_and_sign",
    "rint",
    "store",
    "variable",
    "vector",
    "weighted_integers",
]

FLOAT, DOUBLE, INT32, INT64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)


def _lanes() -> int:
    """Float32 numbers in the widest vector of this machine."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx2") else 4


LANES = _lanes()

F = TypeVar("F", bound=Callable[..., Any])


def _digest_of_sources() -> str:
    """Of all files that machine code is made from: numba itself looks at one alone."""
    digest = hashlib.blake2b(digest_size=16)
    for path in [Path(contract.__file__), *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest_of_sources()


def jit(function: F) -> F:
    """Compile on first use, keep the machine code on disk, release the interpreter's lock.

    Where there is no folder to keep it in, it is compiled anew in each process.
    """
    try:
        compiled: Any = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
    index = compiled._cache._cache_file
    index._source_stamp = (index._source_stamp, _SOURCES)  # stale when any source has changed
    return cast(F, compiled)


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that writes its own instructions."""
    return numba.extending.intrinsic(function)


def vector(element: Any, lanes: int = LANES) -> Any:
    """The type of a vector of that many elements."""
    return ir.VectorType(element, lanes)


def constant(type_: Any, value: float) -> Any:
    """A vector with the same number in each lane."""
    return ir.Constant(type_, [ir.Constant(type_.element, value)] * type_.count)


def variable(builder: Any, value: Any) -> Any:
    """A place that holds a vector and may be stored to again; it becomes a register."""
    return cgutils.alloca_once_value(builder, value)  # type: ignore[no-untyped-call]


def broadcast(builder: Any, scalar: Any, lanes: int = LANES) -> Any:
    """A vector with the scalar in each lane."""
    type_ = vector(scalar.type, lanes)
    first = builder.insert_element(ir.Constant(type_, ir.Undefined), scalar, INT32(0))
    mask = ir.Constant(vector(INT32, lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(type_, ir.Undefined), mask)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """A fused multiply-add: a b + c, rounded once, on every machine."""
    bits = 32 if a.type.element == FLOAT else 64
    name = f"llvm.fma.v{a.type.count}f{bits}"
    signature = ir.FunctionType(a.type, [a.type] * 3)
    fma = cgutils.get_or_insert_function(builder.module, signature, name)  # type: ignore[no-untyped-call]
    return builder.call(fma, [a, b, c])


def rint(builder: Any, a: Any) -> Any:
    """Nearest integers, ties to even."""
    name = f"llvm.rint.v{a.type.count}f{32 if a.type.element == FLOAT else 64}"
    signature = ir.FunctionType(a.type, [a.type])
    function = cgutils.get_or_insert_function(builder.module, signature, name)  # type: ignore[no-untyped-call]
    return builder.call(function, [a])


def minimum(builder: Any, a: Any, b: Any) -> Any:
    """The lesser of two numbers, lane by lane."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def lane_sum(builder: Any, a: Any) -> Any:
    """The sum of the lanes, by halves."""
    while a.type.count > 1:
        half = a.type.count // 2
        low, high = (
            builder.shuffle_vector(
                a, a, ir.Constant(vector(INT32, half), list(range(first, first + half)))
            )
            for first in (0, half)
        )
        a = builder.fadd(low, high)
    return builder.extract_element(a, INT32(0))


def array_data(context: Any, builder: Any, type_: Any, value: Any) -> tuple[Any, list[Any]]:
    """Pointer to the first element of a numba array, and its shape."""
    array = context.make_array(type_)(context, builder, value)
    return array.data, [builder.extract_value(array.shape, i) for i in range(type_.ndim)]


def load(builder: Any, data: Any, index: Any, type_: Any) -> Any:
    """A vector read from ``data[index:]``."""
    pointer = builder.bitcast(builder.gep(data, [index]), type_.as_pointer())
    value = builder.load(pointer)
    value.align = 4 if type_.element in (FLOAT, INT32) else 8
    return value


def store(builder: Any, value: Any, data: Any, index: Any) -> None:
    """Write a vector to ``data[index:]``."""
    pointer = builder.bitcast(builder.gep(data, [index]), value.type.as_pointer())
    instruction = builder.store(value, pointer)
    instruction.align = 4 if value.type.element in (FLOAT, INT32) else 8


def _concatenate(builder: Any, parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    lanes = 2 * parts[0].type.count
    mask = ir.Constant(vector(INT32, lanes), list(range(lanes)))
    return builder.shuffle_vector(parts[0], parts[1], mask)


def rest_and_sign(builder: Any, parts: list[Any]) -> tuple[Any, Any]:
    """What is left of phases after whole half turns, in float32, and their parity as a sign bit.

    ``parts`` is one vector of float32 turns, or two of float64 with half the lanes each.
    Adding the magic number leaves the number of half turns in the last bits of the sum.
    """
    rests, signs = [], []
    for t in parts:
        is_float = t.type.element == FLOAT
        magic = constant(t.type, ROUND_TO_HALF_TURNS if is_float else 1.5 * 2.0**51)
        shifted = builder.fadd(t, magic)
        rest = builder.fsub(t, builder.fsub(shifted, magic))
        bits = builder.bitcast(shifted, vector(INT32 if is_float else INT64, t.type.count))
        to_int32, to_float = vector(INT32, t.type.count), vector(FLOAT, t.type.count)
        rests.append(rest if is_float else builder.fptrunc(rest, to_float))
        bits = bits if is_float else builder.trunc(bits, to_int32)
        signs.append(builder.shl(bits, constant(to_int32, 31)))
    return _concatenate(builder, rests), _concatenate(builder, signs)


def cos_sin(builder: Any, rest: Any) -> tuple[Any, Any]:
    """2**BITS times cosine and sine of ``rest`` turns, |rest| <= 1/4."""
    u = builder.fmul(rest, rest)
    values = []
    for coefficients in (COSINE, SINE):
        value = constant(rest.type, float(coefficients[-1]))
        for coefficient in coefficients[-2::-1]:
            value = fma(builder, value, u, constant(rest.type, float(coefficient)))
        values.append(value)
    return values[0], builder.fmul(values[1], rest)


def power_of_half(builder: Any, h: Any) -> Any:
    """2**-h in float32 for h >= 0, to 2e-7; never below 2**-60, which no sum sees."""
    h = minimum(builder, h, constant(h.type, 60.0))
    magic = constant(h.type, ROUND_TO_INTEGERS)
    shifted = builder.fadd(h, magic)
    rest = builder.fsub(builder.fsub(shifted, magic), h)  # in [-1/2, 1/2]
    value = constant(h.type, _POWER[-1])
    for coefficient in _POWER[-2::-1]:
        value = fma(builder, value, rest, constant(h.type, coefficient))
    to_int32 = vector(INT32, h.type.count)
    halvings = builder.shl(builder.bitcast(shifted, to_int32), constant(to_int32, 23))
    return builder.bitcast(builder.sub(builder.bitcast(value, to_int32), halvings), h.type)


_POWER = [math.log(2.0) ** n / math.factorial(n) for n in range(8)]
"""2**x by its series: the first term left out is below 6e-9 for |x| <= 1/2."""


def weighted_integers(builder: Any, parts: list[Any], weights: Any) -> tuple[Any, Any]:
    """Bit patterns whose excess over that of ROUND_TO_INTEGERS is what a row adds.

    The sign of the half turns goes into the weight; the last multiply-add rounds to
    integers. Left as bit patterns, so that one addition does both conversions.
    """
    rest, sign = rest_and_sign(builder, parts)
    signed = builder.xor(builder.bitcast(weights, sign.type), sign)
    signed = builder.bitcast(signed, rest.type)
    magic = constant(rest.type, ROUND_TO_INTEGERS)
    cosine, sine = (
        builder.bitcast(fma(builder, wave, signed, magic), sign.type)
        for wave in cos_sin(builder, rest)
    )
    return cosine, sine


@intrinsic
def lane_sums(typing_context: Any, sums: Any, n: Any, out: Any) -> Any:
    """Fill in out[i] with the sum of sums[i * LANES : (i + 1) * LANES], i < n."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x, _), (y, _) = (
            array_data(context, builder, signature.args[i], arguments[i]) for i in (0, 2)
        )
        with cgutils.for_range(builder, arguments[1]) as loop:
            at = builder.mul(loop.index, INT64(LANES))
            total = lane_sum(builder, load(builder, x, at, vector(FLOAT)))
            builder.store(total, builder.gep(y, [loop.index]))
        return context.get_dummy_value()

    return types.void(sums, n, out), generate


MAGIC_BITS = int(np.float32(ROUND_TO_INTEGERS).view(np.int32))
"""What an addition of weight 0 leaves in an int32 register."""
