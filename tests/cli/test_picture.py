"""Pictures made of characters."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from sketchshift.cli.picture import SHADES, VIRIDIS, framed, picture

IMAGE = np.array([[0.0, 0.0, 4.0], [0.0, 0.0, 4.0], [-9.0, 1.0, 2.0], [-9.0, 1.0, 2.0]])


def console(encoding: str = "utf-8", **options) -> Console:
    return Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), **options)


def test_in_colour_each_character_shows_two_pixels():
    """Top line: the upper rows of the image; colours are the ends of viridis."""
    lines = picture(IMAGE, console(color_system="truecolor", force_terminal=True))

    assert [line.plain for line in lines] == ["▀▀▀", "▀▀▀"]
    low, high = (f"rgb({r},{g},{b})" for r, g, b in (VIRIDIS[0], VIRIDIS[-1]))
    assert str(lines[1].spans[2].style) == f"{high} on {high}"
    assert str(lines[0].spans[0].style) == f"{low} on {low}"


def test_without_colour_there_are_shades_or_letters():
    assert picture(IMAGE, console())[1].plain == "  █"
    assert set(picture(IMAGE, console())[0].plain) <= set(SHADES)
    assert picture(IMAGE, console("ascii"))[1].plain == "  @"


def test_the_colours_are_those_of_matplotlib():
    import matplotlib

    expected = [matplotlib.colormaps["viridis"](x / 10, bytes=True)[:3] for x in range(11)]

    np.testing.assert_allclose(VIRIDIS, np.array(expected, dtype=int), atol=3)


def test_an_image_of_nothing_is_dark():
    assert {line.plain for line in picture(np.zeros((3, 4)), console())} == {"    "}


def test_the_frame_names_the_axes_at_their_ends():
    lines = framed(picture(np.ones((10, 12)), console()), x=("0", "red", "9"), y=("0", "blue", "9"))

    plain = [line.plain for line in lines]
    assert plain[0].split()[0] == "9"
    assert plain[2].split()[0] == "blue"
    assert plain[4].split()[0] == "0"
    assert plain[5].split() == ["0", "red", "9"]
    assert {len(line) for line in plain} == {2 + 4 + 1 + 12}
