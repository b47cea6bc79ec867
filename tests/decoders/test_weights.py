"""Non-negative weights: their optimality, and which are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sketchshift.decoders.paper.refine import hard_threshold, nonnegative_weights


def atoms_and_target(seed, k, m):
    rng = np.random.default_rng(seed)
    atoms = np.exp(1j * rng.normal(size=(k, 2)) @ rng.normal(size=(2, m))) / np.sqrt(m)
    return atoms, rng.normal(size=k) @ atoms + 0.1 * rng.normal(size=m)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 8), m=st.integers(1, 60))
def test_weights_are_optimal(seed, k, m):
    """The conditions of Karush, Kuhn and Tucker on the 2 m real equations."""
    atoms, z = atoms_and_target(seed, k, m)

    alpha = nonnegative_weights(atoms, z)

    A, b = np.hstack([atoms.real, atoms.imag]).T, np.concatenate([z.real, z.imag])
    gradient = A.T @ (A @ alpha - b)
    scale = np.abs(A.T @ b).max() + 1
    assert (alpha >= 0).all()
    assert gradient.min() > -1e-6 * scale  # the ridge of 1e-10 and its condition number
    assert np.abs(gradient[alpha > 0]).max(initial=0) < 1e-6 * scale


def test_weights_of_frequencies_weigh_the_squares():
    """Those of rows of atoms and target that are multiplied by the roots of the weights."""
    atoms, z = atoms_and_target(3, 5, 40)
    of_frequencies = np.random.default_rng(3).uniform(0, 3, size=40)
    roots = np.sqrt(of_frequencies)

    alpha = nonnegative_weights(atoms, z, of_frequencies)

    assert_allclose(alpha, nonnegative_weights(roots * atoms, roots * z), atol=1e-9)
    assert not np.allclose(alpha, nonnegative_weights(atoms, z), atol=1e-3)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 15))
def test_hard_thresholding_keeps_the_heaviest(weights, k):
    """Largest first, ties to the earlier: what sorting pairs gives."""
    keep = hard_threshold(np.array(weights, dtype=float), k)

    assert list(keep) == sorted(range(len(weights)), key=lambda i: (-weights[i], i))[:k]


def test_equal_atoms_share_their_weight_and_those_that_vanish_have_none():
    """A Gaussian far wider than the kernel is zero at every frequency."""
    atoms, _ = atoms_and_target(0, 1, 40)

    alpha = nonnegative_weights(np.repeat(atoms, 5, axis=0), 0.7 * atoms[0])

    assert alpha.sum() == pytest.approx(0.7)
    assert_array_equal(nonnegative_weights(np.zeros((2, 9)) + 0j, np.ones(9)), 0.0)
