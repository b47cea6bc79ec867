"""What entry points add to the core: found by group, and none of them can break the others."""

from __future__ import annotations

import importlib.metadata as metadata

import pytest

import sketchshift as ss
from sketchshift import _paths
from sketchshift._registry import added


def test_an_entry_point_that_cannot_be_imported_is_left_out_with_a_warning(monkeypatch):
    entries = [
        metadata.EntryPoint("good", "math:sqrt", "sketchshift.roots"),
        metadata.EntryPoint("bad", "no_such_module:f", "sketchshift.roots"),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda group: entries)

    with pytest.warns(
        UserWarning, match=r"sketchshift\.roots: 'bad' \(no_such_module:f\) is left out"
    ):
        found = added.__wrapped__("roots")

    assert list(found) == ["good"]
    assert found["good"](9.0) == 3.0


def test_an_address_that_nothing_reads_is_an_error_without_its_password(monkeypatch):
    monkeypatch.setattr(_paths, "first_answer", lambda *_: None)

    with pytest.raises(
        ss.errors.DataError, match=r"nothing that is installed reads .* sftp://"
    ) as error:
        ss.sketch("sftp://me:secret@host/x.csv", n_clusters=2)

    assert "secret" not in str(error.value)
