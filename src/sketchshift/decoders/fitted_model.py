"""The fitted model: a new atom is a Dirac, or a Gaussian whose covariance is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sketchshift._typing import FloatArray
from sketchshift.decoders.estimate_sigma import estimate_sigma
from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec
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
    """A component is a Gaussian where :func:`estimate_sigma` finds a covariance, else a point.

    Needs a Gaussian kernel: frequencies of the Gaussian law, with one bandwidth.
    """

    @staticmethod
    def check(spec: SketchSpec) -> None:
        """Refuse a sketch whose kernel is not Gaussian: its curvature means something else."""
        facts = []
        if isinstance(spec.bandwidth, tuple):
            low, high = spec.bandwidth
            facts.append(f"this sketch has bandwidths from {low:g} to {high:g}")
        if spec.law != "gaussian":
            facts.append(f"this sketch has the law {spec.law!r}")
        if facts:
            msg = (
                "fitted_model='gaussian' estimates covariances from the curvature of a Gaussian "
                f"kernel, which needs one bandwidth and law='gaussian'; {' and '.join(facts)}. "
                "Take fitted_model='dirac', which works with any frequencies, or sketch the data "
                "with one bandwidth."
            )
            raise SpecError(msg)

    def __call__(
        self, correlation: CorrelationFunction, c: FloatArray, bandwidth: float
    ) -> FloatArray | None:
        """See :class:`FittedModel`."""
        return estimate_sigma(correlation, c, bandwidth=bandwidth)


FITTED_MODELS: dict[str, type[DiracModel] | type[GaussianModel]] = {
    "dirac": DiracModel,
    "gaussian": GaussianModel,
}
