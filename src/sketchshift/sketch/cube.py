"""A cube: slices of one plan in a folder, that many writers add to and take away from.

Parts of it are files that never change; a log says which of them count, and whether their rows came
or went (:mod:`sketchshift.sketch.cube_log`). What is left is the sum of the parts whose rows came
minus that of the parts whose rows went: exact integers, the same bytes as if only the rows that are
left had ever been read.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sketchshift._text import counted, listed
from sketchshift._writing import hold_new, place, publish
from sketchshift.errors import ConflictError, DataError, IncompatibleSketchesError, RemovalError
from sketchshift.features import SketchSpec
from sketchshift.sketch.cube_log import Commit, Log, PartRecord, State
from sketchshift.sketch.file import (
    check_fingerprint,
    name_file,
    pack,
    read_header,
    read_spec,
    unpack,
)
from sketchshift.sketch.measure import Measure
from sketchshift.sketch.sketch import Sketch, check_same_spec
from sketchshift.sketch.table import SketchTable, from_parts

__all__ = ["Cube", "is_cube"]

MAGIC = b"\x89SKU\r\n\x1a\n"
VERSION = 1
HEAD = "cube"
_KINDS = {"by": list, "fingerprint": str, "reading": dict, "spec": dict}


def is_cube(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of a cube."""
    return (Path(path) / HEAD).is_file()


