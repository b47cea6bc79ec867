r"""A few rows far beyond all that the plan has seen: sentinels, broken values.

They hold most of the variance and next to none of the mass. Fits that keep the moments then
stretch every atom to explain them, and miss the clusters. So the sketch is fitted once more
without its moments; if that explains it much better, these are the clusters, and the moments tell
where the far rows are, if it is one place.

Symbols
-------
T, d      atoms, dimension
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.reconstruction import Reconstruction
from sketchshift.errors import PlanWarning, warn
from sketchshift.sketch import Sketch

__all__ = ["FarRows", "explained_by_far_rows", "is_suspicious"]

OUTSIDE = 3.0  # total variance under the tilt, in units of the sample's
LESS, MORE = 0.5, 1.15  # that of the rows: beyond these the sample was not like the rest
BETTER = 3.0  # times the misfit, before moments are given up
ONE_PLACE = 0.9  # share of the variance of far rows on one axis
NOTABLE = 0.05  # share of all variance, to be told
SHOWN = 3  # columns in a message


@dataclass(frozen=True, eq=False)
class FarRows:
    """Fits of all rows but a few, and where these are.

    Attributes
    ----------
    problem : Problem
        The sketch, without its moments.
    fits : list of GaussianFit
        Of the tilted measure.
    place : array of shape (d,) or None
        Of the far rows; None if they are not at one place.
    tilted_share : float
        Theirs in the tilted measure.
    """

    problem: Problem
    fits: list[GaussianFit]
    place: FloatArray | None
    tilted_share: float

    @classmethod
    def of(cls, problem: Problem, fits: list[GaussianFit]) -> FarRows:
        r"""Find the place that the exact moments tell of, and fits do not.

        With w the share of far rows and v their place, from the mean of a fit, the moments
        exceed those of the fit by :math:`w v` and :math:`w v v^T`. The axis of the latter gives
        both; if there is more than one place, it is not known. O(T d^2).
        """
        bare = replace(problem, has_moments=False)
        sketch, (mean, covariance) = problem.sketch, problem.outline
        if np.isnan(covariance).any():
            return cls(bare, fits, None, 0.0)
        middle, second = _moments(min(fits, key=lambda fit: fit.loss))
        shift = mean - middle
        values, axes = np.linalg.eigh(covariance + np.outer(shift, shift) - second)
        slope = float(axes[:, -1] @ shift)
        if values[-1] < ONE_PLACE * np.abs(values).sum() or slope == 0.0:
            return cls(bare, fits, None, 0.0)
        place, share = middle + values[-1] / slope * axes[:, -1], slope**2 / float(values[-1])
        found = cls(bare, fits, place, share)
        n_rows = found.share * sketch.total_weight
        is_there = n_rows >= 0.5 and np.linalg.norm(place) <= sketch.spec.reach
        return found if is_there else cls(bare, fits, None, 0.0)

    @property
    def share(self) -> float:
        """Of the far rows among all."""
        sketch = self.problem.sketch
        if self.place is None or sketch.spec.tilt is None or not isinstance(sketch, Sketch):
            return 0.0
        return (
            self.tilted_share * sketch.mean_tilt / float(sketch.spec.tilt(self.place @ self.place))
        )

    def added_to(self, points: Reconstruction, variance: float) -> Reconstruction:
        """Points of the other rows, and one of the far ones; there is a warning of these.

        Parameters
        ----------
        points : Reconstruction
            Drawn from the fits.
        variance : float
            Total variance of all rows.

        Returns
        -------
        points : Reconstruction
            The far place comes first, so that no part of the points is without it.
        """
        rests = points.points - points.weights @ points.points
        held = 1.0 - float(points.weights @ (rests**2).sum(axis=1)) / variance
        if self.place is None:
            if held > NOTABLE:
                _warn(held, "Clusters are those of the others")
            return points
        n = max(1, round(self.share * self.problem.sketch.total_weight))
        _warn(held, f"They are about {n}, near {_named(self.problem, self.place)}")
        weights = np.append(self.share, points.weights * (1.0 - self.share))
        return Reconstruction(np.vstack([self.place, points.points]), weights)


def explained_by_far_rows(
    problem: Problem, fits: list[GaussianFit], run: Callable[[Problem], list[GaussianFit]]
) -> FarRows | None:
    """Other fits, if a few far rows explain the sketch much better than these do.

    Parameters
    ----------
    problem : Problem
        The sketch.
    fits : list of GaussianFit
        With the moments of the rows.
    run : callable
        Gives fits of a problem.

    Returns
    -------
    far : FarRows or None
        None if the moments are to be kept. Takes as long as the fits, if there is a suspicion.
    """
    if not is_suspicious(problem):
        return None
    far = FarRows.of(problem, run(replace(problem, has_moments=False)))
    misfit, without = (_misfit(far.problem, both) for both in (fits, far.fits))
    return far if misfit > BETTER * without else None


def is_suspicious(problem: Problem) -> bool:
    """Whether rows may lie where the plan expects none; its units make the total variance 1."""
    if problem.sketch.spec.tilt is None or problem.moments is None:
        return False
    total, tilted = np.trace(problem.moments[1]), np.trace(problem.outline[1])
    return bool(tilted > OUTSIDE and not LESS < total < MORE)


def _misfit(bare: Problem, fits: list[GaussianFit]) -> float:
    fitter = GaussianFitter(bare)
    return min(fitter.fit(fit, 0).loss for fit in fits)


def _moments(fit: GaussianFit) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of the Gaussians together."""
    shares = fit.weights / fit.weights.sum()
    mean = shares @ fit.means
    rests = fit.means - mean
    return mean, (rests.T * shares) @ rests + np.diag(shares @ fit.deviations**2)


def _warn(held: float, where: str) -> None:
    msg = (
        f"a few rows lie far from all others, and hold {max(held, 0.0):.0%} of the variance. "
        f"{where}. If they are faults, leave them out; if not, plan on a sample that has such rows."
    )
    warn(msg, PlanWarning)


def _named(problem: Problem, place: FloatArray) -> str:
    """A place in the units of the data, its first columns by name."""
    spec = problem.sketch.spec
    names = spec.columns or [f"column {j}" for j in range(spec.n_features)]
    numbers = problem.in_units(place).tolist()[:SHOWN]
    said = [f"{name} = {x:.3g}" for name, x in zip(names, numbers, strict=False)]
    return ", ".join(said) + (", ..." if spec.n_features > SHOWN else "")
