"""What is decoded: mixtures of Diracs or Gaussians, and their sketches."""

from __future__ import annotations

from sketchshift.mixtures.mixture import Mixture

__all__ = ["Mixture"]
