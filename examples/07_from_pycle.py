"""Coming from pycle
=================

pycle's calls beside ours, on the same frequencies, and what is new.

The words of one for those of the other::

    pycle                                        sketchshift
    drawFrequencies("gaussian", d, m, Sigma)     SketchSpec(d, m, bandwidth=sqrt(Sigma), seed=0)
    drawFrequencies("foldedGaussian", ...)       SketchSpec(..., law="folded_gaussian")
    drawFrequencies("adaptedRadius", ...)        SketchSpec(..., law="adapted_radius")
    estimate_Sigma(X, m0)                        bandwidth(X, n_clusters=k), or plan: no bandwidth
    SimpleFeatureMap("complexExponential", W)    2 * np.pi * spec.frequencies.turns is the W
    computeSketch(X, Phi)                        sketch(X, spec); its z is pycle's / sqrt(m)
    CLOMP_CKM(Phi, k, bounds, z), fit...         ClOmpr(n_restarts=...)(sketch, k, domain=Box(...))
    -                                            SketchAndShift(), and decode: nothing to tune

Printed are the difference of the two sketches and the errors of the centroids (RSE against
k-means); then what floating point costs when a part is taken out again. Saves a picture of the
centroids.

Run it::

    python examples/07_from_pycle.py [folder]
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import sketchshift as ss

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pycle 1.2 was written for older Pythons
    from pycle.compressive_learning import CLOMP_CKM
    from pycle.sketching import SimpleFeatureMap, computeSketch

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
D, K, M = 4, 6, 300
rng = np.random.default_rng(0)
means = rng.uniform(-5, 5, size=(K, D))
X = means[rng.integers(K, size=20_000)] + 0.7 * rng.normal(size=(20_000, D))
reference = ss.metrics.lloyd(X, K)
lower, upper = X.min(axis=0), X.max(axis=0)

# The sketch: the same frequencies in both.
spec = ss.SketchSpec(n_features=D, sketch_size=M, bandwidth=ss.decoders.bandwidth(X, n_clusters=K))
sketch = ss.sketch(X, spec)
feature_map = SimpleFeatureMap("complexExponential", 2 * np.pi * spec.frequencies.turns)
z = computeSketch(X, feature_map)
difference = np.abs(sketch.z - z / np.sqrt(M)).max() / np.abs(sketch.z).max()
print(f"{len(X):,} rows x {D} columns, {M} frequencies, bandwidth {spec.bandwidth:.2f}")
print(f"largest difference between the sketches, relative: {difference:.0e}\n")

# The decoders.
np.random.seed(0)  # noqa: NPY002 - pycle draws from the global generator
solver = CLOMP_CKM(feature_map, K, np.array([lower, upper]), z)
with np.errstate(invalid="ignore"):  # pycle multiplies memory before it fills it
    solver.fit_several_times(3)
box = ss.decoders.Box(lower, upper)
planned = ss.sketch(X, ss.plan(X, n_clusters=K, sketch_size=M))
found = {
    "pycle, CLOMP_CKM, best of 3": solver.get_centroids(),
    "ss.ClOmpr(n_restarts=3)": ss.ClOmpr(n_restarts=3)(sketch, K, domain=box).centroids,
    "ss.SketchAndShift(refine=True)": ss.SketchAndShift(refine=True)(sketch, K).centroids,
    "ss.plan and ss.decode": ss.decode(planned, K).centroids,
}
print("RSE against the best of five runs of k-means")
for name, centroids in found.items():
    print(f"  {name:<34}{ss.metrics.rse(X, centroids, reference):.4f}")

# What is new: sketches are sums of integers, so that parts come off again without a trace.
part, rest = X[:5000], X[5000:]
ours = sketch - ss.sketch(part, spec) == ss.sketch(rest, spec)
z_rest = (len(X) * z - len(part) * computeSketch(part, feature_map)) / len(rest)
difference = np.abs(z_rest - computeSketch(rest, feature_map)).max()
print("\nthe whole minus a part has the bytes of the rest")
print(f"  pycle        {difference == 0}, off by {difference:.0e}")
print(f"  sketchshift  {ours}")

figure = Figure(figsize=(8, 5), layout="constrained")
ax = figure.subplots()
ax.scatter(*X[::5, :2].T, s=2, color="0.8")
for (name, centroids), marker in zip(found.items(), "os^x", strict=True):
    ax.plot(*centroids[:, :2].T, marker, markersize=12, fillstyle="none", label=name)
ax.set(xlabel="column 0", ylabel="column 1")
ax.legend()
figure.savefig(folder / "from_pycle.png", dpi=120)
print(f"\nthe picture: {folder / 'from_pycle.png'}")
