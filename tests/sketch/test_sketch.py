from __future__ import annotations

import operator
import pickle

import cloudpickle
import numpy as np
import pytest

import sketchshift as ss
from sketchshift.sketch.sketch import check_same_spec


def test_an_error_of_different_specs_has_both_and_what_was_to_be_done(X):
    """Same shape, other bandwidth: the coordinates mean different things."""
    specs = [ss.SketchSpec(3, 50, bandwidth) for bandwidth in (0.3, 0.1)]
    left, right = (ss.sketch(X, spec) for spec in specs)

    for call, verb in (
        (operator.add, "merge"),
        (operator.sub, "subtract"),
        (lambda left, right: check_same_spec(left, right, "weigh"), "weigh"),
    ):
        with pytest.raises(
            ss.errors.IncompatibleSketchesError,
            match=rf"cannot {verb} sketches(.*\n)*.*bandwidth=0\.3.*\n.*bandwidth=0\.1",
        ) as caught:
            call(left, right)
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert (error.verb, error.left, error.right) == (verb, *specs)


def test_sketches_add_up_with_sketches_alone(spec, X):
    for call in (operator.add, operator.sub):
        with pytest.raises(TypeError):
            call(ss.sketch(X, spec), 1)


@pytest.mark.parametrize(
    ("whole", "part", "weights", "words"),
    [
        (10, slice(1000), None, r"1000 rows .* from 10 "),
        (10, slice(10, 20), None, "were never added|more than was added"),
        (10, slice(2), [100.0, 1.0], "weight 101"),
    ],
)
def test_removing_what_was_not_added_is_an_error(spec, X, whole, part, weights, words):
    removed = ss.sketch(X[part], spec, sample_weight=weights)

    with pytest.raises(ss.errors.RemovalError, match=words):
        ss.sketch(X[:whole], spec) - removed


def test_sketches_of_different_rows_are_not_equal(spec, X):
    s = ss.sketch(X, spec)

    assert s != ss.sketch(X + 1e-3, spec)
    assert s != "a sketch"
    assert len({s, ss.sketch(X, spec), ss.sketch(X[1:], spec)}) == 2


def test_the_first_frequencies_are_a_sketch_of_their_own(spec, X):
    """Nested prefixes: one pass serves every smaller m."""
    prefix = ss.sketch(X, spec).prefix(10)

    assert prefix == ss.sketch(X, spec.prefix(10))
    assert prefix.z.shape == (10,)
    assert "1000 rows x 3 columns: m=10" in repr(prefix)
    assert f"{len(prefix.to_bytes())} bytes" in repr(prefix)


@pytest.mark.parametrize("library", [pickle, cloudpickle], ids=lambda library: library.__name__)
def test_sketches_and_specs_are_pickled_through_the_format(library, spec, X):
    s = ss.sketch(X, spec)

    assert pickle.loads(library.dumps(s)) == s
    assert pickle.loads(library.dumps(spec)).fingerprint == spec.fingerprint
    assert s.to_bytes() in library.dumps(s)  # nothing but the file travels


def test_the_empty_sketch_is_the_zero_of_addition(spec, X):
    s, empty = ss.sketch(X, spec), ss.Sketcher(spec).sketch()

    assert s + empty == s
    assert s - s == empty
    with pytest.raises(ss.errors.RemovalError, match="no mean of nothing"):
        _ = empty.z
    assert np.isnan(empty.mean).all()
    assert np.isnan(empty.covariance).all()


def test_a_constant_dataset_has_no_covariance(spec):
    s = ss.sketch(np.full((100, 3), 0.1), spec)

    np.testing.assert_allclose(s.mean, [0.1, 0.1, 0.1], atol=1e-9)
    np.testing.assert_array_equal(s.covariance, np.zeros((3, 3)))
