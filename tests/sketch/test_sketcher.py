from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sketchshift as ss

SPEC = ss.SketchSpec(n_features=3, sketch_size=20, bandwidth=1.0)


def test_a_sketch_taken_earlier_does_not_change_later(X):
    sketcher = ss.Sketcher(SPEC).update(X[:300]).update(np.empty((0, 3)))
    early = sketcher.sketch()

    sketcher.update(X[300:])

    assert early == ss.sketch(X[:300], SPEC)
    with pytest.raises(ss.errors.DataError, match="no rows to sketch"):
        ss.sketch(np.empty((0, 3)), SPEC)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_refused_update_adds_nothing(spec, X, bad):
    sketcher = ss.Sketcher(spec).update(X[:5])
    few = np.array([X[5], [0.0, bad, 0.0], X[6]])

    for rows in (few, iter([X[:500], few])):
        with pytest.raises(ss.errors.InvalidRowsError, match="row 1 of"):
            sketcher.update(rows)
    with pytest.raises(ss.errors.RemovalError):
        sketcher.remove(X)

    assert sketcher.sketch() == ss.sketch(X[:5], spec)


def test_bad_rows_and_rows_without_a_weight_can_be_left_out_and_counted(X):
    dirty, weights = X.copy(), np.linspace(0, 2, len(X))
    dirty[[3, 700], [0, 1]] = weights[[17, 18]] = [np.nan, np.inf]
    good = np.delete(np.arange(len(X)), [3, 17, 18, 700])
    clean = ss.sketch(X[good], SPEC, sample_weight=weights[good])

    sketcher = ss.Sketcher(SPEC, on_invalid="skip").update(dirty, sample_weight=weights)
    s = sketcher.sketch()

    assert (s.count, s.n_invalid, s.total_weight) == (996, 4, clean.total_weight)
    np.testing.assert_array_equal(s.z, clean.z)
    np.testing.assert_array_equal(s.covariance, clean.covariance)
    assert "4 left out" in repr(s)
    for i in (3, 17, 18, 699, 700):
        sketcher.remove(dirty[i : i + 1], sample_weight=weights[i : i + 1])
    assert (sketcher.count, sketcher.sketch().n_invalid) == (995, 0)


@pytest.mark.parametrize("far", [1e12, 1e300])  # the square of the latter is no number
def test_a_point_too_far_out_is_named_and_never_skipped(X, far):
    """Beyond 2^20 turns the range reduction is no longer exact, so such rows are refused."""
    X[12, 1] = far

    for on_invalid in ("raise", "skip"):
        with pytest.raises(
            ss.errors.InvalidRowsError, match=r"row 12 of array lies too far out.*column 1"
        ):
            ss.sketch(X, SPEC, on_invalid=on_invalid)


def test_rows_just_within_reach_are_sketched_exactly():
    """At the limit the phases are near 2^20 turns: float64 phases must still be right."""
    spec = ss.SketchSpec(1, 50, bandwidth=1.0, precision="float64")
    X = np.array([[spec.reach * 0.999]])

    z = ss.sketch(X, spec).z

    t = X[0, 0] * spec.frequencies.turns[0].astype(float)
    expected = np.exp(2j * np.pi * (t - np.rint(t))) / np.sqrt(50)
    np.testing.assert_allclose(z, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("bad", "on_invalid"), [(-1.0, "skip"), (2.0**40, "skip"), (np.nan, "raise"), (np.inf, "raise")]
)
def test_weights_that_make_no_sense_are_refused(X, bad, on_invalid):
    weights = np.ones(len(X))
    weights[17] = bad

    with pytest.raises(ss.errors.InvalidRowsError, match="row 17 of array has weight") as caught:
        ss.sketch(X, SPEC, sample_weight=weights, on_invalid=on_invalid)
    assert ('on_invalid="skip"' in str(caught.value)) == (on_invalid == "raise")


def test_weights_beyond_the_integers_are_refused(X):
    sketcher = ss.Sketcher(SPEC).update(X[:1], sample_weight=[2.0**39])

    for part, weights in ((X[:1], [2.0**39]), (X[:4], np.full(4, 2.0**38.5))):
        with pytest.raises(ss.errors.DataError, match=r"total weight below 2\*\*40"):
            sketcher.update(part, sample_weight=weights)
    with pytest.raises(ss.errors.DataError, match=r"too small .* Multiply the weights"):
        ss.sketch(X, SPEC, sample_weight=np.full(len(X), 1e-6))


def test_the_first_bad_row_is_named_whatever_the_threads():
    X = np.zeros((400_000, 3))
    X[[70_000, 200_000, 390_000], 1] = np.nan

    for _ in range(10):
        with pytest.raises(ss.errors.InvalidRowsError, match="row 70000 of array"):
            ss.sketch(X, SPEC, n_threads=4)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_threads": 0}, "n_threads"),
        ({"kernel": "gpu"}, "no kernel named 'gpu'"),
        ({"spec": {"bandwidth": 1.0}}, "'spec' parameter of sketch must be a SketchSpec"),
        (
            {
                "spec": SPEC.replaced(rows=replace(SPEC.rows, columns=("a", "b", "c"))),
                "columns": ["c", "b", "a"],
            },
            "are not those of the spec",
        ),
    ],
)
def test_parameters_are_checked(X, parameters, words):
    with pytest.raises(ss.errors.SketchshiftError, match=words):
        ss.sketch(X, **{"spec": SPEC} | parameters)


def test_frames_with_columns_in_another_order_are_read_by_the_first_ones_names(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])

    s = ss.Sketcher(SPEC).update(frame).update(frame[["c", "a", "b"]]).update(X).sketch()

    assert s == sum([ss.sketch(X, SPEC)] * 3)
    with pytest.raises(ss.errors.DataError, match="no column 'b'"):
        ss.Sketcher(SPEC).update(frame).update(frame.rename(columns={"b": "z"}))


def test_progress_reports_rows_and_the_share_read():
    X, seen = np.ones((200_000, 3)), []

    ss.sketch(X, SPEC, progress=lambda n, share: seen.append((n, share)))

    assert sum(n for n, _ in seen) == len(X)
    assert seen[-1][1] == 1.0


@pytest.mark.parametrize("kind", ["float16", "float64", "uint64", "bool"])
def test_rows_one_by_one_are_those_of_one_array(kind):
    X = np.random.default_rng(1).integers(0, 2, size=(700, 3)).astype(kind)
    sketcher, row = ss.Sketcher(SPEC), np.empty((1, 3), kind)

    for x in X:
        row[:] = x
        sketcher.update(row)

    assert sketcher.count == 700
    assert sketcher.sketch() == ss.sketch(X, SPEC)


def test_threads_may_bring_single_rows_at_the_same_time(spec, X):
    sketcher = ss.Sketcher(spec)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: sketcher.update(X[i : i + 1]), range(len(X))))

    assert sketcher.sketch() == ss.sketch(X, spec)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy])
def test_a_copy_and_its_original_go_their_own_ways(X, copying):
    original = ss.Sketcher(SPEC).update(X[:1])
    other = copying(original).update(X[2:3])

    assert original.update(X[1:2]).sketch() == ss.sketch(X[:2], SPEC)
    assert other.sketch() == ss.sketch(X[[0, 2]], SPEC)
