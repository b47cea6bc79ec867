"""Lists of a faiss index
======================

The lists of a faiss index are trained from sketches, and again after a third of the rows is gone.

An inverted index needs k-means of all rows. Here four shards are sketched where they lie, and the
sketches alone give the centroids. When rows are deleted, theirs are subtracted: nobody reads the
others again, and the sketch has the bytes of one that never saw them. The recall is compared with
that of an index that faiss trains on all rows: OpenCV's SIFT of two photographs.
Saves a picture.

Run it::

    python examples/12_index_lists.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import cv2
import faiss
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_images

import sketchshift as ss

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
K, PROBES = 128, (1, 2, 4, 8, 16)
rng = np.random.default_rng(0)


def sift(image: np.ndarray) -> np.ndarray:
    """SIFT descriptors on a grid of 4 pixels: 128 numbers each."""
    height, width, _ = image.shape
    grid = np.mgrid[4:height:4, 4:width:4].reshape(2, -1).T.astype(float)
    places = [cv2.KeyPoint(x, y, 8.0, 0.0) for y, x in grid]
    _, rows = cv2.SIFT_create().compute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), places)
    return rows[rows.any(axis=1)]


def recall(index: faiss.Index, rows: np.ndarray, n_probes: int) -> float:
    """Share of the ten nearest rows of each query that the index finds."""
    exact = faiss.IndexFlatL2(rows.shape[1])
    exact.add(rows)
    index.nprobe = n_probes
    pairs = zip(exact.search(queries, 10)[1], index.search(queries, 10)[1], strict=True)
    return float(np.mean([len(np.intersect1d(*pair)) / 10 for pair in pairs]))


def index_of(rows: np.ndarray, lists: ss.index.CoarseLists | None = None) -> faiss.Index:
    """An index with our lists, or with those that faiss trains on all rows."""
    if lists is None:
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(rows.shape[1]), rows.shape[1], K)
        index.cp.max_points_per_centroid = len(rows)
        index.train(rows)
    else:
        index = lists.to_faiss()
    index.add(rows)
    return index


def show(title: str, ours: faiss.Index, theirs: faiss.Index, rows: np.ndarray) -> np.ndarray:
    """Print the recall of both, for several numbers of lists looked into."""
    values = np.array([[recall(index, rows, n) for n in PROBES] for index in (ours, theirs)])
    print(f"\n{title}: recall@10 in percent, looking into {PROBES} lists")
    for name, row in zip(("from sketches", "faiss, all rows"), 100 * values, strict=True):
        print(f"{name:<16}" + "".join(f"{value:7.1f}" for value in row))
    print(f"largest loss: {100 * (values[1] - values[0]).max():.1f} points")
    return values


X = rng.permutation(np.concatenate([sift(image) for image in load_sample_images().images]))
queries, X = X[:500], X[500:]

spec = ss.plan(X[:20_000], n_clusters=K)
shards = [ss.sketch(shard, spec) for shard in np.array_split(X, 4)]
lists = ss.index.train_lists(shards, K)
print(f"{lists} from {sum(s.nbytes for s in shards) / 1e6:.1f} MB of sketches\n{lists.trust}")
before = show("all rows", index_of(X, lists), index_of(X), X)

is_gone = rng.random(len(X)) < 1 / 3
deleted, left = ss.sketch(X[is_gone], spec), X[~is_gone]
print(f"\nsame bytes as never seen: {sum(shards) - deleted == ss.sketch(left, spec)}")
fresh = ss.index.train_lists(shards, K, without=deleted, previous=lists)
stay = np.mean(fresh.assign(left) == lists.assign(left))
print(f"{fresh.n_moved} of {K} lists moved, and {100 * stay:.0f} % of the rows stay in their list")
after = show("a third deleted", index_of(left, fresh), index_of(left), left)

figure = Figure(figsize=(11, 4.5), layout="constrained")
titles = ("all rows", "a third deleted")
for ax, title, values in zip(figure.subplots(1, 2), titles, (before, after), strict=True):
    ax.plot(PROBES, values[0], "o-", label="lists from sketches")
    ax.plot(PROBES, values[1], "x--", label="lists by faiss, from all rows")
    ax.set(title=title, xlabel="lists looked into", ylabel="recall@10", xscale="log")
    ax.legend()
figure.savefig(folder / "index_lists.png", dpi=120)
print(f"\nthe picture: {folder / 'index_lists.png'}")
