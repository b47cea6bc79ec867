"""One palette for all pictures, that everybody can tell apart."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from sketchshift import _colours
from sketchshift._colours import HIGH, LOW, MARKS, PALETTE, colour_of, mark_of, shade

LEAST = 16.0
"""CIELAB distance of the nearest two colours, whoever looks; 2.3 is one that can just be seen."""

# Machado, Oliveira and Fernandes 2009: linear RGB as seen without one of the three cones.
VISIONS = {
    "full": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def rgb(colour):
    return np.array(to_rgb(colour))


def linear(c):
    """Linear RGB."""
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear RGB, for daylight."""
    t = XYZ @ np.clip(rgb, 0.0, 1.0) / XYZ.sum(axis=1)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(*colours):
    """Of WCAG 2, for linear RGB: from 1 to 21."""
    low, high = sorted(XYZ[1] @ colour for colour in colours)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_colours_are_told_apart_in_every_colour_vision(vision):
    *seen, low, high = (lab(VISIONS[vision] @ linear(rgb(c))) for c in (*PALETTE, LOW, HIGH))

    assert len(PALETTE) == 12
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) >= LEAST
    assert np.linalg.norm(low - high) > 50


def test_beyond_twelve_clusters_colours_come_back_with_another_mark():
    looks = [(colour_of(i), mark_of(i)) for i in range(12 * len(MARKS))]

    assert len(set(looks)) == len(looks)
    assert colour_of(13) == colour_of(1)


def test_a_shade_grows_with_the_deviation_and_ends():
    shades = [shade(x) for x in (0.0, 1.0, -2.0, 5.0, float("nan"))]

    assert shades == ["#c8641e00", "#c8641e4c", "#2f6fb799", "#c8641e99", "#c8641e00"]


@pytest.mark.parametrize(("page", "text"), [("#ffffff", "#16191d"), ("#16181d", "#eceff3")])
def test_colours_are_seen_and_text_is_read_on_white_and_on_a_dark_page(page, text):
    """WCAG asks 3 of graphics, and 4.5 of text, also on the fullest shade."""
    ground, ink = rgb(page), linear(rgb(text))

    assert min(contrast(linear(rgb(c)), linear(ground)) for c in (*PALETTE, LOW, HIGH)) >= 3.0
    for full in (shade(-3.0), shade(3.0)):
        opacity = int(full[7:], 16) / 255
        assert contrast(linear(opacity * rgb(full[:7]) + (1 - opacity) * ground), ink) >= 4.5


def test_no_picture_has_colours_of_its_own():
    """Colours are written in one file; greys and the maps' scale go by name."""
    view = Path(_colours.__file__).parent / "view"
    found = {f.name: re.findall(r"#[0-9a-fA-F]{6}\b", f.read_text()) for f in view.glob("*.py")}

    assert {name for name, colours in found.items() if colours} == set()
