"""The house stays one that a newcomer can walk through: few files, few doors, one direction."""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import sketchshift as ss
import sketchshift_papers

CORE = Path(ss.__file__).parent
PAPERS = Path(sketchshift_papers.__file__).parent
COMMANDS = "sketchshift.cli.main"


def name_of(path: Path, root: Path) -> str:
    parts = (root.name, *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules(root: Path) -> dict[str, Path]:
    return {name_of(path, root): path for path in sorted(root.rglob("*.py"))}


@cache
def imports_of(path: Path) -> frozenset[tuple[str, str | None]]:
    """What a file imports, inside functions too: (module, name), or (module, None)."""
    found: set[tuple[str, str | None]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, None) for alias in node.names}
    return frozenset(found)


def modules_meant_by(path: Path) -> set[str]:
    """Modules of the core that a file imports, or takes a name from."""
    found = {f"{module}.{name}" for module, name in imports_of(path)}
    found |= {module for module, _ in imports_of(path)}
    return found & set(modules(CORE))


def test_the_package_has_few_files():
    files = [path for path in CORE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]

    assert len(files) <= 185


def test_few_modules_are_there_for_one_other_alone():
    """A module with one importer is a command, a format, an engine, a kernel or an algorithm."""
    importers = defaultdict(set)
    for name, path in modules(CORE).items():
        for other in modules_meant_by(path) - {name}:
            importers[other].add(name)
    lonely = {
        name: next(iter(users))
        for name, users in importers.items()
        if len(users) == 1 and modules(CORE)[name].name != "__init__.py"
    }

    assert len([name for name, user in lonely.items() if user != COMMANDS]) <= 33, lonely


def test_no_two_rooms_import_each_other():
    arrows = set()
    for name, path in modules(CORE).items():
        room = name.split(".")[1] if "." in name else ""
        others = {other.split(".")[1] for other in modules_meant_by(path) if "." in other}
        arrows |= {(room, other) for other in others if other != room}

    assert {(a, b) for a, b in arrows if (b, a) in arrows and a < b} == set()


def test_the_core_never_imports_the_papers():
    users = {
        name
        for name, path in modules(CORE).items()
        if any(module.split(".")[0] == PAPERS.name for module, _ in imports_of(path))
    }

    assert users == set()


def test_the_papers_use_public_names_alone():
    """Names that a package or a room offers in its ``__all__``, as any other user would."""
    private = []
    for user, path in modules(PAPERS).items():
        for module, name in imports_of(path):
            if module.split(".")[0] != CORE.name or (module, name) == (CORE.name, None):
                continue
            is_room = module in modules(CORE) and modules(CORE)[module].name == "__init__.py"
            if not is_room or name not in import_module(module).__all__:
                private.append((user, module, name))

    assert private == []


def files_walked(call: Callable[[], object]) -> set[str]:
    """Files of the core in which a function runs, once all is imported and compiled."""
    found: set[str] = set()

    def remember(frame, event, argument) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(CORE)):
            found.add(frame.f_code.co_filename)

    call()
    before = sys.getprofile()
    sys.setprofile(remember)
    threading.setprofile(remember)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return {Path(file).relative_to(CORE).as_posix() for file in found}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Three clusters in four columns: the array, and a folder with x.parquet and x.csv."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    X = np.random.default_rng(0).normal(size=(3000, 4))
    X[:1000] += 6.0
    X[1000:2000, 0] -= 7.0
    folder = tmp_path_factory.mktemp("house")
    columns = pa.table({f"x{i}": column for i, column in enumerate(X.T)})
    pyarrow.parquet.write_table(columns, folder / "x.parquet")
    pyarrow.csv.write_csv(columns, folder / "x.csv")
    return X, folder


def test_a_call_walks_through_few_files(table):
    from sketchshift.cli import main

    X, folder = table
    spec = ss.plan(X, 3, seed=0)
    sketch = ss.sketch(X, spec)

    def cluster() -> None:
        words = ["cluster", str(folder / "x.csv"), "-k", "5"]
        assert CliRunner().invoke(main, words).exit_code == 0

    walks = {
        "sketch": (17, lambda: ss.sketch(folder / "x.parquet", spec)),
        "plan": (17, lambda: ss.plan(X, 3, seed=0)),
        "decode": (16, lambda: ss.decode(sketch, 3)),
        "cluster": (50, cluster),
    }
    for name, (limit, call) in walks.items():
        walked = files_walked(call)
        assert len(walked) <= limit, f"{name}: {sorted(walked)}"
