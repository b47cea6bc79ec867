from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

import sketchshift as ss

# the same examples in every run, and no limit of time, which means nothing on shared machines
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


@pytest.fixture
def X() -> np.ndarray:
    """A small cloud away from the origin, with unlike columns."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.1] + [5.0, -1.0, 0.3]


SPECS = {
    "plain": ss.SketchSpec(n_features=3, sketch_size=50, bandwidth=0.7),
    "tilted": ss.SketchSpec(
        n_features=3,
        sketch_size=50,
        bandwidth=(0.2, 3.0),
        far_share=0.15,
        center=(5.0, -1.0, 0.3),
        scale=2.0,
        tilt=ss.Tilt(radius=1.0, cap=5.0),
    ),
    "double": ss.SketchSpec(
        n_features=3, sketch_size=33, bandwidth=0.7, law="adapted_radius", precision="float64"
    ),
    "standardised": ss.SketchSpec(
        n_features=3,
        sketch_size=64,
        bandwidth=0.5,
        law="folded_gaussian",
        center=(5.0, -1.0, 0.3),
        scale=(1.0, 2.0, 0.1),
    ),
}


@pytest.fixture(params=list(SPECS))
def spec(request: pytest.FixtureRequest) -> ss.SketchSpec:
    """Every kind of spec there is for three columns."""
    return SPECS[request.param]


@pytest.fixture
def seeded_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases with the noise that OpenDP would add, from a seed, which OpenDP does not take."""
    from sketchshift.privacy import mechanism

    rng, calibrated = np.random.default_rng(0), mechanism._calibrated

    def seeded(sensitivity, budget, share):
        _, scale, rho = calibrated(sensitivity, budget, share)
        return lambda numbers: np.rint(rng.normal(numbers, scale)), scale, rho

    monkeypatch.setattr(mechanism, "_calibrated", seeded)
