"""Random comparisons of the compiled kernels with the reference, bit for bit.

``python tests/kernels/fuzz.py --comparisons 10000`` compares every variant that this machine can
run (``--variant`` names some). Comparison i of a seed is the same on all machines: random numbers
are made without a function of the C library. Where the reference would be too slow (on an emulated
machine), ``--against FILE`` compares with its digests, which ``--save FILE`` kept on another one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import sketchshift as ss
from sketchshift.data import Block
from sketchshift.features.cells import Cells
from sketchshift.kernels import CELL_REACH, PHASE_LIMIT, Centers, Runs, select_kernel
from sketchshift.kernels.cpu import CpuKernel
from sketchshift.kernels.cpu.library import variants
from sketchshift.sketch.rows import RowAdder, make_adders
from sketchshift.sketch.sketch import Sketch

PAIRS = 150_000  # rows times frequencies times columns: the reference is slow
EDGES = (0.0, -0.0, 0.25, -0.25, 0.5, 0.75, 1.0, -1.0, 2.0**-126, -(2.0**-149), 5e-324, 1e-310)

REFERENCE = select_kernel("reference")


# --- numbers --------------------------------------------------------------------------------------


def draw_size(rng, most, least=1):
    """Small and large ones alike, and those beside the widths of vectors and tiles."""
    if rng.random() < 0.3:
        size = int(rng.choice([6, 8, 16, 32, 64, 96, 252, 256, 504])) + int(rng.integers(-1, 2))
    else:
        size = int(rng.integers(0, 2 + most >> int(rng.integers(most.bit_length()))))
    return min(max(size, least), most)


def draw_sizes(rng, most_columns=200):
    """Rows, columns, frequencies: any two may be large."""
    sizes = [draw_size(rng, 500, 0), draw_size(rng, most_columns), draw_size(rng, 700)]
    while math.prod(sizes) > PAIRS:
        i = rng.integers(3)
        sizes[i] = (sizes[i] + 1) // 2
    return sizes


def draw_smooth(rng, shape):
    """Like normal numbers, without a logarithm."""
    return 2.0 * (rng.random(shape) + rng.random(shape) + rng.random(shape) - 1.5)


def draw_numbers(rng, shape):
    """Of one size or of many, on a grid with ties, or with zeros and the smallest of all."""
    numbers, style = draw_smooth(rng, shape), rng.integers(5)
    if style == 1:
        return np.ldexp(numbers, rng.integers(-30, 18, size=(shape[0], 1)))
    if style == 2:
        return np.ldexp(rng.integers(-64, 65, size=shape).astype(np.float64), -4)
    if style == 3:
        return np.where(rng.random(shape) < 0.3, rng.choice(EDGES, size=shape), numbers)
    if style == 4:
        return np.ldexp(numbers, rng.integers(-1070, 8, size=shape))
    return numbers


def draw_rows(rng, n, d, largest):
    """Rows whose phases are below the limit, some close to it, and their weights."""
    close = rng.random() < 0.2
    rows = bring_within(draw_numbers(rng, (n, d)), largest, PHASE_LIMIT, close)
    return rows.astype(rng.choice(["f4", "f8"])), draw_weights(rng, n).astype(np.float32)


def draw_weights(rng, n):
    """In [0, 1]: ones, fractions, and tiny ones."""
    shares, style = rng.random(n), rng.integers(4)
    if style == 0:
        return np.ones(n)
    if style == 1:
        return np.ldexp(shares, -rng.integers(0, 150, n))
    if style == 2:
        return rng.choice([0.0, 0.5, 1.0, 2.0**-22, 2.0**-23, 2.0**-24, 1.5 * 2.0**-23], size=n)
    return np.where(rng.random(n) < 0.3, 1.0, shares)


def bring_within(rows, largest, limit, close=False):
    """Rows times a power of two: products with numbers up to ``largest`` stay below the limit."""
    bound = float(np.abs(rows).max(initial=0.0)) * largest * rows.shape[1]
    if bound == 0.0 or (bound < limit and not close):
        return rows
    return np.ldexp(rows, min(math.frexp(limit)[1] - math.frexp(bound)[1] - 1, 60))


# --- comparisons ----------------------------------------------------------------------------------


def draw_runs(rng, n):
    """One run of all rows, or several, of which each adds to totals of its own."""
    if rng.random() < 0.5:
        return Runs.one(n)
    return Runs.of(np.sort(rng.integers(0, 1 + n // int(rng.integers(1, 9)), n)))


def accumulate(accumulator, rows, weights, m, runs=None):
    totals = np.zeros((2, m), dtype=np.int64)
    accumulator(rows, weights, totals)
    if runs is None:
        return [totals]
    by_slot = np.zeros((1 + runs.slots.max(), 2, m), dtype=np.int64)
    accumulator(rows, weights, by_slot, runs)
    return [totals, by_slot]


def draw_dense(rng):
    n, d, m = draw_sizes(rng)
    turns = draw_numbers(rng, (d, m)).astype(np.float32)
    given = *draw_rows(rng, n, d, float(np.abs(turns).max())), m, draw_runs(rng, n)
    return lambda kernel: accumulate(kernel.dense(turns), *given)


def draw_structured(rng):
    size = int(rng.choice([64, 128, 256, 512, 1024], p=[0.3, 0.3, 0.2, 0.1, 0.1]))
    m, d = draw_size(rng, 700), draw_size(rng, min(size, 200))
    n = draw_size(rng, min(500, 2 * PAIRS // (size + m) // 8), 0)
    signs = rng.choice([-1, 1], size=(-(-m // size), 3, size)).astype(np.float32)
    radii = np.ldexp(rng.random(m), -rng.integers(4, 20)).astype(np.float32)
    given = *draw_rows(rng, n, d, size), m, draw_runs(rng, n)
    return lambda kernel: accumulate(kernel.structured(signs, radii), *given)


def draw_phases(rng):
    """Single phases of any pattern below the limit, close to it, and on and beside a grid."""
    m, style = draw_size(rng, 700), rng.integers(3)
    if style == 0:
        sizes = rng.integers(0, 0x49800000, size=m, dtype=np.int32)  # of +0 to what is before 2^20
        t = sizes.view(np.float32) * rng.choice([-1, 1], size=m)
    elif style == 1:
        t = np.float32(PHASE_LIMIT) - np.ldexp(rng.integers(1, 64, size=m).astype(np.float32), -4)
    else:  # quarter turns, and numbers halfway between, are among them
        grid = np.ldexp(rng.integers(-(2**12), 2**12, size=m).astype(np.float32), -rng.integers(8))
        t = np.nextafter(grid, grid + rng.integers(-1, 2, size=m).astype(np.float32))
    turns, weights = t[None].astype(np.float32), draw_weights(rng, 1).astype(np.float32)
    row = np.ones((1, 1), dtype=rng.choice(["f4", "f8"]))
    return lambda kernel: accumulate(kernel.dense(turns), row, weights, m)


def draw_moments(rng):
    full = bool(rng.random() < 0.6)
    d = draw_size(rng, 64 if rng.random() < 0.05 else 16 if full else 200)
    n = draw_size(rng, 500, 0)
    unit = float(np.ldexp(1.0, int(rng.integers(-40, 40))))
    close = rng.random() < 0.3
    rows = unit * bring_within(draw_numbers(rng, (n, d)), 1.0 / d, 2.0**24, close)
    factors = draw_weights(rng, n) if rng.random() < 0.5 else None
    runs = draw_runs(rng, n)

    def compute(kernel):
        n_sums = 2 * d + (d * (d + 1) // 2 if full else d)
        limbs = np.zeros((1 + runs.slots.max(), 3, n_sums), dtype=np.int64)
        kernel.moments(rows, factors, unit, limbs, runs, full=full)
        return [
            str([([1, 2**20, 2**40] @ each.astype(object)).tolist() for each in limbs]).encode()
        ]

    return compute


def normalise(kernel, X, center, per_unit):
    """Rows and their squared norms where the kernel computes, in place of NaN."""
    rows, squared_norms = kernel.empty(X.shape), kernel.empty((len(X),))
    rows[...] = squared_norms[...] = np.nan
    kernel.normalise(X, center, per_unit, rows, squared_norms)
    return rows, squared_norms


def draw_normalise(rng):
    n, d = draw_size(rng, 500, 0), draw_size(rng, 200)
    X = draw_numbers(rng, (n, d)).astype(rng.choice(["f4", "f8"]))
    center, per_unit = draw_smooth(rng, (d,)), np.ldexp(rng.random(d), rng.integers(-9, 9, d))

    return lambda kernel: [*map(kernel.on_host, normalise(kernel, X, center, per_unit))]


def draw_cells(rng):
    """Centers in one group or in several, some of them equally near; some groups left unseen."""
    n, d, n_centers = draw_sizes(rng)
    starts = np.unique([0, n_centers, *rng.integers(1, n_centers + 1, size=rng.integers(6))])
    near = [draw_numbers(rng, (size, d)) for size in (n_centers, n)]
    points, rows = (bring_within(a, 1.0, CELL_REACH / 4) for a in near)
    points = points.astype(np.float32)
    probes, factors = int(rng.integers(1, 4)), draw_weights(rng, n) if rng.random() < 0.5 else None
    centers = Centers(points, starts.astype(np.int64), points[starts[:-1]], probes)
    narrow = rows.astype(np.float32)
    # a limit may be the very distance of a row
    squares = REFERENCE.cells(centers).nearest(narrow[:1])[1]
    limits = [math.inf, 1.0, *squares, 10.0 ** rng.uniform(-6, 6)]
    centers = replace(centers, limit=rng.choice(limits))
    if rng.random() < 0.5:
        axes = np.linalg.qr(rng.normal(size=(d, rng.integers(1, d + 1))))[0].T
        centers = replace(centers, axes=axes.astype(np.float32))

    places = rng.integers(0, 5, n)

    def compute(kernel):
        totals = np.zeros((n_centers, centers.width), dtype=np.int64)
        cells = kernel.cells(centers)
        here, _ = normalise(kernel, rows, np.zeros(d), np.ones(d))
        along = here if centers.axes is None else kernel.project(here, centers.axes)
        left = cells.add(here, along, factors, totals) or ()
        labels, squares = cells.nearest(narrow)
        distances = kernel.distances(points)(narrow)
        elsewhere = np.zeros((5, centers.width), dtype=np.int64)
        some = squares <= np.float32(centers.limit)
        given = rows[some], kernel.on_host(along)[some], None if factors is None else factors[some]
        cells.sum_at(*given, labels[some], places[some], elsewhere)
        return [totals, labels, squares, np.ascontiguousarray(distances), elsewhere, *left]

    return compute


def draw_digits(rng, *shape):
    """Integers below 2**126 of up to so many digits (..., n), some at the end of their range."""
    digits = rng.integers(-(2**31), 2**31, shape)
    ends = rng.choice([-(2**31), 2**31 - 1, 0, 1, -1], shape)
    digits = np.where(rng.random(shape) < 0.2, ends, digits)
    digits[np.arange(shape[-1]) >= rng.integers(shape[-1] + 1, size=(*shape[:-1], 1))] = 0
    digits[..., -1] >>= rng.integers(1, 32)
    return digits.astype(np.int32)


def draw_central(rng):
    """Quotients, and differences of products that may cancel."""
    n, (G, E, r), bits = int(rng.choice([2, 4])), rng.integers(5, size=3), int(rng.integers(65))
    products, weights = draw_digits(rng, G, E, n), draw_digits(rng, G, n)
    left, right = draw_digits(rng, G, E, r, n), draw_digits(rng, G, E, r, n)
    if rng.random() < 0.5:
        right = left
    if rng.random() < 0.2:  # all is 0: 1 P - P 1
        weights = np.eye(1, n, dtype=np.int32).repeat(G, axis=0)
        left, bits = products[:, :, None], 0
        right = np.broadcast_to(weights[:, None, None], left.shape)

    def compute(kernel):
        moments = kernel.central(products, weights, left, right, bits)
        return [kernel.central(products), kernel.central(products, weights), moments]

    return compute


def draw_sketch(rng):
    """The whole way from rows, some at the end of the reach, to the bytes of a file."""
    structured = rng.random() < 0.2
    n, d, m = draw_sizes(rng, 64 if rng.random() < 0.8 else 200)
    if structured:
        n, d = n // 8, max(d, 64)
    spec = ss.SketchSpec(
        *(d, m, (1.0 + rng.random()) * 2.0 ** rng.integers(-3, 4)),
        seed=int(rng.integers(4)),
        law=str(rng.choice(["gaussian", "folded_gaussian", "adapted_radius"])),
        structured=structured,
        center=draw_smooth(rng, d) if rng.random() < 0.5 else None,
        scale=rng.random() + 0.5 if rng.random() < 0.5 else None,
        precision=str(rng.choice(["float32", "float64"])),
    )
    X = draw_numbers(rng, (n, d))
    far = rng.random(n) < rng.choice([0.0, 0.5])
    X[far, 0] = spec.reach * rng.choice([0.5, 0.999999, 1.0, 1.000001], size=far.sum())
    X = X.astype(rng.choice(["f4", "f8"]))
    _, squared_norms = normalise(REFERENCE, X, spec.rows.center_vector, spec.rows.per_unit)
    X = X[squared_norms < spec.reach**2]  # no others, which a sketch refuses
    weights = draw_weights(rng, len(X)) if rng.random() < 0.5 else None
    if weights is not None and rng.random() < 0.5:
        weights += rng.integers(0, 2 ** int(rng.integers(1, 6)), len(X))

    def compute(kernel):
        adder = RowAdder(spec, kernel, make_adders(spec, kernel))
        adder.add(Block(X, weights))
        return [Sketch(spec, spec.fingerprint, adder.totals()).to_bytes()]

    return compute


def draw_slices(rng):
    """The way of rows with keys, in two blocks, to the bytes of each slice: waves and cells."""
    n, d, m = draw_sizes(rng, 64)
    centers = bring_within(draw_numbers(rng, (draw_size(rng, 60), d)), 1.0, CELL_REACH / 4)
    spec = ss.SketchSpec(d, m, 1.0 + rng.random()).replaced(cells=Cells.of(centers))
    X = draw_numbers(rng, (n, d)).astype(rng.choice(["f4", "f8"]))
    weights = draw_weights(rng, n) if rng.random() < 0.5 else None
    numbers = rng.integers(0, int(rng.integers(1, 80)), n)

    def compute(kernel):
        adder = RowAdder(spec, kernel, make_adders(spec, kernel))
        for rows in np.array_split(np.argsort(numbers, kind="stable"), 2):
            adder.add(Block(X, weights), rows, numbers[rows])
        found, totals = adder.take()
        parts = (Sketch(spec, spec.fingerprint, totals[i]) for i in range(len(found)))
        return [found, *(part.to_bytes() for part in parts)]

    return compute


KINDS = {
    "dense": draw_dense,
    "structured": draw_structured,
    "phases": draw_phases,
    "moments": draw_moments,
    "normalise": draw_normalise,
    "cells": draw_cells,
    "central": draw_central,
    "sketch": draw_sketch,
    "slices": draw_slices,
}


# --- the loop -------------------------------------------------------------------------------------


def digest_of(given, kernel):
    digest = hashlib.blake2b(digest_size=12)
    for part in given(kernel):
        digest.update(part if isinstance(part, bytes) else part.tobytes())
    return digest.hexdigest()


def compare(kernels, seed, n, known=None):
    """Yield for each comparison its name, the digest expected, and the kernels that differ.

    Comparisons are of one kind after the other. The digest is the one ``known`` under the name, or
    else that of the reference.
    """
    for i in range(n):
        kind = list(KINDS)[i % len(KINDS)]
        name = f"{kind}, --seed {seed}, number {i}"
        given = KINDS[kind](np.random.default_rng([seed, i]))
        expected = (known or {}).get(name) or digest_of(given, REFERENCE)
        differing = [each for each in kernels if digest_of(given, kernels[each]) != expected]
        yield name, expected, differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--comparisons", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variant", nargs="+", help="such as avx2; all of this machine otherwise")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the reference's digests")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with such a file")
    options = parser.parse_args()
    found = variants()
    kernels = {name: CpuKernel(found[name]) for name in options.variant or found}
    known = json.loads(options.against.read_text()) if options.against else {}
    differences, digests = dict.fromkeys(kernels, 0), {}
    for name, digest, differing in compare(kernels, options.seed, options.comparisons, known):
        digests[name] = digest
        for variant in differing:
            differences[variant] += 1
            sys.stderr.write(f"{variant} differs: {name}\n")
    if options.save:
        options.save.write_text(json.dumps(digests, indent=0))
    counts = ", ".join(f"{variant} {count}" for variant, count in differences.items())
    facts = f"{options.comparisons} comparisons with the reference, differences: {counts}"
    sys.stdout.write(facts + "\n")
    return int(any(differences.values()))


if __name__ == "__main__":
    raise SystemExit(main())
