from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.frequencies import (
    FAR,
    LAWS,
    _bandwidths,
    draw_frequencies,
    padded_size,
    register_law,
)
from sketchshift_papers.leverage import most_saturation

# Kolmogorov-Smirnov tests below have a fixed seed; another would fail with probability 1e-4


def omegas(*args, **options):
    """Frequencies in radians, shape (d, m)."""
    return 2 * math.pi * draw_frequencies(*args, **options).turns.astype(np.float64)


def cdf_of(log_density, low, high):
    """By numerical integration on a grid of 1e5 cells around the lengths that occur."""
    grid = np.linspace(max(1e-9, low), high, 100_001)
    logs = log_density(grid)
    cumulative = scipy.integrate.cumulative_trapezoid(np.exp(logs - logs.max()), grid, initial=0)
    return lambda radii: np.interp(radii, grid, cumulative / cumulative[-1])


def adapted_cdf(d):
    """Of sqrt(R^2 + R^4 / 4) exp(-R^2 / 2)."""
    return cdf_of(lambda R: 0.5 * np.log(R**2 + R**4 / 4) - R**2 / 2, 0, 12)


def leverage_cdf(d):
    """Of p / (p + nu) over spheres, nu the ridge of the usual saturation."""
    s, root = math.sqrt(math.log(2) * d + 1), math.sqrt(d)
    return cdf_of(
        lambda R: (d - 1) * np.log(R) - np.logaddexp(0, (R**2 - s**2) / 2), root - 9, root + 9
    )


CDFS = {
    "gaussian": lambda d: scipy.stats.chi(d).cdf,
    "folded_gaussian": lambda d: scipy.stats.halfnorm.cdf,
    "adapted_radius": adapted_cdf,
    "leverage": leverage_cdf,
}


@pytest.mark.parametrize("law", list(LAWS))
def test_lengths_follow_their_law(law):
    """R = bandwidth |omega|: chi_d, |N(0, 1)|, or the adapted radius (Keriven et al. 2018).

    40 000 lengths show a distance of 0.011: mixing the adapted law 3 : 1 gives 0.018.
    """
    for d, m, bandwidth in ((1, 5000, 3.0), (2, 40_000, 3.0), (64, 5000, 0.25)):
        radii = bandwidth * np.linalg.norm(
            omegas(d, m, (bandwidth, bandwidth), law=law, seed=2), axis=0
        )

        assert scipy.stats.kstest(radii, CDFS[law](d)).pvalue > 1e-4


@pytest.mark.parametrize("structured", [False, True])
def test_directions_are_uniform(structured):
    """The mean of phi phi^T is I / d: entries have standard deviation below sqrt(2 / m) / d.

    Within six of them: another seed would fail with probability 2080 * 2e-9.
    """
    d, m = 64, 6400
    omega = omegas(d, m, (1.0, 1.0), law="leverage", seed=4, structured=structured)

    phi = omega / np.linalg.norm(omega, axis=0)

    assert_allclose(phi @ phi.T / m, np.eye(d) / d, atol=6 * math.sqrt(2 / m) / d)
    assert_allclose(phi.mean(axis=1), 0, atol=6 / math.sqrt(m * d))


def test_a_share_of_bandwidths_lies_beyond_the_range():
    """15 % in [high, 100 high], log-uniform like those within; the count within five deviations.

    Another seed would fail with probability 6e-7 + 2e-4.
    """
    low, high, n, share = 0.2, 7.0, 20_000, 0.15
    s = _bandwidths(6, np.arange(n), (low, high), share)

    far, near = s[s > high], s[s <= high]

    assert abs(len(far) - share * n) <= 5 * math.sqrt(share * (1 - share) * n)
    for values, start, factor in ((near, low, high / low), (far, high, FAR)):
        law = scipy.stats.uniform(math.log(start), math.log(factor))
        assert start <= values.min() <= values.max() <= start * factor
        assert scipy.stats.kstest(np.log(values), law.cdf).pvalue > 1e-4


@settings(max_examples=15)
@given(
    st.integers(1, 300),
    st.integers(0, 2**64 - 1),
    st.sampled_from(list(LAWS)),
    st.sampled_from([(0.3, 0.3), (0.1, 9.0)]),
    st.booleans(),
)
def test_the_first_frequencies_do_not_depend_on_how_many(m, seed, law, bandwidth, structured):
    """A sketch of size m holds those of all smaller sizes: equal to the bit."""
    beyond = 0.3 if bandwidth[0] < bandwidth[1] else 0.0
    options = {"law": law, "seed": seed, "structured": structured, "beyond": beyond}

    few, many = (draw_frequencies(70, size, bandwidth, **options) for size in (m, 300))

    assert few.turns.tobytes() == many.turns[:, :m].tobytes()


