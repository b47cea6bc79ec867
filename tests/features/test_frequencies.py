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

from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.frequencies import (
    FAR,
    LAWS,
    MIN_FEATURES,
    _bandwidths,
    draw_frequencies,
    draw_signs,
    most_saturation,
    padded_size,
    register_law,
)
from sketchshift.kernels import BITS, select_kernel

# Kolmogorov-Smirnov tests below have a fixed seed; another would fail with probability 1e-4


def omegas(*args, **options):
    """Frequencies in radians, shape (d, m)."""
    return 2 * math.pi * draw_frequencies(*args, **options).turns.astype(np.float64)


def adapted_cdf(radii):
    """By numerical integration of sqrt(R^2 + R^4 / 4) exp(-R^2 / 2) on a grid of 1e5 cells."""
    grid = np.linspace(0, 12, 100_001)
    density = np.sqrt(grid**2 + grid**4 / 4) * np.exp(-(grid**2) / 2)
    cumulative = scipy.integrate.cumulative_trapezoid(density, grid, initial=0)
    return np.interp(radii, grid, cumulative / cumulative[-1])


def leverage_cdf(d):
    """By numerical integration of p / (p + nu) over spheres, nu the ridge of the usual saturation.

    On a grid of 1e5 cells around the lengths that occur; in logarithms, as R^(d - 1) overflows.
    """
    s = math.sqrt(math.log(2) * d + 1)
    grid = np.linspace(max(1e-9, math.sqrt(d) - 9), math.sqrt(d) + 9, 100_001)
    logs = (d - 1) * np.log(grid) - np.logaddexp(0, (grid**2 - s**2) / 2)
    density = np.exp(logs - logs.max())
    cumulative = scipy.integrate.cumulative_trapezoid(density, grid, initial=0)
    return lambda radii: np.interp(radii, grid, cumulative / cumulative[-1])


CDFS = {
    "gaussian": lambda d: scipy.stats.chi(d).cdf,
    "folded_gaussian": lambda d: scipy.stats.halfnorm.cdf,
    "adapted_radius": lambda d: adapted_cdf,
    "leverage": leverage_cdf,
}


def test_every_law_is_tested():
    assert set(CDFS) == set(LAWS)


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("law", CDFS)
def test_lengths_follow_their_law(law, structured):
    """R = bandwidth |omega|: chi_d, |N(0, 1)|, or the adapted radius (Keriven et al. 2018)."""
    omega = omegas(64, 5000, 0.25, law=law, seed=1, structured=structured)

    radii = 0.25 * np.linalg.norm(omega, axis=0)

    assert scipy.stats.kstest(radii, CDFS[law](64)).pvalue > 1e-4


@pytest.mark.parametrize(("d", "m"), [(1, 5000), (2, 40_000), (3, 5000)])
@pytest.mark.parametrize("law", CDFS)
def test_lengths_follow_their_law_in_low_dimension(law, d, m):
    """40 000 lengths show a distance of 0.011: mixing the adapted law 3 : 1 gives 0.018."""
    omega = omegas(d, m, 3.0, law=law, seed=2)

    radii = 3.0 * np.linalg.norm(omega, axis=0)

    assert scipy.stats.kstest(radii, CDFS[law](d)).pvalue > 1e-4


def test_gaussian_frequencies_have_normal_components():
    """The paper's law: omega ~ N(0, I / bandwidth^2), each component by itself."""
    omega = omegas(4, 20_000, 0.5, seed=3)

    for component in omega:
        assert scipy.stats.kstest(0.5 * component, "norm").pvalue > 1e-4


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("law", CDFS)
def test_directions_are_uniform(law, structured):
    """The mean of phi phi^T is I / d: entries have standard deviation below sqrt(2 / m) / d.

    Within six of them: another seed would fail with probability 2080 * 2e-9.
    """
    d, m = 64, 6400
    omega = omegas(d, m, 1.0, law=law, seed=4, structured=structured)

    phi = omega / np.linalg.norm(omega, axis=0)

    np.testing.assert_allclose(phi @ phi.T / m, np.eye(d) / d, atol=6 * math.sqrt(2 / m) / d)
    np.testing.assert_allclose(phi.mean(axis=1), 0, atol=6 / math.sqrt(m * d))


