"""Whatever the sketch: a defined outcome or a clear error, never a NaN, never a warning."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.decoders import ClOmpr, Outcome, SketchAndShift
from sketchshift.decoders.gaussians import GaussianFit
from sketchshift.decoders.objective import Box
from sketchshift.decoders.points import draw_places
from sketchshift.errors import DataError, SpecError
from sketchshift.metrics import match_centroids
from sketchshift_papers.decoders import SlidingFrankWolfe

DECODERS = {
    "shift": SketchAndShift(n_initializations=100),
    "gaussian": SketchAndShift(n_initializations=100, fitted_model="gaussian", refine=True),
    "discretized": SketchAndShift(n_initializations=100, local_maximum="discretized"),
    "gradient": SketchAndShift(n_initializations=50, local_maximum="gradient_ascent"),
    "refined": SketchAndShift(n_initializations=100, starts="uniform", refine=True),
    "cl_ompr": ClOmpr(n_restarts=3),
    "sliding": SlidingFrankWolfe(n_initializations=100),
}


@pytest.fixture(params=DECODERS.values(), ids=DECODERS)
def decoder(request):
    return request.param


def check(decoding, k):
    """What every decoding promises."""
    n, d = decoding.centroids.shape
    assert decoding.weights.shape == (n,)
    assert n == k or (n < k and decoding.outcome is not Outcome.COMPLETE)
    assert np.isfinite(decoding.centroids).all()
    assert np.isfinite(decoding.residual_norm)
    assert (decoding.weights >= 0).all()
    assert n == 0 or decoding.weights.sum() == pytest.approx(1.0)
    assert (np.diff(decoding.weights) <= 0).all()
    if decoding.covariances is not None:
        assert decoding.covariances.shape == (n, d, d)
        least = np.linalg.eigvalsh(decoding.covariances).min()
        assert least >= -1e-9 * np.abs(decoding.covariances).max()


@pytest.mark.parametrize("name", ["shift", "refined", "gaussian", "cl_ompr", "sliding"])
@pytest.mark.parametrize("n", [1, 3])
def test_fewer_distinct_points_than_centroids(name, n):
    """As many centroids as points, at the points, with their shares of the rows."""
    points = np.array([(3.0, -1.0), (-2.0, 0.5), (0.5, 4.0)])[:n]
    counts = np.array([500, 300, 200])[:n]
    sketch = ss.sketch(np.repeat(points, counts, axis=0), ss.SketchSpec(2, 100, bandwidth=1.0))

    decoding = DECODERS[name](sketch, 5)

    check(decoding, 5)
    assert decoding.outcome is Outcome.EMPTY_RESIDUAL
    assert decoding.residual_norm < 1e-5
    order = match_centroids(points, decoding.centroids)
    assert_allclose(decoding.centroids[order], points, atol=1e-4)
    assert_allclose(decoding.weights[order], counts / counts.sum(), atol=1e-4)


SPECS = [
    (1, 1, {"bandwidth": 0.3}),
    (2, 100, {"bandwidth": 3e-4}),
    (2, 100, {"bandwidth": 300.0}),
    (64, 100, {"bandwidth": 3.0, "structured": True}),
    (2, 100, {"bandwidth": ss.features.Range(0.1, 3.0, 0.1)}),
    (2, 100, {"bandwidth": 0.3, "law": "folded_gaussian"}),
    (70, 1400, {"bandwidth": 3.0}),
]


@pytest.mark.parametrize("i", range(7))
def test_every_kind_of_spec_is_decoded_and_has_a_curve(i, rng):
    """Every spec meets two decoders of the paper, and every decoder two specs."""
    d, m, options = SPECS[i]
    X = rng.normal(size=(300, d)) * 0.1 + rng.integers(0, 2, size=(300, 1))
    sketch = ss.sketch(X, ss.SketchSpec(d, m, **options))

    for decoder in (list(DECODERS.values())[j] for j in (i, i - 1)):
        check(decoder(sketch, 3), 3)
    chosen = ss.decode(sketch, "auto", max_clusters=4)
    check(chosen, chosen.curve.chosen)
    assert np.isfinite(chosen.curve.score).all()
    assert chosen.curve.n_clusters[-1] <= 4
    assert d < 70 or chosen.curve.chosen == 2


def test_a_domain_is_in_the_units_of_the_data(decoder, rng):
    X = rng.normal(size=(500, 2)) * [10, 0.1] + [100, 3]
    sketch = ss.sketch(X, ss.SketchSpec(2, 80, 0.5, center=(100, 3), scale=(10, 0.1)))

    decoding = decoder(sketch, 2, domain=Box([100, 2.9], [110, 3.0]))

    check(decoding, 2)
    assert Box([99.9999, 2.9 - 1e-9], [110.0001, 3 + 1e-9]).contains(decoding.centroids).all()


def test_a_domain_where_the_correlation_is_negative_has_no_centroids():
    """The one point of the domain is half a turn away from all data."""
    sketch = ss.sketch(np.zeros((5, 1)), ss.SketchSpec(1, 1, 1.0))
    half_turn = 0.5 / float(sketch.frequencies.turns[0, 0])

    decoding = SketchAndShift()(sketch, 2, domain=Box([half_turn], [half_turn]))

    check(decoding, 2)
    assert decoding.centroids.shape == (0, 1)
    assert decoding.residual_norm == 1.0
    assert "the domain holds no data" in str(decoding.outcome)


def test_a_huge_domain_is_cut_to_what_rows_can_reach(decoder):
    sketch = ss.sketch(np.zeros((5, 1)), ss.SketchSpec(1, 20, 1.0))

    check(decoder(sketch, 1, domain=Box([-1e300], [1e300])), 1)
    with pytest.raises(SpecError, match="that rows of this sketch can lie in"):
        decoder(sketch, 1, domain=Box([1e299], [1e300]))


def test_wrong_arguments_are_refused(decoder):
    sketch = ss.sketch(np.zeros((5, 2)), ss.SketchSpec(2, 20, 1.0))

    for arguments, options, message in (
        ((sketch - sketch, 2), {}, "the sketch holds 0 rows.*Add rows of positive weight"),
        (([1, 2], 3), {}, r"of \w+ must be a Sketch or a PrivateSketch. Got \[1, 2"),
        ((sketch, 0), {}, "'n_clusters' .* must be an integer from 1 to 100000"),
        ((sketch, True), {}, "'n_clusters' .* must be an integer from 1 to 100000"),
        ((sketch, 1.5), {}, "'n_clusters' .* must be an integer from 1 to 100000"),
        ((sketch, 1), {"seed": -1}, r"'seed' parameter of (Sk\w+|ClOmpr|Sl\w+)"),
        ((sketch, 1), {"domain": Box([0], [1])}, "'domain' .* must be a Box of 2 columns"),
        ((sketch, 1), {"domain": ([0, 0], [1, 1])}, "'domain' .* must be a Box of 2 columns"),
    ):
        with pytest.raises((DataError, SpecError), match=message):
            decoder(*arguments, **options)


def test_points_are_drawn_from_all_gaussians_alike_where_none_explains_anything():
    """As of a sketch that is forged; NaN would then end in a traceback."""
    fit = GaussianFit(np.zeros(2), np.array([[0.0], [5.0]]), np.zeros((2, 1)))

    points = draw_places([fit], 100, 0).ravel().tolist()

    assert points.count(0.0) == points.count(5.0) == len(points) / 2
