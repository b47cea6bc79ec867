from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from quality.__main__ import main
from quality.baselines import coreset, lightweight_coreset, uniform
from quality.clock import Clock
from quality.datasets import Dataset
from quality.found import centroid_index
from quality.runs import METHODS, Run, planned
from quality.store import Store
from quality.tables import in_hindsight

SQUARE = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])


@pytest.fixture
def data() -> Dataset:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=4000)
    X = SQUARE[labels] + rng.normal(size=(4000, 2))
    return Dataset("square", "sipu", 4, X, labels)


def test_the_centroid_index_counts_missed_clusters_in_either_direction():
    """Franti, Rezaei and Zhao 2014: 0 is right; two centroids in one cluster miss another."""
    doubled = np.vstack([SQUARE[:3], SQUARE[0] + 0.1])

    assert centroid_index(SQUARE[::-1] + 0.1, SQUARE) == 0
    assert centroid_index(doubled, SQUARE) == 1
    assert centroid_index(SQUARE, doubled) == 1
    assert centroid_index(SQUARE[:1], SQUARE) == 3
    assert centroid_index(SQUARE, SQUARE[:1]) == 3


def test_the_weights_of_a_coreset_stand_for_all_rows(data):
    """Importance sampling is unbiased: weights add up to N, and give the mean, within noise."""
    rows, weights = lightweight_coreset(data.X, 2000, seed=0)

    # weights are at most 2 N / n, so both errors have deviations of about 1 / sqrt(n): 5 of them
    assert weights.sum() == pytest.approx(data.n, rel=5 / np.sqrt(2000))
    mean = weights @ data.X[rows] / weights.sum()
    np.testing.assert_allclose(mean, data.mean, atol=5 * data.radius / np.sqrt(2000))


@pytest.mark.parametrize("method", [uniform, coreset])
def test_rows_that_are_kept_fit_into_the_bytes(data, method):
    found = method(data, 1000, seed=0)

    assert 1000 - 12 < found.n_bytes <= 1000
    assert centroid_index(found.centroids, data.true_centroids) == 0


def test_decoders_that_need_a_bandwidth_are_run_where_it_is_affordable():
    runs = list(planned(["s1", "birch1", "digits"], ["cl-ompr"], (4, 10), (0, 1, 2)))

    assert {run.dataset for run in runs} == {"s1"}
    assert {(run.multiple, run.seed) for run in runs} == {(10, 0), (10, 1)}
    assert not list(planned(["s1"], ["cl-ompr"], (4,), (0,)))


def test_all_runs_are_different():
    runs = list(planned(["s1", "skin", "uber"], list(METHODS), (2, 4, 10), (0, 1)))

    assert len(set(runs)) == len(runs)
    assert not any(run.dataset == "uber" and METHODS[run.method].needs_labels for run in runs)


def test_an_interrupted_store_goes_on_with_what_is_whole(tmp_path):
    store = Store(tmp_path)
    first, second = Run("s1", "uniform", 4, 0), Run("s1", "uniform", 4, 1)
    store.add(first, {"rse": 1.5})
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"dataset": "s1", "met')

    again = Store(tmp_path)
    again.add(second, {"rse": 1.25})

    assert first in again
    assert [row["rse"] for row in Store(tmp_path).rows] == [1.5, 1.25]


def test_what_is_forgotten_is_run_again(tmp_path):
    store = Store(tmp_path)
    runs = [Run("s1", "uniform", 4, 0), Run("s1", "turnkey", 4, 0), Run("s2", "turnkey", 4, 0)]
    for run in runs:
        store.add(run, {})

    store.forget(["turnkey"], ["s1"])

    assert [run in store for run in runs] == [True, False, True]
    assert [run in Store(tmp_path) for run in runs] == [True, False, True]


def test_hindsight_takes_the_bandwidth_with_the_least_mean_of_each_dataset():
    """A single lucky seed does not choose it."""
    errors = {0.1: (1.0, 4.0), 0.2: (2.0, 2.0)}
    rows = [
        {"dataset": "s1", "method": "cl-ompr", "bandwidth": bandwidth, "seed": seed, "rse": error}
        for bandwidth, pair in errors.items()
        for seed, error in enumerate(pair)
    ]
    rows.append({"dataset": "s1", "method": "lloyd", "bandwidth": None, "seed": 0, "rse": 1.0})

    kept = in_hindsight(pd.DataFrame(rows))

    assert sorted(kept.rse) == [1.0, 2.0, 2.0]


def test_the_time_left_comes_from_runs_of_the_same_kind():
    row = {"method": "uniform", "dataset": "s1", "multiple": 4, "total_seconds": 2.0}
    clock = Clock([row, {**row, "dataset": "a1", "total_seconds": 4.0}])

    assert clock.expected([Run("s1", "uniform", 4, 7)]) == 2.0
    assert clock.expected([Run("s2", "uniform", 4, 7)] * 2) == 6.0


def test_datasets_that_are_not_here_are_left_out_with_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "nothing"))
    words = ["--datasets", "digits,skin,cifar10,s1", "--only", "uniform", "--multiples", "2"]

    main([*words, "--seeds", "1", "--results", str(tmp_path)])

    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("skin is left out: the dataset 'skin' is not here")
    assert "Fetch it: sketchshift data skin (in a clone of the repository: make data)" in said[0]
    assert "It cannot be fetched: the features are those of a trained network" in said[1]
    assert said[2].startswith("s1 is left out: the dataset 'sipu' is not here")
    assert said[3].startswith("[1/1] digits uniform")


def test_a_second_call_runs_nothing_and_writes_the_same_tables(tmp_path, capsys):
    words = ["--datasets", "digits", "--only", "uniform,lloyd", "--multiples", "2", "--seeds", "1"]
    words += ["--results", str(tmp_path)]
    main(words)
    runs, tables = (tmp_path / "quality" / "runs.jsonl", tmp_path / "quality.md")
    first = runs.read_text(), tables.read_text()
    assert capsys.readouterr().err.count("digits") == 2

    main(words)

    assert (runs.read_text(), tables.read_text()) == first
    assert capsys.readouterr().err == ""
    errors = {row["method"]: row["rse"] for row in map(json.loads, first[0].splitlines())}
    assert 1.0 <= errors["lloyd"] < 1.1
    assert errors["lloyd"] <= errors["uniform"] < 1.3
