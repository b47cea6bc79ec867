"""``sketchshift cluster`` finds what the Python API finds, float for float."""

from __future__ import annotations

import csv
import json
import struct

import numpy as np
import pyarrow.parquet
import pytest

import sketchshift as ss
from sketchshift import _pictures
from sketchshift.view import figure

QUICK = "--decoder sketch-and-shift:n_initializations=30,refine=true"


def decode(sketch: ss.Sketch, k: int = 3, **options) -> ss.Decoding:
    return ss.SketchAndShift(n_initializations=30, refine=True, **options)(sketch, k)


def save_cloud(path: str, d: int, **spec) -> ss.Sketch:
    """Three clusters of 400 rows, far from each other."""
    rng = np.random.default_rng(d)
    X = (
        rng.normal(size=(400, d)) * 0.3
        + rng.permutation(np.repeat([0.0, 4.0, 9.0], [200, 120, 80]))[:, None]
    )
    options = {"sketch_size": 100, "bandwidth": 1.0} | spec
    sketch = ss.sketch(X, ss.SketchSpec(n_features=d, **options))
    sketch.save(path)
    return sketch


def floats(path) -> np.ndarray:
    with path.open(newline="") as file:
        return np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])


@pytest.fixture
def week(folder) -> ss.Sketch:
    return ss.load("week.sketch")


def test_a_csv_holds_the_floats_of_the_python_api(folder, run, week):
    run(f"cluster week.sketch -k 3 -o c.csv {QUICK}")

    expected = decode(week)
    read = floats(folder / "c.csv")
    assert (folder / "c.csv").read_text().startswith("cluster,share,x,y\n0,")
    assert read[:, 0].tolist() == [0, 1, 2]
    assert read[:, 1].tobytes() == expected.weights.tobytes()
    assert read[:, 2:].tobytes() == expected.centroids.tobytes()


def test_json_and_parquet_hold_the_same_floats(folder, run, week):
    facts = run.facts(f"cluster week.sketch -k 3 -o c.json {QUICK}")
    run(f"cluster week.sketch -k 3 -o c.parquet {QUICK}")

    expected = decode(week)
    written = json.loads((folder / "c.json").read_text())
    assert written["columns"] == ["x", "y"]
    assert [row["centroid"] for row in written["clusters"]] == expected.centroids.tolist()
    assert facts["clusters"] == written["clusters"]
    table = pyarrow.parquet.read_table("c.parquet")
    assert table.column_names == ["cluster", "share", "x", "y"]
    assert table["share"].to_pylist() == expected.weights.tolist()
    assert table["y"].to_pylist() == expected.centroids[:, 1].tolist()


def test_json_holds_all_facts(folder, run, week):
    facts = run.facts(f"cluster week.sketch -k 3 --seed 7 {QUICK}")

    expected = ss.SketchAndShift(n_initializations=30, refine=True)(week, 3, seed=7)
    assert facts["residual_norm"] == expected.residual_norm
    assert facts["outcome"] == "COMPLETE"
    assert facts["sentence"] == expected.sentence
    assert facts["trust"] is facts["cost"] is facts["cost_bound"] is None  # without cells
    assert facts["rows"] == week.count
    assert facts["columns"] == ["x", "y"]
    assert facts["decoder"]["seed"] == 7
    assert facts["seed"] == week.spec.seed


