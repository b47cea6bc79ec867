"""Since when the newest slices differ from those before them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.drift.since_when import compare_windows, learn_noise

ROWS = 200
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0)


def slices_of(n: int, *, changed: int = 0, shift: float = 0.0, seed: int = 0, rows: int = ROWS):
    """Sketches of n slices, and their rows; the last ``changed`` are shifted."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(rows, 2)) for _ in range(n)]
    for part in parts[n - changed :]:
        part += shift
    return [ss.sketch(part, SPEC, n_threads=1) for part in parts], parts


def features(X: np.ndarray) -> np.ndarray:
    """The waves of a sketch by their formula, without its integers."""
    phases = 2 * np.pi * X @ SPEC.frequencies.turns
    return np.exp(1j * phases).mean(axis=0) / np.sqrt(SPEC.sketch_size)


def evidence_at(parts: list[np.ndarray], boundary: int) -> float:
    """Brute force: rows before and behind a boundary, all read again."""
    before, within = np.vstack(parts[:boundary]), np.vstack(parts[boundary:])
    gap = np.linalg.norm(features(before) - features(within))
    return float(gap**2 / (1 / len(before) + 1 / len(within)))


def test_windows_are_the_last_1_2_4_slices_beside_all_rows_before_them():
    sketches, parts = slices_of(11, changed=3, shift=0.5)

    found = ss.drift.since_when(sketches)

    assert [w.n_slices for w in found.windows] == [1, 2, 4, 8]
    assert [w.since for w in found.windows] == [10, 9, 7, 3]
    assert [w.counts for w in found.windows] == [(2000, 200), (1800, 400), (1400, 800), (600, 1600)]
    for window in found.windows:
        direct = evidence_at(parts, window.since)
        assert window.evidence == pytest.approx(direct, rel=1e-3)


@pytest.mark.parametrize("changed", [1, 2, 3, 7, 16])
def test_a_change_is_found_within_a_factor_of_two_of_its_time(changed):
    """The true boundary has the strongest evidence of all, found by brute force over all of them.

    The window told is one of the two powers of two around it.
    """
    sketches, parts = slices_of(40, changed=changed, shift=0.6, seed=changed)

    found = ss.drift.since_when(sketches)

    best = max(range(1, 40), key=lambda boundary: evidence_at(parts, boundary))
    assert abs(40 - best - changed) <= 1
    below = 2 ** int(np.log2(changed))
    assert found.drifted
    assert found.strongest.n_slices in (below, min(2 * below, 32))
    assert found.since == 40 - found.strongest.n_slices


def test_the_strongest_evidence_has_the_smallest_p_value():
    sketches, _ = slices_of(20, changed=5, shift=0.15)

    found = ss.drift.since_when(sketches)

    p_values = [w.test.p_value for w in found.windows]
    assert min(p_values) == found.strongest.test.p_value > 0.0
    order = np.argsort([-w.evidence for w in found.windows])
    assert [p_values[i] for i in order] == sorted(p_values)
    assert found.p_value == min(1.0, len(p_values) * min(p_values))


def test_the_strongest_alone_is_the_one_of_all():
    sketches, _ = slices_of(20, changed=5, shift=0.15)
    totals = [sketches[0] - sketches[0]]
    for sketch in sketches:
        totals.append(totals[-1] + sketch)
    noise = learn_noise(totals[-1])

    given = (totals.__getitem__, (0, 20))
    every = compare_windows(*given, noise=noise, false_alarm=0.01)
    (alone,) = compare_windows(*given, noise=noise, false_alarm=0.01, only_strongest=True)

    assert alone == max(every, key=lambda window: window.evidence)
    all_found, found = (
        ss.drift.SinceWhen("time", every, 0.01),
        ss.drift.SinceWhen("time", (alone,), 0.01),
    )
    assert (found.since, found.p_value) == (all_found.since, all_found.p_value)
    assert found.sentence == all_found.sentence


@pytest.mark.slow
def test_alarms_without_drift_are_about_as_rare_as_promised():
    """600 series of 9 slices at the joint rate 0.1: at most nominal, and not far below.

    Bonferroni over four overlapping windows costs something; three standard errors of 600
    draws at 0.1 are 0.037.
    """
    alarms = 0
    sums, _ = slices_of(1, rows=20_000, seed=10_000)
    noise = learn_noise(sums[0])
    for seed in range(600):
        sketches, _ = slices_of(9, seed=seed, rows=60)
        totals = [sketches[0] - sketches[0]]
        for sketch in sketches:
            totals.append(totals[-1] + sketch)
        windows = compare_windows(totals.__getitem__, (0, 9), noise=noise, false_alarm=0.1)
        assert len(windows) == 4
        alarms += any(w.test.drifted for w in windows)
    assert 0.03 <= alarms / 600 <= 0.137


def test_a_reference_stays_what_the_slices_are_compared_with():
    sketches, _ = slices_of(6, changed=6, shift=0.4)
    reference = slices_of(5, seed=99)[0]

    drifting = ss.drift.since_when(sketches, reference=sum(reference))

    assert not ss.drift.since_when(sketches).drifted
    assert drifting.drifted
    assert [w.counts for w in drifting.windows] == [(1000, 200), (1000, 400), (1000, 800)]
    assert drifting.since == 2


def test_tables_and_mappings_have_times(blobs):
    X = np.vstack([blobs.rows(400, seed=i) for i in range(6)])
    X[2000:] += 1.0
    days = pa.array(np.repeat([f"2026-01-0{i}" for i in range(1, 7)], 400))
    table = ss.sketch_by(pa.table({"x": X[:, 0], "y": X[:, 1], "day": days}), "day", n_clusters=3)

    found = ss.drift.since_when(table)

    assert found.by == "day"
    assert found.since == "2026-01-06"
    assert found.sentence.startswith(
        "Drift since day 2026-01-06: the last 1 slice (400 rows) against 2,000 rows before, "
    )
    assert repr(found) == f"<SinceWhen: {found.sentence}>"
    named = ss.drift.since_when(dict(zip("abcdef", table.sketches, strict=True)), by="letter")
    assert (named.by, named.since) == ("letter", "f")


def test_without_drift_nothing_is_since_anything():
    found = ss.drift.since_when(slices_of(5)[0])

    assert not found.drifted
    assert found.since is None
    assert found.sentence.startswith("No drift: of 3 windows up to the last 4 slices none differs ")


def test_slices_without_rows_are_no_windows():
    sketches, _ = slices_of(4)
    empty = sketches[0] - sketches[0]

    found = ss.drift.since_when([*sketches, empty])
    nothing = ss.drift.since_when([empty, empty])
    one = ss.drift.since_when(sketches[:1])

    assert [w.n_slices for w in found.windows] == [2, 4]
    assert nothing.windows == one.windows == ()
    assert one.strongest is None
    assert one.p_value == 1.0
    assert one.sentence == "There is nothing to compare yet: give at least two slices with rows."


def test_what_cannot_be_compared_is_refused():
    sketches, _ = slices_of(3)
    other = ss.sketch(np.zeros((9, 2)), ss.SketchSpec(2, 10, 1.0))
    with pytest.raises(
        ss.errors.SpecError, match="'slices' parameter of since_when must be a SketchTable"
    ):
        ss.drift.since_when([])
    with pytest.raises(ss.errors.SpecError, match="'false_alarm' parameter of since_when must be"):
        ss.drift.since_when(sketches, false_alarm=1.0)
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot compare"):
        ss.drift.since_when(sketches, reference=other)
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="cannot merge"):
        ss.drift.since_when([*sketches, other])
