"""The dashboard asks for metrics that are served, and a real Prometheus sees the alarm."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sketchshift as ss
from sketchshift.live.command import METRICS, PREFIX

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "sketchshift-follow.json"
COMMAND = [sys.executable, "-m", "sketchshift", "follow"]
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0, columns=("x", "y"))
PATIENCE = 60  # seconds, on a busy machine
PAGE = Path(__file__).parents[2] / "docs" / "follow.md"
CONFIGURATION, RULES = re.findall(
    r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
)
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no prometheus here: `make test-prometheus`"
)


def expressions() -> list[str]:
    """All that the dashboard asks Prometheus for, with its variables filled in."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    values = {"$job": ".*", "$instance": ".*", "$__rate_interval": "10s"}
    for name, value in values.items():
        asked = [expression.replace(name, value) for expression in asked]
    return asked


def served() -> set[str]:
    return {PREFIX + name + "_total" * (kind == "counter") for name, (kind, *_) in METRICS.items()}


def test_every_metric_of_the_dashboard_is_served_and_every_one_served_is_on_it():
    text = DASHBOARD.read_text(encoding="utf-8")

    assert set(re.findall(rf"{PREFIX}\w+", text)) == served()


def test_the_dashboard_is_one_that_grafana_imports():
    """What its importer asks for: inputs, panels that do not overlap, unique numbers."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    fields = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert dashboard["id"] is None
    assert dashboard["schemaVersion"] >= 39
    assert [given["name"] for given in dashboard["__inputs"]] == ["DS_PROMETHEUS"]
    assert {panel["type"] for panel in panels} == {"stat", "timeseries"}
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(fields)) == len(fields)
    assert max(x for x, _ in fields) < 24
    assert all(panel["datasource"]["uid"] == "${DS_PROMETHEUS}" for panel in panels)


def test_the_page_explains_every_metric():
    rows = re.findall(rf"^\| `({PREFIX}\w+)` \| (\w+) \|", PAGE.read_text(), flags=re.MULTILINE)

    assert dict(rows) == {
        PREFIX + name + "_total" * (kind == "counter"): kind for name, (kind, *_) in METRICS.items()
    }


def write(folder: Path, day: int, shift: float = 0.0) -> None:
    x, y = np.random.default_rng(day).normal(size=(2, 300)) + shift
    draft = folder / f".{day}.parquet"
    pyarrow.parquet.write_table(
        pa.table({"x": x, "y": y, "day": [date(2026, 1, 1 + day)] * 300}), draft
    )
    draft.rename(folder / f"{day}.parquet")


@contextmanager
def process_of(words: list[str], **options) -> Iterator[subprocess.Popen]:
    with subprocess.Popen(words, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Prometheus:
    """A server of it, by its own HTTP interface."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/query?query="

    def ask(self, expression: str) -> list[float]:
        with urlopen(self._url + quote(expression)) as answer:
            found = json.load(answer)
        assert found["status"] == "success"
        return [float(each["value"][1]) for each in found["data"]["result"]]

    def wait_for(self, expression: str, value: float) -> None:
        end, found = time.monotonic() + PATIENCE, None
        while found != [value] and time.monotonic() < end:
            time.sleep(0.2)
            try:
                found = self.ask(expression)
            except OSError as error:  # it has not started yet
                found = error
        assert found == [value], expression


@pytest.mark.prometheus
@needs_prometheus
def test_prometheus_sees_the_alarm_in_its_own_query(tmp_path):
    (tmp_path / "plan.json").write_text(SPEC.to_json(), encoding="utf-8")
    (tmp_path / "in").mkdir()
    for day in range(6):
        write(tmp_path / "in", day)
    words = [*COMMAND, "in", "st", "--by", "day", "--plan", "plan.json", "--watch"]
    words += ["--metrics", "0", "--every", "0.1"]
    with process_of(words, cwd=tmp_path, stdout=-1, stderr=-1, text=True) as follower:
        port = re.search(r":(\d+)/metrics", follower.stderr.readline())[1]
        (tmp_path / "rules.yml").write_text(RULES)
        ours = CONFIGURATION.replace(":9105", f":{port}").replace("15s", "1s")
        (tmp_path / "prometheus.yml").write_text(f"rule_files: [rules.yml]\n{ours}")
        own = free_port()
        server = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=stored"]
        server += [f"--web.listen-address=127.0.0.1:{own}", "--log.level=error"]
        with process_of(server, cwd=tmp_path):
            prometheus = Prometheus(own)
            prometheus.wait_for(f"{PREFIX}slices", 5)
            assert prometheus.ask(f"{PREFIX}alarms_total") == [0.0]

            for day in (6, 7):
                write(tmp_path / "in", day, shift=1.0)

            prometheus.wait_for(f"{PREFIX}alarms_total", 1)
            prometheus.wait_for(f"{PREFIX}rows", 2400)
            assert prometheus.ask(f"{PREFIX}drifted") == [1.0]
            assert prometheus.ask(f"{PREFIX}distance > {PREFIX}threshold")
            prometheus.wait_for(f"max_over_time({PREFIX}alarms_total[1m])", 1)
            prometheus.wait_for("scrape_samples_scraped", len(METRICS))
            for expression in [*expressions(), *re.findall(r"expr: (.*) > 0", RULES)]:
                assert prometheus.ask(expression), expression
