"""Blocks shared out among threads.

Threads share nothing: each has an adder of its own, and integers add up to the same in any
order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from sketchshift.data import Block

__all__ = ["Adder", "add_blocks", "processors"]


class Adder(Protocol):
    """What takes blocks in."""

    def add(self, block: Block) -> None:
        """Add the rows of a block."""


A = TypeVar("A", bound=Adder)


def add_blocks(blocks: Iterator[Block], new_adder: Callable[[], A], n_threads: int) -> list[A]:
    """Adders that have taken in all blocks between them; a few blocks are held at a time."""
    head = list(islice(blocks, 2))
    blocks = chain(head, blocks)
    if n_threads == 1 or len(head) < 2:
        adder = new_adder()
        for block in blocks:
            adder.add(block)
        return [adder]
    adders: list[A] = []
    free: SimpleQueue[A] = SimpleQueue()

    def add(block: Block) -> None:
        try:
            adder = free.get_nowait()
        except Empty:  # a thread's first block
            adder = new_adder()
            adders.append(adder)
        adder.add(block)
        free.put(adder)

    pending: deque[Future[None]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for block in blocks:
            pending.append(pool.submit(add, block))
            if len(pending) > n_threads:
                pending.popleft().result()  # in order: the first bad row is the one named
        for future in pending:
            future.result()
    return adders


def processors() -> int:
    """Number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
