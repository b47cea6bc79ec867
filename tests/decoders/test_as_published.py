"""The paper's algorithms to the letter: nothing of ours in them, and each piece can be told."""

from __future__ import annotations

import numpy as np

import sketchshift as ss
from sketchshift.decoders import CorrelationFunction
from sketchshift.decoders.paper.climb import SketchedMeanShift

PUBLISHED = {
    "starts": "uniform",
    "reuse_starts": False,
    "local_maximum": "plain_mean_shift",
    "threshold": "weight",
    "repairs": False,
}
SQUARE = ss.decoders.Box([-1, -1], [1, 1])
MEANS = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])


def sketch_of(*, m=500, bandwidth=0.2):
    rng = np.random.Generator(np.random.PCG64(0))
    X = MEANS[rng.integers(3, size=20_000)] + 0.05 * rng.standard_normal((20_000, 2))
    return ss.sketch(X, ss.SketchSpec(2, m, bandwidth))


def distance(found, means):
    return np.linalg.norm(found[:, None] - means, axis=2).min(axis=0).max()


def test_a_plain_step_is_the_papers_formula_also_where_it_goes_down():
    f = CorrelationFunction.of(sketch_of(m=20, bandwidth=0.1))
    starts = SQUARE.sample(200, 0)
    places, values = SketchedMeanShift(max_iterations=1, backtracking=False)(f, starts, SQUARE, 0.1)

    height, gradient = f.value_and_gradient(starts)
    expected = SQUARE.project(starts + 0.01 * gradient / np.abs(height)[:, None])
    moved = np.linalg.norm(expected - starts, axis=1) > 1e-4
    assert np.allclose(places[moved], expected[moved])
    assert (values < height).any()


def test_all_atoms_are_looked_for_whatever_is_left():
    point = np.array([[0.1, 0.2]])
    z = ss.sketch(np.repeat(point, 100, axis=0), ss.SketchSpec(2, 300, 0.2))
    found = ss.SketchAndShift(n_initializations=100, **PUBLISHED)(z, 1, domain=SQUARE)
    repaired = ss.SketchAndShift(
        n_initializations=100, local_maximum=lambda f, *_: (point, f(point))
    )(z, 1, domain=SQUARE)

    assert (len(found.trace), len(repaired.trace)) == (2, 1)
    assert found.outcome is ss.decoders.Outcome.COMPLETE
    assert distance(found.centroids, point) < 0.01


def test_the_published_algorithm_finds_separated_clusters():
    found = ss.SketchAndShift(n_initializations=200, **PUBLISHED)(sketch_of(), 3, domain=SQUARE)

    assert distance(found.centroids, MEANS) < 0.02
