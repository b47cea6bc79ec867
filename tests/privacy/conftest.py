"""A public spec, raw sketches of it, and releases without noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Ball, Rows, Waves
from sketchshift.features.rows import unit_for
from sketchshift.privacy import mechanism

SPEC = ss.SketchSpec.of(
    Rows(3, None, (5.0, -1.0, 0.3), 2.0, unit_for(0.2, 3), Ball("declared", 10.0)),
    Waves(50, (0.2, 2.0)),
)


@pytest.fixture
def public_spec():
    return SPEC


@pytest.fixture
def raw(X, public_spec):
    return ss.sketch(X, public_spec)


@pytest.fixture
def release():
    """Releases of a thousand rows, whose noise is large beside them."""

    def release(sketch, epsilon=1.0, delta=1e-8, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ss.errors.PrivacyWarning)
            return ss.privacy.release(sketch, epsilon, delta, force=True, **options)

    return release


@pytest.fixture
def no_noise(monkeypatch):
    """Every draw gives the vector itself, and every charge the same id."""
    monkeypatch.setattr(mechanism, "_draw", lambda measurement, vector: vector.copy())
    monkeypatch.setattr(mechanism.secrets, "token_hex", lambda n: "0" * (2 * n))


@pytest.fixture
def rng():
    return np.random.default_rng(0)
