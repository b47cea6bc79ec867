"""Rows of numbers from anywhere, one block at a time.

Takes whatever the user has (arrays, frames, Arrow streams, files, iterators);
hands a :class:`Source` of :class:`Block` to ``sketch`` and ``features``. Knows
nothing of sketches: values are passed on as they are found, NaN included.
pyarrow, narwhals and scipy are imported by the leaf that needs them, on first use.
"""

from __future__ import annotations

from sketchshift.data.dialect import text_dialect
from sketchshift.data.open import open_source, register_format
from sketchshift.data.source import Access, Block, Source

__all__ = [
    "Access",
    "Block",
    "Source",
    "open_source",
    "register_format",
    "text_dialect",
]
