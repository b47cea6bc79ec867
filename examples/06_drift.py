"""Drift
=====

Whether, when and where a stream changed, from one sketch a day.

Sensors report three numbers for 21 days. On day 8 one kind of reading gives way to another, on
day 15 a new kind appears. The days of alarm come out, with thresholds that keep the rate of false
alarms, and the share of every cluster in the first week and the last. Saves a picture of it.

Run it::

    python examples/06_drift.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import sketchshift as ss
from sketchshift import view

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
DAYS, ROWS, COLUMNS = 21, 4000, ["heat", "noise", "load"]
MEANS = np.array([[0, 0, 0], [8, 0, 0], [0, 8, 0], [6, 6, 6], [0, 0, 9]], dtype=float)
SHARES = [  # of the five kinds of readings, by the week
    [0.40, 0.30, 0.20, 0.10, 0.00],
    [0.40, 0.25, 0.20, 0.15, 0.00],
    [0.40, 0.25, 0.20, 0.10, 0.05],
]
rng = np.random.default_rng(0)

day = np.repeat(np.arange(1, DAYS + 1), ROWS)
kind = np.concatenate([rng.choice(5, size=7 * ROWS, p=shares) for shares in SHARES])
X = MEANS[kind] + rng.normal(size=(len(day), 3))
readings = pa.table({"day": day} | dict(zip(COLUMNS, X.T, strict=True)))

first_week = readings.slice(0, 7 * ROWS)
spec = ss.plan(first_week, n_clusters=8, columns=COLUMNS)  # made before anything changed
table = ss.sketch_by(readings, by="day", spec=spec)
size = sum(sketch.nbytes for sketch in table.sketches)
print(f"{DAYS} days, {len(X):,} rows in {size / 1e3:.0f} kB; false alarms at most 1 % in all\n")

# When: every day beside the one before it, and beside all days before it together.
watch = ss.drift.watch(table, n_clusters=5, false_alarm=0.01)
print("distance / threshold, an alarm from 1 on")
for each in watch.slices[1:]:
    before = each.before.distance / each.before.threshold
    earlier = each.earlier.distance / each.earlier.threshold
    mark = " <- jump" if each.before.drifted else ""
    print(f"  day {each.key:<3} the day before {before:4.2f}   all before {earlier:4.2f}{mark}")
print(f"first alarm: day {watch.alarms[0].key}\n")

# Whether and where: the last week beside the first.
found = ss.compare(table.where("day <= 7").merge(), table.where("day >= 15").merge(), n_clusters=5)
print(f"first and last week: {'drift' if found.drifted else 'no drift'}, p = {found.p_value:.0e}")
print(f"  {'centroid':<18}{'share':>16}{'drawn with':>17}  verdict")
closest = ss.metrics.match_centroids(found.decoding.centroids, MEANS)
for cluster, true in zip(found.clusters, closest, strict=True):
    place = ", ".join(f"{value:.1f}" for value in cluster.centroid.round(1) + 0.0)
    shares = f"{cluster.share_a:7.1%} -> {cluster.share_b:5.1%}"
    truly = f"{SHARES[0][true]:.0%} -> {SHARES[2][true]:.0%}"
    print(f"  {place:<18}{shares:>16}{truly:>17}  {cluster.verdict}")

parts = [table.where("day <= 3").merge(), table.where("day >= 4 AND day <= 6").merge()]
same = ss.compare(*parts, n_clusters=5)
verdict = "drift" if same.drifted else "no drift"
print(f"\ndays 1 to 3 and 4 to 6: {verdict}, p = {same.p_value:.2f}")

view.watch_figure(watch).savefig(folder / "drift.png", dpi=120)
print(f"\nthe picture: {folder / 'drift.png'}")
