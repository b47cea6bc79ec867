"""Day by day, city by city
========================

One sketch a day and city; weeks, weekends and cities are sums of them.

Trips of four weeks in two cities are read once into a table of 56 sketches, kept as Parquet.
Weeks, weekends and cities are added up from it, to the same bytes as reading their rows alone,
and the shares of the clusters are followed from day to day. Saves a picture of these.

Run it::

    python examples/04_day_by_day.py [folder]
"""

import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
DAYS, ROWS, COLUMNS = 28, 4000, ["kilometres", "minutes", "price"]
MEANS = np.array([[3, 12, 9], [12, 20, 25], [32, 45, 60]])  # to work, to a friend, to the airport
SPREADS = np.array([[1, 3, 2], [3, 4, 4], [4, 6, 6]])
rng = np.random.default_rng(0)

# Monday 2 March 2026 and 27 days more, the two cities alike but for the airport.
times, cities, kinds = [], [], []
for day in range(DAYS):
    is_weekend = day % 7 >= 5
    for city, airport in (("Lyon", 0.08), ("Nice", 0.20)):
        work = 0.15 if is_weekend else 0.60
        seconds = np.sort(rng.integers(86_400, size=ROWS)).tolist()
        times += [datetime(2026, 3, 2) + timedelta(days=day, seconds=s) for s in seconds]
        cities += [city] * ROWS
        kinds.append(rng.choice(3, size=ROWS, p=[work, 1 - work - airport, airport]))
kind = np.concatenate(kinds)
X = MEANS[kind] + SPREADS[kind] * rng.normal(size=(len(kind), 3))
trips = pa.table({"time": times, "city": cities} | dict(zip(COLUMNS, X.T, strict=True)))

spec = ss.plan(trips, n_clusters=6, columns=COLUMNS)
table = ss.sketch_by(trips, by=["day(time)", "city"], spec=spec)
table.save(folder / "trips.parquet")
size = (folder / "trips.parquet").stat().st_size
print(f"{table}, {size / 1e3:.0f} kB as {folder / 'trips.parquet'}\n")

table = ss.load(folder / "trips.parquet")  # from now on without the trips
whole = table.merge()
print(f"all slices are the sketch of all trips:     {whole == ss.sketch(trips, spec)}")
second = table.where("day >= '2026-03-09' AND day <= '2026-03-15'").merge()
days = np.repeat(np.arange(DAYS), 2 * ROWS)
rows = trips.filter(pa.array((days >= 7) & (days < 14)))
print(f"the second week is the sketch of its rows:  {second == ss.sketch(rows, spec)}")
by_city = table.merge_by("city")
print(f"Lyon and Nice make the whole:               {by_city['Lyon'] + by_city['Nice'] == whole}\n")

decoding = ss.decode(whole, n_clusters=3)
print("clusters of the four weeks: " + ", ".join(COLUMNS) + ", share of the trips")
for centroid, share in zip(decoding.centroids, decoding.weights, strict=True):
    print("  " + "".join(f"{value:8.1f}" for value in centroid) + f"{share:9.1%}")

closest = ss.metrics.match_centroids(decoding.centroids, MEANS)  # the kind of trip of each cluster
saturdays = " OR ".join(f"day = '2026-03-{day:02}'" for day in (7, 14, 21, 28))
questions = {
    "Lyon": (table.where("city = 'Lyon'"), np.array(cities) == "Lyon"),
    "Saturdays": (table.where(saturdays), days % 7 == 5),
    "Nice, 2 March": (table.where("city = 'Nice' AND day = '2026-03-02'"),
                      (np.array(cities) == "Nice") & (days == 0)),
}  # fmt: skip
print("\nshares of these clusters, and what they are truly")
for name, (slices, mask) in questions.items():
    found = ss.decoders.shares(decoding, slices.merge(), reference=whole)
    truth = np.bincount(kind[mask], minlength=3)[closest] / mask.sum()
    pairs = zip(found, truth, strict=True)
    print(f"  {name:<15}" + "".join(f"{share:7.1%} ({true:5.1%})" for share, true in pairs))

figure = Figure(figsize=(9, 4.5), layout="constrained")
view.plot_slices(table.merge_by("day"), decoding, figure.subplots(), reference=whole)
figure.savefig(folder / "day_by_day.png", dpi=120)
print(f"\nthe picture: {folder / 'day_by_day.png'}")
