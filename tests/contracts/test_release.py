"""The build's own parts: names of wheels, and what keeps a wrong one from a release."""

from __future__ import annotations

import importlib.util
import re
import runpy
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load("native/build.py")
release = load(".ci/release_check.py")


@pytest.mark.parametrize(
    ("target", "library", "tag"),
    [
        ("x86_64-linux-gnu.2.17", "kernels.native.so", "manylinux_2_17_x86_64"),
        ("aarch64-linux-gnu.2.17", "kernels.native.so", "manylinux_2_17_aarch64"),
        ("x86_64-macos.10.13", "kernels.native.dylib", "macosx_10_13_x86_64"),
        ("aarch64-macos.11.0", "kernels.native.dylib", "macosx_11_0_arm64"),
        ("x86_64-windows-gnu", "kernels.native.dll", "win_amd64"),
    ],
)
def test_a_target_has_its_library_and_its_tag(target, library, tag):
    assert build.library_name(target) == library
    assert build.platform_tag(target) == tag


def test_a_target_of_no_known_wheel_is_refused_with_examples():
    with pytest.raises(
        SystemExit, match=r"target 'riscv64-linux-musl'. Take x86_64-linux-gnu.2.17"
    ):
        build.platform_tag("riscv64-linux-musl")


@pytest.mark.parametrize(
    ("platform", "machine", "tag"),
    [
        ("linux-x86_64", "x86_64", "linux_x86_64"),
        ("macosx-10.13-universal2", "arm64", "macosx_11_0_arm64"),
        ("macosx-10.13-universal2", "x86_64", "macosx_10_13_x86_64"),
        ("macosx-14.0-arm64", "arm64", "macosx_14_0_arm64"),
        ("win-amd64", "AMD64", "win_amd64"),
    ],
)
def test_a_wheel_made_for_this_machine_names_it(monkeypatch, platform, machine, tag):
    monkeypatch.setattr(build.sysconfig, "get_platform", lambda: platform)
    monkeypatch.setattr(build.platform, "machine", lambda: machine)

    assert build.platform_tag() == tag


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_the_package_looks_for_the_library_that_the_build_makes(monkeypatch, system):
    path = ROOT / "src" / "sketchshift" / "kernels" / "cpu" / "library.py"
    monkeypatch.setattr(sys, "platform", system)

    assert runpy.run_path(str(path))["FILE"].name == build.library_name()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["false"], "false failed; sketchshift needs one with C++17. It is the one that CXX"),
        (["no-such-compiler"], "no-such-compiler cannot be run ("),
    ],
)
def test_a_compiler_that_fails_ends_with_what_to_do(monkeypatch, tmp_path, words, sentence):
    monkeypatch.setenv("CXX", " ".join(words))

    with pytest.raises(SystemExit) as caught:
        build.compile_library(tmp_path / "kernels.native.so")

    last = str(caught.value).splitlines()[-1]
    assert last.startswith(f"the C++ compiler {sentence}")
    assert last.endswith("name another, or unset CXX.")


def test_a_compiler_that_happens_to_be_there_and_fails_is_left_alone(monkeypatch, tmp_path):
    """One that is broken or too old: another one is looked for, and told of if there is none."""
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)

    assert build.find_compiler() is None
    with pytest.raises(SystemExit, match=r"^sketchshift needs a C\+\+ compiler, and none was fo"):
        build.compile_library(tmp_path / "kernels.native.so")
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: name)
    assert build.find_compiler() == build.zig()


@pytest.fixture
def tree(monkeypatch, tmp_path):
    """A copy of the files that hold the version."""
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "src/sketchshift/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    return tmp_path


def faults(checks):
    return {name: fault for name, fault in checks if fault}


def test_the_version_is_ready_here(tree):
    assert faults(release.check_version(None)) == {}


@pytest.mark.parametrize(
    ("name", "pattern", "place"),
    [
        ("CITATION.cff", r"^version: .*$", "version in CITATION.cff"),
        ("src/sketchshift/__init__.py", r'^__version__ = .*"$', "version in sketchshift.__version"),
        ("CHANGELOG.md", r"^## \S+", "version in the first heading of CHANGELOG.md"),
    ],
)
def test_a_version_forgotten_in_one_place_is_a_fault(tree, name, pattern, place):
    text = (tree / name).read_text(encoding="utf-8")
    wrong = re.sub(pattern, lambda m: m[0].replace("0.", "7."), text, count=1, flags=re.MULTILINE)
    (tree / name).write_text(wrong, encoding="utf-8")

    (fault,) = faults(release.check_version(None)).items()

    assert fault[0].startswith(place)
    assert "pyproject.toml has" in fault[1]


def test_a_tag_wants_its_own_version_and_a_date(tree):
    heading = "## 0.1.0 (unreleased)\n\n- New.\n"
    (tree / "CHANGELOG.md").write_text(heading, encoding="utf-8")

    assert set(faults(release.check_version("v9.9"))) == {
        "version in the tag",
        "date in the changelog",
    }

    (tree / "CHANGELOG.md").write_text(heading.replace("unreleased", "2026-12-01"))
    version = release.find(r'^version = "(.*)"', release.read("pyproject.toml"))
    assert faults(release.check_version(f"v{version}")) == {}


def test_a_changelog_that_says_nothing_is_a_fault(tree):
    heading = (tree / "CHANGELOG.md").read_text().splitlines()[2]
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n## 0.0.1\n\n- Old.\n")

    assert faults(release.check_version(None)) == {"changelog": "it says nothing new"}


ELF = b"\x7fELF" + bytes(14) + b"%c" + bytes(50) + b"sketchshift_variants\0libc.so.6\0GLIBC_2.%d\0"


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (ELF % (62, 14), ""),
        (ELF % (183, 14), "the library is not one of ours for manylinux_2_17_x86_64"),
        (ELF % (62, 34), "it needs glibc (2, 34) and []"),
        (ELF % (62, 14) + b"libstdc++.so.6\0", "it needs glibc (2, 14) and ['libstdc++.so.6']"),
        (b"MZ", "the library is not one of ours for manylinux_2_17_x86_64"),
    ],
)
def test_a_library_must_be_what_the_tag_promises(code, fault):
    assert release.fault_of_library(code.ljust(64, b"\0"), "manylinux_2_17_x86_64") == fault


def test_a_wheel_with_strange_files_is_refused(tmp_path):
    path = tmp_path / "sketchshift-0.1.0-py3-none-manylinux_2_17_x86_64.zip"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("sketchshift/kernels/cpu/kernels.native.so", ELF % (62, 14))
        wheel.writestr("sketchshift/kernels/cpu/kernels.native.dll", b"MZ")
        wheel.writestr("tests/test_x.py", "")
        wheel.writestr("sketchshift-0.1.0.dist-info/METADATA", "Requires-Dist: numba\n")
        wheel.writestr("sketchshift-0.1.0.dist-info/licenses/LICENSE", "none")

    found = {name.partition(": ")[2] for name in faults(release.check_wheel(path))}

    assert found == {"contents", "one library", "licence", "requirements"}
