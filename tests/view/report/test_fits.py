from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift.errors import DataError
from sketchshift.view import explorer as module
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import Fits, OutdatedError, Turns


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


def test_fits_asked_for_long_ago_are_forgotten(subject, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    fits = Fits(subject, 2)

    for choice in (0, 1, 2):
        fits.decoding(choice, 2, never)

    assert len(fits._kept) == 3
    assert (fits._decode, 2, 2) in fits._kept


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


def test_a_page_outdates_no_turn_of_another_page():
    latest = Turns()
    first, other = latest.ask(page=1), latest.ask(page=2)
    first()

    latest.ask(page=1)

    other()
    with pytest.raises(OutdatedError):
        first()


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
