"""Choosing the number of clusters
===============================

The number of clusters comes from one sketch, and so do centroids for any other number.

Rows around 12 means in 5 columns are sketched once, with a plan for up to 24 clusters. The decoder
chooses k by itself; then the same bytes give centroids for other k, each compared with k-means on
the rows (RSE). Saves the curve that the choice was made by.

Run it::

    python examples/05_choosing_k.py [folder]
"""

import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view
from sketchshift.data.datasets import gaussian_mixture

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
X, _ = gaussian_mixture(100_000, n_features=5, n_clusters=12, cluster_std=0.2, seed=0)

sketch = ss.sketch(X, n_clusters=24)  # the most that will be asked for
print(f"{sketch.count:,} rows around 12 means, in {sketch.nbytes:,} bytes\n")

decoding = ss.decode(sketch, n_clusters="auto")
curve = decoding.curve
print(f"chosen: k = {curve.chosen}. The smallest k within 2.5 % of the best score:")
for k in (1, 4, 8, 11, 12, 13, 16, 20, 24):
    mark = "  <- chosen" if k == curve.chosen else ""
    score, misfit = curve.score[k - 1], curve.misfit[k - 1]
    print(f"  k = {k:<3} score {score:.4f}   misfit {misfit:.4f}{mark}")

print("\nany other k from the same bytes; RSE against the best of five runs of k-means")
numbers = [4, 8, 12, 16, 24]
for k, decoded in zip(numbers, ss.decoders.decode_range(sketch, numbers), strict=True):
    print(f"  k = {k:<3} RSE {ss.metrics.rse(X, decoded.centroids, ss.metrics.lloyd(X, k)):.4f}")

figure = Figure(figsize=(7, 4.5), layout="constrained")
view.k_curve(decoding, figure.subplots())
figure.savefig(folder / "choosing_k.png", dpi=120)
print(f"\nthe picture: {folder / 'choosing_k.png'}")
