"""``sketchshift data``: the public datasets of the benchmarks and of the reproduction."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sketchshift.cli.command import command, sentence
from sketchshift.cli.output import Output, align, show_progress
from sketchshift.errors import DataError, SketchshiftError

if TYPE_CHECKING:
    from sketchshift.data.public import PublicSet

__all__ = ["data"]

DERIVED = {"spectral_mnist": "mnist"}
"""What is computed here, and from which public set."""
ABOUT_SPECTRAL = "ten spectral features of each image of MNIST, made here in minutes"


@command
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "is_list", is_flag=True, help="Show what there is, and fetch nothing.")
def data(names: tuple[str, ...], is_list: bool, out: Output) -> None:
    """Fetch public datasets: all of them, or those named.

    They go to the folder that the environment variable SKETCHSHIFT_DATA names, else to
    sketchshift in the user's cache, where the benchmarks and `sketchshift reproduce` look for
    them. Files are fetched from where they are published and checked against pinned digests; an
    interrupted command goes on where it stopped. Features of MNIST are computed from its pixels
    (that needs the extra `paper`).

    Examples
    --------
      sketchshift data --list
      sketchshift data skin --json

    Then: `sketchshift reproduce fig8`.
    """
    from sketchshift.data.datasets import NOT_PUBLIC, data_folder
    from sketchshift.data.public import public_sets

    sets = public_sets()
    wanted = list(dict.fromkeys(names)) or [*sets, *DERIVED]
    _check_names(wanted, [*sets, *DERIVED], NOT_PUBLIC)
    folder = data_folder()
    record: dict[str, Any] = {"command": "data", "folder": str(folder)}
    if is_list:
        found = [_describe(name, sets, folder) for name in wanted]
        missing = [one["name"] for one in found if not one["here"]]
        then = ["data", *missing] if missing else ["reproduce", "fig8"]
        out.report(record | {"datasets": found}, _table(found, folder), then)
        return
    try:
        found, failures = _fetch_all(wanted, sets, folder, out)
    except KeyboardInterrupt as interruption:
        msg = "interrupted. What was fetched is kept; the same command goes on from there."
        raise SketchshiftError(msg) from interruption
    then = ["reproduce", "fig8"] if found else []
    out.report(record | {"datasets": found, "failures": failures}, [""] * bool(found), then)
    if failures:
        said = "\n".join(f"  {name}: {why}" for name, why in failures.items())
        raise DataError(f"{len(failures)} of {len(wanted)} datasets are not here:\n{said}")


def _fetch_all(
    names: list[str], sets: dict[str, PublicSet], folder: Path, out: Output
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """One after the other; a server that fails does not stop the rest."""
    found, failures = [], {}
    for name in names:
        start = time.perf_counter()
        try:
            path, is_new = _fetch(name, sets, folder)
        except (SketchshiftError, OSError) as error:
            failures[name] = sentence(error)
            continue
        seconds = round(time.perf_counter() - start, 1)
        found.append({"name": name, "path": str(path), "fetched": is_new, "seconds": seconds})
        out.say(f"{name:<15} {f'fetched in {seconds} s' if is_new else 'is here'}: {path}")
    return found, failures


def _check_names(wanted: list[str], known: list[str], not_public: dict[str, str]) -> None:
    for name in wanted:
        if name in not_public:
            raise DataError(f"{name!r} cannot be fetched: {not_public[name]}.")
        if name not in known:
            raise DataError(f"there is no dataset {name!r}. There are {', '.join(known)}.")


def _fetch(name: str, sets: dict[str, PublicSet], folder: Path) -> tuple[Path, bool]:
    """The path of a dataset, and whether it was not there before."""
    from sketchshift.data.public import fetch

    path = folder / f"{name}.npz"
    if path.exists():
        return path, False
    public = sets[DERIVED.get(name, name)]
    with show_progress("items", f"Fetching {public.name}") as count:
        source = fetch(public, folder, count=count)
    if name in DERIVED:
        from sketchshift.data.spectral_features import write_features

        with show_progress("rows", f"Computing {name}, a minute or more"):
            write_features(source, path)
    return path, True


def _describe(name: str, sets: dict[str, PublicSet], folder: Path) -> dict[str, Any]:
    public = sets[DERIVED.get(name, name)]
    return {
        "name": name,
        "about": ABOUT_SPECTRAL if name in DERIVED else public.about,
        "licence": public.licence,
        "bytes": 0 if name in DERIVED else public.size,
        "here": (folder / f"{name}.npz").exists(),
        "pinned": [file.sha256 is not None for file in public.files].count(True),
        "files": len(public.files),
    }


def _table(found: list[dict[str, Any]], folder: Path) -> list[str]:
    rows = [["name", "here", "MB", "licence", "what"]]
    for one in found:
        size = "?" if one["bytes"] is None else f"{one['bytes'] / 1e6:.0f}"
        here = "yes" if one["here"] else "no"
        rows.append([one["name"], here, size, one["licence"], one["about"]])
    return [f"In {folder}:", "", *align(rows), ""]
