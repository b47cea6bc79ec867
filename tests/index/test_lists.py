"""Lists of an inverted index: trained from sketches, matched, refreshed, handed to faiss."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

import sketchshift as ss

K, D = 12, 6


@pytest.fixture(scope="module")
def rows():
    """Clusters far apart, so that there is one right answer."""
    rng = np.random.default_rng(0)
    centers = 20.0 * rng.normal(size=(K, D))
    return centers[rng.integers(K, size=6000)] + rng.normal(size=(6000, D))


@pytest.fixture(scope="module")
def spec(rows):
    return ss.plan(rows, n_clusters=K)


@pytest.fixture(scope="module")
def lists(whole):
    return ss.index.train_lists(whole, K)


def test_centroids_are_ready_for_an_index(rows, lists):
    assert lists.centroids.shape == (K, D)
    assert lists.centroids.dtype == np.float32
    assert lists.centroids.flags.c_contiguous
    assert (lists.n_lists, lists.n_rows, lists.metric) == (K, 6000, "euclidean")
    assert repr(lists) == "<CoarseLists: 12 x 6 columns, euclidean, of 6000 rows>"
    np.testing.assert_allclose(lists.shares, np.bincount(lists.assign(rows)) / 6000, atol=2e-3)


def test_shards_tables_and_the_whole_give_the_same_bytes(rows, spec, lists, table):
    shards = [ss.sketch(part, spec) for part in np.split(rows, 4)]

    for given in (table, iter(shards), [table.where("key < 2"), table.where("key >= 2")]):
        same = ss.index.train_lists(given, K)
        assert same.centroids.tobytes() == lists.centroids.tobytes()
    chosen = ss.index.train_lists(table, K, where="key < 3")
    alone = ss.index.train_lists(ss.sketch(rows[:3000], spec), K)
    assert chosen.n_rows == 3000
    assert chosen.centroids.tobytes() == alone.centroids.tobytes()


def test_deleted_rows_leave_no_trace(rows, spec, whole):
    is_gone = np.random.default_rng(1).random(6000) < 1 / 3

    left = ss.index.train_lists(whole, K, without=ss.sketch(rows[is_gone], spec))

    never = ss.index.train_lists(ss.sketch(rows[~is_gone], spec), K)
    assert left.n_rows == never.n_rows
    assert left.centroids.tobytes() == never.centroids.tobytes()


def test_a_refresh_keeps_the_numbers_of_lists(rows, spec, whole, lists):
    """Half of the rows are deleted at random: every cluster is still where it was."""
    order, gone = np.random.default_rng(2).permutation(K), ss.sketch(rows[::2], spec)

    fresh = ss.index.train_lists(whole, K, without=gone, previous=lists.centroids[order])

    assert fresh.n_moved == 0
    assert np.array_equal(fresh.assign(rows), np.argsort(order)[lists.assign(rows)])


def test_one_list_moves_when_its_cluster_goes(rows, spec, whole, lists):
    """The rows of one list are deleted: it goes elsewhere, and all others stay."""
    gone = ss.sketch(rows[lists.assign(rows) == 3], spec)

    fresh = ss.index.train_lists(whole, K, without=gone, previous=lists)

    assert np.flatnonzero(fresh.has_moved).tolist() == [3]
    steps = np.linalg.norm(fresh.centroids - lists.centroids, axis=1)
    assert np.delete(steps, 3).max() < 2.0


def test_new_centroids_take_the_numbers_of_those_next_to_them(whole, lists):
    """Previous ones that are no good as a start: all in one place but for a little."""
    poor = lists.centroids[:1] + 1e-3 * np.random.default_rng(3).normal(size=(K, D))

    fresh = ss.index.train_lists(whole, K, previous=poor)

    order = ss.metrics.match_centroids(fresh.centroids, lists.centroids)
    np.testing.assert_allclose(fresh.centroids, lists.centroids[order], atol=0.2)
    assert fresh.n_moved > 0


def test_a_plan_of_directions_gives_lists_of_directions(rows):
    """Lengths of the rows are noise: they change nothing."""
    lengths = np.exp(np.random.default_rng(4).normal(size=(len(rows), 1)))
    sketch = ss.sketch(lengths * rows, ss.plan(rows, n_clusters=K, metric="cosine"))

    lists = ss.index.train_lists(sketch, K)

    assert lists.metric == "cosine"
    np.testing.assert_allclose(np.linalg.norm(lists.centroids, axis=1), 1.0, atol=1e-6)
    assert np.array_equal(lists.assign(rows), (rows @ lists.centroids.T).argmax(axis=1))
    directions = normalize(rows)
    best = normalize(ss.metrics.lloyd(directions, K))
    assert ss.metrics.rse(directions, lists.centroids, best) < 1.01
    with pytest.raises(ss.errors.SpecError, match="'cosine': the plan keeps directions alone"):
        ss.index.train_lists(sketch, K, metric="euclidean")


def test_lists_of_many_columns_are_as_good_as_those_of_k_means():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 64))[rng.integers(20, size=4000)] + 0.4 * rng.normal(size=(4000, 64))

    lists = ss.index.train_lists(ss.sketch(X, n_clusters=20), 20)

    assert ss.metrics.rse(X, lists.centroids, ss.metrics.lloyd(X, 20)) < 1.01


def test_too_many_lists_are_refused(rows, spec):
    few, n_cells = np.repeat(rows[:3], 50, axis=0), spec.cells.n_cells

    for data, k, message in (
        (rows, 4000, f"has {n_cells} cells: it cannot tell 4,000 lists"),
        (few, K, "tells only 3 lists apart, and 12 were asked for"),
    ):
        with pytest.raises(ss.errors.DataError, match=message):
            ss.index.train_lists(ss.sketch(data, spec), k)


def test_sketches_of_two_plans_are_refused(rows, whole):
    other = ss.sketch(rows, ss.plan(rows[:500], n_clusters=K))

    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot merge sketches"):
        ss.index.train_lists([whole, other], K)
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot subtract sketches"):
        ss.index.train_lists(whole, K, without=other)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_lists": 0}, "'n_lists' parameter of train_lists must be an integer from 1 to 16384"),
        ({"metric": "manhattan"}, "'metric' parameter of train_lists must be one of 'euclidean'"),
        ({"where": "key < 3"}, "'where' parameter of train_lists must be None where no table"),
        ({"previous": np.zeros((3, D))}, r"must be lists, or finite centroids of shape \(12, 6\)"),
        ({"previous": "yesterday"}, r"must be lists, or finite centroids of shape \(12, 6\)"),
        ({"without": "yesterday"}, "'without' parameter of train_lists must be sketches or tables"),
        ({"without": 3}, "'without' parameter of train_lists must be sketches or tables"),
        ({"sketches": [np.eye(2)]}, r"must be sketches or tables of sketches\. Got array"),
    ],
)
def test_what_cannot_be_used_is_named(whole, table, given, message):
    given = {"sketches": whole, "n_lists": K} | given

    with pytest.raises(ss.errors.SpecError, match=message):
        ss.index.train_lists(**given)
    with pytest.raises(ss.errors.DataError, match="'sketches' of train_lists has no sketches"):
        ss.index.train_lists(table, K, where="key > 100")


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_faiss_takes_the_lists_and_finds_what_we_do(rows, metric):
    """Directions are compared by inner products."""
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    X = (normalize(rows) if metric == "cosine" else rows).astype(np.float32)
    lists = ss.index.train_lists(ss.sketch(X, n_clusters=K), K, metric=metric)

    index = lists.to_faiss()
    index.add(X)

    assert index.ntotal == len(X)
    _, labels = index.quantizer.search(X, 1)
    assert np.array_equal(labels[:, 0], lists.assign(X))
    index.nprobe = K
    scores, found = index.search(X[:20], 2)
    assert np.array_equal(found[:, 0], np.arange(20))
    squares = np.sort(cdist(X[:20], X, "sqeuclidean"), axis=1)[:, 1]
    if metric == "cosine":
        assert index.metric_type == faiss.METRIC_INNER_PRODUCT
        np.testing.assert_allclose(np.linalg.norm(lists.centroids, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(scores[:, 1], 1 - squares / 2, atol=1e-5)
    else:
        np.testing.assert_allclose(scores[:, 1], squares, rtol=1e-3)


def test_without_faiss_one_is_told_what_to_install(lists, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)

    with pytest.raises(
        ss.errors.MissingDependencyError, match=r"pip install 'sketchshift\[index\]'"
    ):
        lists.to_faiss()


@pytest.fixture(scope="module")
def table(rows, spec):
    return ss.sketch_by(rows, by=np.arange(6000) // 1000, spec=spec)


@pytest.fixture(scope="module")
def whole(rows, spec):
    return ss.sketch(rows, spec)
