"""A decoder that is registered by name works everywhere, and nothing else need be told of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.decoders import Decoder, Fit, Turnkey, decoder
from sketchshift.errors import SpecError
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import Fits
from sketchshift.view.page import report_on


@dataclass(frozen=True)
class Toy:
    """Draws centroids at random."""

    spread: float = 1.0

    def fit(self, sketch, n_clusters, *, seed=0, progress=None):
        return ToyFit(sketch, np.random.default_rng(seed), self.spread)


@dataclass(frozen=True)
class ToyFit:
    sketch: ss.Sketch
    rng: np.random.Generator
    spread: float

    def decode(self, k):
        mean, covariance = self.sketch.outline
        drawn = self.rng.multivariate_normal(mean, self.spread**2 * covariance, size=k)
        return ss.Decoding(drawn, np.full(k, 1 / k), None, 1.0, ss.decoders.Outcome.COMPLETE, ())


@pytest.fixture
def toy():
    ss.decoders.register_decoder("toy", Toy)
    return Toy


@pytest.fixture
def sketch() -> ss.Sketch:
    X = np.random.default_rng(0).normal(size=(300, 2))
    return ss.sketch(X, n_clusters=3)


@pytest.fixture
def run(sketch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sketch.save("week.sketch")
    return lambda line: CliRunner().invoke(main, line.split())


def test_decode_takes_the_name_or_the_decoder(toy, sketch):
    named = ss.decode(sketch, 3, seed=7, decoder="toy")
    given = ss.decode(sketch, 3, seed=7, decoder=Toy())

    assert named.centroids.shape == (3, 2)
    np.testing.assert_array_equal(named.centroids, given.centroids)
    assert np.ptp(ss.decode(sketch, 3, decoder=Toy(spread=0.0)).centroids, axis=0).max() < 1e-9
    assert [len(d.weights) for d in ss.decoders.decode_range(sketch, [3, 1], decoder="toy")] == [
        3,
        1,
    ]


def test_the_command_clusters_with_it_and_its_help_says_what_it_is(toy, sketch, run):
    result = run("cluster week.sketch -k 3 --decoder toy --seed 5 --json")

    assert result.exit_code == 0, result.output
    found = [cluster["centroid"] for cluster in json.loads(result.stdout)["clusters"]]
    np.testing.assert_allclose(found, ss.decode(sketch, 3, seed=5, decoder="toy").centroids)
    words = " ".join(run("cluster --help-all").output.split())
    assert "toy: Draws centroids at random. Keys: spread." in words


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("toy:starts=5 -k 3", "'starts=5' must be KEY=VALUE: the keys of toy are spread."),
        ("toy -k auto", "-k auto needs --decoder turnkey. Give the number"),
    ],
)
def test_keys_that_it_has_no_field_for_are_refused(toy, run, flags, sentence):
    result = run(f"cluster week.sketch --decoder {flags}")

    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())


def test_a_field_is_set_by_its_key(sketch, run):
    @dataclass(frozen=True)
    class Starter(Toy):
        """Draws as many as it is told."""

        n_initializations: int = 1

        def fit(self, sketch, n_clusters, *, seed=0, progress=None):
            seen.append(self.n_initializations)
            return super().fit(sketch, n_clusters)

    seen: list[int] = []
    ss.decoders.register_decoder("starter", Starter)
    try:
        result = run("cluster week.sketch -k 3 --decoder starter:n_initializations=17")
    finally:
        del decoder.DECODERS["starter"]

    assert result.exit_code == 0, result.output
    assert seen == [17]


def test_the_report_shows_its_clusters_without_a_curve(toy, sketch):
    subject = SketchFile.of("week.sketch", 1, sketch)

    text, decoding = report_on(subject, 3, decoder="toy")

    assert len(decoding.weights) == 3
    assert "<html" in text
    fits = Fits(subject, 3, decoder="toy")
    assert fits.decoding(0, 2, lambda: None).centroids.shape == (2, 2)
    assert fits.curve(0, lambda: None) is None


def test_the_estimator_takes_it(toy):
    X = np.random.default_rng(0).normal(size=(100, 2))

    for given in ("toy", Toy()):
        km = ss.CompressiveKMeans(2, decoder=given, random_state=0).fit(X)
        assert km.cluster_centers_.shape == (2, 2)


def test_a_number_is_asked_for_where_a_decoder_does_not_choose_it(toy, sketch):
    with pytest.raises(SpecError, match="must be an integer: this decoder does not choose it"):
        ss.decode(sketch, "auto", decoder="toy")


@pytest.mark.parametrize("given", ["nobody", 3, Turnkey])
def test_what_is_no_decoder_is_refused(sketch, given):
    with pytest.raises(SpecError, match=r"'decoder' .* one of 'turnkey', 'sketch-and-shift', 'cl-"):
        ss.decode(sketch, 2, decoder=given)


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


@pytest.mark.parametrize("name", ["turnkey", "sketch-and-shift", "cl-ompr"])
@pytest.mark.parametrize("n_rows", [1, 2, 40])
def test_a_fit_answers_for_equal_rows_and_for_fewer_rows_than_clusters(name, n_rows):
    rows = np.tile([[2.0, 3.0]], (n_rows, 1))
    sketch = ss.sketch(rows, ss.SketchSpec(2, 60, 0.5))
    made = decoder.DECODERS[name]()

    fit = made.fit(sketch, 5)

    assert isinstance(made, Decoder)
    assert isinstance(fit, Fit)
    for k in (5, 1):
        found = fit.decode(k)
        np.testing.assert_allclose(found.centroids, [[2.0, 3.0]], atol=1e-2)
        assert (found.outcome is ss.decoders.Outcome.COMPLETE) == (k == 1)


def test_a_fit_of_the_papers_decoders_gives_any_k_like_a_call():
    sketch = ss.sketch(np.random.default_rng(0).normal(size=(200, 2)), ss.SketchSpec(2, 60, 0.5))
    made = ss.SketchAndShift(n_initializations=20)

    fit = made.fit(sketch, 3, seed=1)

    for k in (3, 2):
        np.testing.assert_array_equal(fit.decode(k).centroids, made(sketch, k, seed=1).centroids)


def test_a_domain_is_a_field_or_an_argument():
    sketch = ss.sketch(np.random.default_rng(0).normal(size=(200, 2)), ss.SketchSpec(2, 60, 0.5))
    box = ss.decoders.Box([0.0, 0.0], [1.0, 1.0])

    field = ss.decode(sketch, 2, decoder=ss.ClOmpr(domain=box))

    np.testing.assert_array_equal(field.centroids, ss.ClOmpr()(sketch, 2, domain=box).centroids)


def test_constants_are_fields():
    """Another value, another result; the same one, the same bytes."""
    from sketchshift.decoders.gaussians import CoarseToFine

    sketch = ss.sketch(np.random.default_rng(0).normal(size=(300, 2)), n_clusters=3, cells=False)
    plain = ss.decode(sketch, 2)
    same = ss.decode(sketch, 2, decoder=Turnkey(search=CoarseToFine(components=4)))
    other = ss.decode(sketch, 2, decoder=Turnkey(search=CoarseToFine(components=6)))

    assert plain.centroids.tobytes() == same.centroids.tobytes()
    assert plain.trace[0].n_atoms == 8
    assert other.trace[0].n_atoms == 12


def test_a_cell_of_a_notebook_may_register_its_decoder_again(toy):
    again = type("Toy", (Toy,), {"__module__": Toy.__module__, "__qualname__": Toy.__qualname__})

    ss.decoders.register_decoder("toy", again)

    assert decoder.DECODERS["toy"] is again


def test_a_decoder_that_gives_something_else_is_told_so(sketch):
    class Numbers(Toy):
        def fit(self, sketch, n_clusters, *, seed=0, progress=None):
            return self

        def decode(self, k):
            return np.zeros((k, 2))

    with pytest.raises(TypeError, match=r"Numbers must decode to a Decoding\. It gave ndarray"):
        ss.decode(sketch, 2, decoder=Numbers())
