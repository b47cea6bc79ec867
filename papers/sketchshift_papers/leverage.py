r"""Frequencies by their ridge leverage scores: ``SketchSpec(..., law="leverage")``.

Importing this module registers the law. "leverage(2.5)" draws frequencies evenly up to the length
2.5 at bandwidth 1; exp(-2.5^2 / 2) is the ridge as a share of the largest eigenvalue.

(Avron, Kapralov, Musco, Musco, Velingker, Zandieh 2017.) The ridge leverage of omega is
p(omega) z(omega)* (K + lambda)^-1 z(omega). Where rows fill a wide region evenly, plane waves are
the eigenfunctions of K, and it is in proportion to p / (p + nu): flat where p is above the ridge
nu, and falling like p beyond. That is their bound for the Gaussian kernel, min(1, p / nu), but for
a factor below 2. It needs no rows, so that a spec says all by one number: the length s at which p
falls to the ridge.

Symbols
-------
d         dimension
R         length of a frequency at bandwidth 1
p, q      densities of omega at bandwidth 1: of the Gaussian law, of the law it is drawn from
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.features import register_law
from sketchshift.features.stream import Purpose, exponential, logarithm, uniforms

__all__ = ["most_saturation", "usual_saturation"]

_INTERVALS = 1 << 14  # of lengths, in each of which the density is taken to be flat
_NEGLIGIBLE = 40.0  # e^-40 of the largest density is nothing
_MARGIN = 10.0  # lengths beyond which a Gaussian has nothing
_LN2 = 0.6931471805599453
_USUAL, _MOST = 1.0, 6.0


def usual_saturation(d: int) -> float:
    """The saturation of the law in dimension d: weights have a mean square below 2.7."""
    return math.sqrt(_LN2 * d + _USUAL)


def most_saturation(d: int) -> float:
    """The largest saturation in dimension d; beyond, a few frequencies have all the weight.

    As the mean of e^(-R^2 / 2) is 2^(-d / 2) for Gaussian frequencies, the mean square of weights
    p / q is at most 1 + e^(s^2 / 2) 2^(-d / 2).
    """
    return math.sqrt(_LN2 * d + _MOST)


@dataclass(frozen=True, eq=False)
class _Leverage:
    r"""Lengths with the density :math:`R^{d-1} / (1 + e^{(R^2 - s^2) / 2})`, and weights p / q.

    Attributes
    ----------
    edges, totals : arrays of shapes (n + 1,) and (n + 1,)
        Of intervals of R, and how much of the law lies below each: from 0 up to 1.
    saturation : float
        The length s.
    mean : float
        Of :math:`1 + e^{(s^2 - R^2) / 2}`, which is in proportion to p / q, under q.
    """

    edges: FloatArray
    totals: FloatArray
    saturation: float
    mean: float

    @classmethod
    def of(cls, d: int, saturation: float) -> _Leverage:
        """The table for dimension d: numbers from IEEE operations alone, summed in order."""
        root, s = math.sqrt(d), saturation
        left = max(0.0, root - _MARGIN)
        if s > root:  # below s the density is R^(d - 1)
            decay = np.array([-_NEGLIGIBLE / (d - 1) if d > 1 else -700.0])
            left = s * float(exponential(np.maximum(decay, -700.0))[0])
        step = (max(root, s) + _MARGIN - left) / _INTERVALS
        edges: FloatArray = left + step * np.arange(_INTERVALS + 1.0)
        R: FloatArray = left + step * (np.arange(float(_INTERVALS)) + 0.5)
        logs = (d - 1) * logarithm(R) - _softplus(0.5 * (R * R - s * s))
        masses = exponential(np.maximum(logs - logs.max(), -700.0))
        totals = np.concatenate([[0.0], np.cumsum(masses)])  # from the first to the last
        ratios = np.cumsum(masses * _ratio(R, s))
        return cls(edges, totals / totals[-1], s, float(ratios[-1] / totals[-1]))

    def lengths(self, seed: int, j: NDArray[Any]) -> FloatArray:
        """R of the frequencies j: the quantile function at one uniform number each."""
        u = uniforms(seed, Purpose.RADIUS, j, 1)[:, 0]
        i = np.clip(np.searchsorted(self.totals, u, "right") - 1, 0, _INTERVALS - 1)
        low, high = self.totals[i], self.totals[i + 1]
        step = self.edges[i + 1] - self.edges[i]
        lengths: FloatArray = self.edges[i] + step * ((u - low) / (high - low))
        return lengths

    def weights(self, R: FloatArray) -> FloatArray:
        """The p / q of frequencies of these lengths at bandwidth 1: 1 in the mean."""
        return _ratio(R, self.saturation) / self.mean


def _softplus(x: FloatArray) -> FloatArray:
    """The logarithm of 1 + e^x."""
    tail = logarithm(1.0 + exponential(-np.minimum(np.abs(x), 700.0)))
    result: FloatArray = np.maximum(x, 0.0) + tail
    return result


def _ratio(R: FloatArray, s: float) -> FloatArray:
    """What p / q is in proportion to: 1 + e^((s^2 - R^2) / 2)."""
    return 1.0 + exponential(np.clip(0.5 * (s * s - R * R), -700.0, 700.0))


_table = lru_cache(maxsize=8)(_Leverage.of)


def _draw_lengths(
    seed: int, j: NDArray[Any], g: FloatArray, *saturation: float
) -> tuple[FloatArray, FloatArray]:
    d = g.shape[1]
    s = saturation[0] if saturation else usual_saturation(d)
    if len(saturation) > 1 or not 0.0 <= s <= most_saturation(d):
        must = f"'leverage(s)' with one number s from 0 to {most_saturation(d):.4g}"
        raise parameter_error("SketchSpec", "law", must, f"leverage{saturation}")
    table = _table(d, s)
    lengths = table.lengths(seed, j)
    return lengths, table.weights(lengths)


register_law("leverage", _draw_lengths)
