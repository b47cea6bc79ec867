"""Lists in PostgreSQL with pgvector
=================================

Lists of vectors are plain tables in PostgreSQL, and follow the data when rows are deleted.

The index ``ivfflat`` of pgvector trains its own lists when it is made, takes no others, and keeps
them when the data changes. Here centroids from a sketch are a table, and each row has the number
of its list: a query looks into the nearest lists. Rows are deleted in SQL and subtracted from the
sketch, and only those rows are updated that belong to another list now. A server of its own starts
on a socket in a temporary folder (``pip install pgserver``). Saves a picture of the recall.

Run it::

    python examples/13_lists_in_postgres.py [folder]
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_images

import sketchshift as ss

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
K, PROBES, N_QUERIES = 64, (1, 2, 4, 8), 100
TABLES = """CREATE EXTENSION vector;
CREATE TABLE items (id int PRIMARY KEY, list int, place vector(48));
CREATE TABLE queries (id int, place vector(48));
CREATE TABLE lists (list int, center vector(48));
CREATE TABLE changes (id int, list int); CREATE INDEX ON items (list);"""
SEARCH = """SELECT q.id AS query, found.id FROM queries q CROSS JOIN LATERAL (
    SELECT id FROM items {where} ORDER BY items.place <-> q.place LIMIT 10) found"""
NEAR = "WHERE list IN (SELECT list FROM lists ORDER BY center <-> q.place LIMIT {n})"


def ask(command: str) -> str:
    """Run commands; the last word of the answer."""
    return server.psql("\\set ON_ERROR_STOP on\n\\pset tuples_only\n" + command).split()[-1]


def copy(table: str, *columns: np.ndarray) -> str:
    """The command that writes rows into a table."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = ("\t".join(map(str, row)) + "\n" for row in rows)
    return f"COPY {table} FROM STDIN;\n{''.join(lines)}\\.\n"


def recalls(title: str) -> list[float]:
    """Of the rows nearest to the queries by a scan of all: the shares that are in a few lists."""
    hit = f"SELECT count(*) FROM ({{}}) s JOIN ({SEARCH.format(where='')}) t USING (query, id);"
    searches = [hit.format(SEARCH.format(where=NEAR.format(n=n))) for n in PROBES]
    shares = [int(ask(search)) / (10 * N_QUERIES) for search in searches]
    print(f"{title}, recall@10 in {PROBES} lists: " + ", ".join(f"{x:.1%}" for x in shares))
    return shares


squares = [
    np.lib.stride_tricks.sliding_window_view(image, (4, 4, 3))[::5, ::5, 0].reshape(-1, 48)
    for image in load_sample_images().images
]
X = np.random.default_rng(0).permutation(np.concatenate(squares)).astype(np.float32)
queries, X = X[:N_QUERIES], X[N_QUERIES:]
sketch = ss.sketch(X, n_clusters=K)
lists = ss.index.train_lists(sketch, K)

os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp()  # for the locks of pgserver
import pgserver  # noqa: E402

server = pgserver.get_server(tempfile.mkdtemp(prefix="postgres-"), cleanup_mode="delete")
ask(TABLES + copy("queries", np.arange(N_QUERIES), queries))
ask(copy("items", np.arange(len(X)), lists.assign(X), X))
ask(copy("lists", np.arange(K), lists.centroids))
curves = {f"{len(X):,} rows": recalls("before")}

is_gone = X.mean(axis=1) > 200  # all bright squares: most of the sky
ask(copy("changes", *[np.flatnonzero(is_gone)] * 2))
ask("DELETE FROM items WHERE id IN (SELECT id FROM changes); DELETE FROM changes;")
left, ids = X[~is_gone], np.flatnonzero(~is_gone)
fresh = ss.index.train_lists(sketch, K, without=ss.sketch(X[is_gone], sketch.spec), previous=lists)
old, new = lists.assign(left), fresh.assign(left)
print(f"{is_gone.sum():,} rows deleted: {np.mean(old == new):.0%} of the others stay in their list")
ask("DELETE FROM lists;" + copy("lists", np.arange(K), fresh.centroids))
ask(copy("changes", ids[old != new], new[old != new]))
ask("UPDATE items SET list = c.list FROM changes c WHERE items.id = c.id;")
curves[f"after: {len(left):,} rows"] = recalls("after")

figure = Figure(figsize=(6, 4.5), layout="constrained")
ax = figure.subplots()
for title, shares in curves.items():
    ax.plot(PROBES, shares, "o-", label=title)
ax.set(xlabel="lists looked into", ylabel="recall@10")
ax.legend()
figure.savefig(folder / "lists_in_postgres.png", dpi=120)
print(f"the picture: {folder / 'lists_in_postgres.png'}")
server.cleanup()
