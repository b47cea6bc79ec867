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
import sysconfig
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
REMEDY = (
    "Install one (Debian: apt install g++; macOS: xcode-select --install), or `pip install "
    "ziglang`, which brings one."
)


def library_name(target: str | None = None) -> str:
    """What the library is called, here or on another machine."""
    system = sys.platform if target is None else target
    if system.startswith("win") or "-windows" in system:
        suffix = "dll"
    else:
        suffix = "dylib" if system == "darwin" or "-macos" in system else "so"
    return f"kernels.native.{suffix}"  # with a dot: Python must not take it for a module


def platform_tag(target: str | None = None) -> str:
    """What a wheel says of the machines that it is for, here or for a target."""
    if target is None:
        named = sysconfig.get_platform()
        if named.endswith("universal2"):  # Python is; the compiler's code is for this machine alone
            is_arm = platform.machine() == "arm64"
            named = "macosx-11.0-arm64" if is_arm else named.replace("universal2", "x86_64")
        return named.replace("-", "_").replace(".", "_")
    machine, system, *rest = target.split("-")
    if system == "windows":
        return {"x86_64": "win_amd64", "aarch64": "win_arm64"}[machine]
    if system.startswith("macos."):
        version = system.removeprefix("macos.").replace(".", "_")
        return f"macosx_{version}_{machine.replace('aarch64', 'arm64')}"
    if system == "linux" and rest and rest[0].startswith("gnu."):
        return f"manylinux_{rest[0].removeprefix('gnu.').replace('.', '_')}_{machine}"
    example = "x86_64-linux-gnu.2.17, aarch64-macos.11.0 or x86_64-windows-gnu"
    raise SystemExit(f"no kind of wheel is known for the target {target!r}. Take {example}.")


def find_compiler() -> list[str] | None:
    """The words that call a C++ compiler; None if there is none."""
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        return named
    for name in () if sys.platform == "win32" else ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found and _can_compile(found):
            return [found]
    return zig() if importlib.util.find_spec("ziglang") else None


def _can_compile(compiler: str) -> bool:
    """Whether a compiler that happens to be there knows C++17."""
    words = [compiler, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    program = "#include <cstdint>\ntemplate <auto N> constexpr auto n = N;"
    try:
        return subprocess.run(words, input=program, text=True, capture_output=True).returncode == 0
    except OSError:
        return False


def zig() -> list[str]:
    """The compiler of the package ``ziglang``."""
    return [sys.executable, "-m", "ziglang", "c++"]


def compile_library(output: Path, target: str | None = None) -> None:
    """Write the shared library for this machine, or for a target such as aarch64-linux-gnu.2.17."""
    compiler = find_compiler() if target is None else [*zig(), "-target", target]
    if compiler is None:
        raise SystemExit(f"sketchshift needs a C++ compiler, and none was found. {REMEDY}")
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
        beside = output.with_name(f"{output.name}.{os.getpid()}")  # nobody may load a half of it
        shutil.copyfile(draft, beside)
        beside.replace(output)  # a process that has it open keeps the old one


def link_flags(compiler: list[str]) -> tuple[str, ...]:
    """Let the library depend on nothing but the C library, where the compiler can do that."""
    if "ziglang" in compiler or sys.platform == "darwin":
        return ("-s",) if sys.platform != "darwin" or "ziglang" in compiler else ()
    return ("-s", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL")


def remedy() -> str:
    """What to do where a compiler fails: one that CXX names is taken whatever else there is."""
    named = os.environ.get("CXX")
    return (
        f"It is the one that CXX names ({named}): name another, or unset CXX." if named else REMEDY
    )


def run(words: list[object]) -> None:
    """Run a command; where it fails, its words and what it said come before the sentence."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    except OSError as error:
        msg = f"the C++ compiler {words[0]} cannot be run ({error}). {remedy()}"
        raise SystemExit(msg) from None
    if done.returncode:
        said = f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}".strip()
        msg = f"the C++ compiler {words[0]} failed; sketchshift needs one with C++17. {remedy()}"
        raise SystemExit(f"{said}\n{msg}")
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
