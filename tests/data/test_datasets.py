from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sketchshift.cli.data import DERIVED
from sketchshift.data.datasets import (
    NAMES,
    NOT_PUBLIC,
    china_pixels,
    data_folder,
    gaussian_mixture,
    is_here,
    load,
    load_labels,
)
from sketchshift.data.public import public_sets
from sketchshift.errors import DataError, MissingDependencyError

SHAPES = {
    "cifar10_features": (60000, 10),
    "covertype": (286048, 10),
    "cytof": (200000, 8),
    "mnist": (70000, 784),
    "skin": (245057, 3),
    "spectral_mnist": (70000, 10),
    "uber_pickups": (315055, 2),
}


ALL = [pytest.param(name, marks=pytest.mark.data(name)) for name in NAMES]


@pytest.mark.parametrize("name", ALL)
def test_every_dataset_is_rows_of_numbers(name):
    X, y = load(name), load_labels(name)

    assert X.ndim == 2
    assert X.dtype.kind in "fiu"
    assert X.shape == SHAPES.get(name, X.shape)
    assert y is None or y.shape == (len(X),)


def test_a_dataset_is_read_from_the_folder_named(tmp_path, monkeypatch):
    np.savez(tmp_path / "mnist.npz", X=np.arange(24, dtype="u1").reshape(2, 3, 4), y=[0, 1])
    np.savez(tmp_path / "sipu.npz", s1_X=np.eye(2), s1_y=[3, 4], s2_X=np.zeros((2, 2)))
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path))

    np.testing.assert_array_equal(load("mnist"), np.arange(24).reshape(2, 12))
    np.testing.assert_array_equal(load_labels("mnist"), [0, 1])
    np.testing.assert_array_equal(load("sipu/s1"), np.eye(2))
    np.testing.assert_array_equal(load_labels("sipu/s1"), [3, 4])
    assert load_labels("sipu/s2") is None
    assert is_here("sipu/s1")
    assert not is_here("skin")


@pytest.mark.parametrize("named", ["", None])
def test_without_a_folder_named_it_is_the_users_cache(tmp_path, monkeypatch, named):
    """An empty variable is one that is not set: make exports such."""
    monkeypatch.delenv("SKETCHSHIFT_DATA", raising=False)
    if named is not None:
        monkeypatch.setenv("SKETCHSHIFT_DATA", named)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "sketchshift"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder() == Path.home() / ".cache" / "sketchshift"


def test_a_missing_dataset_is_named_with_the_command_that_fetches_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "gone"))

    with pytest.raises(DataError, match=r"no 'sipu\.npz' in .*gone'\. .* sketchshift data sipu "):
        load("sipu/s1")
    with pytest.raises(DataError, match="It cannot be fetched: the features are those of a"):
        load("cifar10_features")


def test_what_the_message_proposes_is_what_the_command_knows():
    archives = {name.partition("/")[0] for name in NAMES} - set(NOT_PUBLIC)

    assert archives == {*public_sets(), *DERIVED}


def test_an_unknown_dataset_is_refused_with_a_close_one():
    with pytest.raises(DataError, match=r"no dataset 'sipu/s9'\. Did you mean 'sipu/s"):
        load("sipu/s9")


def test_the_picture_has_a_row_per_pixel():
    pytest.importorskip("PIL", reason="Pillow comes with the extra `plot`")

    X = china_pixels()

    assert X.shape == (427 * 640, 3)
    assert X.dtype == np.uint8
    assert len(np.unique(X, axis=0)) > 10_000


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(MissingDependencyError, match=r'pip install "sketchshift\[view\]"'):
        china_pixels()


def test_points_lie_around_their_means():
    """The mean of about 2500 points of spread 0.05 is off by 6 sigma = 0.006 at most."""
    X, labels = gaussian_mixture(10_000, 3, 4, seed=1)

    assert X.shape == (10_000, 3)
    assert X.dtype == np.float64
    assert set(labels) == {0, 1, 2, 3}
    for k in range(4):
        cluster = X[labels == k]
        assert np.all(np.abs(cluster.mean(axis=0)) < 1.006)
        np.testing.assert_allclose(cluster.std(axis=0), 0.05, rtol=0.1)


def test_the_spread_can_be_zero():
    X, labels = gaussian_mixture(100, 2, 5, cluster_std=0.0)

    assert len(np.unique(X, axis=0)) == len(np.unique(labels)) == 5


def test_the_seed_decides():
    first, again, other = (gaussian_mixture(50, 2, 3, seed=seed) for seed in (4, 4, 5))

    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
