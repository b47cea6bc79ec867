"""The order of a stream
=====================

A sorted stream misleads MiniBatchKMeans; a sketch has the same bytes in any order.

The pixels of a photograph come in blocks: as they lie, shuffled, and sorted by their red. Printed
is the error of the centroids in all three orders, relative to k-means with all pixels in memory
(RSE, 1 is as good), and that the sketches have the same bytes. Saves the photograph in the eight
colours that each of them found.

Run it::

    python examples/02_sorted_stream.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

import sketchshift as ss
from sketchshift.data.datasets import china_pixels

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
K, BLOCK, SHAPE = 8, 4096, (427, 640, 3)

X = china_pixels().astype(np.float64)
reference = ss.metrics.lloyd(X, K)
print(f"{len(X):,} pixels, k = {K}; RSE against the best of five runs of k-means\n")

# A plan knows only the rows it saw. Of an array it sees rows from everywhere, whatever the order;
# of a real stream, plan on a sample across it: last week's rows, for example.
spec = ss.plan(X, n_clusters=K)

orders = {
    "as they lie": np.arange(len(X)),
    "shuffled": np.random.default_rng(0).permutation(len(X)),
    "sorted by red": np.argsort(X[:, 0], kind="stable"),
}
sketches = []
print(f"{'order':<16}{'MiniBatchKMeans':>16}{'sketch':>10}")
for name, order in orders.items():
    mini_batch, sketcher = MiniBatchKMeans(K, random_state=0), ss.Sketcher(spec)
    for start in range(0, len(X), BLOCK):
        block = X[order[start : start + BLOCK]]
        mini_batch.partial_fit(block)
        sketcher.update(block)
    sketches.append(sketcher.sketch())
    centroids = ss.decode(sketches[-1], n_clusters=K).centroids
    theirs = ss.metrics.rse(X, mini_batch.cluster_centers_, reference)
    print(f"{name:<16}{theirs:>16.3f}{ss.metrics.rse(X, centroids, reference):>10.3f}")

same = all(sketch.to_bytes() == sketches[0].to_bytes() for sketch in sketches)
print(f"\nthe three sketches, {sketches[0].nbytes:,} bytes each, are equal to the bit: {same}")

colours = {
    "k-means with all pixels in memory": reference,
    "MiniBatchKMeans, sorted by red": mini_batch.cluster_centers_,
    "sketch, sorted by red": centroids,
}
pictures = {"the photograph": X} | {
    name: found[pairwise_distances_argmin(X, found)] for name, found in colours.items()
}
figure = Figure(figsize=(9, 6.6), layout="constrained")
for ax, (name, pixels) in zip(figure.subplots(2, 2).flat, pictures.items(), strict=True):
    ax.imshow(pixels.reshape(SHAPE).clip(0, 255) / 255)
    ax.set_title(name if pixels is X else f"{K} colours: {name}", fontsize=10)
    ax.set_axis_off()
figure.savefig(folder / "sorted_stream.png", dpi=120)
print(f"\nthe picture: {folder / 'sorted_stream.png'}")