def test_bandwidths_of_a_range_are_log_uniform():
    """KS on log s: uniform between log low and log high."""
    s = _bandwidths(5, np.arange(20_000), (0.2, 7.0), 0.0)

    assert s.min() >= 0.2
    assert s.max() <= 7.0
    law = scipy.stats.uniform(math.log(0.2), math.log(7.0 / 0.2))
    assert scipy.stats.kstest(np.log(s), law.cdf).pvalue > 1e-4


def test_a_share_of_bandwidths_lies_beyond_the_range():
    """15 % in [high, 100 high], log-uniform; the binomial count within five deviations.

    Another seed would fail with probability 6e-7 + 2e-4.
    """
    low, high, share, n = 0.2, 7.0, 0.15, 20_000
    s = _bandwidths(6, np.arange(n), (low, high), share)

    far, near = s[s > high], s[s <= high]

    assert abs(len(far) - share * n) < 5 * math.sqrt(share * (1 - share) * n)
    assert s.max() <= FAR * high
    beyond = scipy.stats.uniform(math.log(high), math.log(FAR))
    within = scipy.stats.uniform(math.log(low), math.log(high / low))
    assert scipy.stats.kstest(np.log(far), beyond.cdf).pvalue > 1e-4
    assert scipy.stats.kstest(np.log(near), within.cdf).pvalue > 1e-4


def test_one_bandwidth_is_the_same_for_all():
    np.testing.assert_array_equal(_bandwidths(0, np.arange(5), 0.3, 0.0), 0.3)


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("law", CDFS)
def test_a_bandwidth_divides_the_frequencies(law, structured):
    """Omega at bandwidth 4 is a quarter of omega at bandwidth 1: powers of two, so exactly."""
    options = {"law": law, "seed": 7, "structured": structured}

    wide, narrow = (draw_frequencies(64, 50, s, **options).turns for s in (4.0, 1.0))

    np.testing.assert_array_equal(4 * wide, narrow)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 300),
    st.integers(0, 2**64 - 1),
    st.sampled_from(sorted(CDFS)),
    st.sampled_from([0.3, (0.1, 9.0)]),
    st.booleans(),
)
def test_the_first_frequencies_do_not_depend_on_how_many(m, seed, law, bandwidth, structured):
    """A sketch of size m holds those of all smaller sizes: equal to the bit."""
    far_share = 0.3 if isinstance(bandwidth, tuple) else 0.0
    options = {"law": law, "seed": seed, "structured": structured, "far_share": far_share}

    few = draw_frequencies(70, m, bandwidth, **options)
    many = draw_frequencies(70, 300, bandwidth, **options)

    assert few.turns.tobytes() == many.turns[:, :m].tobytes()
    if structured:
        blocks = len(few.structure.signs)
        np.testing.assert_array_equal(few.structure.signs, many.structure.signs[:blocks])
        np.testing.assert_array_equal(few.structure.radii, many.structure.radii[:m])


@pytest.mark.parametrize("law", CDFS)
def test_drawing_in_blocks_changes_nothing(law):
    """9000 frequencies pass the block in which random numbers are held."""
    options = {"law": law, "seed": 8, "far_share": 0.1}

    many = draw_frequencies(2, 9000, (1.0, 2.0), **options)

    few = draw_frequencies(2, 10, (1.0, 2.0), **options)
    assert many.turns[:, :10].tobytes() == few.turns.tobytes()
    assert len(np.unique(many.turns, axis=1).T) == 9000


def test_other_seeds_and_laws_give_other_frequencies():
    drawn = [
        draw_frequencies(64, 64, 1.0, seed=seed, law=law, structured=structured).turns.tobytes()
        for seed in (0, 1, 2**32)
        for law in LAWS
        for structured in (False, True)
    ]

    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize(("structured", "d"), [(False, 10), (True, 64), (True, 100)])
