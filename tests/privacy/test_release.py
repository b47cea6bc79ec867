"""What a release contains, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Origin
from sketchshift.privacy.release import release_vector, rows_needed
from sketchshift.sketch.file import PRIVATE_MAGIC, unpack
from sketchshift.sketch.measure import Measure


def parts(sketch: ss.privacy.PrivateSketch) -> tuple[bytes, bytes]:
    header, payload = unpack(sketch.to_bytes(), PRIVATE_MAGIC)
    return header, bytes(payload)


def test_neighbours_without_noise_differ_in_the_payload_alone(X, public_spec, release, no_noise):
    """No other field depends on the data: not on its size, its rows, or what was dropped."""
    other = np.vstack([X[:400], [[np.nan, 0.0, 0.0]], X[:1] * 1e9])

    left, right = (parts(release(ss.sketch(rows, public_spec))) for rows in (X, other))

    assert left[0] == right[0]
    assert left[1] != right[1]
    assert len(left[1]) == len(right[1]) == 8 * (2 * public_spec.sketch_size + 1)


def test_without_noise_a_release_is_the_sketch(raw, release, no_noise):
    released = release(raw)

    assert released.count == raw.count
    np.testing.assert_allclose(released.z, raw.z, rtol=1e-15)


def test_a_release_is_as_far_off_as_its_noise_says(raw, release):
    """Squared errors of 100 integers over their variance: chi-square, p < 1e-9 on each side."""
    released = release(raw, epsilon=10.0)

    errors = (released.z * released.total_weight - raw.z * raw.count) / released.total_weight
    square = np.sum(np.abs(errors) ** 2) * raw.spec.sketch_size / released.noise_std**2

    assert 28.0 < square < 240.0
    assert abs(released.total_weight - raw.count) < 6.2 * released.count_std


def test_two_releases_of_one_sketch_differ(raw, release):
    assert parts(release(raw))[1] != parts(release(raw))[1]


def test_more_rows_a_person_and_replacement_cost_what_they_should(raw, release):
    one, three = release(raw), release(raw, rows_per_person=3)
    replaced = release(raw, adjacency="replace_one")

    assert three._totals.scale == pytest.approx(3 * one._totals.scale)
    assert replaced._totals.scale == pytest.approx(2 * one._totals.scale)


def test_the_ledger_of_a_release_says_how_it_was_made(raw, release):
    (charge,) = release(raw, rows_per_person=2).ledger.charges

    assert (charge.purpose, charge.adjacency, charge.rows_per_person) == (
        "release",
        "add_remove",
        2,
    )
    assert charge.mechanism.startswith("discrete Gaussian, OpenDP ")
    assert charge.rho == pytest.approx(0.5 * (charge.sensitivity / charge.scale) ** 2)


def test_a_spec_planned_from_the_data_is_refused(X):
    spec = ss.plan(X, 3)

    with pytest.raises(
        ss.errors.PrivacyError, match=r"may tell of private rows.*plan_declared or plan_public"
    ):
        ss.privacy.release(ss.sketch(X, spec), 1.0, 1e-8)


def test_weights_are_refused(X, public_spec):
    with pytest.raises(ss.errors.DataError, match=r"every row counts 1\. Leave the weights out"):
        ss.sketch(X, public_spec, sample_weight=np.full(len(X), 2.0))


def test_a_release_of_a_release_is_refused(raw, release):
    with pytest.raises(
        ss.errors.PrivacyError, match=r"private already.*release the raw sketch once"
    ):
        ss.privacy.release(release(raw), 1.0, 1e-8)


def test_anything_but_a_sketch_is_refused(X):
    with pytest.raises(ss.errors.SpecError, match="'sketch' parameter of release must be a Sketch"):
        ss.privacy.release(X, 1.0, 1e-8)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 0.5}, "delta"),
        ({"adjacency": "edit"}, "adjacency"),
        ({"rows_per_person": 0}, "rows_per_person"),
        ({"rows_per_person": 1.5}, "rows_per_person"),
    ],
)
def test_a_promise_that_is_none_is_refused(raw, options, name):
    with pytest.raises(ss.errors.SpecError, match=f"The '{name}' parameter of release must be"):
        ss.privacy.release(raw, **{"epsilon": 1.0, "delta": 1e-8, **options})


def test_integers_that_could_overflow_are_refused(public_spec):
    """2**39 rows at a thousand frequencies: 1.3e7 times the count is more than 2**62."""
    spec = replace(public_spec, sketch_size=10_000)
    totals = Measure.zero(spec)
    totals.count = 2**39

    with pytest.raises(
        ss.errors.PrivacyError, match=r"would reach 2\*\*62\. Release parts of the data"
    ):
        release_vector(ss.Sketch(spec, spec.fingerprint, totals))


def test_raw_totals_never_reach_what_a_release_could_not_hold(public_spec):
    """Merging beyond 2**40 rows is refused, so that every wave is below 2**62."""
    totals = Measure.zero(public_spec)
    totals.count, totals.parts["moments"][:2] = 2**39, (2 ** (39 + 22), 2 ** (39 + 52))
    half = ss.Sketch(public_spec, public_spec.fingerprint, totals)

    with pytest.raises(ss.errors.DataError, match=r"total weight below 2\*\*40"):
        half + half


def test_too_few_rows_are_refused_unless_forced(raw, no_noise):
    with pytest.raises(
        ss.errors.PrivacyError, match=r"rows are too few: at m=50 .* pass force=True"
    ):
        ss.privacy.release(raw, 0.05, 1e-8)

    with pytest.warns(
        ss.errors.PrivacyWarning, match=r"rows are few: .* m=50 at this epsilon needs"
    ):
        ss.privacy.release(raw, 0.05, 1e-8, force=True)


def test_a_refusal_tells_no_count_that_nobody_keeps(raw, no_noise):
    """To see that rows are few is a look at them; whoever asked must know what it cost."""
    with pytest.raises(ss.errors.PrivacyError, match=r"^the rows are too few") as refusal:
        ss.privacy.release(raw, 0.05, 1e-8)

    said, (charge,) = str(refusal.value), refusal.value.ledger.charges
    assert "1,000" not in said
    assert "cost epsilon 0.05 at delta 1e-08 by the charge 00000000" in said
    assert "no account keeps it: note it down" in said
    assert refusal.value.ledger.epsilon() == pytest.approx(0.05)
    assert charge.purpose == "release"


def test_a_refusal_is_charged_to_the_account_and_tells_the_count(raw, no_noise, tmp_path):
    account = ss.privacy.Account(tmp_path / "people.json", epsilon=1, delta=1e-8)

    with pytest.raises(
        ss.errors.PrivacyError, match=r"^about 1,000 rows .* in .*people\.json"
    ) as refusal:
        ss.privacy.release(raw, 0.05, 1e-8, account=account)
    assert account.spent == refusal.value.ledger.epsilon(1e-8) == pytest.approx(0.05)


def test_few_rows_are_warned_of(raw, no_noise):
    """270 rows would do at epsilon 1, m = 50; 1000 are enough there, and not at 0.15."""
    assert rows_needed(50, 5.39 * np.sqrt(50) * 2**22) == pytest.approx(50 * 5.39)
    ss.privacy.release(raw, 1.0, 1e-8)

    with pytest.warns(ss.errors.PrivacyWarning, match="rows are few"):
        ss.privacy.release(raw, 0.15, 1e-8)


@pytest.mark.usefixtures("seeded_noise")
def test_a_plan_that_promised_something_else_is_refused(X):
    spec = ss.privacy.plan(X, [5.0, -1.0, 0.3], 30.0, 2, 1.0, 1e-8)

    with pytest.raises(
        ss.errors.PrivacyError, match=r"charged for add_remove, .*Use the same for both"
    ):
        ss.privacy.release(ss.sketch(X, spec), 1.0, 1e-8, adjacency="replace_one")


def test_a_missing_package_is_named_with_its_extra(raw, monkeypatch):
    from sketchshift.privacy import mechanism

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(mechanism, "import_module", absent)

    with pytest.raises(ss.errors.MissingDependencyError, match=r"sketchshift\[privacy\]"):
        ss.privacy.release(raw, 1.0, 1e-8)


def test_an_origin_must_have_charges_if_and_only_if_it_is_private():
    with pytest.raises(ss.errors.SpecError, match='charges for the kind "private"'):
        Origin("private", 1.0)
