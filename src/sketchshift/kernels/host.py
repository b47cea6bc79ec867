"""Where kernels for processors keep their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchshift._typing import FloatArray

__all__ = ["OnHost"]


class OnHost:
    """NumPy arrays, so few at a time that they stay in cache."""

    chunk = 1 << 16

    def empty(self, shape: tuple[int, ...]) -> FloatArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return np.empty(shape)

    def on_host(self, array: Any) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return array
