"""What a release contains, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.errors import (
    DataError,
    MissingDependencyError,
    PrivacyError,
    PrivacyWarning,
    SpecError,
)
from sketchshift.features import Cells
from sketchshift.privacy import mechanism
from sketchshift.privacy.release import (
    count_factor,
    release_vector,
    rows_needed,
    sensitivity,
)
from sketchshift.sketch.file import PRIVATE_MAGIC, unpack


def test_neighbours_without_noise_differ_in_the_payload_alone(X, public_spec, release, no_noise):
    """No other field depends on the data: not on its size, its rows, or what was dropped."""
    other = np.vstack([X[:400], [[np.nan, 0.0, 0.0]], X[:1] * 1e9])
    raw = [ss.sketch(rows, public_spec) for rows in (X, other)]

    (left, a), (right, b) = (unpack(release(each).to_bytes(), PRIVATE_MAGIC) for each in raw)

    assert left == right
    for payload, each in zip((a, b), raw, strict=True):
        count = each.count * count_factor(public_spec)
        numbers = [*each._totals.integers("waves").ravel(), count]
        assert bytes(payload) == np.array(numbers, dtype="<i8").tobytes()


def test_a_release_is_as_far_off_as_its_noise_says(raw, release):
    """Squared errors of 100 integers over their variance: chi-square, p < 1e-9 on each side."""
    released = release(raw, epsilon=10.0)

    errors = (released.z * released.total_weight - raw.z * raw.count) / released.total_weight
    square = np.sum(np.abs(errors) ** 2) * raw.spec.sketch_size / released.noise_std**2

    assert 28.0 < square < 240.0
    assert abs(released.total_weight - raw.count) < 6.2 * released.count_std


def test_more_rows_a_person_and_replacement_cost_what_they_should(raw, release):
    one = release(raw)._totals.scale
    for options, factor in (
        ({"rows_per_person": 3}, 3),
        ({"adjacency": "replace_one", "rows_per_person": 2}, 4),
    ):
        (charge,) = release(raw, **options).ledger.charges
        assert charge.scale == pytest.approx(factor * one)
        assert charge.sensitivity == factor * sensitivity(raw.spec)
        assert charge.rho == pytest.approx(0.5 * (charge.sensitivity / charge.scale) ** 2)
        assert (charge.purpose, charge.delta) == ("release", 1e-8)
        assert charge.mechanism.startswith("discrete Gaussian, OpenDP ")


def test_what_cannot_be_released_is_refused(X, raw, public_spec, release):
    planned, private = ss.sketch(X, ss.plan(X, 3)), release(raw)
    slices = ss.sketch_by(X, np.arange(len(X)) % 2, public_spec)
    for sketch, error, words in (
        (planned, PrivacyError, "may tell of private rows"),
        (private, PrivacyError, "private already"),
        (slices, PrivacyError, "one sketch is released at a time"),
        (X, SpecError, "'sketch' parameter of release must be a Sketch"),
    ):
        with pytest.raises(error, match=words):
            ss.privacy.release(sketch, 1.0, 1e-8)


def test_weights_are_refused(X, public_spec):
    with pytest.raises(DataError, match=r"every row counts 1\. Leave the weights out"):
        ss.sketch(X, public_spec, sample_weight=np.full(len(X), 2.0))


def test_a_promise_that_is_none_is_refused(raw):
    for name, value in (
        ("epsilon", 0.9e-3),
        ("epsilon", 101.0),
        ("delta", 0.9e-30),
        ("delta", 0.011),
        ("adjacency", "edit"),
        ("rows_per_person", 0),
    ):
        with pytest.raises(SpecError, match=f"The '{name}' parameter of release must be"):
            ss.privacy.release(raw, **{"epsilon": 1.0, "delta": 1e-8, name: value})


def test_integers_that_could_overflow_are_refused(public_spec):
    """2**39 rows at ten thousand frequencies, or in cells: 4.2e7 times the count, over 2**62."""
    cells = Cells.of(np.eye(2, 3), unit=1.0)
    for size, options in ((10_000, {}), (200, {"cells": cells})):
        waves = replace(public_spec.waves, size=size)
        raw = ss.Sketcher(public_spec.replaced(waves=waves, **options)).sketch()
        raw._totals.counts[0, 0] = 2**39
        with pytest.raises(PrivacyError, match=r"would reach 2\*\*62"):
            release_vector(raw)


def test_too_few_rows_are_refused_unless_forced(raw, no_noise):
    """To see that rows are few is a look at them; whoever asked must know what it cost."""
    with pytest.raises(PrivacyError, match="the rows are too few") as refusal:
        ss.privacy.release(raw, 0.05, 1e-8)
    with pytest.warns(PrivacyWarning, match="rows are few: .* m=50 at this epsilon"):
        forced = ss.privacy.release(raw, 0.05, 1e-8, force=True)

    said = str(refusal.value)
    assert "1,000" not in said
    assert "cost epsilon 0.05 at delta 1e-08 by the charge 00000000, and no account" in said
    assert refusal.value.ledger == forced.ledger
    assert forced.ledger.epsilon() == pytest.approx(0.05)


def test_a_refusal_is_charged_to_the_account_and_tells_the_count(raw, no_noise, tmp_path):
    account = ss.privacy.Account(tmp_path / "people.json", epsilon=1, delta=1e-8)

    with pytest.raises(PrivacyError, match=r"^about 1,000 rows .*people\.json") as refusal:
        ss.privacy.release(raw, 0.05, 1e-8, account=account)
    assert account.spent == refusal.value.ledger.epsilon(1e-8) == pytest.approx(0.05)


def test_few_rows_are_warned_of(X, public_spec, no_noise):
    """270 rows are enough at epsilon 1, m = 50."""
    assert rows_needed(50, 5.39 * np.sqrt(50) * 2**22) == pytest.approx(50 * 5.39)
    ss.privacy.release(ss.sketch(X[:280], public_spec), 1.0, 1e-8)

    with pytest.warns(PrivacyWarning, match="rows are few"):
        ss.privacy.release(ss.sketch(X[:260], public_spec), 1.0, 1e-8)


@pytest.mark.usefixtures("seeded_noise")
def test_a_plan_that_promised_something_else_is_refused(X):
    spec = ss.privacy.plan(X, [5.0, -1.0, 0.3], 30.0, 2, 1.0, 1e-8)

    for other in ({"adjacency": "replace_one"}, {"rows_per_person": 2}):
        with pytest.raises(PrivacyError, match=r"charged for add_remove, .*Use the same"):
            ss.privacy.release(ss.sketch(X, spec), 1.0, 1e-8, **other)


def test_a_missing_package_is_named_with_its_extra(raw, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(mechanism, "import_module", absent)

    with pytest.raises(MissingDependencyError, match=r"sketchshift\[privacy\]"):
        ss.privacy.release(raw, 1.0, 1e-8)
