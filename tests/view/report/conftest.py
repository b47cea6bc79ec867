"""A small table of sketches with names that must stay text, and a server on it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import Explorer
from sketchshift.view.server import listening

SCRIPT = "<script>alert(1)</script>"
SHOP = "it's <b>"


def rows(n=3000, seed=0):
    """Three clusters in three columns; the third one grows from day to day."""
    rng = np.random.default_rng(seed)
    day = np.arange(n) * 4 // n
    centers = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 2.0], [0.0, 6.0, -2.0]])
    odds = np.column_stack([3.0 - 0.5 * day, np.full(n, 2.0), 1.0 + 0.5 * day])
    label = (rng.random((n, 1)) > np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)).sum(1)
    X = centers[label] + 0.4 * rng.normal(size=(n, 3))
    columns = {"x": X[:, 0], SCRIPT: X[:, 1], "z, with a comma": X[:, 2]}
    shops = np.array(["a", "b", SHOP])[rng.integers(0, 3, n)]
    return pa.table({**columns, "day": [f"2026-01-0{1 + i}" for i in day], "shop": shops})


@pytest.fixture(scope="session")
def data():
    """The rows behind the table, shape (3000, 3)."""
    return np.column_stack([column.to_numpy() for column in rows().columns[:3]])


@pytest.fixture(scope="session")
def table():
    return ss.sketch_by(rows(), by=["day", "shop"], n_clusters=5)


@pytest.fixture(scope="session")
def subject(table):
    return SketchFile.of("sketches.parquet", 12_345, table)


@pytest.fixture
def private(seeded_noise):
    """The same clusters, of more rows, released."""
    names = rows(1).column_names[:3]
    spec = ss.privacy.plan_declared([2.0, 2.0, 0.0], 5.0, n_clusters=5, columns=names)
    return ss.privacy.release(ss.sketch(rows(20_000).select(names), spec), 1.0, 1e-8)


@pytest.fixture(scope="session")
def explorer(subject):
    return Explorer(subject)


@pytest.fixture
def address(explorer):
    """A real server, on a real port of this machine."""
    with listening(explorer) as address, address.in_background():
        yield address


@pytest.fixture(scope="session")
def embedded():
    """A function from a page to the document in it."""
    start, end = '<script type="application/json" id="document">', "</script>"
    return lambda text: json.loads(text.partition(start)[2].partition(end)[0])
