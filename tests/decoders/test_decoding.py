"""Trace, progress, joint descent, and the same bytes on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import sketchshift as ss
from sketchshift.decoders import ClOmpr, SketchAndShift, gaussians
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.paper.refine import refine
from sketchshift.decoders.problem import Problem


@pytest.mark.parametrize("decoder", [SketchAndShift(n_initializations=50), ClOmpr()])
def test_progress_receives_the_trace(figure1, decoder):
    steps = []

    decoding = decoder(figure1.sketch(200, 0.2), 3, domain=figure1.domain, progress=steps.append)

    assert decoding.trace == tuple(steps)
    assert [(step.index, step.total) for step in steps] == [(i, 6) for i in range(1, 7)]
    assert figure1.domain.contains([step.centroid for step in steps]).all()


def test_all_atoms_are_looked_for_where_nothing_is_repaired():
    point = np.array([[0.1, 0.2]])
    sketch = ss.sketch(np.repeat(point, 100, axis=0), ss.SketchSpec(2, 300, 0.2))
    published, repaired = (
        SketchAndShift(local_maximum=lambda f, *_: (point, f(point)), repairs=repairs)(sketch, 1)
        for repairs in (False, True)
    )

    assert (len(published.trace), len(repaired.trace)) == (2, 1)
    assert published.outcome is ss.decoders.Outcome.COMPLETE
    assert_allclose(published.centroids, point, atol=1e-6)


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_the_joint_descent_never_raises_the_residual(figure1, is_gaussian, rng):
    """From anywhere; covariances stay positive semi-definite."""
    problem = Problem.of(figure1.sketch(100, 0.1), 4, figure1.domain, 0, "test")
    for _ in range(3):
        roots = rng.normal(size=(4, 2, 2)) * 10.0 ** rng.uniform(-4, 0, size=(4, 1, 1))
        covariances = roots @ roots.swapaxes(1, 2) if is_gaussian else None
        start = Mixture(rng.uniform(size=4), rng.uniform(-1, 1, (4, 2)), covariances)

        refined = refine(problem, start)

        assert problem.residual_norm(refined) <= problem.residual_norm(start)
        assert figure1.domain.contains(refined.means).all()
        assert (refined.weights >= 0).all()
        if is_gaussian:
            assert np.linalg.eigvalsh(refined.covariances).min() >= -1e-12


@pytest.mark.parametrize("name", ["sketch-and-shift", "cl-ompr", "turnkey"])
def test_the_number_of_threads_does_not_change_a_byte(figure1, name, monkeypatch):
    decoder = ss.SketchAndShift(refine=True) if name == "sketch-and-shift" else name
    outputs = set()
    for n_threads in (1, 5):
        monkeypatch.setattr(gaussians, "processors", lambda n=n_threads: n)
        with threadpool_limits(n_threads):
            decoding = ss.decode(figure1.sketch(200, 0.2), 4, seed=5, decoder=decoder)
        outputs.add(decoding.centroids.tobytes() + decoding.weights.tobytes())

    assert len(outputs) == 1
