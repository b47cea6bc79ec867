"""Put pictures and verdicts of ``sketchshift reproduce`` into docs/reproduction.md.

    python docs/make_reproduction.py reproduction --on 2026-11-15 --machine "2 cores of ..."

For each figure the full run is taken where there is one, else the quick one. What stands above
the mark in the page is left as it is.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from PIL import Image

DOCS = Path(__file__).parent
MARK = "<!-- below: written by docs/make_reproduction.py -->"
FIGURES = ("1", "2", "3", "4", "5a", "5b", "6", "7", "8", "9", "10")
WIDTH = 1400  # pixels of a picture


def main() -> None:
    """Read the command line and write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--on", required=True, help="the date of the runs")
    parser.add_argument("--machine", required=True)
    options = parser.parse_args()
    found = [_facts(options.folder, f"fig{number}") for number in FIGURES]
    figures = [facts for facts in found if facts]
    page = DOCS / "reproduction.md"
    above = page.read_text(encoding="utf-8").split(MARK)[0].rstrip()
    lines = [above, "", MARK, "", *_summary(figures, options.on, options.machine)]
    for facts in figures:
        lines += _section(facts, options.folder)
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _facts(folder: Path, name: str) -> dict[str, Any]:
    for size in ("full", "quick"):
        path = folder / f"{name}-{size}.json"
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8")) | {"size": size}
    return {}


def _summary(figures: list[dict[str, Any]], on: str, machine: str) -> list[str]:
    claims = [claim for facts in figures for claim in facts["claims"]]
    counts: dict[str, int] = {}
    for claim in claims:
        counts[claim["verdict"]] = counts.get(claim["verdict"], 0) + 1
    words = {
        "holds": "hold",
        "holds partly": "hold partly",
        "does not hold here": "do not hold here",
    }
    tally = ", ".join(f"{counts.get(verdict, 0)} {plural}" for verdict, plural in words.items())
    commits = sorted({commit for facts in figures for commit in facts["commits"]})
    return [
        "## The verdicts",
        "",
        f"{len(claims)} claims: {tally}. Run on {on}, {machine}; version and commit: "
        f"{', '.join(commits)}.",
        "",
        "| figure | runs | holds | holds partly | does not hold here |",
        "|---|---|---|---|---|",
        *(_row(facts) for facts in figures),
        "",
    ]


def _row(facts: dict[str, Any]) -> str:
    verdicts = ("holds", "holds partly", "does not hold here")
    numbers = [", ".join(_of(facts, verdict)) or "-" for verdict in verdicts]
    runs = f"{facts['runs']:,}, {facts['size']}"
    return "| " + " | ".join([facts["figure"][3:], runs, *numbers]) + " |"


def _of(facts: dict[str, Any], verdict: str) -> list[str]:
    return [claim["number"] for claim in facts["claims"] if claim["verdict"] == verdict]


def _section(facts: dict[str, Any], folder: Path) -> list[str]:
    name = f"{facts['figure']}-{facts['size']}"
    target = DOCS / "images" / f"{facts['figure']}.png"
    with Image.open(folder / f"{name}.png") as picture:
        height = round(picture.height * min(1.0, WIDTH / picture.width))
        small = picture.convert("RGB").resize((min(WIDTH, picture.width), height), Image.LANCZOS)
        small.quantize(64).save(target, optimize=True)
    title = f"Figure {facts['figure'][3:]}: {facts['title']}"
    about = f"{facts['runs']:,} runs, {facts['realizations']} realizations ({facts['size']})."
    lines = [f"### {title}", "", f"![{title}](images/{target.name})", "", about, ""]
    lines += ["| claim | the paper says | verdict | measured |", "|---|---|---|---|"]
    for claim in facts["claims"]:
        where = f"{claim['number']} (section {claim['section']})"
        cells = [where, claim["says"], f"**{claim['verdict']}**", "; ".join(claim["evidence"])]
        cells[-1] += f". {claim['note']}" if claim["note"] else "."
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
