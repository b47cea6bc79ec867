"""What one row can do to a release, whatever the row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.features import Ball, Cells, Rows, Waves
from sketchshift.features.rows import unit_for
from sketchshift.privacy.release import cell_factor, count_factor, release_vector, sensitivity

CELLS = Cells.of([[-1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.25, 0.5]])
SPECS = {
    name: ss.SketchSpec.of(
        Rows(2, unit=unit_for(0.3, 2), onto=Ball("declared", 100.0)),
        Waves(40, 0.3, precision=precision),
        cells=cells,
    )
    for name, precision, cells in (
        ("float32", "float32", None),
        ("float64", "float64", None),
        ("cells", "float32", CELLS),
    )
}
NUMBERS = st.one_of(
    st.floats(-2, 2),
    st.floats(-1e300, 1e300),
    st.floats(-1e-30, 1e-30),
    st.integers(-4000, 4000).map(lambda k: k / 4),
    st.sampled_from([math.nan, math.inf, -math.inf, 1.7e308]),
)


def norm_of(rows, spec):
    """Squared norm of what rows add to an empty release, exactly."""
    return sum(int(v) ** 2 for v in release_vector(ss.sketch(rows, spec)))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@settings(deadline=None, max_examples=100)
@given(st.tuples(NUMBERS, NUMBERS))
def test_no_row_adds_more_than_the_sensitivity(spec, row):
    """Huge, tiny, on the quarter turns, not finite: exact integers, no tolerance."""
    assert norm_of(np.array([row]), spec) <= sensitivity(spec) ** 2


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_random_rows_reach_the_sensitivity(precision, rng):
    """So that a wrong factor of two would be seen."""
    spec = SPECS[precision]
    for row in rng.normal(size=(20, 1, 2)):
        share = math.sqrt(norm_of(row, spec)) / sensitivity(spec)
        assert 0.999999 < share <= 1.0


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("float32", (26_660_753, 2_666_075, 1)), ("cells", (29_508_046, 2_950_804, 2))],
)
def test_the_count_has_a_hundredth_of_the_squared_sensitivity_and_cells_a_fifth(name, numbers):
    """At 40 frequencies; of the factors, whole numbers, cells have the one below."""
    assert tuple(each(SPECS[name]) for each in (sensitivity, count_factor, cell_factor)) == numbers