class Cube:
    """Slices of one plan in a folder, that many writers may add to and take away from.

    Made by :meth:`create` or :meth:`open`.

    Attributes
    ----------
    path : Path
        Of the folder.
    spec : SketchSpec
        What is summed in each slice.
    by : tuple of str
        How rows are cut into slices, as :func:`sketchshift.sketch_by` takes it; empty for a cube
        of one slice.
    reading : dict
        How rows are read, beside the spec: whatever :meth:`create` was given.

    Examples
    --------
    >>> import tempfile, numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> day = np.arange(1000) // 100
    >>> table = ss.sketch_by(X, by=day, n_clusters=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cube = ss.Cube.create(folder + "/cube", table.spec, by="key")
    ...     version = cube.append(table)
    ...     version = cube.append(removed=table.where("key = 3"))
    ...     cube.merge() == ss.sketch(X[day != 3], table.spec)
    True
    """

    def __init__(self, path: Path, spec: SketchSpec, by: tuple[str, ...], reading: Any) -> None:
        self.path, self.spec, self.by = path, spec, by
        self.reading: dict[str, Any] = dict(reading)
        self._log = Log(path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        spec: SketchSpec,
        by: str | Sequence[str] = (),
        *,
        reading: Mapping[str, Any] | None = None,
    ) -> Cube:
        """Make an empty cube.

        Parameters
        ----------
        path : path
            A folder that is made; one with a cube in it is an error.
        spec : SketchSpec
            What is summed in each slice.
        by : str or sequence of str
            How rows are cut into slices, as :func:`sketchshift.sketch_by` takes it. None of them:
            the cube has one slice, and is a stored sketch.
        reading : mapping or None
            Whatever JSON can hold that later readers of rows must know.

        Returns
        -------
        cube : Cube
            Of no rows.
        """
        path, by = Path(path), (by,) if isinstance(by, str) else tuple(by)
        _key_names(by)
        for folder in ("parts", "log", "drafts"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        header = {"by": list(by), "fingerprint": spec.fingerprint, "reading": dict(reading or {})}
        header["spec"] = json.loads(spec.to_json())
        if not publish(path / HEAD, pack(MAGIC, VERSION, header, b""), path / "drafts"):
            msg = f"there is a cube in {path} already. Open it with ss.Cube.open({str(path)!r})."
            raise ConflictError(msg)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Cube:
        """Open a cube, to read it or to add to it.

        Parameters
        ----------
        path : path
            Of its folder.
        """
        path = Path(path)
        try:
            data = (path / HEAD).read_bytes()
        except OSError as cause:
            msg = f"there is no cube in {path}. Make one with ss.Cube.create({str(path)!r}, spec)."
            raise DataError(msg) from cause
        with name_file(path / HEAD):
            header = read_header(unpack(data, MAGIC, VERSION)[0], _KINDS)
            check_fingerprint(header["fingerprint"])
            spec = read_spec(header["spec"])
        return cls(path, spec, tuple(header["by"]), header["reading"])

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns of the key."""
        return _key_names(self.by)

    @property
    def version(self) -> int:
        """Number of the newest commit; 0 of a cube without any."""
        return self._log.state().number

    @property
    def positions(self) -> dict[str, Any]:
        """Where reading goes on, by the name of the source."""
        return dict(self._log.state().positions)

    def __repr__(self) -> str:
        state = self._log.state()
        by = f" by {', '.join(self.keys)}" if self.by else ""
        return f"<Cube{by} at version {state.number}: {counted(len(state.parts), 'part')}>"

    def append(
        self,
        added: SketchTable | Sketch | None = None,
        removed: SketchTable | Sketch | None = None,
        *,
        kept: Mapping[str, SketchTable | Sketch] | None = None,
        returned: Sequence[str] = (),
        positions: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> int:
        """Add rows that came, take away rows that went, and move positions: all in one commit.

        Parameters
        ----------
        added, removed : SketchTable, Sketch or None
            Of the spec and the keys of the cube; of a cube without keys a sketch. That only rows
            are removed that were added is checked when slices are merged.
        kept : mapping or None
            More that came, by a name under which it stays on the disk, to be taken away again.
        returned : sequence of str
            Names of what was kept whose rows went.
        positions : mapping or None
            By the name of a source, what JSON can hold: where reading goes on.
        expected : mapping or None
            The positions that the caller has started from, None where there was none. If another
            writer has moved one of these meanwhile, a :class:`ConflictError` is raised and nothing
            is written.

        Returns
        -------
        version : int
            Number of the commit. It is on the disk.
        """
        moved, began = _as_json(positions or {}), _as_json(expected or {})
        with ExitStack() as held:

            def write(sign: int, sums: SketchTable | Sketch) -> PartRecord:
                return held.enter_context(self._written(sign, *self._slices_of(sums)))

            parts = [write(sign, s) for sign, s in ((1, added), (-1, removed)) if s is not None]
            named = {name: write(1, sums) for name, sums in (kept or {}).items()}
            files = {name: part.name for name, part in named.items()}

            def make(state: State) -> Commit:
                _check_expected(state, began)
                _check_kept(state, returned)
                return Commit((*parts, *named.values()), (), files, tuple(returned), moved)

            return self._log.commit(make).number

    def merge(self, where: str | None = None) -> Sketch:
        """The sketch of the rows that are left, or of the slices among them that meet a condition.

        Parameters
        ----------
        where : str or None
            As in :meth:`SketchTable.where`.

        Returns
        -------
        sketch : Sketch
            The same bytes as of a pass over these rows alone; of no rows where there are none.
        """
        if where is not None:
            return self.table(where).merge()
        zero = Sketch(self.spec, self.spec.fingerprint, Measure.zero(self.spec))
        plus, minus = (
            sum((s for _, sketches in self._parts(sign) for s in sketches), start=zero)
            for sign in (1, -1)
        )
        return plus - minus

    def table(self, where: str | None = None, by: str | Sequence[str] | None = None) -> SketchTable:
        """Slices, added up by some of their keys.

        Parameters
        ----------
        where : str or None
            As in :meth:`SketchTable.where`.
        by : str, sequence of str or None
            Keys to keep; None: all.

        Returns
        -------
        table : SketchTable
            Without slices of which no rows are left.
        """
        if not self.by:
            raise DataError("the cube has no keys, and so no table. Take the sketch: cube.merge().")
        keys: dict[Any, tuple[Any, Sketch]] = {}
        for sign in (1, -1):
            for part_keys, sketches in self._parts(sign):
                rows = part_keys.to_pylist()
                for i, (row, sketch) in enumerate(zip(rows, sketches, strict=True)):
                    name = tuple(row.values())
                    if name in keys:
                        old = keys[name]
                        keys[name] = old[0], old[1] + sketch if sign > 0 else old[1] - sketch
                    elif sign > 0:
                        keys[name] = part_keys.slice(i, 1), sketch
                    else:
                        raise RemovalError(f"the slice {name} was never added.")
        left = [(k, s) for k, s in keys.values() if s.count or s.n_invalid]
        import pyarrow as pa

        table = from_parts(pa.concat_tables([k for k, _ in left]), [s for _, s in left])
        table = table if where is None else table.where(where)
        return table if by is None or not len(table) else table.merge_by(by)

    def _parts(self, sign: int) -> Iterator[tuple[Any, list[Sketch]]]:
        from sketchshift.sketch.cube_parts import read_part

        for record in self._log.state().parts.values():
            if record.sign == sign:
                yield read_part(self.path / "parts" / record.name)

    def _slices_of(self, sums: SketchTable | Sketch) -> tuple[Any, tuple[Sketch, ...]]:
        """Keys and sketches, of the spec and the keys of the cube."""
        import pyarrow as pa

        if isinstance(sums, Sketch) and not self.by:
            return pa.table({}), self._checked((sums,))
        if isinstance(sums, SketchTable) and sums.by == self.keys:
            return sums.keys, self._checked(sums.sketches)
        shown = f"a table by {listed(self.keys)}" if self.by else "a sketch"
        got = f"a table by {listed(sums.by)}" if isinstance(sums, SketchTable) else "a sketch"
        msg = f"this cube takes {shown}, and it was given {got}. Sketch the rows by its keys."
        raise IncompatibleSketchesError(msg)

    def _checked(self, sketches: tuple[Sketch, ...]) -> tuple[Sketch, ...]:
        own = Sketch(self.spec, self.spec.fingerprint, Measure.zero(self.spec))
        for sketch in sketches:
            check_same_spec(own, sketch, "merge")
        return sketches

    @contextmanager
    def _written(self, sign: int, keys: Any, sketches: Sequence[Sketch]) -> Iterator[PartRecord]:
        """A part on the disk; nobody sweeps it while the body runs."""
        from sketchshift.sketch.cube_parts import bounds_of, write_part

        name = f"{secrets.token_hex(16)}.parquet"
        with hold_new(self.path / "drafts") as file:
            write_part(file, keys, list(sketches))
            n_bytes = file.tell()
            place(file, self.path / "parts" / name)
            yield PartRecord(name, sign, len(sketches), n_bytes, bounds_of(keys))


def _key_names(by: Sequence[str]) -> tuple[str, ...]:
    from sketchshift.sketch.keys import parse

    return tuple(key.name for key in parse(by)) if by else ()


def _as_json(positions: Mapping[str, Any]) -> dict[str, Any]:
    """Positions as they are when they have been written and read."""
    try:
        return dict(json.loads(json.dumps(positions, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as cause:
        msg = f"positions must be numbers, texts, lists or mappings, for JSON to hold ({cause})."
        raise DataError(msg) from None


def _check_expected(state: State, expected: Mapping[str, Any]) -> None:
    for name, began in expected.items():
        found = state.positions.get(name)
        if found != began:
            msg = (
                f"the source {name!r} was at {json.dumps(began)} when this writer began, and "
                f"another has moved it to {json.dumps(found)}. Nothing was written: read "
                "cube.positions again, and go on from there."
            )
            raise ConflictError(msg)


def _check_kept(state: State, returned: Sequence[str]) -> None:
    missing = [name for name in returned if name not in state.kept]
    if missing:
        msg = (
            f"the sums of {listed(missing)} are to be taken away, and the cube does not keep them "
            "under this name. Give the rows that went as removed, or begin a new cube."
        )
        raise DataError(msg)
