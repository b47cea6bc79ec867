"""Collections that lie on many machines, as lower rooms see them: somebody plans and sketches.

The engines stand above the estimators, which must not import them. So the root of the package,
which may import anything, says here where the engine for a library is found; it is imported when
a collection of that library turns up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sketchshift.data.open import ENGINES
from sketchshift.features import SketchSpec
from sketchshift.sketch.sketch import Sketch

__all__ = ["Engine", "engine_of", "register_engine"]


class Engine(Protocol):
    """What the modules of ``engines`` have in common."""

    def plan(
        self,
        collection: Any,
        n_clusters: int,
        /,
        *,
        sketch_size: int | None,
        seed: int,
        sample_weight: Any,
        standardize: bool,
    ) -> SketchSpec:
        """As :func:`sketchshift.plan`."""

    def sketch(self, collection: Any, spec: SketchSpec, /, *, sample_weight: Any) -> Sketch:
        """As :func:`sketchshift.sketch`."""


_finders: dict[str, Callable[[], Any]] = {}


def register_engine(name: str, find: Callable[[], Any]) -> None:
    """Say where the engine of that name is found.

    Parameters
    ----------
    name : str
        One of the values of ``data.memory.ENGINES``.
    find : callable
        Imports and returns it.
    """
    _finders[name] = find


def engine_of(data: Any) -> Engine | None:
    """The engine that reads a collection; None for data that is read here."""
    library = type(data).__module__.partition(".")[0]
    find = _finders.get(ENGINES.get(library, ""))
    engine: Engine | None = None if find is None else find()
    return engine
