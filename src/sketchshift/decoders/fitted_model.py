"""The fitted model: a new atom is a Dirac, or a Gaussian whose covariance is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sketchshift._typing import FloatArray
from sketchshift.decoders.estimate_sigma import estimate_sigma
from sketchshift.objective import CorrelationFunction

__all__ = ["FITTED_MODELS", "DiracModel", "FittedModel", "GaussianModel"]


class FittedModel(Protocol):
    """Gives the covariance of a new component."""

    def __call__(
        self, correlation: CorrelationFunction, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """Covariance of the component at c, or None for a Dirac."""
        ...


@dataclass(frozen=True)
class DiracModel:
    """Every component is a point."""

    def __call__(
        self, correlation: CorrelationFunction, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """See :class:`FittedModel`."""
        return None


@dataclass(frozen=True)
class GaussianModel:
    """A component is a Gaussian where :func:`estimate_sigma` finds a covariance, else a point."""

    def __call__(
        self, correlation: CorrelationFunction, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """See :class:`FittedModel`."""
        return estimate_sigma(correlation, c, bandwidth=bandwidth)


FITTED_MODELS: dict[str, type[DiracModel] | type[GaussianModel]] = {
    "dirac": DiracModel,
    "gaussian": GaussianModel,
}
