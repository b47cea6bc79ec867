"""How well are alpha-stable laws found from a sketch? The tables of ``docs/stable.md``.

Run: ``python benchmarks/stable.py``; a minute. Root mean square errors over draws of the rows,
of one law: a sketch of 200 frequencies, McCulloch's quantiles (where SciPy's fit starts), and the
likelihood of all rows, for which we tabulate the density ourselves (SciPy's own fit is slow). Of
three laws in the plane: a sketch of 400 frequencies.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.stats import levy_stable

import sketchshift as ss
from sketchshift_papers.decoders import decode_stable

N, N_DRAWS = 5_000, 10
ALPHAS = (1.0, 1.2, 1.5, 1.8, 2.0)
LOCATION, SCALE = 3.0, 0.5
STEP, N_WAVES, TAIL = 2e-3, 2**14, 40.0


def spec_of(X: np.ndarray, m: int, seed: int) -> ss.SketchSpec:
    """Center and scale from the quartiles, which far rows do not move."""
    low, median, high = np.percentile(X, (25, 50, 75), axis=0)
    scale = float(np.max(high - low))
    return ss.SketchSpec(X.shape[1], m, (0.1, 5.0), center=median, scale=scale, seed=seed)


def by_sketch(x: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Alpha, scale, location."""
    found = decode_stable(ss.sketch(x[:, None], spec_of(x[:, None], 200, seed)))
    return float(found.alphas[0]), float(found.scales[0, 0]), float(found.locations[0, 0])


def by_quantiles(x: np.ndarray, seed: int) -> tuple[float, float, float]:
    """McCulloch 1986; estimates the skewness as well."""
    alpha, _, location, scale = levy_stable._fitstart(x)
    return alpha, scale, location


def by_likelihood(x: np.ndarray, seed: int) -> tuple[float, float, float]:
    """The symmetric law that makes the rows most likely."""

    def loss(theta: np.ndarray) -> float:
        alpha, log_scale, location = theta
        if not 0.5 < alpha < 1.9999:
            return math.inf
        y = np.abs(x - location) * math.exp(-log_scale)
        return len(x) * log_scale - float(log_density(y, alpha).sum())

    alpha, scale, location = by_sketch(x, seed)
    start = np.array([min(alpha, 1.99), math.log(scale), location])
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-3}).x
    return float(found[0]), math.exp(found[1]), float(found[2])


def log_density(y: np.ndarray, alpha: float) -> np.ndarray:
    """Of the law of scale 1: by a Fourier transform, and far out by its first two terms."""
    waves = np.exp(-((np.arange(N_WAVES) * STEP) ** alpha))
    waves[0] = 0.5
    density = np.fft.rfft(waves, 2 * N_WAVES).real * STEP / math.pi
    places = np.arange(len(density)) * math.pi / (N_WAVES * STEP)
    near = places < TAIL + 1.0
    table = CubicSpline(places[near], density[near])
    inside = np.log(np.maximum(table(np.minimum(y, TAIL)), 1e-300))
    far = np.maximum(y, TAIL)
    first, second = (
        (-1) ** (n + 1)
        * math.gamma(n * alpha + 1)
        * math.sin(n * math.pi * alpha / 2)
        / math.factorial(n)
        / math.pi
        * far ** (-n * alpha - 1)
        for n in (1, 2)
    )
    return np.where(y < TAIL, inside, np.log(np.maximum(first + second, 1e-300)))


def measure_one() -> None:
    """Print errors of one law."""
    rules = {"sketch": by_sketch, "quantiles": by_quantiles, "likelihood": by_likelihood}
    for alpha in ALPHAS:
        draws = [
            levy_stable.rvs(alpha, 0, LOCATION, SCALE, size=N, random_state=seed)
            for seed in range(N_DRAWS)
        ]
        for name, rule in rules.items():
            if name == "likelihood" and alpha == 2.0:
                continue  # the end of the range: alpha is known, and mean and variance do
            start = time.process_time()
            found = np.array([rule(x, seed) for seed, x in enumerate(draws)])
            seconds = (time.process_time() - start) / N_DRAWS
            errors = found - [alpha, SCALE, LOCATION]
            cells = " | ".join(f"{e:.3f}" for e in np.sqrt(np.mean(errors**2, axis=0)))
            print(f"| {alpha} | {name} | {cells} | {seconds:.2f} |", flush=True)


def measure_three() -> None:
    """Print errors of three elliptic laws in the plane, of half, 0.3 and 0.2 of the rows."""
    shares, centers = (0.5, 0.3, 0.2), np.array([[-3.0, 0.0], [3.0, 1.0], [0.0, 4.0]])
    scales = np.array([[0.4, 0.6], [0.5, 0.5], [0.3, 0.2]])
    for alpha in (1.2, 1.5, 1.8, 2.0):
        found, seconds = [], []
        for seed in range(N_DRAWS):
            rng = np.random.default_rng(seed)
            labels = rng.choice(3, 4 * N, p=shares)
            mixing = np.ones(len(labels))
            if alpha < 2.0:
                width = math.cos(math.pi * alpha / 4) ** (2 / alpha)
                mixing = levy_stable.rvs(
                    alpha / 2, 1, scale=width, size=len(labels), random_state=rng
                )
            normals = np.sqrt(2.0 * mixing)[:, None] * rng.normal(size=(len(labels), 2))
            X = centers[labels] + scales[labels] * normals
            sketch, start = ss.sketch(X, spec_of(X, 400, seed)), time.process_time()
            mixture = decode_stable(sketch, 3, seed=seed)
            seconds.append(time.process_time() - start)
            found.append(
                (
                    np.abs(mixture.weights - shares).max(),
                    np.abs(mixture.locations - centers).max(),
                    np.abs(mixture.scales / scales - 1).max(),
                    *np.abs(mixture.alphas - alpha),
                )
            )
        cells = " | ".join(f"{e:.3f}" for e in np.median(found, axis=0))
        print(
            f"| {alpha} | {cells} | {np.max(found, axis=0)[3:].max():.3f} | "
            f"{np.mean(seconds):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    measure_one()
    measure_three()
