"""Sliding Frank-Wolfe: the solution of a convex problem, checked by what makes it one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.decoders import Box, Problem
from sketchshift.errors import SpecError
from sketchshift.metrics import lloyd, match_centroids, rse
from sketchshift_papers.datasets import make_data
from sketchshift_papers.decoders.sliding_frank_wolfe import (
    Blasso,
    SlidingFrankWolfe,
    _Search,
)
from sketchshift_papers.definition import PAPER, load_figure

POINTS = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])
SHARES = np.array([0.5, 0.3, 0.2])
SQUARE = Box([-1, -1], [1, 1])


def sketch_of_points(m=300, bandwidth=0.2, **options):
    X = np.repeat(POINTS, (1000 * SHARES).astype(int), axis=0)
    return ss.sketch(X, ss.SketchSpec(2, m, bandwidth, **options))


def sketch_of_clouds(m=200, bandwidth=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = POINTS[rng.choice(3, 5000, p=SHARES)] + 0.1 * rng.normal(size=(5000, 2))
    return ss.sketch(X, ss.SketchSpec(2, m, bandwidth, seed=seed))


def solve(sketch, share, **options):
    """The solution for one penalty, a share of the largest."""
    decoder = SlidingFrankWolfe(penalty=share, n_initializations=200, n_iterations=60, **options)
    problem = Problem.of(sketch, 3, SQUARE, 0, "test")
    search = _Search(decoder, problem, 3, 0)
    mixture = search.run(3, None)
    return Blasso(problem, search.trace[-1].penalty), mixture, search.trace


def waves(turns, places):
    """Sketches of Diracs, one a row, in float64: the definition."""
    phases = 2 * np.pi * places @ turns.astype(np.float64)
    return np.exp(1j * phases) / np.sqrt(turns.shape[1])


@pytest.mark.parametrize("bandwidth", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_points_apart_are_recovered_exactly_from_their_sketch(bandwidth, seed):
    sketch = sketch_of_points(bandwidth=bandwidth, seed=seed)

    found = ss.decode(sketch, 3, seed=seed, decoder=SlidingFrankWolfe(refine=True))

    assert found.outcome is ss.decoders.Outcome.COMPLETE
    np.testing.assert_allclose(found.centroids, POINTS, atol=1e-5)
    np.testing.assert_allclose(found.weights, SHARES, atol=1e-5)


def test_the_penalty_alone_draws_points_nearer_to_each_other_in_proportion_to_it():
    """The places of the BLASSO are off by O(lambda) where kernels overlap."""
    sketch, errors = sketch_of_points(m=1000, bandwidth=0.4), []

    for share in (0.1, 0.01):
        _, mixture, _ = solve(sketch, share, tolerance=1e-3)
        places = mixture.means[match_centroids(POINTS, mixture.means)]
        errors.append(np.linalg.norm(places - POINTS))

    assert errors[0] < 0.1
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.4)


@pytest.mark.parametrize("make", [sketch_of_points, sketch_of_clouds])
@pytest.mark.parametrize("share", [0.3, 0.03])
def test_the_certificate_is_at_most_1_on_a_dense_grid_and_1_on_the_support(make, share):
    """What makes a measure the solution of a convex problem, with sines of our own in float64."""
    sketch = make()

    blasso, mixture, trace = solve(sketch, share)

    turns = sketch.frequencies.turns
    residual = sketch.z - mixture.weights @ waves(turns, mixture.means)
    grid = SQUARE.grid(10_000)  # a tenth of the bandwidth apart
    places = np.concatenate([grid, mixture.means])
    eta = (waves(turns, places).conj() @ residual).real / blasso.penalty
    assert len(trace) < 60
    assert eta.max() <= 1.01 + 1e-3
    np.testing.assert_allclose(eta[len(grid) :], 1.0, atol=1e-3)
    np.testing.assert_allclose(blasso.certificate(mixture)(places), eta, atol=1e-3)
    assert (mixture.weights > 0).all()
    squares, mass = np.linalg.norm(residual) ** 2, mixture.weights.sum()
    assert blasso.objective(mixture) == pytest.approx(squares / 2 + blasso.penalty * mass, rel=1e-3)


@pytest.mark.parametrize("make", [sketch_of_points, sketch_of_clouds])
def test_the_objective_falls_from_atom_to_atom_and_along_the_path(make):
    sketch = make()

    trace = SlidingFrankWolfe(n_initializations=200)(sketch, 3, domain=SQUARE).trace

    objectives = np.array([step.objective for step in trace])
    penalties = np.array([step.penalty for step in trace])
    assert (np.diff(objectives) < 0).all()
    assert (np.diff(penalties) <= 0).all()
    assert len(set(penalties)) > 1
    assert all(step.certificate > 1.01 for step in trace)
    assert [step.index for step in trace] == list(range(1, len(trace) + 1))


def test_its_first_step_is_a_matched_filter():
    """With one atom, the LASSO has a closed form: the correlation less the penalty."""
    sketch = sketch_of_points()

    step = SlidingFrankWolfe(penalty=0.9)(sketch, 1, domain=SQUARE).trace[0]

    atom = waves(sketch.frequencies.turns, step.centroid[None])[0]
    height = (atom.conj() @ sketch.z).real
    assert step.correlation == pytest.approx(height, rel=1e-5)
    assert step.certificate == pytest.approx(1 / 0.9, rel=1e-5)
    least = np.linalg.norm(sketch.z) ** 2 / 2 - (height - step.penalty) ** 2 / 2
    assert step.objective == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("bandwidth", [0.03, 0.1, 0.3, 0.5])
def test_separated_clusters_are_found_from_narrow_to_wide_kernels(bandwidth):
    """Where CL-OMPR fails for narrow ones, and Algorithm 2 for wide ones."""
    decoder = SlidingFrankWolfe(n_initializations=200, starts="uniform")
    data = make_data(load_figure("fig1", PAPER).datasets[0], 100_000)
    best = lloyd(data.X, 3)

    for seed in range(2):
        sketch = ss.sketch(data.X, ss.SketchSpec(2, 1000, bandwidth, seed=seed))
        assert rse(data.X, decoder(sketch, 3, domain=SQUARE).centroids, best) < 1.03


def test_it_is_found_by_its_name_and_says_how_far_it_is(tmp_path):
    sketch, path, seen = sketch_of_points(), tmp_path / "points.sketch", []
    sketch.save(path)

    named = ss.decode(sketch, 3, decoder="sliding-frank-wolfe", progress=seen.append)
    line = f"cluster {path} -k 3 --decoder sliding-frank-wolfe --json"
    told = json.loads(CliRunner().invoke(main, line.split()).stdout)["clusters"]

    np.testing.assert_array_equal([c["centroid"] for c in told], named.centroids)
    assert [step.index for step in seen] == [step.index for step in named.trace]


def test_a_penalty_too_small_for_any_certificate_is_refused():
    with pytest.raises(SpecError, match=r"'penalty' of .* 1e-06\. Give a number from 0\.001 to 1"):
        SlidingFrankWolfe(penalty=1e-6)(sketch_of_points(), 3)
