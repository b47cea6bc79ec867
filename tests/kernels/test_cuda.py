"""The kernel for GPUs against the definition, bit for bit, where there is a GPU."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.kernels import Centers
from sketchshift.kernels.reference import KERNEL as REFERENCE

cupy = pytest.importorskip("cupy", reason="needs CuPy and a GPU")
if not cupy.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

from sketchshift.kernels.cuda.kernel import KERNEL as CUDA  # noqa: E402
from sketchshift.kernels.cuda.kernel import (  # noqa: E402
    CudaDense,
    CudaStructured,
    moments,
)

RNG = np.random.default_rng(0)


def rows_and_weights(n: int, d: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    weights = RNG.uniform(size=n).astype(np.float32)
    weights[: n // 3], weights[n // 2 :][:5] = 1.0, 0.0
    return RNG.normal(size=(n, d)).astype(dtype), weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 16, 17, 40, 100])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (63, 127), (64, 128), (65, 129), (5000, 300)])
def test_dense_sums_are_those_of_the_definition(n, d, m, dtype):
    rows, weights = rows_and_weights(n, d, dtype)
    turns = (RNG.normal(size=(d, m)) * 10.0 ** RNG.uniform(-2, 3, size=m)).astype(np.float32)
    expected, found = np.full((2, 2, m), 7)

    REFERENCE.dense(turns)(rows, weights, expected)
    CudaDense(turns)(rows, weights, found)

    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("size", "d"), [(64, 64), (128, 70), (256, 256), (1024, 784), (4096, 4096)]
)
def test_structured_sums_are_those_of_the_definition(size, d, dtype):
    rows, weights = rows_and_weights(300, d, dtype)
    signs = RNG.choice(np.array([-1, 1], dtype=np.float32), size=(3, 3, size))
    radii = RNG.uniform(size=2 * size + 5).astype(np.float32) / size
    expected, found = np.zeros((2, 2, len(radii)), dtype=np.int64)

    REFERENCE.structured(signs, radii)(rows, weights, expected)
    CudaStructured(signs, radii)(rows, weights, found)

    np.testing.assert_array_equal(found, expected)


def test_many_rows_of_weight_one_do_not_overflow():
    """The largest integers there are, for more rows than an int32 holds of them."""
    n = 1_000_000
    found = np.zeros((2, 3), dtype=np.int64)

    CudaDense(np.zeros((2, 3), dtype=np.float32))(
        np.ones((n, 2), dtype=np.float32), np.ones(n, dtype=np.float32), found
    )

    np.testing.assert_array_equal(found, [[n << 22] * 3, [0] * 3])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1000, 2), (5000, 10), (333, 64), (50, 2048)])
def test_moments_are_those_of_the_definition(n, d, full):
    rows, weights = rows_and_weights(n, d, np.float64)
    rows *= 10.0 ** RNG.uniform(-6, 6, size=(n, 1))
    full = full and d <= 64
    for factors in (None, weights.astype(np.float64), 64.0 * weights.astype(np.float64)):
        expected = REFERENCE.moments(rows, factors, 2.0**8, full=full)

        np.testing.assert_array_equal(moments(rows, factors, 2.0**8, full=full), expected)


@pytest.mark.parametrize("structured", [False, True])
def test_a_sketch_has_the_same_bytes_with_and_without_a_gpu(structured):
    X = RNG.normal(size=(200_000, 64)) * 3 + 1
    spec = dataclasses.replace(ss.plan(X[:5000], n_clusters=3), structured=structured)
    weights = RNG.uniform(0, 3, size=len(X))

    for options in ({}, {"sample_weight": weights}, {"n_threads": 3}):
        on_gpu = ss.sketch(X, spec, kernel="cuda", **options)
        assert on_gpu == ss.sketch(X, spec, kernel="cpu", **options)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_sketch_of_many_columns_has_the_same_bytes_with_and_without_a_gpu(metric):
    X = (
        RNG.normal(size=(100_000, 96))
        + 3.0 * RNG.normal(size=(20, 96))[RNG.integers(0, 20, 100_000)]
    )
    spec = dataclasses.replace(ss.plan(X[:5000], n_clusters=20), metric=metric)
    X[7] *= 1e3  # in a shell
    X[8] *= 1e12  # beyond all reach
    weights = RNG.uniform(0, 3, size=len(X))

    for options in ({}, {"sample_weight": weights}, {"n_threads": 3}):
        on_gpu = ss.sketch(X, spec, kernel="cuda", **options)
        assert on_gpu == ss.sketch(X, spec, kernel="cpu", **options)


def test_very_wide_rows_are_summed_on_the_processor():
    X = RNG.normal(size=(300, 5000))
    spec = ss.SketchSpec(5000, 100, bandwidth=80.0, structured=True)

    assert ss.sketch(X, spec, kernel="cuda") == ss.sketch(X, spec, kernel="cpu")


@pytest.mark.parametrize("probes", [1, 2, 3])
@pytest.mark.parametrize(
    ("n", "d", "J"), [(1, 1, 1), (1000, 3, 40), (3000, 10, 300), (200, 100, 64)]
)
def test_cells_are_those_of_the_definition(n, d, J, probes):
    rows, weights = rows_and_weights(n, d, np.float64)
    rows[::3] = np.rint(rows[::3])
    centers = np.rint(2 * RNG.normal(size=(J, d))).astype(np.float32) / 2
    starts = np.unique(np.concatenate([[0, J], RNG.integers(0, J, size=9)])).astype(np.int64)
    pairs = itertools.pairwise(starts)
    middles = np.array([centers[a:b].mean(axis=0) for a, b in pairs], dtype=np.float32)
    grouped = Centers(centers, starts, middles, probes, 0.25)
    axes = np.linalg.qr(RNG.normal(size=(d, min(d, 5))))[0].T.astype(np.float32)
    near = dataclasses.replace(grouped, limit=0.5 * d)
    along = [dataclasses.replace(of, axes=axes) for of in (Centers.in_one_group(centers), near)]
    for of in (Centers.in_one_group(centers), grouped, near, *along):
        coordinates = REFERENCE.project(rows, axes)
        np.testing.assert_array_equal(CUDA.project(cupy.asarray(rows), axes).get(), coordinates)
        for factors in (None, weights.astype(np.float64)):
            expected, found = np.full((2, J, of.width), 7)
            left = REFERENCE.cells(of).add(rows, coordinates, factors, expected)
            out = CUDA.cells(of).add(rows, coordinates, factors, found)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(() if out is None else out, () if left is None else left)
