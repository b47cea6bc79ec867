"""Put pictures and verdicts of ``sketchshift reproduce`` into a page of the documentation.

    python docs/make_reproduction.py reproduction --on 2026-11-15 --machine "2 cores of ..."
    python docs/make_reproduction.py reproduction-beyond --paper beyond --on 2026-11-17 ...

The page is docs/reproduction.md for the paper itself, else that of the paper's name. For each
figure the full run is taken where there is one, else the quick one. What stands above the mark
in the page is left as it is. Verdicts of an earlier day (``verdicts-DAY.json`` beside the
figures) are held against those of today.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from sketchshift_papers.claims import Outcome, Standing
from sketchshift_papers.definition import PAPER, SIZES, figure_names, paper_folder
from sketchshift_papers.verdicts import (
    all_claims,
    claim_table,
    exceptions,
    grouped,
    read_facts,
    shown_verdict,
    table_line,
    tally,
)

DOCS = Path(__file__).parent
MARK = "<!-- below: written by docs/make_reproduction.py -->"
WIDTH = 2000  # pixels of a picture: the numbers of a map are still read
Facts = dict[str, Any]


def main(words: Sequence[str] | None = None) -> None:
    """Read the command line and write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--on", required=True, help="the date of the runs")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--paper", default=PAPER, help="its name, or the folder of its figures")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page lies")
    options = parser.parse_args(words)
    source = paper_folder(options.paper)
    found = [_facts(options.folder, name) for name in figure_names(source)]
    figures = [facts for facts in found if facts]
    is_paper = source.name == PAPER
    page = options.docs / ("reproduction.md" if is_paper else f"{source.name}.md")
    above = page.read_text(encoding="utf-8").split(MARK)[0].rstrip() if page.exists() else ""
    lines = [above, "", MARK, ""] if above else [f"# {_title(source.name)}", "", MARK, ""]
    lines += _summary(figures, options.on, options.machine, by_cause=is_paper)
    lines += _changes(source, options.on, all_claims(figures))
    for facts in figures:
        prefix = "" if is_paper else f"{source.name}_"
        picture = options.docs / "images" / f"{prefix}{facts['figure']}.png"
        _shrink(options.folder / f"{facts['figure']}-{facts['size']}.png", picture)
        lines += _section(facts, picture.name)
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _facts(folder: Path, name: str) -> Facts:
    for size in reversed(SIZES):
        path = folder / f"{name}-{size}.json"
        if path.exists():
            return read_facts(path) | {"size": size}
    return {}


def _title(name: str) -> str:
    """What a figure is called: ``Figure 5a``, or a word."""
    number = name.removeprefix("fig")
    return f"Figure {number}" if number[:1].isdigit() else name.replace("_", " ").capitalize()


def _summary(figures: list[Facts], on: str, machine: str, *, by_cause: bool) -> list[str]:
    claims = all_claims(figures)
    commits = sorted({commit for facts in figures for commit in facts["commits"]})
    groups = grouped(claims, by_cause=by_cause)
    head = ["figure", "runs", *groups]
    lines = ["## The verdicts", "", tally(claims, by_cause=by_cause), ""]
    named = exceptions(claims)
    lines += [*named, ""] if named else []
    lines += [f"Run on {on}, {machine}; version and commit: {', '.join(commits)}.", ""]
    lines += [table_line(head), table_line(["---"] * len(head))]
    for facts in figures:
        here = grouped(facts["claims"], by_cause=by_cause)
        numbers = [", ".join(c["number"] for c in here.get(word, ())) or "-" for word in groups]
        name = _title(facts["figure"]).removeprefix("Figure ")
        lines.append(table_line([name, f"{facts['runs']:,}, {facts['size']}", *numbers]))
    runs = f"{sum(facts['runs'] for facts in figures):,}"
    counts = [str(len(found)) for found in groups.values()]
    return [*lines, table_line(["all", runs, *counts]), ""]


def _changes(source: Path, on: str, claims: list[Facts]) -> list[str]:
    """Verdicts of the last earlier day that is kept, and what became of them."""
    days = {path.stem.removeprefix("verdicts-"): path for path in source.glob("verdicts-*.json")}
    earlier = [day for day in sorted(days) if day < on]
    if not earlier:
        return []
    day = earlier[-1]
    then: dict[str, str] = json.loads(days[day].read_text(encoding="utf-8"))
    now = {claim["number"]: claim for claim in claims}
    lines = [
        f"## What changed since {day}",
        "",
        table_line(["verdict", day, on]),
        "|---|---|---|",
    ]
    for word in [*map(str, Outcome), str(Standing.NOT_TESTABLE)]:
        counts = [[*then.values()].count(word), [*map(shown_verdict, claims)].count(word)]
        lines += [table_line([word, *map(str, counts)])] if any(counts) else []
    lines += ["", *_became(day, then, now), "", "| claim | then | now | why |", "|---|---|---|---|"]
    for number, claim in now.items():
        old, new = then.get(number), shown_verdict(claim)
        if old not in (None, new):
            lines.append(table_line([number, old, new, claim["note"] or "-"]))
    return [*lines, ""]


def _became(day: str, then: dict[str, str], now: dict[str, Facts]) -> list[str]:
    """Of the claims that fell short, those that hold now; of the others, those that do not."""
    holds = {number for number, claim in now.items() if shown_verdict(claim) == Outcome.HOLDS}
    held = [number for number, verdict in then.items() if verdict == Outcome.HOLDS]
    short = [number for number in then if number not in held]
    still = [now[number] for number in short if number in now and number not in holds]
    groups = {
        f"Fell short on {day} ({len(short)}), hold now": [n for n in short if n in holds],
        **{
            f"Fell short and still do, {word}": [claim["number"] for claim in found]
            for word, found in grouped(still, by_cause=True).items()
        },
        f"Held on {day} ({len(held)}), no longer count so": [
            n for n in held if n in now and n not in holds
        ],
        "New": [number for number in now if number not in then],
        "Gone, or not run": [number for number in then if number not in now],
    }
    lines = [f"- {w} ({len(found)}): {', '.join(found)}." for w, found in groups.items() if found]
    return lines + [f"{line[:-1]} (of those that still fall short)." for line in exceptions(still)]


def _shrink(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    with Image.open(source) as picture:
        height = round(picture.height * min(1.0, WIDTH / picture.width))
        small = picture.convert("RGB").resize((min(WIDTH, picture.width), height), Image.LANCZOS)
        small.quantize(64).save(target, optimize=True)


def _section(facts: Facts, picture: str) -> list[str]:
    title = f"{_title(facts['figure'])}: {facts['title']}"
    about = f"{facts['runs']:,} runs, {facts['realizations']} realizations ({facts['size']})."
    lines = [f"### {title}", "", f"![{title}](images/{picture})", "", about, ""]
    return [*lines, *claim_table(facts)]


if __name__ == "__main__":
    main()
