"""What a decoder needs of a sketch, whether its totals are exact or noisy."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray
from sketchshift._writing import write_atomically
from sketchshift.errors import SketchFormatError
from sketchshift.features import Frequencies, SketchSpec

__all__ = ["AnySketch"]


class AnySketch(ABC):
    """A vector z with the spec it was taken with, that decodes and travels.

    Attributes
    ----------
    spec : SketchSpec
        What was summed.
    fingerprint : str
        That of the spec; sketches with different ones do not merge.
    """

    spec: SketchSpec
    fingerprint: str

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rows, or an estimate of it."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the rows' weights, or an estimate of it."""

    @property
    @abstractmethod
    def z(self) -> ComplexArray:
        """The sketch as the paper has it, shape (m,)."""

    @abstractmethod
    def __add__(self, other: object) -> AnySketch:
        """The sketch of the rows of both, taken with one spec."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The sketch as bytes, the same on every machine (``docs/format.md``)."""

    @property
    def noise_std(self) -> float:
        """Standard deviation of noise in the real, and imaginary, parts of sqrt(m) z; 0 if none."""
        return 0.0

    @property
    def count_std(self) -> float:
        """Standard deviation of noise in :attr:`count`; 0 if none."""
        return 0.0

    @property
    def about(self) -> str:
        """What to write before :attr:`count`, which is not exact with noise."""
        return "about " if self.count_std else ""

    @property
    def outline(self) -> tuple[FloatArray, FloatArray]:
        """Where the rows lie: mean (d,) and covariance (d, d), in the units of the data."""
        return self.expected_outline

    @property
    def expected_outline(self) -> tuple[FloatArray, FloatArray]:
        """What the spec expects: its center, and a total variance of 1 in normalised units."""
        spec = self.spec
        return spec.center_vector, np.diag(spec.scale_vector**2 / spec.n_features)

    @property
    def frequencies(self) -> Frequencies:
        """The frequencies that were summed, drawn from the spec and checked: O(m d)."""
        if self.spec.fingerprint != self.fingerprint:
            msg = (
                f"this sketch was taken with frequencies {self.fingerprint[:8]}, and its spec "
                f"draws {self.spec.fingerprint[:8]} here. The file was not written by a faithful "
                "implementation of the format: sketch the data again."
            )
            raise SketchFormatError(msg)
        return self.spec.frequencies

    @property
    def nbytes(self) -> int:
        """Size of the sketch as a file."""
        return len(self.to_bytes())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file: either all of it is there afterwards, or nothing changed.

        Parameters
        ----------
        path : path
            Usually ``*.sketch``. An existing file is replaced.
        """
        write_atomically(Path(path), self.to_bytes())
