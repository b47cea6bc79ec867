from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import sketchshift as ss

SPEC = ss.SketchSpec(n_features=3, sketch_size=20, bandwidth=1.0)


def test_a_sketch_taken_earlier_does_not_change_later(spec, X):
    sketcher = ss.Sketcher(spec).update(X[:300])
    early = sketcher.sketch()

    sketcher.update(X[300:])

    assert early == ss.sketch(X[:300], spec)


def test_empty_batches_are_welcome_in_a_stream(X):
    s = ss.Sketcher(SPEC).update(np.empty((0, 3))).update(X).sketch()

    assert s == ss.sketch(X, SPEC)


def test_no_rows_at_all_is_an_error():
    with pytest.raises(ss.errors.DataError, match="no rows to sketch"):
        ss.sketch(np.empty((0, 3)), SPEC)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_with_nan_or_infinity_are_named(X, bad, n_threads):
    X[701, 2] = bad

    with pytest.raises(
        ss.errors.InvalidRowsError, match=rf"row 701 of array has {bad} in column 2"
    ):
        ss.sketch(X, SPEC, n_threads=n_threads)


def test_bad_rows_are_named_by_column_when_there_are_names(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["height", "weight", "age"])
    frame.loc[5, "weight"] = np.nan

    with pytest.raises(
        ss.errors.InvalidRowsError, match=r"row 5 of table has nan in column 'weight'"
    ):
        ss.sketch(frame, SPEC)


def test_a_refused_update_adds_nothing(X):
    sketcher = ss.Sketcher(SPEC).update(X)
    before = sketcher.sketch()
    blocks = [X[:500].copy(), X[500:].copy()]
    blocks[1][-1, 0] = np.nan

    with pytest.raises(ss.errors.InvalidRowsError):
        sketcher.update(iter(blocks))
    with pytest.raises(ss.errors.RemovalError):
        sketcher.remove(np.concatenate([X, X]))

    assert sketcher.sketch() == before


def test_bad_rows_can_be_left_out_and_counted(X):
    dirty = X.copy()
    dirty[[3, 700], [0, 1]] = [np.nan, np.inf]

    s = ss.sketch(dirty, SPEC, on_invalid="skip")

    assert s.count == 998
    assert s.n_invalid == 2
    clean = ss.sketch(np.delete(X, [3, 700], axis=0), SPEC)
    np.testing.assert_array_equal(s.z, clean.z)
    assert "2 left out" in repr(s)


def test_forgetting_bad_rows_forgets_their_number_too(X):
    dirty = X.copy()
    dirty[3, 0] = np.nan
    sketcher = ss.Sketcher(SPEC, on_invalid="skip").update(dirty)

    s = sketcher.remove(dirty[:10]).sketch()

    assert s == ss.sketch(X[10:], SPEC)


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


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 2.0**40])
def test_weights_that_make_no_sense_are_refused(X, bad):
    weights = np.ones(len(X))
    weights[17] = bad

    with pytest.raises(ss.errors.InvalidRowsError, match="row 17 of array has weight"):
        ss.sketch(X, SPEC, sample_weight=weights)


@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_rows_whose_weight_is_missing_are_skipped_like_those_with_missing_values(X, missing):
    weights = np.arange(len(X)) % 3 + 0.5
    weights[17] = weights[40] = missing
    kept = np.isfinite(weights)

    s = ss.sketch(X, SPEC, sample_weight=weights, on_invalid="skip")
    plan = ss.plan(X, 3, sample_weight=weights, on_invalid="skip")

    rest = ss.sketch(X[kept], SPEC, sample_weight=weights[kept])
    assert (s.count, s.n_invalid) == (len(X) - 2, 2)
    assert s.total_weight == rest.total_weight
    np.testing.assert_array_equal(s.z, rest.z)
    np.testing.assert_array_equal(s.covariance, rest.covariance)
    assert plan == ss.plan(X[kept], 3, sample_weight=weights[kept])


