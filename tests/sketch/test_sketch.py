from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import cloudpickle
import joblib
import numpy as np
import pytest

import sketchshift as ss
from sketchshift.sketch.sketch import check_same_spec


def test_z_is_the_mean_of_the_features_in_the_papers_normalisation(X):
    spec = ss.SketchSpec(n_features=3, sketch_size=50, bandwidth=0.7)

    z = ss.sketch(X, spec).z

    features = np.exp(2j * np.pi * (X @ spec.frequencies.turns.astype(float))) / np.sqrt(50)
    assert z.shape == (50,)
    assert z.dtype == np.complex128
    np.testing.assert_allclose(z, features.mean(axis=0), atol=1e-7)


def test_parts_add_up_by_sum(spec, X):
    parts = [ss.sketch(part, spec) for part in np.array_split(X, 7)]

    assert sum(parts) == ss.sketch(X, spec)
    assert sum(parts).count == len(X)


def test_merging_refuses_another_spec_and_names_both_sides(X):
    """Same shape, other bandwidth: the coordinates mean different things."""
    left = ss.sketch(X, ss.SketchSpec(3, 20, bandwidth=0.3, seed=7))
    right = ss.sketch(X, ss.SketchSpec(3, 20, bandwidth=0.1, seed=7))

    with pytest.raises(
        ss.errors.IncompatibleSketchesError, match=r"bandwidth=0\.3.*\n.*bandwidth=0\.1"
    ):
        left + right
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot subtract sketches"):
        left - right


def test_an_error_of_different_specs_has_both_and_what_was_to_be_done(X):
    specs = [ss.SketchSpec(3, 50, bandwidth) for bandwidth in (0.3, 0.1)]
    left, right = (ss.sketch(X[:, :3], spec) for spec in specs)

    with pytest.raises(
        ss.errors.IncompatibleSketchesError, match="cannot weigh sketches"
    ) as caught:
        check_same_spec(left, right, "weigh")

    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.verb, error.left, error.right) == ("weigh", *specs)
    check_same_spec(left, left + left, "weigh")


def test_moments_are_the_mean_and_the_covariance(X, spec):
    s = ss.sketch(X, spec)

    mean, covariance = s.moments

    np.testing.assert_array_equal(mean, s.mean)
    np.testing.assert_array_equal(covariance, s.covariance)


@pytest.mark.parametrize("other", [1, 0.0, "text", None, np.zeros(3)])
def test_merging_refuses_what_is_no_sketch(spec, X, other):
    s = ss.sketch(X, spec)

    with pytest.raises(TypeError):
        s + other
    with pytest.raises(TypeError):
        s - other


def test_removing_more_than_was_added_is_an_error(spec, X):
    few, many = ss.sketch(X[:10], spec), ss.sketch(X, spec)

    with pytest.raises(ss.errors.RemovalError, match=r"1000 rows .* from 10 "):
        few - many


def test_removing_other_rows_is_noticed_when_nothing_could_be_left(spec, X):
    left, right = ss.sketch(X[:10], spec), ss.sketch(X[10:20], spec)

    with pytest.raises(ss.errors.RemovalError, match=r"were never added|more than was added"):
        left - right


def test_removing_a_heavier_row_is_noticed(spec, X):
    whole = ss.sketch(X[:10], spec)
    heavy = ss.sketch(X[:2], spec, sample_weight=[100.0, 1.0])

    with pytest.raises(ss.errors.RemovalError, match=r"weight 101"):
        whole - heavy


def test_sketches_of_different_rows_are_not_equal(spec, X):
    s = ss.sketch(X, spec)

    assert s != ss.sketch(X[1:], spec)
    assert s != ss.sketch(X + 1e-3, spec)
    assert s != "a sketch"
    assert len({s, ss.sketch(X, spec), ss.sketch(X[1:], spec)}) == 2


def test_the_first_frequencies_are_a_sketch_of_their_own(spec, X):
    """Nested prefixes: one pass serves every smaller m."""
    prefix = ss.sketch(X, spec).prefix(10)

    assert prefix == ss.sketch(X, spec.prefix(10))
    assert prefix.z.shape == (10,)


def test_repr_says_what_is_inside(X):
    s = ss.sketch(X, ss.SketchSpec(3, 50, bandwidth=0.7))

    assert "1000 rows x 3 columns: m=50" in repr(s)
    assert f"{len(s.to_bytes())} bytes" in repr(s)


@pytest.mark.parametrize("library", [pickle, cloudpickle], ids=lambda library: library.__name__)
def test_sketches_and_specs_are_pickled_through_the_format(library, spec, X):
    s = ss.sketch(X, spec)

    assert pickle.loads(library.dumps(s)) == s
    assert pickle.loads(library.dumps(spec)).fingerprint == spec.fingerprint
    assert s.to_bytes() in library.dumps(s)  # nothing but the file travels


def _sketch_part(part: np.ndarray, spec: ss.SketchSpec) -> ss.Sketch:
    return ss.sketch(part, spec)


def test_processes_send_sketches_home(spec, X):
    """What every engine does: parts in other processes, sketches back, one sum."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(_sketch_part, np.array_split(X, 4), [spec] * 4))

    assert sum(parts) == ss.sketch(X, spec)


def test_joblib_stores_sketches(tmp_path, spec, X):
    s = ss.sketch(X, spec)

    joblib.dump(s, tmp_path / "s.joblib")

    assert joblib.load(tmp_path / "s.joblib") == s


def test_the_empty_sketch_is_the_zero_of_addition(spec, X):
    s, empty = ss.sketch(X, spec), ss.Sketcher(spec).sketch()

    assert s + empty == s
    assert s - s == empty
    with pytest.raises(ss.errors.RemovalError, match="no mean of nothing"):
        _ = empty.z
    assert np.isnan(empty.mean).all()
    assert np.isnan(empty.covariance).all()


def test_a_constant_dataset_has_no_covariance(spec):
    X = np.full((100, 3), 0.1)

    s = ss.sketch(X, spec)

    np.testing.assert_allclose(s.mean, [0.1, 0.1, 0.1], atol=1e-9)
    np.testing.assert_array_equal(s.covariance, np.zeros((3, 3)))
