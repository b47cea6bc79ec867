"""What the pages show is what happens: code runs, names exist, and prints are those shown."""

from __future__ import annotations

import importlib
import math
import re
import runpy
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "papers").rglob("*.md"))
FLAGS = re.MULTILINE | re.DOTALL
BLOCK = re.compile(r"(<!-- [^\n]* -->\n)?^```python\n(.*?)^```", FLAGS)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ENTRY_POINTS = {f"sketchshift.{name}" for name in ("commands", "formats", "pictures", "plugins")}
SECONDS = re.compile(r"\d+\.\d+ s(, [\d,]+ rows/s)?")
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e-?\d+)?")


def words(line):
    """The words of a line, without the seconds that differ from run to run."""
    return SECONDS.sub("", line).split()


def is_like(shown, printed):
    """Whether two words are equal, or numbers that differ by what another processor may change."""
    if shown == printed:
        return True
    numbers = NUMBER.findall(shown), NUMBER.findall(printed)
    if NUMBER.sub("", shown) != NUMBER.sub("", printed) or not all(numbers):
        return False
    return all(is_near(*pair) for pair in zip(*numbers, strict=True))


def is_near(shown, printed):
    """Within 1 %, or two units of the last decimal that is shown; whole numbers within 1 %."""
    a, b = (float(number.replace(",", "")) for number in (shown, printed))
    decimals = len(shown.partition(".")[2].partition("e")[0])
    return math.isclose(a, b, rel_tol=0.01, abs_tol=2 * 10**-decimals if decimals else 0.0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_a_page_shows_what_its_code_prints(name, tmp_path):
    text = (ROOT / name).read_text(encoding="utf-8")
    pages = runpy.run_path(str(ROOT / "docs" / "pages.py"))

    fresh = pages["run_page"](text, tmp_path)

    for shown, printed in zip_longest(text.splitlines(), fresh.splitlines(), fillvalue=""):
        pairs = zip_longest(words(shown), words(printed), fillvalue="")
        assert all(is_like(*pair) for pair in pairs), f"shown: {shown}\nprinted: {printed}"


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_a_page_has_no_block_that_does_not_run(name):
    """But for what installs: Make's targets exist, and all else is a command or Python."""
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)

    languages = re.findall(r"^```(\S+)\n", text, flags=re.MULTILINE)
    assert set(languages) <= {"console", "python", "sh", "text"}
    for block in re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            program, *arguments = line.split()
            assert program in {"sketchshift", "make", "pip", "python3"}, line
            assert program != "make" or arguments[0] in targets


@pytest.mark.parametrize(
    "code", [code for comment, code in BLOCK.findall(CONTRIBUTING) if not comment]
)
def test_code_for_contributors_runs_when_pasted(code, tmp_path, monkeypatch):
    """Its last lines are assertions. What it registers is forgotten when the test is over."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pasted.py").write_text(code)

    runpy.run_path(str(tmp_path / "pasted.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_modules_and_names_in_a_page_exist(page):
    text = page.read_text(encoding="utf-8")

    text = re.sub(
        r"^```(sql|sh)\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL
    )  # a schema's name
    names = set(re.findall(r"\bsketchshift(?:_papers)?(?:\.[A-Za-z_]\w*)+", text))

    assert [name for name in names - ENTRY_POINTS if not exists(name)] == []


def exists(name):
    """Whether a dotted name is that of a module, or of something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[n:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def test_a_changed_number_is_noticed():
    pairs = "13.2189 13.2190", "0.2 0.3", "13.2189 14.2", "1.005 1.1", "5 6", "clusters cluster"

    assert [is_like(*pair.split()) for pair in pairs] == [True] * 2 + [False] * 4
    assert not is_like("5", "")
