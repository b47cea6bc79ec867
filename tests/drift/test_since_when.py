"""Since when the newest slices differ from those before them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.drift.since_when import compare_windows, learn_noise
from sketchshift.errors import IncompatibleSketchesError, SpecError

ROWS = 200
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0)


def slices_of(n, *, changed=0, shift=0.0, seed=0):
    """Sketches of n slices, and their rows; the last ``changed`` are shifted."""
    parts = np.random.default_rng(seed).normal(size=(n, ROWS, 2))
    parts[n - changed :] += shift
    return [ss.sketch(part, SPEC, n_threads=1) for part in parts], parts


def features(X):
    """The waves of a sketch by their formula, without its integers."""
    phases = 2 * np.pi * X @ SPEC.frequencies.turns
    return np.exp(1j * phases).mean(axis=0) / np.sqrt(SPEC.sketch_size)


def evidence_at(parts, boundary):
    """Brute force: rows before and behind a boundary, all read again."""
    sides = np.vstack(parts[:boundary]), np.vstack(parts[boundary:])
    gap = np.linalg.norm(features(sides[0]) - features(sides[1]))
    return float(gap**2 / sum(1 / len(side) for side in sides))


def test_windows_are_the_last_1_2_4_slices_beside_all_rows_before_them():
    sketches, parts = slices_of(11, changed=3, shift=0.5)

    windows = ss.drift.since_when(sketches).windows

    assert [w.n_slices for w in windows] == [1, 2, 4, 8]
    assert [w.counts for w in windows] == [(2000, 200), (1800, 400), (1400, 800), (600, 1600)]
    for window in windows:
        assert window.since == 11 - window.n_slices
        assert window.evidence == pytest.approx(evidence_at(parts, window.since), rel=1e-3)


@pytest.mark.parametrize("changed", [1, 3, 16])
def test_a_change_is_found_within_a_factor_of_two_of_its_time(changed):
    """The window told is one of the two powers of two around it."""
    sketches, _ = slices_of(40, changed=changed, shift=0.6, seed=changed)

    found = ss.drift.since_when(sketches)

    below = 2 ** int(np.log2(changed))
    assert found.drifted
    assert found.strongest.n_slices in (below, min(2 * below, 32))
    assert found.since == 40 - found.strongest.n_slices


def test_the_strongest_evidence_has_the_smallest_p_value_and_can_be_looked_for_alone():
    sketches, _ = slices_of(20, changed=5, shift=0.15)
    totals = list(itertools.accumulate(sketches, initial=sketches[0] - sketches[0]))
    options = {"noise": learn_noise(totals[-1]), "false_alarm": 0.01, "only_strongest": True}
    options["keys"] = range(20)

    found = ss.drift.since_when(sketches)
    (alone,) = compare_windows(totals.__getitem__, (0, 20), **options)

    first, *others = sorted(found.windows, key=lambda window: -window.evidence)
    p_values = [window.test.p_value for window in (first, *others)]
    assert p_values == sorted(p_values)
    assert found.p_value == min(1.0, len(p_values) * p_values[0])
    assert found.strongest is first
    assert (alone.since, alone.counts, alone.evidence) == (
        first.since,
        first.counts,
        first.evidence,
    )
    assert alone.test.threshold == pytest.approx(first.test.threshold, rel=1e-12)
    of_alone = ss.drift.SinceWhen(found.by, (alone,), found.false_alarm)
    assert (of_alone.since, of_alone.sentence) == (found.since, found.sentence)


def test_a_reference_stays_what_the_slices_are_compared_with():
    sketches, _ = slices_of(6, changed=6, shift=0.4)

    still = ss.drift.since_when(sketches)
    drifting = ss.drift.since_when(sketches, reference=sum(slices_of(5, seed=99)[0]))

    assert (still.drifted, still.since) == (False, None)
    assert still.sentence.startswith("No drift: of 3 windows up to the last 4 slices none differs ")
    assert (drifting.drifted, drifting.since) == (True, 2)
    assert [w.counts for w in drifting.windows] == [(1000, 200), (1000, 400), (1000, 800)]


def test_tables_and_mappings_have_times():
    sketches, _ = slices_of(6, changed=1, shift=1.0)
    days = [f"2026-01-0{i}" for i in range(1, 7)]
    table = ss.SketchTable.of(pa.table({"day": days}), tuple(sketches))

    found = ss.drift.since_when(table)

    assert (found.by, found.since) == ("day", "2026-01-06")
    assert found.sentence.startswith(
        "Drift since day 2026-01-06: the last 1 slice (200 rows) against 1,000 rows before, "
    )
    assert repr(found) == f"<SinceWhen: {found.sentence}>"
    named = ss.drift.since_when(dict(zip("abcdef", sketches, strict=True)), by="letter")
    assert (named.by, named.since) == ("letter", "f")


def test_slices_without_rows_are_no_windows():
    sketches, _ = slices_of(4)
    empty = sketches[0] - sketches[0]

    found, nothing, one = map(
        ss.drift.since_when, ([*sketches, empty], [empty, empty], sketches[:1])
    )

    assert [w.n_slices for w in found.windows] == [2, 4]
    assert nothing.windows == one.windows == ()
    assert (one.strongest, one.p_value) == (None, 1.0)
    assert one.sentence == "There is nothing to compare yet: give at least two slices with rows."


def test_what_cannot_be_compared_is_refused():
    sketches, _ = slices_of(3)
    other = ss.sketch(np.zeros((9, 2)), ss.SketchSpec(2, 10, 1.0))
    for slices, options, error, words in (
        ([], {}, SpecError, "'slices' parameter of since_when"),
        (sketches, {"false_alarm": 1.0}, SpecError, "'false_alarm' parameter of"),
        (sketches, {"reference": other}, IncompatibleSketchesError, "cannot compare"),
        ([*sketches, other], {}, IncompatibleSketchesError, "cannot merge"),
    ):
        with pytest.raises(error, match=words):
            ss.drift.since_when(slices, **options)
