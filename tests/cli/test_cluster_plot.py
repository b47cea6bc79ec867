"""``sketchshift cluster --plot`` draws what was asked for."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.view import figure

QUICK = "--decoder sketch-and-shift --starts 30"


@pytest.fixture
def drawn(monkeypatch) -> list:
    """The figures that commands draw, in order."""
    figures = []
    draw = figure.decoding_figure

    def record(*arguments, **options):
        figures.append(draw(*arguments, **options))
        return figures[-1]

    monkeypatch.setattr(figure, "decoding_figure", record)
    return figures


@pytest.mark.parametrize(
    ("columns", "labels"),
    [("2,a", ("2", "a")), ('"b, c",0', ("b, c", "a")), ("1,2", ("b, c", "2"))],
)
def test_the_columns_to_draw_over_are_named_or_numbered(columns, labels, folder, run, drawn):
    """A name comes first: the column "2" is at position 2 by chance."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    ss.sketch(X, ss.SketchSpec(3, 40, 2.0, columns=("a", "b, c", "2"))).save("cloud.sketch")

    run(f"cluster cloud.sketch -k 2 {QUICK} --plot c.png --plot-columns '{columns}'")

    ax = drawn[0].axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == labels


@pytest.mark.parametrize("columns", ["x", "x,x", "x,z", "x,0", "x,y,x", "0,-1"])
def test_columns_that_cannot_be_drawn_over_are_refused_before_decoding(columns, folder, run):
    error = run.error(f"cluster week.sketch -k 3 --plot c.png --plot-columns {columns}", 2)

    assert "--plot-columns must be two different columns" in error
    assert f"among 'x', 'y'. Got {columns!r}." in error
    assert not (folder / "c.png").exists()


def test_columns_to_draw_over_need_a_picture(folder, run):
    error = run.error("cluster week.sketch -k 3 --plot-columns x,y", 2)

    assert "Say where, with --plot PATH." in error


def test_the_curve_that_chose_k_is_drawn(folder, run, drawn):
    facts = run.facts("cluster week.sketch -k auto --max-clusters 4 --plot c.png")

    titles = [ax.get_title() for ax in drawn[0].axes]
    chosen = facts["curve"]["chosen"]
    is_shown = [t.startswith(f"{chosen} cluster") and t.endswith("of 1 to 4 tried") for t in titles]
    assert any(is_shown)
