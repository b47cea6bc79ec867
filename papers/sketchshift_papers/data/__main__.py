"""``python -m sketchshift_papers.data [NAME ...]``: fetch public datasets, all or those named."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sketchshift.errors import DataError
from sketchshift_papers.data import NOT_PUBLIC, data_folder
from sketchshift_papers.data.fetch import fetch, public_sets
from sketchshift_papers.data.spectral_features import write_features

__all__ = ["main"]

DERIVED = {"spectral_mnist": "mnist"}
"""What is computed here, and from which public set."""


def main(words: Sequence[str] | None = None) -> int:
    """Fetch what is named and not here; a server that fails does not stop the rest."""
    parser = argparse.ArgumentParser(prog="sketchshift_papers.data", description=__doc__)
    parser.add_argument("names", nargs="*", help="datasets; none: all of them")
    parser.add_argument("--list", action="store_true", help="show what there is, fetch nothing")
    options = parser.parse_args(words)
    sets, folder, status = public_sets(), data_folder(), 0
    for name in options.names or [*sets, *DERIVED]:
        path = folder / f"{name}.npz"
        if options.list:
            here = "here" if path.exists() else "not here"
            print(f"{name:<16} {here:<9} {sets[DERIVED.get(name, name)].licence}")
        elif path.exists():
            print(f"{name:<16} is here: {path}")
        else:
            try:
                _fetch(name)
                print(f"{name:<16} fetched: {path}", flush=True)
            except (DataError, OSError) as error:
                print(f"Error: {error}", file=sys.stderr)
                status = 1
    return status


def _fetch(name: str) -> None:
    sets, folder = public_sets(), data_folder()
    if name in NOT_PUBLIC:
        raise DataError(f"{name!r} cannot be fetched: {NOT_PUBLIC[name]}.")
    if name not in {*sets, *DERIVED}:
        raise DataError(f"there is no dataset {name!r}. There are {', '.join([*sets, *DERIVED])}.")
    source = fetch(sets[DERIVED.get(name, name)], folder)
    if name in DERIVED:
        write_features(source, folder / f"{name}.npz")


if __name__ == "__main__":
    sys.exit(main())
