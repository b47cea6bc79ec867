"""Sliding Frank-Wolfe beside other decoders, on the same sketches: a table of ``docs/decoders.md``.

Run: ``python benchmarks/sliding_frank_wolfe.py [dataset ...]``, for spectral MNIST after
``make data``; ten minutes on one core. Plain sketches with m = 1000 and one bandwidth: relative
squared errors, mean and median of the draws of the frequencies, and seconds of processor time.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift_papers.datasets import Data, make_data
from sketchshift_papers.decoders import SlidingFrankWolfe
from sketchshift_papers.definition import DatasetSpec

M = 1000
DATASETS = {  # recipe, k, domain, options; bandwidths; draws
    "separated": (("separated", 3, (-1.0, 1.0), {"n_samples": 100_000}), (0.03, 0.1, 0.5), 5),
    "six_dimensions": (
        ("six_dimensions", 3, (-1.0, 1.0), {"n_samples": 100_000, "variance": 0.15}),
        (0.2, 0.5),
        5,
    ),
    "spectral_mnist": (("real", 10, None, {"name": "spectral_mnist"}), (0.1, 0.3), 3),
}


def decoders(data: Data) -> dict[str, object]:
    """Starts are uniform in the domain, as published, where there is one."""
    own = {"domain": data.domain}
    starts = {"starts": "normal" if data.domain is None else "uniform"}
    return {
        "CL-OMPR": ss.ClOmpr(**own),
        "CL-OMPR, 10 starts": ss.ClOmpr(n_initializations=10, **own),
        "Algorithm 2": ss.SketchAndShift(starts="uniform", reuse_starts=False, **own),
        "sliding Frank-Wolfe": SlidingFrankWolfe(**starts, **own),
        "the same, refined": SlidingFrankWolfe(refine=True, **starts, **own),
        "ss.decode": Turnkey(),
    }


def measure(name: str) -> None:
    """Print the rows of a dataset."""
    (kind, k, domain, options), bandwidths, n_draws = DATASETS[name]
    data = make_data(DatasetSpec(name, kind, name, k, domain, None, options))
    reference = ss.metrics.mse(data.X, ss.metrics.lloyd(data.X, k, n_init=5, seed=0))
    for bandwidth in bandwidths:
        sketches = [
            ss.sketch(data.X, ss.SketchSpec(data.n_features, M, bandwidth, seed=seed))
            for seed in range(n_draws)
        ]
        for label, decoder in decoders(data).items():
            errors, seconds = [], []
            for seed, sketch in enumerate(sketches):
                start = time.process_time()
                found = ss.decode(sketch, k, seed=seed, decoder=decoder)
                seconds.append(time.process_time() - start)
                errors.append(ss.metrics.rse(data.X, found.centroids, reference))
            print(
                f"| {name}, {bandwidth:g} | {label} | {np.mean(errors):.3f} | "
                f"{np.median(errors):.3f} | {max(errors):.3f} | {np.mean(seconds):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    for name in sys.argv[1:] or DATASETS:
        measure(name)
