"""Commands do what the Python API does, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import sketchshift as ss


def frame(name: str) -> np.ndarray:
    return pyarrow.parquet.read_table(name, columns=["x", "y"]).to_pandas().to_numpy()


def test_plan_sketch_merge_subtract_inspect_agree_with_python(folder, run):
    """The whole way on two days of data, against ``SketchSpec``, ``sketch``, + and -."""
    spec = ss.SketchSpec(n_features=2, sketch_size=70, bandwidth=0.3, seed=5, columns=("x", "y"))
    Path("p.json").write_text(spec.to_json())
    run("sketch part-1.parquet -o a.sketch --plan p.json")
    run("sketch part-2.parquet -o b.sketch --plan p.json")
    run("merge a.sketch b.sketch -o ab.sketch")
    run("merge ab.sketch --minus a.sketch -o rest.sketch")
    facts = run.facts("inspect ab.sketch")

    a, b = (ss.sketch(frame(f"part-{day}.parquet"), spec) for day in (1, 2))
    for name, expected in {"a": a, "ab": a + b, "rest": b}.items():
        assert Path(f"{name}.sketch").read_bytes() == expected.to_bytes()
    assert (facts["rows"], facts["fingerprint"]) == (120, spec.fingerprint)


@pytest.mark.parametrize("data", ["'part-*.parquet'", "part-1.parquet part-2.parquet", "parts"])
def test_quoted_globs_lists_and_folders_give_the_same_bytes(data, folder, run):
    Path("parts").mkdir()
    for day in (1, 2):
        Path(f"parts/{day}.parquet").symlink_to(folder / f"part-{day}.parquet")

    run(f"sketch {data} -o both.sketch --plan plan.json")

    days = ss.load("day1.sketch") + ss.load("day2.sketch")
    assert Path("both.sketch").read_bytes() == days.to_bytes()


def test_columns_of_the_plan_are_found_by_name_or_in_order(folder, run):
    """A file with other columns between them, in another order, means the same rows."""
    X = frame("part-1.parquet")
    swapped = pyarrow.table({"y": X[:, 1], "extra": X[:, 0], "x": X[:, 0]})
    pyarrow.parquet.write_table(swapped, "rows.parquet")
    np.save("rows.npy", X)

    for suffix in ("parquet", "npy"):
        run(f"sketch rows.{suffix} -o rows.sketch --plan plan.json")
        assert ss.load("rows.sketch") == ss.load("day1.sketch")


def test_weights_count_rows_that_many_times(folder, run):
    facts = run.facts("sketch part-1.parquet -o w.sketch --plan plan.json --weights w")

    weights = pyarrow.parquet.read_table("part-1.parquet")["w"].to_numpy()
    spec = ss.load("day1.sketch").spec
    expected = ss.sketch(frame("part-1.parquet"), spec, sample_weight=weights)
    assert ss.load("w.sketch") == expected
    assert (facts["rows"], facts["total_weight"]) == (60, weights.sum())


def test_rows_left_out_are_counted(folder, run):
    Path("gaps.csv").write_text("x,y\n1,2\n,3\n4,5\n")

    result = run("sketch gaps.csv -o gaps.sketch --plan plan.json --on-invalid skip")

    assert "2 rows x 2 columns" in result.stdout
    assert "1 row left out" in result.stdout


def test_inspect_shows_mean_and_standard_deviation_in_the_units_of_the_data(folder, run):
    options = {"columns": ("x", "y"), "center": (3, 4), "scale": 10}
    ss.sketch("part-1.parquet", ss.SketchSpec(2, 40, 1.0, **options)).save("n.sketch")
    X = frame("part-1.parquet")

    x, y = run.facts("inspect n.sketch")["statistics"]

    assert (x["column"], y["column"]) == ("x", "y")
    np.testing.assert_allclose([x["mean"], y["mean"]], X.mean(axis=0), atol=1e-9)
    # integers of 2**-16 of the bandwidth (times the scale): 1e-4
    deviations = [x["standard_deviation"], y["standard_deviation"]]
    np.testing.assert_allclose(deviations, X.std(axis=0), atol=1e-3)


def test_inspect_is_a_table_for_people(folder, run):
    text = run("inspect day1.sketch").stdout

    facts = dict(line.split(maxsplit=1) for line in text.splitlines()[1:12] if line)
    assert (facts["rows"], facts["columns"], facts["bandwidth"]) == ("60", "x, y", "0.3")
    assert facts["file"] == f"size      {Path('day1.sketch').stat().st_size:,} bytes"
    assert facts["fingerprint"] == ss.load("day1.sketch").fingerprint


def test_inspect_tells_landmarks_and_proposes_a_decoder_that_takes_them(folder, run):
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 20, axis=0)
    landmarks = ss.features.Landmarks.draw(X, 5)
    ss.sketch(X, ss.SketchSpec(2, 0, 1.0, landmarks=landmarks)).save("l.sketch")
    ss.sketch(X, ss.SketchSpec(2, 20, 1.0, law="leverage")).save("w.sketch")

    text, _, then = run("inspect l.sketch").stdout.rpartition("Next: ")

    assert "landmarks      2" in text
    assert run.facts("inspect l.sketch")["landmarks"] == 2
    assert "saturation     1.54" in run("inspect w.sketch").stdout
    assert then == "sketchshift cluster l.sketch -k 2 --decoder sketch-and-shift\n"
    run(then)


def test_inspect_of_an_empty_sketch_has_no_mean(folder, run):
    day = ss.load("day1.sketch")
    (day - day).save("empty.sketch")

    assert run.facts("inspect empty.sketch")["statistics"][0]["mean"] is None
    assert "x          -" in run("inspect empty.sketch").stdout


def test_an_output_that_is_a_link_stays_a_link(folder, run):
    Path("link.sketch").symlink_to(folder / "real.sketch")

    run("sketch points.csv -o link.sketch --plan plan.json")

    assert Path("link.sketch").is_symlink()
    assert ss.load("real.sketch").count == 60
