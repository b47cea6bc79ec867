"""Lists of an inverted index: trained from sketches, matched, refreshed, handed to faiss."""

from __future__ import annotations

import sys

import numpy as np
import pytest

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
def lists(rows, spec):
    return ss.index.train_lists(ss.sketch(rows, spec), K)


def test_centroids_are_ready_for_an_index(lists):
    assert lists.centroids.shape == (K, D)
    assert lists.centroids.dtype == np.float32
    assert lists.centroids.flags.c_contiguous
    assert (lists.n_lists, lists.n_rows, lists.metric) == (K, 6000, "euclidean")
    assert repr(lists) == "<CoarseLists: 12 x 6 columns, euclidean, of 6000 rows>"


def test_centroids_are_as_good_as_those_of_k_means_of_all_rows(rows, lists):
    assert ss.metrics.rse(rows, lists.centroids, ss.metrics.lloyd(rows, K)) < 1.001


def test_shares_are_those_of_the_rows_that_lists_get(rows, lists):
    counts = np.bincount(lists.assign(rows), minlength=K)

    np.testing.assert_allclose(lists.shares, counts / len(rows), atol=2e-3)


def test_shards_tables_and_the_whole_give_the_same_bytes(rows, spec, lists):
    table = ss.sketch_by(rows, by=np.arange(6000) // 1000, spec=spec)
    shards = [ss.sketch(part, spec) for part in np.split(rows, 4)]

    for given in (table, shards, iter(shards), [table.where("key < 2"), table.where("key >= 2")]):
        same = ss.index.train_lists(given, K)
        assert same.centroids.tobytes() == lists.centroids.tobytes()


def test_some_slices_of_a_table_are_chosen_by_a_condition(rows, spec):
    table = ss.sketch_by(rows, by=np.arange(6000) // 1000, spec=spec)

    chosen = ss.index.train_lists(table, K, where="key < 3")

    assert chosen.n_rows == 3000
    alone = ss.index.train_lists(ss.sketch(rows[:3000], spec), K)
    assert chosen.centroids.tobytes() == alone.centroids.tobytes()


def test_deleted_rows_leave_no_trace(rows, spec):
    is_gone = np.random.default_rng(1).random(6000) < 1 / 3
    whole, gone = ss.sketch(rows, spec), ss.sketch(rows[is_gone], spec)

    left = ss.index.train_lists(whole, K, without=gone)

    never = ss.index.train_lists(ss.sketch(rows[~is_gone], spec), K)
    assert left.n_rows == never.n_rows
    assert left.centroids.tobytes() == never.centroids.tobytes()


def test_a_refresh_keeps_the_numbers_of_lists(rows, spec, lists):
    """Half of the rows are deleted at random: every cluster is still where it was."""
    order = np.random.default_rng(2).permutation(K)
    whole, gone = ss.sketch(rows, spec), ss.sketch(rows[::2], spec)

    fresh = ss.index.train_lists(whole, K, without=gone, previous=lists.centroids[order])

    assert fresh.n_moved == 0
    assert np.array_equal(fresh.assign(rows), np.argsort(order)[lists.assign(rows)])


def test_one_list_moves_when_its_cluster_goes(rows, spec, lists):
    """The rows of one list are deleted: it goes elsewhere, and all others stay."""
    is_gone = lists.assign(rows) == 3
    whole, gone = ss.sketch(rows, spec), ss.sketch(rows[is_gone], spec)

    fresh = ss.index.train_lists(whole, K, without=gone, previous=lists)

    assert np.flatnonzero(fresh.has_moved).tolist() == [3]
    stays = np.arange(K) != 3
    assert (np.linalg.norm(fresh.centroids - lists.centroids, axis=1)[stays] < 2.0).all()


def test_new_centroids_take_the_numbers_of_those_next_to_them(rows, spec, lists):
    """Previous ones that are no good as a start: all in one place but for a little."""
    poor = lists.centroids[:1] + 1e-3 * np.random.default_rng(3).normal(size=(K, D))

    fresh = ss.index.train_lists(ss.sketch(rows, spec), K, previous=poor)

    order = ss.metrics.match_centroids(fresh.centroids, lists.centroids)
    np.testing.assert_allclose(fresh.centroids, lists.centroids[order], atol=0.2)
    assert fresh.n_moved > 0


def test_directions_have_length_one(rows):
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    sketch = ss.sketch(directions, n_clusters=K)

    lists = ss.index.train_lists(sketch, K, metric="cosine")

    np.testing.assert_allclose(np.linalg.norm(lists.centroids, axis=1), 1.0, atol=1e-6)
    by_angle = (rows @ lists.centroids.T).argmax(axis=1)
    assert np.array_equal(lists.assign(rows), by_angle)


def test_a_plan_of_directions_gives_lists_of_directions(rows):
    """Lengths of the rows are noise: they change nothing."""
    lengths = np.exp(np.random.default_rng(4).normal(size=(len(rows), 1)))
    spec = ss.plan(rows, n_clusters=K, metric="cosine")

    lists = ss.index.train_lists(ss.sketch(lengths * rows, spec), K)

    assert lists.metric == "cosine"
    np.testing.assert_allclose(np.linalg.norm(lists.centroids, axis=1), 1.0, atol=1e-6)
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    best = ss.metrics.lloyd(directions, K)
    best /= np.linalg.norm(best, axis=1, keepdims=True)
    assert ss.metrics.rse(directions, lists.centroids, best) < 1.01
    with pytest.raises(
        ss.errors.SpecError, match="must be 'cosine': the plan keeps directions alone"
    ):
        ss.index.train_lists(ss.sketch(rows, spec), K, metric="euclidean")


def test_lists_of_many_columns_are_as_good_as_those_of_k_means():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 64))[rng.integers(40, size=8000)] + 0.4 * rng.normal(size=(8000, 64))
    spec = ss.plan(X, n_clusters=40)

    lists = ss.index.train_lists(ss.sketch(X, spec), 40)

    assert ss.metrics.rse(X, lists.centroids, ss.metrics.lloyd(X, 40)) < 1.01


