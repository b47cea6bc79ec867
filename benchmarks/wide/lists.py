"""Lists of an inverted index for a million SIFT descriptors: from a sketch, and by faiss.

Each step runs in a process of its own, whose peak of memory is measured, and is not run again when
its facts are in ``results/wide/lists.json``; centroids lie beside the data.

    python -m wide.lists [--again train,faiss-1]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine

import sketchshift as ss
from wide.datasets import folder, open_rows, path_of
from wide.methods import blocks, mse

RESULTS = Path(__file__).parents[1] / "results" / "wide" / "lists.json"
K, STEPS, PROBES, N_QUERIES = 1024, 25, (1, 2, 4, 8, 16, 32), 1000
DATASET, LEFT = "sift", "sift-left"


def kept(name: str) -> Path:
    """Where a step leaves what others need."""
    return folder() / f"lists-{name}"


def train() -> dict[str, Any]:
    """Plan, one pass, centroids: all from the file, block by block."""
    path, clock = path_of(DATASET), time.process_time
    start = clock()
    spec = ss.plan(path, n_clusters=K)
    planned = clock()
    sketch = ss.sketch(path, spec)
    read = clock()
    lists = ss.index.train_lists(sketch, K)
    facts = {"plan_s": planned - start, "pass_s": read - planned, "train_s": clock() - read}
    facts |= peak() | {"bytes": sketch.nbytes, "trust": str(lists.trust)}
    sketch.save(kept("all.sketch"))
    np.save(kept("ours.npy"), lists.centroids)
    return facts | error("ours", DATASET)


def delete() -> dict[str, Any]:
    """A random third is subtracted: same bytes as never seen, and centroids of the rest."""
    is_gone = np.random.default_rng(1).random(len(open_rows(DATASET))) < 1 / 3
    write_rest(is_gone)
    whole = ss.load(kept("all.sketch"))
    gone = ss.sketch(chosen(is_gone), whole.spec)
    start = time.process_time()
    lists = ss.index.train_lists(whole, K, without=gone, previous=np.load(kept("ours.npy")))
    facts: dict[str, Any] = {"train_s": time.process_time() - start} | peak()
    never = ss.sketch(folder() / f"{LEFT}.npy", whole.spec)
    np.save(kept("ours-left.npy"), lists.centroids)
    old, left = np.load(kept("ours.npy")), open_left()
    same = [
        ss.metrics.assign(b, old) == ss.metrics.assign(b, lists.centroids)
        for b in blocks(left[::20])
    ]
    facts |= {"same_bytes": whole - gone == never, "n_moved": lists.n_moved}
    return facts | {"stay": float(np.concatenate(same).mean())} | error("ours-left", LEFT)


def chosen(these: np.ndarray) -> Any:
    """Blocks of some rows of the set."""
    first = 0
    for block in blocks(open_rows(DATASET)):
        yield block[these[first : first + len(block)]]
        first += len(block)


def write_rest(is_gone: np.ndarray) -> None:
    from wide.datasets import write_npy

    write_npy(folder() / f"{LEFT}.npy", chosen(~is_gone))


def open_left() -> np.ndarray:
    return np.load(folder() / f"{LEFT}.npy", mmap_mode="r")


def faiss_kmeans(name: str, seed: int) -> dict[str, Any]:
    """k-means of faiss on all rows, 25 steps."""
    import faiss

    rows = np.array(open_left() if name == LEFT else open_rows(name))
    means = faiss.Kmeans(
        rows.shape[1], K, niter=STEPS, seed=seed, max_points_per_centroid=len(rows)
    )
    start = time.process_time()
    means.train(rows)
    facts: dict[str, Any] = {"train_s": time.process_time() - start} | peak()
    label = f"faiss-{seed}" + "-left" * (name == LEFT)
    np.save(kept(f"{label}.npy"), means.centroids)
    return facts | error(label, name)


def recall(name: str, labels: tuple[str, ...]) -> dict[str, Any]:
    """Recall@10 of indexes that differ in their centroids, and the share of rows looked at."""
    import faiss

    rows = np.array(open_left() if name == LEFT else open_rows(name))
    rng = np.random.default_rng(2)
    # Other places than those of the rows, but like them: halfway between two neighbours.
    some = rows[rng.choice(len(rows), N_QUERIES, replace=False)]
    exact = faiss.IndexFlatL2(rows.shape[1])
    exact.add(rows)
    queries = (some + rows[exact.search(some, 2)[1][:, 1]]) / 2
    truth = exact.search(queries, 10)[1]
    facts = {}
    for label in labels:
        index = _index_on(np.load(kept(f"{label}.npy")))
        index.add(rows)
        facts[label] = [_recall(index, queries, truth, n) for n in PROBES]
    return facts


def _index_on(centroids: np.ndarray) -> Any:
    return ss.index.CoarseLists(centroids, np.ones(K) / K, "euclidean", 0).to_faiss()


def _recall(index: Any, queries: np.ndarray, truth: np.ndarray, n_probes: int) -> dict[str, Any]:
    index.nprobe = n_probes
    found, visited = index.search(queries, 10)[1], index.quantizer.search(queries, n_probes)[1]
    pairs = zip(truth, found, strict=True)
    hits = float(np.mean([len(np.intersect1d(*pair)) / 10 for pair in pairs]))
    sizes = np.array([index.invlists.list_size(i) for i in range(index.nlist)])
    looked = float(sizes[visited].sum(axis=1).mean() / index.ntotal)
    return {"probes": n_probes, "recall": hits, "looked_at": looked}


def error(label: str, name: str) -> dict[str, float]:
    rows = open_left() if name == LEFT else open_rows(name)
    return {"mse": mse(rows, np.load(kept(f"{label}.npy")))}


def peak() -> dict[str, float]:
    return {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


DO: dict[str, Callable[[], dict[str, Any]]] = {
    "train": train,
    "faiss-1": lambda: faiss_kmeans(DATASET, 1),
    "faiss-2": lambda: faiss_kmeans(DATASET, 2),
    "recall": lambda: recall(DATASET, ("ours", "faiss-1", "faiss-2")),
    "delete": delete,
    "rebuild": lambda: faiss_kmeans(LEFT, 1),
    "recall-left": lambda: recall(LEFT, ("ours-left", "faiss-1-left")),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="wide.lists", description=__doc__)
    parser.add_argument("--again", default="", help="steps to run again")
    parser.add_argument("--one", help="do a single step, and print its facts")
    chosen = parser.parse_args()
    if chosen.one is not None:
        print(json.dumps(DO[chosen.one]()))
        return
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for step in DO:
        if step in done and step not in chosen.again.split(","):
            continue
        command = [sys.executable, "-W", "ignore", "-m", "wide.lists", "--one", step]
        facts = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        done[step] = facts | {"date": str(date.today()), "machine": machine()}
        print(step, done[step], file=sys.stderr, flush=True)
        RESULTS.write_text(json.dumps(done, indent=2) + "\n")


if __name__ == "__main__":
    main()
