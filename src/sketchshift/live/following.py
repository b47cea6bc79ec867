"""Following data that changes: a cube is brought from its position to the newest one.

Takes changes from ``changes``; hands their sums to a :class:`~sketchshift.live.Cube`, each change
in one commit with the position after it. Knows no lake and no stream.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import PurePath
from typing import Any

from sketchshift._validation import told_progress
from sketchshift.errors import Argument, ConflictError, DataError
from sketchshift.features import SketchSpec
from sketchshift.live.changes import Change, ChangingSource, open_changes
from sketchshift.live.cube import PLANNED, Cube
from sketchshift.recipe import Recipe
from sketchshift.sketch.file import is_cube
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.sketcher import Progress, open_planned
from sketchshift.sketch.slices import add_keys

__all__ = ["follow"]

PLANNED_BY = ("n_clusters", "seed", "standardize")
MOST_TRIES = 10
"""How often a source is asked anew for a change whose rows went while they were read."""


def follow(
    source: ChangingSource | str | os.PathLike[str],
    state: Cube | str | os.PathLike[str],
    *,
    spec: SketchSpec | None = None,
    n_clusters: int | None = None,
    seed: int | None = None,
    standardize: bool | str | None = None,
    by: str | Sequence[str] | None = None,
    columns: Sequence[str] | Recipe | None = None,
    where: str | None = None,
    on_invalid: str | None = None,
    until: Mapping[str, Any] | None = None,
    n_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Cube:
    """Bring a stored sketch, or a cube of slices, up to the newest state of data that changes.

    Rows that came since are added, rows that went are subtracted, each change in one commit with
    the position after it. A crash loses what was not committed, and the next call goes on from
    there; of two calls at once, each change is committed by one.

    Parameters
    ----------
    source : ChangingSource, str or path
        A folder of data files, here or in a store (``s3://bucket/folder``), or an address of a
        kind that is registered (:func:`sketchshift.live.register_changes`).
    state : Cube or path
        The folder of the cube; made if there is none.
    spec : SketchSpec or None
        What is summed, of a cube that is made.
    n_clusters, seed, standardize : int, int and bool or str, or None
        Instead of a spec: plan one on the first change, as :func:`sketchshift.plan` does. A cube
        that is there takes the same again, and refuses others.
    by : str, sequence of str or None
        Keys that slices are made by, of a cube that is made; None: one slice of all rows.
    columns, where, on_invalid
        How rows are read, of a cube that is made: as in :func:`sketchshift.sketch`. The cube keeps
        them, so that rows that went are read as they were when they came.
    until : mapping or None
        Stop at the first position that has these values: ``{"version": 12}``.
    n_threads, progress
        As in :func:`sketchshift.sketch`.

    Returns
    -------
    cube : Cube
        As new as the source was. Time and memory are those of sketching the changes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> with TemporaryDirectory() as folder:
    ...     np.save(folder + "/first.npy", X[:200])
    ...     cube = ss.live.follow(folder, folder + "-state", n_clusters=3)
    ...     np.save(folder + "/second.npy", X[200:])
    ...     cube = ss.live.follow(folder, folder + "-state")
    ...     cube.merge() == ss.sketch(X, cube.spec)
    True
    """
    changing = open_changes(source)
    if until is not None and hasattr(changing, "up_to"):  # may pass over positions on its way
        changing = changing.up_to(until)
    planned: dict[str, Any] = {"n_clusters": n_clusters, "seed": seed, "standardize": standardize}
    given = {"where": where, "on_invalid": on_invalid}
    with told_progress("follow", progress, "rows", "Reading rows") as advance:
        cube = None
        if not isinstance(state, Cube) and not is_cube(state):
            planning = Planning.instead_of(spec, **planned)
            reading = Reading(spec, columns, on_invalid=on_invalid or "raise", where=where)
            cube = _begin(changing, state, reading, planning, by)
        if cube is None:
            cube = state if isinstance(state, Cube) else Cube.open(state)
            _refuse_others(cube, {"spec": spec, "by": by, "columns": columns, **given}, planned)
            _refuse_overlap(cube, changing.name)
        follower = _Follower(changing, cube, n_threads, advance)
        while not follower.go_on(until):
            pass
    return cube


class _Follower:
    """Commits the changes of one source to one cube."""

    def __init__(
        self,
        source: ChangingSource,
        cube: Cube,
        n_threads: int | None,
        progress: Callable[[int, float | None], object] | None,
    ) -> None:
        self._source, self._cube = source, cube
        self._options: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        self._n_tries = 0

    def go_on(self, until: Mapping[str, Any] | None) -> bool:
        """Commit change after change; False to begin again.

        That is where another writer was first, and where rows went before they were read.
        """
        position = self._cube.positions.get(self._source.name)
        if _is_reached(position, until):
            return True
        with closing(_iterate(self._source.changes(position))) as changes:
            for change in changes:
                try:
                    self._commit(change, position)
                except ConflictError:
                    return False
                except (DataError, OSError):
                    self._n_tries += 1
                    if self._n_tries == MOST_TRIES or _is_there(self._source, change):
                        raise
                    return False
                position, self._n_tries = change.position, 0
                if _is_reached(position, until):
                    return True
        if until is not None:
            msg = (
                f"{self._source.name} has no position with {dict(until)}: it ends at {position}, "
                "which the state has now. Check until."
            )
            raise DataError(msg)
        return True

    def _commit(self, change: Change, before: Any) -> None:
        name = self._source.name
        self._cube.append_rows(
            change.added,
            change.removed,
            kept={f"{name}/{piece}": rows for piece, rows in change.kept.items()},
            returned=[f"{name}/{piece}" for piece in change.returned],
            positions={name: change.position},
            expected={name: before},
            **self._options,
        )


def _begin(
    source: ChangingSource,
    path: str | os.PathLike[str],
    reading: Reading,
    planning: Planning | None,
    by: str | Sequence[str] | None,
) -> Cube | None:
    """A new cube; None if another writer was first."""
    spec = reading.spec
    if planning is not None:
        spec = _plan(source, add_keys(reading, by) if by else reading, planning)
    assert spec is not None
    keys = () if by is None else by
    kept: dict[str, Any] = {"where": reading.where, "on_invalid": reading.on_invalid}
    if spec.rows.names is None and reading.columns is not None:
        kept["columns"] = [*reading.names] if reading.names else None
    if planning is not None:
        kept[PLANNED] = {name: getattr(planning, name) for name in PLANNED_BY}
    with suppress(ConflictError):
        return Cube.create(path, spec, keys, reading=kept)
    return None


def _plan(
    source: ChangingSource, reading: Reading, planning: Planning, n_tries: int = 1
) -> SketchSpec:
    """Plan on the first rows that come; the source is read from its beginning again."""
    with closing(_iterate(source.changes(None))) as changes:
        for change in changes:
            rows = change.added if change.added is not None else list(change.kept.values())
            if change.added is None and not rows:
                continue
            try:
                return open_planned(rows, reading, planning)[0].require_spec()
            except (DataError, OSError):
                if n_tries == MOST_TRIES or _is_there(source, change):
                    raise
                return _plan(source, reading, planning, n_tries + 1)
    raise DataError(
        f"{source.name} has no rows to plan on yet. Follow it once there are some, or give ",
        Argument("spec"),
        ", a plan made on data like it.",
    )


def _is_there(source: ChangingSource, change: Change) -> bool:
    """Whether rows can still be read as the source has told; most do not change once told."""
    found = getattr(source, "is_there", None)
    return found is None or bool(found(change))


def _refuse_others(cube: Cube, asked: dict[str, Any], planned: Mapping[str, Any]) -> None:
    """Refuse what would read rows in another way than those before, or plan in another way."""
    by, own = asked["by"], cube.reading
    asked = {**asked, "by": (by,) if isinstance(by, str) else by}
    was = {**own.get(PLANNED, {}), "spec": cube.spec, "by": cube.by, **own}
    was["columns"] = own.get("columns") or cube.spec.rows.recipe or cube.spec.rows.names
    for name, value in {**asked, **planned}.items():
        if value is None or _is_same(value, was.get(name)):
            continue
        is_shown = name != "spec" and name in was
        other = "follow into another folder"
        if cube.version == 0:  # an error came before the first rows, such as a name of no column
            other = "remove that folder, which has no rows yet"
        raise DataError(
            f"the cube {cube.path} has its own ",
            *((Argument(name), f" {was[name]!r}") if is_shown else ("plan",)),
            ", and rows that come must be read like those before. Leave ",
            Argument(name),
            f" out, or {other}.",
        )


def _refuse_overlap(cube: Cube, name: str) -> None:
    """Refuse a folder around one that is followed, or in it: its files would count twice."""
    kind, _, path = name.partition(":")
    for other in cube.positions:
        of, _, known = other.partition(":")
        if {kind, of} != {"folder"} or path == known:
            continue
        if PurePath(path).is_relative_to(known) or PurePath(known).is_relative_to(path):
            msg = (
                f"the cube {cube.path} follows the folder {known}, and {path} has files in common "
                "with it, which would count twice. Follow it into another folder."
            )
            raise DataError(msg)


def _is_same(value: Any, own: Any) -> bool:
    is_sequence = isinstance(own, tuple | list) and isinstance(value, Sequence)
    return list(own) == list(value) if is_sequence else bool(value == own)


def _is_reached(position: Mapping[str, Any] | None, until: Mapping[str, Any] | None) -> bool:
    if position is None or until is None:
        return False
    return all(position.get(name) == value for name, value in until.items())


def _iterate(changes: Iterable[Change]) -> Generator[Change]:
    """The changes, in what can be closed."""
    yield from changes
