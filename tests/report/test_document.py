from __future__ import annotations

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest

import sketchshift as ss
from sketchshift.decoders.objective import CorrelationFunction
from sketchshift.report.document import (
    SketchFile,
    build_document,
    build_trends,
    build_view,
    to_json,
)
from sketchshift.report.page import policy, render, report_on


def floats(packed: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), dtype="<f4").astype(float)


def embedded(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_the_page_is_given_what_it_needs_for_the_correlation_function(subject):
    """The formula of ``map.js``, with NumPy, against the library's own correlation function."""
    sketch, spec = subject.whole, subject.whole.spec
    points = spec.center_vector + np.random.default_rng(0).normal(size=(20, 3))

    facts = build_document(subject, [])["frequencies"]
    zeta = floats(build_view(subject.choices[0], sketch, ss.decode(sketch, 3))["zeta"])
    m = facts["m"]
    phases = 2 * np.pi * (points - facts["center"]) @ floats(facts["turns"]).reshape(3, m)
    found = (np.exp(1j * phases) @ (zeta[:m] - 1j * zeta[m:])).real / m

    expected = CorrelationFunction.of(sketch)((points - spec.center_vector) * spec.per_unit)
    np.testing.assert_allclose(found, expected, atol=2e-6)  # float32


def test_names_from_the_data_cannot_end_the_script_they_travel_in(subject):
    text, _ = report_on(subject, 3)

    assert embedded(text)["columns"][1] == "<script>alert(1)</script>"
    assert "<script>alert(1)" not in text
    assert text.count("<script") == text.count("</script>") == 2


def test_names_neither_turn_nor_hide_what_stands_beside_them(tmp_path):
    """The page shows escapes; the table that it saves has the true names, and no formulas."""
    names = ["=a\u202eb", "c\x1b[31m"]
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=names)
    rows["\u2066day"] = ["\u202e1", "2\u200f"] * 150
    table = ss.sketch_by(rows, by="\u2066day", n_clusters=2, standardize=True)
    subject = SketchFile.of("\u202e.parquet", 10, table)

    text, _ = report_on(subject, 2)
    shown = embedded(text)
    header = shown.pop("header")

    escapes = re.findall(r"\\u(20[0-9a-f]{2}|001b)", json.dumps(shown).replace("\\\\", ""))
    assert escapes == []
    assert "\u202e" not in text
    assert shown["columns"] == [r"=a\u202eb", r"c\x1b[31m"]
    scales = [f"'{names[0]} scale", f"{names[1]} scale"]
    assert header == ["cluster", "share", f"'{names[0]}", names[1], *scales]


def test_a_name_in_the_title_is_escaped():
    spec = ss.SketchSpec(n_features=1, sketch_size=20, bandwidth=1.0)
    sketch = ss.sketch(np.arange(5.0)[:, None], spec)

    text = render(build_document(SketchFile.of("</title><b>.sketch", 10, sketch), []))

    assert "<title>&lt;/title&gt;&lt;b&gt;.sketch: clusters</title>" in text


def test_the_policy_allows_exactly_the_program_and_style_that_are_there(subject):
    """The digests are those of what stands between the tags."""
    import hashlib

    text = render(build_document(subject, []))

    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy(live=False)
    assert "default-src 'none'" in policy(live=False)
    assert policy(live=False) in text


def test_a_report_names_no_address_outside_itself(subject):
    """But for the name of SVG, which is no address, though it looks like one."""
    text, _ = report_on(subject, 3)

    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", text)


def test_the_clusters_in_a_report_are_those_of_decode_to_the_last_bit(subject):
    text, decoding = report_on(subject, 3)

    shown = embedded(text)["view"]
    assert shown["centroids"] == ss.decode(subject.whole, 3).centroids.tolist()
    assert shown["shares"] == decoding.weights.tolist()
    assert embedded(text)["curve"]["chosen"] == ss.decode(subject.whole, "auto").curve.chosen


def test_the_same_sketch_gives_the_same_report(table):
    texts = [report_on(SketchFile.of("t", 1, table), "auto", seed=3)[0] for _ in range(2)]

    assert texts[0] == texts[1]


