from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift.errors import DataError
from sketchshift.view import explorer as module
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import MOST_PAGES, Explorer, Fits, OutdatedError, Query, Turns


def never() -> None:
    """A check that finds nothing newer."""


def test_a_fit_serves_every_number_of_clusters_like_decode_range(subject):
    fits = Fits(subject, 5)
    sketch = subject.sketch_of(subject.choices[2])

    for k, expected in zip((5, 2), ss.decoders.decode_range(sketch, [5, 2]), strict=True):
        assert (fits.decoding(2, k, never).centroids == expected.centroids).all()


def test_a_slice_is_fitted_once(subject, monkeypatch):
    fits, made = Fits(subject, 3), []
    fit = Turnkey.fit
    monkeypatch.setattr(Turnkey, "fit", lambda *a, **b: made.append(1) or fit(*a, **b))

    for k in (1, 2, 3):
        fits.decoding(0, k, never)

    assert made == [1]


def test_fits_that_need_too_much_memory_are_forgotten(subject, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    fits = Fits(subject, 2)

    for choice in (0, 1, 2):
        fits.decoding(choice, 2, never)

    assert len(fits._fits) == len(fits._decodings) == 1


def test_an_outdated_fit_ends_at_its_next_round():
    """Turns.ask() from elsewhere, while the first one computes."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    subject = SketchFile.of("waves", 1, ss.sketch(X, n_clusters=5, cells=False))
    latest = Turns()
    check = latest.ask(page=1)
    rounds = []

    def count() -> None:
        rounds.append(1)
        if len(rounds) == 2:
            latest.ask(page=1)
        check()

    with pytest.raises(OutdatedError, match="newer request"):
        Fits(subject, 5).decoding(0, 3, count)
    assert len(rounds) == 2


def test_a_turn_that_waited_too_long_is_not_begun():
    latest = Turns()
    first = latest.ask(page=1)
    second = latest.ask(page=1)

    with latest.turn(second):
        pass
    with pytest.raises(OutdatedError), latest.turn(first):
        pytest.fail("an outdated turn began")


def test_a_page_outdates_no_turn_of_another_page():
    latest = Turns()
    first, other = latest.ask(page=1), latest.ask(page=2)
    first()

    latest.ask(page=1)

    other()
    with pytest.raises(OutdatedError):
        first()


def test_what_nobody_waits_for_gives_way_to_every_page_but_not_to_its_like():
    latest = Turns()
    idle, wanted = latest.ask(page=1, idle=True), latest.ask(page=2)
    with pytest.raises(OutdatedError):
        idle()

    again, other = latest.ask(page=1, idle=True), latest.ask(page=3, idle=True)

    for check in (again, other, wanted):
        check()


def test_pages_that_asked_last_are_remembered_and_no_others():
    """Those forgotten get their answers; those remembered are outdated by themselves still."""
    latest, n = Turns(), MOST_PAGES + 10
    checks = [latest.ask(page) for page in range(n)]

    assert len(latest._newest) == MOST_PAGES
    for check in checks:
        check()
    latest.ask(page=n - 1)
    with pytest.raises(OutdatedError):
        checks[-1]()


def test_equal_rows_have_one_cluster_and_no_curve():
    spec = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=1.0)
    fits = Fits(SketchFile.of("one", 1, ss.sketch(np.ones((50, 2)), spec)))

    assert fits.decoding(0, 2, never).centroids.tolist() == [[1.0, 1.0]]
    assert fits.curve(0, never) is None


def test_more_clusters_than_rows_are_refused():
    spec = ss.SketchSpec(n_features=1, sketch_size=200, bandwidth=0.1)
    days = ss.sketch_by(np.arange(9.0)[:, None], by=np.array([0] * 7 + [1] * 2), spec=spec)
    fits = Fits(SketchFile.of("days", 1, days))

    with pytest.raises(DataError, match="2 rows, too few for 3 clusters"):
        fits.decoding(2, 3, never)


def test_a_slice_of_too_few_rows_is_passed_over_when_nobody_asked_for_it():
    """Else the page would tell of a slice that it does not show."""
    spec = ss.SketchSpec(n_features=1, sketch_size=200, bandwidth=0.1)
    days = ss.sketch_by(np.arange(9.0)[:, None], by=np.array([0] * 7 + [1] * 2), spec=spec)
    explorer = Explorer(SketchFile.of("days", 1, days))

    assert explorer.prepare(Query(k=3, choice=2), never) == {}
    with pytest.raises(DataError, match="too few"):
        explorer.decode(Query(k=3, choice=2), never)


def test_so_many_slices_are_made_ready_as_are_kept(subject, monkeypatch):
    bytes_ = Turnkey().fit(subject.whole, 2).nbytes
    monkeypatch.setattr(module, "MOST_BYTES", int(3.5 * bytes_))
    room = Explorer(subject, 2).details(Query(k=2), never)["room"]
    fits = Fits(subject, 2)

    for choice in range(4):
        fits.decoding(choice, 2, never)

    assert room == len(fits._fits) == 3
