"""GetLocalMaximum: three ways to climb the correlation function (section 4.1 of the paper).

Each takes all its starts in one batch and returns every place it reached; the decoder takes
the highest. Coordinates are the normalised ones of the spec.

Symbols
-------
L, d      number of starts, dimension
C         candidate centroids, shape (L, d)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_flag, check_integer, check_number
from sketchshift.decoders.objective import Box, Correlation

__all__ = ["LOCAL_MAXIMA", "Discretized", "GetLocalMaximum", "GradientAscent", "SketchedMeanShift"]

_FLOOR = 1e-12  # under |f_r| in a division


class GetLocalMaximum(Protocol):
    """Climbs from many starts at once."""

    def __call__(
        self, f: Correlation, starts: FloatArray, box: Box, bandwidth: float
    ) -> tuple[FloatArray, FloatArray]:
        """Places reached, shape (L, d), and the correlation there, shape (L,)."""
        ...


@dataclass(frozen=True)
class SketchedMeanShift:
    r"""Sketched mean shift: :math:`c \gets \Pi_\Theta(c + \eta \nabla f_r(c) / |f_r(c)|)`.

    With :math:`\eta = \sigma^2` the step is exactly mean shift on the kernel density.

    Parameters
    ----------
    step_size : float or None
        :math:`\eta`; None is the squared bandwidth.
    max_iterations : int
        Steps at most.
    tolerance : float
        A start that moves less, in bandwidths, has arrived and is left alone.
    backtracking : bool
        Take a step back that goes down, and halve it; without, the iteration is the paper's.
    """

    step_size: float | None = None
    max_iterations: int = 200
    tolerance: float = 1e-3
    backtracking: bool = True

    def __post_init__(self) -> None:
        _check("SketchedMeanShift", self.step_size, self.max_iterations, self.tolerance)
        check_flag("SketchedMeanShift", "backtracking", self.backtracking)

    def __call__(
        self, f: Correlation, starts: FloatArray, box: Box, bandwidth: float
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`GetLocalMaximum`; O(L m d) a step."""
        step = bandwidth**2 if self.step_size is None else self.step_size
        return _ascend(
            f,
            starts,
            box,
            step,
            self.max_iterations,
            self.tolerance * bandwidth,
            is_shift=True,
            is_monotone=self.backtracking,
        )


@dataclass(frozen=True)
class GradientAscent:
    """Plain gradient ascent, which hardly moves far from the clusters (figure 3 of the paper).

    Parameters
    ----------
    step_size : float or None
        None is the squared bandwidth.
    max_iterations : int
        Steps at most.
    tolerance : float
        A start that moves less, in bandwidths, is left alone.
    """

    step_size: float | None = None
    max_iterations: int = 200
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        _check("GradientAscent", self.step_size, self.max_iterations, self.tolerance)

    def __call__(
        self, f: Correlation, starts: FloatArray, box: Box, bandwidth: float
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`GetLocalMaximum`; O(L m d) a step."""
        step = bandwidth**2 if self.step_size is None else self.step_size
        return _ascend(
            f, starts, box, step, self.max_iterations, self.tolerance * bandwidth, is_shift=False
        )


@dataclass(frozen=True)
class Discretized:
    """The highest of the starts themselves: a random discretisation of the domain."""

    def __call__(
        self, f: Correlation, starts: FloatArray, box: Box, bandwidth: float
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`GetLocalMaximum`; O(L m d) in all."""
        return starts, f(starts)


LOCAL_MAXIMA: dict[str, Callable[..., GetLocalMaximum]] = {
    "sketched_mean_shift": SketchedMeanShift,
    "plain_mean_shift": partial(SketchedMeanShift, backtracking=False),
    "discretized": Discretized,
    "gradient_ascent": GradientAscent,
}


def _check(caller: str, step_size: float | None, max_iterations: int, tolerance: float) -> None:
    if step_size is not None:
        check_number(caller, "step_size", step_size, low=1e-100, high=1e100)
    check_integer(caller, "max_iterations", max_iterations, 1, 10**9)
    check_number(caller, "tolerance", tolerance, low=0.0, high=1e100)


def _ascend(
    f: Correlation,
    starts: FloatArray,
    box: Box,
    step: float,
    max_iterations: int,
    tolerance: float,
    *,
    is_shift: bool,
    is_monotone: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Climb; a step that would go down is taken back and halved, one that goes up doubled.

    On a kernel density no mean shift goes down. On a small sketch, whose maxima are sharper
    than the kernel, it may jump over them for ever, which the plain iteration does.
    """
    C, (values, gradients) = starts.copy(), f.value_and_gradient(starts)
    steps = np.full(len(C), step)
    moving = np.arange(len(C))
    for _ in range(max_iterations):
        length = steps[moving]
        if is_shift:
            length = length / np.maximum(np.abs(values[moving]), _FLOOR)
        trial = box.project(C[moving] + length[:, None] * gradients[moving])
        has_moved = ((trial - C[moving]) ** 2).sum(axis=1) > tolerance**2
        moving, trial = moving[has_moved], trial[has_moved]
        if not len(moving):
            break
        trial_values, trial_gradients = f.value_and_gradient(trial)
        is_up = trial_values > values[moving] if is_monotone else np.ones(len(moving), dtype=bool)
        up = moving[is_up]
        C[up], values[up], gradients[up] = trial[is_up], trial_values[is_up], trial_gradients[is_up]
        steps[moving] = np.where(is_up, np.minimum(2.0 * steps[moving], step), 0.5 * steps[moving])
    return C, values
