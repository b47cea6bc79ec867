"""The house plan is itself a test: imports point one way."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "sketchshift"
LAYERS = {
    "_colours": 0,
    "_html": 0,
    "_interrupt": 0,
    "_places": 0,
    "_progress": 0,
    "_stores": 0,
    "errors": 0,
    "_kmeans": 0,
    "_text": 0,
    "_threads": 0,
    "_times": 0,
    "_typing": 0,
    "_validation": 0,
    "_writing": 0,
    "kernels": 1,
    "recipe": 1,
    "data": 2,
    "features": 2,
    "metrics": 2,
    "sketch": 3,
    "privacy": 4,
    "decoders": 5,
    "estimators": 6,
    "drift": 6,
    "following": 6,
    "serving": 7,
    "index": 6,
    "engines": 7,
    "plots": 7,
    "report": 7,
    "cli": 7,
    "__init__": 8,
    "__main__": 8,
    "smoke": 8,
}
EXCEPTIONS = {
    ("_html", "_colours"),
    ("_html", "_text"),
    ("_places", "_stores"),
    ("_places", "_threads"),
    ("_places", "errors"),
    ("_progress", "_html"),
    ("_progress", "_text"),
    ("errors", "_text"),
    ("_kmeans", "_threads"),
    ("_kmeans", "_typing"),
    ("_stores", "_validation"),
    ("_stores", "errors"),
    ("_times", "_typing"),
    ("_times", "errors"),
    ("_validation", "_progress"),
    ("_validation", "errors"),
    ("_writing", "_places"),
    ("cli", "plots"),
    ("cli", "report"),
    ("cli", "serving"),
}
FILES = sorted(SRC.rglob("*.py"))
OF_PAPERS = sorted((SRC.parent / "sketchshift_papers").rglob("*.py"))


def modules_imported_by(path: Path) -> set[str]:
    """Modules of ours imported anywhere in a file, inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}"
            module = node.module or ""
            names |= (
                {f"{module}.{a.name}" for a in node.names} if module == "sketchshift" else {module}
            )
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.split(".")[0] == "sketchshift"}


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_one_way(path):
    """A room imports lower layers only; the top rooms may use the public names like anybody."""
    room = room_of(path)

    for module in modules_imported_by(path):
        other = module.split(".")[1] if "." in module else "__init__"
        if other == room or (other not in LAYERS and LAYERS[room] >= 7):
            continue
        is_public = other == "__init__" and LAYERS[room] >= 7
        is_lower = LAYERS[other] < LAYERS[room]
        assert is_lower or is_public or (room, other) in EXCEPTIONS, f"{path} imports {module}"


def test_every_room_has_its_layer_and_every_layer_its_room():
    assert {room_of(path) for path in FILES} == set(LAYERS)


def test_only_decoders_enter_the_corner_of_the_paper():
    """Other rooms see the paper's decoders as they see any: through the door of the room."""
    corner = "sketchshift.decoders.paper"
    entering = [
        path.relative_to(SRC).as_posix()
        for path in FILES
        if any(f"{module}.".startswith(f"{corner}.") for module in modules_imported_by(path))
    ]

    assert {name.split("/")[0] for name in entering} == {"decoders"}


def test_every_module_says_what_it_is_and_what_it_offers():
    """A docstring, `from __future__ import annotations`, and an __all__."""
    for path in [*FILES, *OF_PAPERS]:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        assert ast.get_docstring(tree), path
        assert "from __future__ import annotations" in text, path
        if path.name != "__main__.py":
            assert "__all__" in text, path


def test_every_file_is_written_through_the_one_function():
    """``_writing`` writes: whole or not at all, and sweeps what killed writers left.

    A download goes on where it was cut off: that file is meant to stay as it is. What a server
    without ranges gives lies in a file without a name.
    """
    writing = r"\.write_(text|bytes)\(|import tempfile|open\([^)\n]*[\"'][wxa]b?[\"']|savefig\(path"
    found = [
        path.relative_to(SRC.parent).as_posix()
        for path in [*FILES, *OF_PAPERS]
        if re.search(writing, path.read_text(encoding="utf-8"))
    ]

    assert found == [
        "sketchshift/_stores.py",
        "sketchshift/_writing.py",
        "sketchshift/data/public.py",
    ]


def test_a_file_is_one_subject():
    """As long as its subject, six hundred lines are fine; beyond nine hundred it has two."""
    files = [*FILES, *OF_PAPERS]
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in files}

    assert {path: n for path, n in lengths.items() if n > 900} == {}


def test_all_that_is_printed_passes_one_function():
    """``say`` shows what would control a terminal; rich draws the progress and the demo."""
    printing = r"click\.s?echo|\bprint\("
    commands = [path for path in FILES if room_of(path) == "cli"]
    found = [
        path.relative_to(SRC.parent).as_posix()
        for path in [*commands, *OF_PAPERS]
        if re.search(printing, path.read_text(encoding="utf-8"))
    ]

    assert found == ["sketchshift/cli/demo.py", "sketchshift/cli/output.py"]
