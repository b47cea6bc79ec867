"""The arithmetic of the GPU's source, compiled for the processor: the integers of the definition.

What needs a GPU itself is in ``test_cuda.py``.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from sketchshift.kernels.cuda import SOURCE, definitions
from sketchshift.kernels.reference import integer_waves

ON_HOST = r"""
#include <cmath>
#include <cstring>
#define HOST
#define __device__
#define __forceinline__ inline
template <typename To, typename From> To bits_of(From x) {
    To y;
    std::memcpy(&y, &x, sizeof x);
    return y;
}
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __double2float_rn(double a) { return (float)a; }
inline unsigned __float_as_uint(float a) { return bits_of<unsigned>(a); }
inline float __uint_as_float(unsigned a) { return bits_of<float>(a); }
inline long long __double_as_longlong(double a) { return bits_of<long long>(a); }
#include SOURCE
extern "C" void waves(const REAL *t, const float *w, long long n, int64 *cosine, int64 *sine) {
    for (long long i = 0; i < n; ++i) {
        unsigned c = 0, s = 0;
        add_waves(t[i], w[i], c, s);
        cosine[i] = widened(c, 1);
        sine[i] = widened(s, 1);
    }
}
"""


@pytest.fixture(scope="module", params=["float", "double"])
def on_host(request, tmp_path_factory):
    """The source's function for one phase, and the type of phases."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "host.cpp").write_text(ON_HOST, encoding="utf-8")
    macros = [f"-D{key}={text}" for key, text in definitions(request.param).items()]
    command = [compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", *macros]
    command += [f'-DSOURCE="{SOURCE}"', "-Wno-unknown-pragmas", "-o", "host.so", "host.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "host.so")).waves
    return function, np.float32 if request.param == "float" else np.float64


def test_a_phase_adds_the_integers_of_the_definition(on_host):
    function, dtype = on_host
    rng = np.random.default_rng(0)
    quarters = np.arange(-4000, 4000) / 4  # ties between half turns, zeros and ones of both waves
    t = np.concatenate(
        [rng.uniform(-1, 1, 200_000), 2.0 ** rng.uniform(-20, 20, 200_000), quarters]
    ).astype(dtype)
    weights = np.concatenate([[0.0, 1.0], rng.uniform(0, 1, len(t) - 2)]).astype(np.float32)
    found = np.empty((2, len(t)), dtype=np.int64)

    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (t, weights, *found)]
    function(*pointers[:2], ctypes.c_longlong(len(t)), *pointers[2:])

    np.testing.assert_array_equal(found, integer_waves(t, weights))
