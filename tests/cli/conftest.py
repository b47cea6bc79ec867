"""A folder with the files that the examples of the help name, and a way to run commands."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift.cli import main

SPEC = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.3, columns=("x", "y"))
PUBLIC = SPEC.replaced(rows=replace(SPEC.rows, onto=ss.features.Ball("declared", 20.0)))


def table(seed, n=60):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n))
    return pa.table({"x": x, "y": y})


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    """What the caller's terminal can do must not change a test."""
    for name in ("COLORTERM", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """points.csv, part-*.parquet, plan.json, day*.sketch, week.sketch, centroids.csv.

    points.sketch, which has cells. events.parquet, its sketches by day and shop in
    sketches.parquet, their sum all.sketch, and the folder incoming with its rows and days.
    people.csv with people.sketch, whose spec may be published; skin.npz for the datasets.
    """
    folder = tmp_path_factory.mktemp("files")
    with contextlib.chdir(folder):
        pyarrow.csv.write_csv(table(0), "points.csv")
        ss.sketch("points.csv", n_clusters=3).save("points.sketch")
        for day in (1, 2):
            weighted = table(day).append_column("w", pa.array([1.0, 4.0] * 30))
            pyarrow.parquet.write_table(weighted, f"part-{day}.parquet")
        Path("plan.json").write_text(SPEC.to_json(), encoding="utf-8")
        days = [ss.sketch(table(day), SPEC) for day in (1, 2, 3)]
        days[0].save("day1.sketch")
        days[1].save("day2.sketch")
        sum(days).save("week.sketch")
        Path("incoming").mkdir()
        dates = pa.array([date(2026, 1, 1 + i % 8) for i in range(200)])
        events = table(4, 200).append_column("day", dates)
        for name in ("events.parquet", "incoming/events.parquet"):
            pyarrow.parquet.write_table(events, name)
        shops = events.append_column("shop", pa.array([*"abc"] * 67)[:200])
        slices = ss.sketch_by(shops, by=["day", "shop"], spec=SPEC)
        slices.save("sketches.parquet")
        slices.merge().save("all.sketch")
        people = table(4, 3000)
        pyarrow.csv.write_csv(people, "people.csv")
        ss.sketch(people, PUBLIC).save("people.sketch")
        Path("centroids.csv").write_text("cluster,share,x,y\n0,0.6,0.0,0.0\n1,0.4,1.0,1.0\n")
        np.savez("skin.npz", X=np.zeros((2, 3), np.uint8))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(files, here, monkeypatch):
    """A copy of the files in the current folder."""
    shutil.copytree(files, here, dirs_exist_ok=True)
    monkeypatch.setenv("SKETCHSHIFT_DATA", str(here))
    return here


class Runner:
    """Runs a command line without a shell."""

    def __call__(self, line, status=0):
        words = shlex.split(line)
        result = CliRunner().invoke(main, words[1:] if words[0] == "sketchshift" else words)
        unexpected = result.exception and not isinstance(result.exception, SystemExit)
        assert not unexpected or status != 0, result.exception
        assert result.exit_code == status, result.output
        return result

    def facts(self, line):
        """The JSON object that the command prints, and nothing else on stdout."""
        return json.loads(self(f"{line} --json").stdout)

    def says(self, line, *words, status=0):
        """What the command prints, with all these words in it."""
        text = self(line, status).stdout
        assert [each for each in words if each not in text] == [], text
        return text

    def error(self, line, *words, status=1):
        """What a failing command says on stderr, with all these words; nothing on stdout."""
        result = self(line, status)
        assert (result.stdout, "Traceback" in result.stderr) == ("", False)
        assert [each for each in words if each not in result.stderr] == [], result.stderr
        return result.stderr


@pytest.fixture
def run():
    return Runner()
