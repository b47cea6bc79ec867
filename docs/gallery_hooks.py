"""What sphinx-gallery is told of the scripts in examples/: which run, and where their pictures are.

They save pictures in the folder on their command line, so that is what they are given, and where
the pictures are looked for afterwards.
"""

from __future__ import annotations

import ast
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

__all__ = ["arguments", "pictures", "scripts_to_run"]

NEEDS = {"07_": "pycle", "10_": "duckdb", "11_": "pyspark"}
"""Modules that the package itself does not bring, by the start of the script's name."""

Settings = dict[str, Any]


def scripts_to_run() -> str:
    """A pattern of the scripts whose engine is installed; the others are shown as they are."""
    missing = [number for number, module in NEEDS.items() if find_spec(module) is None]
    if shutil.which("java") is None:
        missing.append("11_")
    return rf"/(?!{'|'.join(missing)})\d\d_" if missing else r"/\d\d_"


def arguments(gallery: Settings, script: Settings) -> list[str]:
    """The command line of a script: an empty folder, named from where the script runs."""
    folder = _folder(gallery, script)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return [os.path.relpath(folder, Path(script["src_file"]).parent)]


def pictures(block: Any, script: Settings, gallery: Settings) -> str:
    """Copy the pictures that a script has saved, and show them under the title of the script."""
    saved = sorted(_folder(gallery, script).glob("*.png"))
    targets = script["image_path_iterator"]
    copies = [shutil.copy(picture, target) for picture, target in zip(saved, targets, strict=False)]
    source = Path(script["src_file"]).read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return figure_rst(copies, gallery["src_dir"], title)


def _folder(gallery: Settings, script: Settings) -> Path:
    return Path(gallery["src_dir"], "_build", "examples", Path(script["src_file"]).stem)
