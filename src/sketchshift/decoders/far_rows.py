"""A few rows far beyond all that the plan has seen: sentinels, broken values.

They hold most of the variance and next to none of the mass. Fits that keep the moments then
stretch every Gaussian to explain them, and miss the clusters. So the sketch is fitted once more
without its moments; if that explains it much better, these are the clusters, and the moments tell
where the far rows are, if it is one place. For sketches without cells; these hold such rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._text import column_names
from sketchshift._typing import FloatArray
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.mixture import Points
from sketchshift.decoders.problem import Problem
from sketchshift.errors import PlanWarning, warn
from sketchshift.sketch import Sketch

__all__ = ["FarRows", "FarRowsRule"]

SHOWN = 3  # columns in a message


@dataclass(frozen=True)
class FarRowsRule:
    """When a few far rows are looked for, believed and told of.

    Parameters
    ----------
    outside : float
        Total variance under the tilt that raises suspicion, in units of the sample's.
    less, more : float
        That of the rows: beyond these the sample was not like the rest.
    better : float
        Times the misfit must fall, before moments are given up.
    one_place : float
        Share of the variance of far rows on one axis, if they are at one place.
    notable : float
        Share of all variance, to be told.
    """

    outside: float = 3.0
    less: float = 0.5
    more: float = 1.15
    better: float = 3.0
    one_place: float = 0.9
    notable: float = 0.05

    def is_suspicious(self, problem: Problem) -> bool:
        """Whether rows may lie where the plan expects none; its units make the variance 1."""
        if problem.sketch.spec.tilt is None or problem.moments is None:
            return False
        total, tilted = np.trace(problem.moments[1]), np.trace(problem.outline[1])
        is_other = total > 0.0 and not self.less < total < self.more
        return bool(tilted > self.outside and is_other)

    def explain(
        self,
        problem: Problem,
        fits: list[GaussianFit],
        find: Callable[[Problem], list[GaussianFit]],
    ) -> FarRows | None:
        """Other fits, if a few far rows explain the sketch much better than these do.

        Parameters
        ----------
        problem : Problem
            The sketch.
        fits : list of GaussianFit
            With the moments of the rows.
        find : callable
            Gives fits of a problem.

        Returns
        -------
        far : FarRows or None
            None if the moments are to be kept. Takes as long as the fits, if there is a suspicion.
        """
        if not self.is_suspicious(problem):
            return None
        far = FarRows.of(self, problem, find(replace(problem, has_moments=False)))
        misfit, without = (_misfit(far.problem, both) for both in (fits, far.fits))
        return far if misfit > self.better * without else None


@dataclass(frozen=True, eq=False)
class FarRows:
    """Fits of all rows but a few, and where these are.

    Attributes
    ----------
    rule : FarRowsRule
        By which they were found.
    problem : Problem
        The sketch, without its moments.
    fits : list of GaussianFit
        Of the tilted measure.
    variance : float
        Total variance of all rows.
    place : array of shape (d,) or None
        Of the far rows; None if they are not at one place.
    share : float
        Of the far rows among all; 0 without a place.
    """

    rule: FarRowsRule
    problem: Problem
    fits: list[GaussianFit]
    variance: float
    place: FloatArray | None = None
    share: float = 0.0

    @classmethod
    def of(cls, rule: FarRowsRule, problem: Problem, fits: list[GaussianFit]) -> FarRows:
        r"""Find the place that the exact moments tell of, and fits do not.

        With w the share of far rows and v their place, from the mean of a fit, the moments
        exceed those of the fit by :math:`w v` and :math:`w v v^T`. The axis of the latter gives
        both; if there is more than one place, it is not known. O(T d^2).
        """
        assert problem.moments is not None  # else there is no suspicion
        total = float(np.trace(problem.moments[1]))
        unknown = cls(rule, replace(problem, has_moments=False), fits, total)
        mean, covariance = problem.outline
        if np.isnan(covariance).any():
            return unknown
        best = min(fits, key=lambda fit: fit.loss)
        middle, second = replace(best, weights=best.shares).moments
        shift = mean - middle
        values, axes = np.linalg.eigh(covariance + np.outer(shift, shift) - second)
        slope = float(axes[:, -1] @ shift)
        if values[-1] < rule.one_place * np.abs(values).sum() or slope == 0.0:
            return unknown
        place = middle + values[-1] / slope * axes[:, -1]
        share = _untilt_share(slope**2 / float(values[-1]), place, problem)
        is_there = share < 1.0 and share * problem.sketch.total_weight >= 0.5
        is_there &= bool(np.linalg.norm(place) <= problem.sketch.spec.reach)
        return replace(unknown, place=place, share=share) if is_there else unknown

    def add_to(self, points: Points) -> Points:
        """Points of the other rows, and one of the far ones, if their place is known.

        It comes first, so that no part of the points is without it.
        """
        if self.place is None:
            return points
        weights = np.append(self.share, points.weights * (1.0 - self.share))
        return Points(np.vstack([self.place, points.places]), weights)

    def warn(self, points: Points) -> None:
        """Tell of the far rows, if they hold a part of the variance; points are of the others."""
        rests = points.places - points.weights @ points.places
        held = 1.0 - float(points.weights @ (rests**2).sum(axis=1)) / self.variance
        if held < self.rule.notable:
            return
        where = "Clusters are those of the others"
        if self.place is not None:
            n = max(1, round(self.share * self.problem.sketch.total_weight))
            where = f"They are about {n}, near {_name_place(self.problem, self.place)}"
        msg = (
            f"a few rows lie far from all others, and hold {held:.0%} of the variance. {where}. "
            "If they are faults, leave them out; if not, plan on a sample that has such rows."
        )
        warn(msg, PlanWarning)


def _misfit(bare: Problem, fits: list[GaussianFit]) -> float:
    fitter = GaussianFitter(bare)
    return min(fitter.fit(fit, 0).loss for fit in fits)


def _untilt_share(share: float, place: FloatArray, problem: Problem) -> float:
    """The share of rows at a place, from theirs in the tilted measure."""
    sketch, tilt = problem.sketch, problem.sketch.spec.tilt
    assert isinstance(sketch, Sketch)  # else there is no suspicion
    assert tilt is not None
    return share * sketch.mean_tilt / float(tilt(place @ place))


def _name_place(problem: Problem, place: FloatArray) -> str:
    """A place in the units of the data, its first columns by name."""
    spec = problem.sketch.spec
    names = column_names(spec)
    numbers = problem.in_units(place).tolist()[:SHOWN]
    said = [f"{name} = {x:.3g}" for name, x in zip(names, numbers, strict=False)]
    return ", ".join(said) + (", ..." if spec.n_features > SHOWN else "")
