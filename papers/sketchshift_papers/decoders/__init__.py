"""Decoders beside the paper's own; importing them makes ``"sliding-frank-wolfe"`` a name."""

from __future__ import annotations

from sketchshift.decoders import register_decoder
from sketchshift_papers.decoders.sliding_frank_wolfe import SlidingFrankWolfe
from sketchshift_papers.decoders.stable import StableMixture, decode_stable

__all__ = ["SlidingFrankWolfe", "StableMixture", "decode_stable"]

register_decoder("sliding-frank-wolfe", SlidingFrankWolfe)
