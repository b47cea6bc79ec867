"""Landmarks: places whose kernels rows are summed with, the Nyström features of a sketch.

Takes rows of a sample; hands :class:`Landmarks` to ``spec``. The mean embedding of the rows,
projected on the span of the kernels of the landmarks, is what such a sketch knows (Chatalic,
Carratino, De Vito, Rosasco 2022).

Symbols
-------
d, J      columns, landmarks
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchshift._typing import Float32Array, RealArray
from sketchshift._validation import check_integer, parameter_error, unmasked
from sketchshift.features.cells import from_text, to_text
from sketchshift.features.stream import Purpose, uniforms

__all__ = ["MAX_LANDMARKS", "Landmarks"]

MAX_LANDMARKS = 2**16
_CALLER = "Landmarks"


@dataclass(frozen=True)
class Landmarks:
    r"""Places in normalised coordinates: a row adds its kernel to each of them.

    .. math:: \kappa(x', l_j) = e^{-|x' - l_j|^2 / 2 \sigma^2}

    Parameters
    ----------
    places : bytes
        Float32 and little endian, shape (J, d): see :meth:`of` and :meth:`draw`.
    n_features : int
        Dimension d.

    Notes
    -----
    O(J d) operations a row and J integers in a sketch. There is no compiled code for them: NumPy
    sums them for every kernel, 25 to 45 ns a row and landmark, 30 to 90 times as long as the
    compiled waves of as many integers take. A decoder takes O(J^3) once.
    """

    places: bytes
    n_features: int

    def __post_init__(self) -> None:
        d = check_integer(_CALLER, "n_features", self.n_features, 1, 2**20)
        if not isinstance(self.places, bytes):
            raise parameter_error(_CALLER, "places", "bytes (see Landmarks.of)", self.places)
        J, rest = divmod(len(self.places), 4 * d)
        if rest or not 1 <= J <= MAX_LANDMARKS:
            must = f"{4 * d} bytes for each of 1 to {MAX_LANDMARKS} landmarks"
            raise parameter_error(_CALLER, "places", must, f"{len(self.places)} bytes")
        if not np.isfinite(self.table).all():
            first = float(self.table[~np.isfinite(self.table)][0])
            raise parameter_error(_CALLER, "places", "finite numbers, also in float32", first)

    @classmethod
    def of(cls, places: Any) -> Landmarks:
        """Those of an array.

        Parameters
        ----------
        places : array of shape (J, d)
            In normalised coordinates: (x - center) / scale. Rounded to float32.

        Returns
        -------
        landmarks : Landmarks
            In the order given.
        """
        values = _to_table("Landmarks.of", "places", "(landmarks, d)", places)
        return cls(values.tobytes(), values.shape[1])

    @classmethod
    def draw(cls, rows: RealArray, n_landmarks: int, *, seed: int = 0) -> Landmarks:
        """Some of the rows, each as likely as the others.

        Parameters
        ----------
        rows : array of shape (n, d)
            Of a sample, in normalised coordinates: (x - center) / scale.
        n_landmarks : int
            Number J; fewer where fewer rows are different in float32.
        seed : int, default=0
            From 0 to 2**64 - 1.

        Returns
        -------
        landmarks : Landmarks
            The same on every machine, and the first ones whatever J is.
        """
        J = check_integer("Landmarks.draw", "n_landmarks", n_landmarks, 1, MAX_LANDMARKS)
        check_integer("Landmarks.draw", "seed", seed, 0, 2**64 - 1)
        values = _to_table("Landmarks.draw", "rows", "(n, d)", rows)
        numbers = uniforms(int(seed), Purpose.LANDMARKS, np.arange(len(values)), 1)[:, 0]
        shuffled = values[np.argsort(numbers, kind="stable")]
        _, firsts = np.unique(shuffled, axis=0, return_index=True)
        return cls.of(shuffled[np.sort(firsts)[:J]])

    def __repr__(self) -> str:
        return f"<{self.n_landmarks:,} landmarks of {self.n_features} columns>"

    @property
    def n_landmarks(self) -> int:
        """Number J."""
        return len(self.places) // (4 * self.n_features)

    @cached_property
    def table(self) -> Float32Array:
        """The places, shape (J, d)."""
        return np.frombuffer(self.places, dtype="<f4").reshape(-1, self.n_features)

    def to_text(self) -> str:
        """For JSON: the places in base64."""
        return to_text(self.places)

    @classmethod
    def from_text(cls, text: Any, n_features: int) -> Landmarks:
        """What :meth:`to_text` gave.

        Parameters
        ----------
        text : str
            The places in base64.
        n_features : int
            Dimension d.

        Returns
        -------
        landmarks : Landmarks
            Equal to those written.
        """
        return cls(from_text(_CALLER, "places", text), n_features)


def _to_table(caller: str, name: str, shape: str, values: Any) -> Float32Array:
    """Numbers as a table in float32, without negative zeros; what is none is an error."""
    try:
        with np.errstate(over="ignore"):  # too large is infinite, and refused as that
            table = np.asarray(unmasked(values)).astype("<f4", casting="same_kind")
    except (TypeError, ValueError):
        table = np.empty(0, dtype="<f4")
    if table.ndim != 2 or not table.size:
        raise parameter_error(caller, name, f"an array of numbers of shape {shape}", values)
    return table + np.float32(0.0)
