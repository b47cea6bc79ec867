"""Decoders beside the paper's own; importing them registers what this project adds.

That is the decoder "sliding-frank-wolfe", the law "leverage" and the family "landmarks".
"""

from __future__ import annotations

from sketchshift.decoders import register_decoder
from sketchshift_papers import landmarks as landmarks
from sketchshift_papers import leverage as leverage
from sketchshift_papers.decoders.sliding_frank_wolfe import SlidingFrankWolfe
from sketchshift_papers.decoders.stable import StableMixture, decode_stable

__all__ = ["SlidingFrankWolfe", "StableMixture", "decode_stable"]

register_decoder("sliding-frank-wolfe", SlidingFrankWolfe)
