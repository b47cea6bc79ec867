"""A decoder that is registered by name works everywhere, and nothing else need be told of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.decoders import Decoder, Fit, Outcome, Turnkey, decoder
from sketchshift.errors import SpecError
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import Fits
from sketchshift.view.page import report_on


@dataclass(frozen=True)
class Toy:
    """Draws centroids at random."""

    spread: float = 1.0

    def fit(self, sketch, n_clusters, *, seed=0, progress=None):
        mean, covariance = sketch.outline
        rng = np.random.default_rng(seed)

        def decode(k):
            drawn = rng.multivariate_normal(mean, self.spread**2 * covariance, size=k)
            return ss.Decoding(drawn, np.full(k, 1 / k), None, 1.0, Outcome.COMPLETE, ())

        return SimpleNamespace(decode=decode)


class Numbers:
    def fit(self, sketch, n_clusters, *, seed=0, progress=None):
        return SimpleNamespace(decode=lambda k: np.zeros((k, 2)))


@pytest.fixture(scope="module")
def sketch():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return ss.sketch(X, n_clusters=3, cells=False)


@pytest.fixture
def run(sketch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sketch.save("week.sketch")
    return lambda line: CliRunner().invoke(main, line.split())


def test_decode_takes_the_name_or_the_decoder(sketch, rng):
    named = ss.decode(sketch, 3, seed=7, decoder="toy").centroids

    assert_array_equal(named, ss.decode(sketch, 3, seed=7, decoder=Toy()).centroids)
    assert np.ptp(ss.decode(sketch, 3, decoder=Toy(spread=0.0)).centroids, axis=0).max() < 1e-9
    several = ss.decoders.decode_range(sketch, [3, 1], decoder="toy")
    assert [len(d.weights) for d in several] == [3, 1]
    X = rng.normal(size=(100, 2))
    assert ss.CompressiveKMeans(2, decoder="toy", random_state=0).fit(X).cluster_centers_.shape == (
        2,
        2,
    )


def test_the_command_clusters_with_it_and_its_help_says_what_it_is(sketch, run):
    result = run("cluster week.sketch -k 3 --decoder toy:spread=0 --seed 5 --json")

    assert result.exit_code == 0, result.output
    found = [cluster["centroid"] for cluster in json.loads(result.stdout)["clusters"]]
    expected = ss.decode(sketch, 3, seed=5, decoder=Toy(spread=0.0)).centroids
    assert_allclose(found, expected)
    words = " ".join(run("cluster --help-all").output.split())
    assert "toy: Draws centroids at random. Keys: spread." in words


def test_the_report_shows_its_clusters_without_a_curve(sketch):
    subject = SketchFile.of("week.sketch", 1, sketch)

    text, decoding = report_on(subject, 3, decoder="toy")

    assert len(decoding.weights) == 3
    assert "<html" in text
    fits = Fits(subject, 3, decoder="toy")
    assert fits.decoding(0, 2, lambda: None).centroids.shape == (2, 2)
    assert fits.curve(0, lambda: None) is None


@pytest.mark.parametrize(
    ("k", "given", "sentence"),
    [
        ("auto", "toy", "must be an integer: this decoder does not choose it"),
        (2, "nobody", "'decoder' .* one of 'turnkey', 'sketch-and-shift', 'cl-"),
        (2, Turnkey, "'decoder' .* one of 'turnkey', 'sketch-and-shift', 'cl-"),
        (2, Numbers(), r"Numbers must decode to a Decoding\. It gave ndarray"),
    ],
)
def test_what_is_no_decoder_is_refused(sketch, k, given, sentence):
    with pytest.raises((SpecError, TypeError), match=sentence):
        ss.decode(sketch, k, decoder=given)


@pytest.mark.parametrize(
    ("name", "cls", "sentence"),
    [
        ("Toy!", Toy, "'name' .* small letters"),
        ("turnkey", Toy, "a name that no other decoder has"),
        ("other", object, "'cls' .* a class with a method fit"),
    ],
)
def test_what_cannot_be_registered_is_refused(name, cls, sentence):
    with pytest.raises(SpecError, match=sentence):
        ss.decoders.register_decoder(name, cls)


def test_a_fit_of_the_papers_decoders_gives_any_k_like_a_call(sketch):
    """And a domain is a field of the decoder, or an argument of the call."""
    box = ss.decoders.Box([0.0, 0.0], [1.0, 1.0])
    made = ss.ClOmpr(domain=box)

    fit = made.fit(sketch, 3, seed=1)

    assert (isinstance(made, Decoder), isinstance(fit, Fit)) == (True, True)
    for k in (3, 2):
        called = ss.ClOmpr()(sketch, k, seed=1, domain=box)
        assert_array_equal(fit.decode(k).centroids, called.centroids)


def test_a_cell_of_a_notebook_may_register_its_decoder_again():
    again = type("Toy", (Toy,), {"__module__": Toy.__module__, "__qualname__": Toy.__qualname__})

    ss.decoders.register_decoder("toy", again)

    assert decoder.DECODERS["toy"] is again


@pytest.fixture(autouse=True)
def registered():
    ss.decoders.register_decoder("toy", Toy)
