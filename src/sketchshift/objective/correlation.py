r"""The correlation function f_r, with its gradient and Hessian (Definition 1).

Takes a residual from ``sketch``; hands a :class:`CorrelationFunction` to ``decoders``. Knows
neither how its maxima are searched for nor which device adds up the features: the sums are
``kernels``' business. Points are in the normalised coordinates x' of the spec.

Symbols
-------
d, m      dimension of a point, sketch size
turns     frequencies divided by 2 pi, shape (d, m): omega = 2 pi turns
r         residual, complex, shape (m,)
C         candidate centroids, one a row, shape (L, d)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray, RealArray
from sketchshift.errors import DataError, SpecError
from sketchshift.kernels import Kernel, select_kernel
from sketchshift.sketch import AnySketch

__all__ = ["CorrelationFunction"]


@dataclass(frozen=True, eq=False)
class CorrelationFunction:
    r"""Correlation of a residual with the sketch of a Dirac.

    .. math::

        f_r(c) = \mathrm{Re}\, \langle r, \mathcal A \delta_c \rangle
               = \frac{1}{\sqrt m}\, \mathrm{Re} \sum_j \bar r_j
                 e^{\mathrm{i} \langle \omega_j, c \rangle}

    With r = z it tends to the kernel density estimator as m grows, error 1 / sqrt(m).

    Parameters
    ----------
    turns : float32 array of shape (d, m)
        Frequencies divided by 2 pi.
    residual : complex array of shape (m,)
        The sketch, or what is left of it.
    kernel : Kernel or None
        Where the sums happen; None: the fastest there is.

    Examples
    --------
    >>> import numpy as np
    >>> turns = np.array([[0.0, 0.25]], dtype=np.float32)
    >>> f = CorrelationFunction(turns, np.array([1.0, 1.0]) / np.sqrt(2))  # of a Dirac at 0
    >>> f([[0.0], [2.0]]).round(3) + 0.0
    array([1., 0.])
    """

    turns: Float32Array
    residual: ComplexArray
    kernel: Kernel | None = None

    def __post_init__(self) -> None:
        turns = np.asarray(self.turns, dtype=np.float32)
        residual = np.asarray(self.residual, dtype=np.complex128)
        if turns.ndim != 2 or residual.shape != turns.shape[1:]:
            msg = (
                "a CorrelationFunction takes frequencies of shape (d, m) and a residual of shape "
                f"(m,). Got {turns.shape} and {residual.shape}."
            )
            raise SpecError(msg)
        object.__setattr__(self, "turns", turns)
        object.__setattr__(self, "residual", residual)
        object.__setattr__(self, "kernel", self.kernel or select_kernel())

    @classmethod
    def of(cls, sketch: AnySketch) -> CorrelationFunction:
        """The correlation function of a sketch itself: r = z.

        Parameters
        ----------
        sketch : Sketch
            Of any spec; points are then in its normalised coordinates.

        Returns
        -------
        f : CorrelationFunction
            Draws the frequencies on first use: O(m d).
        """
        return cls(sketch.frequencies.turns, sketch.z)

    def __call__(self, C: RealArray) -> FloatArray:
        """Values f_r(c) at the rows of C, shape (L,): O(L m d)."""
        return self.value_and_gradient(C)[0]

    def gradient(self, C: RealArray) -> FloatArray:
        """Gradients of f_r at the rows of C, shape (L, d): O(L m d)."""
        return self.value_and_gradient(C)[1]

    def value_and_gradient(self, C: RealArray) -> tuple[FloatArray, FloatArray]:
        r"""Values and gradients in one pass of sines: O(L m d).

        .. math::

            \nabla f_r(c) = -\frac{1}{\sqrt m}\, \mathrm{Im} \sum_j \bar r_j
                e^{\mathrm{i} \langle \omega_j, c \rangle}\, \omega_j

        Parameters
        ----------
        C : array of shape (L, d) or (d,)
            Points; a single one counts as L = 1.

        Returns
        -------
        values : array of shape (L,)
            The f_r(c), off by about 1e-6 of the norm of r.
        gradients : array of shape (L, d)
            Theirs, likewise.
        """
        return self._kernel.correlation(self._points(C), self.turns, self.residual)

    def hessian(self, C: RealArray) -> FloatArray:
        r"""Second derivatives of f_r, shape (L, d, d): O(L m d^2).

        .. math::

            \nabla^2 f_r(c) = -\frac{1}{\sqrt m}\, \mathrm{Re} \sum_j \bar r_j
                e^{\mathrm{i} \langle \omega_j, c \rangle}\, \omega_j \omega_j^T
        """
        return self._kernel.hessian(self._points(C), self.turns, self.residual)

    @property
    def _kernel(self) -> Kernel:
        assert self.kernel is not None
        return self.kernel

    def _points(self, C: RealArray) -> FloatArray:
        points = np.atleast_2d(np.asarray(C, dtype=np.float64))
        if points.ndim != 2 or points.shape[1] != len(self.turns):
            msg = (
                f"this CorrelationFunction has frequencies in dimension {len(self.turns)}, and the "
                f"points have shape {points.shape}."
            )
            raise DataError(msg)
        return points
