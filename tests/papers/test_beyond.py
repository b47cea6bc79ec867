"""Beyond the paper: predictions against brute force, and files whose claims can be measured."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders import CorrelationFunction, Mixture
from sketchshift_papers import load_figure
from sketchshift_papers.contenders import Cell, measure
from sketchshift_papers.datasets import make_data
from sketchshift_papers.definition import _contender, _dataset
from sketchshift_papers.looks import (
    Hills,
    chance_of_hiding,
    density_of_maxima,
    expected_highest,
    mean_edge,
)
from sketchshift_papers.pictures import lines_of

FOLDER = Path(__file__).parents[2] / "papers" / "beyond"
EQUAL = ("integers", "bytes")
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))


def dataset(kind, n_clusters, domain=None, **options):
    entry = {"name": "made", "kind": kind, "k": n_clusters, "domain": domain, "options": options}
    return make_data(_dataset(entry))


def look(kind, data, m, sigma, *, seed=0, n_initializations=None, **options):
    z = ss.sketch(data.X, ss.SketchSpec(data.n_features, m, sigma, seed=seed), n_threads=1)
    contender = _contender({"name": kind, "kind": kind, "options": options})
    return measure(contender, n_initializations, Cell(data, z, seed, 1.0))


# The files.


def test_there_are_eight_open_problems():
    assert len(NAMES) == 8
    numbers = [claim.number for name in NAMES for claim in load_figure(name, FOLDER).claims]

    assert len(set(numbers)) == len(numbers)
    assert {number.split(".")[0] for number in numbers} == {f"O{i}" for i in range(1, 9)}


# Noise peaks.


def field_on_a_line(rng, n_waves=400):
    """A nearly Gaussian field of variance 1 and covariance exp(-h^2 / 2), at places of a line."""
    frequencies, phases = rng.standard_normal(n_waves), rng.uniform(0, 2 * np.pi, n_waves)
    x = np.arange(0.0, 400.0, 0.1)
    return math.sqrt(2 / n_waves) * np.cos(np.outer(x, frequencies) + phases).sum(axis=1)


def test_maxima_on_a_line_are_as_many_as_kac_and_rice_say():
    """By counting: 40 fields of length 400, some 4,400 maxima; four deviations are 5 percent."""
    rng = np.random.default_rng(0)
    heights = []
    for _ in range(40):
        f = field_on_a_line(rng)
        heights.append(f[1:-1][(f[1:-1] > f[:-2]) & (f[1:-1] > f[2:])])
    found = np.concatenate(heights)

    for u in (-9.0, 0.0, 1.0, 2.0):
        expected = 40 * 400 * float(density_of_maxima(u, 1))
        assert np.sum(found > u) == pytest.approx(expected, rel=0.05 if u < 2 else 0.2)


def test_maxima_in_the_plane_have_the_closed_form_in_all_and_that_of_euler_on_high():
    """1 / (2 sqrt(3) pi) in all (Longuet-Higgins); u exp(-u^2 / 2) / (2 pi)^(3/2) for high u."""
    euler = 5.0 * math.exp(-12.5) / (2 * math.pi) ** 1.5

    assert float(density_of_maxima(-12.0, 2)) == pytest.approx(1 / (2 * math.sqrt(3) * math.pi))
    assert float(density_of_maxima(5.0, 2)) == pytest.approx(euler, rel=1e-3)


def test_maxima_in_the_plane_above_a_level_agree_with_random_matrices():
    """Kac-Rice by drawing values and Hessians; 200,000 draws are good for one percent."""
    rng = np.random.default_rng(1)
    x, (a, b, c) = rng.standard_normal(200_000), rng.standard_normal((3, 200_000))
    highest = a + np.hypot(b, c)  # largest eigenvalue of G
    determinant = (x - a) ** 2 - b**2 - c**2
    for u in (-12.0, 0.0, 1.5):
        drawn = np.mean(determinant * ((x > highest) & (x > u))) / (2 * math.pi)
        assert float(density_of_maxima(u, 2)) == pytest.approx(drawn, rel=0.03)


def test_the_highest_peak_grows_with_the_volume_and_has_its_mean_on_a_line():
    rng = np.random.default_rng(2)
    highest = np.mean([field_on_a_line(rng).max() for _ in range(60)])

    assert expected_highest(400.0, 1) == pytest.approx(highest, abs=0.2)
    assert expected_highest(4000.0, 2) > expected_highest(400.0, 2)


def test_noise_far_from_the_rows_is_that_of_the_field():
    data = dataset("separated", 3, (-1, 1), n_samples=3000)
    found = [look("noise", data, 200, 0.1, seed=seed) for seed in range(8)]

    def mean(name):
        return np.mean([measures[name] for measures in found])

    assert mean("variance_ratio") == pytest.approx(1.0, abs=0.15)
    assert mean("energy_ratio") == pytest.approx(1.0, abs=0.15)
    assert mean("maxima_ratio") == pytest.approx(1.0, abs=0.15)
    assert mean("highest") == pytest.approx(mean("predicted_highest"), abs=0.5)


def test_fewer_frequencies_and_narrower_kernels_hide_clusters():
    def chance(m, sigma):
        return chance_of_hiding(Hills(2, 3, m, 10_000, sigma, 0.05), 4.0)

    assert chance(30, 0.03) > 0.5 > 0.3 > chance(30, 0.1) > chance(100, 0.1)
    assert chance(1000, 0.05) < 1e-3


# Covariances.


def test_the_error_of_the_curvature_is_that_of_random_frequencies():
    """By drawing frequencies for the exact characteristic function of one Gaussian: no rows."""
    d, std, sigma, m = 3, 0.1, 0.15, 400
    rng = np.random.default_rng(0)
    width = std**2 + sigma**2
    squares = []
    for _ in range(300):
        W = rng.standard_normal((m, d)) / sigma
        phi = np.exp(-0.5 * std**2 * (W**2).sum(axis=1))
        H = (W.T * phi) @ W / phi.sum()
        squares.append(((width * H - np.eye(d)) ** 2).sum() / d)
    hills = Hills(d, 1, m, 10**12, sigma, std)

    assert hills.curvature_error**2 == pytest.approx(np.mean(squares), rel=0.15)


def test_the_rate_in_m_is_minus_one_half_and_the_error_grows_with_d():
    def error(m, d):
        return Hills(d, 2, m, 10**12, 0.2, 0.1).covariance_error

    assert error(40_000, 5) == pytest.approx(error(400, 5) / 10)
    assert error(400, 2) < error(400, 5) < error(400, 20)


def test_covariances_of_a_sketch_are_off_by_what_is_predicted():
    data = dataset("mixture", 1, n_samples=5000, d=4, k=1, std=0.1)
    found = [look("covariances", data, 400, 0.1, seed=seed) for seed in range(25)]

    assert np.mean([f["curvature_ratio"] for f in found]) == pytest.approx(1.0, abs=0.3)
    assert np.mean([f["definite"] for f in found]) > 0.9


def test_the_edge_of_random_matrices_is_known_for_two_and_for_many():
    """For two, the mean of a Rayleigh variable; for many, Tracy and Widom."""
    assert mean_edge(2) == pytest.approx(math.sqrt(math.pi / 2), abs=0.1)
    assert mean_edge(50) == pytest.approx(2 * math.sqrt(50) - 1.2065 * 50 ** (-1 / 6), rel=0.02)


# Convergence.


def plain_shifts(f, c, sigma, n):
    for _ in range(n):
        values, gradients = f.value_and_gradient(c)
        c = c + sigma**2 * gradients / values[:, None]
    return c


@pytest.mark.parametrize(("stretch", "attracts"), [(1.3, True), (1.5, False)])
def test_a_wave_attracts_mean_shift_just_where_the_eigenvalue_is_above_minus_two(stretch, attracts):
    """f(c) = cos(w c) has the eigenvalue -(sigma w)^2 at its maximum: -1.69, or -2.25."""
    sigma = 1.0
    turns = np.array([[stretch / sigma / (2 * np.pi)]], dtype=np.float32)
    f = CorrelationFunction(turns, np.ones(1))
    c = plain_shifts(f, np.array([[0.01]]), sigma, 40)

    assert (abs(c[0, 0]) < 0.01) == attracts


def test_mean_shift_on_a_kernel_density_never_has_an_eigenvalue_below_minus_one():
    """A sketch of very many frequencies of a few points: I + sigma^2 Hess f / f is a covariance."""
    rng = np.random.default_rng(3)
    points = rng.uniform(-1, 1, (6, 2))
    turns = (rng.standard_normal((2, 200_000)) / 0.4 / (2 * np.pi)).astype(np.float32)
    f = CorrelationFunction(turns, Mixture(np.full(6, 1 / 6), points).sketch(turns))
    c = plain_shifts(f, points, 0.4, 200)
    eigenvalues = np.linalg.eigvalsh(0.16 * f.hessian(c) / f(c)[:, None, None])

    assert eigenvalues.min() > -1.1  # five deviations of 1 / sqrt(m), on either side
    assert eigenvalues.max() < 0.1


def test_the_condition_says_which_maxima_attract():
    data = dataset("separated", 3, (-1, 1), n_samples=2000)
    found = look("convergence", data, 60, 0.1, n_initializations=40)

    assert found["agreement"] >= 0.95
    assert found["fell_where_safe"] <= 0.01 < found["fell_where_sharp"]


# Decoders of other plans, samples and times.

SHIFT = {"decoder": "sketch_and_shift", "constants": {"n_initializations": 20, "refine": True}}


@pytest.mark.parametrize(
    "options",
    [
        {"law": "adapted_radius"},
        {"spread": 3.0},
        {"planned": "waves"},
        {"planned": "cells", "own_size": True},
        {"decoder": "sketch_and_shift", "constants": {"n_initializations": 20}},
        {"law": "leverage"},
        {"landmarks": "integers", **SHIFT},
        {"landmarks": "bytes", **SHIFT},
    ],
)
def test_other_sketches_of_the_same_data_are_decoded(options):
    data = dataset("separated", 3, (-1, 1), n_samples=2000)
    found = look("decoding", data, 100, 0.3, **options)

    assert found["mse"] < 3 * ss.metrics.mse(data.X, data.means)
    assert found["rse"] == found["mse"]  # the reference was 1


def test_a_look_is_left_out_where_it_is_not_asked_for():
    data = dataset("separated", 3, (-1, 1), n_samples=500)

    for limits in ({"at": 0.2}, {"most_clusters": 2}, {"least_features": 3}, {"most_features": 1}):
        assert set(look("decoding", data, 50, 0.3, **limits)) == {"seconds"}


def test_a_sample_has_as_many_numbers_as_the_sketch():
    data = dataset("separated", 3, (-1, 1), n_samples=2000)

    assert look("sample", data, 100, 0.3)["numbers"] == 200


def test_landmarks_have_as_many_integers_or_bytes_as_waves():
    """A file has 8 bytes an integer, and 4 a coordinate of a place (docs/format.md)."""
    data, m = dataset("six_dimensions", 3, n_samples=500), 60

    n, fewer = (look("decoding", data, m, 0.3, landmarks=e, **SHIFT)["numbers"] for e in EQUAL)

    assert n == 2 * m == look("decoding", data, m, 0.3)["numbers"]
    assert fewer * (8 + 4 * 6) <= 2 * m * 8 < (fewer + 1) * (8 + 4 * 6)
    with pytest.raises(ss.errors.DataError, match=r"equal 'weight'\. Use 'integers' or 'bytes'"):
        look("decoding", data, m, 0.3, landmarks="weight", **SHIFT)


def test_landmarks_whose_kernels_reach_no_start_have_the_error_of_the_mean():
    data = dataset("six_dimensions", 3, n_samples=500)
    found = look("decoding", data, 10, 1e-3, landmarks="integers", **SHIFT)

    assert found["mse"] == pytest.approx(data.X.var(axis=0).sum(), rel=1e-9)


def test_times_have_slopes():
    data = dataset("separated", 3, (-1, 1), n_samples=100)
    found = look("time", data, 10, 0.3, part="sketch", along="N", values=[500, 1000, 2000])

    assert set(found) == {"seconds", "slope", "first", "last"}
    with pytest.raises(ss.errors.DataError, match="no part 'nap' to time"):
        look("time", data, 10, 0.3, part="nap", along="N", values=[1])


# Data and pictures.


def test_data_in_units_of_the_bandwidth_have_bandwidth_one():
    data = dataset("in_bandwidths", 4, of="mixture", k=4, n_samples=2000, d=3, uneven=True)

    assert ss.decoders.bandwidth(data.X, n_clusters=4) == pytest.approx(1.0, rel=1e-6)


def test_clusters_on_a_grid_are_where_they_are_said_to_be():
    data = dataset("grid", 9, side=3, rows_per_cluster=50)

    assert data.X.shape == (450, 2)
    assert ss.metrics.mse(data.X, data.means) == pytest.approx(2 * 0.15**2, rel=0.2)


def test_lines_are_means_over_realizations_in_the_order_of_the_axis():
    rows = [
        {"decoder": "a", "m": m, "error": m + seed, "seed": seed}
        for m in (30, 10)
        for seed in (0, 2)
    ]
    panel = {"x": "m", "y": "error", "by": "decoder", "of": {"decoder": ["a", "b"]}}

    assert lines_of(panel, rows) == {("a", "error"): [(10, 11.0), (30, 31.0)]}
    assert lines_of({**panel, "of": {"decoder": "b"}}, rows) == {}
