"""Forgetting a customer
=====================

A customer is forgotten to the bit, from their rows or from a slice of their own.

One customer of 200 buys like nobody else and is a cluster of their own. After ``forget`` the
sketch has the bytes of one made without these rows; a sum in floating point keeps a residue.
Saves a picture of before and after.

Run it::

    python examples/03_forget_a_customer.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
N_CUSTOMERS, ROWS, K, GONE = 200, 300, 6, 17
rng = np.random.default_rng(0)
habits = rng.normal(scale=4.0, size=(K - 1, 4))


def purchases(n: int) -> np.ndarray:
    """Purchases of ordinary customers: four numbers each."""
    return habits[rng.integers(K - 1, size=n)] + rng.normal(size=(n, 4))


last_year = purchases(20_000)
customer = np.repeat(np.arange(N_CUSTOMERS), ROWS)
X = purchases(N_CUSTOMERS * ROWS)
X[customer == GONE] = [25.0, -20.0, 15.0, 30.0] + 0.1 * rng.normal(size=(ROWS, 4))
theirs, others = X[customer == GONE], X[customer != GONE]
place = theirs.mean(axis=0)

# The plan stays when rows go, so it is made without the customer: from last year's purchases.
spec = ss.plan(last_year, n_clusters=K)


def nearest(model: ss.CompressiveKMeans) -> float:
    """Distance from the customer's purchases to the nearest centroid."""
    return float(np.linalg.norm(model.cluster_centers_ - place, axis=1).min())


model = ss.CompressiveKMeans(n_clusters=K, spec=spec, random_state=0).fit(X)
before, found_before = model.sketch_, model.decoding_
print(f"{before.count:,} purchases in {before.nbytes:,} bytes, {ROWS} of them by customer {GONE}")
print(f"before: the nearest centroid is {nearest(model):6.2f} from what they bought")

model.forget(theirs)
never = ss.CompressiveKMeans(n_clusters=K, spec=spec, random_state=0).fit(others)
print(f"after:  the nearest centroid is {nearest(model):6.2f} from what they bought\n")
print(f"same bytes as a sketch that never saw them:  {model.sketch_ == never.sketch_}")
same = np.array_equal(model.cluster_centers_, never.cluster_centers_)
print(f"same centroids as a model that never did:    {same}")

Omega = 2 * np.pi * spec.frequencies.turns.astype(np.float64)


def float_sum(rows: np.ndarray) -> np.ndarray:
    """The sketch in floating point: the features of the rows, added up in blocks."""
    normalised = (rows - spec.rows.center_vector) * spec.rows.per_unit
    blocks = np.array_split(normalised, 50)
    return sum(np.exp(1j * block @ Omega).sum(axis=0) for block in blocks)


residue = np.abs(float_sum(X) - float_sum(theirs) - float_sum(others)).max()
print(f"residue of the same sums in floating point:  {residue:.1e}\n")

# With one sketch for each customer, kept beside the whole, their rows need not be found again.
table = ss.sketch_by(X, by=customer, spec=spec)
print(f"{table}, {sum(sketch.nbytes for sketch in table.sketches) / 1e6:.1f} MB")
print(f"the whole minus slice {GONE}, same bytes:        {before - table[GONE] == never.sketch_}")

try:
    model.forget(theirs)
except ss.errors.RemovalError as error:
    print(f"\nforgetting them once more is refused: {error}")

figure = Figure(figsize=(11, 4.5), layout="constrained")
moments = {"before": (before, found_before), "after": (model.sketch_, model.decoding_)}
for ax, (title, (sketch, found)) in zip(figure.subplots(1, 2), moments.items(), strict=True):
    view.plot_centroids(sketch, found, ax, columns=(0, 1)).get_legend().remove()
    ax.set_title(f"{title}: {sketch.count:,} purchases")
    ax.set(xlim=(-12, 30), ylim=(-24, 12))
    arrow = {"arrowstyle": "->"}
    ax.annotate(f"customer {GONE}", place[:2], (8, -18), arrowprops=arrow)
figure.savefig(folder / "forget_a_customer.png", dpi=120)
print(f"\nthe picture: {folder / 'forget_a_customer.png'}")
