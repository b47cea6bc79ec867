from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift.errors import DataError
from sketchshift.view import explorer as module
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import Fits, OutdatedError, Turns


def never():
    """A check that finds nothing newer."""


def test_one_fit_serves_every_number_of_clusters_like_decode_range(subject, monkeypatch):
    fits, made, fit = Fits(subject, 5), [], Turnkey.fit
    monkeypatch.setattr(Turnkey, "fit", lambda *a, **b: made.append(1) or fit(*a, **b))
    sketch = subject.sketch_of(subject.choices[2])

    found = [fits.decoding(2, k, never).centroids for k in (5, 2)]

    assert made == [1]
    for centroids, expected in zip(found, ss.decoders.decode_range(sketch, [5, 2]), strict=True):
        assert_array_equal(centroids, expected.centroids)


def test_fits_asked_for_long_ago_are_forgotten(subject, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    fits = Fits(subject, 2)

    for choice in (0, 1, 2):
        fits.decoding(choice, 2, never)

    assert len(fits._kept) == 3
    assert (fits._decode, 2, 2) in fits._kept


def test_a_page_outdates_no_turn_of_another_page():
    latest = Turns()
    first, other = latest.ask(page=1), latest.ask(page=2)
    first()

    latest.ask(page=1)

    other()
    with pytest.raises(OutdatedError):
        first()


def test_equal_rows_have_one_cluster_and_no_curve():
    sketch = ss.sketch(np.ones((50, 2)), ss.SketchSpec(2, 40, 1.0))
    fits = Fits(SketchFile.of("one", 1, sketch))

    assert fits.decoding(0, 2, never).centroids.tolist() == [[1.0, 1.0]]
    assert fits.curve(0, never) is None


def test_more_clusters_than_rows_are_refused(private):
    """Or than there are about."""
    spec = ss.SketchSpec(1, 200, 0.1)
    days = ss.sketch_by(np.arange(9.0)[:, None], by=np.arange(9) // 7, spec=spec)
    with pytest.warns(ss.errors.PrivacyWarning):
        few = ss.privacy.release(ss.sketch(np.zeros((5, 3)), private.spec), 10.0, 1e-8, force=True)

    for rows, choice, message in (
        (days, 2, "2 rows, too few for 90 cl"),
        (few, 0, "about .* for 90"),
    ):
        with pytest.raises(DataError, match=f"there are {message}"):
            Fits(SketchFile.of("few", 1, rows)).decoding(choice, 90, never)
