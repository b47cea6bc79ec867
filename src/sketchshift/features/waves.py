"""Which waves are summed: how many, at which bandwidths, by which law."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sketchshift._validation import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    parameter_error,
    read_fields,
)
from sketchshift.features.frequencies import Frequencies, draw_frequencies, parse_law
from sketchshift.features.rows import is_list

__all__ = ["MAX_SKETCH_SIZE", "Range", "Waves"]

MAX_SKETCH_SIZE = 2**24
_CALLER = "SketchSpec"  # people pass these numbers to it


def _check_bandwidth(value: Any) -> float:
    return check_number(_CALLER, "bandwidth", value, low=1e-20, high=1e20)  # float32 turns


@dataclass(frozen=True)
class Range:
    """Bandwidths of which each frequency has its own, log-uniform.

    Parameters
    ----------
    low, high : float
        Ends of the range.
    beyond : float, default=0
        The share of frequencies with bandwidths beyond it, up to 100 times its upper end.
    """

    low: float
    high: float
    beyond: float = 0.0

    def __post_init__(self) -> None:
        low, high = _check_bandwidth(self.low), _check_bandwidth(self.high)
        if not low < high:
            must = "a pair (low, high) with low < high"
            raise parameter_error(_CALLER, "bandwidth", must, (self.low, self.high))
        beyond = check_number(_CALLER, "beyond", self.beyond, low=0.0, high=1.0)
        for name, value in (("low", low), ("high", high), ("beyond", beyond)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Waves:
    r"""Cosines and sines of rows at m frequencies :math:`\omega = R \phi / \sigma`.

    Parameters
    ----------
    size : int
        Number m of frequencies.
    bandwidth : float, pair of float or Range
        :math:`\sigma`, the bandwidth of the Gaussian kernel, in the units of x'. A pair
        (low, high) is a range.
    seed : int, default=0
        From 0 to 2**64 - 1.
    law : str, default="gaussian"
        Law of the length R at bandwidth 1: the paper's, "folded_gaussian", "adapted_radius",
        or one of :func:`register_law`, with its parameters in brackets: "student(3)".
    structured : bool, default=False
        Fast Hadamard blocks instead of independent directions; needs 64 columns.
    precision : {"float32", "float64"}
        Of the phases. float32 has an error of about 4e-8 :math:`|\langle\omega, x'\rangle|`
        radians a row; take float64 for data far from the center.
    """

    size: int
    bandwidth: float | Range
    seed: int = 0
    law: str = "gaussian"
    structured: bool = False
    precision: str = "float32"

    def __post_init__(self) -> None:
        bandwidth: Any = self.bandwidth
        if is_list(bandwidth):
            if len(bandwidth) != 2:
                must = "a number or a pair (low, high)"
                raise parameter_error(_CALLER, "bandwidth", must, bandwidth)
            bandwidth = Range(*bandwidth)
        elif not isinstance(bandwidth, Range):
            bandwidth = _check_bandwidth(bandwidth)
        parse_law(self.law)
        checked = {
            "size": check_integer(_CALLER, "sketch_size", self.size, 1, MAX_SKETCH_SIZE),
            "bandwidth": bandwidth,
            "seed": check_integer(_CALLER, "seed", self.seed, 0, 2**64 - 1),
            "structured": check_flag(_CALLER, "structured", self.structured),
            "precision": check_choice(_CALLER, "precision", self.precision, ("float32", "float64")),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest bandwidth; the same where there is one."""
        if isinstance(self.bandwidth, Range):
            return self.bandwidth.low, self.bandwidth.high
        return self.bandwidth, self.bandwidth

    @property
    def bandwidths(self) -> float | tuple[float, float]:
        """The bandwidth, or both ends of the range."""
        low, high = self.range
        return low if low == high else (low, high)

    @property
    def beyond(self) -> float:
        """The share of frequencies with bandwidths beyond the range."""
        return self.bandwidth.beyond if isinstance(self.bandwidth, Range) else 0.0

    def draw(self, d: int) -> Frequencies:
        """Draw the frequencies for rows of d coordinates: O(m d)."""
        return draw_frequencies(
            d,
            self.size,
            self.range,
            law=self.law,
            seed=self.seed,
            structured=self.structured,
            beyond=self.beyond,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: what has its default is left out."""
        content = asdict(self)
        defaults = asdict(Waves(1, 1.0))
        names = [name for name in defaults if name not in ("size", "bandwidth")]
        for name in names:
            if content[name] == defaults[name]:
                del content[name]
        return content

    @classmethod
    def from_dict(cls, content: Any) -> Waves:
        """Read ``content``, what :meth:`to_dict` gave."""
        fields = read_fields(cls, content)
        if isinstance(fields["bandwidth"], dict):
            fields["bandwidth"] = Range(**read_fields(Range, fields["bandwidth"]))
        return cls(**fields)
