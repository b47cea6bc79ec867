"""Pages of private sketches: what was released is shown, with its promise, and nothing else."""

from __future__ import annotations

import json

import pytest

import sketchshift as ss
from sketchshift.view.document import SketchFile, to_json
from sketchshift.view.explorer import Explorer, Query
from sketchshift.view.page import report_on


@pytest.fixture
def shown(private):
    return SketchFile.of("people.private.sketch", private.nbytes, private)


def test_a_report_has_the_promise_and_the_clusters_of_decode_and_no_other_number(
    embedded, shown, private
):
    facts = embedded(report_on(shown, 3)[0])

    view, found = facts["view"], ss.decode(private, 3)
    assert facts["promise"] == private.statement
    assert [c["means"] for c in view["profile"]["clusters"]] == found.centroids.tolist()
    assert (view["cells"], view["rows_std"]) == (None, private.count_std)
    assert (facts["curve"]["chosen"], facts["trends"]) == (3, [])
    names, told = zip(*facts["summary"], strict=True)
    assert names == ("rows", "columns", "bytes")
    assert told[0] == f"about {private.count:,}"


def test_a_page_is_a_function_of_the_file(shown, private):
    """What the keeper knows beside the release cannot be in it."""
    reread = ss.privacy.PrivateSketch.from_bytes(private.to_bytes())

    again, _ = report_on(SketchFile.of(shown.name, shown.n_bytes, reread), "auto", seed=3)

    assert report_on(shown, "auto", seed=3)[0] == again


def test_the_explorer_decodes_for_any_k_and_says_how_to_get_it_again(embedded, private, tmp_path):
    path = tmp_path / "people.private.sketch"
    private.save(path)
    explorer = Explorer(SketchFile.of(str(path), private.nbytes, private), 4)

    asked = Query(k=3), lambda: None
    details, again = explorer.details(*asked), {}
    exec("\n".join(embedded(explorer.report(*asked))["reproduce"]["commands"]), again)

    means = [cluster["means"] for cluster in explorer.decode(*asked)["profile"]["clusters"]]
    assert means == again["clusters"].centroids.tolist()
    assert details["trends"] == []
    assert embedded(explorer.page())["promise"] == private.statement
    assert json.loads(to_json(details))["curve"]["chosen"] == 3
