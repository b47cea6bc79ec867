"""Sums of all slices up to some edges, from which any window of a table is a few sums.

Symbols
-------
n, b      slices, edges
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchshift._typing import IntArray
from sketchshift.errors import DataError
from sketchshift.sketch.totals import Totals

__all__ = ["RunningSums"]

BLOCK = 16  # slices between two edges, at least
SHARE = 12  # of the memory of the slices, at most one part in so many


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Sums of the slices before each edge.

    Attributes
    ----------
    edges : int64 array of shape (b,)
        Numbers of slices, ascending, from 0 to n.
    sums : Totals
        Of b slices: what all slices before each edge add up to.
    size : int
        Slices between two edges, about.
    """

    edges: IntArray
    sums: Totals
    size: int

    @classmethod
    def of(cls, totals: Totals) -> RunningSums | None:
        """Return the sums of n slices; None if all together are too heavy to be held."""
        n = len(totals)
        try:
            whole = totals.merged()
        except DataError:
            return None
        # where slices have few cells and their sums have many, blocks are larger
        size = max(BLOCK, -(-SHARE * n * whole.n_bytes // (totals.n_bytes + 1)))
        none = cls(np.zeros(1, dtype=np.int64), Totals.zero(totals.layout), size)
        return none._with_edges(0, n, totals)

    def window(self, totals: Totals, first: int, last: int) -> Totals:
        """Return the sum of slices from one number on and before another: O(size) digits."""
        i, j = (int(np.abs(self.edges - place).argmin()) for place in (first, last))
        spans = [(first, int(self.edges[i])), (int(self.edges[j]), last)]
        if last - first <= 2 + sum(abs(stop - start) for start, stop in spans):
            pieces = [(totals.span(first, last), 1)]
        else:
            pieces = [(self.sums[j], 1), (self.sums[i], -1)]
            signs = [1 if start < stop else -1 for start, stop in spans]
            own = [totals.span(*sorted(span)) for span in spans]
            pieces += [pair for pair in zip(own, signs, strict=True) if len(pair[0])]
        found = Totals.difference(pieces)
        found.check_capacity()
        return found

    def after(
        self, totals: Totals, own: IntArray, late: Totals, groups: IntArray, sign: int
    ) -> RunningSums:
        """Return the sums once some slices have changed or come, and others moved.

        Parameters
        ----------
        totals : Totals
            The slices as they are then.
        own : int64 array of shape (n,)
            New numbers of the slices that were there, ascending.
        late : Totals
            What was added to slices, or taken from them.
        groups : int64 array
            The new number of the slice of each of these.
        sign : int
            1 or -1.
        """
        edges = np.append(own, len(totals))[self.edges]
        edges[0] = 0
        each = np.arange(len(edges))
        behind = np.searchsorted(edges, groups, "right")  # the first edge that counts them
        added = Totals.sum([(late, behind, 1)], len(edges)).running()
        sums = Totals.sum([(self.sums, each, 1), (added, each, sign)], len(edges))
        found = RunningSums(edges, sums, self.size)
        for i in reversed(np.flatnonzero(np.diff(edges) > 2 * self.size).tolist()):
            found = found._with_edges(i, int(edges[i + 1]), totals)
        return found

    def without(self, left: IntArray) -> RunningSums:
        """Return the sums once only these slices are left: the others have become 0."""
        edges = np.searchsorted(left, self.edges)
        return RunningSums(edges, self.sums, self.size)

    def _with_edges(self, i: int, stop: int, totals: Totals) -> RunningSums:
        """Return the same with more edges between edge i and a slice, and one there."""
        start = int(self.edges[i])
        places = np.append(np.arange(start + self.size, stop, self.size), stop)
        blocks = np.searchsorted(places, np.arange(start, stop), "right")
        parts = Totals.sum([(totals.span(start, stop), blocks, 1)], len(places)).running()
        each = np.arange(len(places))
        before = self.sums.take(np.full(len(places), i))
        sums = Totals.sum([(before, each, 1), (parts, each, 1)], len(places))
        rest = int(np.searchsorted(self.edges, stop, "right")) if stop > start else i + 1
        edges = np.concatenate([self.edges[: i + 1], places, self.edges[rest:]])
        b = len(self.edges)
        pieces = [self.sums.span(0, i + 1), sums, self.sums.span(rest, b)]
        return RunningSums(edges, Totals.join([p for p in pieces if len(p)]), self.size)
