r"""Mixtures of alpha-stable laws from their characteristic function (Keriven et al. 2018).

A sketch is the empirical characteristic function at random frequencies. Stable laws have no density
in closed form and most of them no variance, but their characteristic function is simple, so that
heavy tails are fitted to a sketch as easily as Gaussians.

Takes a plain ``Sketch``; hands a :class:`StableMixture` to everybody.

Symbols
-------
k, d, m   components, dimension, frequencies
omega     frequencies, shape (d, m + 1); the last is 0, where every law has the value 1
zeta      the sketch there, without 1 / sqrt(m)
psi_ij    characteristic function of component i at frequency j
q_ij      :math:`\sum_l s_{il}^2 \omega_{jl}^2`
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sketchshift import Sketch
from sketchshift.decoders import Box, CorrelationFunction, Problem, one_blas_thread
from sketchshift.decoders.paper.climb import SketchedMeanShift
from sketchshift.decoders.paper.refine import hard_threshold, nonnegative_weights
from sketchshift.errors import DataError, SpecError
from sketchshift.sketch import AnySketch

__all__ = ["StableMixture", "decode_stable"]

_CALLER = "decode_stable"
FloatArray: TypeAlias = NDArray[np.float64]
ComplexArray: TypeAlias = NDArray[np.complex128]
_TURN = 2.0 * math.pi
_ALPHAS = (0.3, 2.0)
_FIRST_ALPHA = 1.7
_FIRST_SCALES = 2.0 ** np.arange(-4.0, 4.0)  # of a new component, in bandwidths
_N_STARTS = 300
_FEWEST = 200  # frequencies of a sketch that an error proposes
_SPREAD = 1e-2  # added to the variance 1 - |zeta|^2 of a wave, which vanishes at low frequencies
_TINY = 1e-300  # under q in a logarithm


@dataclass(frozen=True, eq=False)
class StableMixture:
    r"""A mixture of symmetric alpha-stable laws, elliptic with axes along the columns.

    Component i has the characteristic function

    .. math::

        \psi_i(\omega) = \exp\Big(\mathrm i \langle \omega, \mu_i \rangle
            - \big(\textstyle\sum_l s_{il}^2 \omega_l^2\big)^{\alpha_i / 2}\Big).

    At :math:`\alpha = 2` it is a Gaussian with the variances :math:`2 s^2`, at 1 a Cauchy law; in
    one column, SciPy's ``levy_stable(alpha, 0, mu, s)``.

    Attributes
    ----------
    weights : array of shape (k,)
        Shares of the components, heaviest first.
    locations : array of shape (k, d)
        The :math:`\mu_i`, in the units of the data; means where :math:`\alpha > 1`.
    scales : array of shape (k, d)
        The :math:`s_i`, in the units of the data.
    alphas : array of shape (k,)
        The :math:`\alpha_i`, from 0.3 to 2: the smaller, the heavier the tails.
    residual_norm : float
        Norm of what the mixture leaves of the sketch, relative to the norm of the sketch. Sampling
        alone leaves about :math:`1 / \sqrt N` of each wave.
    """

    weights: FloatArray
    locations: FloatArray
    scales: FloatArray
    alphas: FloatArray
    residual_norm: float = math.nan

    @property
    def n_components(self) -> int:
        """Number k of components."""
        return len(self.weights)

    def characteristic_function(self, frequencies: FloatArray) -> ComplexArray:
        """Mean of :math:`e^{i <omega, x>}` over the mixture.

        Parameters
        ----------
        frequencies : array of shape (d, n)
            The omega, per unit of the data.

        Returns
        -------
        values : complex array of shape (n,)
            O(k n d).
        """
        omega, d = np.asarray(frequencies, dtype=np.float64), self.locations.shape[1]
        if omega.ndim != 2 or len(omega) != d:
            msg = (
                f"this StableMixture has {d} columns, so it takes frequencies of shape ({d}, n). "
                f"Got {omega.shape}."
            )
            raise SpecError(msg)
        return np.asarray(self.weights @ self._waves(omega))

    def _waves(self, omega: FloatArray) -> ComplexArray:
        """The psi_ij, shape (k, n)."""
        envelope = np.exp(-((self.scales**2 @ omega**2) ** (self.alphas[:, None] / 2.0)))
        return np.asarray(np.exp(1j * (self.locations @ omega)) * envelope)

    def _choose(self, keep: NDArray[np.int64]) -> StableMixture:
        return StableMixture(
            self.weights[keep], self.locations[keep], self.scales[keep], self.alphas[keep]
        )

    def _with(self, location: FloatArray, scale: float, alpha: float) -> StableMixture:
        """One component more, with weight 0."""
        return StableMixture(
            np.append(self.weights, 0.0),
            np.vstack([self.locations, location]),
            np.vstack([self.scales, np.full_like(location, scale)]),
            np.append(self.alphas, alpha),
        )


@one_blas_thread
def decode_stable(
    sketch: AnySketch, n_components: int = 1, *, domain: Box | None = None, seed: int = 0
) -> StableMixture:
    r"""Fit a mixture of symmetric alpha-stable laws to a sketch.

    Parameters
    ----------
    sketch : Sketch or PrivateSketch
        Plain, with waves of all columns. A private one has tails only up to the
        ball that rows are clipped to. Take a range of bandwidths around the
        widths of the components, and a center and scale that far rows do not move, such as median
        and quartiles: the tails show at low frequencies, the widths at middle ones.
    n_components : int
        k.
    domain : Box or None
        Where the locations are, in the units of the data; None is the mean plus or minus three
        standard deviations of the sketch, which far rows make wide.
    seed : int
        Of the starts. The same sketch and seed give the same bytes.

    Returns
    -------
    mixture : StableMixture
        In the units of the data, heaviest component first.

    Notes
    -----
    Components are found one after the other, as CL-OMPR does it, with 2 k joint descents of
    O(k m d) an iteration. Waves count by the inverse of their variance, :math:`1 - |\zeta_j|^2`
    (Koutrouvelis 1980), and weights add up to 1.

    References
    ----------
    Keriven, Deleforge and Liutkus, *Blind source separation using mixtures of alpha-stable
    distributions*, ICASSP 2018.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from sketchshift_papers.decoders import decode_stable
    >>> x = 3.0 + 0.5 * np.random.default_rng(0).standard_cauchy((20_000, 1))
    >>> spec = ss.SketchSpec(1, 200, (0.1, 10.0), center=np.median(x, axis=0))
    >>> found = decode_stable(ss.sketch(x, spec))
    >>> found.alphas.round(1), found.locations.round(1), found.scales.round(1)
    (array([1.]), array([[3.]]), array([[0.5]]))
    """
    problem = Problem.of(sketch, n_components, domain, seed, _CALLER).require_columns(_CALLER)
    problem.require_waves()
    _require_plain(sketch)
    found = _Fitter(problem, seed).fit(n_components)
    return _in_units(problem, found)


def _require_plain(sketch: AnySketch) -> None:
    """Refuse a sketch that is not the characteristic function of the rows themselves."""
    spec = sketch.spec
    if spec.rows.metric != "euclidean":
        what = f"this one has those of their directions (metric={spec.rows.metric!r})"
    elif isinstance(sketch, Sketch) and sketch.far.weights.any():
        what = "this one has none of rows that were out of its reach, the tails"
    else:
        return
    msg = (
        f"{_CALLER} needs the waves of all rows alike, and {what}. Sketch the data with a plain "
        "spec:\n"
        "  low, median, high = np.percentile(X, (25, 50, 75), axis=0)\n"
        f"  spec = ss.SketchSpec({spec.n_features}, {max(spec.sketch_size, _FEWEST)}, (0.1, 5.0), "
        "center=median, scale=np.max(high - low))"
    )
    raise DataError(msg)


def _in_units(problem: Problem, mixture: StableMixture) -> StableMixture:
    """In the units of the data, heaviest first, with what it leaves of the sketch."""
    zeta = problem.z * math.sqrt(len(problem.z))
    mixture = replace(mixture, weights=mixture.weights / mixture.weights.sum())
    left = zeta - mixture.characteristic_function(_TURN * problem.turns.astype(np.float64))
    mixture = mixture._choose(hard_threshold(mixture.weights, mixture.n_components))
    return replace(
        mixture,
        locations=problem.in_units(mixture.locations),
        scales=mixture.scales * problem.sketch.spec.rows.scale_vector,
        residual_norm=problem.relative(left / math.sqrt(len(zeta))),
    )


@dataclass(frozen=True, eq=False)
class _Fitter:
    """Finds components one after the other, and lowers the weighted misfit of all of them."""

    problem: Problem
    seed: int

    @cached_property
    def omega(self) -> FloatArray:
        """Frequencies, and 0: shape (d, m + 1)."""
        omega = _TURN * self.problem.turns.astype(np.float64)
        return np.hstack([omega, np.zeros((len(omega), 1))])

    @cached_property
    def zeta(self) -> ComplexArray:
        """The waves, and 1."""
        return np.append(self.problem.z * math.sqrt(len(self.problem.z)), 1.0)

    @cached_property
    def precisions(self) -> FloatArray:
        """Inverse variances of the waves, adding up to 1; the wave at 0 counts like all others."""
        noise = self.problem.sketch.total_weight * self.problem.noise_floor
        variances = np.maximum(1.0 - np.abs(self.zeta[:-1]) ** 2, 0.0) + _SPREAD + noise
        precisions = 1.0 / variances
        return np.append(precisions / precisions.sum(), 1.0) / 2.0

    def fit(self, k: int) -> StableMixture:
        """K components, after 2 k were tried."""
        d = len(self.omega)
        mixture = StableMixture(np.empty(0), np.empty((0, d)), np.empty((0, d)), np.empty(0))
        for t in range(2 * k):
            mixture = self._weigh(self._expand(mixture, t))
            if mixture.n_components > k:
                mixture = mixture._choose(np.sort(hard_threshold(mixture.weights, k)))
            mixture = self._descend(mixture, 100)
        return self._descend(mixture, 2000)

    def _expand(self, mixture: StableMixture, t: int) -> StableMixture:
        """A component more, where what is left is highest, with the best of some scales."""
        left = (self.zeta - mixture.weights @ mixture._waves(self.omega))[:-1]
        problem, starts = self.problem, self._starts(t)
        f = CorrelationFunction(problem.turns, left / math.sqrt(len(left)))
        places, heights = SketchedMeanShift()(f, starts, problem.box, problem.bandwidth)
        c = places[int(np.argmax(heights))]
        trials = [
            mixture._with(c, scale * problem.bandwidth, _FIRST_ALPHA) for scale in _FIRST_SCALES
        ]
        return min(map(self._weigh, trials), key=self._misfit)

    def _starts(self, t: int) -> FloatArray:
        """Places at all distances from the center of the plan and from the mean.

        Far rows make the box far wider than where most rows are: uniform places would miss it.
        """
        box = self.problem.box
        middle, half = (box.lower + box.upper) / 2.0, (box.upper - box.lower) / 2.0
        steps = box.sample(_N_STARTS, self.seed, first=t * _N_STARTS) - middle
        narrowest = min(1.0, self.problem.bandwidth / float(half.max() or 1.0))
        steps *= np.geomspace(1.0, narrowest, _N_STARTS)[:, None]
        steps[::2] += middle
        return box.project(steps)

    def _weigh(self, mixture: StableMixture) -> StableMixture:
        """The best weights."""
        roots = np.sqrt(self.precisions)
        atoms = mixture._waves(self.omega) * roots
        return replace(mixture, weights=nonnegative_weights(atoms, self.zeta * roots))

    def _misfit(self, mixture: StableMixture) -> float:
        left = self.zeta - mixture.weights @ mixture._waves(self.omega)
        return float(self.precisions @ np.abs(left) ** 2)

    def _descend(self, mixture: StableMixture, max_iterations: int) -> StableMixture:
        """L-BFGS-B over weights, locations in bandwidths, logarithms of scales, and alphas."""
        from scipy.optimize import minimize

        k, d = mixture.locations.shape
        problem, length = self.problem, self.problem.bandwidth
        widest = float((problem.box.upper - problem.box.lower).max()) + length

        def pack(*parts: FloatArray) -> FloatArray:
            return np.concatenate([part.ravel() for part in parts])

        def unpack(x: FloatArray) -> StableMixture:
            w, mu, log_s, alphas = np.split(x, np.cumsum([k, k * d, k * d]))
            scales = np.exp(log_s).reshape(k, d)
            return StableMixture(w, mu.reshape(k, d) * length, scales, alphas)

        def f(x: FloatArray) -> tuple[float, FloatArray]:
            value, of_w, of_mu, of_s, of_alpha = self._gradients(unpack(x))
            return value, pack(of_w, of_mu * length, of_s, of_alpha)

        shape = np.ones((k, d))
        low = pack(
            np.zeros(k),
            shape * problem.box.lower / length,
            shape * math.log(1e-4 * length),
            np.full(k, _ALPHAS[0]),
        )
        high = pack(
            np.full(k, 2.0),
            shape * problem.box.upper / length,
            shape * math.log(widest),
            np.full(k, _ALPHAS[1]),
        )
        start = pack(
            mixture.weights, mixture.locations / length, np.log(mixture.scales), mixture.alphas
        )
        result = minimize(
            f,
            np.clip(start, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": max_iterations, "ftol": 1e-15, "gtol": 1e-10},
        )
        return unpack(result.x)

    def _gradients(
        self, mixture: StableMixture
    ) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray]:
        r"""The misfit, and its derivatives by weights, locations, log scales and alphas.

        With :math:`b_{ij} = p_j \bar r_j \psi_{ij}` and :math:`\log \psi_{ij} = \mathrm i \langle
        \omega_j, \mu_i \rangle - q_{ij}^{\alpha_i / 2}`.
        """
        omega, weights, halves = self.omega, mixture.weights[:, None], mixture.alphas[:, None] / 2
        psi = mixture._waves(omega)
        r = self.zeta - mixture.weights @ psi
        b = (self.precisions * r.conj()) * psi
        q = np.maximum(mixture.scales**2 @ omega**2, _TINY)
        powers = weights * b.real * q**halves
        by_weight = -2.0 * b.real.sum(axis=1)
        by_location = 2.0 * (weights * b.imag) @ omega.T
        by_log_scale = 4.0 * mixture.scales**2 * ((halves * powers / q) @ (omega**2).T)
        by_alpha = (powers * np.log(q)).sum(axis=1)
        value = float(self.precisions @ np.abs(r) ** 2)
        return value, by_weight, by_location, by_log_scale, by_alpha
