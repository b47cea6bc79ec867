"""The kernel for GPUs against the definition, bit for bit, where there is a GPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.kernels import Runs, select_kernel


@pytest.fixture(scope="module")
def cuda():
    cupy = pytest.importorskip("cupy", reason="needs CuPy and a GPU")
    if not cupy.is_available():
        pytest.skip("needs a GPU")
    return select_kernel("cuda")


def test_random_comparisons_with_the_reference_find_no_difference(compare, cuda):
    """As for each instruction set of a processor: sums, moments, cells and whole sketches.

    Subnormal numbers, and groups of cells that are equally near, are among what is drawn.
    """
    assert not [
        (name, found) for name, _, found in compare({"cuda": cuda}, seed=1, n=1400) if found
    ]


def test_many_rows_of_weight_one_do_not_overflow(cuda):
    """The largest integers there are, for more rows than an int32 holds of them."""
    n = 1_000_000
    totals = np.zeros((2, 3), dtype=np.int64)
    rows, turns = np.ones((n, 2), dtype=np.float32), np.zeros((2, 3), dtype=np.float32)

    cuda.dense(turns)(rows, np.ones(n, dtype=np.float32), totals)

    np.testing.assert_array_equal(totals, [[n << 22] * 3, [0] * 3])


def test_moments_of_many_columns_are_those_of_the_definition(cuda, reference):
    """As many as fit the memory of a block; limbs need not be the same, only their sums."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 2048)) * 10.0 ** rng.uniform(-6, 6, size=(50, 1))
    for factors in (None, 64.0 * rng.random(50)):
        both = np.zeros((2, 1, 3, 3 * 2048), dtype=np.int64)
        for limbs, kernel in zip(both, (cuda, reference), strict=True):
            kernel.moments(rows, factors, 2.0**8, limbs, Runs.one(50), full=False)
        found, expected = ([1, 2**20, 2**40] @ limbs[0].astype(object) for limbs in both)
        assert found.tolist() == expected.tolist()


KINDS = {
    "dense": (64, {"axes": None}),
    "structured": (64, {"axes": None, "structured": True}),
    "axes": (96, {"metric": "euclidean"}),
    "cosine": (96, {"metric": "cosine"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sketch_has_the_same_bytes_with_and_without_a_gpu(cuda, kind):
    d, changes = KINDS[kind]
    rng = np.random.default_rng(0)
    places = 3.0 * rng.normal(size=(20, d))
    X = rng.normal(size=(100_000, d)) + places[rng.integers(0, 20, 100_000)]
    spec = dataclasses.replace(ss.plan(X[:5000], n_clusters=20), **changes)
    X[7] *= 1e3  # in a shell
    X[8] *= 1e12  # beyond all reach

    for options in ({}, {"sample_weight": rng.uniform(0, 3, size=len(X))}, {"n_threads": 3}):
        on_gpu = ss.sketch(X, spec, kernel="cuda", **options)
        assert on_gpu == ss.sketch(X, spec, kernel="cpu", **options)


@pytest.mark.parametrize("d", [4096, 5000])
def test_very_wide_rows_have_the_same_bytes(cuda, d):
    """Beyond 4096 columns they are summed on the processor."""
    X = np.random.default_rng(0).normal(size=(300, d))
    spec = ss.SketchSpec(d, 9000, bandwidth=80.0, structured=True)

    assert ss.sketch(X, spec, kernel="cuda") == ss.sketch(X, spec, kernel="cpu")
