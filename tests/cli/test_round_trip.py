"""Commands do what the Python API does, byte for byte."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet

import sketchshift as ss


def frame(path) -> np.ndarray:
    return pyarrow.parquet.read_table(path, columns=["x", "y"]).to_pandas().to_numpy()


def test_plan_sketch_merge_subtract_inspect_agree_with_python(folder, run):
    """The whole way on two days of data, against ``SketchSpec``, ``sketch``, + and -."""
    spec = ss.SketchSpec(n_features=2, sketch_size=70, bandwidth=0.3, seed=5, columns=("x", "y"))
    (folder / "p.json").write_text(spec.to_json())
    run("sketch part-1.parquet -o a.sketch --plan p.json")
    run("sketch part-2.parquet -o b.sketch --plan p.json")
    run("merge a.sketch b.sketch -o ab.sketch")
    run("merge ab.sketch --minus a.sketch -o rest.sketch")
    facts = run.facts("inspect ab.sketch")

    a, b = (ss.sketch(frame(f"part-{day}.parquet"), spec) for day in (1, 2))
    assert (folder / "a.sketch").read_bytes() == a.to_bytes()
    assert (folder / "ab.sketch").read_bytes() == (a + b).to_bytes()
    assert (folder / "rest.sketch").read_bytes() == b.to_bytes()
    assert facts["rows"] == 120
    assert facts["fingerprint"] == spec.fingerprint


def test_a_plan_may_be_a_spec_written_by_hand(folder, run):
    spec = {
        "schema": 1,
        "n_features": 2,
        "sketch_size": 33,
        "bandwidth": 0.5,
        "columns": ["x", "y"],
    }
    (folder / "hand.json").write_text(json.dumps(spec))

    run("sketch points.csv -o hand.sketch --plan hand.json")

    expected = ss.sketch("points.csv", ss.SketchSpec(2, 33, 0.5, columns=("x", "y")))
    assert ss.load("hand.sketch") == expected


def test_quoted_globs_lists_and_folders_give_the_same_bytes(folder, run):
    (folder / "parts").mkdir()
    for day in (1, 2):
        (folder / "parts" / f"{day}.parquet").write_bytes(
            (folder / f"part-{day}.parquet").read_bytes()
        )
    for i, data in enumerate(["'part-*.parquet'", "part-1.parquet part-2.parquet", "parts"]):
        run(f"sketch {data} -o {i}.sketch --plan plan.json")

    assert len({(folder / f"{i}.sketch").read_bytes() for i in range(3)}) == 1


def test_columns_of_the_plan_are_found_by_name(folder, run):
    """A file with other columns between them, in another order, means the same rows."""
    X = frame("part-1.parquet")
    swapped = {"y": X[:, 1], "extra": 0 * X[:, 0], "x": X[:, 0]}
    pyarrow.parquet.write_table(pyarrow.table(swapped), "swapped.parquet")

    run("sketch swapped.parquet -o swapped.sketch --plan plan.json")

    assert ss.load("swapped.sketch") == ss.load("day1.sketch")


def test_arrays_without_names_take_the_plan_as_it_is(folder, run):
    np.save("points.npy", frame("part-1.parquet"))

    run("sketch points.npy -o array.sketch --plan plan.json")

    assert ss.load("array.sketch") == ss.load("day1.sketch")


def test_weights_count_rows_that_many_times(folder, run):
    facts = run.facts("sketch part-1.parquet -o w.sketch --plan plan.json --weights w")
    weights = pyarrow.parquet.read_table("part-1.parquet")["w"].to_numpy()

    expected = ss.sketch(
        frame("part-1.parquet"), ss.load("day1.sketch").spec, sample_weight=weights
    )
    assert ss.load("w.sketch") == expected
    assert facts["rows"] == 60
    assert facts["total_weight"] == weights.sum()


def test_rows_left_out_are_counted(folder, run):
    (folder / "gaps.csv").write_text("x,y\n1,2\n,3\n4,5\n")

    result = run("sketch gaps.csv -o gaps.sketch --plan plan.json --on-invalid skip")

    assert "2 rows x 2 columns" in result.stdout
    assert "1 row left out" in result.stdout


def test_inspect_shows_mean_and_standard_deviation_in_the_units_of_the_data(folder, run):
    options = {"columns": ("x", "y"), "center": (3, 4), "scale": 10}
    ss.sketch("part-1.parquet", ss.SketchSpec(2, 40, 1.0, **options)).save("n.sketch")
    X = frame("part-1.parquet")

    shown = run.facts("inspect n.sketch")["statistics"]

    assert [row["column"] for row in shown] == ["x", "y"]
    np.testing.assert_allclose([row["mean"] for row in shown], X.mean(axis=0), atol=1e-9)
    # integers of 2**-16 of the bandwidth (times the scale): 1e-4
    deviations = [row["standard_deviation"] for row in shown]
    np.testing.assert_allclose(deviations, X.std(axis=0), atol=1e-3)


def test_inspect_is_a_table_for_people(folder, run):
    text = run("inspect day1.sketch").stdout

    facts = dict(line.split("  ", 1) for line in text.splitlines() if "  " in line)
    assert facts["rows"].strip() == "60"
    assert facts["columns"].strip() == "x, y"
    assert facts["bandwidth"].strip() == "0.3"
    assert facts["file size"].strip() == f"{(folder / 'day1.sketch').stat().st_size:,} bytes"
    assert ss.load("day1.sketch").fingerprint in text


def test_inspect_tells_landmarks_and_proposes_a_decoder_that_takes_them(folder, run):
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 20, axis=0)
    ss.sketch(X, ss.SketchSpec(2, 0, 1.0, landmarks=ss.features.Landmarks.draw(X, 5))).save(
        "l.sketch"
    )
    ss.sketch(X, ss.SketchSpec(2, 20, 1.0, law="leverage")).save("w.sketch")

    text = run("inspect l.sketch").stdout
    then = text.splitlines()[-1].removeprefix("Next: ")

    assert "landmarks      2" in text
    assert run.facts("inspect l.sketch")["landmarks"] == 2
    assert "saturation     1.54" in run("inspect w.sketch").stdout
    assert then == "sketchshift cluster l.sketch -k 2 --decoder sketch-and-shift"
    run(then)


def test_inspect_of_an_empty_sketch_has_no_mean(folder, run):
    (folder / "copy.sketch").write_bytes((folder / "day1.sketch").read_bytes())
    run("merge day1.sketch --minus copy.sketch -o empty.sketch")

    assert run.facts("inspect empty.sketch")["statistics"][0]["mean"] is None
    assert "x          -" in run("inspect empty.sketch").stdout


def test_an_output_that_is_a_link_stays_a_link(folder, run):
    (folder / "real").mkdir()
    (folder / "link.sketch").symlink_to(folder / "real" / "day.sketch")

    run("sketch points.csv -o link.sketch --plan plan.json")

    assert (folder / "link.sketch").is_symlink()
    assert ss.load(folder / "real" / "day.sketch").count == 60
