"""Differential privacy: a sketch with noise, its ledger, and plans that do not leak.

A :class:`PrivateSketch` promises that whoever holds it learns nearly nothing of any one
person: neighbouring datasets give it with nearly equal probability. ``docs/privacy.md`` says
what that is worth, and what it does not cover.
"""

from __future__ import annotations

from sketchshift.privacy.ledger import Account, Ledger
from sketchshift.privacy.plan import plan, plan_declared, plan_public
from sketchshift.privacy.release import release
from sketchshift.privacy.sketch import PrivateSketch, load

__all__ = [
    "Account",
    "Ledger",
    "PrivateSketch",
    "load",
    "plan",
    "plan_declared",
    "plan_public",
    "release",
]