def test_frequencies_estimate_the_gaussian_kernel(structured, d):
    """Bochner: the mean of cos<omega, x - y> is exp(-|x - y|^2 / (2 bandwidth^2)).

    To 4 / sqrt(m) for 20 pairs: the cosines' deviation is at most 0.71, so another seed would
    fail with probability 20 * 2e-8.
    """
    m, bandwidth = 4000, 1.5
    omega = omegas(d, m, bandwidth, seed=9, structured=structured)
    differences = np.random.default_rng(0).normal(size=(20, d))
    differences *= (np.linspace(0, 4, 20) / np.linalg.norm(differences, axis=1))[:, None]

    estimate = np.cos(differences @ omega).mean(axis=1)

    kernel = np.exp(-(differences**2).sum(axis=1) / (2 * bandwidth**2))
    np.testing.assert_allclose(estimate, kernel, atol=4 / math.sqrt(m))


@pytest.mark.parametrize("d", [64, 100])
def test_structured_frequencies_written_out_are_the_matrix_product(d):
    """S H D1 H D2 H D3 with scipy's Hadamard matrix, the first d columns; rounded once."""
    structure = draw_frequencies(d, 200, 1.0, seed=10, structured=True).structure
    size = padded_size(d)

    H = scipy.linalg.hadamard(size)
    blocks = [H @ np.diag(c) @ H @ np.diag(b) @ H @ np.diag(a) for a, b, c in structure.signs]
    expected = np.concatenate(blocks)[:200, :d] * structure.radii[:, None].astype(np.float64)

    np.testing.assert_array_equal(structure.turns, expected.T.astype(np.float32))


@pytest.mark.parametrize("name", ["cpu", "reference"])
@pytest.mark.parametrize("d", [64, 100])
def test_structured_frequencies_written_out_are_those_of_the_kernel(name, d):
    """Rows alpha e_k have phases alpha turns_k: waves agree to 1.3 units and float32's 1e-6."""
    frequencies = draw_frequencies(d, 200, 1.0, seed=11, structured=True)
    structure = frequencies.structure
    accumulate = select_kernel(name).structured(structure.signs, structure.radii)

    for k in (0, 1, d // 2, d - 1):
        totals = np.zeros((2, 200), dtype=np.int64)
        row = 0.7 * np.eye(d)[k : k + 1]
        accumulate(row, np.ones(1, dtype=np.float32), totals)

        waves = np.exp(2j * np.pi * 0.7 * frequencies.turns[k].astype(np.float64))
        np.testing.assert_allclose(totals[0] * 2.0**-BITS, waves.real, rtol=0, atol=2e-6)
        np.testing.assert_allclose(totals[1] * 2.0**-BITS, waves.imag, rtol=0, atol=2e-6)


def test_directions_of_a_full_block_are_orthogonal():
    """H / sqrt(D) and signs are orthogonal matrices; float32 leaves 64 * 2**-24 = 4e-6."""
    turns = draw_frequencies(64, 128, 1.0, seed=12, structured=True).turns.astype(np.float64)

    for block in (turns[:, :64], turns[:, 64:]):
        phi = block / np.linalg.norm(block, axis=0)
        np.testing.assert_allclose(phi.T @ phi, np.eye(64), atol=4e-6)


@pytest.mark.parametrize("law", CDFS)
def test_structured_frequencies_have_the_lengths_of_the_dense_ones(law):
    """When d is a power of two, exactly up to float32: the radii are the same numbers."""
    dense, structured = (
        np.linalg.norm(omegas(128, 300, 0.5, law=law, seed=13, structured=s), axis=0)
        for s in (False, True)
    )

    np.testing.assert_allclose(structured, dense, rtol=1e-6)


def test_structured_frequencies_have_the_right_lengths_in_the_mean():
    """With d = 100 of D = 128 coordinates, |omega|^2 / R^2 has mean 1: exactly, over a block.

    Columns of an orthogonal matrix have length 1, so the d columns of a block sum up to d.
    """
    structure = draw_frequencies(100, 128, 1.0, seed=14, structured=True).structure
    radii = structure.radii.astype(np.float64) * 128 * math.sqrt(100)  # in turns

    squares = (structure.turns.astype(np.float64) ** 2).sum(axis=0) / radii**2

    assert squares.mean() == pytest.approx(1, abs=1e-6)
    assert squares.std() > 0.01


@pytest.mark.parametrize(("structured", "d"), [(False, 1), (False, 70), (True, 64), (True, 100)])
def test_no_frequency_is_longer_than_the_largest(structured, d):
    """The bound on phases; within float32's rounding of what is written out, and not slack."""
    frequencies = draw_frequencies(d, 300, (0.1, 5.0), seed=15, structured=structured)

    lengths = np.linalg.norm(frequencies.turns.astype(np.float64), axis=0)

    assert lengths.max() <= frequencies.largest * (1 + 1e-7)
    assert lengths.max() >= frequencies.largest * math.sqrt(d / padded_size(d)) * 0.8


@pytest.mark.parametrize(("d", "size"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128), (784, 1024)])
def test_points_are_padded_to_a_power_of_two(d, size):
    assert padded_size(d) == size


