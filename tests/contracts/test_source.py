"""Rules that every file of the source keeps."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "sketchshift"
FILES = sorted(SRC.rglob("*.py"))
OF_PAPERS = sorted((SRC.parents[1] / "papers").rglob("*.py"))


def test_every_module_says_what_it_is_and_what_it_offers():
    """A docstring, `from __future__ import annotations`, and an __all__."""
    for path in [*FILES, *OF_PAPERS]:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        assert ast.get_docstring(tree), path
        assert "from __future__ import annotations" in text, path
        if path.name != "__main__.py":
            assert "__all__" in text, path


def files_with(pattern, files=FILES):
    """Return the names of the files in which a pattern occurs."""
    return [
        path.relative_to(SRC).as_posix()
        for path in files
        if re.search(pattern, path.read_text(encoding="utf-8"))
    ]


def test_every_file_is_written_through_the_one_function():
    """``_writing`` writes: whole or not at all, and sweeps what killed writers left.

    What a server without ranges gives lies in a file without a name.
    """
    writing = r"\.write_(text|bytes)\(|import tempfile|open\([^)\n]*[\"'][wxa]b?[\"']|savefig\(path"

    assert files_with(writing) == ["_writing.py", "live/stores.py"]


def test_all_that_is_printed_passes_one_function():
    """``say`` escapes what would control a terminal; click formats the help, rich the progress."""
    commands = sorted((SRC / "cli").rglob("*.py"))

    assert files_with(r"click\.s?echo|\bprint\(", commands) == ["cli/command.py", "cli/output.py"]


def test_no_other_file_names_the_rooms_live_and_view_in_a_string():
    """Imports are import-linter's to check; a name given to ``import_module`` would be one, too."""
    rooms = ("live", "view", "__init__.py")
    others = [path for path in FILES if path.relative_to(SRC).parts[0] not in rooms]

    assert files_with(r"[\"']sketchshift\.(live|view)[\w.]*[\"']", others) == []
