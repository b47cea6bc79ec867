from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from sketchshift.data.real import NAMES, china_pixels, load
from sketchshift.errors import DataError, MissingDependencyError

FOLDER = os.environ.get("SKETCHSHIFT_DATA", "")
SHAPES = {
    "cifar10_features": (60000, 10),
    "covertype": (286048, 10),
    "cytof": (200000, 8),
    "mnist": (70000, 784),
    "skin": (245057, 3),
    "spectral_mnist": (70000, 10),
    "uber_pickups": (315055, 2),
}
needs_data = pytest.mark.skipif(
    not FOLDER or not Path(FOLDER).is_dir(), reason="SKETCHSHIFT_DATA names no folder"
)


@needs_data
@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_is_rows_of_numbers(name):
    X = load(name)

    assert X.ndim == 2
    assert X.dtype.kind in "fiu"
    assert X.shape == SHAPES.get(name, X.shape)


def test_a_dataset_is_read_from_the_folder_named(tmp_path, monkeypatch):
    np.savez(tmp_path / "mnist.npz", X=np.arange(24, dtype="u1").reshape(2, 3, 4), y=[0, 1])
    np.savez(tmp_path / "sipu.npz", s1_X=np.eye(2), s2_X=np.zeros((2, 2)))
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path))

    np.testing.assert_array_equal(load("mnist"), np.arange(24).reshape(2, 12))
    np.testing.assert_array_equal(load("sipu/s1"), np.eye(2))
    with pytest.raises(DataError, match=r"has no file 'skin\.npz'"):
        load("skin")


def test_without_a_folder_the_variable_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SKETCHSHIFT_DATA", raising=False)
    with pytest.raises(DataError, match="SKETCHSHIFT_DATA names, and it is not set"):
        load("mnist")

    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match="gone' is not a folder"):
        load("mnist")


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

    with pytest.raises(MissingDependencyError, match=r'pip install "sketchshift\[plot\]"'):
        china_pixels()
