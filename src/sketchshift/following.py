"""Following data that changes: a cube is brought from its position to the newest one.

Takes changes from ``data.changes``; hands their sums to a :class:`~sketchshift.Cube`, each change
in one commit with the position after it. Knows no lake and no stream.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from sketchshift._validation import told_progress
from sketchshift.data.changes import Change, ChangingSource, open_changes
from sketchshift.errors import ConflictError, DataError
from sketchshift.features import SketchSpec
from sketchshift.recipe import Recipe
from sketchshift.sketch.cube import Cube
from sketchshift.sketch.file import is_cube
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.sketcher import Progress, open_planned
from sketchshift.sketch.slices import add_keys

__all__ = ["follow"]


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
        A folder of data files, or an address of a kind that is registered
        (:func:`sketchshift.register_changes`).
    state : Cube or path
        The folder of the cube; made if there is none.
    spec : SketchSpec or None
        What is summed, of a cube that is made.
    n_clusters, seed, standardize : int, int and bool or str, or None
        Instead of a spec: plan one on the first change, as :func:`sketchshift.plan` does.
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
    ...     cube = ss.follow(folder, folder + "-state", n_clusters=3)
    ...     np.save(folder + "/second.npy", X[200:])
    ...     cube = ss.follow(folder, folder + "-state")
    ...     cube.merge() == ss.sketch(X, cube.spec)
    True
    """
    planned = {"seed": seed, "standardize": standardize}
    changing = open_changes(source)
    if until is not None and hasattr(changing, "up_to"):  # may pass over positions on its way
        changing = changing.up_to(until)
    given = {"where": where, "on_invalid": on_invalid}
    with told_progress("follow", progress, "rows", "Reading rows") as advance:
        if isinstance(state, Cube) or is_cube(state):
            cube = state if isinstance(state, Cube) else Cube.open(state)
            _refuse_others(cube, spec, by, columns, given)
        else:
            planning = Planning.instead_of(spec, n_clusters, **planned)
            reading = Reading(spec, columns, on_invalid=on_invalid or "raise", where=where)
            cube = _begin(changing, state, reading, planning, by)
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

    def go_on(self, until: Mapping[str, Any] | None) -> bool:
        """Commit change after change; False if another writer was first, to begin again."""
        position = self._cube.positions.get(self._source.name)
        if _is_reached(position, until):
            return True
        with closing(_iterate(self._source.changes(position))) as changes:
            for change in changes:
                try:
                    self._commit(change, position)
                except ConflictError:
                    return False
                position = change.position
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
) -> Cube:
    """A new cube; that of another writer who was first."""
    keys = () if by is None else by
    reading = add_keys(reading, keys) if keys else reading
    spec = reading.spec if planning is None else _plan(source, reading, planning)
    assert spec is not None
    kept: dict[str, Any] = {"where": reading.where, "on_invalid": reading.on_invalid}
    if spec.columns is None and reading.columns is not None:
        kept["columns"] = [*reading.names] if reading.names else None
    try:
        return Cube.create(path, spec, keys, reading=kept)
    except ConflictError:
        return Cube.open(path)


def _plan(source: ChangingSource, reading: Reading, planning: Planning) -> SketchSpec:
    """A plan made on the first rows that come; the source is read from its beginning again."""
    with closing(_iterate(source.changes(None))) as changes:
        for change in changes:
            rows = change.added if change.added is not None else list(change.kept.values())
            if change.added is not None or rows:
                planned, _ = open_planned(rows, reading, planning)
                return planned.require_spec()
    msg = (
        f"{source.name} has no rows to plan on yet. Follow it once there are some, or pass spec, "
        "a plan made by ss.plan on data like it."
    )
    raise DataError(msg)


def _refuse_others(
    cube: Cube,
    spec: SketchSpec | None,
    by: str | Sequence[str] | None,
    columns: Any,
    given: Mapping[str, Any],
) -> None:
    """Refuse what would read rows in another way than those before."""
    keys = None if by is None else (by,) if isinstance(by, str) else tuple(by)
    was = {"spec": cube.spec, "by": cube.by, **cube.reading}
    was["columns"] = cube.reading.get("columns") or cube.spec.recipe or cube.spec.columns
    asked = {"spec": spec, "by": keys, "columns": columns, **given}
    for name, value in asked.items():
        own = was.get(name)
        is_same = value == own or (isinstance(own, tuple | list) and list(own) == list(value or ()))
        if value is not None and not is_same:
            shown = "" if name == "spec" else f" {own!r}"
            msg = (
                f"the cube {cube.path} has its own {name}{shown}, and rows that come must be read "
                f"like those before. Leave {name} out, or follow into another folder."
            )
            raise DataError(msg)


def _is_reached(position: Mapping[str, Any] | None, until: Mapping[str, Any] | None) -> bool:
    if position is None or until is None:
        return False
    return all(position.get(name) == value for name, value in until.items())


def _iterate(changes: Iterable[Change]) -> Generator[Change]:
    """The changes, in what can be closed."""
    yield from changes