@pytest.mark.parametrize(
    ("text", "decoder"),
    [
        ("sketch-and-shift:n_initializations=30", ss.SketchAndShift(n_initializations=30)),
        (
            "sketch-and-shift:n_initializations=30,n_atoms=4,refine=true",
            ss.SketchAndShift(n_initializations=30, n_atoms=4, refine=True),
        ),
        (
            "sketch-and-shift:n_initializations=30,fitted_model=gaussian",
            ss.SketchAndShift(n_initializations=30, fitted_model="gaussian"),
        ),
        ("cl-ompr:n_iterations=5", ss.ClOmpr(n_iterations=5)),
    ],
)
def test_keys_are_the_fields_of_the_decoder(text, decoder, folder, run, week):
    facts = run.facts(f"cluster week.sketch -k 3 --decoder {text}")

    expected = decoder(week, 3)
    assert facts["decoder"]["name"] == text
    assert [row["centroid"] for row in facts["clusters"]] == expected.centroids.tolist()
    if expected.covariances is not None:
        covariances = [row["covariance"] for row in facts["clusters"]]
        assert covariances == expected.covariances.tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sketch-and-shift:atoms=4", "'atoms=4' must be KEY=VALUE: the keys of sketch-and-shift"),
        ("cl-ompr:n_restarts", "the keys of cl-ompr are n_iterations, n_initializations"),
        ("cl-ompr:repairs=maybe", "repairs must be true or false. Got 'maybe'."),
        ("cl-ompr:n_iterations=few", "n_iterations must be of type int | None. Got 'few'."),
        ("turnkey:penalty=1", "turnkey has no keys"),
        ("magic", "'magic' is not one of 'turnkey', 'sketch-and-shift'"),
    ],
)
def test_wrong_keys_of_a_decoder_are_refused_with_the_right_ones(text, said, folder, run):
    error = run.error(f"cluster week.sketch -k 3 --decoder {text}", 2)

    assert said in " ".join(error.split())


def test_several_sketches_are_merged_first(folder, run):
    run("merge day1.sketch day2.sketch -o both.sketch")
    lines = ["both.sketch", "day1.sketch day2.sketch", "'day*.sketch'"]

    found = [run.facts(f"cluster {line} -k 3 {QUICK}") for line in lines]

    assert [facts["rows"] for facts in found] == [120, 120, 120]
    assert found[0]["clusters"] == found[1]["clusters"] == found[2]["clusters"]
    assert found[2]["inputs"] == ["day1.sketch", "day2.sketch"]


@pytest.mark.parametrize(
    "spec",
    [
        {"bandwidth": (0.5, 2.0)},
        {"center": (1.0, 2.0), "scale": (2.0, 3.0)},
    ],
    ids=["range", "normalised"],
)
def test_sketches_of_every_kind_are_decoded(spec, folder, run):
    sketch = save_cloud("other.sketch", 2, **spec)

    facts = run.facts(f"cluster other.sketch -k 3 {QUICK} --plot other.png")

    assert [r["centroid"] for r in facts["clusters"]] == decode(sketch).centroids.tolist()
    # clusters of standard deviation 0.3 around these places
    assert sorted(round(row["centroid"][0]) for row in facts["clusters"]) == [0, 4, 9]


def test_the_table_names_the_columns_and_says_what_comes_next(folder, run, week):
    text = run(f"cluster week.sketch -k 3 {QUICK}").stdout
    lines = text.splitlines()

    assert lines[0].startswith(f"3 clusters in 180 rows x 2 columns, decoded from {week.nbytes:,}")
    expected = decode(week)
    assert lines[2 : 2 + len(expected.profile.lines())] == expected.profile.lines()
    head = next(i for i, line in enumerate(lines) if line.startswith("cluster"))
    assert lines[head].split() == ["cluster", "share", "x", "y"]
    cells = lines[head + 1].split()
    assert cells[0] == "0"
    assert cells[1:3] == [f"{100 * expected.weights[0]:.1f}", "%"]
    assert float(cells[3]) == pytest.approx(expected.centroids[0, 0], abs=0.05)
    assert lines[-2] == expected.sentence
    assert lines[-1] == f"Next: sketchshift cluster week.sketch -k 3 {QUICK} -o centroids.csv"


def test_the_next_step_keeps_the_flags(folder, run):
    flags = "-k 3 --decoder sketch-and-shift:n_initializations=5"

    text = run(f"cluster week.sketch {flags} -o c.csv").stdout

    step = text.splitlines()[-1]
    assert step == "Next: sketchshift inspect week.sketch"
    assert "Wrote c.csv." in text
    run(step.removeprefix("Next: "))


def test_a_table_for_people_is_not_wider_than_they_can_read(folder, run):
    save_cloud("wide.sketch", 11)

    text = run(f"cluster wide.sketch -k 3 {QUICK}").stdout
    run(f"cluster wide.sketch -k 3 -o wide.csv {QUICK}")

    head = next(line for line in text.splitlines() if line.startswith("cluster"))
    assert "column 7" in head
    assert "column 8" not in head
    assert "3 columns more: -o centroids.csv writes all." in text
    assert floats(folder / "wide.csv").shape == (3, 13)


