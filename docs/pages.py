"""Run the code of a page, and put what it prints back: ``python docs/pages.py README.md ...``.

A page is Markdown. Its blocks run in order, in one empty folder:

- ``console``: lines that begin with ``$ sketchshift`` run, and go on after a backslash; below
  them stands what they print, the reason if they fail. A line ``...`` stands for lines left out.
- ``python``: run in one namespace; a ``text`` block right below is what they print.
- ``sh``: lines that begin with ``sketchshift`` run, and ``make demo`` as ``sketchshift demo``;
  what installs is for the reader. There is a file ``yours.csv``.

Lines that say what to do next are left out. A picture that a page calls ``images/page_name.png``
is the file ``name.png`` that one of its blocks has written.

Tests compare a page with what :func:`run_page` makes of it (``tests/contracts/test_pages.py``).
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from textwrap import fill

import numpy as np
from click.testing import CliRunner
from PIL import Image

from sketchshift.cli import main

BLOCK = re.compile(r"^```(console|python|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELLIPSIS = "..."
WIDTH = 86  # of a terminal, and of the text of a page


def run_page(text: str, folder: Path) -> str:
    """The page as it would be if written now.

    Parameters
    ----------
    text : str
        Markdown.
    folder : Path
        Where commands run, with the files they need.

    Returns
    -------
    text : str
        With what was printed in the place of what stood there.
    """
    names: dict[str, object] = {}
    printed = ""

    def fresh(block: re.Match[str]) -> str:
        nonlocal printed
        language, content = block.groups()
        match language:
            case "console":
                content = "\n".join(_run_console(content))
            case "sh":
                for line in content.replace("make demo", "sketchshift demo").splitlines():
                    if line.startswith("sketchshift "):
                        answer = run_command(line)
                        assert not answer.startswith("Error"), f"{line}: {answer}"
            case "python":
                printed = _run_python(content, names)
            case "text":
                content = shortened(printed, content)
        return f"```{language}\n{content}```"

    with chdir(folder):
        points = np.random.default_rng(0).normal(size=(500, 3))
        np.savetxt("yours.csv", points, delimiter=",", header="a,b,c", comments="")
        return BLOCK.sub(fresh, text)


def _run_console(content: str) -> Iterator[str]:
    for step in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        line, _, shown = re.split(r"((?<!\\)\n)", step, maxsplit=1)
        yield f"$ {line}\n{shortened(run_command(line), shown)}"


def run_command(line: str) -> str:
    """What a command prints: its result, or the reason why there is none."""
    words = shlex.split(line.replace("\\\n", " "), comments=True)
    assert words[0] == "sketchshift", line
    result = CliRunner().invoke(main, words[1:])
    if isinstance(result.exception, Exception) and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout if result.exit_code == 0 else fill(result.stderr, WIDTH)


def _run_python(code: str, names: dict[str, object]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


def shortened(printed: str, shown: str) -> str:
    """What was printed, with as many lines left out as in what is shown now."""
    lines = [line for line in printed.rstrip().splitlines() if not line.startswith("Next: ")]
    kept = shown.rstrip().splitlines()
    if ELLIPSIS in kept:
        n_first = kept.index(ELLIPSIS)
        n_last = len(kept) - n_first - 1
        lines = [*lines[:n_first], ELLIPSIS, *lines[len(lines) - n_last :]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def rewrite(page: Path) -> None:
    """Run a page of docs/, or the README, and write it anew with its pictures."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        page.write_text(run_page(text, Path(place)), encoding="utf-8")
        for name in re.findall(rf"images/{page.stem}_(\w+\.png)", text):
            picture = Image.open(Path(place, name)).convert("RGB").quantize(256, kmeans=4)
            picture.save(page.parent / "images" / f"{page.stem}_{name}", optimize=True)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        rewrite(Path(path))
