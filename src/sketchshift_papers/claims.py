"""Claims held against runs: a small vocabulary, numbers as evidence, and a verdict.

A check selects runs, averages a measure over the realizations at every point of the grid, and
compares. Its entries, as in the TOML files:

``of``        which runs: ``{decoder = "algorithm2", m = 1000, sigma = {from = 0.03, to = 0.3}}``;
              a list means any of these, a table a range with its ends
``measure``   a column of the runs, ``"rse"`` unless told
``reduce``    one number instead of one a point: ``"min"``, ``"max"``, ``"mean"``, or of the
              bandwidths at which the measure is at most ``threshold``: ``"count"``,
              ``"smallest"``, ``"largest"``
``op``        ``"<=" ">=" "<" ">" "within"``, with a number ``value`` (``within``: a pair) or with
              ``other``, a second selection, times ``factor``; ``within`` an ``other``: a ratio
              of at most ``factor`` either way
``along``     instead of ``op``: ``"m"``, ``"L"``, ``"d"`` or ``"sigma"``; the measure must
              ``trend = "rise"`` (or ``"fall"``) from end to end, by more than ``slack`` in
              relation nowhere going back

A claim holds, holds partly, or does not hold here; the verdicts are text, JSON and markdown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

from sketchshift import DataError
from sketchshift.cli import write_atomically
from sketchshift_papers.definition import Claim, Figure
from sketchshift_papers.runner import Row

__all__ = [
    "Evidence",
    "Outcome",
    "Point",
    "Verdict",
    "evaluate",
    "judge",
    "markdown",
    "outcome_of",
    "points_of",
    "verdict_facts",
    "write_summary",
]

AXES = ("dataset", "d", "m", "sigma", "L")
Point = tuple[Any, ...]
OPS: dict[str, Callable[[float, float], bool]] = {
    "<=": lambda x, y: x <= y,
    ">=": lambda x, y: x >= y,
    "<": lambda x, y: x < y,
    ">": lambda x, y: x > y,
}


@dataclass(frozen=True)
class Evidence:
    """What a check found.

    Attributes
    ----------
    n_satisfied, n_compared : int
        Comparisons that came out as claimed, and all; none compared: not measured.
    text : str
        The numbers.
    """

    n_satisfied: int
    n_compared: int
    text: str

    @property
    def share(self) -> float:
        """Of the comparisons, those as claimed."""
        return self.n_satisfied / self.n_compared if self.n_compared else math.nan


def points_of(rows: Sequence[Row], select: Mapping[str, Any], measure: str) -> dict[Point, float]:
    """Means over the realizations at every point (dataset, d, m, sigma, L) of a selection."""
    values: dict[Point, list[float]] = {}
    for row in rows:
        if measure in row and all(_matches(row.get(name), want) for name, want in select.items()):
            values.setdefault(tuple(row[axis] for axis in AXES), []).append(row[measure])
    return {point: math.fsum(found) / len(found) for point, found in values.items()}


def evaluate(check: Mapping[str, Any], rows: Sequence[Row]) -> Evidence:
    """Hold one check against the runs.

    Parameters
    ----------
    check : mapping
        See the module's text.
    rows : sequence of rows
        The runs of a figure.

    Returns
    -------
    evidence : Evidence
        O(rows).
    """
    measure = check.get("measure", "rse")
    found = points_of(rows, check["of"], measure)
    if not found:
        return Evidence(0, 0, f"no runs with {_selection(check['of'])}")
    if "along" in check:
        return _trend(check, found, measure)
    if "other" in check:
        return _against(check, found, points_of(rows, check["other"], measure), measure)
    values = [_reduced(check, found)] if "reduce" in check else list(found.values())
    wanted = check["value"]
    n = sum(_compare(check["op"], value, wanted) for value in values)
    text = f"{_name(check)} {_spread(values)}, wanted {check['op']} {_number(wanted)}"
    return Evidence(n, len(values), text + _of(n, len(values)))


def _against(
    check: Mapping[str, Any], left: dict[Point, float], right: dict[Point, float], measure: str
) -> Evidence:
    """Two selections: point by point where they share what neither fixes, or reduced."""
    if not right:
        return Evidence(0, 0, f"no runs with {_selection(check['other'])}")
    if "reduce" in check:
        pairs = [(_reduced(check, left), _reduced(check, right))]
    else:
        shared = _shared_axes(check, left, right)
        others = _by(right, shared)
        pairs = [(v, others[k]) for p, v in left.items() if (k := _part(p, shared)) in others]
    factor = check.get("factor", 1.0)
    op = check["op"]
    if op == "within":
        n = sum(1 / factor <= _ratio(x, y) <= factor for x, y in pairs)
    else:
        n = sum(OPS[op](x, factor * y) for x, y in pairs)
    ratios = [_ratio(x, y) for x, y in pairs]
    if "reduce" in check:
        numbers = f"{_number(pairs[0][0])} against {_number(pairs[0][1])}"
    else:
        numbers = f"{_spread(ratios)} times that of {_selection(check['other'])}" if pairs else ""
    wanted = f", wanted {op} {factor:g}" if factor != 1.0 or op == "within" else f", wanted {op}"
    return Evidence(n, len(pairs), f"{_name(check)} {numbers}{wanted}{_of(n, len(pairs))}")


def _shared_axes(
    check: Mapping[str, Any], left: dict[Point, float], right: dict[Point, float]
) -> list[int]:
    """Axes on which points must agree: not those on which the selections themselves differ.

    Nor L, where only one of the two decoders has starts.
    """
    shared = []
    for i, name in enumerate(AXES):
        is_told_apart = check["of"].get(name) != check["other"].get(name)
        has_one_none = name == "L" and not {p[i] for p in left} & {p[i] for p in right}
        if not is_told_apart and not has_one_none:
            shared.append(i)
    return shared


def _trend(check: Mapping[str, Any], found: dict[Point, float], measure: str) -> Evidence:
    """Does the measure rise, or fall, along an axis? One comparison for each of the rest."""
    axis = AXES.index(check["along"])
    reduced = "reduce" in check
    fixed = [i for i in range(len(AXES)) if i != axis and AXES[i] not in _reduced_axes(check)]
    if check["along"] == "d":
        fixed = [i for i in fixed if AXES[i] not in ("dataset", "m")]
    groups: dict[Point, dict[Any, dict[Point, float]]] = {}
    for point, value in found.items():
        group = groups.setdefault(_part(point, fixed), {})
        group.setdefault(point[axis], {})[point] = value
    sign, slack = (1 if check["trend"] == "rise" else -1), check.get("slack", 0.0)
    n, n_groups, texts = 0, 0, []
    for key, group in sorted(groups.items(), key=lambda item: str(item[0])):
        steps = sorted(group)
        if len(steps) < 2:
            continue
        values = [_reduced(check, group[s]) if reduced else _mean(group[s]) for s in steps]
        n_groups += 1
        n += _rises([sign * v for v in values], slack)
        texts.append(_label(key, fixed, groups) + " → ".join(_number(v) for v in values))
    shown = "; ".join(texts[:4]) + (" ..." if len(texts) > 4 else "")
    text = f"{_name(check)} along {check['along']}: {shown}, wanted a {check['trend']}"
    return Evidence(n, n_groups, text + _of(n, n_groups))


def _label(key: Point, fixed: Sequence[int], groups: Iterable[Point]) -> str:
    """What tells a group from the others, as in ``"(m = 200) "``."""
    told = [i for i in range(len(fixed)) if len({other[i] for other in groups}) > 1]
    told = [i for i in told if AXES[fixed[i]] != "dataset" or len(told) == 1]
    words = [f"{AXES[fixed[i]]} = {key[i]}" for i in told]
    return f"({', '.join(words)}) " if words else ""


def _rises(values: Sequence[float], slack: float) -> bool:
    """Ends higher than it starts, and goes back nowhere by more than the slack."""
    back = all(b >= a - slack * abs(a) for a, b in pairwise(values))
    return back and values[-1] > values[0]


def _reduced_axes(check: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(check.get("over", ("sigma",))) if "reduce" in check else ()


def _reduced(check: Mapping[str, Any], found: Mapping[Point, float]) -> float:
    how, values = check["reduce"], list(found.values())
    if how in _PLAIN:
        return _PLAIN[how](values)
    if how == "m_of_min":
        return float(min(found, key=lambda point: found[point])[AXES.index("m")])
    sigmas = [float(p[AXES.index("sigma")]) for p, v in found.items() if v <= check["threshold"]]
    if how == "count":
        return float(len(sigmas))
    if how not in ("smallest", "largest"):
        raise DataError(f"a check cannot reduce by {how!r}. See sketchshift_papers.claims.")
    if not sigmas:
        return math.nan
    return min(sigmas) if how == "smallest" else max(sigmas)


def _compare(op: str, value: float, wanted: Any) -> bool:
    if op == "within":
        return bool(wanted[0] <= value <= wanted[1])
    if op not in OPS:
        raise DataError(f"a check cannot compare by {op!r}. Use one of {', '.join(OPS)}, within.")
    return OPS[op](value, wanted)


def _matches(value: Any, want: Any) -> bool:
    if isinstance(want, Mapping):
        low, high = want.get("from", -math.inf), want.get("to", math.inf)
        return value is not None and low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    if isinstance(want, list):
        return value in want
    return bool(value == want)


def _by(found: Mapping[Point, float], kept: Sequence[int]) -> dict[Point, float]:
    groups: dict[Point, list[float]] = {}
    for point, value in found.items():
        groups.setdefault(_part(point, kept), []).append(value)
    return {key: _mean_of(values) for key, values in groups.items()}


def _part(point: Point, kept: Sequence[int]) -> Point:
    return tuple(point[i] for i in kept)


def _mean(found: Mapping[Point, float]) -> float:
    return _mean_of(list(found.values()))


def _mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_PLAIN: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max, "mean": _mean_of}


def _ratio(x: float, y: float) -> float:
    return x / y if y else math.inf


def _of(n: int, n_all: int) -> str:
    return f" ({n} of {n_all})" if n_all != 1 else (" (yes)" if n else " (no)")


def _name(check: Mapping[str, Any]) -> str:
    how = check.get("reduce", "")
    limit = f" where at most {check['threshold']:g}" if "threshold" in check else ""
    what = f"{how} of {check.get('measure', 'rse')}{limit}" if how else check.get("measure", "rse")
    return f"{what} of {_selection(check['of'])}:"


def _selection(select: Mapping[str, Any]) -> str:
    def shown(name: str, want: Any) -> str:
        if isinstance(want, Mapping):
            ends = [f"{want['from']:g} <=" if "from" in want else "", name]
            return " ".join([*ends, f"<= {want['to']:g}" if "to" in want else ""]).strip()
        return str(want) if name in ("decoder", "dataset") else f"{name} = {want}"

    return ", ".join(shown(name, want) for name, want in select.items())


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return _number(low) if len(values) == 1 else f"{_number(low)} to {_number(high)}"


def _number(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(_number(v) for v in value)
    return f"{value:.3g}"


# Verdicts: what the evidence says of a claim.


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
