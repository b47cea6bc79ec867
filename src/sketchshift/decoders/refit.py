"""What is known of one sketch, carried over to another of the same spec.

Takes the fits of the first; hands points that stand for the rows of the second. Descents start
where the first ones ended, so that both sets of points err alike, and their difference is that
of the sketches.
"""

from __future__ import annotations

import numpy as np

from sketchshift.decoders.base import Problem
from sketchshift.decoders.fitted import Fitted
from sketchshift.decoders.gaussians import GaussianFitter
from sketchshift.decoders.reconstruction import Reconstruction, reconstruct
from sketchshift.decoders.weights import nonnegative_weights
from sketchshift.kernels import select_kernel
from sketchshift.sketch import AnySketch

__all__ = ["refit"]

ITERATIONS = 100


def refit(fitted: Fitted, sketch: AnySketch) -> Reconstruction:
    """Points that stand for the rows of another sketch, from the fits of a first one.

    Parameters
    ----------
    fitted : Fitted
        Of the first sketch.
    sketch : Sketch
        Of the same spec, with at least one row.

    Returns
    -------
    reconstruction : Reconstruction
        O(k m d) for each of 100 iterations of each fit.
    """
    problem = Problem.of(sketch, 1, None, fitted.seed, "refit")
    if fitted.points is not None:
        places = fitted.points.means
        atoms = select_kernel().features(places, problem.turns)
        weights = nonnegative_weights(atoms, problem.z)
        return Reconstruction(places, problem.untilted(places, weights))
    if not np.trace(problem.outline[1]) > 0.0:
        return Reconstruction(problem.outline[0][None, :], np.ones(1))
    fitter = GaussianFitter(problem)
    fits = [fitter.fit(fit, ITERATIONS) for fit in fitted.fits]
    return reconstruct(problem, fits, len(fitted.reconstruction.points), fitted.seed)
