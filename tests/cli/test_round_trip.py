"""Commands do what the Python API does, byte for byte."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet
import pytest

import sketchshift as ss


def frame(path) -> np.ndarray:
    return pyarrow.parquet.read_table(path, columns=["x", "y"]).to_pandas().to_numpy()


def test_plan_sketch_merge_subtract_inspect_agree_with_python(folder, run):
    """The whole way on two days of data, against ``SketchSpec``, ``sketch``, + and -."""
    run("plan part-1.parquet -o p.json -s 0.3 -m 70 --seed 5 --columns x,y")
    run("sketch part-1.parquet -o a.sketch --plan p.json")
    run("sketch part-2.parquet -o b.sketch --plan p.json --threads 1 --kernel reference")
    run("merge a.sketch b.sketch -o ab.sketch")
    run("subtract ab.sketch a.sketch -o rest.sketch")
    facts = run.facts("inspect ab.sketch")

    spec = ss.SketchSpec(n_features=2, sketch_size=70, bandwidth=0.3, seed=5, columns=("x", "y"))
    a, b = (ss.sketch(frame(f"part-{day}.parquet"), spec) for day in (1, 2))
    assert ss.SketchSpec.from_json((folder / "p.json").read_text()) == spec
    assert (folder / "a.sketch").read_bytes() == a.to_bytes()
    assert (folder / "ab.sketch").read_bytes() == (a + b).to_bytes()
    assert (folder / "rest.sketch").read_bytes() == b.to_bytes()
    assert facts["rows"] == 120
    assert facts["fingerprint"] == spec.fingerprint


def test_flags_and_a_plan_of_the_same_flags_give_the_same_bytes(folder, run):
    flags = (
        "-s 0.2 --bandwidth-high 2 --far-share 0.1 -m 33 --seed 7 --law adapted_radius "
        "--precision float64 --center 0.5,-1 --scale 2"
    )
    run(f"plan points.csv -o p.json {flags}")
    run("sketch points.csv -o by-plan.sketch --plan p.json")
    run(f"sketch points.csv -o by-flags.sketch {flags}")

    spec = ss.SketchSpec(
        n_features=2,
        sketch_size=33,
        bandwidth=(0.2, 2.0),
        seed=7,
        law="adapted_radius",
        columns=("x", "y"),
        center=(0.5, -1.0),
        scale=2.0,
        far_share=0.1,
        precision="float64",
    )
    expected = ss.sketch("points.csv", spec).to_bytes()
    assert (folder / "by-plan.sketch").read_bytes() == expected
    assert (folder / "by-flags.sketch").read_bytes() == expected


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
    run("sketch part-1.parquet -o n.sketch -s 1 --columns x,y --center 3,4 --scale 10")
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
    assert "law            leverage, saturation 1.5" in run("inspect w.sketch").stdout
    assert then == "sketchshift cluster l.sketch -k 2 --decoder sketch-and-shift"
    run(then)


def test_inspect_of_an_empty_sketch_has_no_mean(folder, run):
    (folder / "copy.sketch").write_bytes((folder / "day1.sketch").read_bytes())
    run("subtract day1.sketch copy.sketch -o empty.sketch")

    assert run.facts("inspect empty.sketch")["statistics"][0]["mean"] is None
    assert "x          -" in run("inspect empty.sketch").stdout


@pytest.mark.parametrize(
    "arguments",
    ["--columns x,y", "--n-features 2 --columns x,y", "points.csv", "part-1.parquet --weights w"],
)
def test_a_plan_takes_its_columns_from_the_data_or_from_flags(arguments, folder, run):
    facts = run.facts(f"plan {arguments} -o p.json -s 0.3 -m 40")

    assert facts["columns"] == ["x", "y"]
    assert json.loads((folder / "p.json").read_text()) == json.loads(
        (folder / "plan.json").read_text()
    )


def test_column_names_may_hold_commas(folder, run):
    facts = run.facts("""plan -o p.json -s 1 --columns '"a,b", c'""")

    assert facts["columns"] == ["a,b", "c"]


def test_an_output_that_is_a_link_stays_a_link(folder, run):
    (folder / "real").mkdir()
    (folder / "link.sketch").symlink_to(folder / "real" / "day.sketch")

    run("sketch points.csv -o link.sketch --plan plan.json")

    assert (folder / "link.sketch").is_symlink()
    assert ss.load(folder / "real" / "day.sketch").count == 60
