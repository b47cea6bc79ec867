"""``sketchshift compare``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss


@pytest.fixture
def shifted(folder):
    """before.sketch and after.sketch, in which one of two clusters has grown."""
    rng = np.random.default_rng(0)
    spec = ss.SketchSpec(2, 60, 1.0, columns=("x", "y"))
    for name, share in (("before", 0.5), ("after", 0.8)):
        X = rng.normal(size=(500, 2)) + 7.0 * (rng.random((500, 1)) < share)
        ss.sketch(X, spec).save(f"{name}.sketch")


LINE = "compare before.sketch after.sketch -k 2"


def test_lines_say_what_python_and_facts_say(shifted, run):
    found = ss.compare(ss.load("before.sketch"), ss.load("after.sketch"), n_clusters=2)
    facts = run.facts(LINE)
    text = run.says(
        LINE,
        f"500 rows and 500 rows: distance {found.distance:.3g}, threshold ",
        "is less than 1e-15, and 1 % of distances are beyond the threshold.",
        "Next: sketchshift compare before.sketch after.sketch --plot drift.png",
    )

    grown, shrunk = facts["clusters"]
    assert facts["sentence"] == found.sentence == text.splitlines()[0]
    assert found.sentence == (
        f"The second has changed: '{grown['name']}' grew from {100 * grown['share_first']:.0f} % to "
        f"{100 * grown['share_second']:.0f} %; '{shrunk['name']}' shrank from "
        f"{100 * shrunk['share_first']:.0f} % to {100 * shrunk['share_second']:.0f} %."
    )


def test_drift_fails_where_scripts_ask_for_it_and_a_picture_is_written(shifted, run):
    words = "Wrote drift.png.", "Next: sketchshift cluster after.sketch -k auto"
    text = run.says(f"{LINE} --fail-on-drift --plot drift.png", *words, status=1)

    assert text.startswith("The second has changed: ")
    assert Path("drift.png").read_bytes().startswith(b"\x89PNG")


def test_no_drift_is_said_and_is_no_failure(folder, run):
    words = "The second has not changed by more than chance.\n", "60 rows and 60 rows: distance"
    run.says("compare day1.sketch day2.sketch --fail-on-drift", *words)


def test_tables_of_sketches_are_compared_as_their_sums(folder, run):
    assert run.facts("compare day1.sketch sketches.parquet -k 1")["rows"] == [60, 200]
