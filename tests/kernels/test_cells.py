"""Cells: the nearest center, and what a row adds there, to the bit in every kernel."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.kernels import (
    BITS,
    CELL_BITS,
    CELL_REACH,
    CELL_WEIGHT_BITS,
    SQUARE_BITS,
    Centers,
    select_kernel,
)
from sketchshift.kernels.cpu import CpuKernel
from sketchshift.kernels.cpu.library import variants

KERNELS = {"reference": select_kernel("reference")} | {
    name: CpuKernel(variant) for name, variant in variants().items()
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def grouped(centers, starts, probes=1, unit=1.0):
    """Centers in groups with the mean of each as its middle."""
    starts = np.asarray(starts, dtype=np.int64)
    pairs = itertools.pairwise(starts)
    middles = np.array([centers[a:b].mean(axis=0) for a, b in pairs], dtype=np.float32)
    return Centers(centers, starts, middles, probes, unit)


def add(kernel, centers, rows, factors=None):
    totals = np.zeros((len(centers.centers), centers.width), dtype=np.int64)
    along = rows if centers.axes is None else kernel.project(rows, centers.axes)
    left = kernel.cells(centers).add(rows, along, factors, totals)
    return totals if left is None else np.concatenate([totals.ravel(), *left])


def case(seed):
    """Random centers, rows and factors; some on a coarse grid, so that distances are equal."""
    rng = np.random.default_rng(seed)
    d, J, n = (int(rng.integers(low, high)) for low, high in ((1, 40), (1, 150), (0, 40)))
    centers = rng.normal(size=(J, d)) * 10.0 ** rng.uniform(-3, 2)
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 2)
    if rng.random() < 0.4:
        centers, rows = np.rint(2 * centers) / 2, np.rint(2 * rows) / 2
    starts = np.unique(np.concatenate([[0, J], rng.integers(0, J, size=rng.integers(0, 12))]))
    factors = rng.random(n) if rng.random() < 0.5 else None
    probes, unit = int(rng.integers(1, 4)), 2.0 ** float(rng.integers(-1, 4))
    of = grouped(centers.astype(np.float32), starts, probes, unit)
    nearest = KERNELS["reference"].cells(of).nearest(rows.astype(np.float32))[1]
    if n and rng.random() < 0.5:  # also exactly at the distance of a row
        of = replace(of, limit=float(rng.choice(nearest)))
    if rng.random() < 0.5:
        axes = np.linalg.qr(rng.normal(size=(d, int(rng.integers(1, d + 1)))))[0].T
        of = replace(of, axes=axes.astype(np.float32))
    return of, rows, factors


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "reference"])
def test_every_kernel_adds_the_integers_of_the_definition(name, seed):
    centers, rows, factors = case(seed)
    kernel, reference = KERNELS[name], KERNELS["reference"]
    narrow = rows.astype(np.float32)

    np.testing.assert_array_equal(
        add(kernel, centers, rows, factors), add(reference, centers, rows, factors)
    )
    for found, expected in zip(
        kernel.cells(centers).nearest(narrow), reference.cells(centers).nearest(narrow), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        kernel.distances(centers.centers)(narrow), reference.distances(centers.centers)(narrow)
    )


def test_a_row_adds_its_offset_and_its_square_as_python_computes_them(kernel):
    rng = np.random.default_rng(0)
    centers = Centers.in_one_group(rng.normal(size=(7, 3)).astype(np.float32), unit=0.5)
    rows = rng.normal(size=(200, 3)) * 100.0
    expected = np.zeros((7, 7), dtype=object)
    for row in rows:
        j = int(np.argmin([math.dist(row, c) for c in centers.centers.astype(float)]))
        offsets = [
            round((x - float(c)) * 2**CELL_BITS / 0.5)
            for x, c in zip(row, centers.centers[j], strict=True)
        ]
        expected[j] += np.array([1 << CELL_WEIGHT_BITS, *offsets, *(q * q for q in offsets)])

    found = add(kernel, centers, rows).astype(object)

    squares = found[:, 4:7] + found[:, 7:] * 2**SQUARE_BITS
    np.testing.assert_array_equal(np.hstack([found[:, :4], squares]), expected)


def test_a_row_adds_its_length_and_coordinates_as_python_computes_them(kernel):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 40)).astype(np.float32)
    axes = np.linalg.qr(rng.normal(size=(40, 3)))[0].T.astype(np.float32)
    centers = replace(Centers.in_one_group(points), limit=400.0, axes=axes)
    rows, K = rng.normal(size=(100, 40)), centers.per_unit
    expected = np.zeros((5, 2 + 40 + 3), dtype=object)
    for row in rows:
        j = int(np.argmin([math.dist(row, c) for c in points.astype(float)]))
        offsets = [round((x - float(c)) * K) for x, c in zip(row, points[j], strict=True)]
        along = [round(float((row - points[j]) @ axis.astype(float)) * K) for axis in axes]
        squares = [sum(q * q for q in offsets), *(q * q for q in along)]
        expected[j] += np.array([1 << BITS, *offsets, *squares])

    found = add(kernel, centers, rows)

    assert 2**14 / math.sqrt(400.0) <= K <= 2**15 / math.sqrt(400.0)  # all fits 16 bits
    np.testing.assert_array_equal(found[:, :42], expected[:, :42])
    np.testing.assert_allclose(
        found[:, 42:].astype(float), expected[:, 42:].astype(float), rtol=1e-3
    )


def test_rows_beyond_the_limit_are_left_out_and_named_with_their_centers(kernel):
    centers = replace(Centers.in_one_group(np.array([[0], [10]], dtype=np.float32)), limit=4.0)
    rows, factors = np.array([[1.0], [3.0], [8.0], [7.9], [12.5]]), np.linspace(0.1, 0.9, 5)
    totals, inside = np.zeros((2, 2, 4), dtype=np.int64)

    left, nearest = kernel.cells(centers).add(rows, rows, factors, totals)
    some = rows[[0, 2]]
    kernel.cells(centers).add(some, some, factors[[0, 2]], inside)

    assert (left.tolist(), nearest.tolist()) == ([1, 3, 4], [0, 1, 1])
    np.testing.assert_array_equal(totals, inside)


def test_of_equal_distances_the_first_center_counts(kernel):
    """Far apart in the panels and in their lanes, in one group and in several."""
    for J in (2, 33, 100):
        centers = np.zeros((J, 2), dtype=np.float32)
        for of in (Centers.in_one_group(centers), grouped(centers, [0, J // 2, J], probes=2)):
            labels, squares = kernel.cells(of).nearest(np.ones((5, 2), dtype=np.float32))
            assert labels.tolist() == [0] * 5
            assert squares.tolist() == [2.0] * 5


def test_a_row_looks_into_as_many_groups_as_it_may(kernel):
    """The nearest center is in the group whose middle is the second nearest."""
    centers = np.array([[0.0], [10.0], [4.9], [20.0]], dtype=np.float32)
    row = np.array([[5.1]], dtype=np.float32)
    one, two = (grouped(centers, [0, 2, 4], probes=probes) for probes in (1, 2))

    assert kernel.cells(one).nearest(row)[0].tolist() == [1]
    assert kernel.cells(two).nearest(row)[0].tolist() == [2]


def test_squares_at_the_end_of_the_reach_do_not_overflow(kernel):
    end = CELL_REACH * (1 - 2.0**-10)
    centers = Centers.in_one_group(np.array([[-end]], dtype=np.float32))
    rows = np.full((3, 1), end)
    offset = round((end + float(np.float32(end))) * 2**CELL_BITS)

    weight, total, low, high = add(kernel, centers, rows)[0].tolist()

    assert (weight, total) == (3 << CELL_WEIGHT_BITS, 3 * offset)
    assert low + (high << SQUARE_BITS) == 3 * offset**2


def test_whole_factors_are_as_no_factors(kernel):
    centers, rows, _ = case(3)

    np.testing.assert_array_equal(
        add(kernel, centers, rows, np.ones(len(rows))), add(kernel, centers, rows)
    )


def test_rows_in_any_order_and_in_parts_add_up_to_the_same(kernel):
    centers, rows, factors = case(11)
    factors = np.random.default_rng(0).random(len(rows)) if factors is None else factors
    order = np.random.default_rng(1).permutation(len(rows))
    parts = [add(kernel, centers, rows[part], factors[part]) for part in np.array_split(order, 3)]

    np.testing.assert_array_equal(sum(parts), add(kernel, centers, rows, factors))
