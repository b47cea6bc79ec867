"""The paper, one algorithm after the other
========================================

The paper's algorithms one by one, and where each of them fails.

They are those of "Sketch and shift" (Belhadji & Gribonval, TMLR 2024). On three clusters in the
plane: the sketch and the correlation function checked against their formulas; GetLocalMaximum and
EstimateSigma; then CL-OMPR and the paper's decoder over a range of bandwidths, as errors relative
to k-means (RSE). Saves what either finds at the smallest one.

Run it::

    python examples/08_the_paper.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view
from sketchshift.decoders import LOCAL_MAXIMA, CorrelationFunction
from sketchshift.decoders.paper.sketch_and_shift import estimate_sigma

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
MEANS, STD, M = np.array([[-0.6, -0.5], [0.6, -0.4], [0.1, 0.7]]), 0.07, 1000
BANDWIDTHS = (0.03, 0.1, 0.3, 0.5)
DOMAIN = ss.decoders.Box([-1, -1], [1, 1])
rng = np.random.default_rng(0)
X = MEANS[rng.integers(3, size=50_000)] + STD * rng.normal(size=(50_000, 2))
reference = ss.metrics.lloyd(X, 3)

print("Definition 1, the sketch: z_j = mean of exp(i <omega_j, x>), over sqrt(m)")
spec = ss.SketchSpec(n_features=2, sketch_size=M, bandwidth=0.1)
sketch = ss.sketch(X, spec)
Omega = 2 * np.pi * spec.frequencies.turns.astype(np.float64)
z = np.mean([np.exp(1j * part @ Omega).mean(axis=0) for part in np.split(X, 50)], axis=0)
print(f"  largest difference from NumPy's: {np.abs(sketch.z - z / np.sqrt(M)).max():.0e}\n")

print("The correlation function f_z(c) = Re <z, A delta_c>: the density, smoothed by the kernel")
f = CorrelationFunction.of(sketch)
places = np.vstack([MEANS, [[0.0, 0.0]]])
squares = ((places[:, None] - X) ** 2).sum(axis=2)
density = np.exp(-squares / (2 * spec.bandwidth**2)).mean(axis=1)
for c, value, smoothed in zip(places, f(places), density, strict=True):
    print(f"  at ({c[0]:4.1f}, {c[1]:4.1f}):  f_z {value:6.3f}   kernel density {smoothed:6.3f}")
print(f"  the difference shrinks like 1 / sqrt(m) = {M**-0.5:.3f}\n")

print("GetLocalMaximum: of 200 starts in the domain, those that end within one std of a mean")
starts = DOMAIN.sample(200, seed=0)
for name, climb in LOCAL_MAXIMA.items():
    ends, _ = climb()(f, starts, DOMAIN, spec.bandwidth)
    distances = np.linalg.norm(ends[:, None] - MEANS, axis=2).min(axis=1)
    print(f"  {name:<20}{(distances < STD).sum():5d}")

print("  (others end on the ripples that so few frequencies leave in f_z, or did not get far)")

print("\nEstimateSigma, from the curvature of log f_z at a mean")
covariance = estimate_sigma(f, MEANS[0], bandwidth=spec.bandwidth)
print(f"  standard deviations {np.sqrt(np.linalg.eigvalsh(covariance)).round(3)}, truly {STD}\n")

decoders = {
    "CL-OMPR": ss.ClOmpr(),
    "2, Diracs": ss.SketchAndShift(n_initializations=200, starts="uniform"),
    "2, Gaussians": ss.SketchAndShift(
        n_initializations=200, starts="uniform", fitted_model="gaussian"
    ),
    "2, refined": ss.SketchAndShift(n_initializations=200, refine=True),
}
print("CL-OMPR (Algorithms 1 and 3) and Algorithm 2: RSE, mean of three realizations")
print("  bandwidth" + "".join(f"{name:>17}" for name in decoders))
for bandwidth in BANDWIDTHS:
    errors = np.zeros(len(decoders))
    for seed in range(3):
        drawn = ss.sketch(X, ss.SketchSpec(2, M, bandwidth, seed=seed))
        decodings = [decoder(drawn, 3, domain=DOMAIN) for decoder in decoders.values()]
        errors += [ss.metrics.rse(X, decoding.centroids, reference) / 3 for decoding in decodings]
    print(f"  {bandwidth:<9}" + "".join(f"{error:17.3f}" for error in errors))

figure = Figure(figsize=(12, 5), layout="constrained")
small = ss.sketch(X, ss.SketchSpec(2, M, BANDWIDTHS[0]))
shown = {"CL-OMPR": "CL-OMPR", "Algorithm 2, Diracs": "2, Diracs"}
for ax, (title, name) in zip(figure.subplots(1, 2), shown.items(), strict=True):
    view.plot_centroids(small, decoders[name](small, 3, domain=DOMAIN), ax)
    ax.set_title(f"{title}, bandwidth {BANDWIDTHS[0]}")
figure.savefig(folder / "the_paper.png", dpi=120)
print(f"\nthe picture: {folder / 'the_paper.png'}")
