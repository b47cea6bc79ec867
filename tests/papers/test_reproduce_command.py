"""The command: its files, its words, and Ctrl-C in a real process."""

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
from click.testing import CliRunner

from sketchshift.cli import main

PROGRAM = Path(sys.executable).with_name("sketchshift")
SAMPLE = Path(__file__).parents[1] / "samples" / "spectral_mnist.npz"


def run(*words, status=0):
    result = CliRunner().invoke(main, ["reproduce", *map(str, words)])
    assert result.exit_code == status, result.output
    return result


def n_runs(path: Path) -> int:
    return pq.read_table(path).num_rows if path.exists() else 0


def test_a_figure_leaves_runs_picture_and_verdicts(paper, tmp_path):
    text = run("fig0", "--paper", paper, "-o", tmp_path / "out", "--jobs", 1).stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    kinds = ("json", "md", "parquet", "png")

    assert names == [
        *(f"fig0-quick.{k}" for k in kinds),
        "verdicts-quick.json",
        "verdicts-quick.md",
    ]
    assert "0.1   holds " in text
    assert "0.2   does not hold here " in text
    assert "Next: sketchshift reproduce --all --full" in text
    summary = (tmp_path / "out" / "verdicts-quick.md").read_text(encoding="utf-8")
    assert "2 claims. Reproduced: 1; not reproduced: 1." in summary


def test_each_paper_has_a_folder_of_its_own(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run("fig0", "--paper", paper, "--jobs", 1).stdout

    own = tmp_path / f"reproduction-{paper.name}"
    assert (own / "verdicts-quick.md").exists()
    assert f"--paper {paper} -o {own.name}" in text
    assert not (tmp_path / "reproduction").exists()


def test_the_summary_keeps_the_figures_of_another_paper_in_the_folder(paper, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(paper / "fig0.toml", other / "mine.toml")
    for figure, folder in (("fig0", paper), ("mine", other)):
        run(figure, "--paper", folder, "-o", tmp_path / "out", "--jobs", 1)

    for kept in range(2):  # a second time, when the summary itself lies there
        summary = (tmp_path / "out" / "verdicts-quick.md").read_text(encoding="utf-8")
        assert "4 claims. Reproduced: 2; not reproduced: 2." in summary, kept
        run("mine", "--paper", other, "-o", tmp_path / "out", "--jobs", 1)


def test_a_folder_without_figures_is_no_paper(tmp_path):
    (tmp_path / "empty").mkdir()

    result = run("--all", "--paper", tmp_path / "empty", "-o", tmp_path / "out", status=1)

    assert "has no .toml files of figures" in result.output
    assert not (tmp_path / "out").exists()


def test_json_has_the_same_verdicts(paper, tmp_path):
    words = ("fig0", "--paper", paper, "-o", tmp_path / "out", "--jobs", 1, "--json")
    facts = json.loads(run(*words).stdout)
    written = json.loads((tmp_path / "out" / "fig0-quick.json").read_text(encoding="utf-8"))

    assert facts["figures"] == [written | {"left_out": []}]
    assert [c["verdict"] for c in written["claims"]] == ["holds", "does not hold here"]


def test_what_comes_next_names_the_same_paper(paper, tmp_path):
    """And a variant, a cause and medians stand in the text for a person."""
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    more = '[[claims.also]]\nname = "with CL-OMPR"\n[[claims.also.checks]]\n'
    more += 'of = { decoder = "cl_ompr" }\nop = ">"\nvalue = 0.5\n'
    text = text.replace('number = "0.2"', 'number = "0.2"\ncause = "data"') + more
    (paper / "words.toml").write_text(text, encoding="utf-8")
    words = ("words", "--paper", paper, "-o", tmp_path / "out", "--jobs", 1, "--points", 1)

    text = run(*words).stdout

    assert f"--all --full --paper {paper}" in text
    assert "- data unknown\n" in text
    assert "- by medians: does not hold here\n" in text
    assert "- with CL-OMPR: holds (by medians: holds)\n" in text


def test_a_paper_that_is_not_there_is_an_error(tmp_path):
    error = run("fig1", "--paper", "no_such_paper", status=1).stderr

    assert "'no_such_paper' is neither a folder nor a paper here" in error


def test_full_and_quick_runs_are_kept_apart(paper, tmp_path):
    common = ("--paper", paper, "-o", tmp_path, "--jobs", 1, "--realizations", 1, "--points", 1)
    run("fig0", "--quick", *common)
    run("fig0", "--full", *common)

    assert pq.read_table(tmp_path / "fig0-quick.parquet").num_rows == 1 + 3
    assert pq.read_table(tmp_path / "fig0-full.parquet").num_rows == 1 + 2 * 3


def test_all_goes_on_where_data_are_missing(paper, tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(tmp_path / "nothing"))
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    real = text.replace('name = "separated"', 'name = "m"\nkind = "real"')
    real = real.replace("{ n_samples = 100000 }", '{ name = "mnist" }')
    (paper / "fig1.toml").write_text(real, encoding="utf-8")
    words = ("--paper", paper, "-o", tmp_path / "out", "--jobs", 1)

    assert "fig1 was not run: the dataset 'mnist' is not here" in run("--all", *words).stdout
    assert "Fetch it: sketchshift data mnist" in run("fig1", *words, status=1).stderr


def test_real_data_is_found_in_the_users_cache(paper, tmp_path, monkeypatch):
    """Where `sketchshift data` puts it when nothing else is said."""
    monkeypatch.delenv("SKETCHSHIFT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "sketchshift").mkdir(parents=True)
    shutil.copy(SAMPLE, tmp_path / "cache" / "sketchshift")
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    text = text.replace('name = "separated"', 'name = "m"\nkind = "real"')
    text = text.replace("{ n_samples = 100000 }", '{ name = "spectral_mnist" }')
    (paper / "fig0.toml").write_text(text, encoding="utf-8")

    words = ("fig0", "--paper", paper, "-o", tmp_path / "out", "--jobs", 1, "--points", 1)
    assert "0.1   holds " in run(*words, "--realizations", 1).stdout


@pytest.mark.parametrize("words", [[], ["fig0", "--all"]])
def test_figures_or_all_must_be_named(paper, words):
    assert "name figures or --all" in run(*words, "--paper", paper, status=2).stderr


def test_a_file_is_not_a_folder(paper, tmp_path):
    (tmp_path / "out").write_text("", encoding="utf-8")
    error = run("fig0", "--paper", paper, "-o", tmp_path / "out", status=1).stderr

    assert "it is a file. Give the name of a folder." in error


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_process_goes_on_when_started_again(paper, tmp_path, jobs):
    """SIGINT once some runs are on disk; then the same command, which repeats none of them."""
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    text = text.replace("realizations = 2", "realizations = 400").replace("= 500", "= 2000")
    (paper / "fig0.toml").write_text(text, encoding="utf-8")
    runs = tmp_path / "fig0-quick.parquet"
    words = [PROGRAM, "reproduce", "fig0", "--paper", paper, "-o", tmp_path, "--jobs", str(jobs)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while n_runs(runs) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=120)

    assert process.returncode == 130, error
    assert output == ""
    assert error.startswith("Error: fig0 was interrupted. Finished runs are kept in ")
    kept = pq.read_table(runs)
    assert 1 < kept.num_rows < 2400

    few = text.replace("realizations = 400", "realizations = 2")
    (paper / "fig0.toml").write_text(few, encoding="utf-8")
    run("fig0", "--paper", paper, "-o", tmp_path, "--jobs", 1)
    after = pq.read_table(runs)
    assert after.slice(0, kept.num_rows).select(kept.column_names).equals(kept)
