"""Pictures, pages and the explorer: clusters as people look at them."""

from __future__ import annotations

__all__: list[str] = []
