"""What a decoder gives back: the mixture found, how it went, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sketchshift._typing import FloatArray, IntArray

__all__ = ["Decoding", "KCurve", "Outcome", "Progress", "Round", "Step"]


class Outcome(StrEnum):
    """How a decoding ended; the value is the sentence shown to the user."""

    COMPLETE = "All centroids were found."
    EMPTY_RESIDUAL = (
        "The residual vanished before all centroids were found: the data has fewer distinct "
        "points than centroids were asked for, or the bandwidth is too large to tell them apart."
    )
    FLAT_CORRELATION = (
        "No start found a positive correlation before all centroids were found: the bandwidth "
        "is probably too small, the starts too few, or the domain holds no data."
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One atom of the trace, as the progress callback receives it.

    Attributes
    ----------
    index, total : int
        Number of this atom, from 1, and of all atoms.
    centroid : array of shape (d,)
        In the units of the data.
    correlation : float
        The correlation function of the residual there.
    residual_norm : float
        After the weights were fitted again.
    """

    index: int
    total: int
    centroid: FloatArray
    correlation: float
    residual_norm: float


@dataclass(frozen=True, eq=False)
class Round:
    """One fit of the turnkey decoder's trace, as the progress callback receives it.

    Attributes
    ----------
    index, total : int
        Number of this fit, from 1, and of all fits.
    n_atoms : int
        Gaussians fitted.
    residual_norm : float
        Root of the weighted misfit that was reached, relative to the sketch's own norm.
    """

    index: int
    total: int
    n_atoms: int
    residual_norm: float


Progress = Callable[[Step | Round], None]


@dataclass(frozen=True, eq=False)
class KCurve:
    """How well k clusters explain a sketch, for every k up to a largest one.

    Attributes
    ----------
    n_clusters : int array of shape (k_max,)
        The numbers 1, 2, ..., k_max.
    residual : array of shape (k_max,)
        Norm of what k Gaussians, one for each cluster, leave of the sketch, as a share of it.
    score : array of shape (k_max,)
        The residual with the noise of so few rows in it, times the fourth root of k.
    inertia : array of shape (k_max,)
        Share of the variance that is left within clusters: the elbow curve of k-means.
    chosen : int
        The least k whose score is within 2.5 % of the least.
    criterion : str
        What decided: "residual", or "distinct points" when rows have so few values that each
        is a cluster.
    """

    n_clusters: IntArray
    residual: FloatArray
    score: FloatArray
    inertia: FloatArray
    chosen: int
    criterion: str

    def __repr__(self) -> str:
        return (
            f"<KCurve of 1 to {len(self.n_clusters)} clusters: {self.chosen} by {self.criterion}>"
        )


@dataclass(frozen=True, eq=False)
class Decoding:
    """Clusters decoded from a sketch.

    Attributes
    ----------
    centroids : array of shape (k, d)
        In the units of the data, heaviest first. Fewer than asked for when ``outcome`` is not
        ``Outcome.COMPLETE``; none at all when nothing in the domain correlates.
    weights : array of shape (k,)
        Shares of the rows, positive or zero, summing up to 1.
    covariances : array of shape (k, d, d) or None
        In the units of the data; zero where a component is a Dirac; None when all are.
    residual_norm : float
        Norm of the sketch minus that of the mixture, relative to the sketch's own.
    outcome : Outcome
        How it ended; ``str(outcome)`` is a sentence.
    trace : tuple of Step or of Round
        One for each atom, in the order they were found; of the turnkey decoder, for each fit.
    curve : KCurve or None
        How the number of clusters was chosen, where that was left to the decoder.
    """

    centroids: FloatArray
    weights: FloatArray
    covariances: FloatArray | None
    residual_norm: float
    outcome: Outcome
    trace: tuple[Step, ...] | tuple[Round, ...]
    curve: KCurve | None = None

    def __repr__(self) -> str:
        k, d = self.centroids.shape
        return f"<Decoding of {k} centroids x {d} columns: residual {self.residual_norm:.3g}>"
