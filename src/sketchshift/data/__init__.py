"""Rows of numbers from anywhere, one block at a time.

Takes whatever the user has (arrays, frames, Arrow streams, files, iterators);
hands a :class:`Source` of :class:`Block` to ``sketch`` and ``features``. Knows
nothing of sketches: values are passed on as they are found, NaN included.
pyarrow, narwhals and scipy are imported by the leaf that needs them, on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sketchshift.data.datasets import load as load_dataset
from sketchshift.data.open import open_source, register_format
from sketchshift.data.source import Access, Block, Source

if TYPE_CHECKING:
    from sketchshift.data.dialect import text_dialect

__all__ = [
    "Access",
    "Block",
    "Source",
    "load_dataset",
    "open_source",
    "register_format",
    "text_dialect",
]


def __getattr__(name: str) -> object:
    """Import ``text_dialect``, which needs pyarrow, on first use."""
    if name != "text_dialect":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sketchshift.data.dialect import text_dialect

    return text_dialect
