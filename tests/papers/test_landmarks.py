"""Decoding sketches with landmarks: the projected kernel density, its climbs and descents."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

import sketchshift as ss
from sketchshift.errors import DataError, SpecError
from sketchshift.features import Rows, SketchSpec
from sketchshift.metrics import match_centroids
from sketchshift_papers.landmarks import LandmarkMap, LandmarkProblem, draw, parameters

CENTRES = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.9)])
SHARES = np.array([0.5, 0.3, 0.2])


def clusters(n):
    rng = np.random.default_rng(0)
    return CENTRES[rng.choice(3, n, p=SHARES)] + 0.05 * rng.normal(size=(n, 2))


def sketch_of(X):
    return ss.sketch(X, spec_of(draw(X, 60, bandwidth=0.2)))


def spec_of(landmarks):
    return SketchSpec.of(Rows(2, unit=0.125), families={"landmarks": landmarks})


@pytest.fixture(scope="module")
def problem():
    sketch = ss.sketch(ROWS, spec_of(draw(ROWS, 12, bandwidth=0.7)))
    return LandmarkProblem.of(sketch, 3, None, 0, "test")


def test_with_some_rows_it_is_the_density_projected_on_their_kernels(problem):
    """The orthogonal projection in the space of the kernel, by NumPy's least squares."""
    L, places = problem.map.places, np.random.default_rng(4).normal(size=(50, 2))
    at_landmarks = kernels(L, ROWS, 0.7).mean(axis=1)
    beta = np.linalg.lstsq(kernels(L, L, 0.7), at_landmarks, rcond=None)[0]

    f = problem.correlation(problem.z)

    assert_allclose(f(places), kernels(places, L, 0.7) @ beta, atol=1e-5)
    assert_allclose(f(L), at_landmarks, atol=1e-5)


def test_products_of_atoms_are_the_projected_kernel(problem):
    """On a landmark exactly the kernel; elsewhere at most it, as a projection shortens."""
    atoms, L, C = problem.map.atoms, problem.map.places, 2.0 * ROWS[:30]

    assert_allclose(atoms(C) @ atoms(L).T, kernels(C, L, 0.7), atol=1e-4)
    assert ((atoms(C) ** 2).sum(axis=1) <= 1.0 + 1e-9).all()


def test_derivatives_agree_with_finite_differences(problem, central_differences):
    C, f = ROWS[:8], problem.correlation(problem.z)

    def gradient(c):
        return f.value_and_gradient(c)[1]

    assert_allclose(gradient(C), central_differences(f, C, 1e-5), atol=1e-7)
    hessians = central_differences(gradient, C, 1e-5)
    assert_allclose(f.hessian(C), hessians, atol=1e-6)


def test_the_joint_descent_has_the_gradient_of_its_value(problem, central_differences):
    objective, rng = problem.matching("none"), np.random.default_rng(7)
    x = objective.pack(rng.uniform(size=3), rng.normal(size=(3, 2)))

    def values(points):
        return np.array([objective.value_and_gradient(*objective.unpack(p, 3))[0] for p in points])

    value, *gradients = objective.value_and_gradient(*objective.unpack(x, 3))
    by_hand = central_differences(values, x[None], 1e-6)[0]
    assert_allclose(objective.pack(*gradients), by_hand, atol=1e-7)
    direct = problem.z.real - x[:3] @ problem.map.atoms(x[3:].reshape(3, 2))
    assert value == pytest.approx(direct @ direct, abs=1e-12)


@pytest.mark.parametrize("refine", [False, True])
def test_clusters_are_found_from_landmarks_however_far_from_the_center(refine):
    """Rows in steps of 1/8, which float32 holds there: the integers are the same ones."""
    X = np.round(8.0 * clusters(500)) / 8.0
    near, far = (
        ss.SketchAndShift(n_initializations=50, refine=refine)(sketch_of(X + offset), 3)
        for offset in (0.0, 2.0**20)
    )

    assert_allclose(far.centroids - 2.0**20, near.centroids, atol=0.002)
    found = match_centroids(CENTRES, near.centroids)
    assert_allclose(near.centroids[found], CENTRES, atol=0.1)
    assert_allclose(near.weights[found], SHARES, atol=0.1)
    assert 0.0 < near.residual_norm < 0.3


def test_landmarks_that_are_equal_or_one_have_a_map():
    one = LandmarkMap.of(np.zeros((1, 2)), 0.5)
    equal = LandmarkMap.of(np.zeros((4, 2)), 0.5)

    assert_allclose(one.atoms(np.zeros((1, 2))), [[1.0]])
    assert equal.root.shape == (4, 1)


def test_what_needs_waves_or_rows_near_landmarks_says_so():
    sketch, waves = sketch_of(clusters(500)), ss.sketch(np.eye(2), ss.SketchSpec(2, 5, 0.5))
    alone = ss.sketch(np.eye(2), spec_of(parameters([[50.0, 0.0]], 0.2)))
    decoding = ss.SketchAndShift(n_initializations=50)(sketch, 3)

    for use, message in (
        (lambda: ss.decode(sketch, 3), r"needs waves or cells.*ss\.SketchAndShift"),
        (lambda: ss.decoders.shares(decoding, sketch), "shares needs waves or cells"),
        (
            lambda: ss.SketchAndShift(fitted_model="gaussian")(sketch, 3),
            "this sketch has no frequencies",
        ),
        (lambda: ss.SketchAndShift()(alone, 3), "no row is near a landmark"),
        (lambda: LandmarkProblem.of(waves, 1, None, 0, "here"), "must be a Sketch with landmarks"),
    ):
        with pytest.raises((DataError, SpecError), match=message):
            use()


def kernels(a, b, bandwidth):
    return np.exp(-cdist(a, b, "sqeuclidean") / (2 * bandwidth**2))


ROWS = np.random.default_rng(3).normal(size=(500, 2))
