"""Text of a figure as it is drawn: what lies on other text, and what is cut off."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

TOLERANCE = 1.0  # pixels at 100 dots an inch: boxes are a little larger than their ink


def _drawn_text(figure):
    """Every piece of text that reaches the renderer, with the box it fills, in pixels."""
    found: dict[int, tuple[str, Bbox]] = {}
    draw = Text.draw

    def record(text, renderer):
        draw(text, renderer)
        if text.get_visible() and text.get_text().strip():
            found[id(text)] = text.get_text(), Text.get_window_extent(text, renderer)

    figure.set_dpi(100)
    figure.draw_without_rendering()  # the layout engine moves things for good
    with patch.object(Text, "draw", record):
        figure.draw_without_rendering()
    return list(found.values())


@pytest.fixture
def faults():
    """A sentence for each piece of text that nobody can read in full."""

    def found(figure):
        texts = _drawn_text(figure)
        boxes, frame = np.array([box.extents for _, box in texts]), figure.bbox
        is_cut = (boxes[:, :2] < frame.min).any(axis=1) | (boxes[:, 2:] > frame.max).any(axis=1)
        low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        pairs = np.argwhere(np.triu((high - low > TOLERANCE).all(axis=2), 1))
        cut = [f"{texts[i][0]!r} is cut off" for i in np.flatnonzero(is_cut)]
        return cut + [f"{texts[i][0]!r} lies on {texts[j][0]!r}" for i, j in pairs]

    return found


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()
