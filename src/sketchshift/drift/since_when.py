"""Since when: the last 1, 2, 4, 8, ... slices beside what came before them.

A window is a difference of two sums over all slices up to a boundary, and so is what came before
it: sketches subtract exactly, and nothing is read again. Without drift the squared distance has
the law of (1/n_a + 1/n_b) sum_i lambda_i chi^2, the same lambda for all windows: divided by that
factor it orders the windows as their p-values do, also where these are too small for a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from sketchshift._text import counted
from sketchshift._threads import one_blas_thread
from sketchshift._validation import check_integer, parameter_error
from sketchshift.drift.compare import Distance, Population, check_false_alarm, distance_between
from sketchshift.drift.noise import Noise
from sketchshift.drift.watch import TIME, Series, has_rows
from sketchshift.sketch import AnySketch, Sketch, SketchTable
from sketchshift.sketch.sketch import merge_sketches

__all__ = ["SinceWhen", "Window", "compare_windows", "learn_noise", "since_when"]


@dataclass(frozen=True)
class Window:
    """The last slices of a series beside what came before them.

    Attributes
    ----------
    n_slices : int
        How many slices: a power of two.
    since : object
        Time of the first of them.
    counts : pair of int
        Number of rows before them, or in the reference, and in them.
    test : Distance
        Between the two; its rate of false alarms is the joint one divided by the number of
        windows.
    """

    n_slices: int
    since: Any
    counts: tuple[int, int]
    test: Distance

    @property
    def evidence(self) -> float:
        r"""Squared distance divided by :math:`1/n_a + 1/n_b`: the larger, the less by chance."""
        return self.test.distance**2 / sum(1.0 / n for n in self.counts)


@dataclass(frozen=True, eq=False)
class SinceWhen:
    """Whether the newest slices differ from what came before them, and since when.

    Attributes
    ----------
    by : str
        Name of the time.
    windows : tuple of Window
        The last 1, 2, 4, 8, ... slices, where both sides have rows.
    false_alarm : float
        The rate, without drift, of any window beyond its threshold.
    """

    by: str
    windows: tuple[Window, ...]
    false_alarm: float

    @property
    def strongest(self) -> Window | None:
        """The window with the strongest evidence; None where there is nothing to compare."""
        return max(self.windows, key=lambda window: window.evidence, default=None)

    @property
    def drifted(self) -> bool:
        """Whether any window is beyond its threshold."""
        return any(window.test.drifted for window in self.windows)

    @property
    def since(self) -> Any:
        """Time of the slice since which the data differs; None without drift.

        Windows double, so that the true one may be up to a factor of two nearer or farther.
        """
        return self.strongest.since if self.drifted and self.strongest is not None else None

    @property
    def p_value(self) -> float:
        """The probability, without drift, of evidence as strong in any window: at most this."""
        if not self.windows:
            return 1.0
        return min(1.0, self._n_tests * min(w.test.p_value for w in self.windows))

    @property
    def _n_tests(self) -> int:
        """What the rate of false alarms was divided by."""
        return round(self.false_alarm / self.windows[0].test.false_alarm)

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        best = self.strongest
        if best is None:
            return "There is nothing to compare yet: give at least two slices with rows."
        before, within = (counted(n, "row") for n in best.counts)
        if not self.drifted:
            return (
                f"No drift: of {counted(self._n_tests, 'window')} up to the last "
                f"{counted(2 ** (self._n_tests - 1), 'slice')} none differs from what came before, "
                f"p = {self.p_value:.2g}."
            )
        named = "" if self.by == TIME else f"{self.by} "
        return (
            f"Drift since {named}{best.since}: the last {counted(best.n_slices, 'slice')} "
            f"({within}) against {before} before, distance {best.test.distance:.3g}, threshold "
            f"{best.test.threshold:.3g}, p = {self.p_value:.2g}."
        )

    def __repr__(self) -> str:
        return f"<SinceWhen: {self.sentence}>"


@one_blas_thread
def since_when(
    slices: SketchTable | Mapping[Any, Sketch] | Sequence[Sketch],
    *,
    reference: Sketch | None = None,
    by: str | None = None,
    false_alarm: float = 0.01,
    seed: int = 0,
) -> SinceWhen:
    r"""Whether the newest slices differ from those before them, and since when.

    The last 1, 2, 4, 8, ... slices are compared with all slices before them, or with a
    reference. Short windows find jumps, long ones what is small but lasts. Each of the K windows
    has the rate ``false_alarm`` / K (Bonferroni), so that without drift the probability of any
    alarm is at most ``false_alarm``, whatever depends on what. The time told is the boundary with
    the largest

    .. math::

        \Big(\frac1{n_a} + \frac1{n_b}\Big)^{-1} \|z_a - z_b\|^2 ,

    whose law without drift is the same for all windows.

    Parameters
    ----------
    slices : SketchTable, mapping of times to sketches, or sequence of sketches
        In the order of time, with independent rows, of one spec. Private sketches are refused,
        since they do not subtract: use :func:`sketchshift.drift.watch`.
    reference : Sketch or None
        What to compare with, of the same spec; none of its rows may be in the slices. None
        takes all slices before a window.
    by : str or None
        The column of time; slices that agree in it are added up. None takes the only one. Of a
        mapping or sequence, the name of its times.
    false_alarm : float, default=0.01
        The rate, from 1e-12 to 0.5, for all windows together.
    seed : int, default=0
        Of the decoder.

    Returns
    -------
    found : SinceWhen
        Reads each slice once: O(log n) sums, and comparisons of O(m) each, and one fit of the
        sum of all rows.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> X, day = rng.normal(size=(20_000, 2)), np.repeat(np.arange(20), 1000)
    >>> X[day >= 16] += 0.2
    >>> found = ss.drift.since_when(ss.sketch_by(X, by=day, n_clusters=3))
    >>> found.drifted, found.since
    (True, 16)
    """
    rate = check_false_alarm("since_when", false_alarm)
    check_integer("since_when", "seed", seed, 0, 2**64 - 1)
    if isinstance(slices, Sequence):
        slices = dict(enumerate(slices))
    series = Series.of(slices, by, "since_when", "slices")
    sketches = [_raw(sketch, "slices") for sketch in series.sketches]
    n, whole = len(sketches), _raw(series.whole, "slices")
    ends = sorted({0, n, *(n - 2**i for i in range(n.bit_length()))})
    spans = [merge_sketches(sketches[first:last]) for first, last in pairwise(ends)]
    sums = dict(zip(ends, accumulate(spans, initial=whole - whole), strict=True))
    if reference is not None:
        whole.check_addable(_raw(reference, "reference"), "compare")
        whole += reference
    windows = compare_windows(
        sums.__getitem__,
        (0, n),
        noise=learn_noise(whole, seed) if has_rows(whole) else None,
        false_alarm=rate,
        reference=reference,
        keys=series.keys,
    )
    return SinceWhen(series.by, windows, rate)


def _raw(sketch: AnySketch, name: str) -> Sketch:
    if isinstance(sketch, Sketch):
        return sketch
    must = "of sketches that subtract, as private ones do not: ss.drift.watch compares these"
    raise parameter_error("since_when", name, must, sketch)


def compare_windows(
    total: Callable[[int], Sketch],
    span: tuple[int, int],
    *,
    noise: Noise | None,
    false_alarm: float,
    reference: Sketch | None = None,
    keys: Sequence[Any],
    only_strongest: bool = False,
) -> tuple[Window, ...]:
    """The last 1, 2, 4, ... slices of a span beside the rest of it, or beside a reference.

    Parameters
    ----------
    total : callable
        Sketch of the first n slices of all, for n in the span and both its ends.
    span : pair of int
        Slices that count: from the first number to before the second.
    noise : Noise or None
        Of the population; None where there are no rows.
    false_alarm : float
        For all windows together.
    reference : Sketch or None
        What to compare with.
    keys : sequence
        Times of all slices.
    only_strongest : bool
        Leave out all but the one with the strongest evidence. Its threshold is the same, and if
        it is not beyond it, no other is: their evidence has one law. The law is the costly part.

    Returns
    -------
    windows : tuple of Window
        Those with rows on both sides. O(log n) calls of ``total`` and comparisons.
    """
    first, last = span
    length = last - first if reference is not None else last - first - 1
    widths = [2**i for i in range(max(0, length).bit_length())]
    sides = []
    for width in widths if noise is not None else ():
        within = total(last) - total(last - width)
        before = total(last - width) - total(first) if reference is None else reference
        if has_rows(within) and has_rows(before):
            sides.append((width, before, within))
    if only_strongest and sides:
        sides = [max(sides, key=lambda each: _evidence(each[1], each[2]))]
    windows = []
    for width, before, within in sides:
        assert noise is not None
        test = distance_between(before, within, noise, false_alarm / len(widths))
        counts = before.count, within.count
        windows.append(Window(width, keys[last - width], counts, test))
    return tuple(windows)


def _evidence(before: Sketch, within: Sketch) -> float:
    scale = 1.0 / before.count + 1.0 / within.count
    return float(np.linalg.norm(before.z - within.z)) ** 2 / scale


def learn_noise(population: Sketch, seed: int = 0) -> Noise:
    """What sampling alone does to sketches of rows like these: one fit."""
    return Population.of(population, None, seed, "since_when").noise
