"""The decoders of the paper: Algorithm 2 (sketch and shift), its rival CL-OMPR, and their parts.

All find atoms, Diracs or Gaussians, one after the other, where the correlation with what is left
of the sketch is highest. ``bandwidth`` chooses the one they need, ``climb`` looks for such a place;
``refine`` fits weights, descends jointly and merges atoms, which the turnkey decoder and the choice
of k use too.
"""

from __future__ import annotations

__all__: list[str] = []
