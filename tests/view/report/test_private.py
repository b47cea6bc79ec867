"""Pages of private sketches: what was released is shown, with its promise, and nothing else."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.view.document import SketchFile, build_document, to_json
from sketchshift.view.explorer import Explorer, Query
from sketchshift.view.page import report_on


@pytest.fixture
def shown(private) -> SketchFile:
    return SketchFile.of("people.private.sketch", private.nbytes, private)


def embedded(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def never() -> None:
    """A check that finds nothing newer."""


def test_a_report_has_the_promise_and_the_clusters_of_decode(shown, private):
    text, _ = report_on(shown, 3)

    facts, found = embedded(text), ss.decode(private, 3)
    assert facts["promise"] == private.statement
    assert [c["means"] for c in facts["view"]["profile"]["clusters"]] == found.centroids.tolist()
    assert facts["view"]["cells"] is None
    assert facts["view"]["rows_std"] == private.count_std
    assert facts["curve"]["chosen"] == 3
    assert facts["trends"] == []


def test_the_number_of_rows_is_about_right_and_no_other_number_is_told(shown, private, subject):
    summary = dict(build_document(shown, [])["summary"])

    assert summary["rows"] == f"about {private.count:,}"
    assert set(summary) == {"rows", "columns", "bytes"}
    assert build_document(subject, [])["promise"] is None
    assert dict(build_document(subject, [])["summary"])["rows"] == "3,000"


def test_a_page_is_a_function_of_the_file(shown, private):
    """What the keeper knows beside the release cannot be in it."""
    reread = ss.privacy.PrivateSketch.from_bytes(private.to_bytes())

    again, _ = report_on(SketchFile.of(shown.name, shown.n_bytes, reread), "auto", seed=3)

    assert report_on(shown, "auto", seed=3)[0] == again


def test_the_explorer_decodes_for_any_k_and_says_how_to_get_it_again(private, tmp_path):
    path = tmp_path / "people.private.sketch"
    private.save(path)
    explorer = Explorer(SketchFile.of(str(path), private.nbytes, private), 4)

    answer = explorer.decode(Query(k=3), never)
    details = explorer.details(Query(k=3), never)
    again: dict = {}
    exec("\n".join(embedded(explorer.report(Query(k=3), never))["reproduce"]["commands"]), again)

    means = [cluster["means"] for cluster in answer["profile"]["clusters"]]
    assert means == again["clusters"].centroids.tolist()
    assert details["trends"] == []
    assert embedded(explorer.page())["promise"] == private.statement
    assert json.loads(to_json(details))["curve"]["chosen"] == 3


def test_more_clusters_than_about_so_many_rows_are_refused(private):
    with pytest.warns(ss.errors.PrivacyWarning):
        few = ss.privacy.release(ss.sketch(np.zeros((5, 3)), private.spec), 10.0, 1e-8, force=True)
    explorer = Explorer(SketchFile.of("few.sketch", 1, few), 5)
    explorer.fits.max_clusters = 100

    with pytest.raises(ss.errors.DataError, match="there are about"):
        explorer.decode(Query(k=100), never)
