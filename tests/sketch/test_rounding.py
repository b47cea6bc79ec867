"""What is decoded of a sketch is that of its integers in Python, each number rounded once."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.features import Axes, Cells
from sketchshift.kernels import BITS, CELL_BITS, CELL_WEIGHT_BITS, LIMB_BITS, MOMENT_BITS
from sketchshift.sketch.totals import WEIGHT_BITS

PLACES = np.random.default_rng(7).normal(size=(6, 3))
CELLS = Cells.of(PLACES, unit=0.25)
AXES = Axes.of([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
WAVES = ss.SketchSpec(3, 8, 0.5, center=(1.0, 0.0, -2.0), scale=1.5)
NARROW, WIDE = WAVES.replaced(cells=CELLS), WAVES.replaced(cells=CELLS, spread=AXES)
seeds = st.integers(0, 2**32 - 1)
powers = st.integers(-30, 38) | st.just(None)


def sketch_of(spec, seed, power):
    """40 rows in cells, in shells and beyond, of weights of a size; up to what a sketch holds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)) * 10.0 ** rng.choice([-3.0, 0.0, 0.0, 1.5, 3.0, 90.0], (40, 1))
    X[:10] = X[0]
    if power is None:
        return ss.sketch(X, spec)
    power = min(power, 30) if spec.axes is not None else power
    weights = 2.0**power * rng.uniform(size=40) / 40
    return ss.Sketcher(spec).update(X, sample_weight=weights).sketch()


def rounded(numerator, denominator):
    return float(Fraction(numerator, denominator))


def check_cells(found, integers, steps, bits):
    """Compare cells with weights, sums and squares (1 + 2 d) of each."""
    for j, (n, *numbers) in enumerate(integers):
        step, weight, one = steps[j], max(n, 1), 2**bits
        assert found.weights[j] == rounded(n, one)
        pairs = zip(numbers[:3], numbers[3:], strict=True)
        for k, (S, Q) in enumerate(pairs):
            center, variance = found.origins[j, k], (Q * weight - S * S * one) * one
            assert found.means[j, k] == center + rounded(S * one, weight) * step
            assert found.variances[j, k] == max(rounded(variance, weight**2), 0.0) * step * step
            assert found.sums[j, k] == float(S) * step
            assert found.squares[j, k] == float(Q) * step * step


@given(seed=seeds, power=powers)
@settings(max_examples=60)
def test_cells_and_outliers_are_those_of_python_s_integers(seed, power):
    sketch = sketch_of(NARROW, seed, power)
    totals, J = sketch._totals, CELLS.n_cells
    cells = [list(map(int, row)) for row in totals.integers("cells")]
    outliers = totals.integers("outliers")
    zones = {
        "shells": [key for key in outliers if key[0] == 1 and key[1] >= 0],
        "outer": [key for key in outliers if key[0] == 1 and key[1] < 0],
        "far": [key for key in outliers if key[0] == 2],
    }
    parts = {"shells": sketch.cells[np.arange(len(sketch.cells.weights)) >= J]}
    parts |= {"outer": sketch.outer, "far": sketch.far}

    check_cells(sketch.cells, cells, [0.25 * 2.0**-CELL_BITS] * J, CELL_WEIGHT_BITS)
    for name, keys in zones.items():
        steps = [2.0 ** (power - 40) for _, _, _, power, _ in keys]
        assert len(parts[name].weights) == len(keys)
        check_cells(parts[name], [outliers[key] for key in keys], steps, CELL_WEIGHT_BITS)


@given(seed=seeds, power=powers)
@settings(max_examples=40)
def test_the_variance_of_all_columns_of_cells_with_axes_is_that_of_python_s_integers(seed, power):
    sketch = sketch_of(WIDE, seed, power)

    for found, (n, *S, Q, _, _) in zip(
        sketch.cells.variances, sketch._totals.integers("cells").tolist(), strict=False
    ):
        weight, step = max(n, 1), sketch.cells.steps[0]
        variance = (Q * weight - sum(s * s for s in S) * 2**BITS) * 2**BITS
        total = max(rounded(variance, weight**2), 0.0) * step * step
        assert found.tolist() == [total * (1.0 / 3.0)] * 3


@given(seed=seeds, power=powers)
@settings(max_examples=60)
def test_mean_and_covariance_are_those_of_python_s_integers(seed, power):
    sketch = sketch_of(NARROW, seed, power)
    integers = sketch._totals.integers("moments").tolist()
    W, S, R, Q, P = integers[1], *(integers[i : i + 3] for i in (2, 5, 8)), integers[11:]
    unit, center, scale = NARROW.rows.unit, NARROW.rows.center_vector, NARROW.rows.scale_vector
    if W == 0:
        assert np.isnan([*sketch.mean, *sketch.covariance.flat]).all()
        return
    sums = [s * 2**LIMB_BITS + q for s, q in zip(S, Q, strict=True)]
    pairs = zip(*np.triu_indices(3), P, strict=True)

    assert sketch._moments.weight == rounded(W, 2**WEIGHT_BITS)
    for k in range(3):
        quotient = rounded(S[k] * 2**LIMB_BITS + R[k], W)
        factor = unit * 2.0 ** (WEIGHT_BITS - MOMENT_BITS - LIMB_BITS)
        assert sketch.mean[k] == center[k] + scale[k] * (quotient * factor)
    for i, j, product in pairs:
        central = W * product * 4**LIMB_BITS - 2**WEIGHT_BITS * sums[i] * sums[j]
        factor = (unit * 2.0 ** (-MOMENT_BITS - LIMB_BITS)) ** 2 * 2.0**WEIGHT_BITS
        expected = rounded(central, W * W) * factor * scale[i] * scale[j]
        assert sketch.covariance[j, i] == (max(expected, 0.0) if i == j else expected)


def test_what_was_decoded_of_a_sketch_is_not_changed_through_what_it_gave():
    sketch = sketch_of(NARROW, 0, None)
    names = ("z", "mean", "variance", "covariance")
    before = [getattr(sketch, name).copy() for name in names]

    for name in names:
        getattr(sketch, name)[:] = 0

    for name, kept in zip(names, before, strict=True):
        np.testing.assert_array_equal(getattr(sketch, name), kept)


def test_each_family_is_decoded_once_a_sketch(monkeypatch):
    rows = np.repeat(PLACES, 60, axis=0) + np.random.default_rng(0).normal(0.0, 0.01, (360, 3))
    sketch, decoded = ss.sketch(rows, n_clusters=6), []
    for family in sketch._totals.layout.families:
        decode = partial(type(family).decode, family)

        def told(totals, decode=decode, name=family.name):
            decoded.append(name)
            return decode(totals)

        monkeypatch.setattr(family, "decode", told)

    found = ss.decode(sketch, 6)
    ss.certify(sketch, found.centroids)

    assert sorted(decoded) == ["cells", "moments", "outliers", "partial", "waves"]
