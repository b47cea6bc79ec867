"""What comparisons share: a sketch of all rows, its fit, its clusters, and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sketchshift._validation import parameter_error
from sketchshift.decoders import Decoding, decode
from sketchshift.decoders.base import MAX_CLUSTERS, Problem
from sketchshift.decoders.choose_k import most_clusters
from sketchshift.decoders.fitted import Fitted, fit_sketch
from sketchshift.decoders.reconstruction import Reconstruction
from sketchshift.drift.noise import SamplingNoise
from sketchshift.features import SketchSpec
from sketchshift.mixtures import Mixture
from sketchshift.sketch import AnySketch

__all__ = ["Clusters", "Population"]

Clusters = int | Literal["auto"] | None

ENOUGH = 10
"""Clusters that a fit is made for when none are asked for: it only serves the noise."""


@dataclass(frozen=True, eq=False)
class Population:
    """The rows of all slices together.

    Attributes
    ----------
    fitted : Fitted
        Points that stand for the rows.
    noise : SamplingNoise
        That of one of the rows.
    decoding : Decoding or None
        The clusters, if asked for.
    """

    fitted: Fitted
    noise: SamplingNoise
    decoding: Decoding | None

    @classmethod
    def of(cls, whole: AnySketch, n_clusters: Clusters, seed: int, caller: str) -> Population:
        """Fit a sketch, and decode the clusters asked for: no more than one fit."""
        if isinstance(n_clusters, str) and n_clusters != "auto":
            must = f'"auto", None or an integer from 1 to {MAX_CLUSTERS}'
            raise parameter_error(caller, "n_clusters", must, n_clusters)
        k = _fitted_for(n_clusters, whole.spec)
        problem = Problem.of(whole, k, None, seed, caller)
        if not np.trace(problem.outline[1]) > 0.0:
            fitted = _one_point(problem, seed)
            decoding = None if n_clusters is None else decode(whole, 1, seed=seed)
        else:
            fitted = fit_sketch(problem, k, seed, None)
            decoding = _decoded(fitted, n_clusters, k)
        return cls(fitted, SamplingNoise.of(problem, fitted.reconstruction), decoding)


def _fitted_for(n_clusters: Clusters, spec: SketchSpec) -> int:
    most = most_clusters(spec, None)
    if n_clusters is None:
        return min(most, ENOUGH)
    return most if isinstance(n_clusters, str) else n_clusters


def _decoded(fitted: Fitted, n_clusters: Clusters, k: int) -> Decoding | None:
    if n_clusters is None:
        return None
    return fitted.decode_auto(k) if n_clusters == "auto" else fitted.decode(k)


def _one_point(problem: Problem, seed: int) -> Fitted:
    """Rows that are all equal, where there is nothing to fit."""
    place, whole = problem.outline[0][None, :], np.ones(1)
    return Fitted(problem, Reconstruction(place, whole), (), seed, Mixture(whole, place))