def test_rows_whose_weight_is_missing_are_named_with_the_remedy(X):
    weights = np.where(np.arange(len(X)) == 17, np.nan, 1.0)

    message = r'row 17 of array has weight nan .*on_invalid="skip"'
    with pytest.raises(ss.errors.InvalidRowsError, match=message):
        ss.sketch(X, SPEC, sample_weight=weights)
    with pytest.raises(ss.errors.InvalidRowsError, match=message):
        ss.plan(X, 3, sample_weight=weights)


def test_negative_weights_are_not_skipped(X):
    weights = np.where(np.arange(len(X)) == 17, -1.0, 1.0)

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 17 of array has weight -1\.0"):
        ss.sketch(X, SPEC, sample_weight=weights, on_invalid="skip")


def test_a_total_weight_beyond_the_capacity_is_refused(X):
    sketcher = ss.Sketcher(SPEC).update(X[:1], sample_weight=[2.0**39])

    with pytest.raises(ss.errors.DataError, match=r"total weight below 2\*\*40"):
        sketcher.update(X[:1], sample_weight=[2.0**39])
    with pytest.raises(ss.errors.DataError, match=r"total weight below 2\*\*40"):
        ss.sketch(X[:4], SPEC, sample_weight=np.full(4, 2.0**38.5))


def test_weights_scale_the_sketch(X):
    weights = np.random.default_rng(0).gamma(1.0, size=len(X))

    s = ss.sketch(X, SPEC, sample_weight=weights)

    features = np.exp(2j * np.pi * (X @ SPEC.frequencies.turns.astype(float))) / np.sqrt(20)
    np.testing.assert_allclose(s.z, np.average(features, axis=0, weights=weights), atol=1e-6)
    assert f"weight {s.total_weight:.6g}" in repr(s)


@pytest.mark.parametrize("weight", [1.0, 1e-2, 1e-3])
def test_small_weights_keep_mean_covariance_and_z(weight):
    """A constant weight changes nothing but the total; steps of 2^-22 leave 1e-6 / weight."""
    X = 10 + np.random.default_rng(0).normal(size=(20_000, 3))
    spec = ss.SketchSpec(3, 20, bandwidth=3.0, center=(9.0, 9.0, 9.0))

    s = ss.sketch(X, spec, sample_weight=np.full(len(X), weight))

    plain = ss.sketch(X, spec)
    np.testing.assert_allclose(s.mean, plain.mean, atol=1e-9)
    np.testing.assert_allclose(s.covariance, plain.covariance, atol=1e-3)
    np.testing.assert_allclose(s.z, plain.z, atol=1e-6 / weight)
    np.testing.assert_allclose(s.total_weight, weight * len(X), rtol=1e-12)


def test_weights_far_from_the_center_keep_the_covariance():
    """The rounding of rows of partial weight is unbiased: 1e5 / 2^16 / sqrt(N) is 1e-2."""
    rng = np.random.default_rng(0)
    X, weights = 1e5 + rng.normal(size=(20_000, 2)), rng.gamma(1.0, size=20_000)

    s = ss.sketch(X, ss.SketchSpec(2, 10, bandwidth=1.0), sample_weight=weights)

    expected = np.cov(X.T, aweights=weights, bias=True)
    np.testing.assert_allclose(s.covariance, expected, atol=0.05)


def test_weights_too_small_for_the_integers_are_refused(X):
    weights = np.full(len(X), 1e-6)

    with pytest.raises(
        ss.errors.DataError, match=r"too small .* Multiply the weights by a constant"
    ):
        ss.sketch(X, SPEC, sample_weight=weights)


def test_bad_weights_of_rows_left_out_do_not_matter(X):
    weights = np.ones(len(X))
    X[3, 0], weights[3] = np.nan, np.nan

    s = ss.sketch(X, SPEC, sample_weight=weights, on_invalid="skip")

    assert s.n_invalid == 1


def test_several_threads_may_update_one_sketcher():
    X = np.random.default_rng(0).normal(size=(50_000, 3))
    sketcher = ss.Sketcher(SPEC, n_threads=1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sketcher.update, [X] * 8))

    assert sketcher.count == 400_000
    assert sketcher.sketch() == sum([ss.sketch(X, SPEC)] * 8)


def test_the_first_bad_row_is_named_whatever_the_threads():
    X = np.zeros((400_000, 3))
    X[[70_000, 200_000, 390_000], 1] = np.nan

    for _ in range(10):
        with pytest.raises(ss.errors.InvalidRowsError, match="row 70000 of array"):
            ss.sketch(X, SPEC, n_threads=4)


