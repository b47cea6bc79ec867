"""Cells: the nearest center, and what a row adds there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sketchshift.kernels import (
    BITS,
    CELL_BITS,
    CELL_REACH,
    CELL_WEIGHT_BITS,
    SQUARE_BITS,
    Centers,
)


def in_groups(points, starts, probes):
    """Centers in groups with the mean of each as its middle."""
    points = np.array(points, dtype=np.float32)
    middles = np.array([group.mean(axis=0) for group in np.split(points, starts[1:-1])])
    return Centers(points, np.array(starts), middles.astype(np.float32), probes)


def add(kernel, centers, rows, factors=None):
    totals = np.zeros((len(centers.centers), centers.width), dtype=np.int64)
    along = rows if centers.axes is None else kernel.project(rows, centers.axes)
    assert kernel.cells(centers).add(rows, along, factors, totals) is None
    return totals


def totals_by_hand(centers, rows, factors):
    """As the contract has it, in Python's integers; squares in one number each."""
    points, K, axes = centers.centers.astype(float), centers.per_unit, centers.axes
    totals = np.zeros((len(points), centers.width), dtype=object)
    for row, f in zip(rows, factors, strict=True):
        j = int(np.argmin([math.dist(row, point) for point in points]))
        e, root = (row - points[j]).tolist(), math.sqrt(f)
        squares = [round((root * x) * K) ** 2 for x in e]
        if axes is not None:
            along = (axes.astype(float) @ e).tolist()
            squares = [sum(squares), *(round(root * y * K) ** 2 for y in along)]
        one = 2**CELL_WEIGHT_BITS if axes is None else 2**BITS
        added = [round(f * one), *(round((f * x) * K) for x in e), *squares]
        totals[j, : len(added)] += np.array(added, dtype=object)
    return totals


def test_a_row_adds_its_offset_and_its_square_as_python_computes_them(kernel):
    rng = np.random.default_rng(0)
    centers = Centers.in_one_group(rng.normal(size=(7, 3)).astype(np.float32), unit=0.5)
    rows = rng.normal(size=(200, 3)) * 100.0
    for factors in (rng.random(200), np.ones(200)):
        totals = add(kernel, centers, rows, factors).astype(object)

        totals[:, 4:7] += totals[:, 7:] * 2**SQUARE_BITS
        expected = totals_by_hand(centers, rows, factors)
        np.testing.assert_array_equal(totals[:, :7], expected[:, :7])

    np.testing.assert_array_equal(
        add(kernel, centers, rows), add(kernel, centers, rows, np.ones(200))
    )


def test_a_row_adds_its_length_and_coordinates_as_python_computes_them(kernel):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 40)).astype(np.float32)
    axes = np.linalg.qr(rng.normal(size=(40, 3)))[0].T.astype(np.float32)
    centers = replace(Centers.in_one_group(points), limit=400.0, axes=axes)
    rows, factors = rng.normal(size=(100, 40)), rng.random(100)

    totals = add(kernel, centers, rows, factors)

    assert 2**14 / math.sqrt(400.0) <= centers.per_unit <= 2**15 / math.sqrt(400.0)  # of 16 bits
    expected = totals_by_hand(centers, rows, factors)
    np.testing.assert_array_equal(totals[:, :42], expected[:, :42])
    np.testing.assert_allclose(totals[:, 42:], expected[:, 42:].astype(float), rtol=1e-3)


def test_rows_beyond_the_limit_are_left_out_and_named_with_their_centers(kernel):
    centers = replace(Centers.in_one_group(np.array([[0], [10]], dtype=np.float32)), limit=4.0)
    rows, factors = np.array([[1.0], [3.0], [8.0], [7.9], [12.5]]), np.linspace(0.1, 0.9, 5)
    totals = np.zeros((2, 4), dtype=np.int64)

    left, nearest = kernel.cells(centers).add(rows, rows, factors, totals)

    assert (left.tolist(), nearest.tolist()) == ([1, 3, 4], [0, 1, 1])
    np.testing.assert_array_equal(totals, add(kernel, centers, rows[[0, 2]], factors[[0, 2]]))


def test_of_equal_distances_the_first_center_counts(kernel):
    """Far apart in the panels and in their lanes, in one group and in several."""
    for J in (2, 33, 100):
        centers = np.zeros((J, 2), dtype=np.float32)
        for of in (Centers.in_one_group(centers), in_groups(centers, [0, J // 2, J], probes=2)):
            labels, squares = kernel.cells(of).nearest(np.ones((5, 2), dtype=np.float32))
            assert labels.tolist() == [0] * 5
            assert squares.tolist() == [2.0] * 5


def test_a_row_looks_into_as_many_groups_as_it_may(kernel):
    """The nearest center is in the group whose middle is the second nearest."""
    row = np.array([[5.1]], dtype=np.float32)
    for probes, label in ((1, 1), (2, 2)):
        centers = in_groups([[0.0], [10.0], [4.9], [20.0]], [0, 2, 4], probes)

        assert kernel.cells(centers).nearest(row)[0].tolist() == [label]


def test_squares_at_the_end_of_the_reach_do_not_overflow(kernel):
    end = CELL_REACH * (1 - 2.0**-10)
    centers = Centers.in_one_group(np.array([[-end]], dtype=np.float32))
    offset = round((end + float(np.float32(end))) * 2**CELL_BITS)

    weight, total, low, high = add(kernel, centers, np.full((3, 1), end))[0].tolist()

    assert (weight, total) == (3 << CELL_WEIGHT_BITS, 3 * offset)
    assert low + (high << SQUARE_BITS) == 3 * offset**2
