"""Plans that may be published: from declared numbers, or from a sample that is public.

A spec travels with every release, so its numbers must not tell of private rows. The third way,
from private rows with noise, is ``private_plan``.

Symbols
-------
d, k, m   columns, clusters, frequencies
r0        spread: the root of the total variance of the rows
rq        the same of the rows weighted by their squared distance from the center
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer, check_number, parameter_error, unmasked
from sketchshift.features import Origin, SketchSpec
from sketchshift.features.plan import FAR_SHARE, HIGH, MAX_CLUSTERS, RANGE, rounded, rounded_center
from sketchshift.sketch import plan as plan_from_rows
from sketchshift.sketch.sketcher import REACHED

__all__ = ["check_ball", "outline_spec", "plan_declared", "plan_public", "within_reach"]

LOW = 0.3  # lowest bandwidth, in k^(-1/d) r0
TAIL = 1.5  # rq in r0, where nothing is known of it
BALL = 10.0  # radius of the public ball, in r0, where none is declared
FEWEST_FREQUENCIES = 200
WITHIN = 0.99 * REACHED  # of the reach of a spec


def plan_declared(
    center: Sequence[float],
    spread: float,
    n_clusters: int,
    *,
    radius: float | None = None,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> SketchSpec:
    """A plan from numbers that you know without looking at the data.

    Parameters
    ----------
    center : sequence of float
        About the middle of the rows, one number a column.
    spread : float
        About the root of the total variance, the typical distance of a row from the center.
        Twice too large costs some 2 % of error, half of it 5 %: guess rather too large.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    radius : float or None
        Rows farther from the center are moved to this distance; None takes 10 spreads.
    sketch_size : int or None
        Number m of frequencies; None takes 10 k d, at least 200.
    seed : int, default=0
        Of the frequencies.
    columns : sequence of str or None
        Names of the columns.

    Returns
    -------
    spec : SketchSpec
        Marked with the origin "declared".

    Examples
    --------
    >>> import sketchshift as ss
    >>> spec = ss.privacy.plan_declared(center=[170, 70], spread=20, n_clusters=5)
    >>> spec.origin.kind, spec.sketch_size
    ('declared', 200)
    """
    middle, ball = check_ball("plan_declared", center, BALL * spread if radius is None else radius)
    spread = check_number("plan_declared", "spread", spread, low=1e-140, high=1e140)
    return outline_spec(
        middle,
        spread,
        TAIL,
        n_clusters,
        Origin("declared", ball / spread),
        sketch_size=sketch_size,
        seed=seed,
        columns=columns,
    )


def plan_public(
    sample: Any,
    n_clusters: int,
    *,
    radius: float | None = None,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> SketchSpec:
    """A plan from rows that are public, or whose people do not mind.

    Parameters
    ----------
    sample : array, frame, Arrow data, path(s) or iterator of blocks
        A thousand rows that look like the private ones. They must not be private.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    radius : float or None
        Rows farther from the center are moved to this distance; None takes 10 times the root
        of the sample's total variance.
    sketch_size : int or None
        Number m of frequencies; None takes 10 k d, at least 200.
    seed : int, default=0
        Of the frequencies.
    columns : sequence of str or None
        Columns to read, by name.

    Returns
    -------
    spec : SketchSpec
        Marked with the origin "public".
    """
    spec = plan_from_rows(sample, n_clusters, seed=seed, columns=columns)
    m = _sketch_size(spec.n_features, n_clusters) if sketch_size is None else sketch_size
    scale = float(spec.scale_vector[0])
    if radius is not None:
        radius = check_number("plan_public", "radius", radius, low=1e-140, high=1e140)
    ball = BALL if radius is None else radius / scale
    return within_reach(replace(spec, tilt=None, sketch_size=m, origin=Origin("public", ball)))


def outline_spec(
    center: FloatArray,
    spread: float,
    tail: float,
    n_clusters: int,
    origin: Origin,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> SketchSpec:
    """The spec for rows of which only the outline is known: bandwidths in k^(-1/d) [r0, rq].

    Parameters
    ----------
    center : array of shape (d,)
        Of the rows.
    spread, tail : float
        r0, and rq in units of r0.
    n_clusters : int
        Number k of clusters.
    origin : Origin
        Of these numbers; its radius in units of r0.
    sketch_size, seed, columns
        As in :func:`plan_declared`.

    Returns
    -------
    spec : SketchSpec
        Without a tilt: total variance 1 in normalised units.
    """
    k = check_integer("plan", "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    d = len(center)
    scale = rounded(spread)
    apart = k ** (-1.0 / d)
    low = LOW * apart
    spec = SketchSpec(
        n_features=d,
        sketch_size=_sketch_size(d, k) if sketch_size is None else sketch_size,
        bandwidth=(rounded(low), rounded(max(HIGH * apart * tail, RANGE * low))),
        seed=seed,
        columns=None if columns is None else tuple(columns),
        center=tuple(rounded_center(center, np.full(d, scale)).tolist()),
        scale=scale,
        far_share=FAR_SHARE,
        origin=origin,
    )
    return within_reach(spec)


def within_reach(spec: SketchSpec) -> SketchSpec:
    """The spec with its ball made small enough for the exact integers."""
    assert spec.origin is not None
    radius = rounded(min(spec.origin.radius, WITHIN * spec.reach))
    return replace(spec, origin=replace(spec.origin, radius=radius))


def check_ball(caller: str, center: Any, radius: Any) -> tuple[FloatArray, float]:
    """Center and radius of a ball that somebody declared."""
    middle = np.asarray(unmasked(center), dtype=np.float64)
    if middle.ndim != 1 or not middle.size or not (np.abs(middle) <= 1e140).all():
        raise parameter_error(caller, "center", "a list of finite numbers, one a column", center)
    return middle, check_number(caller, "radius", radius, low=1e-140, high=1e140)


def _sketch_size(d: int, k: int) -> int:
    return max(10 * k * d, FEWEST_FREQUENCIES)
