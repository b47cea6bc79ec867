"""How fast are the decoders? Against the public CL-OMPR (pycle 1.2) on the same sketch.

Run by ``make bench``. Data: spectral MNIST where it is (``make data``), else a mixture
of the same size. One thread. Seconds are the best of a few runs, in turns; the ratios count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from harness import best_of, report

import sketchshift as ss
from sketchshift_papers import data as datasets

K, M = 10, 500


def data() -> tuple[str, np.ndarray]:
    try:
        X = datasets.load("spectral_mnist").astype(np.float64)
        return "spectral MNIST", X / np.abs(X).max()
    except ss.errors.DataError:
        X, _ = datasets.gaussian_mixture(70_000, 10, K, cluster_std=0.1)
        return "a mixture of ten Gaussians", X


def pycle_decoder(s: ss.Sketch, X: np.ndarray) -> Callable[[], np.ndarray] | None:
    """The public CL-OMPR on the same frequencies and sketch, or None where it is missing."""
    try:
        from pycle.compressive_learning import CLOMP_CKM
        from pycle.sketching import SimpleFeatureMap
    except ImportError:
        return None
    omega = 2 * np.pi * s.spec.frequencies.turns.astype(np.float64)
    z = s.z * np.sqrt(s.spec.sketch_size)  # pycle's features have no 1 / sqrt(m)
    bounds = np.array([X.min(axis=0), X.max(axis=0)])

    def decode() -> np.ndarray:
        np.random.seed(0)  # noqa: NPY002  it draws from the global generator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decoder = CLOMP_CKM(SimpleFeatureMap("complexExponential", omega), K, bounds, sketch=z)
            decoder.fit_once()
        return np.asarray(decoder.get_centroids())

    return decode


def against_pycle(X: np.ndarray, reference: float) -> dict[str, float]:
    """Each decoder at a bandwidth good for CL-OMPR, with its relative squared error."""
    s = ss.sketch(X, ss.SketchSpec(X.shape[1], M, bandwidth=0.3 if X.max() <= 1 else 0.5))
    decoders: dict[str, Callable[[], np.ndarray]] = {
        "sketch and shift, L = 1000": lambda: ss.SketchAndShift()(s, K).centroids,
        "the same, refined": lambda: ss.SketchAndShift(refine=True)(s, K).centroids,
        "the same, L = 100": lambda: (
            ss.SketchAndShift(n_initializations=100, refine=True)(s, K).centroids
        ),
        "CL-OMPR": lambda: ss.ClOmpr()(s, K).centroids,
    }
    public = pycle_decoder(s, X)
    if public is not None:
        decoders["CL-OMPR of pycle"] = public
    seconds = best_of(decoders, 3)
    facts = {}
    for name, decode in decoders.items():
        facts[f"{name}, s"] = seconds[name]
        facts[f"{name}, RSE"] = ss.metrics.mse(X, decode()) / reference
        if public is not None and name != "CL-OMPR of pycle":
            facts[f"{name}, share of pycle's time"] = seconds[name] / seconds["CL-OMPR of pycle"]
    return facts


def growth(X: np.ndarray) -> dict[str, float]:
    """Exponent a of time ~ x^a when one of L, m, k grows fourfold."""

    def seconds(L: int = 500, m: int = 500, k: int = 10) -> float:
        s = ss.sketch(X, ss.SketchSpec(X.shape[1], m, bandwidth=0.2))
        decoder = ss.SketchAndShift(n_initializations=L)
        return best_of({"decode": lambda: decoder(s, k)}, 2)["decode"]

    pairs = {
        "with L, 500 to 2000": (seconds(L=500), seconds(L=2000)),
        "with m, 500 to 2000": (seconds(m=500), seconds(m=2000)),
        "with k, 5 to 20": (seconds(k=5), seconds(k=20)),
    }
    return {name: float(np.log(b / a) / np.log(4)) for name, (a, b) in pairs.items()}


def main() -> None:
    name, X = data()
    reference = ss.metrics.mse(X, ss.metrics.lloyd(X, K))
    report(
        "decode",
        {
            f"{name}, k = {K}, m = {M}, T = {2 * K}": against_pycle(X, reference),
            "growth of sketch and shift's time, exponent": growth(X),
        },
    )


if __name__ == "__main__":
    main()
