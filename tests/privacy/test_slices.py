"""Slices of private rows: refusals that tell nothing of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.errors import DataError, SketchFormatError


def test_too_many_slices_are_an_error_that_names_no_key(X, public_spec, set_free):
    secrets = np.array([f"person-{i}" for i in range(len(X))])
    set_free(10_000)

    with pytest.raises(DataError, match="slices by key need") as caught:
        ss.sketch_by(X, secrets, public_spec)

    assert "person" not in str(caught.value)


def test_a_table_of_private_sketches_is_refused_by_row(raw, release):
    plan = ss.SketchTable.of(pa.table({"day": [1]}), [raw]).to_arrow()["plan"]
    table = pa.table({"day": [1], "plan": plan, "sketch": [release(raw).to_bytes()]})

    with pytest.raises(SketchFormatError, match="row 0 of the table: the digest"):
        ss.SketchTable.from_arrow(table)