@pytest.mark.parametrize(("d", "n_rows"), [(1, 1), (2, 1), (5, 2), (70, 2)])
def test_the_picture_shows_any_number_of_columns(d, n_rows, folder, run):
    """Parallel coordinates are another panel, in another row."""
    save_cloud("cloud.sketch", d, bandwidth=float(np.sqrt(d)))

    result = run(f"cluster cloud.sketch -k 3 {QUICK} --plot c.png")

    png = (folder / "c.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    assert width == 2250
    assert (height > 1000) == (n_rows == 2)
    assert "Wrote c.png." in result.stdout


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_picture_may_be_drawn_with_lines(suffix, start, folder, run):
    run(f"cluster week.sketch -k 3 {QUICK} --plot c.{suffix}")

    assert (folder / f"c.{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize("flags", ["", "--json", "-o c.csv --plot c.png"])
def test_fewer_clusters_than_asked_for_are_a_warning_and_a_result(flags, folder, run):
    """Two distinct points hold no four clusters."""
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], [30, 10], axis=0)
    ss.sketch(X, ss.SketchSpec(2, 60, 1.0)).save("two.sketch")

    result = run(f"cluster two.sketch -k 4 {QUICK} {flags}")

    assert "Warning: 2 clusters of 4. " + str(ss.decoders.Outcome.EMPTY_RESIDUAL) in result.stderr
    assert len(result.stderr.splitlines()) == 1
    if flags == "--json":
        assert json.loads(result.stdout)["outcome"] == "EMPTY_RESIDUAL"
    else:
        assert "75.0 %" in result.stdout


