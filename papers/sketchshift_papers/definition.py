"""What a figure of the paper is made of: read from one TOML file, checked, frozen.

Takes TOML files; hands a :class:`Figure` to the runner, the pictures and the
verdicts. Symbols are the paper's: m sketch size, sigma bandwidth, L starts of a climb.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from sketchshift.errors import DataError

__all__ = [
    "BEYOND",
    "PAPER",
    "SIZES",
    "Cause",
    "Claim",
    "Contender",
    "DatasetSpec",
    "Figure",
    "Grid",
    "Variant",
    "figure_names",
    "load_figure",
    "matches",
    "selects",
]

SIZES = ("quick", "full")
SYMBOLS = {"k": "n_clusters", "m": "sketch_sizes", "L": "n_initializations", "sigma": "bandwidths"}
SYMBOLS |= {"draws": "n_draws", "ours": "is_ours"}
Made = TypeVar("Made")
PAPER, BEYOND = (
    Path(__file__).parent / "figures" / name for name in ("sketch_and_shift", "beyond")
)


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset of a figure.

    Attributes
    ----------
    name : str
        In the file, the tables and the pictures.
    kind : str
        Its recipe in ``sketchshift_papers.datasets``.
    label : str
        For a person.
    n_clusters : int
        k.
    domain : tuple of float or None
        Ends of the domain on every axis; None is the sketch's own box.
    sketch_sizes : tuple of int or None
        Its m, where it differs from the grid's.
    options : mapping
        For the recipe.
    n_draws : int
        Realization r is of the draw r modulo this number: data of other seeds, so that no
        verdict hangs on one of them.
    """

    name: str
    kind: str
    label: str
    n_clusters: int
    domain: tuple[float, float] | None = None
    sketch_sizes: tuple[int, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    n_draws: int = 1


@dataclass(frozen=True)
class Contender:
    """A decoder of a figure, or another thing that is measured on a sketch.

    Attributes
    ----------
    name, kind, label : str
        In the tables; its recipe in ``sketchshift_papers.contenders``; for a person.
    n_initializations : tuple of int or None
        The values of L; (None,) where it has none.
    options : mapping
        For the recipe.
    is_ours : bool
        Whether it is an addition to the paper's figure.
    only : mapping
        Axes and their values at which alone it is run, as in a check: ``{ sigma = 0.3 }``.
    sketch : mapping
        What its sketch has other than the grid's; see ``sketchshift_papers.contenders``.
    """

    name: str
    kind: str
    label: str
    n_initializations: tuple[int | None, ...] = (None,)
    options: Mapping[str, Any] = field(default_factory=dict)
    is_ours: bool = False
    only: Mapping[str, Any] = field(default_factory=dict)
    sketch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """How much of a figure is run.

    Attributes
    ----------
    realizations : int
        Draws of the frequencies.
    sketch_sizes, bandwidths : tuple
        The values of m and sigma.
    n_samples : int or None
        Rows of a synthetic dataset; None is the recipe's own.
    datasets : tuple of str
        Names of those that are run; empty is all.
    """

    realizations: int
    bandwidths: tuple[float, ...]
    sketch_sizes: tuple[int, ...] = ()
    n_samples: int | None = None
    datasets: tuple[str, ...] = ()

    def thinned(self, realizations: int | None, points: int | None) -> Grid:
        """Fewer realizations, and at most so many bandwidths, spread over all."""
        kept = self.bandwidths
        if points is not None and points < len(kept):
            last = len(kept) - 1
            steps = (
                [last // 2] if points == 1 else [i * last // (points - 1) for i in range(points)]
            )
            kept = tuple(kept[i] for i in steps)
        return replace(self, realizations=realizations or self.realizations, bandwidths=kept)


class Cause(StrEnum):
    """Why a claim may fall short although the paper is right; the value stands in the file."""

    DATA = "data"  # the paper's data are unknown, ours differ
    BASELINE = "baseline"  # depends on how CL-OMPR, the baseline, is run
    NOT_TESTABLE = "not testable"  # seconds of other hardware, definitions, contradictions


@dataclass(frozen=True)
class Variant:
    """The same claim with another contender: judged beside it, never in its place.

    Attributes
    ----------
    name : str
        What is different, as in "without step 5".
    checks : tuple of mapping
        As those of a claim.
    """

    name: str
    checks: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that the runs can contradict.

    Attributes
    ----------
    number, section, says : str
        Its number here, where it stands in the paper, and what it says, in our words.
    checks : tuple of mapping
        How it is measured; see ``sketchshift_papers.claims``. May be empty where the cause is
        that it is not testable.
    note : str
        What a reader of the verdict should know.
    cause : Cause or None
        What decides it besides the paper's being right; fixed in the file, not by the runs.
    also : tuple of Variant
        With other contenders.
    """

    number: str
    section: str
    says: str
    checks: tuple[Mapping[str, Any], ...]
    note: str = ""
    cause: Cause | None = None
    also: tuple[Variant, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One figure: data, contenders, grids, picture and claims."""

    name: str
    title: str
    section: str
    datasets: tuple[DatasetSpec, ...]
    contenders: tuple[Contender, ...]
    grids: Mapping[str, Grid]
    picture: Mapping[str, Any]
    claims: tuple[Claim, ...]

    def contender(self, name: str) -> Contender:
        """The contender of a name."""
        return next(c for c in self.contenders if c.name == name)

    def datasets_on(self, grid: Grid) -> list[DatasetSpec]:
        """Those that a grid has."""
        return [d for d in self.datasets if d.name in grid.datasets or not grid.datasets]


def selects(select: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a run has the values wanted of it."""
    return all(matches(row.get(name), want) for name, want in select.items())


def matches(value: Any, want: Any) -> bool:
    """Whether a value is the one wanted, one of a list, or in a range with its ends."""
    if isinstance(want, Mapping):
        low, high = want.get("from", -math.inf), want.get("to", math.inf)
        return value is not None and low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    if isinstance(want, list):
        return value in want
    return bool(value == want)


def figure_names(folder: Path) -> list[str]:
    """Names of the figures in a folder: numbers in order, fig2 before fig10."""
    names = [path.stem for path in folder.glob("*.toml")]
    if not names:
        msg = f"the folder {str(folder)!r} has no .toml files of figures. Name another one."
        raise DataError(msg)
    return sorted(names, key=lambda name: [p.zfill(3) for p in re.split(r"(\d+)", name)])


def load_figure(name: str, *folders: Path) -> Figure:
    """Read one figure.

    Parameters
    ----------
    name : str
        As in ``fig1``.
    *folders : Path
        Where ``fig1.toml`` may lie; the first that has it counts.

    Returns
    -------
    figure : Figure
        Checked as far as its shape goes.
    """
    path = next((p for f in folders if (p := f / f"{name}.toml").is_file()), None)
    if path is None:
        known = ", ".join(n for folder in folders for n in figure_names(folder))
        raise DataError(f"there is no figure {name!r}. There are: {known}.")
    try:
        return _figure(name, tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path.name} is not TOML: {error}.") from error
    except (KeyError, TypeError) as error:
        raise DataError(f"{path.name} lacks an entry, or has one too many: {error}.") from error


def _figure(name: str, read: Mapping[str, Any]) -> Figure:
    return Figure(
        name=name,
        title=read["title"],
        section=read["section"],
        datasets=tuple(_named(DatasetSpec, entry) for entry in read["datasets"]),
        contenders=tuple(_named(Contender, entry) for entry in read["decoders"]),
        grids={size: _made(Grid, read[size]) for size in SIZES},
        picture=read["picture"],
        claims=tuple(_claim(entry) for entry in read["claims"]),
    )


def _made(kind: Callable[..., Made], entry: Mapping[str, Any]) -> Made:
    """The fields of a table in the file; there some have the paper's symbols."""
    fields = {SYMBOLS.get(name, name): value for name, value in entry.items()}
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()})


def _named(kind: Callable[..., Made], entry: Mapping[str, Any]) -> Made:
    """A kind and a label are the name unless told."""
    return _made(kind, {"kind": entry["name"], "label": entry["name"], **entry})


def _claim(entry: Mapping[str, Any]) -> Claim:
    cause = entry.get("cause")
    if cause is not None and cause not in list(Cause):
        known = ", ".join(map(repr, map(str, Cause)))
        msg = f"claim {entry['number']} has the cause {cause!r}. Use one of {known}, or none."
        raise DataError(msg)
    also = tuple(_made(Variant, variant) for variant in entry.get("also", ()))
    needless: dict[str, Any] = {"checks": []} if cause == Cause.NOT_TESTABLE else {}
    told = {**needless, **entry, "also": also, "cause": None if cause is None else Cause(cause)}
    return _made(Claim, told)