def test_another_number_of_columns_is_refused_with_both_numbers(X):
    with pytest.raises(
        ss.errors.DataError, match=r"array has 2 columns, and the spec has n_features=3"
    ):
        ss.sketch(X[:, :2], SPEC)


def test_columns_must_be_those_of_the_spec(X):
    spec = ss.SketchSpec(3, 20, bandwidth=1.0, columns=("a", "b", "c"))

    with pytest.raises(ss.errors.DataError, match=r"are not those of the spec"):
        ss.sketch({"a": 1}, spec, columns=["c", "b", "a"])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_threads": 0}, "n_threads"),
        ({"on_invalid": "ignore"}, "on_invalid"),
        ({"kernel": "gpu"}, "no kernel named 'gpu'"),
    ],
)
def test_parameters_are_checked(X, parameters, words):
    with pytest.raises(ss.errors.SpecError, match=words):
        ss.sketch(X, SPEC, **parameters)


def test_something_else_than_a_spec_is_refused(X):
    with pytest.raises(
        ss.errors.SpecError, match=r"'spec' parameter of sketch must be a SketchSpec"
    ):
        ss.sketch(X, {"bandwidth": 1.0})


def test_frames_with_columns_in_another_order_are_read_by_the_first_ones_names(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])

    s = ss.Sketcher(SPEC).update(frame).update(frame[["c", "a", "b"]]).update(X).sketch()

    assert s == sum([ss.sketch(X, SPEC)] * 3)
    with pytest.raises(ss.errors.DataError, match="no column 'b'"):
        ss.Sketcher(SPEC).update(frame).update(frame.rename(columns={"b": "z"}))


def test_progress_is_told_rows_and_share(X):
    seen = []
    X = np.tile(X, (200, 1))

    ss.sketch(X, SPEC, progress=lambda n, share: seen.append((n, share)))

    assert sum(n for n, _ in seen) == len(X)
    assert seen[-1][1] == 1.0


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_rows_one_by_one_are_those_of_one_array(kind):
    X = np.random.default_rng(1).integers(0, 2, size=(700, 3)).astype(kind)
    sketcher = ss.Sketcher(SPEC)

    for i in range(len(X)):
        sketcher.update(X[i : i + 1])

    assert sketcher.count == 700
    assert sketcher.sketch() == ss.sketch(X, SPEC)


def test_an_array_may_be_filled_again_after_each_update(spec, X):
    sketcher, row = ss.Sketcher(spec), np.empty((1, 3))

    for x in X:
        row[:] = x
        sketcher.update(row)

    assert sketcher.sketch() == ss.sketch(X, spec)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_bad_row_is_refused_by_the_call_that_brings_it(spec, X, bad):
    sketcher = ss.Sketcher(spec).update(X[:5])

    with pytest.raises(ss.errors.InvalidRowsError, match="row 1 of array"):
        sketcher.update(np.array([X[5], [0.0, bad, 0.0], X[6]]))

    assert sketcher.sketch() == ss.sketch(X[:5], spec)


def test_a_bad_row_among_single_ones_is_counted_where_it_may_be_left_out(spec, X):
    sketcher = ss.Sketcher(spec, on_invalid="skip")

    for x in [X[0], [np.nan, 0.0, 0.0], X[1]]:
        sketcher.update(np.array([x]))

    assert (sketcher.count, sketcher.sketch().n_invalid) == (2, 1)


def test_threads_may_bring_single_rows_at_the_same_time(spec, X):
    sketcher = ss.Sketcher(spec)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: sketcher.update(X[i : i + 1]), range(len(X))))

    assert sketcher.sketch() == ss.sketch(X, spec)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy])
def test_a_copy_and_its_original_go_their_own_ways(spec, X, copying):
    original = ss.Sketcher(spec).update(X[:1])
    other = copying(original)

    original.update(X[1:2])
    other.update(X[2:3])

    assert original.sketch() == ss.sketch(X[:2], spec)
    assert other.sketch() == ss.sketch(X[[0, 2]], spec)