def test_column_names_may_hold_commas_and_quotes(folder, run):
    sketch = save_cloud("odd.sketch", 2, columns=("cost in $", 'a,"b"'))

    run(f"cluster odd.sketch -k 3 {QUICK} -o c.csv --plot c.png")

    with (folder / "c.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["cluster", "share", "cost in $", 'a,"b"']
    assert floats(folder / "c.csv")[:, 2:].tobytes() == decode(sketch).centroids.tobytes()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_with_two_columns_of_one_name_is_refused(suffix, folder, run):
    sketch = save_cloud("odd.sketch", 2, columns=("share", "x"))

    error = run.error(f"cluster odd.sketch -k 3 {QUICK} -o c.{suffix}", 2)
    facts = run.facts(f"cluster odd.sketch -k 3 {QUICK} -o c.json")

    assert f"has a column 'share', and 'c.{suffix}' would have two. Write a .json" in error
    assert [r["centroid"] for r in facts["clusters"]] == decode(sketch).centroids.tolist()


def test_without_matplotlib_a_picture_is_refused_before_decoding(folder, run, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)

    error = run.error("cluster week.sketch -k 3 --plot c.png -o c.csv")

    assert 'pip install "sketchshift[view]"' in error
    assert not (folder / "c.csv").exists()


def test_the_turnkey_decoder_is_the_default(run, folder, week):
    result = run("cluster week.sketch -k 3 --json")

    facts = json.loads(result.stdout)
    expected = ss.decode(week, 3)
    assert facts["decoder"]["name"] == "turnkey"
    np.testing.assert_array_equal([c["centroid"] for c in facts["clusters"]], expected.centroids)


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_data_is_planned_for_read_and_decoded_in_one_command(run, folder):
    facts = run.facts("cluster points.csv -k 3 -o c.csv")

    sketch = ss.sketch("points.csv", n_clusters=3)
    assert facts["rows"] == sketch.count
    expected = ss.decode(sketch, 3)
    assert floats(folder / "c.csv")[:, 2:].tobytes() == expected.centroids.tobytes()


def save_three(name: str, n: int = 900, away: float = 9.0) -> np.ndarray:
    """Rows around three places."""
    centers = np.repeat(away * np.array([[0, 0], [1, 0], [0, 1]]), n // 3, axis=0)
    X = np.random.default_rng(0).normal(size=(n, 2)) + centers
    np.savetxt(name, X, delimiter=",", header="x,y", comments="")
    return X


def test_clusters_come_with_what_they_cost_and_what_is_proved(run, folder):
    X = save_three("three.csv")
    run("sketch three.csv -k 3 -o s.sketch")
    facts = run.facts("cluster three.csv -k 3")
    result = run("cluster s.sketch -k 3")

    decoding = ss.decode(ss.load("s.sketch"), 3)
    assert result.stdout.count(str(decoding.trust)) == 1
    assert result.stderr == ""
    assert "All centroids were found" not in result.stdout
    assert facts["trust"] == {"score": decoding.trust.score, "is_good": True} | {
        "sentence": str(decoding.trust)
    }
    assert facts["cost"] == pytest.approx(ss.metrics.mse(X, decoding.centroids), rel=0.02)
    assert facts["cost_bound"] >= ss.metrics.mse(X, decoding.centroids)


@pytest.mark.parametrize("line", ["cluster s.sketch -k 3", "report s.sketch -k 3 -o r.html"])
def test_clusters_that_cannot_be_trusted_are_told_of_once_as_in_python(line, run, folder):
    """The plan has seen a third of the rows, at one place."""
    X = save_three("three.csv")
    ss.sketch(X, ss.plan(X[:300], 3)).save("s.sketch")

    result = run(line)

    with pytest.warns(ss.errors.PlanWarning) as told:
        decoding = ss.decode(ss.load("s.sketch"), 3)
    assert not decoding.trust.is_good
    assert [str(warning.message) for warning in told] == [str(decoding.trust)]
    assert result.stderr == f"Note: {decoding.trust}\n"
    assert str(decoding.trust) not in result.stdout


@pytest.mark.parametrize(
    ("flags", "has_cells"), [("", True), (QUICK, False)], ids=["turnkey", "of the paper"]
)
def test_data_is_planned_with_cells_if_the_decoder_reads_them(flags, has_cells, run, folder):
    save_three("three.csv")

    facts = run.facts(f"cluster three.csv -k 3 {flags}")

    assert (facts["cells"] is not None) == has_cells
    assert facts["fingerprint"] == ss.plan("three.csv", 3, cells=has_cells).fingerprint


def test_columns_are_chosen_and_standardised_on_the_way(run, folder):
    facts = run.facts("cluster points.csv -k 2 --columns y --scale standard --seed 3")

    sketch = ss.sketch("points.csv", n_clusters=2, columns=["y"], standardize=True, seed=3)
    expected = ss.decode(sketch, 2, seed=3)
    assert [c["centroid"] for c in facts["clusters"]] == expected.centroids.tolist()


def test_k_is_chosen_and_the_curve_is_shown(run, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 300, axis=0)
    np.savetxt("three.csv", X, delimiter=",", header="x,y", comments="")

    text = run("cluster three.csv -k auto --max-clusters 8").stdout
    facts = run.facts("cluster three.csv -k auto --max-clusters 8")

    assert "Chose k = 3 of 1 to 8: fewer clusters would mix groups" in text
    assert facts["curve"]["chosen"] == len(facts["clusters"]) == 3
    assert facts["curve"]["is_natural"]
    assert facts["curve"]["explained"][0] == 0.0
    assert facts["curve"]["n_clusters"] == list(range(1, 9))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("-k auto --decoder cl-ompr", "-k auto needs --decoder turnkey"),
        ("-k 3 --max-clusters 5", "--max-clusters goes with -k auto"),
        ("-k many", "'many' must be a whole number or auto"),
    ],
)
def test_k_auto_belongs_to_the_turnkey_decoder(run, folder, week, flags, sentence):
    assert sentence in run(f"cluster week.sketch {flags}", status=2).stderr


def test_the_curve_that_chose_k_is_drawn(folder, run, monkeypatch):
    figures = []
    draw = figure.decoding_figure

    def keep(*each, **more):
        figures.append(draw(*each, **more))
        return figures[-1]

    monkeypatch.setattr(_pictures, "added", lambda group: {"decoding": keep})
    facts = run.facts("cluster week.sketch -k auto --max-clusters 4 --plot c.png")

    titles = [ax.get_title() for ax in figures[0].axes]
    chosen = facts["curve"]["chosen"]
    is_shown = [t.startswith(f"{chosen} cluster") and t.endswith("of 1 to 4 tried") for t in titles]
    assert any(is_shown)