def test_more_lists_than_cells_are_refused_with_their_number(rows):
    spec = ss.plan(rows, n_clusters=2)
    n_cells = spec.cells.n_cells

    with pytest.raises(
        ss.errors.DataError, match=f"has {n_cells} cells: it cannot tell 4,000 lists"
    ):
        ss.index.train_lists(ss.sketch(rows, spec), 4000)


def test_fewer_distinct_rows_than_lists_are_refused(spec, rows):
    sketch = ss.sketch(np.repeat(rows[:3], 50, axis=0), spec)

    with pytest.raises(
        ss.errors.DataError, match="tells only 3 lists apart, and 12 were asked for"
    ):
        ss.index.train_lists(sketch, K)


def test_sketches_of_two_plans_are_refused(rows, spec):
    other = ss.plan(rows[:500], n_clusters=K)
    one, two = ss.sketch(rows, spec), ss.sketch(rows, other)

    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot merge sketches"):
        ss.index.train_lists([one, two], K)
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot subtract sketches"):
        ss.index.train_lists(one, K, without=two)


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
    ],
)
def test_what_cannot_be_used_is_named(rows, spec, given, message):
    given = {"n_lists": K} | given

    with pytest.raises(ss.errors.SpecError, match=message):
        ss.index.train_lists(ss.sketch(rows, spec), **given)


def test_no_sketches_at_all_are_refused(rows, spec):
    table = ss.sketch_by(rows, by=np.arange(6000) // 1000, spec=spec)

    with pytest.raises(
        ss.errors.DataError, match="'sketches' of train_lists has no sketches in it"
    ):
        ss.index.train_lists(table, K, where="key > 100")
    with pytest.raises(
        ss.errors.SpecError, match=r"must be sketches or tables of sketches\. Got array"
    ):
        ss.index.train_lists([rows], K)


def test_faiss_takes_the_lists_and_puts_rows_where_we_do(rows, lists):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    X = rows.astype(np.float32)

    index = lists.to_faiss()
    assert index.is_trained
    index.add(X)

    assert index.ntotal == len(X)
    _, labels = index.quantizer.search(X, 1)
    assert np.array_equal(labels[:, 0], lists.assign(X))
    index.nprobe = K
    squares, found = index.search(X[:20], 2)
    assert np.array_equal(found[:, 0], np.arange(20))
    all_squares = np.square(rows[:20, None] - rows).sum(axis=2)
    np.testing.assert_allclose(squares[:, 1], np.sort(all_squares, axis=1)[:, 1], rtol=1e-3)


def test_faiss_compares_directions_by_inner_products(rows):
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    directions = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    lists = ss.index.train_lists(ss.sketch(directions, n_clusters=K), K, metric="cosine")

    index = lists.to_faiss()
    index.add(directions)

    assert index.metric_type == faiss.METRIC_INNER_PRODUCT
    np.testing.assert_allclose(index.search(directions[:20], 1)[0], 1.0, atol=1e-5)


def test_without_faiss_one_is_told_what_to_install(lists, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)

    with pytest.raises(
        ss.errors.MissingDependencyError, match=r"pip install 'sketchshift\[index\]'"
    ):
        lists.to_faiss()
