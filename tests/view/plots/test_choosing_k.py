"""The picture of how the number of clusters was chosen."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.view import k_curve


def test_misfit_and_score_are_drawn_against_k_with_the_chosen_one_marked(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2)) + 9.0 * rng.normal(size=(3, 2))[rng.integers(3, size=2_000)]
    found = ss.decode(ss.sketch(X, n_clusters=6), n_clusters="auto")

    assert k_curve(found, ax) is ax

    curve, lines = found.curve, {line.get_label(): line for line in ax.lines}
    for label, values in (("misfit", curve.misfit), ("score", curve.score)):
        np.testing.assert_array_equal(lines[label].get_xdata(), curve.n_clusters)
        np.testing.assert_array_equal(lines[label].get_ydata(), values)
    mark = lines["chosen: 3, first within 2.5 % of the best"]
    assert mark.get_xdata() == [3]
    assert mark.get_ydata() == [curve.score[2]]
    assert ax.get_yscale() == "log"
    assert ax.get_title() == "3 clusters, of 1 to 6 tried"


def test_a_misfit_that_vanished_has_a_place_on_the_logarithmic_axis(ax):
    equal = ss.sketch(np.full((9, 2), 3.0), ss.SketchSpec(2, 50, 1.0))

    k_curve(ss.decode(equal, n_clusters="auto"), ax)

    assert ax.get_title() == "1 cluster, of 1 to 1 tried"
    assert all((line.get_ydata() > 0).all() for line in ax.lines if line.get_label()[0] != "_")


def test_a_decoding_whose_number_was_given_is_refused(ax):
    given = ss.decode(ss.sketch(np.eye(3), n_clusters=2), n_clusters=2)

    with pytest.raises(
        ss.errors.SpecError, match="must be a Decoding with a curve, that of decode"
    ):
        k_curve(given, ax)
