"""The shares of the clusters in each slice of a table, one after another.

Clusters stay where they are; their shares alone are fitted to each slice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray
from sketchshift.decoders import Decoding
from sketchshift.decoders.shares import ClusterAtoms
from sketchshift.report.subject import Subject, key_text
from sketchshift.sketch import AnySketch

__all__ = ["MOST_SLICES", "trends"]

MOST_SLICES = 1_000
"""Slices of one column of the key that are drawn: a screen has no more dots."""


def trends(subject: Subject, decoding: Decoding, decoded: AnySketch) -> list[dict[str, Any]]:
    """Shares over the slices, for each column of the key.

    Parameters
    ----------
    subject : Subject
        Of a table; a single sketch has no trends.
    decoding : Decoding
        The clusters.
    decoded : Sketch or PrivateSketch
        Whose clusters they are: its shares are ``decoding.weights``.

    Returns
    -------
    trends : list of dict
        One for each column of the key: its name, the names and counts of its slices, and
        shares of shape (slices, k), a row of nulls for a slice without rows. O(k^2 m) a slice.
    """
    if subject.table is None or not len(decoding.weights):
        return []
    atoms = ClusterAtoms.of(decoding, decoded.spec)
    rest = atoms.z - decoded.z  # what the clusters do not explain is taken to stay
    found = []
    for column in subject.by:
        table = subject.table.merge_by(column)
        names = [key_text(key) for key in table.keys.column(column).to_pylist()]
        shown = table.sketches[:MOST_SLICES]
        found.append(
            {
                "column": column,
                "names": names[:MOST_SLICES],
                "counts": [sketch.count for sketch in shown],
                "shares": [_shares(atoms, sketch, rest).tolist() for sketch in shown],
                "left_out": max(0, len(table) - MOST_SLICES),
            }
        )
    return found


def _shares(atoms: ClusterAtoms, sketch: AnySketch, rest: ComplexArray) -> FloatArray:
    if sketch.total_weight <= 0:
        return np.full(len(atoms.weights), np.nan)
    return atoms.shares(sketch.z + rest)
