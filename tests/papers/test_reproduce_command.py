"""The program: its files, its words, and Ctrl-C in a real process."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sketchshift_papers.__main__ import main

SAVES_OFTEN = """
import sys
from sketchshift_papers import __main__, runner
runner.SAVE_EVERY = 0.0
sys.exit(__main__.main(sys.argv[1:]))
"""
SAMPLE = Path(__file__).parents[1] / "samples" / "spectral_mnist.npz"


@pytest.fixture
def run(paper, tmp_path, capsys):
    def run(*words, status=0):
        common = ["--paper", str(paper), "-o", str(tmp_path / "out"), "--jobs", "1"]
        assert main([*words, *common]) == status
        return capsys.readouterr()

    return run


def n_runs(path):
    return pq.read_table(path).num_rows if path.exists() else 0


def test_a_figure_leaves_runs_picture_and_verdicts(run, paper, tmp_path):
    """A variant, a cause and medians stand in the text."""
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    more = '[[claims.also]]\nname = "with CL-OMPR"\n[[claims.also.checks]]\n'
    more += 'of = { decoder = "cl_ompr" }\nop = ">"\nvalue = 0.5\n'
    text = text.replace('number = "0.2"', 'number = "0.2"\ncause = "data"') + more
    (paper / "fig0.toml").write_text(text, encoding="utf-8")

    said = run("fig0").out

    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {*(f"fig0-quick.{k}" for k in ("json", "md", "parquet", "png"))} | {
        "paper-quick.md"
    }
    for line in (
        "- 0.1 **holds**: ",
        "- 0.2 **does not hold here**: ",
        "- data unknown\n",
        "- by medians: does not hold here\n",
        "- with CL-OMPR: holds (by medians: holds)\n",
    ):
        assert line in said
    written = json.loads((tmp_path / "out" / "fig0-quick.json").read_text(encoding="utf-8"))
    assert [c["verdict"] for c in written["claims"]] == ["holds", "does not hold here"]
    summary = (tmp_path / "out" / "paper-quick.md").read_text(encoding="utf-8")
    assert "2 claims. Reproduced: 1; data unknown: 1." in summary


def test_full_and_quick_runs_are_kept_apart(run, tmp_path):
    for size in ("--quick", "--full"):
        run("fig0", size, "--realizations", "1", "--points", "1")

    assert n_runs(tmp_path / "out" / "fig0-quick.parquet") == 1 + 3
    assert n_runs(tmp_path / "out" / "fig0-full.parquet") == 1 + 2 * 3


def real_figure(paper, name):
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    text = text.replace('name = "separated"', 'name = "m"\nkind = "real"')
    text = text.replace("{ n_samples = 100000 }", f'{{ name = "{name}" }}')
    (paper / "fig1.toml").write_text(text, encoding="utf-8")


def test_all_goes_on_where_data_are_missing(run, paper, tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "nothing"))
    real_figure(paper, "mnist")

    assert "fig1 was not run: the dataset 'mnist' is not here" in run("--all").out
    assert "Fetch it: make data DATA=mnist" in run("fig1", status=1).err


def test_real_data_is_found_in_the_users_cache(run, paper, tmp_path, monkeypatch):
    """Where `make data` puts it when nothing else is said."""
    monkeypatch.delenv("SKETCHSHIFT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "sketchshift").mkdir(parents=True)
    shutil.copy(SAMPLE, tmp_path / "cache" / "sketchshift")
    real_figure(paper, "spectral_mnist")

    assert "- 0.1 **holds**: " in run("fig1", "--points", "1", "--realizations", "1").out


@pytest.mark.parametrize("words", [[], ["fig0", "--all"]])
def test_figures_or_all_must_be_named(words, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert "name figures or --all" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_an_interrupted_process_goes_on_when_started_again(paper, tmp_path, jobs):
    """SIGINT once some runs are on disk; then the same command, which repeats none of them."""
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    text = text.replace("realizations = 2", "realizations = 400")
    (paper / "fig0.toml").write_text(text, encoding="utf-8")
    runs = tmp_path / "fig0-quick.parquet"
    words = ["fig0", "--paper", str(paper), "-o", str(tmp_path), "--jobs"]
    program = [sys.executable, "-c", SAVES_OFTEN, *words, str(jobs)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while n_runs(runs) < 2 and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=120)

    assert (process.returncode, output) == (130, ""), error
    assert error.startswith("Error: fig0 was interrupted. Finished runs are kept in ")
    kept = pq.read_table(runs)
    assert 1 < kept.num_rows < 2400

    few = text.replace("realizations = 400", "realizations = 2")
    (paper / "fig0.toml").write_text(few, encoding="utf-8")
    assert main([*words, "1"]) == 0
    after = pq.read_table(runs)
    assert after.slice(0, kept.num_rows).select(kept.column_names).equals(kept)
