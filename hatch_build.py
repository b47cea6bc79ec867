"""The build: compile the kernels, and put them into a wheel for this kind of machine.

The library has no word of Python in it, so one wheel serves every Python: ``py3-none-PLATFORM``.
``SKETCHSHIFT_TARGET`` and ``SKETCHSHIFT_PLATFORM`` build for another machine (``make wheels``).
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "native"))
from build import compile_library, find_compiler, library_name  # noqa: E402


class Kernels(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles into the source tree, where an editable installation finds it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """A compiler from the package registry, where the machine has none."""
        is_needed = find_compiler() is None or "SKETCHSHIFT_TARGET" in os.environ
        return ["ziglang"] if is_needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what kind of wheel this is."""
        target = os.environ.get("SKETCHSHIFT_TARGET")
        library = ROOT / "src" / "sketchshift" / "kernels" / "cpu" / library_name(target)
        self.app.display_info(f"Compiling the kernels into {library.name} ...")
        compile_library(library, target)
        named = os.environ.get("SKETCHSHIFT_PLATFORM") or sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{named.replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(f"src/sketchshift/kernels/cpu/{library.name}")
