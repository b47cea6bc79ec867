"""Compile the kernels into one shared library: ``python native/build.py [--target TARGET] FILE``.

Standard library alone. The compiler is the one that CXX names, else the machine's own, else the one
inside the package ``ziglang``, which also compiles for other machines (``--target``). CXXFLAGS are
added to its flags.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = (
    # one rounding for each operation that is written, in the order written: no byte may depend on
    # the compiler
    *("-std=c++17", "-O3", "-fPIC", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno"),
    *("-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fno-exceptions", "-fno-rtti"),
    *("-Wall", "-Wextra", "-Wno-unknown-warning-option"),
    *("-Wno-uninitialized", "-Wno-maybe-uninitialized"),  # of the compiler's own intrinsics
)
VARIANTS = {
    "x86_64": {
        "avx512": ("-DSIMD_AVX512", "-mavx512f", "-mavx512dq", "-mavx2", "-mfma"),
        "avx2": ("-DSIMD_AVX2", "-mavx2", "-mfma"),
    },
    "aarch64": {"neon": ("-DSIMD_NEON",)},
}
"""Flags of each variant, beside the plain one that every machine can run."""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
MISSING = (
    "no C++ compiler was found. Install one (Debian: apt install g++; macOS: xcode-select "
    "--install), name it in CXX, or `pip install ziglang`, which brings one."
)


def library_name(target: str | None = None) -> str:
    """What the library is called, here or on another machine."""
    system = sys.platform if target is None else target
    if system.startswith("win") or "-windows" in system:
        suffix = "dll"
    else:
        suffix = "dylib" if system == "darwin" or "-macos" in system else "so"
    return f"kernels.native.{suffix}"  # with a dot: Python must not take it for a module


def find_compiler() -> list[str] | None:
    """The words that call a C++ compiler; None if there is none."""
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        return named
    for name in () if sys.platform == "win32" else ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found]
    return zig() if importlib.util.find_spec("ziglang") else None


def zig() -> list[str]:
    """The compiler of the package ``ziglang``."""
    return [sys.executable, "-m", "ziglang", "c++"]


def compile_library(output: Path, target: str | None = None) -> None:
    """Write the shared library for this machine, or for a target such as aarch64-linux-gnu.2.17."""
    compiler = find_compiler() if target is None else [*zig(), "-target", target]
    if compiler is None:
        raise SystemExit(MISSING)
    machine = (target or platform.machine()).partition("-")[0].lower()
    variants = {**VARIANTS.get(MACHINES.get(machine, machine), {}), "plain": ("-DSIMD_PLAIN",)}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        objects = {name: Path(folder) / f"{name}.o" for name in (*variants, "library")}

        def compile_one(name: str) -> None:
            source = SOURCES / ("library.cpp" if name == "library" else "variant.cpp")
            flags = (*FLAGS, *variants.get(name, ()), *shlex.split(os.environ.get("CXXFLAGS", "")))
            run([*compiler, *flags, "-c", source, "-o", objects[name]])

        list(pool.map(compile_one, objects))
        draft = Path(folder) / output.name
        # nothing of the C++ library is used but its headers
        linker = ["cc" if word == "c++" else word for word in compiler]
        run([*linker, "-shared", *link_flags(compiler), "-o", draft, *objects.values()])
        output.unlink(missing_ok=True)  # a process that has it open keeps the old one
        shutil.copyfile(draft, output)


def link_flags(compiler: list[str]) -> tuple[str, ...]:
    """Let the library depend on nothing but the C library, where the compiler can do that."""
    if "ziglang" in compiler or sys.platform == "darwin":
        return ("-s",) if sys.platform != "darwin" or "ziglang" in compiler else ()
    return ("-s", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL")


def run(words: list[object]) -> None:
    """Run a command; where it fails, its words come with what it said."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}")
    sys.stderr.write(done.stderr)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, metavar="FILE")
    parser.add_argument("--target", help="in the words of zig, as aarch64-linux-gnu.2.17")
    arguments = parser.parse_args()
    compile_library(arguments.output, arguments.target)


if __name__ == "__main__":
    main()
