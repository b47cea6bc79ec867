"""Decoding sketches with landmarks: the projected kernel density, its climbs and descents."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.landmarks import LandmarkMap, LandmarkProblem
from sketchshift.metrics import match_centroids

CENTRES = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.9)])
SHARES = np.array([0.5, 0.3, 0.2])


def clusters(n=10_000, seed=0):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.choice(3, n, p=SHARES)] + 0.05 * rng.normal(size=(n, 2))


def sketch_of(X, n_landmarks=60, bandwidth=0.2):
    landmarks = ss.features.Landmarks.draw(X, n_landmarks)
    return ss.sketch(X, ss.SketchSpec(2, 0, bandwidth, landmarks=landmarks))


def density(X, places, bandwidth):
    squares = ((places[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-squares / (2 * bandwidth**2)).mean(axis=1)


def central_differences(g, C, h):
    steps = np.eye(C.shape[1]) * h
    return np.stack([(g(C + step) - g(C - step)) / (2 * h) for step in steps], axis=-1)


@pytest.fixture(scope="module")
def problem():
    X = np.random.default_rng(0).normal(size=(400, 2))
    sketch = ss.sketch(X, ss.SketchSpec(2, 0, 0.8, landmarks=ss.features.Landmarks.draw(X, 50)))
    return LandmarkProblem.of(sketch, 3, None, 0, "test")


def test_with_all_rows_as_landmarks_the_correlation_is_the_kernel_density():
    """K^+ s = 1 / n for every landmark, in the span; outside it, 1e-4 of the density is left."""
    X = np.random.default_rng(1).normal(size=(120, 2)).astype(np.float32).astype(np.float64)
    sketch = ss.sketch(X, ss.SketchSpec(2, 0, 0.4, landmarks=ss.features.Landmarks.of(X)))
    problem = LandmarkProblem.of(sketch, 3, None, 0, "test")
    places = np.concatenate([X, np.random.default_rng(2).normal(size=(200, 2))])

    f = problem.correlation(problem.z)

    np.testing.assert_allclose(f(places), density(X, places, 0.4), atol=1e-4)


def test_with_some_rows_it_is_the_density_projected_on_their_kernels():
    """The orthogonal projection in the space of the kernel, by NumPy's least squares."""
    X = np.random.default_rng(3).normal(size=(500, 2))
    landmarks = ss.features.Landmarks.draw(X, 12)
    L = landmarks.table.astype(np.float64)
    sketch = ss.sketch(X, ss.SketchSpec(2, 0, 0.7, landmarks=landmarks))
    problem = LandmarkProblem.of(sketch, 3, None, 0, "test")
    places = np.random.default_rng(4).normal(size=(50, 2))

    def kernels(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * 0.7**2))

    beta = np.linalg.lstsq(kernels(L, L), kernels(L, X).mean(axis=1), rcond=None)[0]

    values = problem.correlation(problem.z)(places)
    np.testing.assert_allclose(values, kernels(places, L) @ beta, atol=1e-5)
    np.testing.assert_allclose(problem.correlation(problem.z)(L), density(X, L, 0.7), atol=1e-5)


def test_products_of_atoms_are_the_projected_kernel(problem):
    """On a landmark exactly the kernel; elsewhere at most it, as a projection shortens."""
    L, C = problem.map.places, np.random.default_rng(5).normal(size=(30, 2))

    products = problem.map.atoms(C) @ problem.map.atoms(L).T

    np.testing.assert_allclose(products, problem.map.kernels(C), atol=1e-4)
    assert ((problem.map.atoms(C) ** 2).sum(axis=1) <= 1.0 + 1e-9).all()


def test_derivatives_agree_with_finite_differences(problem):
    C = np.random.default_rng(6).normal(size=(8, 2))
    f = problem.correlation(problem.z)

    np.testing.assert_allclose(
        f.value_and_gradient(C)[1], central_differences(f, C, 1e-5), atol=1e-7
    )
    by_hand = central_differences(lambda c: f.value_and_gradient(c)[1], C, 1e-5)
    np.testing.assert_allclose(f.hessian(C), by_hand, atol=1e-6)


