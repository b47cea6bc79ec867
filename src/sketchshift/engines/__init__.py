"""Clusters of machines: Dask, Spark, Ray, and whatever is registered.

Sketches of partitions add up exactly, so an engine has little to do: find the partitions of a
collection, run a function where each lies, and bring the results together. ``driver`` makes plans
and sketches of these three. The bytes are those of :func:`sketchshift.sketch`; each partition is
read on one thread. Each module needs its library, and says how to get it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from sketchshift._validation import parameter_error
from sketchshift.data.open import register_collections
from sketchshift.sketch.reading import CollectionReader, Planning, Reading

__all__ = ["Engine", "Function", "Merge", "register_engine"]

Function = Callable[..., bytes | None]
"""Called as ``function(partition, reading, where="partition 3")`` where the partition lies.

A partition is anything that :func:`sketchshift.sketch` reads from memory, or a list or iterator of
such blocks; ``where`` names it in messages.
"""

Merge = Callable[[Iterable[bytes | None]], bytes | None]
"""Makes one result of several, in any order and by any tree; None is the result of nothing."""


class Engine(Protocol):
    """What computes on collections that lie on many machines.

    Only bytes travel. Functions and readings can be pickled (with cloudpickle, as engines do).

    Weights must then be a column, and partitions with named columns are refused unless the spec or
    ``columns=`` names them, since they may stand in another order in each. An engine with an
    attribute ``checks_collections = True`` sees to both by itself, in :meth:`partitions`.
    """

    def partitions(
        self, collection: Any, reading: Reading, planning: Planning | None = None
    ) -> Any:
        """Find the partitions; nothing is computed.

        Parameters
        ----------
        collection : collection
            As the user gave it.
        reading : Reading
            What will be read. ``reading.column_names(empty)``, of no rows with the columns of the
            collection, names the columns to read, and refuses what is wrong with them now.
        planning : Planning or None
            For a plan, which needs rows from all along the collection, but not all of them. An
            engine may leave partitions out, by ``planning.seed``.

        Returns
        -------
        partitions : anything
            What :meth:`map` understands; it knows the reading.
        """

    def map(self, function: Function, partitions: Any) -> Any:
        """Run a function on each partition, where it lies, now or when the results are reduced.

        Parameters
        ----------
        function : callable
            Gets a partition, the reading and ``where``.
        partitions : anything
            From :meth:`partitions`.

        Returns
        -------
        results : anything
            What :meth:`reduce` understands.
        """

    def reduce(self, merge: Merge, results: Any) -> bytes | None:
        """Bring the results together here, as one.

        Parameters
        ----------
        merge : callable
            Is associative and commutative: a tree of merges does it, and so does one merge of all.
        results : anything
            From :meth:`map`.
        """


def register_engine(collections: str | type, engine: Callable[[], Engine]) -> None:
    """Make collections that lie on many machines known to all that sketches them.

    From then on :func:`sketchshift.plan`, :func:`sketchshift.sketch`,
    :func:`sketchshift.sketch_by` and the estimators take such collections.

    Parameters
    ----------
    collections : str or type
        The class of the collections, or the name of the package that all of their classes come
        from: ``"dask"``. What is registered already gets the new engine.
    engine : callable
        Called without arguments when such a collection turns up; returns an object with the
        methods ``partitions``, ``map`` and ``reduce`` of :class:`sketchshift.engines.Engine`. The
        class of the engine is such a callable.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> class Shelf(list):
    ...     pass
    >>> class ShelfEngine:
    ...     def partitions(self, collection, reading, planning=None):
    ...         return [(part, reading) for part in collection]
    ...
    ...     def map(self, function, partitions):
    ...         return [function(part, reading, where="a shelf") for part, reading in partitions]
    ...
    ...     def reduce(self, merge, results):
    ...         return merge(results)
    >>> ss.engines.register_engine(Shelf, ShelfEngine)
    >>> ss.sketch(Shelf([np.eye(2), np.ones((3, 2))]), n_clusters=2).count
    5
    """
    if not (isinstance(collections, type) or (isinstance(collections, str) and collections)):
        must = "a class, or the name of a package"
        raise parameter_error("register_engine", "collections", must, collections)
    if not callable(engine):
        raise parameter_error("register_engine", "engine", "a function or a class", engine)

    def find() -> CollectionReader:
        from sketchshift.engines.driver import Driver  # imports pyarrow

        return Driver(engine())

    register_collections(collections, find)
