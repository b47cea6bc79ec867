"""Some rows of any data, chosen by what they hold or by where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappush, heappushpop
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data.source import Access, Across, Block, Source, Take, read_once, spans
from sketchshift.errors import DataError

__all__ = [
    "HashArray",
    "Keep",
    "PartSample",
    "Sample",
    "across_slices",
    "by_position",
    "draw_by_content",
    "draw_head",
    "draw_part",
    "draw_rows",
    "hash_rows",
    "in_one_order",
    "merge_parts",
    "mix",
    "random_bits",
    "share_out",
    "spread",
    "usable_rows",
]

# A number for every row that depends on what the row holds, and on nothing else.
#
# Equal rows have equal hashes, whatever their place and dtype; unlike rows have unlike ones,
# but for one pair in 2^64. Made to draw samples, not to withstand an adversary.

HashArray = NDArray[np.uint64]

_ODD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64
_STEP = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_TILE = 2**14  # numbers at a time: they stay in cache
_FEWEST = 2**11  # rows at a time: of fewer, the calls cost more than the cache saves


def hash_rows(
    values: RealArray, weights: FloatArray | None, seed: int, bounds: FloatArray | None = None
) -> HashArray:
    """Hashes of the rows of a block, together with their weights.

    Parameters
    ----------
    values : array of shape (n, d)
        Hashed as float64; 0 and -0 are the same.
    weights : array of shape (n,) or None
        One more column.
    seed : int
        Another seed gives other hashes.
    bounds : array of shape (2, d), optional
        IN/OUT. Least and largest values of the columns so far: cheaper here than by themselves.

    Returns
    -------
    hashes : uint64 array of shape (n,)
        O(n d).
    """
    hashes = np.full(len(values), _start(seed), dtype=np.uint64)
    step = max(_FEWEST, _TILE // values.shape[1])
    for first in range(0, len(values), step):
        part = values[first : first + step]
        columns = np.empty(part.shape[::-1])
        np.add(part.T, 0.0, out=columns, casting="unsafe")  # -0.0 + 0.0 is 0.0
        for column in columns:
            _take_in(hashes[first : first + step], column)
        if bounds is not None:
            np.minimum(bounds[0], columns.min(axis=1), out=bounds[0])
            np.maximum(bounds[1], columns.max(axis=1), out=bounds[1])
    if weights is not None:
        _take_in(hashes, weights + 0.0)
    return mix(hashes)


def mix(numbers: HashArray) -> HashArray:
    """The finaliser of SplitMix64, a bijection in which every bit moves every other."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _ODD[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _ODD[1]
    return numbers ^ (numbers >> np.uint64(31))


def random_bits(positions: IntArray, seed: int) -> HashArray:
    """64 random bits for each position, always the same ones for the same seed."""
    return mix(mix(positions.astype(np.uint64)) ^ _start(seed))


def _start(seed: int) -> np.uint64:
    return np.uint64((seed + 1) * _STEP & _MASK)


def _take_in(hashes: HashArray, column: FloatArray) -> None:
    """One column more, in place: a bijection of the hash for each value, and the reverse."""
    hashes ^= column.view(np.uint64)
    hashes *= _ODD[0]
    hashes ^= hashes >> np.uint64(32)


# Rows chosen by what they hold: data in another order gives the same sample.
#
# Every row gets a hash of its content and of its rank among equal rows, and those with the
# least hashes are drawn, in the order of these. So any row is as likely as any other, and data
# of many equal rows gives a sample of many equal rows.

Keep: TypeAlias = Callable[[Block], IntArray | None]
"""Says which rows of a block may be drawn, ``None`` for all; may raise."""