def test_shares_over_slices_are_those_of_the_library(subject, table):
    decoding = ss.decode(subject.whole, 3)

    days, shops = build_trends(subject, decoding, subject.whole)

    assert [days["column"], shops["column"]] == ["day", "shop"]
    for trend in (days, shops):
        merged = table.merge_by(trend["column"])
        for found, sketch in zip(trend["shares"], merged.sketches, strict=True):
            expected = ss.shares(decoding, sketch, reference=subject.whole)
            np.testing.assert_allclose(found, expected, atol=1e-9)
        assert trend["counts"] == merged.counts.tolist()


def test_a_single_sketch_has_no_trends(subject):
    single = SketchFile.of("all.sketch", 1, subject.whole)

    assert build_trends(single, ss.decode(single.whole, 2), single.whole) == []
    assert [choice.label for choice in single.choices] == ["all rows"]


def test_what_is_not_a_number_becomes_null():
    assert to_json({"a": [1.5, float("nan")], "b": float("inf")}) == '{"a":[1.5,null],"b":null}'


def test_choices_are_all_rows_and_every_value_of_every_key(subject, table):
    labels = [choice.label for choice in subject.choices]

    assert len(labels) == 1 + 4 + 3
    assert labels[:2] == ["all rows", "day = 2026-01-01"]
    for choice in subject.choices[1:]:
        assert table.where(choice.where).merge() == subject.sketch_of(choice)


def test_every_choice_is_selected_by_its_own_condition():
    """Hours of the night when clocks are set back: one of them comes twice."""
    times = pd.date_range("2024-10-26 22:00", periods=12, freq="30min", tz="UTC")
    data = pd.DataFrame({"t": times.tz_convert("Europe/Berlin"), "x": np.arange(12.0)})
    spec = ss.SketchSpec(n_features=1, sketch_size=20, bandwidth=1.0, columns=["x"])
    table = ss.sketch_by(data, "hour(t)", spec)

    choices = SketchFile.of("hours", 1, table).choices[1:]

    assert len(choices) == 6
    for choice in choices:
        assert table.where(choice.where).merge() == table.sketches[choice.members[0]]


def three_groups(n_seen: int, *more: list[float]) -> SketchFile:
    """Rows in three groups, of which a plan on the first rows sees some; and more rows."""
    centers = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 600, axis=0)
    X = np.random.default_rng(0).normal(size=(1800, 2)) + centers
    sketch = ss.sketch(np.vstack([X, *more]), ss.plan(X[:n_seen], 3))
    return SketchFile.of("three.sketch", 10, sketch)


def test_a_report_says_in_one_sentence_how_far_clusters_can_be_trusted():
    text, decoding = report_on(three_groups(1800), 3)

    shown = embedded(text)
    assert shown["view"]["sentence"] == str(decoding.trust)
    assert shown["view"]["is_good"]
    assert dict(shown["plan"])["cells"].startswith("planned on 1,800 rows: ")


def test_a_report_on_clusters_that_cannot_be_trusted_warns_once():
    with pytest.warns(ss.PlanWarning) as told:
        text, decoding = report_on(three_groups(600), 3)

    assert [str(warning.message) for warning in told] == [str(decoding.trust)]
    assert not embedded(text)["view"]["is_good"]


@pytest.mark.filterwarnings("ignore::sketchshift.PlanWarning")
def test_a_report_counts_rows_beyond_all_cells():
    text, _ = report_on(three_groups(1800, [1e9, 0.0]), 3)

    assert ["rows beyond all cells", "1"] in embedded(text)["summary"]


def test_a_sketch_of_cells_alone_has_a_report_without_a_curve():
    sketch = three_groups(1800).whole.prefix(0)

    text, decoding = report_on(SketchFile.of("cells.sketch", 10, sketch), 3)

    shown = embedded(text)
    assert shown["curve"] is None
    assert shown["view"]["centroids"] == decoding.centroids.tolist()
    assert shown["frequencies"]["m"] == 0
