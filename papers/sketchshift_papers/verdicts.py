"""Verdicts as facts and as text: JSON, tables of claims, tallies, and the summary of a folder.

Takes what ``claims`` judged. All text is made from the facts that are written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sketchshift.cli import write_atomically
from sketchshift_papers.claims import (
    Judgement,
    Outcome,
    Standing,
    Verdict,
    outcome_of,
)
from sketchshift_papers.definition import Cause, Figure
from sketchshift_papers.runner import Row

__all__ = [
    "asides",
    "claim_table",
    "details",
    "exceptions",
    "how_much",
    "markdown",
    "shown_verdict",
    "tally",
    "verdict_facts",
    "write_summary",
]

Facts = Mapping[str, Any]


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
        "claims": [_claim_facts(verdict) for verdict in verdicts],
    }


def _claim_facts(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "number": claim.number,
        "section": claim.section,
        "says": claim.says,
        **_judgement_facts(verdict.said),
        "cause": None if claim.cause is None else str(claim.cause),
        "standing": str(verdict.standing),
        "note": claim.note,
        "also": [{"name": name} | _judgement_facts(said) for name, said in verdict.also.items()],
    }


def _judgement_facts(said: Judgement) -> dict[str, Any]:
    """The verdict, and those by means and by medians where errors are compared."""
    by = {
        statistic: {"verdict": str(outcome_of(found)), "evidence": [e.text for e in found]}
        for statistic, found in said.by.items()
    }
    evidence = [found.text for found in said.evidence]
    return {"verdict": str(said.outcome), "evidence": evidence, "by": by}


# A claim as text.


def shown_verdict(claim: Facts) -> str:
    """The word a reader sees first: that a claim cannot be tested comes before its numbers."""
    is_testable = claim["cause"] != Cause.NOT_TESTABLE
    return str(claim["verdict"] if is_testable else Standing.NOT_TESTABLE)


def asides(claim: Facts) -> list[str]:
    """What stands beside a verdict: its cause, the other statistic, variants."""
    words = []
    if claim["cause"] == Cause.NOT_TESTABLE and claim["evidence"]:
        words.append(f"as measured: {claim['verdict']}")
    elif claim["standing"] in (Standing.DATA, Standing.BASELINE):
        words.append(claim["standing"])
    words += [f"by {name}s: {verdict}" for name, verdict in _by(claim)]
    for variant in claim["also"]:
        beside = [f"by {name}s: {verdict}" for name, verdict in _by(variant)]
        also = f" ({', '.join(beside)})" if beside else ""
        words.append(f"{variant['name']}: {variant['verdict']}{also}")
    return words


def _by(judged: Facts) -> list[tuple[str, str]]:
    """The verdict by medians, and by means where the file asks for medians."""
    verdicts = {name: by["verdict"] for name, by in judged["by"].items()}
    return [
        (name, verdict)
        for name, verdict in verdicts.items()
        if name == "median" or verdict != judged["verdict"]
    ]


def details(claim: Facts) -> list[str]:
    """Sentences of numbers: the claim's own, the other statistic's if it changes the verdict."""
    texts = [_sentence(claim["evidence"])] if claim["evidence"] else []
    for name, by in claim["by"].items():
        if by["verdict"] != claim["verdict"]:
            texts.append(f"By {name}s: {_sentence(by['evidence'])}")
    for variant in claim["also"]:
        texts.append(f"{_capital(variant['name'])}: {_sentence(variant['evidence'])}")
    return [*texts, claim["note"]] if claim["note"] else texts


def _sentence(evidence: Sequence[str]) -> str:
    return "; ".join(evidence) + "."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def claim_table(facts: Facts) -> list[str]:
    """A markdown table of a figure's claims."""
    lines = [_table_line(["claim", "what it says", "verdict", "measured"]), "|---|---|---|---|"]
    for claim in facts["claims"]:
        is_number = re.match(r"[\dA-Z]", claim["section"])
        section = f" ({'section ' if is_number else ''}{claim['section']})"
        verdict = "; ".join([f"**{shown_verdict(claim)}**", *asides(claim)])
        cells = [claim["number"] + section, claim["says"], verdict, " ".join(details(claim))]
        lines.append(_table_line(cells))
    return [*lines, ""]


def _table_line(cells: Iterable[str]) -> str:
    """A line of a markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def how_much(facts: Facts) -> str:
    """Runs and realizations, for a person: few of them decide little."""
    n = facts["realizations"]
    return f"{facts['runs']:,} runs, {n} realization{'' if n == 1 else 's'}"


def markdown(facts: Facts) -> list[str]:
    """Lines of a section: where the runs come from, and the table of claims."""
    about = f"{how_much(facts)}; code: "
    lines = [f"## {facts['figure']}: {facts['title']}", ""]
    return [*lines, f"{about}{', '.join(facts['commits'])}.", "", *claim_table(facts)]


# All claims together.


def tally(claims: Sequence[Facts]) -> str:
    """How many claims stand where, as in ``"3 claims. Reproduced: 2; data unknown: 1."``.

    Of those put down to a cause, it says how many hold partly.
    """
    parts = []
    for standing in Standing:
        found = [claim for claim in claims if claim["standing"] == standing]
        n_partly = sum(claim["verdict"] == Outcome.PARTLY for claim in found)
        has_cause = standing in (Standing.DATA, Standing.BASELINE)
        of_these = f" ({n_partly} in part)" if has_cause and n_partly else ""
        parts += [f"{standing}: {len(found)}{of_these}"] if found else []
    return f"{len(claims)} claim{'s' * (len(claims) != 1)}. {_capital('; '.join(parts))}."


def exceptions(claims: Iterable[Facts]) -> list[str]:
    """Lines that name the claims which hold only in a variant, or by one statistic alone."""
    groups: dict[str, list[str]] = {}
    for claim in claims:
        if claim["cause"] == Cause.NOT_TESTABLE:
            continue
        for variant in claim["also"]:
            if variant["verdict"] == Outcome.HOLDS != claim["verdict"]:
                group = f'Hold only in the variant "{variant["name"]}"'
                groups.setdefault(group, []).append(claim["number"])
        holding = [name for name, by in claim["by"].items() if by["verdict"] == Outcome.HOLDS]
        if len(holding) == 1:
            (other,) = set(claim["by"]) - set(holding)
            group = f"Hold by {holding[0]}s and not by {other}s"
            groups.setdefault(group, []).append(claim["number"])
    return [f"- {words}: {', '.join(numbers)}." for words, numbers in groups.items()]


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
        ``verdicts-quick.md`` or ``verdicts-full.md``.
    """
    path = folder / f"verdicts-{size}.md"
    files = [folder / f"{name}-{size}.json" for name in names]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    claims = [claim for facts in found for claim in facts["claims"]]
    lines = [f"# Claims held against our runs ({size})", "", tally(claims), "", *exceptions(claims)]
    lines += ["", *(line for facts in found for line in markdown(facts))]
    write_atomically(path, "\n".join(lines).encode())
    return path
