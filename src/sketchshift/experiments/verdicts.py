"""Claim by claim: holds, holds partly, does not hold here; as text, JSON and markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sketchshift._writing import write_atomically
from sketchshift.experiments.checks import Evidence, evaluate
from sketchshift.experiments.definition import Claim, Figure
from sketchshift.experiments.store import Row

__all__ = ["Outcome", "Verdict", "judge", "markdown", "verdict_facts", "write_summary"]


class Outcome(StrEnum):
    """How a claim fared; the value is shown to the user."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold here"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Verdict:
    """A claim, its outcome, and the numbers behind it."""

    claim: Claim
    outcome: Outcome
    evidence: tuple[Evidence, ...]


def judge(figure: Figure, rows: Sequence[Row]) -> list[Verdict]:
    """Hold every claim of a figure against its runs.

    Parameters
    ----------
    figure : Figure
        Whose claims.
    rows : sequence of rows
        Its runs.

    Returns
    -------
    verdicts : list of Verdict
        A claim holds if every comparison of every check comes out as claimed, does not if no
        check has half of them, and holds partly in between.
    """
    verdicts = []
    for claim in figure.claims:
        evidence = tuple(evaluate(check, rows) for check in claim.checks)
        verdicts.append(Verdict(claim, outcome_of(evidence), evidence))
    return verdicts


def outcome_of(evidence: Sequence[Evidence]) -> Outcome:
    """The outcome of a claim with these checks."""
    shares = [found.share for found in evidence if found.n_compared]
    if len(shares) < len(evidence) or not shares:
        return Outcome.UNMEASURED
    if min(shares) == 1.0:
        return Outcome.HOLDS
    return Outcome.FAILS if max(shares) < 0.5 else Outcome.PARTLY


def verdict_facts(
    figure: Figure, verdicts: Iterable[Verdict], rows: Sequence[Row]
) -> dict[str, Any]:
    """What is written as JSON: verdicts, and where the runs come from."""
    return {
        "figure": figure.name,
        "title": figure.title,
        "section": figure.section,
        "runs": len(rows),
        "realizations": 1 + max((row["seed"] for row in rows), default=-1),
        "commits": sorted({f"{row['version']} {row['commit']}".strip() for row in rows}),
        "claims": [
            {
                "number": verdict.claim.number,
                "section": verdict.claim.section,
                "says": verdict.claim.says,
                "verdict": str(verdict.outcome),
                "evidence": [found.text for found in verdict.evidence],
                "note": verdict.claim.note,
            }
            for verdict in verdicts
        ],
    }


def markdown(facts: Mapping[str, Any]) -> list[str]:
    """Lines of a section: a table of claims, then the numbers behind them."""
    lines = [
        f"## {facts['figure']}: {facts['title']}",
        "",
        f"{facts['runs']:,} runs, {facts['realizations']} realizations; code: "
        f"{', '.join(facts['commits'])}.",
        "",
        "| claim | section | what the paper says | verdict | numbers |",
        "|---|---|---|---|---|",
    ]
    for claim in facts["claims"]:
        numbers = "; ".join(claim["evidence"])
        note = f" {claim['note']}" if claim["note"] else ""
        cells = [claim["number"], claim["section"], claim["says"], f"**{claim['verdict']}**"]
        lines.append("| " + " | ".join([*map(_cell, cells), _cell(numbers + "." + note)]) + " |")
    return [*lines, ""]


def write_summary(folder: Path, size: str, names: Sequence[str]) -> Path:
    """One markdown file of all figures whose verdicts lie in a folder.

    Parameters
    ----------
    folder : Path
        Of the results.
    size : {"quick", "full"}
        Which ones.
    names : sequence of str
        Figures in order; those without verdicts are left out.

    Returns
    -------
    path : Path
        ``verdicts-quick.md`` or ``verdicts-full.md``; a JSON file of the same name beside it.
    """
    files = [folder / f"{name}-{size}.json" for name in names]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    counts: dict[str, int] = {str(outcome): 0 for outcome in Outcome}
    for facts in found:
        for claim in facts["claims"]:
            counts[claim["verdict"]] += 1
    tally = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    lines = [f"# The paper's claims, held against our runs ({size})", "", f"{tally}.", ""]
    for facts in found:
        lines += markdown(facts)
    path = folder / f"verdicts-{size}.md"
    write_atomically(path, "\n".join(lines).encode())
    write_atomically(path.with_suffix(".json"), json.dumps(found, indent=1).encode())
    return path


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