HASHES_AT_A_TIME = 2**16
PREFIX_BITS = 16


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a source.

    Parameters
    ----------
    values : array of shape (n, d)
        The rows, in float64.
    weights : array of shape (n,) or None
        Their weights.
    lower, upper : arrays of shape (d,)
        Least and largest values of the columns in all rows looked at.
    """

    values: FloatArray
    weights: FloatArray | None
    lower: FloatArray
    upper: FloatArray


def draw_by_content(source: Source, n_rows: int, *, seed: int, keep: Keep) -> Sample:
    """Draw rows in two passes, one of their hashes and one of the rows themselves.

    Parameters
    ----------
    source : Source
        Read twice.
    n_rows : int
        Number of rows to draw; all of them if there are no more.
    seed : int
        Another seed draws other rows.
    keep : callable
        Says which rows of a block may be drawn; may raise.

    Returns
    -------
    sample : Sample
        It does not depend on the order of the N rows. O(N (d + log N)) time, 16 bytes a row of
        memory.
    """
    bounds = np.array([[np.inf], [-np.inf]]).repeat(source.n_features, axis=1)
    kept: list[IntArray | None] = []
    parts = [np.empty(0, np.uint64)]
    for block in source:
        kept.append(keep(block))
        parts.append(hash_rows(*_usable(block, kept[-1]), seed, bounds))
    hashes = np.concatenate(parts)
    parts.clear()
    drawn = _least(np.sort(hashes), n_rows)
    return Sample(*_fetch(source, kept, hashes, drawn), *bounds)


def usable_rows(source: Source, keep: Keep) -> Iterator[tuple[RealArray, FloatArray | None]]:
    """Values and weights of the rows that may be drawn, block by block."""
    for block in source:
        yield _usable(block, _keep_rows(block, keep))


def _keep_rows(block: Block, keep: Keep) -> IntArray | None:
    """Which rows of a block may be drawn; what is wrong with one is said of its own position."""
    try:
        return keep(block)
    except DataError:
        for i, row in enumerate([] if block.rows is None else block.rows.tolist()):
            keep(replace(_row(block, i), first_row=row, rows=None))
        raise


def _usable(block: Block, rows: IntArray | None) -> tuple[RealArray, FloatArray | None]:
    if rows is None:
        return block.values, block.weights
    return block.values[rows], None if block.weights is None else block.weights[rows]


def _fetch(
    source: Source, kept: Sequence[IntArray | None], hashes: HashArray, drawn: HashArray
) -> tuple[FloatArray, FloatArray | None]:
    """A row for each hash drawn; ``hashes`` are those of all rows kept of the blocks.

    Rows go to their places at once: in plans of wide data they are what takes the memory.
    """
    wanted, place = np.unique(drawn, return_inverse=True)
    target = np.empty(len(wanted), np.int64)
    target[place] = np.arange(len(drawn))  # of equal rows the last one, copied to the others below
    rows = np.empty((len(drawn), source.n_features))
    row_weights: FloatArray | None = None
    may_be_wanted = np.zeros(2**PREFIX_BITS, dtype=bool)  # sorts out nearly all at little cost
    may_be_wanted[_prefixes(wanted)] = True
    first = 0
    for block, kept_rows in zip(source, kept, strict=True):
        values, weights = _usable(block, kept_rows)
        here = hashes[first : first + len(values)]
        first += len(here)
        found = np.flatnonzero(may_be_wanted[_prefixes(here)])
        at = np.minimum(np.searchsorted(wanted, here[found]), len(wanted) - 1)
        is_wanted = wanted[at] == here[found]
        found, at = found[is_wanted], target[at[is_wanted]]
        rows[at] = values[found]  # of equal rows the last one stays: they are equal
        if weights is not None:
            row_weights = np.ones(len(drawn)) if row_weights is None else row_weights
            row_weights[at] = weights[found]
    repeated = np.flatnonzero(target[place] != np.arange(len(drawn)))
    for span in spans(len(repeated), HASHES_AT_A_TIME):
        to, of = repeated[span], target[place[repeated[span]]]
        rows[to] = rows[of]
        if row_weights is not None:
            row_weights[to] = row_weights[of]
    return rows, row_weights


def _prefixes(hashes: HashArray) -> HashArray:
    return hashes >> np.uint64(64 - PREFIX_BITS)


def _least(hashes: HashArray, n_rows: int) -> HashArray:
    """Hashes of the rows drawn, given those of all rows, sorted.

    Equal rows have equal hashes and would be drawn all or none, so that a row's key is a hash of
    its hash and its rank among its equals. Those with the least keys are drawn, in the order
    of their keys; a hash stands there as often as rows with it are drawn.
    """
    keys, owners = np.empty(0, np.uint64), np.empty(0, np.uint64)
    begin, limit = 0, np.uint64(2**64 - 1)
    for span in spans(len(hashes), HASHES_AT_A_TIME):
        part = hashes[span]
        ranks, begin = _ranks(hashes, span, begin)
        new = mix(part) if ranks is None else mix(part ^ mix(ranks))
        is_low = new <= limit
        keys = np.concatenate([keys, new[is_low]])
        owners = np.concatenate([owners, part[is_low]])
        if len(keys) > n_rows:
            least = np.argpartition(keys, n_rows - 1)[:n_rows]
            keys, owners = keys[least], owners[least]
            limit = keys[-1]  # argpartition puts the largest of them last
    return owners[np.lexsort((owners, keys))]


def _ranks(hashes: HashArray, span: slice, begin: int) -> tuple[HashArray | None, int]:
    """Ranks of sorted hashes among their equals, and where the last run of equals begins.

    ``begin`` is where the run begins that may reach into ``span``. None stands for ranks that
    are all 0, as in data without equal rows.
    """
    part = hashes[span]
    is_first = np.ones(len(part), dtype=bool)
    is_first[1:] = part[1:] != part[:-1]
    is_first[0] = span.start == 0 or part[0] != hashes[span.start - 1]
    if is_first.all():
        return None, span.stop - 1
    at = np.arange(span.start, span.stop)
    begins = np.maximum.accumulate(np.where(is_first, at, begin))
    return (at - begins).astype(np.uint64), int(begins[-1])


# Where to look in data that is too long to be read for a sample.
#
# Positions are spread evenly over the whole length, with a jitter that a seed sets, so that
# neither the order of the rows nor a period in them can hide anything. Knows no format.

SEEKS = 1000  # places where one is reached by a seek


def spread(n: int, length: int, seed: int) -> IntArray:
    """Different positions below ``length``, ascending: one in each of n equal parts.

    Parameters
    ----------
    n : int
        Number of positions; all of them if there are no more.
    length : int
        Of what they are spread over.
    seed : int
        Sets the jitter.

    Returns
    -------
    positions : int64 array of shape (min(n, length),)
        Each position is equally likely to be taken.
    """
    n = min(n, length)
    edges = np.arange(n + 1) * length // max(n, 1)
    jitter = random_bits(np.arange(n), seed) / 2.0**64
    inside = (jitter * np.diff(edges)).astype(np.int64)
    positions: IntArray = edges[:-1] + np.minimum(inside, np.diff(edges) - 1)
    return positions


def share_out(
    sizes: Sequence[int], n_rows: int, n_places: int, seed: int
) -> Iterator[tuple[int, int, int]]:
    """How many rows to draw from each of several parts of some data.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of the parts: files, row groups, record batches.
    n_rows : int
        To be drawn in all.
    n_places : int
        At most so many parts are looked into. Of more parts, those are taken that evenly
        spread positions hit.
    seed : int
        Sets the jitter of these.

    Yields
    ------
    part, n_rows, n_places : int
        Number of the part, the rows to draw from it, and the places to look at in it.
    """
    n_hits = n_rows if len(sizes) <= n_places else n_places
    hit = np.searchsorted(np.cumsum(sizes), spread(n_hits, sum(sizes), seed), side="right")
    for part, times in zip(*np.unique(hit, return_counts=True), strict=True):
        share = times / len(hit)
        yield int(part), int(np.ceil(share * n_rows)), int(np.ceil(share * n_places))


def across_slices(
    take: Take,
    n: int,
    *,
    weights: Callable[[slice], FloatArray] | None = None,
    source: str,
    ahead: Callable[[Take, Iterable[slice]], Iterable[RealArray]] = map,
) -> Across:
    """Rows of something that can be cut anywhere: runs of a few, at up to 1000 places.

    Parameters
    ----------
    take : callable
        Gives the values of a slice of rows.
    n : int
        Number of rows in all.
    weights : callable, optional
        Gives the weights of a slice of rows.
    source : str
        Name for messages.
    ahead : callable
        As ``map``, where it pays to take some slices before they are asked for.

    Returns
    -------
    across : callable
        As :class:`Source` has it; seeks are cheap, so that the number of places is its own.
    """

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        run = -(-n_rows // SEEKS)
        starts = (spread(-(-n_rows // run), -(-n // run), seed) * run).tolist()
        places = [slice(start, min(start + run, n)) for start in starts]
        taken = iter(ahead(take, places))
        for span in places:
            w = None if weights is None else weights(span)
            yield Block(np.array(next(taken)), w, source, span.start)

    return across


def by_position(read: Callable[[], Iterable[Block]]) -> Across:
    """Rows of something that can only be read from start to end: a whole pass.

    Parameters
    ----------
    read : callable
        Starts a pass and returns its blocks.

    Returns
    -------
    across : callable
        As :class:`Source` has it. Every row is equally likely; memory for the rows drawn.
    """

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        heap: list[tuple[int, int, Block]] = []  # the rows with the least keys, worst first
        first = 0
        for block in read():
            keys = random_bits(np.arange(first, first + len(block.values)), seed)
            limit = -heap[0][0] if len(heap) == n_rows else 2**64 - 1
            rows = np.flatnonzero(keys <= np.uint64(limit))
            if len(rows) > n_rows:
                rows = rows[np.argpartition(keys[rows], n_rows)[:n_rows]]
            for i in rows.tolist():
                entry = (-int(keys[i]), first + i, _row(block, i))
                heappush(heap, entry) if len(heap) < n_rows else heappushpop(heap, entry)
            first += len(keys)
        yield from (block for _, _, block in sorted(heap, key=lambda entry: entry[1]))

    return across


def _row(block: Block, i: int) -> Block:
    """One row, copied: the block it comes from may be a large one."""
    weights = None if block.weights is None else block.weights[i : i + 1].copy()
    return Block(block.values[i : i + 1].copy(), weights, block.source, block.first_row + i)


# Some rows of any source, to plan a sketch with.
#
# Decides how much is read: all of what lies in memory, a little from all along a large file,
# the beginning of a stream. How rows are chosen then is said above, and by the readers of files.

PLACES = 64  # row groups, record batches or files that are looked into
FEWEST_PLACES, FETCHED_BYTES = 8, 2**27  # of these, where each has to be fetched from a store
FEW_ROWS_FACTOR = 4  # times as many rows as are drawn: read them all
FEW_BYTES = 2**24  # likewise, unless they are many rows packed well
FEW_PACKED = 2**22  # rows
ROWS_TOGETHER = 2**10  # rows drawn from all along, hashed and stored at a time
COLUMNS_TOGETHER = 8  # columns put in order at a time: a cache line of each row


def draw_rows(source: Source, n_rows: int, *, seed: int, keep: Keep) -> Sample:
    """Draw rows of a source, each equally likely.

    Parameters
    ----------
    source : Source
        Data in memory and small files are read twice. Of larger files some rows are read, from
        all along them. For streams there is :func:`draw_head`.
    n_rows : int
        Number of rows to draw; all of them if there are no more.
    seed : int
        Another seed draws other rows.
    keep : callable
        Says which rows of a block may be drawn; may raise.

    Returns
    -------
    sample : Sample
        For data in memory and small files it does not depend on the order of the N rows:
        O(N (d + log N)) time, 16 bytes a row of memory.
    """
    if source.access is Access.DISK and not _is_small(source, n_rows):
        return _draw_across(source, n_rows, seed, keep)
    return draw_by_content(source, n_rows, seed=seed, keep=keep)


def draw_head(
    source: Source, n_rows: int, *, seed: int, keep: Keep
) -> tuple[Sample, int | None, Source]:
    """Draw from the first rows of a stream, which still delivers them.

    Parameters
    ----------
    source : Source
        Can be read once.
    n_rows : int
        Blocks are taken until there are so many rows, and held.
    seed, keep
        As in :func:`draw_rows`.

    Returns
    -------
    sample : Sample
        Drawn from the blocks taken.
    n_taken : int or None
        Rows in these blocks; None if they are all there is.
    source : Source
        All rows of the stream, those taken first.
    """
    stream = iter(source)
    taken: list[Block] = []
    n_usable = 0
    while n_usable < n_rows and (block := next(stream, None)) is not None:
        taken.append(block)
        rows = keep(block)
        n_usable += len(block.values if rows is None else rows)
    held = replace(source, read=lambda: iter(taken))
    sample = draw_by_content(held, n_rows, seed=seed, keep=keep)
    behind = next(stream, None)
    n_taken = None if behind is None else sum(len(block.values) for block in taken)
    rest = chain(taken, [] if behind is None else [behind], stream)
    return sample, n_taken, replace(source, read=read_once(rest, "a stream"))


def _is_small(source: Source, n_rows: int) -> bool:
    n = source.n_rows
    if n is not None and n <= FEW_ROWS_FACTOR * n_rows:
        return True
    is_short = source.n_bytes is not None and source.n_bytes <= FEW_BYTES
    return is_short and (n is None or n <= FEW_PACKED)


def _draw_across(source: Source, n_rows: int, seed: int, keep: Keep) -> Sample:
    """About as many usable rows from all along the source, then in the order of their content."""
    across = source.across or by_position(source.read)
    held = _HeldRows(n_rows, source.n_features, seed)
    n_places = PLACES
    if source.place_bytes is not None:
        n_places = min(max(FETCHED_BYTES // max(source.place_bytes, 1), FEWEST_PLACES), PLACES)
    for values, weights in usable_rows(
        replace(source, read=lambda: across(n_rows, n_places, seed)), keep
    ):
        held.add(values, weights)
    return held.draw(n_rows)


class _HeldRows:
    """Rows of which some are drawn, in one array that never has a copy.

    Parameters
    ----------
    n_rows, n_features : int
        How many are expected, of how many columns.
    seed : int
        Of the hashes.
    """

    def __init__(self, n_rows: int, n_features: int, seed: int) -> None:
        self._rows = np.empty((n_rows + ROWS_TOGETHER + n_rows // 64, n_features))
        self._n, self._seed = 0, seed
        self._bounds = np.array([[np.inf], [-np.inf]]).repeat(n_features, axis=1)
        self._weights: list[FloatArray] = []
        self._hashes: list[HashArray] = []
        self._waiting: list[tuple[RealArray, FloatArray | None]] = []

    def add(self, values: RealArray, weights: FloatArray | None) -> None:
        """Add rows; single ones wait until there are some to be hashed together."""
        self._waiting.append((values, weights))
        if sum(len(v) for v, _ in self._waiting) >= ROWS_TOGETHER:
            self._join()

    def draw(self, n_rows: int) -> Sample:
        """Rows by their content, as :func:`draw_by_content` does; ends the use of this object."""
        self._join()
        hashes = np.concatenate([np.empty(0, np.uint64), *self._hashes])
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        drawn = _least(ordered, n_rows)
        at = order[np.searchsorted(ordered, drawn, side="right") - 1]  # of equal rows the last
        for span in spans(self._rows.shape[1], COLUMNS_TOGETHER):
            self._rows[: len(at), span] = self._rows[at, span]
        weights = np.concatenate(self._weights)[at] if self._weights else None
        return Sample(self._rows[: len(at)], weights, *self._bounds)

    def _join(self) -> None:
        if not self._waiting:
            return
        values = np.concatenate([values for values, _ in self._waiting])
        given = [weights for _, weights in self._waiting if weights is not None]
        weights = np.concatenate(given) if given else None
        self._waiting = []
        self._hashes.append(hash_rows(values, weights, self._seed, self._bounds))
        self._weights += [] if weights is None else [weights]
        after = self._n + len(values)
        if after > len(self._rows):  # moves no row: the system maps more pages behind
            self._rows.resize((after + after // 8, self._rows.shape[1]), refcheck=False)
        self._rows[self._n : after] = values
        self._n = after


# Samples of the parts of some data, and the sample of all of it that they make together.
#
# Every row of a part gets a key, and those with the least keys are drawn. Keys travel with their
# rows, so that samples merge in any order, any number of times. The key of a row comes from what
# its part holds as a whole: rows in another order give the same sample, and rows that repeat, in
# one part or in several, have keys of their own and are drawn as often as any others.


@dataclass(frozen=True)
class PartSample(Sample):
    """Rows drawn from one or several parts.

    Parameters
    ----------
    keys : uint64 array of shape (n,)
        Of the rows, ascending.
    """

    keys: HashArray


def draw_part(source: Source, n_rows: int, *, seed: int, keep: Keep) -> PartSample:
    """Draw rows of one part.

    Parameters
    ----------
    source : Source
        The part; read twice.
    n_rows : int
        Number of rows to draw; all of them if there are no more.
    seed : int
        Another seed draws other rows.
    keep : callable
        Says which rows of a block may be drawn; may raise.

    Returns
    -------
    sample : PartSample
        It does not depend on the order of the N rows. O(N (d + log N)) time, 32 bytes a row of
        memory.
    """
    bounds = np.array([[np.inf], [-np.inf]]).repeat(source.n_features, axis=1)
    parts = [hash_rows(*rows, seed, bounds) for rows in usable_rows(source, keep)]
    hashes = np.concatenate([np.empty(0, np.uint64), *parts])
    keys = random_bits(np.arange(len(hashes)), int(hashes.sum()))  # the sum wraps around
    least = np.argsort(keys, kind="stable")[:n_rows]
    values, weights = _fetch_parts(source, keep, np.argsort(hashes)[least])
    return PartSample(values, weights, bounds[0], bounds[1], keys[least])


def merge_parts(samples: Sequence[PartSample], n_rows: int) -> PartSample:
    """The sample of several parts together.

    Parameters
    ----------
    samples : sequence of PartSample
        Each of ``n_rows`` rows, or of all that its part has.
    n_rows : int
        Number of rows to draw.

    Returns
    -------
    sample : PartSample
        Every row of the parts is equally likely to be in it.
    """
    keys = np.concatenate([sample.keys for sample in samples])
    least = np.argsort(keys, kind="stable")[:n_rows]
    weights = [s.weights for s in samples if s.weights is not None]
    return PartSample(
        np.concatenate([sample.values for sample in samples])[least],
        np.concatenate(weights)[least] if weights else None,
        np.min([sample.lower for sample in samples], axis=0),
        np.max([sample.upper for sample in samples], axis=0),
        keys[least],
    )


def in_one_order(sample: PartSample, *, seed: int) -> Sample:
    """The same rows in the order in which they would be drawn from data in memory."""
    block = Block(sample.values, sample.weights)
    source = Source(None, len(sample.lower), None, lambda: iter([block]))
    rows = draw_by_content(source, len(sample.values), seed=seed, keep=lambda _: None)
    return Sample(rows.values, rows.weights, sample.lower, sample.upper)


def _fetch_parts(
    source: Source, keep: Keep, positions: IntArray
) -> tuple[FloatArray, FloatArray | None]:
    """Values and weights of the usable rows at some positions."""
    values = np.empty((len(positions), source.n_features))
    weights: FloatArray | None = None
    first = 0
    for block_values, block_weights in usable_rows(source, keep):
        last = first + len(block_values)
        wanted = np.flatnonzero((first <= positions) & (positions < last))
        values[wanted] = block_values[positions[wanted] - first]
        if block_weights is not None:
            weights = np.empty(len(positions)) if weights is None else weights
            weights[wanted] = block_weights[positions[wanted] - first]
        first = last
    return values, weights
