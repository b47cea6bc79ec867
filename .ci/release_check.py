"""Whether what lies in dist/ may be released: ``make release-check``, or with ``TAG=v0.1.0``.

Standard library alone, but for ``twine``, which judges the metadata. Each check prints a line; it
ends with 0, or with 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_BYTES = 3_000_000  # of a wheel, installed: half of it is room to grow
LIBRARY = re.compile(r"sketchshift/kernels/cpu/kernels\.native\.(so|dylib|dll)")
NEEDED_BY_LINUX = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
WANTED = (
    "sketchshift/py.typed",
    "sketchshift/smoke.py",
    "sketchshift/data/public.toml",
    "sketchshift_papers/papers/sketch_and_shift/fig1.toml",
)
MAY_LIE_THERE = re.compile(r"(sketchshift|sketchshift_papers|sketchshift-[\d.]+\.dist-info)/")
UNWANTED = re.compile(r"(^|/)(tests?|__pycache__|native)/|\.(pyc|cpp|h|o)$")
Checks = Iterator[tuple[str, str]]  # what is checked, and what is wrong or nothing


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def find(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else "none"


def check_version(tag: str | None) -> Checks:
    """One version everywhere, with a word on what is new; a tag wants a date beside it."""
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    places = {
        "sketchshift.__version__": find(
            r'^__version__ = "(.*)"', read("src/sketchshift/__init__.py")
        ),
        "CITATION.cff": find(r"^version: (.*)$", read("CITATION.cff")),
        "the first heading of CHANGELOG.md": find(r"^## (\S+)", read("CHANGELOG.md")),
    }
    if tag:
        places["the tag"] = tag.removeprefix("v")
    for place, found in places.items():
        fault = f"{found}, and pyproject.toml has {version}" if found != version else ""
        yield f"version in {place}", fault
    news = re.split(r"^## ", read("CHANGELOG.md"), flags=re.MULTILINE)[1]
    yield "changelog", "" if re.search(r"^- \S", news, re.MULTILINE) else "it says nothing new"
    if tag:
        has_date = re.match(r"\S+ \(\d{4}-\d\d-\d\d\)", news)
        yield "date in the changelog", "" if has_date else f"none in {news.splitlines()[0]!r}"


def check_metadata(files: list[Path]) -> Checks:
    """What a registry would refuse: the readme must render."""
    words = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True)
    yield "metadata and readme", "" if done.returncode == 0 else done.stdout + done.stderr


def check_wheel(path: Path) -> Checks:
    """Contents, licence, size, and the library of the machine that the name promises."""
    with zipfile.ZipFile(path) as wheel:
        sizes = {info.filename: info.file_size for info in wheel.infolist()}
        libraries = [name for name in sizes if LIBRARY.fullmatch(name)]
        code = wheel.read(libraries[0]) if libraries else b""
        info = next(name for name in sizes if name.endswith(".dist-info/METADATA"))
        licence = wheel.read(info.replace("METADATA", "licenses/LICENSE")).decode()
        metadata = wheel.read(info).decode()
    kind = path.stem.split("-")[-1]
    strange = [n for n in sizes if not MAY_LIE_THERE.match(n) or UNWANTED.search(n)]
    missing = [name for name in WANTED if name not in sizes]
    faults = {
        "contents": f"{strange} should not be there, {missing} should"
        if strange or missing
        else "",
        "one library": "" if len(libraries) == 1 else f"it has {libraries}",
        "machine of the library": fault_of_library(code, kind),
        "licence": "" if licence == read("LICENSE") else "it is not LICENSE",
        "requirements": fault_of_requirements(metadata),
        f"size ({sum(sizes.values()):,} bytes installed)": (
            "" if sum(sizes.values()) <= MOST_BYTES else f"more than {MOST_BYTES:,}"
        ),
    }
    yield from ((f"{kind}: {name}", fault) for name, fault in faults.items())


def fault_of_library(code: bytes, kind: str) -> str:
    """What the first bytes say against the tag; of Linux, also which C library it needs."""
    machine = "aarch64" if kind.endswith(("aarch64", "arm64")) else "x86_64"
    if "linux" in kind:
        is_right = code[:4] == b"\x7fELF" and code[18] == {"x86_64": 62, "aarch64": 183}[machine]
    elif kind.startswith("macosx"):
        numbers = {"x86_64": 0x01000007, "aarch64": 0x0100000C}
        is_right = code[:8] == struct.pack("<II", 0xFEEDFACF, numbers[machine])
    else:
        start = int.from_bytes(code[60:64], "little")
        numbers = {"x86_64": 0x8664, "aarch64": 0xAA64}
        is_right = code[start : start + 6] == struct.pack("<4sH", b"PE", numbers[machine])
    if not is_right or b"sketchshift_variants\0" not in code:
        return f"the library is not one of ours for {kind}"
    return fault_of_needs(code, kind) if kind.startswith("manylinux") else ""


def fault_of_needs(code: bytes, kind: str) -> str:
    """Symbols newer than the C library of the tag, or other libraries."""
    promised = tuple(map(int, kind.split("_")[1:3]))
    versions = {tuple(map(int, v.split(b"."))) for v in re.findall(rb"GLIBC_(\d+\.\d+)", code)}
    others = {n.decode() for n in re.findall(rb"\b(?:ld-)?l[\w+-]*\.so\.\d+", code)}
    others -= NEEDED_BY_LINUX
    if max(versions) > promised or others:
        return f"it needs glibc {max(versions)} and {sorted(others)}"
    return ""


def fault_of_requirements(metadata: str) -> str:
    wanted = sorted(tomllib.loads(read("pyproject.toml"))["project"]["dependencies"])
    found = sorted(re.findall(r"^Requires-Dist: ([^;\n]*)$", metadata, re.MULTILINE))
    return "" if found == wanted else f"{found}, and pyproject.toml has {wanted}"


def check_likeness(wheels: list[Path]) -> Checks:
    """But for the library, wheels hold the same files."""
    contents = []
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            files = [i for i in wheel.infolist() if not LIBRARY.fullmatch(i.filename)]
            own = ("/WHEEL", "/RECORD")
            contents.append({(i.filename, i.CRC) for i in files if not i.filename.endswith(own)})
    different = sorted({name for files in contents for name, _ in files ^ contents[0]})
    fault = f"they differ in {different}" if different else ""
    yield f"{len(wheels)} wheels hold the same files", fault


def check_sdist(path: Path) -> Checks:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["LICENSE", "README.md", "CHANGELOG.md", "hatch_build.py", "native/build.py"]
    wanted += ["native/library.cpp", "native/sums.h", "tests/golden/totals.json"]
    missing = [name for name in wanted if name not in names]
    yield "sdist: contents and licence", f"{missing} are not there" if missing else ""
    built = [name for name in names if LIBRARY.fullmatch(name.removeprefix("src/"))]
    yield "sdist: nothing compiled", f"it has {built}" if built else ""


def check_installed(path: Path) -> Checks:
    """Into an empty environment; then the smoke test with no compiler on the path."""
    name = "smoke test of the " + ("sdist" if path.suffix == ".gz" else path.stem.split("-")[-1])
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        python = scripts / Path(sys.executable).name
        install = [str(python), "-m", "pip", "install", "--quiet", str(path)]
        bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        for words, environment in (
            (install, bare),
            ([str(python), "-m", "sketchshift.smoke"], bare | {"PATH": str(scripts)}),
        ):
            done = subprocess.run(
                words, env=environment, cwd=folder, capture_output=True, text=True
            )
            if done.returncode:
                yield name, f"{done.stdout}{done.stderr}"
                return
    yield f"{name} ({done.stdout.splitlines()[-1]})", ""


def is_for_this_machine(path: Path) -> bool:
    """By its name; pip itself checks versions."""
    tag = path.stem.split("-")[-1]
    system = {"darwin": "macosx", "win32": "win"}.get(sys.platform, sys.platform)
    return system in tag and tag.endswith(platform.machine().lower())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--tag", help="the tag to be released, as v0.1.0")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("sketchshift-*"))
    wheels = [path for path in files if zipfile.is_zipfile(path)]
    sdists = [path for path in files if path.suffix == ".gz"]
    if not wheels or len(sdists) != 1:
        sys.exit(f"{arguments.folder} has no wheel, or not one sdist: `make wheels` builds them.")
    here = [path for path in wheels if is_for_this_machine(path)]
    checks = [check_version(arguments.tag), check_metadata(files), check_likeness(wheels)]
    checks += [check_wheel(path) for path in wheels]
    checks += [check_sdist(sdists[0])]
    checks += [check_installed(path) for path in (*here, *sdists)]
    faults = 0
    for name, fault in (result for check in checks for result in check):
        print(f"FAILED  {name}: {fault.strip()}" if fault else f"ok      {name}", flush=True)
        faults += bool(fault)
    print(f"{faults} faults" if faults else "May be released.")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
