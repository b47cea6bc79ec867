from __future__ import annotations

import pytest

from sketchshift_papers.definition import load_figure

TINY = """
title = "a tiny figure"
section = "0"

[[datasets]]
name = "separated"
k = 3
domain = [-1, 1]
options = { n_samples = 100000 }

[[decoders]]
name = "algorithm2"
kind = "sketch_and_shift"
label = "Algorithm 2"
L = [5, 20]

[[decoders]]
name = "cl_ompr"
kind = "cl_ompr"

[quick]
realizations = 2
m = [40]
sigma = [0.1, 0.3]
n_samples = 500

[full]
realizations = 3
m = [40, 80]
sigma = [0.1, 0.2, 0.3]
n_samples = 500

[picture]
kind = "curves"
measure = "rse"

[[claims]]
number = "0.1"
section = "0"
says = "The reference is one."
[[claims.checks]]
of = { decoder = "lloyd" }
op = "within"
value = [1.0, 1.0]

[[claims]]
number = "0.2"
section = "0"
says = "Algorithm 2 is a thousand times better than k-means."
[[claims.checks]]
of = { decoder = "algorithm2" }
op = "<="
value = 0.001
"""


@pytest.fixture
def paper(tmp_path):
    """A folder with one tiny figure, fig0: twelve runs of a few milliseconds."""
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "fig0.toml").write_text(TINY, encoding="utf-8")
    return folder


@pytest.fixture
def tiny(paper):
    return load_figure("fig0", paper)
