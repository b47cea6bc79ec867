"""What the estimators read: rows in memory by scikit-learn's rules, sources by our own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import sketchshift as ss
from sketchshift.errors import DataError

NAMES = ["height", "weight"]
KM = ss.CompressiveKMeans(3, sketch_size=60, random_state=0)


@pytest.fixture
def frame(blobs):
    return pd.DataFrame(blobs, columns=NAMES)


@pytest.fixture
def folder(frame, tmp_path):
    """Two Parquet files."""
    for i, part in enumerate((frame[:250], frame[250:])):
        part.to_parquet(tmp_path / f"{i}.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_and_tables_keep_their_names(frame, kind):
    table = kind(frame)

    km = clone(KM).fit(table)

    assert km.feature_names_in_.tolist() == NAMES
    assert km.sketch_.spec == ss.plan(frame, 3, sketch_size=60)
    assert_array_equal(km.predict(table), km.labels_)


def test_files_are_read_by_whatever_names_them(folder, frame):
    files = sorted(folder.glob("*.parquet"))
    expected = clone(KM).fit(frame).sketch_
    planned = clone(KM).set_params(spec=expected.spec, sketch_size=None)

    for km in (
        clone(KM).fit(str(folder / "*.parquet")),
        clone(KM).fit(folder),
        clone(KM).fit(files),
        planned.partial_fit(files[0]).partial_fit(files[1]),
    ):
        assert km.sketch_ == expected
        assert km.feature_names_in_.tolist() == NAMES


def test_there_are_no_labels_of_files_and_the_message_says_why(folder):
    km = clone(KM).fit(folder)

    with pytest.raises(AttributeError, match=r"no labels_: a sketch keeps no rows.*predict\(X\)"):
        _ = km.labels_
    with pytest.raises(AttributeError, match="no labels_"):
        km.fit_predict(folder)
    with pytest.raises(DataError, match="all else needs rows in memory"):
        km.predict(str(folder))


def test_a_column_of_weights_is_named(frame, tmp_path):
    frame.abs().to_parquet(tmp_path / "part.parquet")
    km = clone(KM).fit(tmp_path, sample_weight="weight")

    assert km.feature_names_in_.tolist() == ["height"]
    assert km.sketch_.total_weight == pytest.approx(frame["weight"].abs().sum(), rel=1e-6)


def test_iterators_and_blocks_are_read_once(blobs):
    km = ss.CompressiveKMeans(3, spec=ss.plan(blobs, 3, sketch_size=60), random_state=0)
    blocks = np.array_split(blobs, 4)

    for data in (iter(blocks), blocks):
        assert km.fit(data).sketch_ == ss.sketch(blobs, km.spec)
        assert not hasattr(km, "feature_names_in_")


def test_names_come_from_the_sketch(frame):
    sketch = ss.sketch(frame, n_clusters=3)

    km = clone(KM).fit_sketch(sketch)

    assert km.feature_names_in_.tolist() == NAMES
    assert km.fit_sketch(ss.sketch(frame.to_numpy(), n_clusters=3)).n_features_in_ == 2
    assert not hasattr(km, "feature_names_in_")


def test_a_plan_for_other_columns_is_refused(frame):
    spec = ss.plan(frame[NAMES[::-1]], 3)

    with pytest.raises(DataError, match=r"for the columns \['weight', 'height'\], and X has"):
        ss.CompressiveKMeans(3, spec=spec).fit(frame)


def test_the_name_of_a_column_of_weights_in_memory_is_refused_with_the_remedy(frame):
    with pytest.raises(DataError, match=r"Pass sample_weight=X\['weight'\], and leave"):
        clone(KM).fit(frame, sample_weight="weight")


def test_what_is_no_data_is_refused_with_what_there_is():
    for data in (None, {"a": [1.0]}, 3.0):
        with pytest.raises(DataError, match=r"cannot read data of type .* Pass an array"):
            clone(KM).fit(data)