def test_signs_are_signs_of_their_own_in_each_block():
    signs = draw_signs(0, n_blocks=5, size=MIN_FEATURES)

    assert signs.shape == (5, 3, 64)
    assert signs.dtype == np.float32
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert len(np.unique(signs.reshape(15, 64), axis=0)) == 15


GOLDEN = {
    "dense": (3, 20, 0.3, {"seed": 7}, "55303b24c7bb7f1f197b7a4338d3ab17"),
    "leverage": (
        3,
        20,
        0.3,
        {"seed": 7, "law": "leverage"},
        "546e4fab5ab1b45d29c8f4072e27af00",
    ),
    "structured": (
        70,
        200,
        (0.3, 5.0),
        {"seed": 7, "structured": True, "far_share": 0.2, "law": "adapted_radius"},
        "687013ed50644542fd125aa1f26b0202",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_frequencies_never_change(name):
    """Golden: the bytes that go into every fingerprint."""
    d, m, bandwidth, options, expected = GOLDEN[name]

    content = draw_frequencies(d, m, bandwidth, **options).to_bytes()

    assert hashlib.blake2b(content, digest_size=16).hexdigest() == expected


def test_the_bytes_are_the_numbers_of_each_frequency_in_turn():
    """Little-endian float32, so that a prefix of the frequencies is a prefix of the bytes."""
    frequencies = draw_frequencies(3, 20, 0.3)
    numbers = np.frombuffer(frequencies.to_bytes(), dtype="<f4").reshape(20, 3)

    np.testing.assert_array_equal(numbers.T, frequencies.turns)


def test_the_bytes_of_a_structure_are_its_signs_and_radii():
    structure = draw_frequencies(64, 100, 0.3, structured=True).structure
    content = structure.to_bytes()

    signs = np.frombuffer(content[: 2 * 3 * 64], dtype=np.uint8).reshape(2, 3, 64)
    radii = np.frombuffer(content[2 * 3 * 64 :], dtype="<f4")

    np.testing.assert_array_equal(1.0 - 2.0 * signs, structure.signs)
    np.testing.assert_array_equal(radii, structure.radii)


@pytest.fixture
def unit_law():
    """Frequencies of one length, as somebody else might add them."""
    register_law("unit", lambda seed, j, g: np.ones(len(j)))
    yield "unit"
    del LAWS["unit"]


@pytest.mark.parametrize("structured", [False, True])
def test_a_law_can_be_added(unit_law, structured):
    spec = SketchSpec(64, 50, 0.5, law=unit_law, structured=structured)

    lengths = np.linalg.norm(2 * math.pi * spec.frequencies.turns.astype(np.float64), axis=0)

    np.testing.assert_allclose(lengths, 2.0, rtol=1e-6)
    assert SketchSpec.from_json(spec.to_json()) == spec


def test_a_law_keeps_its_name(unit_law):
    """What was drawn under it must be drawn again the same."""
    with pytest.raises(SpecError, match="'name' parameter of register_law must be a name that no"):
        register_law("gaussian", lambda seed, j, g: np.ones(len(j)))
    with pytest.raises(SpecError, match="'radius' parameter of register_law must be a function"):
        register_law("other", 1.0)
    with pytest.raises(SpecError, match=r"'law' parameter of SketchSpec must be .*'unit'"):
        SketchSpec(2, 50, 0.5, law="other")


@pytest.mark.parametrize(("structured", "d"), [(False, 1), (False, 3), (False, 10), (True, 64)])
@pytest.mark.parametrize("saturation", [None, 0.0, "most"])
def test_weights_give_frequencies_by_leverage_the_gaussian_kernel(structured, d, saturation):
    """E_q[w cos<omega, x - y>] = exp(-|x - y|^2 / (2 bandwidth^2)).

    The mean of m of them has a deviation of at most sqrt(E w^2 / m): 20 pairs within five.
    """
    m, bandwidth = 20_000, 1.5
    saturation = most_saturation(d) if saturation == "most" else saturation
    options = {"law": "leverage", "seed": 20, "structured": structured, "saturation": saturation}
    frequencies = draw_frequencies(d, m, bandwidth, **options)
    omega = 2 * math.pi * frequencies.turns.astype(np.float64)
    differences = np.random.default_rng(0).normal(size=(20, d))
    differences *= (np.linspace(0, 4, 20) / np.linalg.norm(differences, axis=1))[:, None]

    estimate = (np.cos(differences @ omega) * frequencies.weights).mean(axis=1)

    kernel = np.exp(-(differences**2).sum(axis=1) / (2 * bandwidth**2))
    error = math.sqrt((frequencies.weights**2).mean() / m)
    np.testing.assert_allclose(estimate, kernel, atol=5 * error)
    unweighted = np.cos(differences @ omega).mean(axis=1)
    if saturation is None and d < 10:  # another kernel, by more than chance
        assert np.abs(unweighted - kernel).max() > 8 * error


@pytest.mark.parametrize("d", [1, 2, 10, 200])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_weights_are_the_gaussian_density_over_that_of_the_law(d, share):
    """With nu = p(s), a density q in proportion to p / (p + nu) has p / q = A (1 + p / nu).

    A is the mean of nu / (p + nu) under p, here by the chi density on a grid of 1e6 cells.
    """
    s = share * most_saturation(d)
    frequencies = draw_frequencies(d, 500, 1.0, law="leverage", seed=21, saturation=s)
    R = 2 * math.pi * np.linalg.norm(frequencies.turns.astype(np.float64), axis=0)

    grid = np.linspace(max(0.0, math.sqrt(d) - 10), math.sqrt(d) + 12, 1_000_001)
    density = scipy.stats.chi(d).pdf(grid)
    A = np.trapezoid(density / (1 + np.exp((s * s - grid**2) / 2)), grid)

    np.testing.assert_allclose(
        frequencies.weights, A * (1 + np.exp((s * s - R * R) / 2)), rtol=1e-5
    )


def test_other_laws_have_no_weights():
    assert all(
        draw_frequencies(3, 5, 1.0, law=law).weights is None for law in set(LAWS) - {"leverage"}
    )


def test_a_small_ridge_draws_from_a_wider_ball():
    """The higher the saturation, the flatter the density, and the longer the frequencies."""
    lengths = [
        np.linalg.norm(omegas(4, 5000, 1.0, law="leverage", seed=22, saturation=s), axis=0).mean()
        for s in (0.0, 1.5, most_saturation(4))
    ]

    assert lengths == sorted(lengths)
    assert lengths[-1] > 1.2 * lengths[0]
