"""What a figure of the paper is made of: read from one TOML file, checked, frozen.

Takes TOML files; hands a :class:`Figure` to the runner, the pictures and the
verdicts. Symbols are the paper's: m sketch size, sigma bandwidth, L starts of a climb.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sketchshift.errors import DataError

__all__ = [
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
    "paper_folder",
]

SIZES = ("quick", "full")
PAPER = "sketch_and_shift"
HERE = Path(__file__).parents[1]


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
    domain: tuple[float, float] | None
    sketch_sizes: tuple[int, ...] | None
    options: Mapping[str, Any]
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
    realizations : int or None
        At most so many of the grid's, for one that takes long; None is all.
    """

    name: str
    kind: str
    label: str
    n_initializations: tuple[int | None, ...]
    options: Mapping[str, Any]
    is_ours: bool
    realizations: int | None = None


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
    """

    realizations: int
    sketch_sizes: tuple[int, ...]
    bandwidths: tuple[float, ...]
    n_samples: int | None

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


def paper_folder(name: str = PAPER) -> Path:
    """The folder of a paper's files.

    Parameters
    ----------
    name : str
        The path of a folder, or that of one beside this package.

    Returns
    -------
    folder : Path
        Where the ``.toml`` files of its figures lie.
    """
    folder = next((p for p in (HERE / name, Path(name).expanduser()) if p.is_dir()), None)
    if folder is None or not any(folder.glob("*.toml")):
        raise DataError(f"the folder {name!r} has no .toml files of figures. Name another one.")
    return folder


def figure_names(folder: Path) -> list[str]:
    """Names of the figures in a folder: fig1, fig2, ... in the paper's order, then the others."""

    def place(name: str) -> tuple[bool, int, str]:
        number = re.match(r"fig(\d+)", name)
        return number is None, int(number[1]) if number else 0, name

    return sorted((path.stem for path in folder.glob("*.toml")), key=place)


def load_figure(name: str, folder: Path) -> Figure:
    """Read one figure.

    Parameters
    ----------
    name : str
        As in ``fig1``.
    folder : Path
        Where ``fig1.toml`` lies.

    Returns
    -------
    figure : Figure
        Checked as far as its shape goes.
    """
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(figure_names(folder)) or "none"
        raise DataError(f"there is no figure {name!r} in {str(folder)!r}. There are: {known}.")
    try:
        return _figure(name, tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path.name} is not TOML: {error}.") from error
    except KeyError as error:
        raise DataError(f"{path.name} lacks the entry {error}.") from error


def _figure(name: str, read: Mapping[str, Any]) -> Figure:
    return Figure(
        name=name,
        title=read["title"],
        section=read["section"],
        datasets=tuple(_dataset(entry) for entry in read["datasets"]),
        contenders=tuple(_contender(entry) for entry in read["decoders"]),
        grids={size: _grid(read[size]) for size in SIZES},
        picture=read["picture"],
        claims=tuple(_claim(entry) for entry in read["claims"]),
    )


def _dataset(entry: Mapping[str, Any]) -> DatasetSpec:
    domain, sizes = entry.get("domain"), entry.get("m")
    return DatasetSpec(
        name=entry["name"],
        kind=entry.get("kind", entry["name"]),
        label=entry.get("label", entry["name"]),
        n_clusters=entry["k"],
        domain=None if domain is None else (float(domain[0]), float(domain[1])),
        sketch_sizes=None if sizes is None else tuple(sizes),
        options=entry.get("options", {}),
        n_draws=entry.get("draws", 1),
    )


def _contender(entry: Mapping[str, Any]) -> Contender:
    return Contender(
        name=entry["name"],
        kind=entry["kind"],
        label=entry.get("label", entry["name"]),
        n_initializations=tuple(entry.get("L", [None])),
        options=entry.get("options", {}),
        is_ours=entry.get("ours", False),
        realizations=entry.get("realizations"),
    )


def _grid(entry: Mapping[str, Any]) -> Grid:
    return Grid(
        realizations=entry["realizations"],
        sketch_sizes=tuple(entry.get("m", ())),
        bandwidths=tuple(float(sigma) for sigma in entry["sigma"]),
        n_samples=entry.get("n_samples"),
    )


def _claim(entry: Mapping[str, Any]) -> Claim:
    cause = _cause(entry)
    needs_checks = cause is not Cause.NOT_TESTABLE
    return Claim(
        number=entry["number"],
        section=entry["section"],
        says=entry["says"],
        checks=tuple(entry["checks"] if needs_checks else entry.get("checks", ())),
        note=entry.get("note", ""),
        cause=cause,
        also=tuple(Variant(v["name"], tuple(v["checks"])) for v in entry.get("also", ())),
    )


def _cause(entry: Mapping[str, Any]) -> Cause | None:
    word = entry.get("cause")
    if word is None or word in list(Cause):
        return None if word is None else Cause(word)
    known = ", ".join(map(repr, map(str, Cause)))
    msg = f"claim {entry['number']} has the cause {word!r}. Use one of {known}, or none."
    raise DataError(msg)