def test_drawing_in_blocks_changes_nothing():
    """9000 frequencies of this law pass the block in which random numbers are held."""
    options = {"law": "adapted_radius", "seed": 8, "beyond": 0.1}

    many, few = (draw_frequencies(2, m, (1.0, 2.0), **options).turns for m in (9000, 10))

    assert many[:, :10].tobytes() == few.tobytes()
    assert len(np.unique(many, axis=1).T) == 9000


def test_structured_frequencies_written_out_are_the_matrix_product():
    """S H D1 H D2 H D3 with scipy's Hadamard matrix, the first d columns; rounded once."""
    d = 100
    structure = draw_frequencies(d, 200, (1.0, 1.0), seed=10, structured=True).structure

    H = scipy.linalg.hadamard(128)
    blocks = [H @ np.diag(c) @ H @ np.diag(b) @ H @ np.diag(a) for a, b, c in structure.signs]
    expected = np.concatenate(blocks)[:200, :d] * structure.radii[:, None].astype(np.float64)

    assert_array_equal(structure.turns, expected.T.astype(np.float32))


def test_no_frequency_is_longer_than_the_largest():
    """The bound on phases; within float32's rounding of what is written out, and not slack."""
    for structured, d in ((False, 1), (False, 70), (True, 64), (True, 100)):
        frequencies = draw_frequencies(d, 300, (0.1, 5.0), seed=15, structured=structured)

        lengths = np.linalg.norm(frequencies.turns.astype(np.float64), axis=0)

        assert lengths.max() <= frequencies.largest * (1 + 1e-7)
        assert lengths.max() >= frequencies.largest * math.sqrt(d / padded_size(d)) * 0.8


GOLDEN = {
    "dense": (3, 20, (0.3, 0.3), {"seed": 7}, "55303b24c7bb7f1f197b7a4338d3ab17"),
    "leverage": (
        3,
        20,
        (0.3, 0.3),
        {"seed": 7, "law": "leverage"},
        "546e4fab5ab1b45d29c8f4072e27af00",
    ),
    "structured": (
        70,
        200,
        (0.3, 5.0),
        {"seed": 7, "structured": True, "beyond": 0.2, "law": "adapted_radius"},
        "687013ed50644542fd125aa1f26b0202",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_frequencies_never_change(name):
    """Golden: the bytes that go into every fingerprint."""
    d, m, bandwidth, options, expected = GOLDEN[name]

    content = draw_frequencies(d, m, bandwidth, **options).to_bytes()

    assert hashlib.blake2b(content, digest_size=16).hexdigest() == expected


def test_a_law_can_be_added_and_keeps_its_name():
    """What was drawn under it must be drawn again the same."""
    register_law("unit", lambda seed, j, g: np.ones(len(j)))
    spec = SketchSpec(64, 50, 0.5, law="unit", structured=True)

    lengths = np.linalg.norm(2 * math.pi * spec.frequencies.turns.astype(np.float64), axis=0)

    assert_allclose(lengths, 2.0, rtol=1e-6)
    assert SketchSpec.from_json(spec.to_json()) == spec
    for name, radius, message in (
        ("gaussian", np.ones, "'name' parameter of register_law must be a name that no"),
        ("other", 1.0, "'radius' parameter of register_law must be a function"),
    ):
        with pytest.raises(SpecError, match=message):
            register_law(name, radius)
    with pytest.raises(SpecError, match=r"'law' parameter of SketchSpec must be .*'unit'"):
        SketchSpec(2, 50, 0.5, law="other")


def test_weights_are_the_gaussian_density_over_that_of_the_law():
    """With nu = p(s), a density q in proportion to p / (p + nu) has p / q = A (1 + p / nu).

    A is the mean of nu / (p + nu) under p, here by the chi density on a grid of 1e5 cells.
    """
    for d, share in ((1, 1.0), (1, 0.0), (2, 0.6), (10, 0.0), (10, 1.0), (200, 0.6)):
        s = share * most_saturation(d)
        frequencies = draw_frequencies(d, 500, (1.0, 1.0), law=f"leverage({s!r})", seed=21)
        R = 2 * math.pi * np.linalg.norm(frequencies.turns.astype(np.float64), axis=0)

        grid = np.linspace(max(0.0, math.sqrt(d) - 10), math.sqrt(d) + 12, 100_001)
        density = scipy.stats.chi(d).pdf(grid)
        A = np.trapezoid(density / (1 + np.exp((s * s - grid**2) / 2)), grid)

        expected = A * (1 + np.exp((s * s - R * R) / 2))
        assert_allclose(frequencies.weights, expected, rtol=1e-5)
