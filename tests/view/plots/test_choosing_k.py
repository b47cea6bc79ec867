"""The picture of how the number of clusters was chosen."""

from __future__ import annotations

import numpy as np

import sketchshift as ss
from sketchshift.view import k_curve


def test_misfit_and_score_are_drawn_against_k_with_the_chosen_one_marked(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2)) + 9.0 * rng.normal(size=(3, 2))[rng.integers(3, size=2_000)]
    found = ss.decode(ss.sketch(X, n_clusters=6), n_clusters="auto")

    assert k_curve(found, ax) is ax

    curve = found.curve
    drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert drawn["misfit"] == np.column_stack([curve.n_clusters, curve.misfit]).tolist()
    assert drawn["score"] == np.column_stack([curve.n_clusters, curve.score]).tolist()
    assert drawn["chosen: 3, first within 2.5 % of the best"] == [[3, curve.score[2]]]
    assert ax.get_yscale() == "log"
    assert ax.get_title() == "3 clusters, of 1 to 6 tried"


def test_a_misfit_that_vanished_has_a_place_on_the_logarithmic_axis(ax):
    equal = ss.sketch(np.full((9, 2), 3.0), ss.SketchSpec(2, 50, 1.0))

    k_curve(ss.decode(equal, n_clusters="auto"), ax)

    assert ax.get_title() == "1 cluster, of 1 to 1 tried"
    assert all((line.get_ydata() > 0).all() for line in ax.lines if line.get_label()[0] != "_")
