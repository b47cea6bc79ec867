"""The build: compile the kernels, and put them into a wheel for this kind of machine.

The library has no word of Python in it, so one wheel serves every Python: ``py3-none-PLATFORM``.
``SKETCHSHIFT_TARGET`` builds for another machine, named as zig does (``make wheels``).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "native"))
from build import compile_library, find_compiler, library_name, platform_tag  # noqa: E402


class Kernels(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles for a wheel, or into the source tree, where an editable installation looks."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """A compiler from the package registry, where the machine has none."""
        is_needed = find_compiler() is None or "SKETCHSHIFT_TARGET" in os.environ
        return ["ziglang"] if is_needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what kind of wheel this is."""
        target = os.environ.get("SKETCHSHIFT_TARGET") or None
        home = Path("sketchshift", "kernels", "cpu", library_name(target))
        self._folder = None if version == "editable" else tempfile.mkdtemp()
        library = Path(self._folder, home.name) if self._folder else ROOT / "src" / home
        self.app.display_info(f"Compiling the kernels into {library.name} ...")
        compile_library(library, target)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(target)}"
        if self._folder:  # the tree may hold the library of another machine
            build_data["force_include"][str(library)] = home.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel has its copy."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