def test_the_joint_descent_has_the_gradient_of_its_value(problem):
    objective, rng = problem.matching("none"), np.random.default_rng(7)
    x = objective.pack(rng.uniform(size=3), rng.normal(size=(3, 2)))

    def value(points):
        return np.array([objective.value_and_gradient(*objective.unpack(p, 3))[0] for p in points])

    _, *gradients = objective.value_and_gradient(*objective.unpack(x, 3))
    by_hand = central_differences(value, x[None], 1e-6)[0]
    np.testing.assert_allclose(objective.pack(*gradients), by_hand, atol=1e-7)
    direct = problem.z.real - x[:3] @ problem.map.atoms(x[3:].reshape(3, 2))
    assert value(x[None])[0] == pytest.approx(direct @ direct, abs=1e-12)


@pytest.mark.parametrize("refine", [False, True])
def test_sketch_and_shift_finds_clusters_from_landmarks(refine):
    sketch = sketch_of(clusters())

    decoding = ss.SketchAndShift(n_initializations=100, refine=refine)(sketch, 3)

    found = match_centroids(CENTRES, decoding.centroids)
    atol = 0.03 if refine else 0.06  # clusters have a width of 0.05
    np.testing.assert_allclose(decoding.centroids[found], CENTRES, atol=atol)
    np.testing.assert_allclose(decoding.weights[found], SHARES, atol=atol)
    assert 0.0 < decoding.residual_norm < 0.3


def test_fewer_distinct_rows_than_clusters_are_found_as_they_are():
    sketch = ss.sketch(
        np.repeat(CENTRES, [5, 3, 2], axis=0),
        ss.SketchSpec(2, 0, 0.3, landmarks=ss.features.Landmarks.of(clusters(40))),
    )

    decoding = ss.SketchAndShift(n_initializations=50, refine=True)(sketch, 3)

    found = match_centroids(CENTRES, decoding.centroids)
    np.testing.assert_allclose(decoding.centroids[found], CENTRES, atol=1e-2)
    np.testing.assert_allclose(decoding.weights[found], SHARES, atol=1e-2)


@pytest.mark.parametrize("offset", [2.0**17, 2.0**20])
def test_clusters_far_from_the_center_are_found_as_near_ones(offset):
    """Rows in steps of 1/8, which float32 holds there: the integers are the same ones."""
    X = np.round(8.0 * clusters(500)) / 8.0
    bandwidth = 0.25

    def centroids(rows):
        spec = ss.SketchSpec(2, 0, bandwidth, landmarks=ss.features.Landmarks.draw(rows, 100))
        return ss.SketchAndShift(n_initializations=50)(ss.sketch(rows, spec), 3).centroids

    near, far = centroids(X), centroids(X + offset)

    np.testing.assert_allclose(far - offset, near, atol=0.01 * bandwidth)


def test_landmarks_that_are_equal_or_one_have_a_map():
    one = LandmarkMap.of(np.zeros((1, 2)), 0.5)
    equal = LandmarkMap.of(np.zeros((4, 2)), 0.5)

    np.testing.assert_allclose(one.atoms(np.zeros((1, 2))), [[1.0]])
    assert equal.root.shape == (4, 1)


def test_what_needs_waves_says_so():
    sketch = sketch_of(clusters(500))

    with pytest.raises(ss.errors.DataError, match=r"needs waves or cells.*ss\.SketchAndShift"):
        ss.decode(sketch, 3)
    decoding = ss.SketchAndShift(n_initializations=50)(sketch, 3)
    with pytest.raises(ss.errors.DataError, match="shares needs waves or cells"):
        ss.decoders.shares(decoding, sketch)
    with pytest.raises(ss.errors.SpecError, match="this sketch has landmarks and no frequencies"):
        ss.SketchAndShift(fitted_model="gaussian")(sketch, 3)
    with pytest.raises(ss.errors.SpecError, match="must be a Sketch with landmarks"):
        LandmarkProblem.of(ss.sketch(np.eye(2), ss.SketchSpec(2, 5, 0.5)), 1, None, 0, "here")


def test_landmarks_that_no_row_is_near_are_named():
    spec = ss.SketchSpec(2, 0, 0.2, landmarks=ss.features.Landmarks.of([[50.0, 0.0]]))

    with pytest.raises(ss.errors.DataError, match="no row is near a landmark"):
        ss.SketchAndShift()(ss.sketch(clusters(100), spec), 3)
