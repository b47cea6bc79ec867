"""What a pass reads of some data, and what a plan is asked for: made once, checked once, passed on.

Also where the functions of this room meet collections that lie on many machines. Engines stand
above this room, which must not import them; they register themselves with ``data``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from sketchshift._text import listed
from sketchshift._typing import IntArray
from sketchshift._validation import check_choice, check_flag, check_integer, parameter_error
from sketchshift.data.open import find_engine, open_source
from sketchshift.data.source import Block, Source, make_request
from sketchshift.errors import ChooseColumns, DataError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.cells import MAX_CELLS
from sketchshift.features.plan import MAX_CLUSTERS, check_standardize
from sketchshift.features.rows import METRICS
from sketchshift.features.waves import MAX_SKETCH_SIZE
from sketchshift.recipe import Recipe

if TYPE_CHECKING:
    from sketchshift.sketch.keys import Key
    from sketchshift.sketch.sketch import Sketch
    from sketchshift.sketch.table import SketchTable

__all__ = ["CollectionReader", "Planning", "Reading", "engine_of", "refuse_options"]

FEWEST_ROWS, ROWS_PER_CLUSTER, MOST_ROWS = 2000, 20, 50_000  # that a plan looks at
ROWS_FOR_CELLS, NUMBERS_FOR_CELLS = 200_000, 2**24  # the latter of wide rows
ROWS_FOR_MANY_CLUSTERS, MOST_ROWS_FOR_CELLS = 32, 2**20  # the former for each cluster
BLOCK_BYTES, MOST_BLOCK_ROWS = 2**26, 2**20  # by key: in larger blocks, a key has more rows in each
FEATURES_GUESSED = 16  # columns that a block is sized for before they are known


@dataclass(frozen=True)
class Reading:
    """What is read of each row, and how.

    Parameters
    ----------
    spec : SketchSpec or None
        What is summed; None for a plan.
    columns : sequence of str, Recipe or None
        Columns to read, or how to make numbers of them; None takes the spec's, or all.
    sample_weight : str, array or None
        Name of the column that holds the weights, or the weights.
    on_invalid, kernel : str
        As in :func:`sketchshift.sketch`. Whether there is such a kernel is not checked here: a
        worker may have other hardware.
    keys : sequence of Key
        The columns of the key, where sketches are made by key.
    labels : array of shape (N,) or None
        The keys themselves, where they are no columns.
    has_schema : bool
        Whether all partitions of a collection are known to have their columns in one order.
    where : str or None
        A condition on the columns of the table, as SQL writes it: other rows are not read.
    """

    spec: SketchSpec | None = None
    columns: Sequence[str] | Recipe | None = None
    sample_weight: Any = None
    on_invalid: str = "raise"
    kernel: str = "auto"
    keys: Sequence[Key] = ()
    labels: Any = None
    has_schema: bool = True
    where: str | None = None

    def __post_init__(self) -> None:
        if self.spec is not None and not isinstance(self.spec, SketchSpec):
            raise parameter_error("sketch", "spec", "a SketchSpec", self.spec)
        caller = "plan" if self.spec is None else "sketch"
        check_choice(caller, "on_invalid", self.on_invalid, ("raise", "skip"))
        make_request(self.columns, None, None)  # refuses what is no list of names
        names = None if self.spec is None else self.spec.rows.names
        if self.columns is not None and names is not None and self._meant != self._of_spec:
            own = tuple(self.columns.names if isinstance(self.columns, Recipe) else self.columns)
            msg = (
                f" are not those of the spec, {list(names)}. Leave them out, or make a spec for "
                "these columns."
            )
            raise DataError(ChooseColumns(own), msg)

    @property
    def _meant(self) -> tuple[str, ...] | Recipe | None:
        """The columns as they were asked for."""
        columns = self.columns
        return columns if columns is None or isinstance(columns, Recipe) else tuple(columns)

    @property
    def _of_spec(self) -> tuple[str, ...] | Recipe | None:
        """The columns that the spec reads, if it names any."""
        return None if self.spec is None else self.spec.rows.recipe or self.spec.rows.names

    @property
    def recipe(self) -> Recipe | None:
        """How columns become numbers, where that is more than their names."""
        meant = self._meant or self._of_spec
        return meant if isinstance(meant, Recipe) else None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Columns of the table that were asked for by name; None: all."""
        meant = self._meant or self._of_spec
        return meant.columns if isinstance(meant, Recipe) else meant

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights of their own."""
        return self.sample_weight is not None

    @property
    def key_columns(self) -> list[str]:
        """The columns of the data that keys are made of, each once."""
        return list(dict.fromkeys(key.column for key in self.keys))

    @property
    def key_names(self) -> list[str]:
        """Names of the columns of the key, as a table of sketches has them."""
        return [key.name for key in self.keys]

    @property
    def block_rows(self) -> int | None:
        """Rows that are sorted by key at a time; None without keys, for blocks of any size."""
        if not self.keys and self.labels is None:
            return None
        width = FEATURES_GUESSED if self.spec is None else self.spec.n_features
        return max(1, min(MOST_BLOCK_ROWS, BLOCK_BYTES // (8 * width)))

    def require_spec(self) -> SketchSpec:
        """The spec, of a pass that needs one."""
        if self.spec is None:
            raise parameter_error("sketch", "spec", "a SketchSpec", self.spec)
        return self.spec

    def open(
        self, data: Any, *, names: Sequence[str] | None = None, beside: str = "nothing"
    ) -> Source:
        """Open data; rows are read when the result is iterated.

        Parameters
        ----------
        data : anything that :func:`~sketchshift.data.open_source` takes, or a Source
            A source is open already, and returned as it is.
        names : sequence of str or None
            Columns to take by default, where the spec names none.
        beside : {"nothing", "all"}
            Whether blocks have all columns of a table as keys, as they are.
        """
        if isinstance(data, Source):
            return data
        source = open_source(
            data,
            columns=self.columns,
            default_columns=self._of_spec or names,
            weights=self.sample_weight,
            block_rows=self.block_rows,
            keys=self._columns_as_written or self.labels,
            n_features=None if self.spec is None else self.spec.n_features,
            skip_invalid=self.on_invalid == "skip",
            beside=beside,
            may_count=None if self.where is None else partial(self._may_count, self.where),
        )
        if self.where is None:
            return source
        return keep_rows(source, self.where, None if beside == "all" else self.key_columns)

    @staticmethod
    def _may_count(where: str, keys: Any) -> bool:
        from sketchshift.sketch.where import may_meet

        return may_meet(keys, where)

    @property
    def _columns_as_written(self) -> list[str]:
        """The columns of keys and of the condition, each once."""
        if self.where is None:
            return self.key_columns
        if self.labels is not None:
            msg = "where needs keys that are columns of the table. Pass the name of one as by."
            raise DataError(msg)
        from sketchshift.sketch.where import columns_named

        return list(dict.fromkeys((*self.key_columns, *columns_named(self.where))))

    def column_names(self, empty: Any) -> list[str] | None:
        """The columns that are read, each once: those of keys, those summed, that of weights.

        Parameters
        ----------
        empty : array, frame or Arrow table of no rows
            With the columns of a collection. What is wrong with them is an error.

        Returns
        -------
        names : list of str or None
            None for data without names.
        """
        columns = self._names_to_read(empty)
        if columns is None:
            return None
        weights = [self.sample_weight] if self.is_weighted else []
        return list(dict.fromkeys([*self._columns_as_written, *columns, *weights]))

    def by_name(self, empty: Any) -> Reading:
        """The same reading with its columns named, for parts that have them in other orders.

        Parameters
        ----------
        empty : array, frame or Arrow table of no rows
            As in :meth:`column_names`.
        """
        if self.recipe is not None:
            return self
        return replace(self, columns=self._names_to_read(empty))

    def _names_to_read(self, empty: Any) -> tuple[str, ...] | None:
        """The columns of the table that are read; None for data without names."""
        source = self.open(empty)
        if self.recipe is not None:
            return self.recipe.columns
        return source.columns if source.vector is None else (source.vector,)

    def check_order(self, source: Source) -> None:
        """Refuse columns of a partition that may stand in another order in the next one."""
        if self.has_schema or source.columns is None or self.columns is not None:
            return
        if self.spec is not None and self.spec.rows.names is None:  # a plan compares the names
            msg = (
                f"columns {listed(source.columns)} may stand in another order in other partitions, "
                "and the spec names none. Choose them with "
            )
            raise DataError(msg, ChooseColumns(), ", or name them in the spec.")

    def check_weight_name(self, collection: str) -> None:
        """Refuse weights that are not a column, for a collection that has no place for them."""
        if self.sample_weight is None or isinstance(self.sample_weight, str):
            return
        msg = (
            f"sample_weight must be the name of a column for a {collection}. Got "
            f"{type(self.sample_weight).__name__} instead: add it as a column."
        )
        raise DataError(msg)


def keep_rows(source: Source, where: str, keys: Sequence[str] | None) -> Source:
    """The rows of a source for which a condition is true.

    Parameters
    ----------
    source : Source
        Its blocks have the columns of the condition among their keys.
    where : str
        The condition, as SQL writes it.
    keys : sequence of str or None
        The keys that are delivered; None: all.
    """
    from sketchshift.sketch.where import find_rows

    def pick(block: Block) -> Block:
        found = find_rows(block.keys, where)
        rows = found + block.first_row if block.rows is None else block.rows[found]
        return replace(
            block,
            values=block.values[found],
            weights=None if block.weights is None else block.weights[found],
            keys=_pick_keys(block.keys, keys, found),
            rows=rows,
        )

    def only(blocks: Iterator[Block]) -> Iterator[Block]:
        return (kept for kept in map(pick, blocks) if len(kept.values))

    return replace(source.map_blocks(only), n_rows=None)


def _pick_keys(table: Any, keys: Sequence[str] | None, rows: IntArray) -> Any:
    if keys is not None and not keys:
        return None
    return (table if keys is None else table.select(list(keys))).take(rows)


@dataclass(frozen=True)
class Planning:
    """The parameters of :func:`sketchshift.plan`, checked before any row is drawn."""

    n_clusters: int
    sketch_size: int | None = None
    seed: int = 0
    standardize: bool | str = False
    cells: bool | int = True
    metric: str = "euclidean"
    has_axes: bool = True
    splits_values: bool = False

    def __post_init__(self) -> None:
        if type(self.cells) is int:
            check_integer("plan", "cells", self.cells, 1, MAX_CELLS)
        else:
            check_flag("plan", "cells", self.cells)
        check_integer("plan", "n_clusters", self.n_clusters, 1, MAX_CLUSTERS)
        check_integer("plan", "seed", self.seed, 0, 2**64 - 1)
        check_standardize("plan", self.standardize)
        check_choice("plan", "metric", self.metric, METRICS)
        if self.sketch_size is not None:
            check_integer("plan", "sketch_size", self.sketch_size, 1, MAX_SKETCH_SIZE)

    @classmethod
    def instead_of(cls, spec: Any, n_clusters: int | None, **options: Any) -> Planning | None:
        """What to plan for a sketch without a spec; None for a sketch with one.

        Parameters
        ----------
        spec : SketchSpec or None
            As given to :func:`sketchshift.sketch`.
        n_clusters : int or None
            Must be given without a spec, and only then.
        **options
            ``sketch_size``, ``seed``, ``standardize``, ``cells`` and ``metric``; None where not
            given.
        """
        if spec is None and n_clusters is None:
            msg = (
                "sketch needs spec or n_clusters. Pass n_clusters=10 to plan on the way, or "
                "spec=ss.plan(sample, n_clusters=10) to share a plan between parts of the data."
            )
            raise SpecError(msg)
        options = {"n_clusters": n_clusters, **options}
        given = {name: value for name, value in options.items() if value is not None}
        if spec is None:
            return cls(**given)
        if given:
            msg = (
                f"sketch takes spec or n_clusters, not both: {', '.join(given)} cannot change what "
                "the spec says. Leave them out, or pass them to ss.plan instead."
            )
            raise SpecError(msg)
        return None

    def for_columns(self, n_features: int) -> Planning:
        """The same when the number of columns is known, on which some parameters may depend."""
        return self

    def n_rows(self, n_features: int) -> int:
        """Number of rows that the plan looks at, of so many columns."""
        if self.cells:
            rows = max(FEWEST_ROWS, min(ROWS_FOR_CELLS, NUMBERS_FOR_CELLS // n_features))
            of_clusters = ROWS_FOR_MANY_CLUSTERS * self.n_clusters
            return max(rows, min(of_clusters, MOST_ROWS_FOR_CELLS))
        return min(max(FEWEST_ROWS, ROWS_PER_CLUSTER * self.n_clusters), MOST_ROWS)


class CollectionReader(Protocol):
    """Who reads collections that lie on many machines: the driver of an engine."""

    def plan(self, collection: Any, reading: Reading, planning: Planning) -> SketchSpec:
        """As :func:`sketchshift.plan`."""

    def sketch(self, collection: Any, reading: Reading) -> Sketch:
        """As :func:`sketchshift.sketch`."""

    def sketch_by(self, collection: Any, reading: Reading) -> SketchTable:
        """As :func:`sketchshift.sketch_by`."""


def engine_of(data: Any) -> CollectionReader | None:
    """Who reads a collection; None for data that is read here."""
    reader: CollectionReader | None = find_engine(data)
    return reader


def refuse_options(function: str, collection: Any, **options: Any) -> None:
    """Refuse options that an engine cannot honour.

    Parameters
    ----------
    function : str
        Name of the public function.
    collection : collection
        Of an engine.
    **options
        Those that are not None were given.
    """
    given = [name for name, value in options.items() if value is not None]
    if given:
        library = type(collection).__module__.partition(".")[0]
        msg = (
            f"{function} cannot use {' and '.join(given)} for a {library} collection: its rows are "
            f"read by {library}, on other machines. Leave out {' and '.join(given)}."
        )
        raise SpecError(msg)
