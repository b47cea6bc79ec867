"""The examples of this room run, and show what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sketchshift as ss

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.engines


OF_SPARK = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def run(name: str, *arguments: object) -> str:
    command = [sys.executable, "-W", "error", "-W", OF_SPARK, EXAMPLES / name, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_sites_exchange_files_only_and_one_leaves_without_a_trace(tmp_path):
    """Each of three sites misses one of four clusters: shares 2/9 and 1/3, then 1/6 and 1/3."""
    printed = run("09_federated.py", tmp_path)

    files = {path.name for path in tmp_path.iterdir()}
    shares = [float(share) for share in re.findall(r"(\d\.\d\d) of the rows", printed)]
    sketches = {"amsterdam.sketch", "bergen.sketch", "cadiz.sketch"}
    assert files == {"plan.json", "federated.png"} | sketches
    assert sorted(shares[:4]) == pytest.approx([2 / 9] * 3 + [1 / 3], abs=0.02)
    assert sorted(shares[4:]) == pytest.approx([1 / 6] * 2 + [1 / 3] * 2, abs=0.02)
    assert sum(ss.load(path).count for path in tmp_path.glob("*.sketch")) == 60_000


def test_micro_batches_of_a_stream_add_up_to_one_pass(tmp_path):
    """Six files of 5000 rows, two at a time; the centroids are the means of the clusters."""
    pytest.importorskip("pyspark")

    printed = run("11_spark_streaming.py", tmp_path)

    batches = re.findall(r"^batch (\d): ([\d,]+) rows of 2 sensors", printed, re.M)
    centroids = [float(number) for number in re.findall(r"-?\d+\.\d*", printed)]
    assert batches == [("0", "10,000"), ("1", "10,000"), ("2", "10,000")]
    assert "3 tables add up to one pass: True" in printed
    assert centroids == pytest.approx([0, 0, 1, 5, 4, 1], abs=0.05)  # 12 standard errors
    assert [path.name for path in tmp_path.iterdir()] == ["spark_streaming.png"]
