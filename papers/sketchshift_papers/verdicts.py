"""Verdicts as facts and as text: JSON, tables of claims, tallies, and the summary of a folder.

Takes what ``claims`` judged. All text is made from the facts that are written as JSON.
"""

from __future__ import annotations

import json
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
from sketchshift_papers.definition import Cause, Figure, figure_names
from sketchshift_papers.runner import Row

__all__ = [
    "asides",
    "details",
    "markdown",
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
    names = ("number", "section", "says", "cause", "note")
    return {
        **{name: getattr(verdict.claim, name) for name in names},
        **_judgement_facts(verdict.said),
        "standing": verdict.standing,
        "also": [{"name": name} | _judgement_facts(said) for name, said in verdict.also.items()],
    }


def _judgement_facts(said: Judgement) -> dict[str, Any]:
    """The verdict, and those by means and by medians where errors are compared."""
    by = {
        statistic: {"verdict": outcome_of(found), "evidence": [e.text for e in found]}
        for statistic, found in said.by.items()
    }
    evidence = [found.text for found in said.evidence]
    return {"verdict": said.outcome, "evidence": evidence, "by": by}


# A claim as text.


def _shown_verdict(claim: Facts) -> str:
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


def markdown(facts: Facts) -> list[str]:
    """Lines of a section: where the runs come from, and the claims."""
    lines = [f"## {facts['figure']}: {facts['title']}", ""]
    about = f"{facts['runs']:,} runs; realizations: {facts['realizations']}"
    lines += [f"{about}; code: {', '.join(facts['commits'])}.", ""]
    for claim in facts["claims"]:
        head = f"- {claim['number']} **{_shown_verdict(claim)}**: {claim['says']}"
        lines.append(f"{head} ({claim['section']})")
        lines += [f"  - {text}" for text in (*asides(claim), *details(claim))]
    return [*lines, ""]


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


def write_summary(folder: Path, size: str, source: Path) -> None:
    """One markdown file of all figures of a source whose verdicts lie in a folder.

    Parameters
    ----------
    folder : Path
        Of the results; gets ``sketch_and_shift-quick.md``, named by the source.
    size : {"quick", "full"}
        Which ones.
    source : Path
        Folder of the figures' ``.toml`` files.
    """
    files = [folder / f"{name}-{size}.json" for name in figure_names(source)]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    if found:
        claims = [claim for facts in found for claim in facts["claims"]]
        lines = [f"# Claims held against our runs ({size})", "", tally(claims), ""]
        lines += [line for facts in found for line in markdown(facts)]
        write_atomically(folder / f"{source.name}-{size}.md", "\n".join(lines).encode())
